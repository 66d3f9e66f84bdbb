/* A client of a plan that cannot be made hears of the failure; a client that asks later, or for another plan, does
 * not. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/torusd/planning/choose.h"
#include "daemon/torusd/planning/planner.h"
#include "failing_memory.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

struct planner_query {
    struct torus torus;
    struct stepper stepper;
    struct planner *planner;
    const char *algorithm; /* asked for when the planner wakes; NULL: nothing */
    bool counts;           /* when the planner wakes it */
    unsigned wakes;
    int answer;
};

static struct torus parse(const char *dims)
{
    struct torus t;

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    return t;
}

static int ask(struct planner_query *a, const char *algorithm)
{
    struct planned *planned;
    struct error e;
    int result = planner_get(a->planner, algorithm_find(algorithm), MODE_STEPPED, TORUS_NO_NODE,
                             false, &planned, &e);

    if (result < 0)
        assert_int_equal(e.code, ERROR_MEMORY);
    if (result > 0)
        planner_put(a->planner, planned);
    return result;
}

static void wake(void *context)
{
    struct planner_query *a = context;

    a->wakes++;
    if (a->algorithm != NULL)
        a->answer = ask(a, a->algorithm);
    if (a->counts) {
        struct counted *counted;
        struct error e;
        a->answer = planner_count(a->planner, &counted, &e);
    }
}

static void begin_with(struct planner_query *a, const struct torus *t)
{
    *a = (struct planner_query){.torus = *t};
    stepper_init(&a->stepper, 0);
    a->planner = planner_new(&a->torus, 0, &a->stepper.workers, wake, a);
    assert_non_null(a->planner);
}

static void begin_on(struct planner_query *a, const char *dims)
{
    struct torus t = parse(dims);

    begin_with(a, &t);
}

/* Asks for a plan of "direct", without memory to make it. */
static void fail_direct(struct planner_query *a, const char *asked_then)
{
    begin_on(a, "2x2");
    a->algorithm = asked_then;
    assert_int_equal(ask(a, "direct"), 0);
    memory_fails(0);
    memory_counts_here(true);
    assert_true(stepper_step(&a->stepper));
    memory_counts_here(false);
    assert_true(memory_failed());
    stepper_finish(&a->stepper);
}

TEST(a_waiting_client_hears_of_a_failure)
{
    struct planner_query a;

    fail_direct(&a, "direct");
    assert_int_equal(a.wakes, 1);
    assert_int_equal(a.answer, -1);
    planner_free(a.planner);
}

TEST(a_client_that_asks_later_gets_a_new_plan)
{
    struct planner_query a;

    fail_direct(&a, NULL); /* the client has gone */
    assert_int_equal(ask(&a, "direct"), 0);
    stepper_finish(&a.stepper);
    assert_int_equal(ask(&a, "direct"), 1);
    planner_free(a.planner);
}

TEST(a_client_of_another_plan_does_not_hear_of_it)
{
    struct planner_query a;

    fail_direct(&a, "at2");
    assert_int_equal(a.wakes, 2);
    assert_int_equal(a.answer, 1);
    planner_free(a.planner);
}

/* A plan that was used is kept. */
TEST(kept_plans_are_found_again)
{
    static const char *const asked[] = {"direct", "cccube-q2", "cccube-q3"};

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        struct planner_query a;
        begin_on(&a, "4x4");
        assert_int_equal(ask(&a, asked[i]), 0);
        stepper_finish(&a.stepper);
        assert_int_equal(ask(&a, asked[i]), 1);
        assert_int_equal(ask(&a, asked[i]), 1);
        planner_free(a.planner);
    }
}

/* Returns the result of planner_get(), and releases the plan. */
static int broadcast_from(struct planner_query *a, uint32_t sender)
{
    struct planned *planned;
    struct error e;
    int result = planner_get(a->planner, algorithm_find("balanced"), MODE_STREAMING, sender, false,
                             &planned, &e);

    if (result > 0) {
        assert_int_equal(planned->sender, sender);
        planner_put(a->planner, planned);
    }
    stepper_finish(&a->stepper);
    return result;
}

/* There are as many plans of broadcasts as nodes: plans of frequent roots are kept, while others are replaced. */
TEST(plans_of_frequent_broadcasts_are_kept)
{
    struct planner_query a;

    begin_on(&a, "12x12");
    assert_int_equal(broadcast_from(&a, 0), 0);
    for (uint32_t sender = 1; sender < 140; sender++) {
        assert_int_equal(broadcast_from(&a, 0), 1);
        assert_int_equal(broadcast_from(&a, sender), 0);
        assert_int_equal(broadcast_from(&a, sender), 1);
    }
    assert_int_equal(broadcast_from(&a, 139), 1);
    assert_int_equal(broadcast_from(&a, 1), 0); /* has gone */
    planner_free(a.planner);
}

/* The plan of a reduction differs from that of a broadcast from the same node, and a failure of one is not reported for
 * the other. */
TEST(plans_of_reductions_are_plans_of_their_own)
{
    const struct algorithm *algorithm = algorithm_find("disjoint");
    struct planned *broadcast, *reduction;
    struct planner_query a;
    struct error e;

    begin_on(&a, "4x4");
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 5, &reduction, &e), 0);
    assert_int_equal(planner_get(a.planner, algorithm, MODE_STREAMING, 5, false, &broadcast, &e),
                     0);
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 5, &reduction, &e), 0);
    stepper_finish(&a.stepper);
    assert_int_equal(a.wakes, 2); /* a plan that is being made is not started again */
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 5, &reduction, &e), 1);
    assert_int_equal(planner_get(a.planner, algorithm, MODE_STREAMING, 5, false, &broadcast, &e),
                     1);
    assert_ptr_not_equal(broadcast, reduction);
    assert_int_equal(reduction->trees.count, algorithm->segments);
    assert_int_equal(reduction->trees.tree[0].owner, 5);
    assert_int_equal(broadcast->trees.count, 0);
    planner_put(a.planner, broadcast);
    planner_put(a.planner, reduction);
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 6, &reduction, &e), 0);
    memory_fails(0);
    memory_counts_here(true);
    assert_true(stepper_step(&a.stepper));
    memory_counts_here(false);
    assert_true(memory_failed());
    stepper_finish(&a.stepper);
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 6, &reduction, &e), 0);
    stepper_finish(&a.stepper);
    assert_int_equal(planner_get_reduction(a.planner, algorithm, 6, &reduction, &e), 1);
    planner_put(a.planner, reduction);
    planner_free(a.planner);
}

/* There are as many plans of broadcasts as nodes: of plans that were requested and not fetched, not all are kept, and
 * not more are started at once than can be made soon. */
TEST(plans_that_nobody_fetches)
{
    const struct algorithm *algorithm = algorithm_find("balanced");
    struct planned *planned;
    struct planner_query a;
    struct error e;

    begin_on(&a, "12x12");
    for (uint32_t sender = 0; sender < 128; sender++) {
        if (sender == 64)
            stepper_finish(&a.stepper);
        assert_false(planner_is_busy(a.planner));
        assert_int_equal(
            planner_get(a.planner, algorithm, MODE_STREAMING, sender, false, &planned, &e), 0);
    }
    assert_true(planner_is_busy(a.planner));
    stepper_finish(&a.stepper);
    assert_false(planner_is_busy(a.planner));
    assert_int_equal(planner_get(a.planner, algorithm, MODE_STREAMING, 128, false, &planned, &e),
                     0);
    for (uint32_t sender = 0; sender < 128; sender += 127) { /* the oldest and the youngest */
        int result = planner_get(a.planner, algorithm, MODE_STREAMING, sender, false, &planned, &e);
        assert_int_equal(result, sender > 0);
        if (result > 0)
            planner_put(a.planner, planned);
    }
    stepper_finish(&a.stepper);
    planner_free(a.planner);
}

/* The counts by which "auto" chooses on networks other than tori: the routes of `stream` are found once, kept, and
 * counted. */

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

static const struct counted *counted_of(struct planner_query *a, const char *name)
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
static int get_found(struct planner_query *a, uint32_t *busiest)
{
    const struct detour *found;
    struct damage none;
    struct error e;

    assert_int_equal(damage_init(&none, &a->torus, NULL), 0);
    int result = planner_get_detour(a->planner, &none, &found, &e);
    damage_free(&none);
    if (result > 0) {
        *busiest = (uint32_t)detour_busiest(found);
        planner_put_detour(a->planner, found);
    }
    return result;
}

static void count(struct planner_query *a)
{
    struct counted *counted;
    struct error e;

    assert_int_equal(planner_count(a->planner, &counted, &e), 0);
    a->counts = true;
    stepper_finish(&a->stepper);
}

static void check_counts(struct planner_query *a, uint32_t busiest)
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
    struct planner_query a;
    uint32_t busiest;

    const struct torus t = parse("5 x complete:3");
    begin_with(&a, &t);
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
    struct planner_query a;

    const struct torus t = parse("complete:4");
    begin_with(&a, &t);
    assert_int_equal(get_found(&a, &busiest), 0);
    count(&a); /* at the same time: both jobs find routes, and one result is kept */
    assert_int_equal(get_found(&a, &busiest), 1);
    check_counts(&a, busiest);
    planner_free(a.planner);
    begin_with(&a, &t);
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
        struct planner_query a;
        struct error e;
        begin_with(&a, &t);
        assert_int_equal(planner_count(a.planner, &counted, &e), 0);
        a.counts = true;
        memory_fails(failures);
        memory_counts_here(true);
        assert_true(stepper_step(&a.stepper));
        memory_counts_here(false);
        failed = memory_failed();
        stepper_finish(&a.stepper);
        /* Without memory for the bound, or to keep the routes, the counts are complete anyway. */
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
    struct planner_query a;

    const struct torus t = long_path();
    begin_with(&a, &t);
    count(&a);
    assert_int_equal(a.answer, 1);
    for (size_t i = 0; i < algorithm_count(); i++)
        if (algorithm_at(i)->operation == OPERATION_EXCHANGE)
            assert_false(counted_of(&a, algorithm_at(i)->name)->candidate);
    planner_free(a.planner);
}

/* --- the choice --- */

static void choose(struct planner_query *a, const struct predict_costs *costs, uint64_t bytes,
                   enum mode mode, struct candidate *list, unsigned *number)
{
    const struct block_sizes sizes = {bytes, bytes};
    struct error e;

    assert_int_equal(
        choose_from(a->planner, &a->torus, costs, NULL, &sizes, mode, list, number, &e), 1);
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
        struct planner_query a;
        unsigned number;
        begin_with(&a, &t);
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

/* Nodes of an older release lack some algorithms: `auto` must not choose these. */
TEST(some_run_only_by_name)
{
    static const char *const networks[] = {"3x3x3", "8mx8m", "2x2x2x2"};
    static const struct predict_costs steps = {500e-6, 1e-6, 1e8, 0, 0};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        const struct torus t = parse(networks[i]);
        struct candidate list[CHOOSE_MOST];
        struct planner_query a;
        unsigned number;
        begin_with(&a, &t);
        count(&a);
        choose(&a, &steps, 1000, MODE_STEPPED, list, &number);
        assert_true(number > 0);
        for (unsigned k = 0; k < number; k++)
            assert_false(list[k].algorithm->only_by_name);
        planner_free(a.planner);
    }
    assert_true(algorithm_find("orders")->only_by_name);
    assert_true(algorithm_find("halves")->only_by_name);
}

/* --- the choice at rates --- */

static const struct predict_costs slow_network = {40e-6, 10e-6, 2.39e6, 0, 0}; /* 20 Mbit/s */

/* `rates`: as damage_parse_rates() reads them; NULL: all channels are alike. */
static unsigned choose_rated(struct planner_query *a, const char *rates, uint64_t bytes,
                             struct candidate *list)
{
    const struct block_sizes sizes = {bytes, bytes};
    struct damage d;
    struct error e;
    unsigned number;
    int result;

    assert_int_equal(damage_init(&d, &a->torus, NULL), 0);
    if (rates != NULL)
        assert_int_equal(damage_parse_rates(&d, rates, false, NULL), 0);
    while ((result = choose_from(a->planner, &a->torus, &slow_network, rates != NULL ? &d : NULL,
                                 &sizes, MODE_OF_ALGORITHM, list, &number, &e)) == 0)
        stepper_finish(&a->stepper);
    assert_int_equal(result, 1);
    damage_free(&d);
    return number;
}

static const struct candidate *candidate_of(const struct candidate *list, unsigned number,
                                            const char *name)
{
    for (unsigned i = 0; i < number; i++)
        if (list[i].algorithm == algorithm_find(name))
            return &list[i];
    fail_msg("no candidate %s", name);
    return NULL;
}

/* Tiny blocks keep an algorithm that combines them, though it takes all channels for alike. The routes for the rates are
 * faster for all others. */
TEST(tiny_blocks_are_combined_on_slow_links)
{
    static const struct {
        const char *dims, *rates;
        uint64_t combined; /* the largest of the sizes below for which that is so */
        double
            pair; /* blocks that take as long at the full rate: all steps, one of them with the slow channel */
        double optimum; /* the same streaming, by the linear program of bench/flow.py */
    } rows[] = {{"4x4", "6:-1=0.1", 1, 32 - 8 + 80, 8 * 1.127},
                {"4x4", "6:-1=0.5", 4, 32 - 8 + 16, 8 * 1.067},
                {"4", "1:+0=0.1", 4, 4 - 2 + 20, 2 * 1.82}};
    struct candidate list[CHOOSE_MOST];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct planner_query a;
        begin_on(&a, rows[i].dims);
        for (uint64_t bytes = 1; bytes <= 65536; bytes *= 4) {
            const unsigned number = choose_rated(&a, rows[i].rates, bytes, list);
            const struct candidate *stream = candidate_of(list, number, "stream"),
                                   *pair = candidate_of(list, number, "pair");
            assert_string_equal(list[0].algorithm->name,
                                bytes <= rows[i].combined ? "pair" : "stream");
            assert_float_equal(pair->counts.blocks, rows[i].pair, 1e-6);
            assert_true(stream->counts.blocks < 1.02 * rows[i].optimum);
        }
        planner_free(a.planner);
    }
}

/* Where all channels are alike, times are those of the model, whatever was counted for other rates. */
TEST(equal_links_are_predicted_as_before)
{
    struct candidate list[CHOOSE_MOST], after[CHOOSE_MOST];
    struct planner_query a;

    begin_on(&a, "4x4");
    for (uint64_t bytes = 1; bytes <= 65536; bytes *= 4) {
        const unsigned number = choose_rated(&a, NULL, bytes, list);
        (void)choose_rated(&a, "6:-1=0.1", bytes, after);
        assert_int_equal(choose_rated(&a, NULL, bytes, after), number);
        for (unsigned i = 0; i < number; i++) {
            assert_ptr_equal(after[i].algorithm, list[i].algorithm);
            assert_true(after[i].seconds == list[i].seconds);
            assert_true(list[i].seconds ==
                        predict_unmeasured_seconds(&list[i].counts, &slow_network, bytes));
        }
    }
    planner_free(a.planner);
}
