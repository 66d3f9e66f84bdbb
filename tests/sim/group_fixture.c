#include "tests/sim/group_fixture.h"

#include "daemon/lib/schedule/damage.h"
#include "tests/sim/events.h"
#include "tests/support/cmocka.h"

struct sim *group_sim(const char *dims, uint64_t seed)
{
    return SIM_WHOLE(.dims = dims, .seed = seed, .latency = 50 * MICROSECONDS, .rate = 125000000,
                     .shared = seed % 2 == 1, .chop = true);
}

static const struct sim_call steady[] = {
    {.operation = GROUP_ALLTOALL, .size = 100},
    {
        .operation = GROUP_ALLREDUCE,
        .size = 10,
        .type = REDUCTION_FLOAT64,
        .operator= REDUCTION_SUM },
        {.operation = GROUP_BARRIER},
        {.operation = GROUP_ALLTOALL, .size = 40000},
        {.operation = GROUP_BROADCAST, .size = 3000, .root = 1},
        {.operation = GROUP_ALLTOALLV, .size = 500},
        {.operation = GROUP_ALLGATHER, .size = 200},
        {.operation = GROUP_ALLTOALL, .size = 100},
    };
_Static_assert(sizeof steady / sizeof *steady == GROUP_STEADY_CALLS, "as the header says");

static struct sim_programs *start_steady(struct sim *sim, uint64_t seed, bool trace)
{
    const struct sim_programs_setup setup = {.name = "g",
                                             .call = steady,
                                             .calls = GROUP_STEADY_CALLS,
                                             .seed = seed,
                                             .depth = 1 + (uint32_t)(seed % 3),
                                             .pause = 3 * MILLISECONDS,
                                             .stay = true,
                                             .trace = trace};

    return sim_programs_new(sim, &setup);
}

struct sim_programs *group_start_steady(struct sim *sim, uint64_t seed)
{
    return start_steady(sim, seed, false);
}

struct sim_programs *group_start_steady_traced(struct sim *sim, uint64_t seed)
{
    return start_steady(sim, seed, true);
}

bool group_all_completed(struct sim *sim, void *context)
{
    const struct sim_programs *p = context;
    return sim_programs_done(p) == sim_torus(sim)->nodes;
}

bool group_have_failed(struct sim *sim, void *context)
{
    const struct group_awaited *a = context;

    return sim_programs_failed(a->programs) >= a->failed;
}

void group_check_failed(struct sim *sim, struct sim_programs *programs, uint32_t count,
                        uint64_t most, enum error_code code, const char *words)
{
    struct group_awaited a = {programs, count};
    const struct error *first = NULL;

    if (!sim_run(sim, most, group_have_failed, &a))
        sim_violated(sim, "failure", "only %u of %u programs have been told",
                     sim_programs_failed(programs), count);
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        const struct error *e = sim_program_error(programs, rank);
        if (e->code == ERROR_NONE)
            continue;
        if (first == NULL)
            first = e;
        if (strcmp(first->text, e->text) != 0 || first->code != e->code)
            sim_violated(sim, "failure", "\"%s\" and \"%s\"", first->text, e->text);
    }
    if (first->code != code || strstr(first->text, words) == NULL)
        sim_violated(sim, "failure", "\"%s\" (%s), not with \"%s\"", first->text,
                     error_name(first->code), words);
}

void group_check_reopens(struct sim *sim, uint64_t seed)
{
    struct sim_programs *again = group_start_steady(sim, seed + 1000);

    if (!sim_run(sim, 60 * SECONDS, group_all_completed, again))
        sim_violated(sim, "again", "a new group does not work");
    sim_programs_free(again);
}

bool group_cut(struct sim *sim, uint32_t node, unsigned port)
{
    const struct torus *t = sim_torus(sim);
    struct damage d;

    while (torus_neighbour(t, node, port) == TORUS_NO_NODE)
        port = (port + 1) % torus_ports(t);
    sim_set_wire(sim, node, port, SIM_WIRE_CUT);
    assert_int_equal(damage_init(&d, t, NULL), 0);
    damage_add_link(&d, node, port);
    bool connected = damage_is_connected(&d, NULL) == 0;
    damage_free(&d);
    return connected;
}

uint32_t group_any(struct sim *sim, uint32_t below)
{
    return (uint32_t)chance_below(sim_chance(sim), below);
}
