#include "tests/sim/shrink_fixture.h"

#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/internal.h"
#include "tests/support/cmocka.h"

static const char *const tori[] = {"4x4", "3x3", "2x3", "5",   "4mx3",  "2x2x2",
                                   "3x5", "2x2", "3",   "2x4", "3mx3m", "7"};

uint32_t shrink_any(struct shrink_play *p, uint32_t below)
{
    return group_any(p->sim, below);
}

bool shrink_is_dead(const struct shrink_play *p, uint32_t rank)
{
    return p->down.gone[rank];
}

uint32_t shrink_living(const struct shrink_play *p)
{
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < sim_torus(p->sim)->nodes; rank++)
        n += !shrink_is_dead(p, rank);
    return n;
}

uint32_t shrink_first_dead(const struct shrink_play *p)
{
    uint32_t rank = 0;

    while (!shrink_is_dead(p, rank))
        rank++;
    return rank;
}

static bool are_open(struct sim *sim, void *context)
{
    const struct shrink_play *p = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (!shrink_is_dead(p, rank) && !sim_program_state(p->programs, rank).open)
            return false;
    return true;
}

/* How a node reports its group, open or not. */
static void look_at(struct sim *sim, uint32_t rank, bool open)
{
    struct group_info info[2] = {{.open = false}};
    size_t groups = groups_list(sim_groups(sim, rank), info, 2);

    if (groups > 1 || (open && (groups == 0 || !info[0].open)) ||
        (groups == 1 && info[0].open && info[0].missing[0] != '\0'))
        sim_violated(sim, "status", "node %u: %zu groups, %s", rank, groups, info[0].missing);
}

bool shrink_have_all(struct sim *sim, void *context)
{
    const struct shrink_play *p = context;
    const uint32_t nodes = sim_torus(sim)->nodes;

    for (uint32_t rank = 0; rank < nodes; rank++)
        if (sim_alive(sim, rank))
            look_at(sim, rank, false);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        if (shrink_is_dead(p, rank))
            continue;
        if (sim_program_completed(p->programs, rank) < p->setup.calls)
            return false;
        for (uint32_t node = 0; node < nodes; node++)
            if (sim_program_is_without(p->programs, rank, node) != shrink_is_dead(p, node))
                return false;
    }
    return true;
}

void shrink_check(struct shrink_play *p, bool good, const char *what)
{
    for (uint32_t rank = 0; rank < sim_torus(p->sim)->nodes; rank++)
        if (!shrink_is_dead(p, rank) && sim_program_error(p->programs, rank)->code != ERROR_NONE)
            sim_violated(p->sim, "shrink", "%s: node %u: %s", what, rank,
                         sim_program_error(p->programs, rank)->text);
    if (!good)
        sim_violated(p->sim, "shrink", "%s", what);
}

void shrink_must_complete(struct shrink_play *p, const char *what)
{
    bool good = sim_run(p->sim, 600 * SECONDS, shrink_have_all, p);

    shrink_check(p, good, what);
}

struct shrink_play shrink_begin(uint64_t seed, uint64_t pause)
{
    struct shrink_play p = {.seed = seed};

    p.sim = group_sim(tori[seed % (sizeof tori / sizeof tori[0])], seed);
    assert_int_equal(damage_init(&p.down, sim_torus(p.sim), NULL), 0);
    p.setup = (struct sim_programs_setup){.name = "g",
                                          .calls = CALLS_MOST,
                                          .seed = seed,
                                          .depth = 1 + shrink_any(&p, 8),
                                          .pause = pause,
                                          .unchecked = shrink_any(&p, 4) == 0,
                                          .lazy = shrink_any(&p, 3) == 0,
                                          .shrinks = true,
                                          .stay = true};
    for (uint32_t i = 0; i < CALLS_MOST; i++)
        p.call[i] = sim_any_call(sim_chance(p.sim), sim_torus(p.sim));
    return p;
}

void shrink_open_all(struct shrink_play *p)
{
    p->setup.call = p->call;
    p->programs = sim_programs_new(p->sim, &p->setup);
    shrink_check(p, sim_run(p->sim, 60 * SECONDS, are_open, p), "opening");
}

void shrink_end(struct shrink_play *p)
{
    sim_programs_free(p->programs);
    assert_true(sim_run(p->sim, 60 * SECONDS, sim_is_quiet, NULL));
    damage_free(&p->down);
    sim_free(p->sim);
}

bool shrink_kill_one(struct shrink_play *p)
{
    const uint32_t nodes = sim_torus(p->sim)->nodes;
    uint32_t first = 0;

    while (shrink_is_dead(p, first))
        first++;
    for (unsigned tries = 0; tries < 20; tries++) {
        uint32_t victim = shrink_any(p, 2) == 0 ? first : shrink_any(p, nodes);
        if (!check_may_die(&p->down, victim))
            continue;
        damage_add_node(&p->down, victim);
        sim_kill(p->sim, victim, (enum sim_death)shrink_any(p, 3));
        return true;
    }
    return false;
}

void shrink_cut_one(struct shrink_play *p)
{
    const struct torus *t = sim_torus(p->sim);

    for (unsigned tries = 0; tries < 50; tries++) {
        uint32_t rank = shrink_any(p, t->nodes);
        unsigned port = shrink_any(p, torus_ports(t));
        struct damage d;
        if (!damage_has_link(&p->down, rank, port))
            continue;
        assert_int_equal(damage_copy(&d, &p->down, NULL), 0);
        damage_add_link(&d, rank, port);
        bool together = damage_is_connected(&d, NULL) == 0;
        damage_free(&d);
        if (!together)
            continue;
        damage_add_link(&p->down, rank, port);
        sim_set_wire(p->sim, rank, port, SIM_WIRE_CUT);
        return;
    }
}

void shrink_mend_one(struct shrink_play *p)
{
    const struct torus *t = sim_torus(p->sim);
    uint32_t rank = shrink_any(p, t->nodes);
    unsigned port = shrink_any(p, torus_ports(t));
    uint32_t there = torus_neighbour(t, rank, port);

    if (there == TORUS_NO_NODE || shrink_is_dead(p, rank) || shrink_is_dead(p, there) ||
        damage_has_link(&p->down, rank, port))
        return;
    sim_set_wire(p->sim, rank, port, SIM_WIRE_UP);
    p->down.dead[rank] &= ~(1u << port);
    p->down.dead[there] &= ~(1u << torus_port_opposite(t, port));
}

bool shrink_have_shrunk(struct sim *sim, void *context)
{
    const struct shrinking *s = context;
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        n +=
            !shrink_is_dead(s->play, rank) && sim_program_state(s->play->programs, rank).shrunk > 0;
    return n >= s->programs;
}

uint32_t shrink_times(const struct shrink_play *p)
{
    uint32_t times = 0;

    for (uint32_t rank = 0; rank < sim_torus(p->sim)->nodes; rank++)
        times += shrink_is_dead(p, rank) ? 0 : sim_program_state(p->programs, rank).shrunk;
    return times;
}

bool shrink_are_by_themselves(struct sim *sim, void *context)
{
    const struct shrink_play *p = context;
    struct group_info first = {.open = false};

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info;
        if (shrink_is_dead(p, rank))
            continue;
        if (groups_list(sim_groups(sim, rank), &info, 1) != 1 || !info.open ||
            (first.open && strcmp(info.id, first.id) != 0))
            return false;
        first = info;
        for (uint32_t node = 0; node < sim_torus(sim)->nodes; node++)
            if (sim_program_is_without(p->programs, rank, node) != shrink_is_dead(p, node))
                return false;
    }
    return true;
}

void shrink_must_be(struct shrink_play *p, bool (*how)(struct sim *sim, void *context),
                    const char *what)
{
    bool good = sim_run(p->sim, 600 * SECONDS, how, p);

    shrink_check(p, good, what);
}
