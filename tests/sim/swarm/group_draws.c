/* Random calls for the programs of a world. */
#include <inttypes.h>
#include <stdio.h>

#include "daemon/torusd/group/operations/operations.h"
#include "daemon/torusd/group/state.h"
#include "tests/sim/swarm/groups.h"

/* The most bytes that a call moves at a node. */
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
        call.operator= REDUCTION_SUM;
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

/* Any operations, on the whole torus and on parts. */
void swarm_draw_calls(const struct swarm_world *w, struct swarm_group *g, struct chance *c)
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

/* One member is ahead of all others, which receive only from it; or behind all others, which do not wait. */
static void draw_rooted(const struct swarm_world *w, struct swarm_group *g, struct chance *c)
{
    uint32_t root = (uint32_t)chance_below(c, w->torus.nodes);
    unsigned mixed = (unsigned)chance_below(c, 3); /* all from the root, all to it, both */

    for (unsigned i = 0; i < 40; i++) {
        bool reduce = mixed == 1 || (mixed == 2 && chance_below(c, 2) == 0);
        bool blocks = chance_below(c, 3) == 0;
        g->call[g->setup.calls++] = (struct sim_call){
            .operation = reduce ? (blocks ? GROUP_GATHER : GROUP_REDUCE)
                                : (blocks ? GROUP_SCATTER : GROUP_BROADCAST),
            .root = chance_below(c, 8) == 0 ? (uint32_t)chance_below(c, w->torus.nodes) : root,
            .type = REDUCTION_UINT8,
            .operator= REDUCTION_MAX,
            .in_place = (reduce || blocks) && chance_below(c, 2) == 0,
            .size = chance_magnitude(c, 1, most_bytes(w, false)) / (blocks ? w->torus.nodes : 1)};
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
        swarm_draw_calls(w, g, c);
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
    bool grow = chance_below(&c, 3) == 0; /* with what they are opened with, and little more */
    const uint64_t one = grow ? group_first_memory(&w->torus) * 9 / 8 : group_memory(&w->torus);
    if (!tight)
        w->setup.memory += (groups * one * 4 + 2) / 3; /* a quarter is left */
    if (calm)                                          /* the programs alone are to blame */
        w->faults = 0;
    for (unsigned i = 0; i < groups; i++) {
        struct chance own = chance_stream(w->seed, STREAM_GROUPS, 1 + i);
        struct chance trace = chance_stream(w->seed, STREAM_GROUP_TRACES, i);
        draw_group(w, &w->group[w->groups], i, &own);
        w->group[w->groups++].setup.trace = chance_below(&trace, 4) == 0;
    }
    for (unsigned i = 0; i < faults && w->faults < SWARM_FAULTS; i++) {
        struct chance own = chance_stream(w->seed, STREAM_PROGRAM_FAULTS, i);
        swarm_draw_fault(&w->fault[w->faults++], w, NEMESIS_PROGRAMS, &own);
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
                      "s%s%s%s%s%s\n",
                      i, (double)g->at / 1e9, g->setup.calls, g->setup.depth,
                      (double)g->setup.pause / 1e9, (double)g->setup.timeout / 1e9,
                      g->setup.unchecked ? ", unchecked" : "", g->setup.shuffle ? ", shuffled" : "",
                      g->setup.lazy ? ", lazy" : "", g->setup.careless ? ", careless" : "",
                      g->setup.trace ? ", traced" : "");
        for (unsigned k = 0; k < g->setup.calls; k++)
            print_call(k, &g->call[k]);
    }
}
