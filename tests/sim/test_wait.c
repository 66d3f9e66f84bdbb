/* Exchanges that wait for nodes that are down: if all nodes come back, every exchange succeeds, with any algorithm and
 * whenever nodes are restarted; if a node does not come back, the exchange ends by its timeout. */
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/support/cmocka.h"

SEEDS(60 / SIM_SHARE);

#define TIMEOUT (500 * SECONDS)

static const char *const tori[] = {"4x4", "3x3", "2x3", "5", "4mx3", "2x2x2"};

static const struct spec specs[] = {
    GENERATED(.algorithm = "auto", .block_bytes = 300000),
    GENERATED(.algorithm = "auto", .block_bytes = 3000, .repeat = 9),
    GENERATED(.algorithm = "direct", .block_bytes = 3000, .repeat = 9),
    GENERATED(.algorithm = "stream", .block_bytes = 20000),
    {.algorithm = "auto", .from = "/same/300000", .to = "/a"},
    {.algorithm = "auto", .from = "/random/3000", .to = "/b"},
    {.algorithm = "direct", .from = "/random/30000", .to = "/c"},
    GENERATED(.algorithm = "auto", .operation = OPERATION_ALLGATHER, .block_bytes = 100000),
    {.algorithm = "auto",
     .operation = OPERATION_BROADCAST,
     .from = "/same/300000",
     .to = "/d",
     .sender = 1},
};

static struct sim *begin(uint64_t seed)
{
    return sim_new_whole(tori[seed % (sizeof tori / sizeof tori[0])], seed);
}

static struct spec any_spec(struct sim *sim)
{
    struct spec spec = specs[sim_any(sim, sizeof specs / sizeof specs[0])];

    spec.wait = true;
    spec.timeout_ns = TIMEOUT;
    return spec;
}

static bool has_no_leftover(struct sim *sim, void *context)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_leftover(sim, rank) != NULL)
            return false;
    return true;
}

static uint32_t another(struct sim *sim, uint32_t root)
{
    uint32_t nodes = sim_torus(sim)->nodes;

    return (root + 1 + sim_any(sim, nodes - 1)) % nodes;
}

/* Checks the outcome after all nodes have come back. */
static void check_done(uint64_t seed, struct sim_request *r, const struct spec *spec)
{
    struct spec chosen = *spec;

    if (!sim_run_until_ended(r, TIMEOUT + 10 * SECONDS))
        fail_msg("seed %llu: %s does not end", (unsigned long long)seed, r->id);
    if (r->error.code != ERROR_NONE)
        fail_msg("seed %llu: %s", (unsigned long long)seed, r->error.text);
    chosen.algorithm = r->result.algorithm;
    check_success(r, &chosen);
    if (r->result.repeat != (spec->repeat > 0 ? spec->repeat : 1))
        fail_msg("seed %llu: %u repetitions", (unsigned long long)seed, r->result.repeat);
    for (uint32_t i = 0; i < r->result.repeat; i++)
        assert_true(r->result.each[i] > 0);
    assert_int_equal(sim_missing(r), 0);
    sim_run_until_whole(r->sim);
    if (!sim_run(r->sim, 30 * SECONDS, has_no_leftover, NULL))
        fail_msg("seed %llu: leftovers", (unsigned long long)seed);
    for (uint32_t rank = 0; spec->to[0] != '\0' && rank < sim_torus(r->sim)->nodes; rank++)
        assert_int_equal(sim_output(r->sim, rank, r->id), SIM_OUTPUT_FINAL);
}

static uint32_t waited; /* of all seeds */

/* Nodes go down one after another, as in a rolling restart, for a short or a long time. */
static void nodes_are_restarted(uint64_t seed)
{
    struct sim *sim = begin(seed);
    uint32_t root = sim_any(sim, sim_torus(sim)->nodes);
    const struct spec spec = any_spec(sim);
    struct sim_request *r = sim_exchange(sim, root, &spec);

    for (uint32_t restarts = 1 + sim_any(sim, 4); restarts > 0; restarts--) {
        uint32_t victim = another(sim, root);
        sim_pass(sim, sim_any(sim, 10000) * MICROSECONDS);
        sim_kill(sim, victim, (enum sim_death)sim_any(sim, 3));
        sim_pass(sim, sim_any(sim, 2) == 0 ? sim_any(sim, 200) * MILLISECONDS
                                           : sim_any(sim, 30) * SECONDS);
        sim_restart(sim, victim);
    }
    check_done(seed, r, &spec);
    waited += r->result.reroutes > 0;
    check_next_exchange(sim, root);
    sim_free(sim);
}

/* Nodes that are down at the request, and links that also go down. */
SIM_SEED_TEST(seeds, begin(seed), down_before)
{
    uint32_t root = sim_any(sim, sim_torus(sim)->nodes), victim = another(sim, root);
    const struct spec spec = any_spec(sim);
    struct exchange_progress progress;
    char name[40];

    sim_kill(sim, victim, SIM_CRASH);
    sim_pass(sim, sim_any(sim, 2) * SECONDS);
    struct sim_request *r = sim_exchange(sim, root, &spec);
    sim_pass(sim, 3 * SECONDS);
    assert_non_null(r->exchange);
    exchange_progress(r->exchange, &progress);
    assert_int_equal(progress.state, EXCHANGE_WAITING);
    (void)snprintf(name, sizeof name, "node %u%s", victim, sim_torus(sim)->dims > 1 ? " (" : "");
    if (strncmp(progress.waits_for, name, strlen(name)) != 0)
        fail_msg("seed %llu: it waits for \"%s\", not %s", (unsigned long long)seed,
                 progress.waits_for, name);
    unsigned port = torus_neighbour(sim_torus(sim), root, 0) != TORUS_NO_NODE ? 0 : 1;
    sim_set_wire(sim, root, port, SIM_WIRE_CUT);
    sim_pass(sim, 20 * SECONDS);
    sim_restart(sim, victim);
    sim_pass(sim, sim_any(sim, 2) * SECONDS);
    sim_heal(sim);
    check_done(seed, r, &spec);
}

TEST(a_rolling_restart)
{
    waited = 0;
    with_seeds(seeds, nodes_are_restarted);
    if (waited < seeds / 4)
        fail_msg("%u of %llu runs are retried", waited, (unsigned long long)seeds);
}

/* The wait is not for ever, and nothing is left on any node. */
SIM_SEED_TEST(20 / SIM_SHARE, begin(seed), one_does_not_come_back)
{
    uint32_t root = sim_any(sim, sim_torus(sim)->nodes), victim = another(sim, root);
    struct spec spec = {.algorithm = "auto",
                        .from = "/same/300000",
                        .to = "/a",
                        .wait = true,
                        .timeout_ns = 20 * SECONDS};
    struct sim_request *r = sim_exchange(sim, root, &spec);
    char name[20];
    sim_pass(sim, 5 * MILLISECONDS);
    uint64_t began = sim_now(sim);
    sim_kill(sim, victim, SIM_CRASH);
    assert_true(sim_run_until_ended(r, 30 * SECONDS));
    assert_int_equal(r->error.code, ERROR_TIMEOUT);
    (void)snprintf(name, sizeof name, "node %u", victim);
    assert_contains(r->error.text, name);
    assert_true(sim_now(sim) - began > 19 * SECONDS);
    sim_restart(sim, victim);
    if (!sim_run(sim, 4 * SECONDS, has_no_leftover, NULL))
        fail_msg("seed %llu: leftovers", (unsigned long long)seed);
    check_next_exchange(sim, root);
}

/* Complete repetitions are not run again. */
TEST(sessions_go_on)
{
    /* with sanitizers, one seed with each algorithm, on small tori */
    uint64_t from = first_seed + (SIM_SHARE > 1 ? 1 : 0), played = SIM_SHARE > 1 ? 2 : 6;
    for (uint64_t seed = from; seed < from + played; seed++) {
        struct sim *sim = begin(seed);
        uint32_t root = sim_any(sim, sim_torus(sim)->nodes), victim = another(sim, root);
        struct spec spec =
            GENERATED(.algorithm = seed % 2 == 0 ? "auto" : "direct", .block_bytes = 30000,
                      .repeat = 60, .wait = true, .timeout_ns = TIMEOUT);
        struct sim_request *r = sim_exchange(sim, root, &spec);
        struct exchange_progress before, later;
        do {
            sim_pass(sim, 1 * MILLISECONDS);
            exchange_progress(r->exchange, &before);
        } while (before.repetition < 20);
        sim_kill(sim, victim, SIM_CRASH);
        sim_pass(sim, 5 * SECONDS);
        exchange_progress(r->exchange, &later);
        assert_int_equal(later.state, EXCHANGE_WAITING);
        assert_true(later.repetition >= before.repetition && later.repeat == 60);
        assert_true(later.done_bytes > 0 && later.done_bytes < later.total_bytes);
        sim_restart(sim, victim);
        check_done(seed, r, &spec);
        sim_free(sim);
    }
}

/* After the decision, the exchange succeeds as soon as the node is back. */
struct decided {
    struct sim_request *r;
    uint32_t victim;
};

static bool kill_when_decided(struct sim *sim, void *context)
{
    struct decided *d = context;
    struct exchange_info info;

    if (d->r->exchange == NULL || !sim_info(sim, d->r->root, exchange_id(d->r->exchange), &info) ||
        info.state != EXCHANGE_COMMITTING)
        return false;
    sim_kill(sim, d->victim, SIM_CRASH);
    return true;
}

SIM_SEED_TEST(40 / SIM_SHARE, begin(seed), down_after_the_decision)
{
    uint32_t root = sim_any(sim, sim_torus(sim)->nodes);
    struct spec spec = {.algorithm = "auto",
                        .from = "/random/3000",
                        .to = "/a",
                        .wait = true,
                        .timeout_ns = sim_any(sim, 2) * TIMEOUT};
    struct decided d = {sim_exchange(sim, root, &spec), another(sim, root)};
    sim_watch(sim, kill_when_decided, &d);
    sim_pass(sim, 60 * SECONDS);
    assert_false(sim_alive(sim, d.victim));
    assert_false(d.r->ended);
    sim_restart(sim, d.victim);
    check_done(seed, d.r, &spec);
}

/* The same for barriers, which all clients enter while one node is down. */
SIM_SEED_TEST(40 / SIM_SHARE, begin(seed), barriers)
{
    uint32_t nodes = sim_torus(sim)->nodes, victim = sim_any(sim, nodes);
    const struct spec spec = GENERATED(.algorithm = "auto", .operation = OPERATION_BARRIER,
                                       .barrier = "b", .wait = true, .timeout_ns = TIMEOUT);
    struct sim_request *r[64];
    bool before = sim_any(sim, 2) == 0;
    if (before)
        sim_kill(sim, victim, SIM_CRASH);
    for (uint32_t rank = 0; rank < nodes; rank++)
        r[rank] = rank != victim ? sim_exchange(sim, rank, &spec) : NULL;
    sim_pass(sim, sim_any(sim, 10) * SECONDS);
    if (!before)
        sim_kill(sim, victim, SIM_CRASH);
    sim_pass(sim, sim_any(sim, 10) * SECONDS);
    sim_restart(sim, victim);
    sim_pass(sim, sim_any(sim, 10) * SECONDS);
    r[victim] = sim_exchange(sim, victim, &spec);
    for (uint32_t rank = 0; rank < nodes; rank++)
        if (!sim_run_until_ended(r[rank], 20 * SECONDS) || r[rank]->error.code != ERROR_NONE)
            fail_msg("seed %llu, node %u: %s", (unsigned long long)seed, rank,
                     r[rank]->ended ? r[rank]->error.text : "it does not end");
}

/* All clients must make the same request. */
SIM_TEST(begin(1), barriers_that_differ)
{
    struct spec spec = GENERATED(.algorithm = "auto", .operation = OPERATION_BARRIER,
                                 .barrier = "b", .timeout_ns = TIMEOUT);

    struct sim_request *one = sim_exchange(sim, 0, &spec);
    spec.wait = true;
    struct sim_request *other = sim_exchange(sim, 4, &spec);
    assert_true(sim_run_until_ended(one, 20 * SECONDS));
    assert_true(sim_run_until_ended(other, 20 * SECONDS));
    assert_int_equal(one->error.code, ERROR_USAGE);
    assert_contains(other->error.text, "node 4 waits");
}

SIM_TEST(begin(1), not_both)
{
    const struct spec spec =
        GENERATED(.algorithm = "auto", .block_bytes = 1, .shrink = true, .wait = true);
    struct sim_request *r = sim_exchange(sim, 0, &spec);

    assert_true(r->ended);
    assert_int_equal(r->error.code, ERROR_USAGE);
}
