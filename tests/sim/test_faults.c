/* Nodes die, links break, disks fail and clients leave at any time: every exchange ends on every live node, all nodes
 * agree on the outcome, and the repaired torus works again. */
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/support/cmocka.h"

SEEDS(96 / SIM_SHARE);

static const struct spec specs[] = {
    GENERATED(.algorithm = "at2", .block_bytes = 20000),
    {.algorithm = "direct", .from = "/random/20000", .to = "/a"},
    {.algorithm = "at2", .from = "/random/5000", .to = "/a"},
    {.algorithm = "direct", .from = "/same/0", .to = "/a"},
    GENERATED(.algorithm = "stream", .block_bytes = 20000),
    {.algorithm = "stream", .from = "/random/20000", .to = "/a"},
};

static uint32_t any(struct sim *sim, uint32_t below)
{
    return (uint32_t)chance_below(sim_chance(sim), below);
}

/* One run: a fault happens during an exchange, the exchange ends, and the torus works again. */
struct run {
    struct sim *sim;
    const struct spec *spec;
    struct sim_request *request;
    uint32_t victim;
    unsigned port;
    enum sim_death death;
};

static struct run begin(uint64_t seed)
{
    static const char *const tori[] = {"4x4", "3x5", "2x2", "1x6", "2x3"};
    const struct sim_setup setup = {
        .dims = tori[seed % (sizeof tori / sizeof tori[0])],
        .seed = seed,
        .latency = 100 * MICROSECONDS,
        .rate = 125000000,
        .memory = seed % 3 == 0 ? 256 * 1024 : 0, /* several rounds */
        .chop = true,
    };
    struct run run = {.sim = sim_new(&setup)};
    uint32_t nodes = sim_torus(run.sim)->nodes;

    sim_run_until_whole(run.sim);
    run.spec = &specs[any(run.sim, sizeof specs / sizeof specs[0])];
    run.request = sim_exchange(run.sim, any(run.sim, nodes), run.spec);
    run.victim = any(run.sim, nodes);
    do
        run.port = any(run.sim, torus_ports(sim_torus(run.sim)));
    while (torus_neighbour(sim_torus(run.sim), run.victim, run.port) == TORUS_NO_NODE);
    /* Sometimes late: exchanges of these sizes take 3 to 40 ms. */
    sim_pass(run.sim, chance_below(sim_chance(run.sim),
                                   any(run.sim, 2) == 0 ? 4 * MILLISECONDS : 40 * MILLISECONDS));
    return run;
}

static void end(struct run *run)
{
    if (run->spec->to[0] != '\0')
        check_doubts_end(run->sim, run->request->id);
    check_next_exchange(run->sim, any(run->sim, sim_torus(run->sim)->nodes));
    sim_free(run->sim);
}

static void node_dies(struct run *run, uint32_t victim, enum sim_death death)
{
    sim_kill(run->sim, victim, death);
    (void)check_agreement(run->request, run->spec);
    sim_restart(run->sim, victim);
}

SEED_TEST(seeds, a_node_may_die)
{
    struct run run = begin(seed);
    node_dies(&run, run.victim, (enum sim_death)any(run.sim, 3));
    end(&run);
}

SEED_TEST(seeds, the_root_may_die)
{
    struct run run = begin(seed);
    node_dies(&run, run.request->root, (enum sim_death)any(run.sim, 3));
    end(&run);
}

SEED_TEST(seeds, a_node_may_die_and_come_back_at_once)
{
    struct run run = begin(seed);
    sim_kill(run.sim, run.victim, (enum sim_death)any(run.sim, 3));
    sim_pass(run.sim, chance_below(sim_chance(run.sim), 500 * MILLISECONDS));
    sim_restart(run.sim, run.victim);
    (void)check_agreement(run.request, run.spec);
    end(&run);
}

/* Its neighbours do not notice at the same time: what each of them heard last may be as old as a heartbeat, or still in
 * transit. */
TEST(a_dead_machine_is_named)
{
    const struct spec spec = GENERATED(.algorithm = "at2", .block_bytes = 500000);

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 10; seed++) {
        struct sim *sim =
            SIM_WHOLE(.dims = "4x4", .seed = seed, .latency = 100 * MICROSECONDS, .rate = 500000);
        struct sim_request *request = sim_exchange(sim, any(sim, 5), &spec);
        uint32_t victim = 5 + any(sim, 11);
        sim_pass(sim, chance_below(sim_chance(sim), 2000 * MILLISECONDS));
        for (unsigned port = 0; port < 4; port++) {
            sim_set_wire(sim, victim, port, SIM_WIRE_SILENT);
            sim_pass(sim, ROUTER_HEARTBEAT / 3);
        }
        sim_kill(sim, victim, SIM_POWER);
        assert_true(sim_run_until_ended(request, 60 * SECONDS));
        if (request->error.code != ERROR_LINK || request->error.culprit.kind != CULPRIT_NODE ||
            request->error.culprit.node != victim)
            fail_msg("seed %llu: %s, not node %u", (unsigned long long)seed, request->error.text,
                     victim);
        sim_free(sim);
    }
}

SEED_TEST(seeds, a_link_may_be_cut)
{
    struct run run = begin(seed);
    sim_set_wire(run.sim, run.victim, run.port,
                 any(run.sim, 2) == 0 ? SIM_WIRE_CUT : SIM_WIRE_SILENT);
    (void)check_agreement(run.request, run.spec);
    sim_set_wire(run.sim, run.victim, run.port, SIM_WIRE_UP);
    end(&run);
}

SEED_TEST(seeds, a_link_may_flap)
{
    struct run run = begin(seed);
    enum sim_wire how = any(run.sim, 2) == 0 ? SIM_WIRE_CUT : SIM_WIRE_SILENT;
    for (uint32_t i = any(run.sim, 4); i < 4; i++) {
        sim_set_wire(run.sim, run.victim, run.port, how);
        sim_pass(run.sim, chance_below(sim_chance(run.sim), 300 * MILLISECONDS));
        sim_set_wire(run.sim, run.victim, run.port, SIM_WIRE_UP);
        sim_pass(run.sim, chance_below(sim_chance(run.sim), 100 * MILLISECONDS));
    }
    (void)check_agreement(run.request, run.spec);
    end(&run);
}

/* All nodes can name the link. */
static void check_told_of_mtu(const struct run *run)
{
    for (uint32_t rank = 0; rank < sim_torus(run->sim)->nodes; rank++) {
        struct fault_report report;
        bool told = false;
        for (unsigned i = 0; router_fault(sim_router(run->sim, rank), i, &report); i++)
            told |= report.rank == run->victim && report.port == run->port &&
                    report.fault.code == LINK_FAULT_MTU;
        assert_true(told);
    }
}

/* Handshakes and heartbeats pass: the fault is found nevertheless, and the link does not come up before it is gone. */
TEST(a_link_may_lose_large_packets)
{
    struct port_info info;

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct run run = begin(seed);
        struct router *router = sim_router(run.sim, run.victim);
        sim_set_wire(run.sim, run.victim, run.port, SIM_WIRE_NARROW);
        (void)check_agreement(run.request, run.spec);
        router_port_info(router, run.port, &info);
        for (int second = 0; second < 40 && info.state != PORT_UP; second++) {
            sim_pass(run.sim, SECONDS);
            router_port_info(router, run.port, &info);
            assert_int_not_equal(info.state, PORT_UP);
        }
        if (info.state != PORT_UP) {
            assert_contains(info.reason, "do both ends have the same MTU (1500 here)");
            check_told_of_mtu(&run);
        }
        sim_set_wire(run.sim, run.victim, run.port, SIM_WIRE_UP);
        end(&run);
    }
}

static bool all_is_told(struct sim *sim, bool whole)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (topology_whole(router_topology(sim_router(sim, rank))) != whole)
            return false;
    return true;
}

/* The cut is noticed by the carrier: neither the silence nor the pause between two dials must pass, however long the
 * cut. */
SEED_TEST(seeds / 2, a_cut_and_its_end_are_noticed_at_once)
{
    const struct sim_setup setup = {
        .dims = "3x5", .seed = seed, .latency = 100 * MICROSECONDS, .chop = seed % 2 == 0};
    struct sim *sim = sim_new(&setup);
    uint32_t victim = any(sim, 15);
    unsigned port = any(sim, 4);
    sim_run_until_whole(sim);
    sim_set_wire(sim, victim, port, SIM_WIRE_CUT);
    sim_pass(sim, 50 * MILLISECONDS);
    assert_true(all_is_told(sim, false));
    sim_pass(sim, chance_below(sim_chance(sim), 20 * SECONDS));
    if (seed % 3 == 0) { /* it reads the carrier when it starts */
        sim_kill(sim, victim, SIM_CRASH);
        sim_restart(sim, victim);
        sim_pass(sim, 1 * SECONDS);
    }
    sim_set_wire(sim, victim, port, SIM_WIRE_UP);
    sim_pass(sim, 50 * MILLISECONDS);
    assert_true(all_is_told(sim, true));
    sim_free(sim);
}

/* How often a node's view of a link has changed. */
struct changes {
    uint32_t rank, link;
    unsigned port;
    bool up;
    unsigned count;
};

static bool count_changes(struct sim *sim, void *context)
{
    struct changes *c = context;
    bool up = topology_link_up(router_topology(sim_router(sim, c->rank)), c->link, c->port);

    c->count += up != c->up;
    c->up = up;
    return false;
}

/* A link that is cut or silent again and again is reported a few times. Once it is quiet, it is used again. */
TEST(a_link_that_flaps_is_kept_out)
{
    static const struct {
        uint64_t down, up;
        unsigned times, most; /* changes */
        enum sim_wire how;
    } flaps[] = {
        {1 * MILLISECONDS, 1 * MILLISECONDS, 2000, 6, SIM_WIRE_CUT},
        {20 * MILLISECONDS, 30 * MILLISECONDS, 200, 6, SIM_WIRE_CUT},
        {500 * MILLISECONDS, 3 * SECONDS, 40, 8, SIM_WIRE_CUT}, /* quiet for 2 s, but not for 4 */
        {1700 * MILLISECONDS, 700 * MILLISECONDS, 40, 10, SIM_WIRE_SILENT},
        {20 * MILLISECONDS, 30 * SECONDS, 10, 20,
         SIM_WIRE_CUT}, /* fewer losses than that: the link is used */
    };

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 4; seed++) {
        const size_t kind = seed % (sizeof flaps / sizeof flaps[0]);
        const struct sim_setup setup = {
            .dims = "4x4", .seed = seed, .latency = 100 * MICROSECONDS, .chop = seed % 2 == 0};
        struct sim *sim = sim_new(&setup);
        struct changes c = {
            .rank = any(sim, 16), .link = any(sim, 16), .port = any(sim, 4), .up = true};
        sim_run_until_whole(sim);
        sim_watch(sim, count_changes, &c);
        for (unsigned i = 0; i < flaps[kind].times; i++) {
            sim_set_wire(sim, c.link, c.port, flaps[kind].how);
            sim_pass(sim, flaps[kind].down);
            sim_set_wire(sim, c.link, c.port, SIM_WIRE_UP);
            sim_pass(sim, flaps[kind].up);
        }
        if (c.count < 1 || c.count > flaps[kind].most)
            fail_msg("seed %llu: %u changes", (unsigned long long)seed, c.count);
        if (kind == 4)
            assert_int_equal(c.count, flaps[kind].most);
        sim_run_until_whole(sim);
        sim_watch(sim, NULL, NULL);
        check_next_exchange(sim, c.rank);
        sim_free(sim);
    }
}

SEED_TEST(seeds / 4, a_short_silence_does_no_harm)
{
    struct run run = begin(seed);
    if (seed % 2 == 0) {
        sim_stall(run.sim, run.victim, run.port, SIM_WIRE_SILENT, 600 * MILLISECONDS);
    } else { /* its operating system answers */
        sim_freeze(run.sim, run.victim, 3 * SECONDS);
        sim_pass(run.sim, 3 * SECONDS);
    }
    (void)sim_run_until_ended(run.request, 60 * SECONDS);
    check_success(run.request, run.spec);
    assert_true(check_agreement(run.request, run.spec));
    end(&run);
}

/* Only its neighbour notices: the root must not wait until its timeout. */
TEST(a_machine_is_back_at_once)
{
    static const struct spec spec = GENERATED(.algorithm = "direct", .block_bytes = 50000);

    for (uint64_t seed = 0; seed < 20; seed++) {
        struct sim *sim =
            SIM_WHOLE(.dims = "3m", .seed = seed, .latency = 200 * MICROSECONDS, .rate = 12500000);
        struct sim_request *r = sim_exchange(sim, 2, &spec);
        sim_pass(sim, 5 * MILLISECONDS);
        sim_kill(sim, 0, SIM_POWER);
        sim_pass(sim, (1 + seed) * MILLISECONDS);
        sim_restart(sim, 0);
        assert_true(sim_run_until_ended(r, 15 * SECONDS));
        assert_int_equal(r->error.code, ERROR_LINK);
        (void)check_agreement(r, &spec);
        check_next_exchange(sim, 2);
        sim_free(sim);
    }
}

SIM_SEED_TEST(2 * seeds,
              SIM_WHOLE(.dims = "3x4", .seed = seed, .latency = 100 * MICROSECONDS, .chop = true),
              a_disk_may_fail)
{
    enum sim_disk_fault fault = (enum sim_disk_fault)(seed % SIM_DISK_FAULTS);
    const struct spec spec = {.algorithm = seed / SIM_DISK_FAULTS % 2 == 0 ? "direct" : "stream",
                              .from = "/random/9000",
                              .to = "/a"};
    uint32_t root = any(sim, 12), victim = any(sim, 12);
    sim_disk_fail(sim, fault == SIM_DISK_RECORD ? root : victim, fault);
    struct sim_request *r = sim_exchange(sim, root, &spec);
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    if (fault == SIM_DISK_COMMIT)
        assert_int_equal(r->error.code, ERROR_NONE);
    else if (r->error.code != ERROR_IO && r->error.code != ERROR_REFUSED &&
             (fault != SIM_DISK_CHECK || r->error.code != ERROR_DAMAGED))
        fail_msg("seed %llu, fault %d: %s", (unsigned long long)seed, (int)fault,
                 r->error.code != ERROR_NONE ? r->error.text : "done");
    if (fault == SIM_DISK_COMMIT) { /* decided: the node tries again, and the client waits */
        assert_true(sim_decided(sim, root, r->id));
        for (uint32_t rank = 0; rank < 12; rank++)
            assert_int_equal(sim_output(sim, rank, r->id), SIM_OUTPUT_FINAL);
    } else if (r->id[0] != '\0') {
        assert_false(check_agreement(r, &spec));
        assert_false(sim_decided(sim, root, r->id));
    }
    check_next_exchange(sim, root);
}

SEED_TEST(seeds, a_client_may_cancel)
{
    struct run run = begin(seed);
    sim_abandon(run.request);
    (void)check_agreement(run.request, run.spec);
    end(&run);
}

SIM_SEED_TEST(seeds,
              SIM_WHOLE(.dims = seed % 2 == 0 ? "4x4" : "3x5", .seed = seed,
                        .latency = 100 * MICROSECONDS, .rate = 12500000, .chop = true),
              a_timeout_ends_it_everywhere)
{
    struct spec spec = specs[seed % (sizeof specs / sizeof specs[0])];
    spec.timeout_ns = 1 + chance_below(sim_chance(sim), 20 * MILLISECONDS);
    uint64_t began = sim_now(sim);
    struct sim_request *r = sim_exchange(sim, any(sim, 15), &spec);
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    if (r->error.code != ERROR_NONE) {
        assert_true(r->error.code == ERROR_TIMEOUT ||
                    (r->error.code == ERROR_IN_DOUBT && spec.to[0] != '\0'));
        assert_true(sim_now(sim) - began <= spec.timeout_ns + 1 * MILLISECONDS);
    }
    (void)check_agreement(r, &spec);
    if (spec.to[0] != '\0')
        check_doubts_end(sim, r->id);
    check_next_exchange(sim, 0);
}

SEED_TEST(seeds, everything_may_happen_at_once)
{
    struct run run = begin(seed);
    uint32_t nodes = sim_torus(run.sim)->nodes;
    uint32_t second = any(run.sim, nodes);
    sim_kill(run.sim, run.victim, (enum sim_death)any(run.sim, 3));
    sim_pass(run.sim, chance_below(sim_chance(run.sim), 3 * SECONDS));
    sim_set_wire(run.sim, second, run.port, (enum sim_wire)any(run.sim, 3));
    sim_pass(run.sim, chance_below(sim_chance(run.sim), 3 * SECONDS));
    sim_kill(run.sim, second, (enum sim_death)any(run.sim, 3));
    sim_pass(run.sim, chance_below(sim_chance(run.sim), 9 * SECONDS));
    sim_restart(run.sim, run.victim);
    sim_restart(run.sim, second);
    sim_set_wire(run.sim, second, run.port, SIM_WIRE_UP);
    if (!sim_run(run.sim, 200 * SECONDS, sim_is_quiet, NULL))
        fail_msg("seed %llu: does not end", (unsigned long long)seed);
    end(&run);
}
