/* Copies that cannot go on end all the same: nodes that they need are down, stopped or short of memory, or too many
 * copies are made at once. */
#include "tests/sim/copy_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(24 / SIM_SHARE);

#define MANY 48u

/* Without the node that has the trees, nothing can be copied: the copy fails, even if it may leave nodes out. */
static void the_only_reader_dies(uint64_t seed)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
    uint32_t asked = copy_other(sim, r.node);

    copy_tree(sim, r.node, "/from", 3000000);
    r.shrink = true;
    struct sim_copy *c = sim_copy_start(sim, asked, &r);
    if (seed % 2 == 0)
        (void)copy_reaches(c, COPY_MOVING, sim_any(sim, 2000000));
    else
        sim_pass(sim, sim_any(sim, 5000) * MICROSECONDS);
    bool ended = c->ended;
    sim_kill(sim, r.node, (enum sim_death)sim_any(sim, 3));
    sim_copy_run(c, 120 * SECONDS);
    if (!ended && c->error.code == ERROR_NONE)
        for (uint32_t i = 0; i < c->result.outcomes; i++)
            assert_int_equal(c->result.outcome[i].error.code, ERROR_NONE);
    if (c->error.code != ERROR_NONE)
        sim_copy_must_fail(c, ERROR_LINK);
    sim_copies_check(sim);
    copy_end(sim);
}

TEST(a_needed_node_dies)
{
    with_seeds(seeds, the_only_reader_dies);
}

/* A copy that waits for a node ends when its time is over, or when its client leaves; a node that is stopped is waited
 * for as well. */
static void waiting_ends(uint64_t seed)
{
    struct sim *sim = copy_begin(seed);
    struct copy_request r = copy_default(sim_any(sim, sim_torus(sim)->nodes));
    uint32_t victim = copy_other(sim, r.node);

    copy_tree(sim, r.node, "/from", 10000);
    r.wait = true;
    r.timeout_ns = seed % 3 == 0 ? 20 * SECONDS : 0;
    if (seed % 3 == 2)
        sim_freeze(sim, victim, 15 * SECONDS);
    else
        sim_kill(sim, victim, (enum sim_death)sim_any(sim, 3));
    struct sim_copy *c = sim_copy_start(sim, r.node, &r);
    switch (seed % 3) {
    case 0:
        sim_copy_run(c, 30 * SECONDS);
        sim_copy_must_fail(c, ERROR_TIMEOUT);
        break;
    case 1:
        sim_pass(sim, sim_any(sim, 30000) * MILLISECONDS);
        sim_copy_cancel(c);
        break;
    default:
        sim_copy_run(c, 60 * SECONDS);
        sim_copy_must_succeed(c);
    }
    sim_copies_check(sim);
    copy_end(sim);
}

TEST(waiting)
{
    with_seeds(seeds, waiting_ends);
}

static bool all_have_ended(struct sim *sim, void *context)
{
    for (const struct sim_copy *c = sim->copies; c != NULL; c = c->next)
        if (!c->ended)
            return false;
    return true;
}

/* More copies than nodes can take part in, from all nodes at once: some are told that a node is busy, and none waits for
 * ever because another one waits. */
static void many_at_once(uint64_t seed)
{
    struct sim *sim = copy_begin(seed);
    const uint32_t nodes = sim_torus(sim)->nodes;
    uint32_t done = 0;

    for (uint32_t rank = 0; rank < nodes; rank++)
        copy_tree(sim, rank, "/from", 100000);
    for (uint32_t i = 0; i < MANY; i++) {
        char target[] = "/to00";
        struct copy_request r = copy_default(i % nodes);
        target[3] = (char)('0' + i / 10);
        target[4] = (char)('0' + i % 10);
        r.target = target;
        r.user = 1000 + i % 3;
        (void)sim_copy_start(sim, r.node, &r);
    }
    if (!sim_run(sim, 200 * SECONDS, all_have_ended, NULL))
        sim_violated(sim, "ends", "many copies at once do not end");
    for (const struct sim_copy *c = sim->copies; c != NULL; c = c->next) {
        bool busy = c->error.code == ERROR_BUSY;
        if (!busy && c->error.code != ERROR_NONE)
            sim_violated(sim, "busy", "%s", c->error.text);
        done += c->error.code == ERROR_NONE;
    }
    assert_true(done > 0);
    copy_end(sim);
}

TEST(many_copies_at_once)
{
    with_seeds(seeds / 4 + 1, many_at_once);
}

/* A budget that is too small for a group: the client is told so soon. */
TEST(too_little_memory)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds / 4 + 1; seed++) {
        const struct sim_setup setup = {.dims = "3x3",
                                        .seed = seed,
                                        .latency = 100 * MICROSECONDS,
                                        .rate = 125000000,
                                        .memory = 16 * 1024,
                                        .chop = true};
        struct sim *sim = sim_new(&setup);
        sim_run_until_whole(sim);
        struct copy_request r = copy_default(sim_any(sim, 9));
        copy_tree(sim, r.node, "/from", 0);
        struct sim_copy *c = sim_copy_start(sim, r.node, &r);
        sim_copy_run(c, 60 * SECONDS);
        assert_true(c->error.code == ERROR_MEMORY || c->error.code == ERROR_REFUSED ||
                    c->error.code == ERROR_BUSY);
        sim_copies_check(sim);
        sim_free(sim);
    }
}
