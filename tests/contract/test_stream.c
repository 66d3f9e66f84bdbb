/* stream: what every algorithm promises; execution without steps takes exactly the lower bound, by
 * simulation; and the simulation itself. */
#include "client/theory/simulate.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

static const char *const other_shapes[] = {
    "1",       "2",       "7",        "24",          "2m",        "9m",      "4x4m",
    "5mx6",    "4mx4m",   "7mx3m",    "6mx6m",       "3x3x3",     "3x4x5",   "4x4x4",
    "2x2x2",   "1x1x1",   "3x4mx5",   "6x6x6",       "5x5x5m",    "1x6x1x3", "3mx3mx3m",
    "2x3x2x3", "4x4x4x4", "2x2mx4x2", "2x2x2x2x2x2", "3x2mx2x3x2"};
enum { OTHER_SHAPES = sizeof other_shapes / sizeof other_shapes[0], LARGEST_HERE = 12 };

static void check(const struct torus *t)
{
    const struct algorithm *a = algorithm_find("stream");
    struct schedule_report r = contract_verify(t, "stream");

    contract_check(t, a);
    contract_check_no_gaps(t, "stream");
    assert_int_equal(r.startups, torus_diameter(t));
    assert_true(r.minimal);
    assert_int_equal(r.contended_steps, 0);
}

TEST(stream_every_rectangle)
{
    for (uint32_t rows = 1; rows <= LARGEST_HERE; rows++) {
        for (uint32_t columns = 1; columns <= LARGEST_HERE; columns++) {
            struct torus t = contract_rectangle(rows, columns);
            check(&t);
        }
    }
}

TEST(stream_other_shapes)
{
    for (size_t i = 0; i < OTHER_SHAPES; i++) {
        struct torus t = contract_torus(other_shapes[i]);
        check(&t);
    }
}

/* All legs are single hops. Two segments take each way to the opposite, and two take each order of
 * two dimensions. */
TEST(segments_differ)
{
    const struct algorithm *a = algorithm_find("stream");
    struct torus t = contract_torus("6x8");
    struct leg legs[8];

    assert_true(a->streaming);
    for (uint32_t d = 1; d < t.nodes; d++) {
        uint32_t row_first = 0, plus[2] = {0, 0};
        for (uint32_t segment = 0; segment < a->segments; segment++) {
            uint32_t count = algorithm_route(a, &t, 0, d, segment, legs);
            row_first += legs[0].dim == 1;
            for (uint32_t i = 0; i < count; i++) {
                assert_int_equal(legs[i].hops, 1);
                if (i == 0 || legs[i].dim != legs[i - 1].dim)
                    plus[legs[i].dim] += legs[i].direction > 0;
            }
        }
        if (d / 8 != 0 && d % 8 != 0)
            assert_int_equal(row_first, a->segments / 2);
        if (d / 8 == 3)
            assert_int_equal(plus[0], a->segments / 2);
        if (d % 8 == 4)
            assert_int_equal(plus[1], a->segments / 2);
    }
}

static uint64_t simulate(const struct torus *t, const struct algorithm *a)
{
    struct error e = {.code = ERROR_NONE};
    uint64_t ticks = 0;
    assert_success(simulate_stream(t, a, &ticks, &e), e);
    return ticks;
}

static void check_bound(const struct torus *t)
{
    const struct algorithm *a = algorithm_find("stream");
    char text[TORUS_TEXT_SIZE];
    uint64_t ticks = simulate(t, a), bound = simulate_bound(t, a);
    if (ticks != bound)
        fail_msg("%s: %ju ticks, bound %ju", torus_format(t, text), (uintmax_t)ticks,
                 (uintmax_t)bound);
}

TEST(stream_takes_the_bound)
{
    const uint32_t largest = 2 * LARGEST_HERE / (uint32_t)one_in(2), every = (uint32_t)one_in(3);

    for (uint32_t rows = 1; rows <= largest; rows++) {
        for (uint32_t columns = 1 + 2 * rows % every; columns <= largest; columns += every) {
            struct torus t = contract_rectangle(rows, columns);
            check_bound(&t);
            if (rows > LARGEST_HERE || columns > LARGEST_HERE)
                continue;
            t.wrap[0] = false;
            check_bound(&t);
            t.wrap[1] = false;
            check_bound(&t);
        }
    }
    for (size_t i = 0; i < OTHER_SHAPES; i += every) {
        struct torus t = contract_torus(other_shapes[i]);
        check_bound(&t);
    }
}

TEST(bound_of_the_simulation)
{
    const struct algorithm *a = algorithm_find("stream");
    static const struct {
        const char *torus;
        uint64_t ticks;
    } bounds[] = {{"1", 0},    {"2", 2},    {"3", 4},     {"6", 18},        {"2m", 4},
                  {"4x4", 32}, {"5x5", 60}, {"4x8", 128}, {"2x2x2x2x2", 32}};

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        struct torus t = contract_torus(bounds[i].torus);
        assert_int_equal(simulate_bound(&t, a), bounds[i].ticks);
        check_bound(&t);
    }
}

/* One node of a class stands for all: simulated one by one, the nodes do the same. */
TEST(classes_stand_for_nodes)
{
    static const char *const tori[] = {"4x4", "3x5", "6x4", "4mx5", "3x4x2", "8"};
    static const char *const algorithms[] = {"stream", "direct", "dim", "pair", "pair-s4"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        for (size_t j = 0; j < sizeof algorithms / sizeof algorithms[0]; j++) {
            struct algorithm one_by_one = *algorithm_find(algorithms[j]);
            if (algorithm_accepts(&one_by_one, &t, NULL) != 0)
                continue;
            one_by_one.period = algorithm_find("tree")->period; /* none */
            assert_int_equal(simulate(&t, &one_by_one),
                             simulate(&t, algorithm_find(algorithms[j])));
        }
    }
}

/* All blocks go + on a ring of 4: 1 + 2 + 3 blocks on each channel. */
static uint32_t always_plus(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                            struct leg *legs)
{
    legs[0] = (struct leg){.hops = (uint16_t)((d + t->nodes - s) % t->nodes), .direction = 1};
    return 1;
}

TEST(simulation_counts)
{
    struct algorithm a = *algorithm_find("stream");
    struct torus t = contract_torus("4");

    a.segments = 1;
    a.route = always_plus;
    assert_int_equal(simulate(&t, &a), 6);
    assert_int_equal(simulate_bound(&t, &a), 2);
    a.segments = 3;
    assert_int_equal(simulate(&t, &a), 18);

    /* Dimension 0 first for all blocks leaves the channels of dimension 1 idle at the beginning. */
    t = contract_torus("5x5");
    assert_true(simulate(&t, algorithm_find("direct")) >
                simulate_bound(&t, algorithm_find("direct")));
}

TEST(simulation_refuses)
{
    struct torus t = contract_torus("4x4");
    struct error e = {.code = ERROR_NONE};
    uint64_t ticks;

    assert_fails(simulate_stream(&t, algorithm_find("ar"), &ticks, &e), e, ERROR_REFUSED, "");
    assert_fails(simulate_stream(&t, algorithm_find("balanced"), &ticks, &e), e, ERROR_REFUSED,
                 "balanced");
}
