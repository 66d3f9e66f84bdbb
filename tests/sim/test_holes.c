/* Links that are down before exchanges begin: while the torus is connected, all exchanges complete by the routes that
 * tests/contract/test_detour.c proves, and their results name the links; if the torus is in parts, they are refused. An
 * exchange also completes if links go down or come up while it runs. */
#include "tests/sim/down_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(60 / SIM_SHARE);

static void complete(struct sim *sim, const struct damage *d, const struct spec *spec)
{
    struct sim_request *r = sim_exchange(sim, sim_any(sim, sim_torus(sim)->nodes), spec);
    char without[200];

    if (!sim_run_until_ended(r, 60 * SECONDS))
        fail_msg("%s does not end", r->id);
    check_success(r, spec);
    if (d != NULL) {
        assert_string_equal(damage_describe_links(d, without, sizeof without), r->result.without);
        assert_string_equal(r->result.algorithm, "detour");
    }
    assert_true(check_agreement(r, spec));
}

SIM_SEED_TEST(seeds, down_begin(seed), links_that_are_down_are_avoided)
{
    struct damage d;
    struct error e;

    assert_int_equal(damage_init(&d, sim_torus(sim), &e), 0);
    for (uint32_t left = 1 + sim_any(sim, 3); left > 0; left--)
        down_cut(sim, &d);
    if (sim_any(sim, 2) == 0) /* otherwise not all nodes know of it yet: it is retried */
        sim_pass(sim, 100 * MILLISECONDS);
    const struct spec *spec = down_any_spec(sim);
    bool down = false; /* a node without links */
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        bool links = false;
        for (unsigned port = 0; port < torus_ports(sim_torus(sim)); port++)
            links = links || damage_has_link(&d, rank, port);
        down = down || !links;
    }
    if (damage_is_connected(&d, &e) == 0) {
        complete(sim, &d, spec);
    } else {
        sim_pass(sim, 100 * MILLISECONDS);
        struct sim_request *r = sim_exchange(sim, sim_any(sim, sim_torus(sim)->nodes), spec);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        assert_int_equal(r->error.code, ERROR_LINK);
        assert_true(down || down_is_in_parts(&r->error));
    }
    damage_free(&d);
    sim_heal(sim);
    check_next_exchange(sim, sim_any(sim, sim_torus(sim)->nodes));
}

static uint32_t reroutes, resumed; /* of all seeds */

/* At any time: the exchange completes, whatever was delivered and written by then. */
static void links_change_meanwhile(uint64_t seed)
{
    struct sim *sim = down_begin(seed);
    const struct spec *spec = down_any_spec(sim);
    uint64_t within = sim_any(sim, 2) == 0 ? 2 * MILLISECONDS : 40 * MILLISECONDS;
    struct damage d;
    struct error e;

    assert_int_equal(damage_init(&d, sim_torus(sim), &e), 0);
    for (uint32_t left = sim_any(sim, 2); left > 0; left--) {
        down_change(sim, &d, true);
        sim_pass(sim, sim_any(sim, 2) * 50 * MILLISECONDS);
    }
    struct sim_request *r = sim_exchange(sim, sim_any(sim, sim_torus(sim)->nodes), spec);
    for (uint32_t left = 1 + sim_any(sim, 4); left > 0; left--) {
        sim_pass(sim, chance_below(sim_chance(sim), within));
        down_change(sim, &d, true);
        if (sim_any(sim, 4) == 0)
            sim_pass(sim, 100 * MILLISECONDS);
    }
    down_must_complete(r, spec);
    reroutes += r->result.reroutes;
    resumed += r->result.kept_bytes > 0;
    damage_free(&d);
    sim_heal(sim);
    check_next_exchange(sim, sim_any(sim, sim_torus(sim)->nodes));
    sim_free(sim);
}

TEST(while_it_runs)
{
    reroutes = resumed = 0;
    with_seeds(seeds, links_change_meanwhile);
    if (reroutes < seeds / 4)
        fail_msg("%u reroutes in %llu runs", reroutes, (unsigned long long)seeds);
    if (resumed < seeds / 20)
        fail_msg("%u of %llu went on where they were", resumed, (unsigned long long)seeds);
}

/* An attempt is withdrawn because nodes are busy, while a link is silent: as soon as the link is down, the node behind
 * it hears over another route that the attempt is over. */
TEST(an_abort_is_lost)
{
    static const struct spec spec =
        GENERATED(.algorithm = "auto", .block_bytes = 100000, .timeout_ns = 60 * SECONDS);
    uint64_t lost = 0;

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = SIM_WHOLE(.dims = "3x3", .seed = seed, .latency = 100 * MICROSECONDS,
                                    .rate = 12500000, .memory = 1000000);
        struct sim_request *r[9];
        struct exchange_info info;
        char first[EXCHANGE_ID_SIZE];
        for (uint32_t root = 0; root < 9; root++)
            r[root] = sim_exchange(sim, root, &spec);
        (void)snprintf(first, sizeof first, "%s", exchange_id(r[0]->exchange));
        sim_pass(sim, 150 * MICROSECONDS);
        sim_set_wire(sim, 0, torus_port(sim_torus(sim), 1, 1), SIM_WIRE_SILENT); /* to node 1 */
        sim_pass(sim, 100 * MILLISECONDS);
        if (sim_info(sim, 1, first, &info) && !exchange_has_ended(info.state) &&
            !sim_info(sim, 0, first, &info)) {
            lost++;
            sim_pass(sim, 2 * SECONDS); /* a second of silence, and its consequences */
            if (sim_info(sim, 1, first, &info) && !exchange_has_ended(info.state))
                fail_msg("seed %llu: %s is still %s", (unsigned long long)seed, first,
                         exchange_state_name(info.state));
        }
        for (uint32_t root = 0; root < 9; root++)
            down_must_complete(r[root], &spec);
        sim_free(sim);
    }
    if (lost < seeds / 8)
        fail_msg("%llu of %llu lost an abort", (unsigned long long)lost, (unsigned long long)seeds);
}

/* A link that is up again before distant nodes have heard of its loss: its ends report that. */
TEST(a_link_flaps)
{
    static const struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 200000);

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 3; seed++) {
        struct sim *sim = down_begin(7 * seed); /* 4x4 */
        struct sim_request *r = sim_exchange(sim, 0, &spec);
        sim_pass(sim, 4 * MILLISECONDS + sim_any(sim, 3000) * MICROSECONDS);
        sim_set_wire(sim, 10, 0, SIM_WIRE_CUT);
        sim_pass(sim, sim_any(sim, 1000) * MICROSECONDS);
        sim_set_wire(sim, 10, 0, SIM_WIRE_UP);
        uint64_t began = sim_now(sim);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        if (sim_now(sim) - began > 1 * SECONDS) /* a second attempt is soon */
            fail_msg("seed %llu: %s after %.3f s", (unsigned long long)seed, r->id,
                     (double)(sim_now(sim) - began) / 1e9);
        down_must_complete(r, &spec);
        sim_free(sim);
    }
}

static bool link_is_up(struct sim *sim, void *context)
{
    const uint32_t *rank = context;
    return topology_link_up(router_topology(sim_router(sim, *rank)), *rank,
                            torus_port(sim_torus(sim), 0, 1));
}

/* One of the two links of node 4 comes up, which the root hears over five nodes; then the other one goes down, which
 * its neighbour reports. */
SIM_TEST(SIM_WHOLE(.dims = "8", .seed = 1, .latency = 1 * MILLISECONDS, .rate = 50000000),
         a_link_that_comes_up_may_be_heard_late)
{
    static const struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 4000000);
    uint32_t near = 3;

    struct sim_request *r = sim_exchange(sim, 6, &spec);
    sim_pass(sim, 100 * MILLISECONDS);
    sim_set_wire(sim, near, torus_port(sim_torus(sim), 0, 1), SIM_WIRE_CUT);
    sim_pass(sim, 500 * MILLISECONDS);
    sim_set_wire(sim, near, torus_port(sim_torus(sim), 0, 1), SIM_WIRE_UP);
    assert_true(sim_run(sim, 10 * SECONDS, link_is_up, &near));
    sim_set_wire(sim, 4, torus_port(sim_torus(sim), 0, 1), SIM_WIRE_CUT);
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    assert_int_equal(r->error.code, ERROR_NONE);
    assert_int_equal(r->result.reroutes, 2);
    down_must_complete(r, &spec);
}

/* More exchanges than run at once, at a node whose link goes down and comes back while they wait for their start. */
TEST(while_they_wait)
{
    static const struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 50000);

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 3; seed++) {
        struct sim *sim = down_begin(7 * seed);
        struct sim_request *r[8];
        for (size_t i = 0; i < 8; i++)
            r[i] = sim_exchange(sim, 5, &spec);
        for (uint32_t left = 1 + sim_any(sim, 3); left > 0; left--) {
            unsigned port = sim_any(sim, 4);
            sim_pass(sim, sim_any(sim, 10000) * MICROSECONDS);
            sim_set_wire(sim, 5, port, SIM_WIRE_CUT);
            sim_pass(sim, sim_any(sim, 10000) * MICROSECONDS);
            sim_set_wire(sim, 5, port, SIM_WIRE_UP);
        }
        for (size_t i = 0; i < 8; i++)
            down_must_complete(r[i], &spec);
        sim_free(sim);
    }
}

/* A barrier needs no routes; other operations report which routes are missing. */
SIM_TEST(down_begin(0), barriers_and_others)
{
    static const struct spec barrier =
        GENERATED(.operation = OPERATION_BARRIER, .algorithm = "auto", .barrier = "b");
    static const struct spec others[] = {
        GENERATED(.algorithm = "stream", .block_bytes = 10),
        GENERATED(.algorithm = "auto", .operation = OPERATION_ALLGATHER, .block_bytes = 10),
        GENERATED(.algorithm = "auto", .operation = OPERATION_BROADCAST, .block_bytes = 10)};
    struct sim_request *entered[16];
    struct damage d;
    struct error e;

    assert_int_equal(damage_init(&d, sim_torus(sim), &e), 0);
    down_cut(sim, &d);
    sim_pass(sim, 100 * MILLISECONDS);
    for (uint32_t rank = 0; rank < 16; rank++)
        entered[rank] = sim_exchange(sim, rank, &barrier);
    for (uint32_t rank = 0; rank < 16; rank++) {
        assert_true(sim_run_until_ended(entered[rank], 10 * SECONDS));
        if (entered[rank]->error.code != ERROR_NONE)
            fail_msg("%s", entered[rank]->error.text);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct sim_request *r = sim_exchange(sim, 3, &others[i]);
        assert_true(sim_run_until_ended(r, 10 * SECONDS));
        assert_int_equal(r->error.code, ERROR_LINK);
    }
    damage_free(&d);
    sim_heal(sim);
    check_next_exchange(sim, 5);
}

/* Until the last one enters it. */
SIM_SEED_TEST(seeds, down_begin(seed), before_a_barrier)
{
    static const struct spec barrier =
        GENERATED(.operation = OPERATION_BARRIER, .algorithm = "auto", .barrier = "b");
    uint32_t nodes = sim_torus(sim)->nodes, last = sim_any(sim, nodes);
    struct sim_request *entered[16];
    uint64_t came[16];
    struct damage d;
    struct error e;

    assert_int_equal(damage_init(&d, sim_torus(sim), &e), 0);
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t rank = (last + 1 + i) % nodes;
        if (rank == last) {
            sim_pass(sim, 10 * SECONDS); /* all have heard of links that are silent, too */
            for (uint32_t other = 0; other < nodes; other++)
                if (other != last && entered[other]->ended)
                    fail_msg("node %u is through before node %u", other, last);
        }
        came[rank] = sim_now(sim);
        entered[rank] = sim_exchange(sim, rank, &barrier);
        if (rank == last)
            break;
        sim_pass(sim, sim_any(sim, 20000) * MICROSECONDS);
        if (sim_any(sim, 3) == 0)
            down_change(sim, &d, true);
    }
    for (uint32_t rank = 0; rank < nodes; rank++)
        if (!sim_run_until_ended(entered[rank], 60 * SECONDS) ||
            entered[rank]->error.code != ERROR_NONE)
            fail_msg("node %u: %s", rank,
                     entered[rank]->ended ? entered[rank]->error.text : "does not end");
    for (uint32_t rank = 0; rank < nodes; rank++) /* also of attempts that were withdrawn */
        check_arrivals(entered[rank], came, 1 * SECONDS);
    damage_free(&d);
    sim_heal(sim);
    check_next_exchange(sim, last);
}
