/* Links that are down before exchanges begin: while the torus is connected all complete on what is left,
 * by the routes that tests/contract/test_detour.c proves, and the result names the links; in parts, it
 * is refused by name. Whatever goes down or comes up while one is under way, it completes as well, unless a
 * node dies. One that shrinks completes then, too, among those that are left.
 *
 *     test_sim_holes [FIRST_SEED COUNT]     more seeds than ctest runs */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/schedule/damage.h"
#include "daemon/schedule/tree.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"

static uint64_t first_seed, seeds = 60 / SIM_SHARE;

static const char *const tori[] = {"4x4", "3x3", "2x3", "5", "4mx3", "2x2x2", "3x5"};

static const struct spec specs[] = {
    {.algorithm = "auto", .block_bytes = 20000, .from = "", .to = ""},
    {.algorithm = "auto", .block_bytes = 200000, .from = "", .to = ""},
    {.algorithm = "auto", .block_bytes = 1000, .from = "", .to = "", .repeat = 5},
    {.algorithm = "auto", .block_bytes = 2000, .from = "", .to = "", .mode = MODE_STEPPED},
    {.algorithm = "auto", .block_bytes = 0, .from = "", .to = ""},
    {.algorithm = "auto", .from = "/random/5000", .to = "/a"},
    {.algorithm = "auto", .from = "/same/3000", .to = "/b"},
};

static struct sim *begin(uint64_t seed)
{
    return sim_new_whole(tori[seed % (sizeof tori / sizeof tori[0])], seed);
}

/* Cuts a link, unless it is cut already. */
static void cut(struct sim *sim, struct damage *d)
{
    const struct torus *t = sim_torus(sim);
    uint32_t rank;
    unsigned port;

    do {
        rank = sim_any(sim, t->nodes);
        port = sim_any(sim, torus_ports(t));
    } while (torus_neighbour(t, rank, port) == TORUS_NO_NODE);
    damage_add_link(d, rank, port);
    sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
}

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

static void links_down_before(uint64_t seed)
{
    struct sim *sim = begin(seed);
    struct damage d;
    struct error e;

    assert_int_equal(damage_init(&d, sim_torus(sim), &e), 0);
    for (uint32_t left = 1 + sim_any(sim, 3); left > 0; left--)
        cut(sim, &d);
    if (sim_any(sim, 2) == 0) /* else not all know of it yet: it is begun anew */
        sim_pass(sim, 100 * MILLISECONDS);
    const struct spec *spec = &specs[sim_any(sim, sizeof specs / sizeof specs[0])];
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
        assert_non_null(strstr(r->error.text, down ? "the torus is" : "the torus is in parts"));
    }
    damage_free(&d);
    sim_heal(sim);
    check_next_exchange(sim, sim_any(sim, sim_torus(sim)->nodes));
    sim_free(sim);
}

static void with_seeds(void (*test)(uint64_t seed))
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        test(seed);
}

static void around_what_is_down(void **state)
{
    (void)state;
    with_seeds(links_down_before);
}

/* --- links that go down and come up meanwhile --- */

/* Cuts a link, or mends one that is cut, if it may; never so that the torus would be in parts. Nobody waits for
 * a link to come up again: it counts as down. */
static void change_or_cut(struct sim *sim, struct damage *d, bool mends)
{
    const struct torus *t = sim_torus(sim);
    enum sim_wire how = sim_any(sim, 4) == 0 ? SIM_WIRE_SILENT : SIM_WIRE_CUT;

    for (int tries = 0; tries < 20; tries++) {
        uint32_t rank = sim_any(sim, t->nodes);
        unsigned port = sim_any(sim, torus_ports(t));
        if (torus_neighbour(t, rank, port) == TORUS_NO_NODE)
            continue;
        if (!damage_has_link(d, rank, port) && !mends)
            continue;
        if (!damage_has_link(d, rank, port)) {
            sim_set_wire(sim, rank, port, SIM_WIRE_UP);
            return;
        }
        damage_add_link(d, rank, port);
        if (damage_is_connected(d, NULL) == 0) {
            sim_set_wire(sim, rank, port, how);
            return;
        }
        d->dead[rank] &= ~(1u << port);
        d->dead[torus_neighbour(t, rank, port)] &= ~(1u << torus_port_opposite(port));
    }
}

static void change(struct sim *sim, struct damage *d)
{
    change_or_cut(sim, d, true);
}

static uint32_t reroutes, resumed; /* of all seeds */

static void must_complete(struct sim_request *r, const struct spec *spec)
{
    if (!sim_run_until_ended(r, 100 * SECONDS))
        fail_msg("%s does not end", r->id);
    struct spec chosen = *spec;
    if (r->ended && r->error.code == ERROR_NONE)
        chosen.algorithm = r->result.algorithm;
    check_success(r, &chosen);
    assert_true(check_agreement(r, spec));
    reroutes += r->result.reroutes;
    resumed += r->result.kept_bytes > 0;
}

/* At any time: whatever has been delivered and written by then, it completes. */
static void links_change_meanwhile(uint64_t seed)
{
    struct sim *sim = begin(seed);
    const struct spec *spec = &specs[sim_any(sim, sizeof specs / sizeof specs[0])];
    uint64_t within = sim_any(sim, 2) == 0 ? 2 * MILLISECONDS : 40 * MILLISECONDS;
    struct damage d;
    struct error e;

    assert_int_equal(damage_init(&d, sim_torus(sim), &e), 0);
    for (uint32_t left = sim_any(sim, 2); left > 0; left--) {
        change(sim, &d);
        sim_pass(sim, sim_any(sim, 2) * 50 * MILLISECONDS);
    }
    struct sim_request *r = sim_exchange(sim, sim_any(sim, sim_torus(sim)->nodes), spec);
    for (uint32_t left = 1 + sim_any(sim, 4); left > 0; left--) {
        sim_pass(sim, chance_below(sim_chance(sim), within));
        change(sim, &d);
        if (sim_any(sim, 4) == 0)
            sim_pass(sim, 100 * MILLISECONDS);
    }
    must_complete(r, spec);
    damage_free(&d);
    sim_heal(sim);
    check_next_exchange(sim, sim_any(sim, sim_torus(sim)->nodes));
    sim_free(sim);
}

static void while_it_runs(void **state)
{
    (void)state;
    reroutes = resumed = 0;
    with_seeds(links_change_meanwhile);
    if (reroutes < seeds / 4)
        fail_msg("%u reroutes in %llu runs", reroutes, (unsigned long long)seeds);
    if (resumed < seeds / 20)
        fail_msg("%u of %llu went on where they were", resumed, (unsigned long long)seeds);
}

/* Bytes that have been put on channels by its last attempt. */
static uint64_t sent(const struct sim_request *r)
{
    uint64_t bytes = 0;

    for (uint32_t rank = 0; rank < sim_torus(r->sim)->nodes; rank++)
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            bytes += r->result.node[rank].port[port].tx_bytes;
    return bytes;
}

/* What has arrived before a link goes down does not come again, whichever it is, and however often. */
static void what_has_arrived_stays(void **state)
{
    static const struct spec spec = {
        .algorithm = "auto", .block_bytes = 400000, .from = "", .to = ""};
    static const char *const dims[] = {"4x4", "3x3", "2x3", "2x2x2", "5"};

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 4; seed++) {
        const struct sim_setup setup = {.dims = dims[seed % 5],
                                        .seed = seed,
                                        .latency = 100 * MICROSECONDS,
                                        .rate = 12500000,
                                        .memory = seed % 3 == 0 ? 4u << 20 : 0,
                                        .chop = true};
        struct sim *sim = sim_new(&setup);
        struct damage d;
        struct error e;
        sim_run_until_whole(sim);
        const struct torus *t = sim_torus(sim);
        uint64_t all = (uint64_t)t->nodes * (t->nodes - 1) * spec.block_bytes;
        assert_int_equal(damage_init(&d, t, &e), 0);
        struct sim_request *whole = sim_exchange(sim, 0, &spec);
        must_complete(whole, &spec);
        assert_int_equal(whole->result.kept_bytes, 0);

        struct sim_request *r = sim_exchange(sim, sim_any(sim, t->nodes), &spec);
        uint32_t cuts =
            setup.dims[1] == '\0' ? 1 : 1 + sim_any(sim, 2); /* one more would part a ring */
        for (uint32_t left = cuts; left > 0; left--) {
            sim_pass(sim, whole->result.nanoseconds / 2);
            change_or_cut(sim, &d, false); /* one that is silent and then mended is not missed */
        }
        must_complete(r, &spec);
        assert_in_range(r->result.reroutes, 1, cuts);
        assert_in_range(r->result.kept_bytes, all / 8, all - 1);
        assert_int_equal(r->result.bytes_delivered, all);
        assert_true(sent(r) < sent(whole));
        assert_true(r->result.nanoseconds > whole->result.nanoseconds);
        damage_free(&d);
        sim_free(sim);
    }
}

static bool has_no_leftover(struct sim *sim, void *context)
{
    (void)context;
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_leftover(sim, rank) != NULL)
            return false;
    return true;
}

/* The links of a node that dies go one by one: the exchange begins anew around the first, and some hear of the
 * others before the root does and refuse that. All that knew the first attempt hear why it fails. */
static void a_node_dies_link_by_link(void **state)
{
    static const struct spec spec = {.algorithm = "auto",
                                     .block_bytes = 200000,
                                     .from = "",
                                     .to = "",
                                     .timeout_ns = 20 * SECONDS};
    uint64_t anew = 0;

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        const struct sim_setup setup = {.dims = "4x4",
                                        .seed = seed,
                                        .latency = 100 * MICROSECONDS,
                                        .rate = 12500000,
                                        .chop = true};
        struct sim *sim = sim_new(&setup);
        char first[EXCHANGE_ID_SIZE];
        sim_run_until_whole(sim);
        struct sim_request *r = sim_exchange(sim, sim_any(sim, 15), &spec);
        sim_pass(sim, 10 * MILLISECONDS);
        (void)snprintf(first, sizeof first, "%s", exchange_id(r->exchange));
        sim_set_wire(sim, 15, sim_any(sim, 4), SIM_WIRE_CUT);
        sim_pass(sim, 50 * MILLISECONDS + chance_below(sim_chance(sim), 60 * MILLISECONDS));
        sim_kill(sim, 15, SIM_CRASH);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        if (r->error.code != ERROR_NONE && strcmp(r->id, first) != 0) {
            anew++;
            sim_pass(sim, 1 * SECONDS);
            for (uint32_t rank = 0; rank < 15; rank++) {
                struct exchange_info info;
                if (!sim_info(sim, rank, first, &info) && rank != r->root)
                    fail_msg("seed %llu: node %u has forgotten %s", (unsigned long long)seed, rank,
                             first);
                if (rank != r->root && strcmp(info.reason, r->error.text) != 0)
                    fail_msg("seed %llu: node %u says %s, the client %s", (unsigned long long)seed,
                             rank, info.reason, r->error.text);
            }
        }
        sim_free(sim);
    }
    if (anew < seeds / 4)
        fail_msg("%llu of %llu began anew", (unsigned long long)anew, (unsigned long long)seeds);
}

/* An attempt is taken back as nodes are busy, and a link says nothing: who is behind it hears that it is over
 * as soon as the link is down, by another way. */
static void a_verdict_is_lost(void **state)
{
    static const struct spec spec = {.algorithm = "auto",
                                     .block_bytes = 100000,
                                     .from = "",
                                     .to = "",
                                     .timeout_ns = 60 * SECONDS};
    uint64_t lost = 0;

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        const struct sim_setup setup = {.dims = "3x3",
                                        .seed = seed,
                                        .latency = 100 * MICROSECONDS,
                                        .rate = 12500000,
                                        .memory = 1000000};
        struct sim *sim = sim_new(&setup);
        struct sim_request *r[9];
        struct exchange_info info;
        char first[EXCHANGE_ID_SIZE];
        sim_run_until_whole(sim);
        for (uint32_t root = 0; root < 9; root++)
            r[root] = sim_exchange(sim, root, &spec);
        (void)snprintf(first, sizeof first, "%s", exchange_id(r[0]->exchange));
        sim_pass(sim, 150 * MICROSECONDS);
        sim_set_wire(sim, 0, torus_port(1, 1), SIM_WIRE_SILENT); /* to node 1 */
        sim_pass(sim, 100 * MILLISECONDS);
        if (sim_info(sim, 1, first, &info) && !exchange_has_ended(info.state) &&
            !sim_info(sim, 0, first, &info)) {
            lost++;
            sim_pass(sim, 2 * SECONDS); /* a second of silence, and what follows */
            if (sim_info(sim, 1, first, &info) && !exchange_has_ended(info.state))
                fail_msg("seed %llu: %s is still %s", (unsigned long long)seed, first,
                         exchange_state_name(info.state));
        }
        for (uint32_t root = 0; root < 9; root++)
            must_complete(r[root], &spec);
        sim_free(sim);
    }
    if (lost < seeds / 8)
        fail_msg("%llu of %llu lost a verdict", (unsigned long long)lost,
                 (unsigned long long)seeds);
}

/* A link that is up again before anybody far away has heard of it: its ends say so. */
static void a_link_flaps(void **state)
{
    static const struct spec spec = {
        .algorithm = "auto", .block_bytes = 200000, .from = "", .to = ""};

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 3; seed++) {
        struct sim *sim = begin(7 * seed); /* 4x4 */
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
        must_complete(r, &spec);
        sim_free(sim);
    }
}

static bool link_is_up(struct sim *sim, void *context)
{
    const uint32_t *rank = context;
    return topology_link_up(router_topology(sim_router(sim, *rank)), *rank, torus_port(0, 1));
}

/* One of the two links of node 4 comes up, which the root hears over five nodes; then the other one goes
 * down, which its neighbour says. */
static void what_comes_up_may_be_heard_late(void **state)
{
    static const struct spec spec = {
        .algorithm = "auto", .block_bytes = 4000000, .from = "", .to = ""};
    static const struct sim_setup setup = {
        .dims = "8", .seed = 1, .latency = 1 * MILLISECONDS, .rate = 50000000};
    struct sim *sim = sim_new(&setup);
    uint32_t near = 3;

    (void)state;
    sim_run_until_whole(sim);
    struct sim_request *r = sim_exchange(sim, 6, &spec);
    sim_pass(sim, 100 * MILLISECONDS);
    sim_set_wire(sim, near, torus_port(0, 1), SIM_WIRE_CUT);
    sim_pass(sim, 500 * MILLISECONDS);
    sim_set_wire(sim, near, torus_port(0, 1), SIM_WIRE_UP);
    assert_true(sim_run(sim, 10 * SECONDS, link_is_up, &near));
    sim_set_wire(sim, 4, torus_port(0, 1), SIM_WIRE_CUT);
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    assert_string_equal(r->error.text, "");
    assert_int_equal(r->result.reroutes, 2);
    must_complete(r, &spec);
    sim_free(sim);
}

/* More than run at once, at a node whose link goes and comes back while they wait for their turn. */
static void while_they_wait(void **state)
{
    static const struct spec spec = {
        .algorithm = "auto", .block_bytes = 50000, .from = "", .to = ""};

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 3; seed++) {
        struct sim *sim = begin(7 * seed);
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
            must_complete(r[i], &spec);
        sim_free(sim);
    }
}

/* None of its links is up: it fails by its name on every node, at once if the process has died. */
static void a_node_dies(void **state)
{
    static const struct spec large[] = {
        {.algorithm = "auto", .block_bytes = 1000000, .from = "", .to = ""},
        {.algorithm = "auto", .from = "/same/1000000", .to = "/a"},
    };

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = begin(seed);
        const struct spec *spec = &large[sim_any(sim, 2)];
        uint32_t nodes = sim_torus(sim)->nodes, root = sim_any(sim, nodes), victim;
        struct exchange_info info;
        char name[40];
        do
            victim = sim_any(sim, nodes);
        while (victim == root);
        (void)snprintf(name, sizeof name, "node %u is down", victim);
        struct sim_request *r = sim_exchange(sim, root, spec);
        sim_pass(sim, sim_any(sim, 4000) * MICROSECONDS);
        bool power = sim_any(sim, 2) == 0;
        sim_kill(sim, victim, power ? SIM_POWER : SIM_CRASH);
        uint64_t died = sim_now(sim);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        if (strstr(r->error.text, name) == NULL)
            fail_msg("seed %llu: %s, not %s", (unsigned long long)seed, r->error.text, name);
        assert_true(sim_now(sim) - died < (power ? 10 : 1) * SECONDS);
        (void)check_agreement(r, spec);
        for (uint32_t rank = 0; rank < nodes; rank++)
            if (!power && rank != victim && sim_info(sim, rank, r->id, &info) &&
                (info.state != EXCHANGE_FAILED || strstr(info.reason, name) == NULL))
                fail_msg("seed %llu, node %u: %s", (unsigned long long)seed, rank, info.reason);
        sim_restart(sim, victim);
        check_next_exchange(sim, root);
        sim_free(sim);
    }
}

/* --- exchanges that shrink --- */

/* With and without files; of one round, several, or a session. */
static struct spec any_to_shrink(struct sim *sim)
{
    struct spec spec = specs[sim_any(sim, sizeof specs / sizeof specs[0])];

    spec.shrink = true;
    return spec;
}

static void check_shrunk(struct sim_request *r, const struct spec *spec)
{
    struct spec chosen = *spec;

    chosen.algorithm = r->result.algorithm;
    check_success(r, &chosen);
}

static uint32_t count_bits(uint64_t bits)
{
    return (uint32_t)__builtin_popcountll(bits);
}

/* The nodes (bits) that cannot be reached without those that are dead and the links that are cut. */
static uint64_t out_of_reach(struct sim *sim, uint32_t root, uint64_t dead,
                             const struct damage *cut)
{
    uint32_t nodes = sim_torus(sim)->nodes;
    uint8_t parent[64];
    struct damage d;
    uint64_t result = 0;

    assert_int_equal(damage_copy(&d, cut, NULL), 0);
    for (uint32_t rank = 0; rank < nodes; rank++)
        if ((dead & UINT64_C(1) << rank) != 0)
            damage_add_node(&d, rank);
    assert_int_equal(tree_find(&d, root, parent, NULL), 0);
    for (uint32_t rank = 0; rank < nodes; rank++)
        if (rank != root && parent[rank] == TREE_NONE)
            result |= UINT64_C(1) << rank;
    damage_free(&d);
    return result;
}

/* Nobody who lives is left out, unless all of its links are cut or lead to dead nodes; and nobody who is
 * dead is needed, be they killed one after the other or together. */
static void nodes_down_before(uint64_t seed)
{
    struct sim *sim = begin(seed);
    uint32_t nodes = sim_torus(sim)->nodes, root = sim_any(sim, nodes), kills = 1 + sim_any(sim, 3);
    const struct spec spec = any_to_shrink(sim);
    bool together = sim_any(sim, 2) == 0, cut_one = sim_any(sim, 3) == 0;
    uint64_t dead = 0;
    struct damage d;

    assert_int_equal(damage_init(&d, sim_torus(sim), NULL), 0);
    if (cut_one)
        cut(sim, &d);
    for (uint32_t i = 0; i < kills; i++) {
        uint32_t victim = sim_any(sim, nodes);
        if (victim == root)
            continue;
        sim_kill(sim, victim, sim_any(sim, 2) == 0 ? SIM_POWER : SIM_CRASH);
        dead |= UINT64_C(1) << victim;
        if (!together)
            sim_pass(sim, 5 * SECONDS);
    }
    if (together && sim_any(sim, 2) == 0) /* else it may begin with nodes that are dead */
        sim_pass(sim, 5 * SECONDS);
    struct sim_request *r = sim_exchange(sim, root, &spec);
    if (!sim_run_until_ended(r, 100 * SECONDS))
        fail_msg("seed %llu: %s does not end", (unsigned long long)seed, r->id);
    uint64_t away = out_of_reach(sim, root, dead, &d);
    if (r->error.code == ERROR_NONE) {
        check_shrunk(r, &spec);
        if (sim_missing(r) != away || (away != dead && !cut_one))
            fail_msg("seed %llu: without %llx, not %llx", (unsigned long long)seed,
                     (unsigned long long)sim_missing(r), (unsigned long long)away);
    } else if (r->error.code != ERROR_LINK ||
               strstr(r->error.text, "the torus is in parts") == NULL ||
               (away == dead && 2 * count_bits(dead) < nodes)) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, r->error.text);
    }
    assert_true(check_agreement(r, &spec) || r->error.code != ERROR_NONE);
    damage_free(&d);
    sim_heal(sim);
    struct sim_request *next = sim_exchange(sim, root, &spec); /* with those that have come back */
    assert_true(sim_run_until_ended(next, 100 * SECONDS));
    sim_run_until_whole(sim);
    for (uint32_t rank = 0; rank < nodes; rank++)
        if ((dead & UINT64_C(1) << rank) != 0 && sim_leftover(sim, rank) != NULL)
            fail_msg("node %u has %s", rank, sim_leftover(sim, rank));
    check_next_exchange(sim, root);
    sim_free(sim);
}

static void without_nodes_that_are_down(void **state)
{
    (void)state;
    with_seeds(nodes_down_before);
}

static uint32_t left_out; /* of all seeds */

/* At any time until it has been decided to commit. The victim comes back, sometimes while it goes on
 * without it, and keeps nothing of it. */
static void a_node_dies_meanwhile(uint64_t seed)
{
    static const struct spec large[] = {
        {.algorithm = "auto", .block_bytes = 300000, .from = "", .to = "", .shrink = true},
        {.algorithm = "auto",
         .block_bytes = 3000,
         .from = "",
         .to = "",
         .shrink = true,
         .repeat = 9},
        {.algorithm = "auto", .from = "/same/300000", .to = "/a", .shrink = true},
        {.algorithm = "auto", .from = "/random/3000", .to = "/b", .shrink = true},
    };
    struct sim *sim = begin(seed);
    uint32_t nodes = sim_torus(sim)->nodes, root = sim_any(sim, nodes), victim;
    const struct spec *spec = &large[sim_any(sim, 4)];

    do
        victim = sim_any(sim, nodes);
    while (victim == root);
    struct sim_request *r = sim_exchange(sim, root, spec);
    sim_pass(sim, sim_any(sim, 12000) * MICROSECONDS);
    sim_kill(sim, victim, sim_any(sim, 4) == 0 ? SIM_POWER : SIM_CRASH);
    bool soon = sim_any(sim, 3) == 0;
    if (soon) {
        sim_pass(sim, sim_any(sim, 200) * MILLISECONDS);
        sim_restart(sim, victim);
    }
    if (!sim_run_until_ended(r, 100 * SECONDS))
        fail_msg("seed %llu: %s does not end", (unsigned long long)seed, r->id);
    uint64_t one = UINT64_C(1) << victim;
    if (r->error.code == ERROR_NONE) {
        check_shrunk(r, spec);
        if ((sim_missing(r) & ~one) != 0)
            fail_msg("seed %llu: without %llx", (unsigned long long)seed,
                     (unsigned long long)sim_missing(r));
        left_out += sim_missing(r) != 0;
    } else if (r->error.code != ERROR_IN_DOUBT || spec->to[0] == '\0') { /* decided before */
        fail_msg("seed %llu: %s", (unsigned long long)seed, r->error.text);
    }
    if (!soon)
        sim_restart(sim, victim);
    sim_run_until_whole(sim);
    if (!sim_run(sim, 30 * SECONDS, has_no_leftover, NULL))
        fail_msg("seed %llu: leftovers", (unsigned long long)seed);
    if (spec->to[0] != '\0' && r->error.code == ERROR_NONE)
        assert_int_equal(sim_output(sim, victim, r->id),
                         sim_missing(r) != 0 ? SIM_OUTPUT_NONE : SIM_OUTPUT_FINAL);
    check_next_exchange(sim, root);
    sim_free(sim);
}

static void while_nodes_die(void **state)
{
    (void)state;
    left_out = 0;
    with_seeds(a_node_dies_meanwhile);
    if (left_out < seeds / 4)
        fail_msg("%u of %llu runs leave a node out", left_out, (unsigned long long)seeds);
}

/* On a line, what is behind a dead node lives. */
static void those_left_are_in_parts(void **state)
{
    static const struct spec spec = {
        .algorithm = "auto", .block_bytes = 100, .from = "", .to = "", .shrink = true};
    const struct sim_setup setup = {.dims = "6m", .seed = 1, .latency = 100 * MICROSECONDS};
    struct sim *sim = sim_new(&setup);

    (void)state;
    sim_run_until_whole(sim);
    sim_kill(sim, 4, SIM_CRASH);
    sim_pass(sim, 100 * MILLISECONDS);
    for (uint32_t root = 0; root < 6; root++) {
        if (root == 4)
            continue;
        struct sim_request *r = sim_exchange(sim, root, &spec);
        assert_true(sim_run_until_ended(r, 10 * SECONDS));
        assert_int_equal(r->error.code, ERROR_LINK);
        assert_non_null(strstr(r->error.text, "the torus is in parts"));
    }
    sim_restart(sim, 4);
    sim_run_until_whole(sim);
    sim_kill(sim, 5, SIM_CRASH); /* at the end of the line it separates nobody */
    sim_pass(sim, 100 * MILLISECONDS);
    struct sim_request *r = sim_exchange(sim, 2, &spec);
    assert_true(sim_run_until_ended(r, 10 * SECONDS));
    check_success(r, &spec);
    assert_int_equal(sim_missing(r), 1 << 5);
    sim_free(sim);
}

/* Neither half of a ring takes the other one for dead, though all that it hears is the same. */
static void halves_do_not_shrink(void **state)
{
    static const struct spec spec = {
        .algorithm = "auto", .block_bytes = 100, .from = "", .to = "", .shrink = true};
    const struct sim_setup setup = {.dims = "4", .seed = 1, .latency = 100 * MICROSECONDS};
    struct sim *sim = sim_new(&setup);

    (void)state;
    sim_run_until_whole(sim);
    sim_set_wire(sim, 0, torus_port(0, 1), SIM_WIRE_CUT);
    sim_set_wire(sim, 2, torus_port(0, 1), SIM_WIRE_CUT);
    sim_pass(sim, 100 * MILLISECONDS);
    for (uint32_t root = 0; root < 4; root++) {
        struct sim_request *r = sim_exchange(sim, root, &spec);
        assert_true(sim_run_until_ended(r, 10 * SECONDS));
        assert_int_equal(r->error.code, ERROR_LINK);
        assert_non_null(strstr(r->error.text, "the torus is in parts"));
    }
    sim_heal(sim);
    check_next_exchange(sim, 0);
    sim_free(sim);
}

static void only_by_auto(void **state)
{
    static const struct spec refused[] = {
        {.algorithm = "stream", .block_bytes = 10, .from = "", .to = "", .shrink = true},
        {.algorithm = "auto",
         .operation = OPERATION_ALLGATHER,
         .block_bytes = 10,
         .from = "",
         .to = "",
         .shrink = true}};
    struct sim *sim = begin(0);

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sim_request *r = sim_exchange(sim, 3, &refused[i]);
        assert_true(r->ended);
        assert_int_equal(r->error.code, ERROR_USAGE);
        assert_non_null(strstr(r->error.text, "only exchanges with algorithm auto can leave out"));
    }
    check_next_exchange(sim, 3);
    sim_free(sim);
}

/* A barrier needs no routes; all else says what it needs. */
static void barriers_and_others(void **state)
{
    static const struct spec barrier = {
        .operation = OPERATION_BARRIER, .algorithm = "auto", .from = "", .to = "", .barrier = "b"};
    static const struct spec others[] = {
        {.algorithm = "stream", .block_bytes = 10, .from = "", .to = ""},
        {.algorithm = "auto",
         .operation = OPERATION_ALLGATHER,
         .block_bytes = 10,
         .from = "",
         .to = ""},
        {.algorithm = "auto",
         .operation = OPERATION_BROADCAST,
         .block_bytes = 10,
         .from = "",
         .to = ""}};
    struct sim *sim = begin(0);
    struct sim_request *entered[16];
    struct damage d;
    struct error e;

    (void)state;
    assert_int_equal(damage_init(&d, sim_torus(sim), &e), 0);
    cut(sim, &d);
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
        assert_non_null(
            strstr(r->error.text, "only barriers, groups, and exchanges with algorithm auto"));
    }
    damage_free(&d);
    sim_heal(sim);
    check_next_exchange(sim, 5);
    sim_free(sim);
}

/* Until the last one enters it. */
static void links_change_before_a_barrier(uint64_t seed)
{
    static const struct spec barrier = {
        .operation = OPERATION_BARRIER, .algorithm = "auto", .from = "", .to = "", .barrier = "b"};
    struct sim *sim = begin(seed);
    uint32_t nodes = sim_torus(sim)->nodes, last = sim_any(sim, nodes);
    struct sim_request *entered[16];
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
        entered[rank] = sim_exchange(sim, rank, &barrier);
        if (rank == last)
            break;
        sim_pass(sim, sim_any(sim, 20000) * MICROSECONDS);
        if (sim_any(sim, 3) == 0)
            change(sim, &d);
    }
    for (uint32_t rank = 0; rank < nodes; rank++)
        if (!sim_run_until_ended(entered[rank], 60 * SECONDS) ||
            entered[rank]->error.code != ERROR_NONE)
            fail_msg("node %u: %s", rank,
                     entered[rank]->ended ? entered[rank]->error.text : "does not end");
    damage_free(&d);
    sim_heal(sim);
    check_next_exchange(sim, last);
    sim_free(sim);
}

static void before_a_barrier(void **state)
{
    (void)state;
    with_seeds(links_change_before_a_barrier);
}

/* The same of files, which are larger than what moves at a time. What comes is the rest, over ways of any length. */
static void files_that_have_arrived_stay(void **state)
{
    static const struct spec kinds[] = {
        {.algorithm = "auto", .from = "/same/200000", .to = "/a"},
        {.algorithm = "auto", .from = "/random/300000", .to = "/b"},
        {.algorithm = "auto", .from = "/same/60000", .to = "/c"},
    };
    static const char *const dims[] = {"4x4", "3x3", "2x3", "2x2x2", "5"};

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 2; seed++) {
        const struct sim_setup setup = {.dims = dims[seed % 5],
                                        .seed = seed,
                                        .latency = 100 * MICROSECONDS,
                                        .rate = 12500000,
                                        .memory = seed % 4 < 2 ? 4u << 20 : 0,
                                        .chop = true};
        const struct spec *spec = &kinds[seed % 3];
        struct sim *sim = sim_new(&setup);
        struct spec before = *spec;
        struct damage d;
        sim_run_until_whole(sim);
        const struct torus *t = sim_torus(sim);
        uint64_t all = 0;
        for (uint32_t from = 0; from < t->nodes; from++)
            for (uint32_t to = 0; to < t->nodes; to++)
                all += from != to ? sim_block_size(spec->from, from, to) : 0;
        assert_int_equal(damage_init(&d, t, NULL), 0);
        before.to = "/before";
        struct sim_request *whole = sim_exchange(sim, 0, &before);
        must_complete(whole, &before);
        assert_int_equal(whole->result.kept_bytes, 0);

        uint32_t cuts = setup.dims[1] == '\0' ? 1 : 1 + sim_any(sim, 2);
        struct sim_request *r = sim_exchange(sim, sim_any(sim, t->nodes), spec);
        sim_pass(sim, 1 * MILLISECONDS); /* files are opened */
        for (uint32_t left = cuts; left > 0; left--) {
            sim_pass(sim, whole->result.nanoseconds / 2);
            change_or_cut(sim, &d, false);
        }
        must_complete(r, spec);
        assert_in_range(r->result.reroutes, 1, cuts);
        if (r->result.kept_bytes < all / 10 || r->result.kept_bytes >= all)
            fail_msg("seed %llu: %llu of %llu bytes were kept", (unsigned long long)seed,
                     (unsigned long long)r->result.kept_bytes, (unsigned long long)all);
        assert_int_equal(r->result.bytes_delivered, all);
        uint64_t rest = all - r->result.kept_bytes;
        if (sent(r) < rest || sent(r) >= sent(whole))
            fail_msg("seed %llu: %llu bytes are sent for %llu, %llu for %llu",
                     (unsigned long long)seed, (unsigned long long)sent(r),
                     (unsigned long long)rest, (unsigned long long)sent(whole),
                     (unsigned long long)all);
        assert_true(r->result.nanoseconds > whole->result.nanoseconds);
        if (!sim_run(sim, 1 * SECONDS, has_no_leftover, NULL))
            fail_msg("seed %llu: leftovers", (unsigned long long)seed);
        damage_free(&d);
        sim_free(sim);
    }
}

static bool is_between(struct sim *sim, void *context)
{
    const struct sim_request *r = context;
    struct exchange_progress progress;

    (void)sim;
    if (r->exchange == NULL)
        return true;
    exchange_progress(r->exchange, &progress);
    return progress.state == EXCHANGE_WAITING;
}

enum { CANCELLED, ROOT_DIES, NODE_DIES, NODE_IS_RESTARTED, CHANGED, FULL, LEFT_OUT, BETWEENS };

/* Between two attempts at an exchange of files, of which much has arrived. Nothing of it stays where it ends. */
static void something_happens_between(uint64_t seed, uint32_t ends[BETWEENS])
{
    const struct sim_setup setup = {.dims = "3x4",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 12500000,
                                    .memory = 4u << 20,
                                    .chop = true};
    uint32_t what = (uint32_t)(seed % BETWEENS);
    const struct spec spec = {.algorithm = "auto",
                              .from = seed % 2 == 0 ? "/random/600000" : "/same/300000",
                              .to = "/a",
                              .shrink = what == LEFT_OUT};
    struct sim *sim = sim_new(&setup);
    uint32_t nodes = sim_torus(sim)->nodes, root = sim_any(sim, nodes);
    uint32_t victim = (root + 1 + sim_any(sim, nodes - 1)) % nodes;
    struct damage d;

    sim_run_until_whole(sim);
    assert_int_equal(damage_init(&d, sim_torus(sim), NULL), 0);
    struct sim_request *r = sim_exchange(sim, root, &spec);
    sim_pass(sim, 20 * MILLISECONDS + sim_any(sim, 40) * MILLISECONDS);
    if (sim_any(sim, 3) == 0)
        sim_disk_slow(sim, sim_any(sim, nodes), 20 * MILLISECONDS);
    change(sim, &d);
    if (!sim_run(sim, 20 * SECONDS, is_between, r) || r->exchange == NULL)
        fail_msg("seed %llu: it does not begin anew", (unsigned long long)seed);
    if (sim_any(sim, 2) == 0) /* else all may not have heard of it */
        sim_pass(sim, 2 * MILLISECONDS);
    switch (what) {
    case CANCELLED:
        sim_cancel(r);
        break;
    case ROOT_DIES:
        sim_kill(sim, root, sim_any(sim, 3));
        break;
    case NODE_DIES:
    case NODE_IS_RESTARTED:
    case LEFT_OUT:
        sim_kill(sim, victim, sim_any(sim, 3));
        if (what == NODE_IS_RESTARTED)
            sim_restart(sim, victim);
        break;
    case CHANGED:
        sim_disk_fail(sim, victim, SIM_DISK_CHECK);
        break;
    default:
        sim_disk_full(sim, victim, true);
        break;
    }
    if (what == ROOT_DIES) {
        sim_pass(sim, 5 * SECONDS);
        sim_restart(sim, root);
    } else {
        if (!sim_run_until_ended(r, 100 * SECONDS))
            fail_msg("seed %llu: %s does not end", (unsigned long long)seed, r->id);
        if (r->error.code == ERROR_NONE)
            ends[what]++;
        if (what == CHANGED &&
            (r->error.code != ERROR_DAMAGED || strstr(r->error.text, "was changed") == NULL))
            fail_msg("seed %llu: %s", (unsigned long long)seed, r->error.text);
        if (what == LEFT_OUT && r->error.code == ERROR_NONE)
            check_shrunk(r, &spec);
        if (what == NODE_DIES || what == LEFT_OUT)
            sim_restart(sim, victim);
    }
    sim_heal(sim);
    /* Long before it would go by itself. */
    if (!sim_run(sim, 4 * SECONDS, has_no_leftover, NULL))
        fail_msg("seed %llu: leftovers after %s", (unsigned long long)seed, r->error.text);
    damage_free(&d);
    check_next_exchange(sim, root);
    sim_free(sim);
}

static void between_two_attempts(void **state)
{
    uint32_t ends[BETWEENS] = {0};

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        something_happens_between(seed, ends);
    assert_int_equal(ends[CANCELLED] + ends[CHANGED] + ends[NODE_DIES], 0);
    assert_true(ends[LEFT_OUT] > 0 || seeds < 2 * BETWEENS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(around_what_is_down),
        cmocka_unit_test(while_it_runs),
        cmocka_unit_test(a_node_dies_link_by_link),
        cmocka_unit_test(a_verdict_is_lost),
        cmocka_unit_test(a_link_flaps),
        cmocka_unit_test(what_comes_up_may_be_heard_late),
        cmocka_unit_test(while_they_wait),
        cmocka_unit_test(a_node_dies),
        cmocka_unit_test(barriers_and_others),
        cmocka_unit_test(before_a_barrier),
        cmocka_unit_test(without_nodes_that_are_down),
        cmocka_unit_test(while_nodes_die),
        cmocka_unit_test(those_left_are_in_parts),
        cmocka_unit_test(halves_do_not_shrink),
        cmocka_unit_test(only_by_auto),
        cmocka_unit_test(what_has_arrived_stays),
        cmocka_unit_test(files_that_have_arrived_stay),
        cmocka_unit_test(between_two_attempts),
    };
    if (argc > 2) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = strtoull(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
