/* The counts by which "auto" chooses on networks other than tori: the routes of `stream` are found once, kept, and
 * counted. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/torusd/planning/choose.h"
#include "failing_memory.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

struct asking {
    struct torus torus;
    struct stepper stepper;
    struct planner *planner;
    bool counts; /* when the planner wakes it */
    unsigned wakes;
    int answer;
};

static void wake(void *context)
{
    struct asking *a = context;
    struct counted *counted;
    struct error e;

    a->wakes++;
    if (a->counts)
        a->answer = planner_count(a->planner, &counted, &e);
}

static void begin_on(struct asking *a, const struct torus *t)
{
    *a = (struct asking){.torus = *t};
    stepper_init(&a->stepper, 0);
    a->planner = planner_new(&a->torus, 0, &a->stepper.workers, wake, a);
    assert_non_null(a->planner);
}

static struct torus parse(const char *dims)
{
    struct torus t;

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    return t;
}

/* A path as a graph from a file. */
static struct torus long_path(void)
{
    uint32_t edge[2 * GRAPH_NODES_MOST];

    for (uint32_t i = 0; i + 1 < GRAPH_NODES_MOST; i++) {
        edge[2 * i] = i;
        edge[2 * i + 1] = i + 1;
    }
    const struct graph *g = graph_of_edges(edge, GRAPH_NODES_MOST - 1, NULL);
    assert_non_null(g);
    return parse(g->text);
}

static const struct counted *counted_of(struct asking *a, const char *name)
{
    struct counted *counted;
    struct error e;
    size_t i = 0;

    assert_int_equal(planner_count(a->planner, &counted, &e), 1);
    while (algorithm_at(i) != algorithm_find(name))
        i++;
    return &counted[i];
}

/* Returns the result of planner_get_detour() for the whole network, and gives the routes back. */
static int get_found(struct asking *a, uint32_t *busiest)
{
    const struct detour *found;
    struct damage none;
    struct error e;

    assert_int_equal(damage_init(&none, &a->torus, NULL), 0);
    int result = planner_get_detour(a->planner, &none, &found, &e);
    damage_free(&none);
    if (result > 0) {
        *busiest = detour_busiest(found);
        planner_put_detour(a->planner, found);
    }
    return result;
}

static void count(struct asking *a)
{
    struct counted *counted;
    struct error e;

    assert_int_equal(planner_count(a->planner, &counted, &e), 0);
    a->counts = true;
    stepper_finish(&a->stepper);
}

static void check_counts(struct asking *a, uint32_t busiest)
{
    const struct counted *stream = counted_of(a, "stream");

    assert_true(stream->candidate && stream->counts.streaming);
    assert_true(stream->counts.blocks * stream->counts.segments == busiest);
    assert_true(counted_of(a, "tree")->candidate && counted_of(a, "direct")->candidate);
    assert_false(counted_of(a, "dim")->candidate); /* for tori and meshes */
    assert_false(counted_of(a, "a2")->candidate);  /* one-port */
}

TEST(routes_are_found_with_the_counts)
{
    struct asking a;
    uint32_t busiest;

    const struct torus t = parse("5 x complete:3");
    begin_on(&a, &t);
    count(&a);
    assert_int_equal(a.wakes, 1);
    assert_int_equal(a.answer, 1);
    assert_int_equal(get_found(&a, &busiest), 1); /* without another job */
    check_counts(&a, busiest);
    planner_free(a.planner);
}

TEST(routes_that_are_known_are_counted)
{
    uint32_t busiest;
    struct asking a;

    const struct torus t = parse("complete:4");
    begin_on(&a, &t);
    assert_int_equal(get_found(&a, &busiest), 0);
    count(&a); /* at the same time: both jobs find routes, and one result is kept */
    assert_int_equal(get_found(&a, &busiest), 1);
    check_counts(&a, busiest);
    planner_free(a.planner);
    begin_on(&a, &t);
    assert_int_equal(get_found(&a, &busiest), 0);
    stepper_finish(&a.stepper);
    count(&a);
    assert_int_equal(get_found(&a, &busiest), 1);
    check_counts(&a, busiest);
    planner_free(a.planner);
}

/* Without memory the waiting client hears of the failure, and the next one is answered. */
TEST(without_memory)
{
    unsigned refused = 0;

    const struct torus t = parse("complete:4");
    for (unsigned failures = 0, failed = 1; failed; failures++) {
        struct counted *counted;
        struct asking a;
        struct error e;
        begin_on(&a, &t);
        assert_int_equal(planner_count(a.planner, &counted, &e), 0);
        a.counts = true;
        memory_fails(failures);
        memory_counts_here(true);
        assert_true(stepper_step(&a.stepper));
        memory_counts_here(false);
        failed = memory_failed();
        stepper_finish(&a.stepper);
        /* Without memory for the bound, or to keep the routes, the counts are complete all the same. */
        assert_true(a.answer == 1 || (failed && a.answer == -1));
        if (a.answer < 0) {
            refused++;
            count(&a);
        }
        assert_true(counted_of(&a, "tree")->candidate);
        planner_free(a.planner);
    }
    assert_true(refused > 3);
}

/* On a long path all routes would take too much memory, and too much time to count: nothing can be compared. */
TEST(routes_that_are_too_long)
{
    struct asking a;

    const struct torus t = long_path();
    begin_on(&a, &t);
    count(&a);
    assert_int_equal(a.answer, 1);
    for (size_t i = 0; i < algorithm_count(); i++)
        if (algorithm_at(i)->operation == OPERATION_EXCHANGE)
            assert_false(counted_of(&a, algorithm_at(i)->name)->candidate);
    planner_free(a.planner);
}

/* --- the choice --- */

static void choose(struct asking *a, const struct predict_costs *costs, uint64_t bytes,
                   enum mode mode, struct candidate *list, unsigned *number)
{
    const struct block_sizes sizes = {bytes, bytes};
    struct error e;

    assert_int_equal(choose_from(a->planner, &a->torus, costs, &sizes, mode, list, number, &e), 1);
    for (unsigned i = 1; i < *number; i++)
        assert_true(list[i - 1].seconds <= list[i].seconds);
}

TEST(the_fastest_is_chosen)
{
    static const char *const networks[] = {"complete:4", "star:5", "5 x complete:3", "tree:2^3"};
    /* Messages take long; and steps do, which makes hops take long. */
    static const struct predict_costs messages = {10e-6, 60e-6, 1e8, 0, 0},
                                      steps = {500e-6, 1e-6, 1e8, 0, 0};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        const struct torus t = parse(networks[i]);
        struct candidate list[CHOOSE_MOST];
        struct asking a;
        unsigned number;
        begin_on(&a, &t);
        count(&a);
        choose(&a, &messages, 1, MODE_OF_ALGORITHM, list, &number);
        assert_true(number >= 3);
        assert_string_equal(list[0].algorithm->name, "tree");
        assert_int_equal(list[0].mode, MODE_STEPPED);
        choose(&a, &messages, 262144, MODE_OF_ALGORITHM, list, &number);
        assert_string_equal(list[0].algorithm->name, "stream");
        assert_int_equal(list[0].mode, MODE_STREAMING);
        uint32_t segments = list[0].counts.segments;
        assert_int_equal(list[0].piece_bytes, (262144 + segments - 1) / segments);
        choose(&a, &messages, 262144, MODE_STEPPED, list, &number);
        for (unsigned k = 0; k < number; k++)
            assert_string_not_equal(list[k].algorithm->name, "stream");
        choose(&a, &steps, 1, MODE_OF_ALGORITHM, list, &number);
        /* Where the farthest way leads through the tree's root anyway, `tree` takes no more steps. */
        assert_string_equal(list[0].algorithm->name, i % 2 == 0 ? "stream" : "tree");
        planner_free(a.planner);
    }
}
