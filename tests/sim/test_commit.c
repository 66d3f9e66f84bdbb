/* All outputs or none: nodes die at every stage of an exchange of folders, and in the moments around the decision. When
 * all nodes have returned, either all outputs are in place or none. */
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/support/cmocka.h"

SEEDS(1);

/* Both engines, in turn. */
static struct spec spec_of(uint64_t seed)
{
    return (struct spec){
        .algorithm = seed % 2 == 0 ? "at2" : "stream", .from = "/random/3000", .to = "/a"};
}

struct stage {
    uint32_t victim;
    enum sim_death death;
    const char *id;
    enum exchange_state state;
};

static bool kill_in_state(struct sim *sim, void *context)
{
    const struct stage *stage = context;
    struct exchange_info info;

    if (!sim_alive(sim, stage->victim) || !sim_info(sim, stage->victim, stage->id, &info) ||
        info.state != stage->state)
        return false;
    sim_kill(sim, stage->victim, stage->death);
    return true;
}

static void die_in_state(uint64_t seed, uint32_t victim, enum exchange_state state,
                         enum sim_death death)
{
    const struct spec spec = spec_of(seed);
    struct sim *sim = SIM_WHOLE(.dims = "3x4", .seed = seed, .latency = 100 * MICROSECONDS,
                                .rate = 12500000, .chop = true);

    struct sim_request *r = sim_exchange(sim, 0, &spec);
    struct stage stage = {victim, death, r->id, state};
    if (!kill_in_state(sim, &stage))
        sim_watch(sim, kill_in_state, &stage);
    sim_pass(sim, 1 * SECONDS);
    assert_false(sim_alive(sim, victim));
    bool committed = check_agreement(r, &spec);
    if (state < EXCHANGE_DONE)
        assert_false(committed);
    sim_restart(sim, victim);
    check_doubts_end(sim, r->id);
    if (state == EXCHANGE_COMMITTING || state == EXCHANGE_COMMITTED)
        assert_true(sim_decided(sim, 0, r->id));
    check_next_exchange(sim, victim);
    sim_free(sim);
}

static void die_in_states(uint32_t victim, const enum exchange_state *state, size_t states)
{
    for (size_t i = 0; i < states; i++)
        for (enum sim_death death = SIM_STOP; death <= SIM_POWER; death++)
            for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
                die_in_state(seed, victim, state[i], death);
}

TEST(the_root_dies_at_every_stage)
{
    static const enum exchange_state states[] = {EXCHANGE_PREPARING, EXCHANGE_RUNNING,
                                                 EXCHANGE_COMMITTING, EXCHANGE_COMMITTED};

    die_in_states(0, states, sizeof states / sizeof states[0]);
}

TEST(another_node_dies_at_every_stage)
{
    static const enum exchange_state states[] = {EXCHANGE_PREPARING,  EXCHANGE_READY,
                                                 EXCHANGE_RUNNING,    EXCHANGE_DONE,
                                                 EXCHANGE_COMMITTING, EXCHANGE_COMMITTED};

    die_in_states(4, states, sizeof states / sizeof states[0]);
    /* A leaf of the tree is ready as soon as it is asked. */
    die_in_states(6, states + 1, 3);
    die_in_states(6, states + 5, 1);
}

/* The root decides, and dies before any message about it has left. All other nodes are in doubt, on a large torus all
 * at the same time; their questions must not multiply. */
static void decided_and_dead(const char *dims, uint64_t seed)
{
    const struct spec spec = spec_of(seed);
    struct sim *sim =
        SIM_WHOLE(.dims = dims, .seed = seed, .latency = 100 * MICROSECONDS, .chop = true);
    uint32_t nodes = sim_torus(sim)->nodes, root = (uint32_t)seed % nodes;

    struct sim_request *r = sim_exchange(sim, root, &spec);
    sim_crash_when_decided(sim, root);
    sim_pass(sim, 10 * SECONDS);
    assert_false(sim_alive(sim, root));
    assert_false(check_agreement(r, &spec));
    for (uint32_t rank = 0; rank < nodes; rank++)
        assert_int_equal(sim_output(sim, rank, r->id), SIM_OUTPUT_TEMPORARY);
    sim_restart(sim, root);
    sim_run_until_whole(sim);
    uint64_t frames = sim_frames(sim);
    check_doubts_end(sim, r->id);
    sim_pass(sim, 10 * SECONDS);
    /* Each node asks once or twice, and each question and answer crosses each link once or twice; and there are
     * heartbeats. */
    uint64_t links = (uint64_t)nodes * sim_torus(sim)->dims;
    assert_in_range(sim_frames(sim) - frames, 1, links * 2 * (2 * 2 * nodes + 40));
    check_next_exchange(sim, root);
    sim_free(sim);
}

TEST(a_decision_survives_its_root)
{
    for (uint64_t seed = first_seed; seed < first_seed + 3 * seeds; seed++)
        decided_and_dead("3x4", seed);
}

TEST(many_nodes_in_doubt_do_not_flood_the_torus)
{
    decided_and_dead("8x8", first_seed + 5);
    if (seeds > 1)
        decided_and_dead("12x12", first_seed + 6);
}

/* A node that was down during the decision hears the outcome when it returns. */
SIM_SEED_TEST(3 * seeds,
              SIM_WHOLE(.dims = "3x4", .seed = seed, .latency = 100 * MICROSECONDS,
                        .rate = 12500000, .chop = true),
              a_node_that_was_cut_off_learns_the_outcome)
{
    const struct spec spec = spec_of(seed);
    struct sim_request *r = sim_exchange(sim, 0, &spec);
    struct exchange_info info = {0};
    while (info.state != EXCHANGE_DONE) {
        sim_pass(sim, 5 * MICROSECONDS);
        assert_true(sim_info(sim, 5, r->id, &info) || sim_now(sim) < 3 * SECONDS);
    }
    for (unsigned port = 0; port < 4; port++)
        sim_set_wire(sim, 5, port, seed % 2 == 0 ? SIM_WIRE_CUT : SIM_WIRE_SILENT);
    (void)check_agreement(r, &spec);
    assert_true(sim_info(sim, 5, r->id, &info));
    assert_int_equal(info.state, EXCHANGE_IN_DOUBT);
    for (unsigned port = 0; port < 4; port++)
        sim_set_wire(sim, 5, port, SIM_WIRE_UP);
    check_doubts_end(sim, r->id);
    check_next_exchange(sim, 5);
}
