/* Checks of groups when everything works again: a new group works; a group avoids links that are cut, and goes on
 * without nodes that die. */
#include <string.h>

#include "daemon/torusd/group/state.h"
#include "tests/sim/checks.h"
#include "tests/sim/swarm/groups.h"

#define AGAIN_TIME (60 * SECONDS)
#define AROUND_TIME (600 * SECONDS)
#define KNOWN_TIME (10 * SECONDS) /* all nodes have heard of a link by then */
/* One end may still rely on a connection that the other end has lost: its program fails, and the program of the other
 * end waits for it. After this time, both ends know. */
#define NOTICED_TIME (2 * ROUTER_STALL)

static bool have_all(struct sim *sim, void *context)
{
    return sim_programs_done(context) == sim_torus(sim)->nodes;
}

/* Cuts up to three links, never so that the remaining nodes are in parts. Returns the number. */
static unsigned cut_links(struct swarm_play *play, const struct damage *down, struct chance *c)
{
    const struct torus *t = &play->world->torus;
    unsigned wanted = 1 + (unsigned)chance_below(c, 3), cut = 0;
    struct damage d, tried;
    struct error e;

    if (damage_copy(&d, down, &e) != 0)
        sim_violated(play->sim, "memory", "%s", e.text);
    for (unsigned tries = 0; tries < 20 && cut < wanted; tries++) {
        uint32_t rank = (uint32_t)chance_below(c, t->nodes);
        unsigned port = (unsigned)chance_below(c, torus_ports(t));
        if (!damage_has_link(&d, rank, port))
            continue;
        if (damage_copy(&tried, &d, &e) != 0)
            sim_violated(play->sim, "memory", "%s", e.text);
        damage_add_link(&tried, rank, port);
        bool connected = damage_is_connected(&tried, &e) == 0;
        damage_free(&tried);
        if (!connected)
            continue;
        damage_add_link(&d, rank, port);
        sim_set_wire(play->sim, rank, port, SIM_WIRE_CUT);
        cut++;
    }
    damage_free(&d);
    return cut;
}

/* A part that is no longer connected fails the group; otherwise the group avoids the links. */
static bool all_have_or_must_fail(struct sim *sim, void *context)
{
    struct sim_programs *programs = context;
    uint32_t failed = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        failed += strstr(sim_program_error(programs, rank)->text, "is not connected") != NULL;
    return sim_programs_done(programs) + failed == sim_torus(sim)->nodes;
}

/* A group works without the links that are down, once all nodes know of them, or while they go down. */
static void end_with_holes(struct swarm_play *play)
{
    const struct swarm_world *w = play->world;
    struct chance c = chance_stream(w->seed, STREAM_HOLES, 0);
    struct swarm_group g = {.setup = {.name = "holes", .call = g.call, .seed = w->seed}};
    struct damage none;
    struct error e;

    if (damage_init(&none, &w->torus, &e) != 0)
        sim_violated(play->sim, "memory", "%s", e.text);
    bool later = chance_below(&c, 2) == 0;
    if (!later && cut_links(play, &none, &c) == 0) {
        damage_free(&none);
        return;
    }
    sim_pass(play->sim, KNOWN_TIME);
    swarm_draw_calls(w, &g, &c);
    g.setup.depth = g.setup.shuffle ? g.setup.calls : 1 + (uint32_t)chance_below(&c, 20);
    g.setup.lazy = chance_below(&c, 3) == 0;
    struct sim_programs *programs = sim_programs_new(play->sim, &g.setup);
    if (later) {
        sim_pass(play->sim, chance_magnitude(&c, 1, 1 * SECONDS));
        (void)cut_links(play, &none, &c);
    }
    damage_free(&none);
    if (!sim_run(play->sim, AROUND_TIME, all_have_or_must_fail, programs))
        sim_violated(play->sim, "around", "a group does not work without a few links: %s",
                     sim_program_error(programs, 0)->text);
    (void)sim_programs_run(programs, AGAIN_TIME);
    sim_programs_free(programs);
    sim_heal(play->sim);
    sim_run_until_whole(play->sim);
}

void swarm_end_groups(struct swarm_play *play)
{
    static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 10},
                                            {.operation = GROUP_BARRIER},
                                            {.operation = GROUP_BROADCAST, .size = 100}};
    const struct sim_programs_setup setup = {
        .name = "g0", .call = calls, .calls = 3, .seed = play->world->seed, .depth = 2};
    struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->groups; i++)
        if (w->group[i].programs != NULL)
            sim_programs_free(w->group[i].programs);
    if (w->groups == 0 || w->setup.memory < group_memory(&w->torus) ||
        !sim_run(play->sim, AGAIN_TIME, sim_is_quiet, NULL))
        return;
    for (unsigned i = 0; i < w->groups; i++)
        swarm_check_mistake(play, &w->group[i]);
    struct sim_programs *again = sim_programs_new(play->sim, &setup);
    if (!sim_run(play->sim, NOTICED_TIME, have_all, again)) {
        sim_programs_free(again);
        (void)sim_run(play->sim, AGAIN_TIME, sim_is_quiet, NULL);
        again = sim_programs_new(play->sim, &setup);
    }
    if (!sim_run(play->sim, AGAIN_TIME, have_all, again))
        sim_violated(play->sim, "again", "a new group does not work: %s",
                     sim_program_error(again, 0)->text);
    (void)sim_programs_run(again, AGAIN_TIME);
    sim_programs_free(again);
    end_with_holes(play);
}

struct dying {
    struct sim_programs *programs;
    uint32_t calls;
    struct damage down;
};

static bool living_have_all(struct sim *sim, void *context)
{
    const struct dying *d = context;
    const uint32_t nodes = sim_torus(sim)->nodes;

    for (uint32_t rank = 0; rank < nodes; rank++) {
        if (d->down.gone[rank])
            continue;
        if (sim_program_completed(d->programs, rank) < d->calls)
            return false;
        for (uint32_t node = 0; node < nodes; node++)
            if (sim_program_is_without(d->programs, rank, node) != d->down.gone[node])
                return false;
    }
    return true;
}

static bool living_have_opened(struct sim *sim, void *context)
{
    const struct dying *d = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (!d->down.gone[rank] && !sim_program_state(d->programs, rank).open)
            return false;
    return true;
}

/* Whether all of these nodes have the same open group, without the others. */
static bool living_are_by_themselves(struct sim *sim, void *context)
{
    const struct dying *d = context;
    const uint32_t nodes = sim_torus(sim)->nodes;
    struct group_info first = {.open = false};

    for (uint32_t rank = 0; rank < nodes; rank++) {
        struct group_info info;
        if (d->down.gone[rank])
            continue;
        if (groups_list(sim_groups(sim, rank), &info, 1) != 1 || !info.open ||
            (first.open && strcmp(info.id, first.id) != 0))
            return false;
        first = info;
        for (uint32_t node = 0; node < nodes; node++)
            if (sim_program_is_without(d->programs, rank, node) != d->down.gone[node])
                return false;
    }
    return true;
}

static uint32_t times_shrunk(const struct dying *d, uint32_t nodes)
{
    uint32_t times = 0;

    for (uint32_t rank = 0; rank < nodes; rank++)
        times += d->down.gone[rank] ? 0 : sim_program_state(d->programs, rank).shrunk;
    return times;
}

static void must_go_on(struct swarm_play *play, struct dying *d,
                       bool (*how)(struct sim *sim, void *context))
{
    if (sim_run(play->sim, AROUND_TIME, how, d))
        return;
    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++)
        if (!d->down.gone[rank])
            sim_violated(play->sim, "deaths", "a group does not go on without some nodes: %s",
                         sim_program_error(d->programs, rank)->text);
}

/* Links go down while programs call, while they shrink the group, or later. */
static void let_them_die(struct swarm_play *play, struct dying *d, struct chance *c)
{
    const uint32_t nodes = play->world->torus.nodes;

    for (uint64_t left = 1 + chance_below(c, 2); left > 0; left--) {
        uint32_t victim = (uint32_t)chance_below(c, nodes);
        sim_pass(play->sim, chance_magnitude(c, 1, 10 * SECONDS));
        if (!check_may_die(&d->down, victim))
            continue;
        swarm_tell(play, "node %u dies", victim);
        damage_add_node(&d->down, victim);
        sim_kill(play->sim, victim, (enum sim_death)chance_below(c, 3));
    }
}

void swarm_end_deaths(struct swarm_play *play)
{
    const struct swarm_world *w = play->world;
    struct chance c = chance_stream(w->seed, STREAM_DEATHS, 0);
    struct swarm_group g = {
        .setup = {
            .name = "deaths", .call = g.call, .seed = w->seed, .shrinks = true, .stay = true}};
    struct dying d = {0};
    struct error e;

    if (w->groups == 0 || w->setup.memory < group_memory(&w->torus) || sim_has_lied(play->sim) ||
        !sim_run(play->sim, AGAIN_TIME, sim_is_quiet, NULL))
        return;
    for (uint64_t calls = chance_magnitude(&c, 1, 20); calls > 0; calls--)
        g.call[g.setup.calls++] = swarm_draw_call(w, 0, &c);
    g.setup.depth = 1 + (uint32_t)chance_below(&c, 20);
    g.setup.lazy = chance_below(&c, 3) == 0;
    g.setup.pause = chance_below(&c, 2) == 0 ? 0 : chance_magnitude(&c, 1, 1 * SECONDS);
    g.setup.unchecked = chance_below(&c, 4) == 0;
    if (damage_init(&d.down, &w->torus, &e) != 0)
        sim_violated(play->sim, "memory", "%s", e.text);
    d.calls = g.setup.calls;
    d.programs = sim_programs_new(play->sim, &g.setup);
    if (!sim_run(play->sim, AROUND_TIME, living_have_opened, &d))
        sim_violated(play->sim, "deaths", "a group is not opened");
    let_them_die(play, &d, &c);
    bool cuts = chance_below(&c, 2) == 0;
    uint32_t shrunk = 0;
    if (cuts) {
        must_go_on(play, &d, living_are_by_themselves);
        shrunk = times_shrunk(&d, w->torus.nodes);
        sim_pass(play->sim, chance_magnitude(&c, 1, 1 * SECONDS));
        if (cut_links(play, &d.down, &c) > 0)
            swarm_tell(play, "links go down under those that are left");
    }
    must_go_on(play, &d, living_have_all);
    if (cuts && times_shrunk(&d, w->torus.nodes) != shrunk)
        sim_violated(play->sim, "deaths", "a group is shrunk again because of a link");
    sim_programs_free(d.programs);
    damage_free(&d.down);
    sim_heal(play->sim);
    sim_run_until_whole(play->sim);
    (void)sim_run(play->sim, AGAIN_TIME, sim_is_quiet, NULL);
}
