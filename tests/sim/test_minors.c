/* Nodes of two minor versions of the peer protocol: exchanges complete, and all nodes know the least version. */
#include "daemon/torusd/exchange/report.h"
#include "daemon/torusd/router/flood.h"
#include "proto/frame.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/internal.h"
#include "tests/support/cmocka.h"

SEEDS(SIM_SHARE > 1 ? 20 : 40);

static const struct spec spec = GENERATED(.algorithm = "direct", .operation = OPERATION_EXCHANGE,
                                          .block_bytes = 3000, .repeat = 1);

/* Whether all nodes that run believe that this is the least minor version. */
static bool all_believe(struct sim *sim, void *least)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_alive(sim, rank) && router_least_minor(sim_router(sim, rank)) != *(uint32_t *)least)
            return false;
    return true;
}

static void await(struct sim *sim, uint32_t least)
{
    if (!sim_run(sim, 60 * SECONDS, all_believe, &least))
        sim_violated(sim, "least minor version", "not all nodes believe that it is %u", least);
}

static void exchange(struct sim *sim)
{
    struct sim_request *r = sim_exchange(sim, sim_any(sim, sim_torus(sim)->nodes), &spec);

    (void)sim_run_until_ended(r, 600 * SECONDS);
    check_success(r, &spec);
    assert_true(check_agreement(r, &spec));
}

static void restart(struct sim *sim, uint32_t rank, uint32_t minors_back)
{
    sim_kill(sim, rank, sim_any(sim, 2) == 0 ? SIM_STOP : SIM_CRASH);
    sim_set_minors_back(sim, rank, minors_back);
    sim_restart(sim, rank);
    sim_run_until_whole(sim);
}

/* Makes all nodes older, by one version after another: only neighbouring versions work together. */
static void go_back(struct sim *sim, uint32_t minors_back)
{
    for (uint32_t back = 1; back <= minors_back; back++)
        for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
            restart(sim, rank, back);
}

static struct sim *start(uint64_t seed)
{
    static const char *const dims[] = {"2", "3mx3m", "4x4", "2x2x2", "7"};
    return SIM_WHOLE(.dims = dims[seed % (sizeof dims / sizeof dims[0])], .seed = seed,
                     .latency = 100 * MICROSECONDS, .rate = 12500000, .chop = true);
}

/* One node after another gets the older version, and then the newer one again: as in an upgrade. */
SIM_SEED_TEST(seeds, start(seed), a_torus_is_upgraded_node_by_node)
{
    uint32_t nodes = sim_torus(sim)->nodes;
    await(sim, PROTOCOL_MINOR);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        restart(sim, rank, 1);
        await(sim, PROTOCOL_MINOR - 1);
    }
    exchange(sim);
    for (uint32_t i = 0; i < nodes; i++) {
        restart(sim, (uint32_t)(i + seed) % nodes, 0);
        await(sim, i + 1 < nodes ? PROTOCOL_MINOR - 1 : PROTOCOL_MINOR);
        if (i < 3)
            exchange(sim);
    }
}

/* The version of an old node that is away does not matter until it is back. */
SIM_SEED_TEST(seeds, start(seed), the_least_version_follows_the_nodes_that_are_there)
{
    uint32_t old = sim_any(sim, sim_torus(sim)->nodes);
    restart(sim, old, 1);
    await(sim, PROTOCOL_MINOR - 1);
    sim_kill(sim, old, SIM_CRASH);
    await(sim, PROTOCOL_MINOR);
    sim_restart(sim, old);
    sim_run_until_whole(sim);
    await(sim, PROTOCOL_MINOR - 1);
}

static void on_survey(void *context, const struct survey_node *nodes, uint64_t took)
{
    *(bool *)context = true;
}

static bool is_set(struct sim *sim, void *flag)
{
    return *(bool *)flag;
}

/* A node that does not know surveys would lose its link by one. */
SIM_SEED_TEST(seeds / 4, start(seed), surveys_wait_for_the_last_node)
{
    const uint32_t nodes = sim_torus(sim)->nodes, old = sim_any(sim, nodes);
    const uint32_t initiator = (old + 1) % nodes;
    bool done = false;
    struct survey_request request = {.context = &done, .done = on_survey};
    struct error e;
    go_back(sim, PROTOCOL_MINOR - SURVEY_MINOR);
    restart(sim, old, PROTOCOL_MINOR - SURVEY_MINOR + 1);
    await(sim, SURVEY_MINOR - 1);
    assert_int_equal(
        survey_start(sim_survey(sim, initiator), SURVEY_STATE, 1 * SECONDS, &request, &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    restart(sim, old, PROTOCOL_MINOR - SURVEY_MINOR);
    await(sim, SURVEY_MINOR);
    assert_int_equal(
        survey_start(sim_survey(sim, initiator), SURVEY_STATE, 1 * SECONDS, &request, &e), 0);
    sim_settle(&sim->node[initiator]);
    assert_true(sim_run(sim, 2 * SECONDS, is_set, &done));
    exchange(sim);
}

/* All nodes enter a barrier, which succeeds. Returns of how many nodes each one hears when they came. */
static uint32_t arrivals_told(struct sim *sim)
{
    static const struct spec barrier =
        GENERATED(.operation = OPERATION_BARRIER, .algorithm = "auto", .barrier = "b");
    const uint32_t nodes = sim_torus(sim)->nodes;
    struct sim_request *r[64] = {0};

    for (uint32_t rank = 0; rank < nodes; rank++)
        r[rank] = sim_exchange(sim, rank, &barrier);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        assert_true(sim_run_until_ended(r[rank], 60 * SECONDS));
        assert_int_equal(r[rank]->error.code, ERROR_NONE);
        assert_int_equal(r[rank]->result.arrivals, r[0]->result.arrivals);
    }
    return r[0]->result.arrivals;
}

/* With one node that does not know when the others came, barriers succeed, and nobody is told when they came. */
SIM_SEED_TEST(seeds / 4, start(seed), barriers_tell_arrivals_with_the_last_node)
{
    const uint32_t nodes = sim_torus(sim)->nodes, old = sim_any(sim, nodes);
    go_back(sim, PROTOCOL_MINOR - ARRIVALS_MINOR);
    restart(sim, old, PROTOCOL_MINOR - ARRIVALS_MINOR + 1);
    await(sim, ARRIVALS_MINOR - 1);
    assert_int_equal(arrivals_told(sim), 0);
    restart(sim, old, PROTOCOL_MINOR - ARRIVALS_MINOR);
    await(sim, ARRIVALS_MINOR);
    assert_int_equal(arrivals_told(sim), nodes);
}

static void on_copied(void *context, const struct copy_result *result, const struct error *e)
{
    *(bool *)context = true;
}

/* Starts a copy, and waits for its end. */
static void copy_well(struct sim *sim, uint32_t initiator, const struct copy_request *request)
{
    bool done = false;
    const struct copy_client client = {&done, on_copied};
    struct error e;

    assert_non_null(copy_start(core_copies(sim->node[initiator].core), request, &client, &e));
    sim_settle(&sim->node[initiator]);
    assert_true(sim_run(sim, 5 * SECONDS, is_set, &done));
}

/* One node lacks a minor version. A copy that needs this version is refused, and the refusal names the node; a copy
 * that does not need it succeeds. */
static void copy_while_one_is_older(uint64_t seed, uint32_t minor, const struct copy_request *needs,
                                    const struct copy_request *plain)
{
    struct sim *sim = start(seed);
    const uint32_t nodes = sim_torus(sim)->nodes, old = sim_any(sim, nodes);
    const uint32_t initiator = (old + 1) % nodes;
    const struct copy_client none = {NULL, on_copied};
    struct error e;

    go_back(sim, PROTOCOL_MINOR - minor);
    restart(sim, old, PROTOCOL_MINOR - minor + 1);
    await(sim, minor - 1);
    assert_null(copy_start(core_copies(sim->node[initiator].core), needs, &none, &e));
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_int_equal(e.culprit.kind, CULPRIT_NODE);
    assert_int_equal(e.culprit.node, old);
    if (plain != NULL)
        copy_well(sim, initiator, plain);
    restart(sim, old, PROTOCOL_MINOR - minor);
    await(sim, minor);
    copy_well(sim, initiator, needs);
    exchange(sim);
    sim_free(sim);
}

TEST(copies_wait_for_the_last_node)
{
    static char *source[] = {(char *)(uintptr_t) "/from"};
    const struct copy_request plain = {
        .kind = COPY_TO_ALL, .source = source, .sources = 1, .target = (char *)(uintptr_t) "/to"};
    struct copy_request skips = plain, limits = plain, follows = plain, named = plain;

    skips.skip_changing = true;
    limits.delete_most = 8;
    follows.copy_links = true;
    named.kind = COPY_EXCHANGE;
    named.missing_ok = true;
    named.algorithm = (char *)(uintptr_t) "direct";
    for (uint64_t seed = first_seed; seed < first_seed + (SIM_SHARE > 1 ? 2 : seeds / 4); seed++) {
        copy_while_one_is_older(seed, COPY_MINOR, &plain, NULL);
        copy_while_one_is_older(seed, COPY_MORE_MINOR, &skips, &plain);
        copy_while_one_is_older(seed, COPY_MORE_MINOR, &limits, &plain);
        copy_while_one_is_older(seed, COPY_MORE_MINOR, &follows, &plain);
        copy_while_one_is_older(seed, COPY_BY_MINOR, &named, &plain);
    }
}

/* Returns the first port of a node that has a link. */
static unsigned first_port(const struct sim *sim, uint32_t node)
{
    unsigned port = 0;

    while (torus_neighbour(sim_torus(sim), node, port) == TORUS_NO_NODE)
        port++;
    return port;
}

struct confirmation {
    uint32_t node;
    uint64_t digest;
};

/* Whether all other nodes know what a node has confirmed. */
static bool all_know(struct sim *sim, void *context)
{
    const struct confirmation *c = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (router_topology(sim_router(sim, rank))->entry[c->node].confirmed != c->digest)
            return false;
    return true;
}

static void confirm(struct sim *sim, uint32_t node, uint64_t digest)
{
    router_confirm(sim_router(sim, node), digest);
    sim_settle(&sim->node[node]);
}

SIM_SEED_TEST(seeds / 4, start(seed), confirmations_wait_for_the_last_node)
{
    const uint32_t nodes = sim_torus(sim)->nodes, old = sim_any(sim, nodes);
    struct confirmation c = {(old + 1) % nodes, UINT64_C(0xfedcba9876543210)};
    confirm(sim, c.node, c.digest);
    assert_true(sim_run(sim, 1 * SECONDS, all_know, &c));
    confirm(sim, c.node, 0);
    c.digest = 0;
    assert_true(sim_run(sim, 1 * SECONDS, all_know, &c));
    go_back(sim, PROTOCOL_MINOR - CONFIRM_MINOR);
    restart(sim, old, PROTOCOL_MINOR - CONFIRM_MINOR + 1);
    await(sim, CONFIRM_MINOR - 1);
    confirm(sim, c.node, 7);
    sim_pass(sim, 1 * SECONDS);
    for (uint32_t rank = 0; rank < nodes; rank++)
        if (rank != c.node)
            assert_int_equal(router_topology(sim_router(sim, rank))->entry[c.node].confirmed, 0);
    exchange(sim);
}

struct forwarding {
    uint32_t node; /* that forwards */
    bool known;    /* all nodes know what the others say */
};

/* Whether all nodes know which one forwards, and that the others do not; or nobody says anything. */
static bool all_say(struct sim *sim, void *context)
{
    const struct forwarding *f = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        const struct router *r = sim_router(sim, rank);
        if (router_knows_forwarding(r) != f->known)
            return false;
        for (uint32_t other = 0; other < sim_torus(sim)->nodes; other++) {
            const uint32_t said = router_topology(r)->entry[other].forwards;
            const uint32_t wanted = other == f->node ? TOPOLOGY_FORWARDS : TOPOLOGY_FORWARDS_NOT;
            if (other != rank && said != (f->known ? wanted : TOPOLOGY_FORWARDS_UNSAID))
                return false;
        }
    }
    return true;
}

struct rate {
    uint32_t node; /* that states the rate of its first port, in kbit/s */
    uint32_t kbit; /* 0: nobody knows it */
};

/* Whether all nodes know what a node states. */
static bool all_know_rate(struct sim *sim, void *context)
{
    const struct rate *rate = context;
    const unsigned port = first_port(sim, rate->node);

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (router_channel_rate(sim_router(sim, rank), rate->node, port) != rate->kbit)
            return false;
    return true;
}

static void set_rate(struct sim *sim, uint32_t node, double mbit)
{
    router_set_nominal(sim_router(sim, node), first_port(sim, node),
                       (struct nominal_rate){mbit, mbit});
    sim_settle(&sim->node[node]);
}

/* Rates are known everywhere at once, and nowhere while a node does not know them. */
SEED_TEST(seeds / 4, rates_wait_for_the_last_node)
{
    struct sim *sim = start(seed);
    const uint32_t nodes = sim_torus(sim)->nodes, old = sim_any(sim, nodes);
    struct rate rate = {(old + 1) % nodes, 5000};
    set_rate(sim, rate.node, 5);
    assert_true(sim_run(sim, 1 * SECONDS, all_know_rate, &rate));
    set_rate(sim, rate.node, 4);
    rate.kbit = 4000;
    assert_true(sim_run(sim, 1 * SECONDS, all_know_rate, &rate));
    go_back(sim, PROTOCOL_MINOR - RATES_MINOR);
    restart(sim, old, PROTOCOL_MINOR - RATES_MINOR + 1);
    await(sim, RATES_MINOR - 1);
    set_rate(sim, rate.node, 3);
    rate.kbit = 0;
    assert_true(sim_run(sim, 1 * SECONDS, all_know_rate, &rate));
    exchange(sim);
    restart(sim, old, PROTOCOL_MINOR - RATES_MINOR);
    await(sim, RATES_MINOR);
    rate.kbit = 3000;
    assert_true(sim_run(sim, 1 * SECONDS, all_know_rate, &rate));
    exchange(sim);
    sim_free(sim);
}

static void forward(struct sim *sim, uint32_t node)
{
    router_forward(sim_router(sim, node), true);
    sim_settle(&sim->node[node]);
}

/* The last node is upgraded: all say at once what they have kept to themselves, long before they state everything
 * again. */
SIM_SEED_TEST(seeds / 4, start(seed), forwarding_waits_for_the_last_node)
{
    const uint32_t nodes = sim_torus(sim)->nodes, old = sim_any(sim, nodes);
    struct forwarding f = {(old + 1) % nodes, true};
    forward(sim, f.node);
    assert_true(sim_run(sim, 1 * SECONDS, all_say, &f));
    go_back(sim, PROTOCOL_MINOR - FORWARD_MINOR);
    restart(sim, old, PROTOCOL_MINOR - FORWARD_MINOR + 1);
    await(sim, FORWARD_MINOR - 1);
    forward(sim, f.node);
    f.known = false;
    assert_true(sim_run(sim, 1 * SECONDS, all_say, &f));
    restart(sim, old, PROTOCOL_MINOR - FORWARD_MINOR);
    await(sim, FORWARD_MINOR);
    forward(sim, f.node);
    f.known = true;
    assert_true(sim_run(sim, 1 * SECONDS, all_say, &f));
    exchange(sim);
}
