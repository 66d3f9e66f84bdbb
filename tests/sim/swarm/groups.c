/* Groups of programs: what they call, what must hold of them. What each call must deliver is checked
 * by tests/sim/programs.c.
 *
 * - Nothing but a fault, a program that dies, leaves early or calls otherwise than the others, or a
 *   timeout fails a group; a program that is late, or leaves after its last call, does not.
 * - All programs that are told of a failure are told the same; unless links or nodes have failed: see
 *   must_agree() in invariants.c.
 * - Where nothing else is slow or broken, all are told within a second of a program's death, and no
 *   group stands still; else not longer than the faults last, and a while.
 * - What programs call differently fails the group: if not before each of them has all its calls
 *   complete and has left (nobody waits for a reduce_scatter from which it gets nothing), then when
 *   they have gone, at one node at least.
 * - While the torus is connected, a group that is opened works on what is left of it.
 * - A group whose programs shrink it works on the nodes that are left, whenever they die. It goes on around
 *   links that go down then: it is not shrunk again.
 * - What is parked is within what the group has reserved, which is within the node's budget; all of it
 *   is given back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/exchange/internal.h"
#include "daemon/group/data/operation.h"
#include "daemon/group/record/limits.h"
#include "tests/sim/checks.h"
#include "tests/sim/swarm/swarm.h"

enum { STREAM_GROUPS = 32, STREAM_PROGRAM_FAULTS, STREAM_HOLES, STREAM_DEATHS };

#define STANDSTILL (20 * SECONDS)
#define AGAIN_TIME (60 * SECONDS)
#define AROUND_TIME (600 * SECONDS)
#define KNOWN_TIME (10 * SECONDS) /* all nodes have heard of a link by then */
/* One end may still believe in a connection that the other has lost: its program fails, and that of the
 * other waits for it. Later than that both know. */
#define NOTICED_TIME (2 * ROUTER_STALL)

/* --- what they call --- */

/* Bytes at a node that a call moves, at most. */
static uint64_t most_bytes(const struct swarm_world *w, bool large)
{
    uint64_t most = large ? 40 * GROUP_EAGER_MOST : GROUP_EAGER_MOST;

    if (w->setup.rate > 0 && w->setup.rate / 8 < most)
        most = w->setup.rate / 8;
    return most;
}

static uint32_t members_of(const struct torus *t, uint32_t part)
{
    uint32_t members = 1;

    for (unsigned d = 0; d < t->dims; d++)
        members *= part == 0 || (part & 1u << d) != 0 ? t->size[d] : 1;
    return members;
}

struct sim_call swarm_draw_call(const struct swarm_world *w, uint32_t part, struct chance *c)
{
    uint32_t members = members_of(&w->torus, part);
    uint64_t most = most_bytes(w, chance_below(c, 12) == 0);
    struct sim_call call = {
        .operation = sim_any_operation(c),
        .part = part,
        .root = (uint32_t)chance_below(c, members),
        .type = (enum reduction_type)(1 + chance_below(c, REDUCTION_TYPES - 1)),
        .operator=(enum reduction_operator)(1 + chance_below(c, REDUCTION_OPERATORS - 1)),
    };

    if (!reduction_allowed(call.type, call.operator))
        call.operator= REDUCTION_MAX;
    if (call.operation == GROUP_ALLREDUCE || call.operation == GROUP_REDUCE)
        most /= reduction_size(call.type);
    else if (call.operation == GROUP_REDUCE_SCATTER)
        most /= (uint64_t)reduction_size(call.type) * members;
    else if (call.operation != GROUP_BROADCAST)
        most /= members;
    call.size = chance_magnitude(c, 1, most > 0 ? most : 1);
    if (chance_below(c, 8) == 0 || call.operation == GROUP_BARRIER)
        call.size = 0;
    call.in_place = chance_below(c, 3) == 0 && sim_may_be_in_place(call.operation);
    return call;
}

/* Anything, on the whole torus and on parts. */
static void draw_any(const struct swarm_world *w, struct swarm_group *g, struct chance *c)
{
    uint32_t masks = (1u << w->torus.dims) - 2, parts = 0, part[6];
    unsigned calls = (unsigned)chance_magnitude(c, 1, 30);

    for (uint32_t mask = 1; mask <= masks && parts < 6; mask++)
        if (chance_below(c, 2) == 0) {
            part[parts++] = mask;
            g->call[g->setup.calls++] = (struct sim_call){.operation = GROUP_PART, .part = mask};
        }
    for (unsigned i = 0; i < calls; i++) {
        uint64_t at = chance_below(c, parts + 1);
        g->call[g->setup.calls++] = swarm_draw_call(w, at == 0 ? 0 : part[at - 1], c);
    }
    g->setup.shuffle = parts > 0 && chance_below(c, 2) == 0;
}

/* One member ahead of all others, which hear from nobody else; or behind all others, which wait for
 * nobody. */
static void draw_rooted(const struct swarm_world *w, struct swarm_group *g, struct chance *c)
{
    uint32_t root = (uint32_t)chance_below(c, w->torus.nodes);
    unsigned mixed = (unsigned)chance_below(c, 3); /* all broadcasts, all reduces, both */

    for (unsigned i = 0; i < 40; i++) {
        bool reduce = mixed == 1 || (mixed == 2 && chance_below(c, 2) == 0);
        g->call[g->setup.calls++] = (struct sim_call){
            .operation = reduce ? GROUP_REDUCE : GROUP_BROADCAST,
            .root = chance_below(c, 8) == 0 ? (uint32_t)chance_below(c, w->torus.nodes) : root,
            .type = REDUCTION_UINT8,
            .operator= REDUCTION_MAX,
            .in_place = reduce && chance_below(c, 2) == 0,
            .size = chance_magnitude(c, 1, most_bytes(w, false))};
    }
}

static void draw_group(const struct swarm_world *w, struct swarm_group *g, unsigned index,
                       struct chance *c)
{
    uint64_t longest = chance_magnitude(c, 20 * SECONDS, 60 * SECONDS);
    uint64_t shortest = chance_magnitude(c, 1 * MILLISECONDS, 2 * SECONDS);

    g->at = chance_below(c, 4) == 0 ? chance_magnitude(c, 1, 5 * SECONDS) : chance_below(c, 1000);
    (void)snprintf(g->name, sizeof g->name, "g%u", index);
    if (chance_below(c, 5) == 0)
        draw_rooted(w, g, c);
    else
        draw_any(w, g, c);
    g->hurries = chance_below(c, 10) == 0;
    g->setup.seed = chance_word(c);
    g->setup.timeout = g->hurries && chance_below(c, 4) == 0 ? shortest : longest;
    for (unsigned i = 0; i < g->setup.calls && g->hurries; i++)
        if (chance_below(c, 4) == 0)
            g->call[i].timeout = shortest;
    g->setup.depth = g->setup.shuffle ? g->setup.calls : 1 + (uint32_t)chance_below(c, 20);
    g->setup.pause = chance_below(c, 3) == 0 ? 0 : chance_magnitude(c, 1, 1 * SECONDS);
    g->setup.unchecked = chance_below(c, 4) == 0;
    g->setup.lazy = chance_below(c, 3) == 0;
    g->setup.careless = chance_below(c, 4) == 0;
}

void swarm_draw_groups(struct swarm_world *w)
{
    struct chance c = chance_stream(w->seed, STREAM_GROUPS, 0);
    unsigned groups = chance_below(&c, 2) == 0 ? 0 : (unsigned)chance_magnitude(&c, 1, 3);
    unsigned faults = chance_below(&c, 2) == 0 ? 0 : (unsigned)chance_magnitude(&c, 1, 4);
    bool tight = chance_below(&c, 10) == 0, calm = chance_below(&c, 2) == 0;

    if (groups == 0)
        return;
    if (!tight)
        w->setup.memory += (groups * group_memory(&w->torus) * 4 + 2) / 3; /* a quarter is left */
    if (calm) /* the programs alone are to blame */
        w->faults = 0;
    for (unsigned i = 0; i < groups; i++) {
        struct chance own = chance_stream(w->seed, STREAM_GROUPS, 1 + i);
        draw_group(w, &w->group[w->groups++], i, &own);
    }
    for (unsigned i = 0; i < faults && w->faults < SWARM_FAULTS; i++) {
        struct chance own = chance_stream(w->seed, STREAM_PROGRAM_FAULTS, i);
        swarm_draw_fault(&w->fault[w->faults++], w, true, &own);
    }
}

static void print_call(unsigned index, const struct sim_call *call)
{
    (void)fprintf(stderr, "    call %2u: %s", index, group_operation_name(call->operation));
    if (call->part != 0)
        (void)fprintf(stderr, ", part %u", call->part);
    (void)fprintf(stderr, ", size %" PRIu64 ", root %u, type %u, operator %u%s, timeout %.3f s\n",
                  call->size, call->root, (unsigned)call->type, (unsigned)call->operator,
                  call->in_place ? ", in place" : "", (double)call->timeout / 1e9);
}

void swarm_print_groups(const struct swarm_world *w)
{
    for (unsigned i = 0; i < w->groups; i++) {
        const struct swarm_group *g = &w->group[i];
        if ((w->no_group & UINT64_C(1) << i) != 0)
            continue;
        (void)fprintf(stderr,
                      "  group %u: +%.6f s, %u calls, depth %u, pause %.6f s, timeout %.3f "
                      "s%s%s%s%s\n",
                      i, (double)g->at / 1e9, g->setup.calls, g->setup.depth,
                      (double)g->setup.pause / 1e9, (double)g->setup.timeout / 1e9,
                      g->setup.unchecked ? ", unchecked" : "", g->setup.shuffle ? ", shuffled" : "",
                      g->setup.lazy ? ", lazy" : "", g->setup.careless ? ", careless" : "");
        for (unsigned k = 0; k < g->setup.calls; k++)
            print_call(k, &g->call[k]);
    }
}

/* --- their life --- */

static void open_group(struct sim *sim, void *context)
{
    struct swarm_group *g = context;

    g->setup.name = g->name;
    g->setup.call = g->call;
    g->programs = sim_programs_new(sim, &g->setup);
    g->play->outcome->groups++;
    swarm_tell(g->play, "group \"%s\" is opened", g->name);
}

void swarm_open_groups(struct swarm_play *play)
{
    struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->groups; i++) {
        struct swarm_group *g = &w->group[i];
        g->play = play;
        if ((w->no_group & UINT64_C(1) << i) != 0)
            g->over = true;
        else
            sim_at(play->sim, play->began + g->at, open_group, g);
    }
}

bool swarm_groups_over(const struct swarm_play *play)
{
    const struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->groups; i++)
        if (!w->group[i].over)
            return false;
    return true;
}

/* --- what must hold --- */

static bool is_tight(const struct swarm_play *play)
{
    uint64_t memory = play->world->setup.memory, most = memory - memory / 4; /* of one user */

    return most < play->world->groups * group_memory(&play->world->torus) + 192 * 1024;
}

/* Whether something explains that the group has failed. */
static bool may_fail(const struct swarm_play *play, const struct swarm_group *g)
{
    uint64_t now = sim_now(play->sim);

    return now >= sim_harmed_at(play->sim) || now >= sim_programs_disturbed_at(g->programs) ||
           g->hurries || is_tight(play);
}

/* Whatever single link or node fails, the others can still talk to each other. */
static bool stays_connected(const struct torus *t)
{
    for (unsigned dim = 0; dim < t->dims; dim++)
        if (!t->wrap[dim])
            return false;
    return true;
}

static bool must_agree(const struct swarm_play *play, const struct swarm_group *g,
                       const struct error *e)
{
    if (play->harms == 0)
        return true;
    /* After a while of silence both ends of a link know it, each before it hears from the other. */
    return play->harms == 1 && !sim_slowed(play->sim) && g->faults == 0 && !g->hurries &&
           e->code == ERROR_LINK && stays_connected(&play->world->torus);
}

static void check_errors(struct swarm_play *play, struct swarm_group *g)
{
    const struct error *first = NULL;
    uint32_t first_rank = 0;

    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++) {
        const struct error *e = sim_program_error(g->programs, rank);
        if (e->code == ERROR_NONE)
            continue;
        if (!may_fail(play, g))
            sim_violated(play->sim, "no failure without a fault", "group \"%s\", node %u: %s",
                         g->name, rank, e->text);
        if (play->world->find != NULL && strstr(e->text, play->world->find) != NULL)
            sim_violated(play->sim, "found", "group \"%s\", node %u: %s", g->name, rank, e->text);
        if (!sim_program_state(g->programs, rank).open)
            continue; /* who waits for others to open it speaks for itself */
        if (first != NULL && strcmp(first->text, e->text) != 0 && must_agree(play, g, e))
            sim_violated(play->sim, "same error", "node %u is told \"%s\", node %u \"%s\"",
                         first_rank, first->text, rank, e->text);
        if (first == NULL) {
            first = e;
            first_rank = rank;
        }
    }
}

static bool is_calm(const struct swarm_play *play)
{
    return play->harms == 0 && sim_harms(play->sim) == 0 && !sim_slowed(play->sim) &&
           play->delays == 0;
}

static void check_progress(struct swarm_play *play, struct swarm_group *g)
{
    uint64_t now = sim_now(play->sim), moved = sim_programs_moved_at(g->programs);
    bool open = true;
    uint64_t limit = STANDSTILL + g->setup.pause + play->delays;

    if (now < moved + 1 * SECONDS)
        return;
    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++)
        open = open && sim_program_state(g->programs, rank).open;
    limit += open ? 0 : g->setup.timeout;
    if (now <= moved + limit)
        return;
    char text[200] = "";
    size_t used = 0;
    for (uint32_t rank = 0; rank < play->world->torus.nodes && used < sizeof text; rank++) {
        struct sim_program_state p = sim_program_state(g->programs, rank);
        used += (size_t)snprintf(text + used, sizeof text - used, " %u/%u%s", p.completed, p.calls,
                                 p.member ? "" : "-");
    }
    sim_violated(play->sim, "standstill", "group \"%s\"%s: nothing has happened for %.1f s:%s",
                 g->name, sim_programs_mistaken(g->programs) ? ", mistaken" : "",
                 (double)(now - moved) / 1e9, text);
}

/* All hear soon that a program has died, or left what was under way. */
static void check_told_soon(struct swarm_play *play, struct swarm_group *g)
{
    uint64_t transfer = play->world->setup.rate > 0 ? 1 * SECONDS : 0;
    uint64_t due = sim_programs_failed_at(g->programs);

    if (due == UINT64_MAX || !is_calm(play) ||
        sim_now(play->sim) <= due + 1 * SECONDS + 40 * play->world->setup.latency + transfer)
        return;
    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++)
        if (sim_program_state(g->programs, rank).member)
            sim_violated(play->sim, "told soon",
                         "group \"%s\": the program at node %u has not been told", g->name, rank);
}

static void check_over(struct swarm_play *play, struct swarm_group *g)
{
    uint32_t nodes = play->world->torus.nodes, done = sim_programs_done(g->programs);

    for (uint32_t rank = 0; rank < nodes; rank++)
        if (!sim_program_state(g->programs, rank).over)
            return;
    g->over = true;
    for (uint32_t rank = 0; rank < nodes; rank++)
        play->outcome->calls += sim_program_completed(g->programs, rank);
    if (done == nodes)
        play->outcome->groups_done++;
    else
        play->outcome->groups_failed++;
    swarm_tell(play, "group \"%s\" is over: %u of %u programs have made all calls", g->name, done,
               nodes);
    g->passed = done == nodes && sim_programs_mistaken(g->programs);
    if (done < nodes && !may_fail(play, g))
        sim_violated(play->sim, "no failure without a fault", "group \"%s\" is over too early",
                     g->name);
}

/* Its id, as long as its program is there. */
static void note_id(struct swarm_play *play, struct swarm_group *g)
{
    struct group_info info[SWARM_GROUPS + 1];

    if (!sim_alive(play->sim, 0))
        return;
    size_t n = groups_list(sim_groups(play->sim, 0), info, SWARM_GROUPS + 1);
    for (size_t i = 0; i < n; i++)
        if (strcmp(info[i].name, g->name) == 0 && info[i].id[0] != '\0')
            memcpy(g->id, info[i].id, sizeof g->id);
}

/* When all has settled. */
static void check_mistake(struct swarm_play *play, const struct swarm_group *g)
{
    if (!g->passed)
        return;
    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++) {
        const struct exchange *x = sim_alive(play->sim, rank)
                                       ? exchange_find_id(sim_exchanges(play->sim, rank), g->id)
                                       : NULL;
        if (x == NULL || x->state == EXCHANGE_FAILED)
            return; /* it may have been forgotten */
    }
    sim_violated(play->sim, "mistakes", "group \"%s\": nobody has noticed the mistake", g->name);
}

static void check_memory(struct swarm_play *play)
{
    struct group_info info[SWARM_GROUPS + 1];

    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++) {
        uint64_t reserved = 0;
        if (!sim_alive(play->sim, rank))
            continue;
        size_t n = groups_list(sim_groups(play->sim, rank), info, SWARM_GROUPS + 1);
        for (size_t i = 0; i < n; i++) {
            reserved += info[i].reserved;
            if (info[i].parked > group_memory(&play->world->torus))
                sim_violated(play->sim, "bounds", "group \"%s\" parks %" PRIu64 " bytes at node %u",
                             info[i].name, info[i].parked, rank);
        }
        if (reserved > exchanges_reserved(sim_exchanges(play->sim, rank)))
            sim_violated(play->sim, "bounds", "groups use memory that node %u has not reserved",
                         rank);
    }
}

void swarm_check_groups(struct swarm_play *play)
{
    struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->groups; i++) {
        struct swarm_group *g = &w->group[i];
        if (g->programs == NULL || g->over)
            continue;
        note_id(play, g);
        check_errors(play, g);
        check_told_soon(play, g);
        check_progress(play, g);
        check_over(play, g);
    }
    if (w->groups > 0)
        check_memory(play);
}

/* --- at the end --- */

static bool have_all(struct sim *sim, void *context)
{
    return sim_programs_done(context) == sim_torus(sim)->nodes;
}

/* Cuts up to three links, never so that the nodes that are left would be in parts. Returns how many. */
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

/* A part of the group that falls into pieces fails it; all else it goes around. */
static bool all_have_or_must_fail(struct sim *sim, void *context)
{
    struct sim_programs *programs = context;
    uint32_t failed = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        failed += strstr(sim_program_error(programs, rank)->text, "falls into pieces") != NULL;
    return sim_programs_done(programs) + failed == sim_torus(sim)->nodes;
}

/* Once all know of the links that are down, or while they go down, a group works on what is left. */
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
    draw_any(w, &g, &c);
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
        check_mistake(play, &w->group[i]);
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

/* All of them have the same group open, which has left out the others. */
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

/* While programs call, while they shrink the group, or later. */
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
