#include "daemon/torusd/group/calls.h"

#include <stdio.h>
#include <string.h>

#include "daemon/torusd/engine/stepped.h"
#include "daemon/torusd/engine/streaming.h"
#include "daemon/torusd/group/blocks.h"
#include "daemon/torusd/group/early_frames.h"

/* --- a short allgather as a reduction --- */

static const struct allgather_reduction *reduction_of(const struct source *s)
{
    return (const struct allgather_reduction *)((const char *)s -
                                                offsetof(struct allgather_reduction, source));
}

static uint64_t gather_size(struct source *s, uint32_t owner)
{
    (void)owner;
    return reduction_of(s)->bytes;
}

static int gather_read(struct source *s, uint32_t owner, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    static const uint8_t zeros[256];
    const struct allgather_reduction *j = reduction_of(s);
    struct blocks *b = j->blocks;
    uint64_t end = j->own + blocks_expected(b, b->members->own);

    if (offset >= j->own && offset < end)
        return b->source.ops->read(&b->source, owner, offset - j->own,
                                   end - offset < most ? (uint32_t)(end - offset) : most, out, e);
    uint64_t left = offset < j->own ? j->own - offset : j->bytes - offset;
    left = left < sizeof zeros ? left : sizeof zeros;
    out->slab = slab_ref(b->sent); /* any slab will do, because the engine copies what it reads */
    out->data = zeros;
    out->length = left < most ? (uint32_t)left : most;
    return 1;
}

static int gather_write(struct sink *s, uint32_t owner, uint64_t offset, const struct extent *piece,
                        struct error *e)
{
    const struct allgather_reduction *j =
        (struct allgather_reduction *)((char *)s - offsetof(struct allgather_reduction, sink));
    struct blocks *b = j->blocks;
    uint64_t begin = 0, end, to = offset + piece->length;

    (void)owner;
    for (uint32_t member = 0; member < b->members->count && begin < to; member++, begin = end) {
        end = begin + blocks_expected(b, member);
        if (end <= offset)
            continue;
        uint64_t first = offset > begin ? offset : begin, last = to < end ? to : end;
        const struct extent part = {piece->slab, piece->data + (first - offset),
                                    (uint32_t)(last - first)};
        if (part.length > 0 && b->sink.ops->write(&b->sink, members_node(b->members, member),
                                                  first - begin, &part, e) != 0)
            return -1;
    }
    return 0;
}

static const struct source_ops gather_source_ops = {.size = gather_size, .read = gather_read};

static const struct sink_ops gather_sink_ops = {.write = gather_write,
                                                .pending = sink_never_pending};

/* Sets up the source and sink; borrows the blocks. Only for engines that copy what they read (reducing.h). */
static void allgather_reduction_init(struct allgather_reduction *j, struct blocks *b)
{
    *j = (struct allgather_reduction){
        .source = {.ops = &gather_source_ops}, .sink = {.ops = &gather_sink_ops}, .blocks = b};
    for (uint32_t member = 0; member < b->members->count; member++) {
        if (member == b->members->own)
            j->own = j->bytes;
        j->bytes += blocks_expected(b, member);
    }
}

#define WAVE_WINDOW 8u /* of waves */
#define DATA_WINDOW 4u
#define WHOLE_PAGES 4096u

/* --- the common setup of a call's engines --- */

/* Marks what a stage of the call sends. */
static const struct peer_group_call *mark_stage(struct call *c, enum stage stage)
{
    c->attempt.mark[stage] = (struct peer_group_call){
        .number = (uint32_t)(c->number & CALL_MASK) * STAGES_A_CALL + stage,
        .signature = c->signature,
        .part = c->part->mask};
    call_mark_data(c, &c->attempt.mark[stage]);
    return &c->attempt.mark[stage];
}

static struct engine_setup setup_of(struct call *c, struct source *source, struct sink *sink)
{
    return part_engine_setup(c->part, mark_stage(c, STAGE_DATA), source, sink);
}

/* Stores the engine, and gives it the early frames of its stage. */
static int take_over(struct call *c, enum stage stage, struct engine *engine, struct error *e)
{
    c->attempt.engine[stage] = engine;
    if (engine == NULL)
        return -1;
    part_tell_lost(c->part, engine);
    return early_frames_give(c->part, c->attempt.mark[stage].number, engine, e);
}

static int open_wave(struct call *c, struct error *e)
{
    const uint64_t number[2] = {c->what.collective->measured ? c->what.largest : 0};

    c->attempt.wave = (struct wave){
        .bytes = sizeof *number, .told = sizeof number, .result = c->attempt.wave_result};
    return take_over(
        c, STAGE_WAVE,
        wave_open(&c->attempt.wave, c->part, mark_stage(c, STAGE_WAVE), number, WAVE_WINDOW, e), e);
}

/* --- data --- */

static bool is_exchange(const struct call *c)
{
    return c->what.collective->routes == ROUTES_EXCHANGE;
}

static bool is_long(const struct call *c)
{
    const enum routes routes = c->what.collective->routes;

    return routes == TREES_OF_ALL ||
           (routes == TREES_BY_LENGTH && c->what.total >= c->part->table.long_reduction);
}

/* Chooses how much of each block is sent at once: the whole block, unless that is too much for the memory of
 * the node with most blocks in transit. */
static void choose_rounds(struct call *c, uint64_t blocks, uint64_t unit, uint32_t window)
{
    uint64_t most =
        (c->part->limits.rounds >> c->attempt.level) / window / (blocks > 0 ? blocks : 1);

    c->attempt.window = c->large ? window : 1;
    if (!c->large || c->attempt.block_bytes <= most) {
        c->attempt.round_bytes = c->attempt.block_bytes;
        c->attempt.rounds = 1;
        return;
    }
    if (most >= WHOLE_PAGES && WHOLE_PAGES % unit == 0)
        unit = WHOLE_PAGES;
    most -= most % unit;
    c->attempt.round_bytes = most > 0 ? most : unit;
    c->attempt.rounds = c->attempt.block_bytes / c->attempt.round_bytes +
                        (c->attempt.block_bytes % c->attempt.round_bytes != 0);
}

/* Whether few messages matter more than few bytes. */
static bool is_short(const struct call *c)
{
    return c->what.total <= c->part->table.allgather_reduction;
}

static bool is_allgather_reduction(const struct call *c)
{
    return c->what.collective->routes == ROUTES_GATHER && !c->large && is_short(c);
}

/* Uses the tree of the waves. */
static int open_allgather_reduction(struct call *c, struct error *e)
{
    const struct part *p = c->part;
    const struct reducing_options options = {.type = REDUCTION_UINT8,
                                             .operation = REDUCTION_OR,
                                             .everywhere = true,
                                             .unchecked = p->session->unchecked};

    allgather_reduction_init(&c->attempt.allgather, &c->blocks);
    struct engine_setup setup =
        setup_of(c, &c->attempt.allgather.source, &c->attempt.allgather.sink);
    c->attempt.block_bytes = c->attempt.round_bytes = c->attempt.allgather.bytes;
    setup.segments = p->tree.segments;
    setup.round_bytes = (uint32_t)c->attempt.round_bytes;
    struct engine *engine = reducing_new(&setup, &p->tree, &options, e);
    if (engine != NULL)
        engine->rounds = c->attempt.rounds;
    return take_over(c, STAGE_DATA, engine, e) == 0 ? 1 : -1;
}

static const struct choices *choices_for(const struct call *c)
{
    const struct algorithm_table *d = &c->part->table;
    const enum routes routes = c->what.collective->routes;

    if (routes == ROUTES_BROADCAST || routes == TREES_OF_ROOT)
        return &d->broadcast;
    return routes == ROUTES_GATHER ? &d->gather : &d->exchange;
}

#define PIECE_LEAST 256u               /* bytes of a block's piece on one of several trees */
#define SLOW_BLOCK (UINT64_C(1) << 16) /* is split, if other links are faster */

/* Whether a block is split, one piece for each of the disjoint trees. A single tree may have the slowest link, and then
 * takes as long as one of only fast links with a larger block: the table says whether that one would be split. */
static bool is_split(const struct call *c, const struct detour *found,
                     const struct algorithm *trees)
{
    const struct choices *list = choices_for(c);
    const uint64_t bytes = c->attempt.block_bytes, slowest = damage_slowest(detour_damage(found));
    const uint64_t most = UINT64_MAX / DAMAGE_FULL_RATE;
    const uint64_t as_long = (bytes < most ? bytes : most) * DAMAGE_FULL_RATE / slowest;

    if (list->count > 0 && algorithm_table_find(list, bytes)->algorithm->segments > 1)
        return true;
    if (slowest == DAMAGE_FULL_RATE || bytes / PIECE_LEAST < trees->segments)
        return false;
    return as_long >= SLOW_BLOCK ||
           (list->count > 0 && algorithm_table_find(list, as_long)->algorithm->segments > 1);
}

/* The routes that were found for a call. */
static const struct algorithm *found_algorithm(const struct call *c, const struct detour *found)
{
    const struct algorithm *disjoint = detour_disjoint(found);

    if (is_exchange(c))
        return detour_algorithm(found);
    return disjoint != NULL && is_split(c, found, disjoint) ? disjoint : detour_gather(found);
}

/* Takes the algorithm that the call names. Returns 1 with *out, or -1 with *e. */
static int take_named(const struct call *c, struct choice *out, struct error *e)
{
    const struct part *p = c->part;
    char down[100];

    if (!damage_is_whole(&p->damage))
        return error_set(e, ERROR_LINK,
                         "algorithm %s cannot avoid %s, which is down; the routes that the nodes "
                         "choose without --algorithm can",
                         c->what.call.algorithm->name,
                         damage_describe(&p->damage, down, sizeof down));
    *out = (struct choice){.algorithm = c->what.call.algorithm, .mode = c->what.call.mode};
    return 1;
}

/* Chooses the algorithm. Returns 1 with *out; 0 while routes are being found; or -1. */
static int choose_algorithm(struct call *c, struct choice *out, struct error *e)
{
    struct part *p = c->part;
    const bool both_ways = collective_combines(c->what.collective);
    int found = 1;

    if (c->what.call.algorithm != NULL)
        return take_named(c, out, e);
    if (p->finds_routes)
        found = both_ways ? part_detour_both_ways(p, e) : part_detour(p, e);
    if (found <= 0)
        return found;
    if (!p->finds_routes)
        *out = *algorithm_table_find(choices_for(c), c->attempt.block_bytes);
    else
        *out =
            (struct choice){.algorithm = found_algorithm(c, both_ways ? p->both_ways : p->detour),
                            .mode = MODE_STREAMING};
    return 1;
}

/* Finds the trees of a reduction whose block_bytes are known. A short vector uses the tree of the waves, and a
 * long one the trees of all members. A reduce uses those of a broadcast from its root, reversed. *vectors is
 * how many blocks a node holds at most: its own, and those of its children; *crossing: how many cross a
 * channel. Returns 1 with *out; 0 while the
 * trees are being found; or -1. */
static int find_trees(struct call *c, const struct reduction_trees **out, uint64_t *vectors,
                      uint64_t *crossing, struct error *e)
{
    struct part *p = c->part;
    struct choice choice;
    int result = 1;

    *out = &p->tree;
    *crossing = 2; /* on their way up, and down */
    if (is_long(c)) {
        *crossing *= p->torus->nodes;
        *vectors = (uint64_t)p->torus->nodes * (torus_ports(p->torus) + 1);
        *out = &p->trees;
        return part_trees(p, e);
    }
    if (c->what.collective->routes == TREES_OF_ROOT) {
        if (c->attempt.planned == NULL)
            result = choose_algorithm(c, &choice, e);
        if (c->attempt.planned == NULL && result > 0)
            result = planner_get_reduction(p->planner, choice.algorithm,
                                           members_node(&p->members, c->what.call.root),
                                           &c->attempt.planned, e);
        if (result <= 0)
            return result;
        *out = &c->attempt.planned->trees;
    }
    *vectors = 1 + ((*out)->most_children + (*out)->segments - 1) / (*out)->segments;
    return 1;
}

/* Returns the size of each owner's block in bytes, or of the largest. */
static uint64_t reduced_bytes(const struct call *c)
{
    uint32_t element = reduction_size(c->what.call.type);

    if (!is_long(c))
        return c->what.total;
    return c->what.collective->routes == TREES_OF_ALL
               ? c->what.largest
               : (c->what.total / element / c->part->members.count + 1) * element;
}

/* Opens the engine of a reduction. Returns 1; 0 while the trees are being found; or -1. */
static int open_reduction(struct call *c, struct error *e)
{
    struct part *p = c->part;
    const struct group_call *call = &c->what.call;
    struct engine_setup setup = setup_of(c, &c->blocks.source, &c->blocks.sink);
    const struct reducing_options options = {
        .type = call_spreads_result(c) ? REDUCTION_UINT8 : call->type,
        .operation = call_spreads_result(c) ? REDUCTION_OR : call->operator,
        .everywhere = c->what.collective->result == RESULT_SAME,
        .unchecked = p->session->unchecked,
        .members = p->members.count};
    const struct reduction_trees *trees;
    uint64_t vectors, crossing;

    c->attempt.block_bytes = reduced_bytes(c);
    c->attempt.block_bytes -= c->skip < c->attempt.block_bytes ? c->skip : c->attempt.block_bytes;
    int found = find_trees(c, &trees, &vectors, &crossing, e);
    if (found <= 0)
        return found;
    if (c->what.collective->result == RESULT_ROOT)
        /* The root keeps its own vector, in place, until all members have finished the round. */
        vectors++;
    setup.segments = trees->segments;
    choose_rounds(c, part_blocks(p, vectors, crossing),
                  (uint64_t)reduction_size(call->type) * setup.segments, DATA_WINDOW);
    setup.round_bytes = (uint32_t)c->attempt.round_bytes;
    setup.window = c->attempt.window;
    struct engine *engine = reducing_new(&setup, trees, &options, e);
    if (engine != NULL)
        engine->rounds = c->attempt.rounds;
    return take_over(c, STAGE_DATA, engine, e) == 0 ? 1 : -1;
}

/* Notes what carries the call, for whoever reports on the group. */
static void note_carrier(const struct call *c, const struct choice *choice)
{
    struct group *g = c->part->session->group;

    if (g == NULL || c->internal || c->attempt.block_bytes < g->carried.block_bytes)
        return;
    g->carried =
        (struct group_carrier){.mode = choice->mode, .block_bytes = c->attempt.block_bytes};
    (void)snprintf(g->carried.algorithm, sizeof g->carried.algorithm, "%s",
                   choice->algorithm->name);
}

/* Opens the engine of an exchange, allgather or broadcast. Returns 1; 0 while the schedule is computed; or -1. */
static int open_moving(struct call *c, struct error *e)
{
    struct part *p = c->part;
    const struct group_call *call = &c->what.call;
    const struct collective *o = c->what.collective;
    const bool broadcast = o->routes == ROUTES_BROADCAST;
    const uint64_t largest = o->measured ? c->attempt.wave_result[0] : c->what.largest;
    struct engine_setup setup = setup_of(c, &c->blocks.source, &c->blocks.sink);
    struct choice choice;
    uint64_t blocks;
    int result;

    c->attempt.block_bytes = blocks_wire(&c->blocks, largest);
    c->attempt.block_bytes -= c->skip < c->attempt.block_bytes ? c->skip : c->attempt.block_bytes;
    result = choose_algorithm(c, &choice, e);
    if (result <= 0)
        return result;
    const struct algorithm *a = choice.algorithm;
    enum mode mode = choice.mode;
    if (c->attempt.planned == NULL) {
        result = planner_get(p->planner, a, mode,
                             broadcast ? members_node(&p->members, call->root) : TORUS_NO_NODE,
                             c->large, &c->attempt.planned, e);
        if (result <= 0)
            return result;
    }
    blocks = c->attempt.planned->most_transit / (mode == MODE_STREAMING ? a->segments : 1) + 2;
    /* What crosses a channel waits at its end, or is for the member there. */
    blocks = part_blocks(p, blocks, blocks + p->members.count);
    choose_rounds(c, blocks, a->segments, mode == MODE_STREAMING ? DATA_WINDOW : 1);
    note_carrier(c, &choice);
    setup.gather = !is_exchange(c);
    setup.idle = broadcast && call->root != p->members.own;
    setup.segments = a->segments;
    setup.uniform =
        !o->irregular && (mode == MODE_STREAMING || (c->attempt.block_bytes % a->segments == 0 &&
                                                     c->attempt.round_bytes % a->segments == 0));
    setup.block_bytes = c->attempt.block_bytes;
    setup.round_bytes = (uint32_t)c->attempt.round_bytes;
    setup.window = c->attempt.window;
    struct engine *engine = mode == MODE_STREAMING
                                ? streaming_new(&setup, &c->attempt.planned->passages, e)
                                : stepped_new(&setup, &c->attempt.planned->plan, e);
    if (engine != NULL)
        engine->rounds = c->attempt.rounds;
    return take_over(c, STAGE_DATA, engine, e) == 0 ? 1 : -1;
}

static int init_blocks(struct call *c, struct error *e)
{
    struct part *p = c->part;
    const struct blocks_options options = {
        .single = collective_combines(c->what.collective) && !is_long(c),
        .digests = !p->session->unchecked,
        .copy = !c->large,
        .skip = c->skip,
    };
    if (blocks_init(&c->blocks, &c->what, &p->members, &options, e) != 0)
        return -1;
    return call_spreads_result(c) && !call_is_for_others(c)
               ? blocks_contribute_nothing(&c->blocks, e)
               : 0;
}

/* Carries out a very short call in its short form. */
static void shorten(struct call *c)
{
    c->what.collective = c->what.collective->short_form;
    if (c->what.collective->routes == ROUTES_BROADCAST)
        c->what.largest = c->what.total;
}

/* Opens the engine of the data. Returns 1; 0 while schedules are planned; or -1 with *e. */
static int open_data(struct call *c, struct error *e)
{
    if (collective_combines(c->what.collective))
        return open_reduction(c, e);
    return is_allgather_reduction(c) ? open_allgather_reduction(c, e) : open_moving(c, e);
}

/* An uneven exchange has two: the first tells the size of the largest block, and the second that all members have made their
 * plans, so that no large data arrives early. */
uint64_t call_waves_before_data(const struct call *c)
{
    return c->large && c->what.collective->measured ? 2 : 1;
}

int call_engines_open(struct call *c, struct error *e)
{
    struct call_attempt *a = &c->attempt;
    const struct collective *o = c->what.collective;
    const bool uneven = o->measured;

    if (c->waves && a->engine[STAGE_WAVE] == NULL && open_wave(c, e) != 0)
        return -1;
    if (uneven && a->engine[STAGE_WAVE]->rounds_finished == 0)
        return 0; /* the first wave must tell the size of the largest block */
    if (a->engine[STAGE_DATA] != NULL || (uneven ? a->wave_result[0] == 0 : c->what.total == 0))
        return 1;
    if (uneven)
        c->large = a->wave_result[0] > c->part->limits.eager / c->part->torus->nodes;
    if (o->short_form != NULL && is_short(c)) /* the same at all members, and in each attempt */
        shorten(c);
    if (!blocks_are_there(&c->blocks) && init_blocks(c, e) != 0)
        return -1;
    const int open = open_data(c, e);
    if (open > 0 && c->large && c->part->session->grows) {
        part_take_rounds(c->part);
        wave_set(&a->wave, (unsigned)call_waves_before_data(c) - 1, c->part->level);
    }
    return open;
}

int call_engines_level(struct call *c, struct error *e)
{
    struct call_attempt *a = &c->attempt;
    const uint64_t before = call_waves_before_data(c);

    if (!c->part->session->grows || a->levelled || a->engine[STAGE_DATA] == NULL ||
        a->engine[STAGE_WAVE]->rounds_finished < before)
        return 0;
    const uint64_t level = a->wave_result[before - 1];
    if (level < c->part->level || level > GROUP_ROUNDS_LAST)
        return error_set(
            e, ERROR_PROTOCOL,
            "group \"%s\": members agree on level %llu of memory, but member %u has level %u",
            c->part->session->name, (unsigned long long)level, c->part->members.own,
            c->part->level);
    a->levelled = true;
    if (level == 0)
        return 0;
    a->level = (unsigned)level;
    engine_free(a->engine[STAGE_DATA]);
    a->engine[STAGE_DATA] = NULL;
    return open_data(c, e) < 0 ? -1 : 0; /* what it needs is there */
}
