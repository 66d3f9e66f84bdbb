/* Nodes that die: an exchange fails on every node, with an error that names the dead one, or, if it shrinks, completes
 * among those that are left. */
#include "daemon/lib/schedule/tree.h"
#include "tests/sim/down_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(60 / SIM_SHARE);

/* The links of a node that dies go down one by one: the exchange is retried without the first link, and some nodes
 * hear of the other links before the root does and refuse the attempt. All nodes that knew the first attempt hear why
 * the exchange fails. */
TEST(a_node_dies_link_by_link)
{
    static const struct spec spec =
        GENERATED(.algorithm = "auto", .block_bytes = 200000, .timeout_ns = 20 * SECONDS);
    uint64_t retried = 0;

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = SIM_WHOLE(.dims = "4x4", .seed = seed, .latency = 100 * MICROSECONDS,
                                    .rate = 12500000, .chop = true);
        char first[EXCHANGE_ID_SIZE];
        struct sim_request *r = sim_exchange(sim, sim_any(sim, 15), &spec);
        sim_pass(sim, 10 * MILLISECONDS);
        (void)snprintf(first, sizeof first, "%s", exchange_id(r->exchange));
        sim_set_wire(sim, 15, sim_any(sim, 4), SIM_WIRE_CUT);
        sim_pass(sim, 50 * MILLISECONDS + chance_below(sim_chance(sim), 60 * MILLISECONDS));
        sim_kill(sim, 15, SIM_CRASH);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        if (r->error.code != ERROR_NONE && strcmp(r->id, first) != 0) {
            retried++;
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
    if (retried < seeds / 4)
        fail_msg("%llu of %llu were retried", (unsigned long long)retried,
                 (unsigned long long)seeds);
}

/* The exchange fails on every node, and the error names the dead node; at once if only its process has died. */
TEST(a_node_dies)
{
    static const struct spec large[] = {
        GENERATED(.algorithm = "auto", .block_bytes = 1000000),
        {.algorithm = "auto", .from = "/same/1000000", .to = "/a"},
    };

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = down_begin(seed);
        const struct spec *spec = &large[sim_any(sim, 2)];
        uint32_t nodes = sim_torus(sim)->nodes, root = sim_any(sim, nodes), victim;
        struct exchange_info info;
        char name[40];
        do
            victim = sim_any(sim, nodes);
        while (victim == root);
        (void)snprintf(name, sizeof name, "node %u ", victim);
        struct sim_request *r = sim_exchange(sim, root, spec);
        sim_pass(sim, sim_any(sim, 4000) * MICROSECONDS);
        bool power = sim_any(sim, 2) == 0;
        sim_kill(sim, victim, power ? SIM_POWER : SIM_CRASH);
        uint64_t died = sim_now(sim);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        if (r->error.code != ERROR_LINK || r->error.culprit.kind != CULPRIT_NODE ||
            r->error.culprit.node != victim)
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

/* With or without files; in one round, in several, or repeated. */
static struct spec any_to_shrink(struct sim *sim)
{
    struct spec spec = *down_any_spec(sim);

    spec.shrink = true;
    return spec;
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

/* No live node is left out, unless all of its links are cut or lead to dead nodes; and the exchange does not need dead
 * nodes, whether they were killed one after another or together. */
SIM_SEED_TEST(seeds, down_begin(seed), without_nodes_that_are_down)
{
    uint32_t nodes = sim_torus(sim)->nodes, root = sim_any(sim, nodes), kills = 1 + sim_any(sim, 3);
    const struct spec spec = any_to_shrink(sim);
    bool together = sim_any(sim, 2) == 0, cut_one = sim_any(sim, 3) == 0;
    uint64_t dead = 0;
    struct damage d;

    assert_int_equal(damage_init(&d, sim_torus(sim), NULL), 0);
    if (cut_one)
        down_cut(sim, &d);
    for (uint32_t i = 0; i < kills; i++) {
        uint32_t victim = sim_any(sim, nodes);
        if (victim == root)
            continue;
        sim_kill(sim, victim, sim_any(sim, 2) == 0 ? SIM_POWER : SIM_CRASH);
        dead |= UINT64_C(1) << victim;
        if (!together)
            sim_pass(sim, 5 * SECONDS);
    }
    if (together && sim_any(sim, 2) == 0) /* otherwise the attempt may begin with dead nodes */
        sim_pass(sim, 5 * SECONDS);
    struct sim_request *r = sim_exchange(sim, root, &spec);
    if (!sim_run_until_ended(r, 100 * SECONDS))
        fail_msg("seed %llu: %s does not end", (unsigned long long)seed, r->id);
    uint64_t away = out_of_reach(sim, root, dead, &d);
    if (r->error.code == ERROR_NONE) {
        down_check_success(r, &spec);
        if (sim_missing(r) != away || (away != dead && !cut_one))
            fail_msg("seed %llu: without %llx, not %llx", (unsigned long long)seed,
                     (unsigned long long)sim_missing(r), (unsigned long long)away);
    } else if (!down_is_in_parts(&r->error) || (away == dead && 2 * count_bits(dead) < nodes)) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, r->error.text);
    }
    assert_true(check_agreement(r, &spec) || r->error.code != ERROR_NONE);
    damage_free(&d);
    sim_heal(sim);
    struct sim_request *next = sim_exchange(sim, root, &spec); /* with nodes that have returned */
    assert_true(sim_run_until_ended(next, 100 * SECONDS));
    sim_run_until_whole(sim);
    for (uint32_t rank = 0; rank < nodes; rank++)
        if ((dead & UINT64_C(1) << rank) != 0 && sim_leftover(sim, rank) != NULL)
            fail_msg("node %u has %s", rank, sim_leftover(sim, rank));
    check_next_exchange(sim, root);
}

static uint32_t left_out; /* of all seeds */

static uint32_t left_out; /* in all seeds together */

/* A node dies at any time before the decision to commit. It returns, sometimes while the exchange goes on without it,
 * and keeps nothing of the exchange. */
static void a_node_dies_meanwhile(uint64_t seed)
{
    static const struct spec large[] = {
        GENERATED(.algorithm = "auto", .block_bytes = 300000, .shrink = true),
        GENERATED(.algorithm = "auto", .block_bytes = 3000, .shrink = true, .repeat = 9),
        {.algorithm = "auto", .from = "/same/300000", .to = "/a", .shrink = true},
        {.algorithm = "auto", .from = "/random/3000", .to = "/b", .shrink = true},
    };
    struct sim *sim = down_begin(seed);
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
        down_check_success(r, spec);
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
    if (!sim_run(sim, 30 * SECONDS, down_no_leftover, NULL))
        fail_msg("seed %llu: leftovers", (unsigned long long)seed);
    if (spec->to[0] != '\0' && r->error.code == ERROR_NONE)
        assert_int_equal(sim_output(sim, victim, r->id),
                         sim_missing(r) != 0 ? SIM_OUTPUT_NONE : SIM_OUTPUT_FINAL);
    check_next_exchange(sim, root);
    sim_free(sim);
}

TEST(while_nodes_die)
{
    left_out = 0;
    with_seeds(seeds, a_node_dies_meanwhile);
    if (left_out < seeds / 4)
        fail_msg("%u of %llu runs leave a node out", left_out, (unsigned long long)seeds);
}

/* On a line, the nodes behind a dead node live. */
SIM_TEST(SIM_WHOLE(.dims = "6m", .seed = 1, .latency = 100 * MICROSECONDS), those_left_are_in_parts)
{
    static const struct spec spec =
        GENERATED(.algorithm = "auto", .block_bytes = 100, .shrink = true);

    sim_kill(sim, 4, SIM_CRASH);
    sim_pass(sim, 100 * MILLISECONDS);
    for (uint32_t root = 0; root < 6; root++) {
        if (root == 4)
            continue;
        struct sim_request *r = sim_exchange(sim, root, &spec);
        assert_true(sim_run_until_ended(r, 10 * SECONDS));
        assert_true(down_is_in_parts(&r->error));
    }
    sim_restart(sim, 4);
    sim_run_until_whole(sim);
    sim_kill(sim, 5, SIM_CRASH); /* at the end of the line, it separates no nodes */
    sim_pass(sim, 100 * MILLISECONDS);
    struct sim_request *r = sim_exchange(sim, 2, &spec);
    assert_true(sim_run_until_ended(r, 10 * SECONDS));
    check_success(r, &spec);
    assert_int_equal(sim_missing(r), 1 << 5);
}

/* Neither half of a ring takes the other one for dead, although dead nodes would look the same. */
SIM_TEST(SIM_WHOLE(.dims = "4", .seed = 1, .latency = 100 * MICROSECONDS), halves_do_not_shrink)
{
    static const struct spec spec =
        GENERATED(.algorithm = "auto", .block_bytes = 100, .shrink = true);

    sim_set_wire(sim, 0, torus_port(sim_torus(sim), 0, 1), SIM_WIRE_CUT);
    sim_set_wire(sim, 2, torus_port(sim_torus(sim), 0, 1), SIM_WIRE_CUT);
    sim_pass(sim, 100 * MILLISECONDS);
    for (uint32_t root = 0; root < 4; root++) {
        struct sim_request *r = sim_exchange(sim, root, &spec);
        assert_true(sim_run_until_ended(r, 10 * SECONDS));
        assert_true(down_is_in_parts(&r->error));
    }
    sim_heal(sim);
    check_next_exchange(sim, 0);
}

SIM_TEST(down_begin(0), only_by_auto)
{
    static const struct spec refused[] = {
        GENERATED(.algorithm = "stream", .block_bytes = 10, .shrink = true),
        GENERATED(.algorithm = "auto", .operation = OPERATION_ALLGATHER, .block_bytes = 10,
                  .shrink = true)};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sim_request *r = sim_exchange(sim, 3, &refused[i]);
        assert_true(r->ended);
        assert_int_equal(r->error.code, ERROR_USAGE);
        struct spec spec = refused[i];
        spec.shrink = false; /* everything else about it is right */
        r = sim_exchange(sim, 3, &spec);
        assert_true(sim_run_until_ended(r, 10 * SECONDS));
        down_check_success(r, &spec);
    }
    check_next_exchange(sim, 3);
}
