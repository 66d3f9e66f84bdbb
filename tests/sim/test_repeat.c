/* Several repetitions of an exchange: each is as good as a single exchange, and a fault in one of them ends all of them
 * on every node with the same error, which names the repetition. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/support/cmocka.h"

SEEDS(60 / SIM_SHARE);

static uint32_t any(struct sim *sim, uint32_t below)
{
    return (uint32_t)chance_below(sim_chance(sim), below);
}

/* The times of repetitions: each takes some time, and all together no more than the whole exchange. */
static void check_times(const struct sim_request *r, uint32_t repeat)
{
    uint64_t sum = 0;

    assert_int_equal(r->result.repeat, repeat);
    for (uint32_t i = 0; i < repeat; i++) {
        if (sim_torus(r->sim)->nodes > 1 && r->result.block_bytes > 0)
            assert_true(r->result.each[i] > 0);
        sum += r->result.each[i];
    }
    assert_int_equal(r->result.each[repeat - 1], r->result.nanoseconds);
    assert_true(r->result.all_ns >= sum);
}

static struct sim_request *run(struct sim *sim, const struct spec *spec)
{
    struct sim_request *r = sim_exchange(sim, any(sim, sim_torus(sim)->nodes), spec);

    (void)sim_run_until_ended(r, 600 * SECONDS);
    check_success(r, spec); /* the counts are those of one exchange */
    check_times(r, spec->repeat);
    assert_true(check_agreement(r, spec));
    return r;
}

static void repeat_everywhere(uint64_t memory, uint64_t block_bytes)
{
    unsigned before[SIM_MOST_ALGORITHMS] = {0};
    static const char *const tori[] = {"1", "1x2", "2x2", "3x5", "4x4", "3mx4", "3x2", "8"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t;
        assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
        for (size_t k = 0; k < algorithm_count(); k++) {
            const struct algorithm *a = algorithm_at(k);
            if (algorithm_accepts(a, &t, NULL) != 0 || !sim_has_turn(before[k]++))
                continue;
            struct spec spec = GENERATED(.algorithm = a->name, .operation = a->operation,
                                         .block_bytes = block_bytes, .repeat = 5);
            struct sim *sim =
                SIM_WHOLE(.dims = tori[i], .seed = 100 * i + k, .latency = 50 * MICROSECONDS,
                          .rate = 125000000, .memory = memory, .chop = true);
            struct sim_request *r = run(sim, &spec);
            if (memory > 0 && t.nodes > 4)
                assert_true(r->result.rounds > 1);
            sim_free(sim);
        }
    }
}

TEST(every_algorithm_repeats)
{
    repeat_everywhere(0, 3000);
    repeat_everywhere(0, 0);
}

TEST(every_algorithm_repeats_in_rounds)
{
    repeat_everywhere(32 * 1024, 9001);
}

/* A data frame names its round modulo 128, and rounds are counted on over repetitions. */
TEST(more_repetitions_than_the_wire_can_count)
{
    static const char *const algorithms[] = {"at2", "stream", "balanced"};

    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        const struct spec spec = GENERATED(.algorithm = algorithms[i],
                                           .operation = algorithm_find(algorithms[i])->operation,
                                           .block_bytes = 50, .repeat = 300);
        struct sim *sim =
            SIM_WHOLE(.dims = "2x3", .seed = i, .latency = 10 * MICROSECONDS, .chop = true);
        (void)run(sim, &spec);
        sim_free(sim);
    }
}

/* When streaming, the number of frames depends on timing; when stepped, a repetition costs its data and one word in
 * each direction over each link of the tree. */
static uint64_t frames(uint32_t repeat)
{
    const struct spec spec = GENERATED(.algorithm = "at2", .block_bytes = 10, .repeat = repeat);
    struct sim *sim = SIM_WHOLE(.dims = "4x4", .latency = 50 * MICROSECONDS);
    uint64_t before, counted;

    sim_pass(sim, 50 * MILLISECONDS); /* the last link states are still on their way */
    before = sim_frames(sim);
    struct sim_request *r = sim_exchange(sim, 5, &spec);
    (void)sim_run_until_ended(r, 10 * SECONDS);
    check_success(r, &spec);
    counted = sim_frames(sim) - before;
    sim_free(sim);
    return counted;
}

TEST(a_repetition_costs_two_words_a_link)
{
    uint64_t one = frames(1), two = frames(2), three = frames(3);
    /* prepare, ready, go, done; and then go, repeated. */
    assert_int_equal(two - one, one - 2 * 15);
    assert_int_equal(three - two, two - one);
}

SIM_TEST(SIM_WHOLE(.dims = "2x2"), specs_that_cannot_be_repeated_are_refused)
{
    static const struct spec specs[] = {
        {.algorithm = "at2", .from = "/same/1", .to = "/a", .repeat = 2},
        GENERATED(.algorithm = "balanced", .operation = OPERATION_BARRIER, .barrier = "b",
                  .repeat = 2),
        GENERATED(.algorithm = "at2", .block_bytes = 1, .repeat = SPEC_REPEAT_MOST + 1),
    };

    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct sim_request *r = sim_exchange(sim, 0, &specs[i]);
        assert_true(r->ended);
        assert_int_equal(r->error.code, ERROR_USAGE);
    }
}

/* --- faults --- */

#define REPEAT 20

static const struct spec specs[] = {
    GENERATED(.algorithm = "at2", .block_bytes = 6000, .repeat = REPEAT),
    GENERATED(.algorithm = "stream", .block_bytes = 6000, .repeat = REPEAT),
    GENERATED(.algorithm = "a2", .block_bytes = 500, .repeat = REPEAT),
    GENERATED(.algorithm = "balanced", .operation = OPERATION_ALLGATHER, .block_bytes = 9000,
              .repeat = REPEAT),
    GENERATED(.algorithm = "disjoint", .operation = OPERATION_ALLGATHER, .block_bytes = 9000,
              .repeat = REPEAT),
    GENERATED(.algorithm = "disjoint", .operation = OPERATION_BROADCAST, .block_bytes = 70000,
              .repeat = REPEAT),
};

enum fault { NODE, ROOT, LINK, SILENT, CLIENT, TIMEOUT, FAULTS };

static bool under_way(struct sim *sim, void *context)
{
    struct sim_request *r = context;
    struct exchange_progress progress;

    if (r->ended)
        return true;
    exchange_progress(r->exchange, &progress);
    return progress.repetition >= 3;
}

/* A fault, and the repetitions during which it happens. */
struct faulty {
    uint64_t seed;
    enum fault fault;
    struct spec spec;
    struct sim *sim;
    uint32_t root, victim;
    unsigned port; /* of the victim; there is a link */
    struct sim_request *request;
};

static struct faulty draw_fault(uint64_t seed, enum fault fault)
{
    static const char *const tori[] = {"4x4", "4x8", "4x4", "4"};
    const struct sim_setup setup = {.dims = tori[seed % 4],
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 125000000,
                                    .memory = seed % 3 == 0 ? 128 * 1024 : 0,
                                    .chop = true};
    struct faulty f = {.seed = seed,
                       .fault = fault,
                       .spec = specs[seed / 2 % (sizeof specs / sizeof *specs)],
                       .sim = sim_new(&setup)};
    const struct torus *t = sim_torus(f.sim);

    f.root = any(f.sim, t->nodes);
    f.victim = any(f.sim, t->nodes);
    if (strcmp(setup.dims, "4") == 0 && f.spec.operation == OPERATION_EXCHANGE)
        f.spec.algorithm = "direct";
    if (fault == TIMEOUT)
        f.spec.timeout_ns = 5 * MILLISECONDS;
    if (fault == NODE && f.victim == f.root)
        f.victim = (f.victim + 1) % t->nodes;
    do
        f.port = any(f.sim, torus_ports(t));
    while (torus_neighbour(t, f.victim, f.port) == TORUS_NO_NODE);
    return f;
}

static void let_it_happen(const struct faulty *f)
{
    switch (f->fault) {
    case NODE:
        sim_kill(f->sim, f->victim, (enum sim_death)any(f->sim, 3));
        break;
    case ROOT:
        sim_kill(f->sim, f->root, (enum sim_death)any(f->sim, 3));
        break;
    case LINK:
        sim_set_wire(f->sim, f->victim, f->port, SIM_WIRE_CUT);
        break;
    case SILENT:
        sim_set_wire(f->sim, f->victim, f->port, SIM_WIRE_SILENT);
        break;
    case CLIENT:
        sim_abandon(f->request);
        break;
    case TIMEOUT:
    case FAULTS:
        break;
    }
}

/* The root names the repetition that has failed. */
static void check_reason(const struct faulty *f)
{
    struct exchange_info info;
    unsigned which = 0, of = 0;

    assert_true(sim_info(f->sim, f->root, f->request->id, &info));
    assert_int_equal(info.state, EXCHANGE_FAILED);
    if (sscanf(info.reason, "repetition %u of %u: ", &which, &of) != 2 || of != REPEAT ||
        which > REPEAT || (which < 4 && f->fault != TIMEOUT))
        if (f->fault != TIMEOUT || strstr(info.reason, "preparing") == NULL)
            fail_msg("seed %llu, fault %d: \"%s\"", (unsigned long long)f->seed, f->fault,
                     info.reason);
}

static void one_fault(uint64_t seed, enum fault fault)
{
    struct faulty f = draw_fault(seed, fault);
    struct sim *sim = f.sim;

    sim_run_until_whole(sim);
    struct sim_request *r = f.request = sim_exchange(sim, f.root, &f.spec);
    if (fault != TIMEOUT) {
        (void)sim_run(sim, 60 * SECONDS, under_way, r);
        assert_false(r->ended);
        sim_pass(sim, chance_below(sim_chance(sim), MILLISECONDS));
    }
    bool before = !r->ended;
    let_it_happen(&f);
    /* Failed on no node, or on all nodes with the same error. */
    bool committed = check_agreement(r, &f.spec);
    if (before)
        assert_false(committed);
    if (!committed && fault != ROOT && r->exchange == NULL)
        check_reason(&f);
    sim_restart(sim, f.victim);
    sim_restart(sim, f.root);
    sim_set_wire(sim, f.victim, f.port, SIM_WIRE_UP);
    check_next_exchange(sim, any(sim, sim_torus(sim)->nodes));
    sim_free(sim);
}

TEST(faults_in_a_repetition_end_the_session)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        for (enum fault fault = NODE; fault < FAULTS; fault++)
            one_fault(seed, fault);
}
