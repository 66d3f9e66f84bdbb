/* ar, at2 and direct: what every algorithm promises, and exactly the papers' figures. This file also tests the
 * registry, and the errors that the verifier finds. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

TEST(ar_every_rectangle)
{
    contract_every_rectangle("ar", 2 * LARGEST - 1);
}

TEST(at2_every_rectangle)
{
    contract_every_rectangle("at2", LARGEST * LARGEST);
}

TEST(direct_every_rectangle)
{
    contract_every_rectangle("direct", LARGEST * LARGEST);
}

TEST(direct_other_shapes)
{
    static const char *const shapes[] = {"1",
                                         "2",
                                         "7",
                                         "12",
                                         "2m",
                                         "9m",
                                         "4x4m",
                                         "4mx4m",
                                         "5mx6",
                                         "2x2x2",
                                         "1x1x1",
                                         "3x4x5",
                                         "3x4mx5",
                                         "4x4x4",
                                         "1x6x1x3",
                                         "3mx3mx3m",
                                         "2x3x2x3",
                                         "2x2x2x2x2x2",
                                         "2x2x2x2x2x2x2mx2"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        contract_check(&t, algorithm_find("direct"));
    }
}

TEST(ar_other_shapes)
{
    static const char *const shapes[] = {"1", "2", "3", "40", "41", "1x1x10x1", "1mx6", "1m"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        contract_check(&t, algorithm_find("ar"));
    }
}

/* Section 3, lemma 2: p/2 startups, ceil(p^2/8) blocks, no contention, shortest paths. */
TEST(ar_figures)
{
    for (uint32_t p = 2; p <= 40; p += 2) {
        struct torus t = contract_rectangle(1, p);
        struct schedule_report r = contract_verify(&t, "ar");
        assert_int_equal(r.startups, p / 2);
        contract_check_no_gaps(&t, "ar");
        assert_int_equal(r.transmission, (p * p + 7) / 8);
        assert_int_equal(r.critical_path, r.transmission);
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.minimal);
    }
}

/* An odd ring gets one imaginary node, and costs no more than the even ring to which it is
 * padded. */
TEST(ar_odd_figures)
{
    for (uint32_t p = 3; p <= 41; p += 2) {
        struct torus t = contract_rectangle(1, p);
        struct schedule_report r = contract_verify(&t, "ar");
        assert_int_equal(r.startups, (p + 1) / 2);
        assert_true(r.transmission <= ((p + 1) * (p + 1) + 7) / 8);
        assert_int_equal(r.contended_steps, 0);
    }
}

/* Section 4, lemmas 3 and 4: c/2 + 2 startups, r*c^2/8 blocks, which is the lower bound, no
 * contention, shortest paths. */
TEST(at2_figures)
{
    for (uint32_t a = 4; a <= 24; a += 4) {
        for (uint32_t b = 4; b <= 24; b += 4) {
            struct torus t = contract_rectangle(a, b);
            struct schedule_report r = contract_verify(&t, "at2");
            uint32_t c = a > b ? a : b;
            assert_int_equal(r.startups, c / 2 + 2);
            contract_check_no_gaps(&t, "at2");
            assert_int_equal(r.transmission, a * b * c / 8);
            assert_int_equal(r.critical_path, a * b * c / 8);
            assert_true(r.bound == a * b * c / 8);
            assert_int_equal(r.contended_steps, 0);
            assert_true(r.minimal);
        }
    }
}

/* In lockstep, lemma 4 fails if r is a multiple of 8, c is not, and 7r > 6c: in the first steps of stage 2, each
 * twice, the shorter rings have 28m - 24M - 12 blocks too many, then 32(M - m) + 16 fewer in every further step. */
TEST(at2_lockstep_figures)
{
    for (uint32_t a = 24; a <= 44; a += 4) {
        for (uint32_t b = 24; b <= 44; b += 4) {
            struct torus t = contract_rectangle(a, b);
            struct schedule_report r = contract_verify(&t, "at2");
            int m = (int)(a < b ? a : b) / 8, M = (int)(a < b ? b : a) / 8;
            uint32_t c = a > b ? a : b, shorter = a > b ? b : a, more = 0;
            for (int i = 0; shorter % 8 == 0 && c % 8 == 4 && i < m; i++) {
                int each = 28 * m - 24 * M - 12 - (32 * (M - m) + 16) * i;
                more += each > 0 ? 2 * (uint32_t)each : 0;
            }
            assert_int_equal(more > 0, shorter % 8 == 0 && c % 8 == 4 && 7 * shorter > 6 * c);
            assert_int_equal(r.transmission, a * b * c / 8 + more);
            assert_int_equal(r.critical_path, a * b * c / 8);
            assert_int_equal(r.startups, c / 2 + 2);
            assert_int_equal(r.contended_steps, 0);
        }
    }
}

/* With imaginary nodes: at most the startups of the padded torus, but more blocks, because the
 * channels of a host carry those of its imaginary nodes too. */
TEST(at2_padded_figures)
{
    static const struct {
        uint32_t r, c;
        uint64_t transmission, critical_path;
    } figures[] = {{2, 2, 2, 2},     {3, 3, 8, 8},       {5, 5, 47, 45},
                   {7, 5, 63, 56},   {6, 6, 56, 56},     {7, 7, 63, 63},
                   {9, 9, 174, 165}, {10, 10, 213, 212}, {11, 11, 225, 225}};

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        struct torus t = contract_rectangle(figures[i].r, figures[i].c);
        struct schedule_report r = contract_verify(&t, "at2");
        assert_int_equal(r.transmission, figures[i].transmission);
        assert_int_equal(r.critical_path, figures[i].critical_path);
    }
    for (uint32_t rows = 2; rows <= LARGEST; rows++) {
        for (uint32_t columns = 2; columns <= LARGEST; columns++) {
            struct torus t = contract_rectangle(rows, columns);
            struct torus padded = contract_rectangle((rows + 3) / 4 * 4, (columns + 3) / 4 * 4);
            struct schedule_report r = contract_verify(&t, "at2"),
                                   limit = contract_verify(&padded, "at2");
            assert_true(r.startups <= limit.startups);
        }
    }
}

TEST(direct_figures)
{
    static const char *const shapes[] = {"2",     "9",    "4x4",   "5x7",    "8x8",
                                         "3x4x5", "4x5m", "3mx3m", "2x2x2x2"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        struct schedule_report r = contract_verify(&t, "direct");
        assert_int_equal(r.startups, t.nodes - 1);
        contract_check_no_gaps(&t, "direct");
        assert_true(r.minimal);
    }
}

/* "N-1 startups per node": a node starts one of its own blocks in each step. */
TEST(direct_starts_one_block_a_step)
{
    static const char *const shapes[] = {"5x6", "3x4x5", "4x5m", "3mx2mx3m"};
    const struct algorithm *a = algorithm_find("direct");

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        for (uint32_t s = 0; s < t.nodes; s++) {
            bool started[64] = {false};
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[TORUS_MAX_DIMS];
                if (s == d)
                    continue;
                uint32_t count = algorithm_route(a, &t, s, d, 0, legs);
                assert_false(started[legs[0].step]);
                started[legs[0].step] = true;
                assert_true(legs[count - 1].step < t.nodes - 1);
                for (uint32_t leg = 1; leg < count; leg++)
                    assert_true(legs[leg].dim > legs[leg - 1].dim);
            }
        }
    }
}

/* Blocks for the exact opposite go both ways: no direction of a ring of 8 carries more than the
 * bound in total. */
TEST(direct_is_balanced)
{
    static const char *const shapes[] = {"8", "4x8", "8x3", "4x4x4"};
    const struct algorithm *a = algorithm_find("direct");

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        uint64_t *load = calloc((size_t)t.nodes * torus_ports(&t), sizeof *load);
        assert_non_null(load);
        for (uint32_t s = 0; s < t.nodes; s++) {
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[TORUS_MAX_DIMS];
                uint32_t here = s;
                uint32_t count = s == d ? 0 : algorithm_route(a, &t, s, d, 0, legs);
                for (uint32_t leg = 0; leg < count; leg++) {
                    unsigned port = torus_port(&t, legs[leg].dim, legs[leg].direction);
                    for (uint16_t hop = 0; hop < legs[leg].hops; hop++) {
                        load[here * torus_ports(&t) + port]++;
                        here = torus_neighbour(&t, here, port);
                    }
                }
            }
        }
        for (size_t j = 0; j < (size_t)t.nodes * torus_ports(&t); j++)
            assert_true((double)load[j] <= torus_bound_all_port(&t));
        free(load);
    }
}

TEST(at2_on_a_ring_is_ar)
{
    const struct algorithm *ar = algorithm_find("ar"), *at2 = algorithm_find("at2");

    for (uint32_t p = 2; p <= 2 * LARGEST; p++) {
        for (int column = 0; column < 2; column++) {
            struct torus t = column ? contract_rectangle(p, 1) : contract_rectangle(1, p);
            struct leg a[LARGEST + 1], b[LARGEST + 1];
            assert_int_equal(algorithm_max_legs(ar, &t), algorithm_max_legs(at2, &t));
            for (uint32_t s = 0; s < p; s++) {
                for (uint32_t d = 0; d < p; d++) {
                    memset(a, 0, sizeof a);
                    memset(b, 0, sizeof b);
                    if (s != d)
                        assert_int_equal(algorithm_route(ar, &t, s, d, 0, a),
                                         algorithm_route(at2, &t, s, d, 0, b));
                    assert_memory_equal(a, b, sizeof a);
                }
            }
        }
    }
}

TEST(refusals_say_what_is_taken)
{
    static const struct {
        const char *algorithm, *torus;
    } refused[] = {{"ar", "4x4"},    {"ar", "5m"},         {"ar", "1x5m"},        {"ar", "2x2x2"},
                   {"at2", "4x4x4"}, {"at2", "4x8m"},      {"at2", "4mx8"},       {"at2", "8"},
                   {"at2", "1x5m"},  {"direct", "70000m"}, {"direct", "140000x2"}};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        contract_refused(refused[i].algorithm, refused[i].torus);
}

TEST(registry_is_complete)
{
    char names[1024] = "";

    assert_true(algorithm_count() >= 3);
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        assert_non_null(a);
        assert_ptr_equal(algorithm_find(a->name), a); /* this also shows that no two names are
                                                       * equal */
        assert_true(a->summary[0] && a->accepts_text[0] && a->startups[0]);
        assert_true(a->transmission[0] && a->source[0]);
        assert_string_not_equal(port_model_name(a->port_model), "unknown");
        assert_true(a->segments >= 1);
        assert_true(a->max_legs && a->period && (a->route || a->methods));
        strcat(strcat(names, i == 0 ? "" : ", "), a->name);
    }
    assert_string_equal(algorithm_names(), names);
    assert_null(algorithm_at(algorithm_count()));
    assert_null(algorithm_find("at"));
    assert_null(algorithm_find(""));
}

/* Wrong schedules for the verifier, all on a ring or mesh of 4. */
static uint32_t two_legs(const struct torus *t)
{
    return 2;
}
static void no_period(const struct torus *t, uint32_t *period)
{
    memcpy(period, t->size, t->dims * sizeof *period);
}

typedef uint32_t route_fn(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                          struct leg *legs);

static uint32_t always_plus(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                            struct leg *legs)
{
    legs[0] = (struct leg){.hops = (uint16_t)((d + t->nodes - s) % t->nodes), .direction = 1};
    return 1;
}
/* Makes the route of one pair wrong. */
static uint32_t spoilt(const struct torus *t, uint32_t s, uint32_t d, struct leg first,
                       struct leg second, uint32_t count, struct leg *legs)
{
    if (s != 1 || d != 3)
        return always_plus(t, s, d, 0, legs);
    legs[0] = first;
    legs[1] = second;
    return count;
}
#define SPOILT(name, count, first, second)                                                         \
    static uint32_t name(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,          \
                         struct leg *legs)                                                         \
    {                                                                                              \
        (void)segment;                                                                             \
        return spoilt(t, s, d, (struct leg)first, (struct leg)second, count, legs);                \
    }
#define LEG(...)                                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
SPOILT(ends_elsewhere, 1, LEG(0, 1, 0, 1), LEG(0))
SPOILT(goes_nowhere, 0, LEG(0), LEG(0))
SPOILT(stays, 2, LEG(0, 2, 0, 1), LEG(1, 0, 0, 1))
SPOILT(step_twice, 2, LEG(1, 1, 0, 1), LEG(1, 1, 0, 1))
SPOILT(step_back, 2, LEG(1, 1, 0, 1), LEG(0, 1, 0, 1))
SPOILT(no_dimension, 1, LEG(0, 2, 1, 1), LEG(0))
SPOILT(no_direction, 1, LEG(0, 2, 0, 0), LEG(0))

static uint32_t three_legs(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                           struct leg *legs)
{
    (void)always_plus(t, s, d, 0, legs);
    return 3;
}

static struct algorithm made_of(route_fn *route)
{
    return (struct algorithm){
        .name = "broken", .segments = 1, .max_legs = two_legs, .period = no_period, .route = route};
}

TEST(verifier_finds_what_is_wrong)
{
    static const struct {
        route_fn *route;
        const char *torus, *says;
    } broken[] = {{ends_elsewhere, "4", "1 -> 3, leg 1: does not end at the destination"},
                  {goes_nowhere, "4", "1 -> 3, leg 0: does not end at the destination"},
                  {stays, "4", "1 -> 3, leg 1: no hops"},
                  {step_twice, "4", "1 -> 3, leg 1: steps do not rise"},
                  {step_back, "4", "1 -> 3, leg 1: steps do not rise"},
                  {no_dimension, "4", "1 -> 3, leg 0: no such port"},
                  {no_direction, "4", "1 -> 3, leg 0: no such port"},
                  {three_legs, "4", "0 -> 1, leg 3: more legs than announced"},
                  {always_plus, "4m", "1 -> 0, leg 0: no link there"}};

    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        struct algorithm a = made_of(broken[i].route);
        struct torus t = contract_torus(broken[i].torus);
        struct schedule_report r;
        struct error e;
        assert_int_equal(schedule_verify(&t, &a, &r, &e), -1);
        assert_contains(e.text, broken[i].says);
    }
}

/* All blocks go + in one step: each channel of a ring of 4 carries 1 + 2 + 3 blocks, in 6
 * messages. */
TEST(verifier_counts)
{
    struct algorithm a = made_of(always_plus);
    struct torus t = contract_torus("4");
    struct schedule_report r;

    assert_int_equal(schedule_verify(&t, &a, &r, NULL), 0);
    assert_int_equal(r.startups, 1);
    assert_int_equal(r.transmission, 6);
    assert_int_equal(r.critical_path, 6);
    assert_int_equal(r.contended_steps, 1);
    assert_false(r.minimal);
    assert_false(r.one_port_kept);
    a.port_model = PORT_MODEL_ONE;
    assert_int_equal(schedule_verify(&t, &a, &r, NULL), 0);
    assert_true(r.bound == 3);
}

/* On a ring of 3: to both neighbours in one step, or one after another, or by two hops. */
static uint32_t both_ways(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                          struct leg *legs)
{
    bool plus = (s + 1) % t->nodes == d;
    legs[0] = (struct leg){.step = segment, .hops = 1, .direction = plus ? 1 : -1};
    return 1;
}
static uint32_t in_turn(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                        struct leg *legs)
{
    (void)both_ways(t, s, d, segment, legs);
    legs[0].step = legs[0].direction > 0 ? 0 : 1;
    return 1;
}
static uint32_t two_hops_for_one(const struct torus *t, uint32_t s, uint32_t d, uint32_t segment,
                                 struct leg *legs)
{
    (void)in_turn(t, s, d, segment, legs);
    legs[0].step = s + t->nodes * legs[0].step; /* one message at a time */
    legs[0].hops = legs[0].direction > 0 ? 1 : 2;
    legs[0].direction = 1;
    return 1;
}

TEST(port_models)
{
    static const struct {
        route_fn *route;
        bool all_port, one_port, single_hops;
    } cases[] = {{always_plus, false, false, false},
                 {both_ways, true, false, false},
                 {in_turn, true, true, true},
                 {two_hops_for_one, true, true, false}};
    struct torus t = contract_torus("3");

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct algorithm a = made_of(cases[i].route);
        struct schedule_report r;
        assert_int_equal(schedule_verify(&t, &a, &r, NULL), 0);
        assert_int_equal(schedule_keeps_ports(&a, &r), cases[i].all_port);
        a.port_model = PORT_MODEL_ONE;
        assert_int_equal(schedule_keeps_ports(&a, &r), cases[i].one_port);
        a.single_hops = true;
        assert_int_equal(schedule_keeps_ports(&a, &r), cases[i].single_hops);
    }
}
