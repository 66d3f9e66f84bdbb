/* Exchanges without faults: all tori, algorithms, sizes and numbers of rounds. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/support/cmocka.h"

static const char *const tori[] = {"1x1",   "1x2", "2x2",  "1x6",     "3x5", "4x4", "4x8",
                                   "3x4x5", "5m",  "3mx4", "2mx3mx2", "6",   "1"};

static void run_one(struct sim *sim, uint32_t root, const struct spec *spec)
{
    struct sim_request *r = sim_exchange(sim, root, spec);

    (void)sim_run_until_ended(r, 600 * SECONDS);
    check_success(r, spec);
    assert_true(check_agreement(r, spec));
}

/* `memory`, or enough for rounds of `least` bytes of each block, so that there are not too many rounds if all blocks
 * pass one node. Streaming holds four rounds at a time. */
static uint64_t budget(const struct torus *t, const struct algorithm *a, uint64_t memory,
                       uint64_t least)
{
    uint32_t peak;

    if (memory == 0)
        return 0;
    assert_int_equal(plan_peak_transit(t, a, &peak, NULL), 0);
    memory = memory > least * peak ? memory : least * peak;
    return a->streaming ? 4 * memory : memory;
}

/* Calls `each` with a simulator, for every torus and every algorithm that takes it. */
static void on_every_torus(uint64_t memory, uint64_t least,
                           void (*each)(struct sim *sim, const struct algorithm *a))
{
    unsigned before[SIM_MOST_ALGORITHMS] = {0};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t;
        assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
        for (size_t k = 0; k < algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k);
            if (algorithm_accepts(a, &t, NULL) != 0 || !sim_has_turn(before[k]++))
                continue;
            struct sim *sim =
                SIM_WHOLE(.dims = tori[i], .seed = 100 * i + k, .latency = 50 * MICROSECONDS,
                          .rate = 125000000, .memory = budget(&t, a, memory, least), .chop = true);
            each(sim, a);
            sim_free(sim);
        }
    }
}

static uint32_t any_node(struct sim *sim)
{
    return (uint32_t)chance_below(sim_chance(sim), sim_torus(sim)->nodes);
}

/* Runs the operation of the algorithm; after an allgather also a broadcast, with another folder. */
static void run_all(struct sim *sim, const struct algorithm *a, struct spec spec)
{
    char to[32];

    spec.algorithm = a->name;
    spec.operation = a->operation;
    run_one(sim, any_node(sim), &spec);
    if (a->operation != OPERATION_ALLGATHER)
        return;
    (void)snprintf(to, sizeof to, "%s%s", spec.to, spec.to[0] != '\0' ? "-one" : "");
    spec.operation = OPERATION_BROADCAST;
    spec.sender = any_node(sim);
    spec.to = to;
    run_one(sim, any_node(sim), &spec);
}

/* Blocks that do not fit into a frame are split in the same way on all tori, and would take most of the time on large
 * ones. */
static bool is_small(struct sim *sim)
{
    return sim_torus(sim)->nodes <= 16;
}

static void generated_blocks(struct sim *sim, const struct algorithm *a)
{
    static const uint64_t sizes[] = {0, 1, 7, 1000, 70000};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i] <= 1000 || is_small(sim))
            run_all(sim, a, (struct spec)GENERATED(.block_bytes = sizes[i]));
}

TEST(generated_blocks_of_every_size_arrive)
{
    on_every_torus(0, 0, generated_blocks);
}

static void generated_in_rounds(struct sim *sim, const struct algorithm *a)
{
    const struct spec spec =
        GENERATED(.algorithm = a->name, .operation = a->operation, .block_bytes = 9001);
    struct sim_request *r = sim_exchange(sim, any_node(sim), &spec);

    (void)sim_run_until_ended(r, 600 * SECONDS);
    check_success(r, &spec);
    if (sim_torus(sim)->nodes > 4)
        assert_true(r->result.rounds > 1);
}

TEST(a_small_budget_makes_rounds)
{
    on_every_torus(16 * 1024, 256, generated_in_rounds);
}

/* A data frame names its round modulo 128. */
SIM_TEST(SIM_WHOLE(.dims = "3x3", .seed = 5, .latency = 10 * MICROSECONDS, .memory = 256,
                   .chop = true),
         more_rounds_than_the_wire_can_count)
{
    const struct spec spec = GENERATED(.algorithm = "direct", .block_bytes = 20000);

    struct sim_request *r = sim_exchange(sim, 4, &spec);
    (void)sim_run_until_ended(r, 600 * SECONDS);
    check_success(r, &spec);
    assert_true(r->result.rounds > 128);
}

static void folders(struct sim *sim, const struct algorithm *a)
{
    static const char *const from[] = {"/same/0", "/same/1", "/random/50", "/random/70000"};

    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        char to[16];
        if (i == 3 && !is_small(sim))
            break;
        (void)snprintf(to, sizeof to, "/out%zu", i);
        run_all(sim, a, (struct spec){.from = from[i], .to = to});
    }
}

TEST(blocks_of_different_sizes_arrive)
{
    on_every_torus(0, 0, folders);
}

TEST(different_sizes_in_rounds)
{
    on_every_torus(512 * 1024, 8192, folders);
}

/* Both engines run the routes of every all-port algorithm. */
static void in_either_mode(struct sim *sim, const struct algorithm *a)
{
    static const struct spec specs[] = {
        GENERATED(.block_bytes = 7),
        GENERATED(.block_bytes = 20000),
        {.from = "/random/3000", .to = "/streamed"},
        GENERATED(.mode = MODE_STEPPED, .block_bytes = 24),
        GENERATED(.mode = MODE_STEPPED, .block_bytes = 20011),
        {.mode = MODE_STEPPED, .from = "/random/3000", .to = "/stepped"},
    };

    if (a->port_model != PORT_MODEL_ALL || !is_small(sim))
        return;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct spec spec = specs[i];
        if (spec.mode == MODE_OF_ALGORITHM)
            spec.mode = MODE_STREAMING;
        if (spec.mode == MODE_STREAMING || a->streaming) /* the others are always stepped */
            run_all(sim, a, spec);
    }
}

TEST(every_all_port_algorithm_runs_in_either_mode)
{
    on_every_torus(128 * 1024, 0, in_either_mode); /* in several rounds on larger tori */
}

static void imported(struct sim *sim, const struct algorithm *a)
{
    const struct spec specs[] = {
        GENERATED(.block_bytes = 0),
        GENERATED(.block_bytes = 3001, .repeat = 2),
        {.from = "/random/300", .to = "/imported"},
    };

    if (sim_torus(sim)->nodes > 20)
        return;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct spec spec = specs[i];
        spec.algorithm = a->name;
        spec.operation = a->operation;
        struct sim_request *r = sim_exchange_imported(sim, any_node(sim), &spec);
        (void)sim_run_until_ended(r, 600 * SECONDS);
        check_success(r, &spec);
        assert_non_null(strchr(r->result.algorithm, '@'));
        assert_true(check_agreement(r, &spec));
    }
}

/* Every algorithm runs from a file on every torus; all nodes have the schedule after the first time. */
TEST(routes_from_files_are_run_as_those_of_algorithms)
{
    on_every_torus(0, 0, imported);
}

SIM_TEST(SIM_WHOLE(.dims = "3x3", .seed = 3, .latency = 50 * MICROSECONDS),
         a_schedule_is_fetched_once)
{
    const struct spec spec = GENERATED(.algorithm = "stream", .block_bytes = 100);

    for (unsigned i = 0; i < 3; i++) {
        struct sim_request *r = sim_exchange_imported(sim, 4, &spec);
        (void)sim_run_until_ended(r, 600 * SECONDS);
        check_success(r, &spec);
        uint64_t sent = 0;
        for (uint32_t rank = 0; rank < 9; rank++)
            sent += sim_frames_sent(sim, rank, PEER__HEAD__KIND_SCHEDULE_PART);
        if (i == 0)
            assert_true(sent >= 8);
        else
            assert_int_equal(sent, 0);
        sim_forget_frames(sim);
    }
}

TEST(several_exchanges_at_once_do_not_mind_each_other)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        static const struct spec spec[] = {
            GENERATED(.algorithm = "at2", .block_bytes = 3000),
            {.algorithm = "direct", .from = "/random/4000", .to = "/a"},
            {.algorithm = "at2", .from = "/random/100", .to = "/b"},
            GENERATED(.algorithm = "direct", .block_bytes = 1),
            GENERATED(.algorithm = "stream", .block_bytes = 5000),
            {.algorithm = "stream", .from = "/random/4000", .to = "/c"},
        };
        enum { AT_ONCE = sizeof spec / sizeof spec[0] };
        struct sim_request *r[AT_ONCE];
        struct sim *sim = SIM_WHOLE(.dims = seed % 2 == 0 ? "4x4" : "3x5", .seed = seed,
                                    .latency = 30 * MICROSECONDS, .rate = 125000000, .chop = true);
        for (int i = 0; i < AT_ONCE; i++) {
            r[i] = sim_exchange(sim, any_node(sim), &spec[i]);
            sim_pass(sim, chance_below(sim_chance(sim), 2 * MILLISECONDS));
        }
        for (int i = 0; i < AT_ONCE; i++) {
            (void)sim_run_until_ended(r[i], 100 * SECONDS);
            check_success(r[i], &spec[i]);
        }
        sim_free(sim);
    }
}

/* The memory of ended exchanges at a node must not grow for ever. */
SIM_TEST(SIM_WHOLE(.dims = "1x2", .seed = 1), a_node_remembers_a_bounded_number_of_exchanges)
{
    const struct spec spec = GENERATED(.algorithm = "direct", .block_bytes = 1);
    struct exchange_info info[200];

    for (int i = 0; i < 150; i++)
        run_one(sim, 0, &spec);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_in_range(exchanges_list(sim_exchanges(sim, rank), info, 200), 10, 100);
}

/* Clients enter a barrier in any order at any time: none completes it before the last one has entered. */
#define QUEUE (300u / SIM_SHARE)

static bool waits(const struct sim_request *r)
{
    struct exchange_progress progress;

    if (r->ended)
        return false;
    exchange_progress(r->exchange, &progress);
    return progress.state == EXCHANGE_WAITING;
}

static void begin_in_order(struct spec spec, bool damaged)
{
    static struct sim_request *r[QUEUE];
    struct sim *sim =
        SIM_WHOLE(.dims = "2x3", .seed = 6, .latency = 100 * MICROSECONDS, .rate = 125000000);

    if (damaged) { /* its routes must be found first */
        sim_set_wire(sim, 4, 0, SIM_WIRE_CUT);
        sim_pass(sim, 1 * SECONDS);
    }
    for (unsigned i = 0; i < QUEUE; i++)
        r[i] = sim_exchange(sim, 0, &spec);
    for (unsigned first = 0; first < QUEUE;) {
        sim_pass(sim, 1 * MILLISECONDS);
        while (first < QUEUE && !waits(r[first]))
            first++;
        for (unsigned i = first; i < QUEUE; i++)
            assert_true(waits(r[i]));
    }
    for (unsigned i = 0; i < QUEUE; i++) {
        assert_true(sim_run_until_ended(r[i], 10 * SECONDS));
        assert_int_equal(r[i]->error.code, ERROR_NONE);
    }
    sim_free(sim);
}

TEST(hundreds_begin_in_the_order_of_asking)
{
    struct spec spec = GENERATED(.algorithm = "stream", .block_bytes = 1000);

    begin_in_order(spec, false);
    spec.algorithm = "auto";
    begin_in_order(spec, false);
    begin_in_order(spec, true);
}

TEST(all_meet_at_a_barrier)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        const struct spec spec = GENERATED(.algorithm = "saadschultz",
                                           .operation = OPERATION_BARRIER, .barrier = "here");
        struct sim *sim = SIM_WHOLE(.dims = seed % 2 == 0 ? "3x4" : "2x3m", .seed = seed,
                                    .latency = 50 * MICROSECONDS, .rate = 125000000, .chop = true);
        struct sim_request *r[12];
        uint64_t came[12];
        uint32_t nodes = sim_torus(sim)->nodes;
        uint32_t first = any_node(sim), stride = seed % 4 < 2 ? 1 : nodes - 1;

        for (uint32_t i = 0; i < nodes; i++) {
            for (uint32_t k = 0; k < i; k++)
                assert_false(r[k]->ended);
            came[(first + i * stride) % nodes] = sim_now(sim);
            r[i] = sim_exchange(sim, (first + i * stride) % nodes, &spec);
            assert_string_not_equal(r[i]->id, "");
            if (i + 1 < nodes)
                sim_pass(sim, chance_below(sim_chance(sim), 50 * MILLISECONDS));
        }
        for (uint32_t i = 0; i < nodes; i++) {
            (void)sim_run_until_ended(r[i], 10 * SECONDS);
            assert_true(r[i]->ended && r[i]->error.code == ERROR_NONE);
            check_arrivals(r[i], came, 10 * MILLISECONDS);
        }
        sim_free(sim);
    }
}

/* A client that leaves ends the barrier for all that have entered it, but not for later ones. */
SIM_TEST(SIM_WHOLE(.dims = "3x3", .latency = 50 * MICROSECONDS),
         a_client_that_leaves_a_barrier_ends_it)
{
    struct spec spec =
        GENERATED(.algorithm = "balanced", .operation = OPERATION_BARRIER, .barrier = "");
    struct sim_request *r[9], *twice;

    for (uint32_t rank = 0; rank < 5; rank++)
        r[rank] = sim_exchange(sim, rank, &spec);
    twice = sim_exchange(sim, 3, &spec);
    assert_true(twice->ended && twice->error.code == ERROR_REFUSED);
    sim_pass(sim, 10 * MILLISECONDS);
    sim_abandon(r[3]);
    for (uint32_t rank = 0; rank < 5; rank++)
        if (rank != 3) {
            (void)sim_run_until_ended(r[rank], 10 * SECONDS);
            assert_int_equal(r[rank]->error.code, ERROR_CANCELLED);
        }
    sim_pass(sim, SECONDS);
    for (uint32_t rank = 9; rank-- > 0;)
        r[rank] = sim_exchange(sim, rank, &spec);
    for (uint32_t rank = 0; rank < 9; rank++) {
        (void)sim_run_until_ended(r[rank], 10 * SECONDS);
        assert_int_equal(r[rank]->error.code, ERROR_NONE);
    }
}

static uint64_t trace_of(uint64_t seed, const char *algorithm)
{
    const struct spec spec = {.algorithm = algorithm, .from = "/random/3000", .to = "/a"};
    struct sim *sim =
        SIM_WHOLE(.dims = "4x4", .seed = seed, .latency = 50 * MICROSECONDS, .chop = true);
    uint64_t trace;

    run_one(sim, 3, &spec);
    trace = sim_trace(sim);
    sim_free(sim);
    return trace;
}

/* A node may relay all parts of a broadcast in parts at the same time. */
SIM_TEST(SIM_WHOLE(.dims = "3mx2", .seed = 1, .latency = 50 * MICROSECONDS, .memory = 256 << 10),
         a_broadcast_in_parts_in_a_small_budget)
{
    const struct spec spec = GENERATED(.algorithm = "disjoint", .mode = MODE_STEPPED,
                                       .operation = OPERATION_BROADCAST, .block_bytes = 19105);

    run_one(sim, 0, &spec);
}

TEST(the_same_seed_gives_the_same_run)
{
    assert_int_equal(trace_of(1, "at2"), trace_of(1, "at2"));
    assert_int_not_equal(trace_of(1, "at2"), trace_of(2, "at2"));
    assert_int_equal(trace_of(1, "stream"), trace_of(1, "stream"));
    assert_int_not_equal(trace_of(1, "stream"), trace_of(2, "stream"));
}
