/* Copies of trees while links and nodes go down: in each phase, with each reaction that a client can ask for. */
#include "daemon/lib/schedule/damage.h"
#include "tests/sim/copy_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(24 / SIM_SHARE);

#define LARGE 2000000u

/* Starts a copy, and runs it until it is somewhere in this phase. Returns NULL if it has ended before. */
static struct sim_copy *start(struct sim *sim, const struct copy_request *r, enum copy_phase phase)
{
    copy_tree(sim, r->node, "/from", LARGE);
    struct sim_copy *c = sim_copy_start(sim, r->node, r);

    if (!copy_reaches(c, phase, phase == COPY_MOVING ? sim_any(sim, LARGE) : 0))
        return NULL;
    if (phase != COPY_MOVING)
        sim_pass(sim, sim_any(sim, 2) * sim_any(sim, 1500) * MICROSECONDS);
    return c->ended ? NULL : c;
}

/* Whether all nodes stay connected without the link. */
static bool may_be_cut(struct sim *sim, uint32_t rank, unsigned port)
{
    struct damage d;

    assert_int_equal(damage_init(&d, sim_torus(sim), NULL), 0);
    damage_add_link(&d, rank, port);
    bool connected = damage_is_connected(&d, NULL) == 0;
    damage_free(&d);
    return connected;
}

/* A link that goes down in any phase is avoided, and the copy succeeds, even if the link comes back. */
SEED_TEST(seeds / 3 + 1, cuts_in_each_phase)
{
    for (enum copy_phase phase = 0; phase < COPY_PHASES; phase++) {
        struct sim *sim = copy_begin(seed);
        struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
        uint32_t rank;
        unsigned port;
        r.wait = true;
        copy_any_link(sim, &rank, &port);
        struct sim_copy *c = start(sim, &r, phase);
        bool cut = may_be_cut(sim, rank, port);
        sim_set_wire(sim, rank, port, sim_any(sim, 2) == 0 ? SIM_WIRE_CUT : SIM_WIRE_SILENT);
        if (!cut || sim_any(sim, 2) == 0) {
            sim_pass(sim, sim_any(sim, 10000) * MILLISECONDS);
            sim_set_wire(sim, rank, port, SIM_WIRE_UP);
        }
        if (c != NULL) {
            sim_copy_run(c, 120 * SECONDS);
            sim_copy_must_succeed(c);
        }
        copy_end(sim);
    }
}

/* A node that is not needed to connect the others; never the asked one. */
static uint32_t a_victim(struct sim *sim, uint32_t asked)
{
    struct damage d;
    uint32_t victim;

    assert_int_equal(damage_init(&d, sim_torus(sim), NULL), 0);
    do
        victim = copy_other(sim, asked);
    while (!check_may_die(&d, victim) && sim_torus(sim)->nodes > 2);
    damage_free(&d);
    return victim;
}

static bool names(const char *text, uint32_t node)
{
    char name[20];

    (void)snprintf(name, sizeof name, "node %u", node);
    const char *at = strstr(text, name);
    return at != NULL && (at[strlen(name)] < '0' || at[strlen(name)] > '9');
}

/* By default the copy fails, with an error that names the node, or has ended before; it can be made again. */
SEED_TEST(seeds / 3 + 1, deaths_in_each_phase)
{
    for (enum copy_phase phase = 0; phase < COPY_PHASES; phase++) {
        struct sim *sim = copy_begin(seed);
        struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
        uint32_t victim = a_victim(sim, r.node);
        struct sim_copy *c = start(sim, &r, phase);
        sim_kill(sim, victim, (enum sim_death)sim_any(sim, 3));
        if (c != NULL) {
            sim_copy_run(c, 60 * SECONDS);
            if (c->error.code != ERROR_NONE)
                sim_copy_must_fail(c, ERROR_LINK);
            if (c->error.code != ERROR_NONE && !names(c->error.text, victim))
                sim_violated(sim, "errors", "node %u has died, and the error is: %s", victim,
                             c->error.text);
            if (c->error.code == ERROR_NONE && phase < COPY_PLACING)
                sim_violated(sim, "fails", "a node has died in phase %u", (unsigned)phase);
        }
        sim_copies_check(sim);
        sim_restart(sim, victim);
        sim_run_until_whole(sim);
        struct sim_copy *again = sim_copy_whole(sim, r.node, &r);
        sim_copy_must_succeed(again);
        copy_end(sim);
    }
}

/* With shrink, the others get their trees. */
SEED_TEST(seeds / 3 + 1, others_go_on_without_a_node)
{
    for (enum copy_phase phase = 0; phase < COPY_PHASES; phase++) {
        struct sim *sim = copy_begin(seed);
        struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
        uint32_t victim = a_victim(sim, r.node);
        if (sim_torus(sim)->nodes < 3) {
            sim_free(sim);
            return;
        }
        r.shrink = true;
        struct sim_copy *c = start(sim, &r, phase);
        sim_kill(sim, victim, (enum sim_death)sim_any(sim, 3));
        if (c != NULL) {
            sim_copy_run(c, 120 * SECONDS);
            sim_copy_must_succeed(c);
            assert_true(c->result.absents <= 1);
            if (phase < COPY_PLACING)
                assert_int_equal(c->result.absents, 1);
            if (c->result.absents == 1)
                assert_int_equal(c->result.absent[0], victim);
        }
        copy_end(sim);
    }
}

/* With wait, the copy waits until the node is back, and completes at all nodes. What had arrived is not sent again. */
SEED_TEST(seeds / 3 + 1, nodes_are_waited_for)
{
    for (enum copy_phase phase = 0; phase < COPY_PHASES; phase++) {
        struct sim *sim = copy_begin(seed);
        struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
        uint32_t victim = copy_other(sim, r.node);
        r.wait = true;
        struct sim_copy *c = start(sim, &r, phase);
        sim_kill(sim, victim, SIM_CRASH);
        for (int i = 0; i < 10; i++) {
            sim_pass(sim, sim_any(sim, 2000) * MILLISECONDS);
            if (c != NULL && !c->ended && !sim_copy_is_listed(c))
                sim_violated(sim, "waits", "a copy that waits is not listed");
        }
        if (c != NULL && c->ended && phase < COPY_PLACING)
            sim_violated(sim, "waits", "a copy has not waited for a node: %s",
                         c->error.code != ERROR_NONE ? c->error.text : "success");
        sim_restart(sim, victim);
        if (c != NULL) {
            sim_copy_run(c, 120 * SECONDS);
            sim_copy_must_succeed(c);
        }
        copy_end(sim);
    }
}

/* If the asked node dies, all agents end. */
SEED_TEST(seeds / 3 + 1, asked_nodes_that_die)
{
    for (enum copy_phase phase = 0; phase < COPY_PHASES; phase++) {
        struct sim *sim = copy_begin(seed);
        struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
        r.shrink = seed % 3 == 1;
        r.wait = seed % 3 == 2;
        (void)start(sim, &r, phase);
        sim_kill(sim, r.node, (enum sim_death)sim_any(sim, 3));
        sim_copies_check(sim);
        sim_restart(sim, r.node);
        sim_run_until_whole(sim);
        sim_copy_must_succeed(sim_copy_whole(sim, r.node, &r));
        copy_end(sim);
    }
}

/* Nodes that were down before the copy: it fails, shrinks or waits. */
SEED_TEST(seeds / 3 + 1, a_node_is_down_before)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
    uint32_t victim = a_victim(sim, r.node);
    if (sim_torus(sim)->nodes < 3) {
        sim_free(sim);
        return;
    }
    copy_tree(sim, r.node, "/from", 10000);
    sim_kill(sim, victim, SIM_CRASH);
    sim_pass(sim, 10 * SECONDS);
    sim_copy_must_fail(sim_copy_whole(sim, r.node, &r), ERROR_LINK);
    r.shrink = true;
    struct sim_copy *shrunk = sim_copy_whole(sim, r.node, &r);
    sim_copy_must_succeed(shrunk);
    assert_int_equal(shrunk->result.absents, 1);
    assert_int_equal(shrunk->result.absent[0], victim);
    r.shrink = false;
    r.wait = true;
    struct sim_copy *waits = sim_copy_start(sim, r.node, &r);
    sim_pass(sim, 20 * SECONDS);
    assert_false(waits->ended);
    sim_restart(sim, victim);
    sim_copy_run(waits, 60 * SECONDS);
    sim_copy_must_succeed(waits);
    assert_int_equal(waits->result.bytes_sent, waits->result.bytes_all);
    copy_end(sim);
}
