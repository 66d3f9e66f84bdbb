/* Barriers and groups that clients enter while a node goes down: all clients that wait for it hear of that, even if the
 * root has withdrawn attempts in between. */
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/programs.h"
#include "tests/support/cmocka.h"

SEEDS(SIM_SHARE > 1 ? 120 : 400);

#define NODES 9u
#define VICTIM 1u
/* Far more than it takes to hear that a node is down, and far less than any timeout here. */
#define HEARD_TIME (20 * SECONDS)

static void kill_victim(struct sim *sim, void *unused)
{
    sim_kill(sim, VICTIM, SIM_CRASH);
}

static void cut_victim_off(struct sim *sim, void *unused)
{
    for (unsigned port = 0; port < torus_ports(sim_torus(sim)); port++)
        if (torus_neighbour(sim_torus(sim), VICTIM, port) != TORUS_NO_NODE)
            sim_set_wire(sim, VICTIM, port, SIM_WIRE_CUT);
}

/* At a moment when some clients have entered and others have not. */
static struct sim *new_sim(uint64_t seed, void (*harm)(struct sim *, void *))
{
    struct sim *sim = SIM_WHOLE(.dims = "3mx3m", .seed = seed, .latency = 100 * MICROSECONDS,
                                .rate = 12500000, .chop = true);

    sim_at(sim, sim_now(sim) + chance_below(sim_chance(sim), 3 * MILLISECONDS), harm, NULL);
    return sim;
}

/* A program that could not open the group hears whether others may have opened it; tests/sim/programs.c checks that
 * none does after it was told that none can. */
static void check_opening(void (*harm)(struct sim *, void *))
{
    static const struct sim_call call = {.operation = GROUP_BARRIER};
    unsigned doubts = 0, certain = 0, beside_open = 0;

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = new_sim(seed, harm);
        unsigned open = 0, in_doubt = 0;
        const struct sim_programs_setup setup = {
            .name = "g", .call = &call, .calls = 1, .seed = seed, .depth = 1, .pause = 2000000};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        if (!sim_programs_run(programs, HEARD_TIME))
            sim_violated(sim, "entered", "a program waits for a node that is down");
        for (uint32_t rank = 0; rank < NODES; rank++) {
            const struct error *e = sim_program_error(programs, rank);
            bool opened = sim_program_state(programs, rank).open;
            open += opened;
            in_doubt += !opened && e->code == ERROR_IN_DOUBT;
            certain += !opened && e->code == ERROR_LINK;
        }
        doubts += in_doubt;
        beside_open += in_doubt > 0 && open > 0;
        sim_programs_free(programs);
        sim_free(sim);
    }
    assert_true(beside_open > 0); /* both cases have happened */
    assert_true(certain > doubts);
}

TEST(a_group_is_opened)
{
    check_opening(kill_victim);
}

TEST(a_group_is_opened_and_a_node_is_cut_off)
{
    check_opening(cut_victim_off);
}

/* When each client enters the barrier. */
struct arrivals {
    struct sim_request *request[NODES];
    unsigned next;
};

static void enter(struct sim *sim, void *context)
{
    static const struct spec spec =
        GENERATED(.operation = OPERATION_BARRIER, .algorithm = SPEC_AUTO, .barrier = "b",
                  .timeout_ns = 1000 * SECONDS);
    struct arrivals *a = context;
    uint32_t rank = a->next++;

    if (sim_alive(sim, rank))
        a->request[rank] = sim_exchange(sim, rank, &spec);
}

static bool all_have_heard(struct sim *sim, void *context)
{
    const struct arrivals *a = context;

    for (uint32_t rank = 0; rank < NODES; rank++)
        if (sim_alive(sim, rank) && (a->request[rank] == NULL || !a->request[rank]->ended))
            return false;
    return true;
}

SIM_SEED_TEST(seeds, new_sim(seed, kill_victim), a_barrier_is_entered)
{
    struct arrivals a = {.next = 0};
    for (uint32_t rank = 0; rank < NODES; rank++)
        sim_at(sim, sim_now(sim) + chance_below(sim_chance(sim), 1 * MILLISECONDS), enter, &a);
    if (!sim_run(sim, HEARD_TIME, all_have_heard, &a))
        sim_violated(sim, "entered", "a client waits for a node that is down");
}
