#include "daemon/torusd/group/algorithm_table.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/product.h"
#include "daemon/torusd/group/call.h"
#include "proto/peer/peer_message.h"
#include "proto/text.h"

#define OCTAVE_MOST 47u

/* The table follows two bytes with its size. */
#define TABLE_LACKS (TABLE_BYTES - 1)
#define TABLE_MOST (TABLE_LACKS - 2)

const struct choice *algorithm_table_find(const struct choices *list, uint64_t block_bytes)
{
    uint32_t octave = block_bytes < 2 ? 0 : 63u - (uint32_t)__builtin_clzll(block_bytes);
    unsigned i = 0;

    while (i + 1 < list->count && list->choice[i + 1].octave <= octave)
        i++;
    return &list->choice[i];
}

static void add_choice(struct choices *list, uint32_t octave, const struct algorithm *a,
                       enum mode mode)
{
    if (list->count == CHOICES_MOST ||
        (list->count > 0 && list->choice[list->count - 1].algorithm == a))
        return;
    list->choice[list->count++] = (struct choice){octave, a, mode};
}

/* Chooses for blocks of at least this many bytes. Calls are never measured, so the model must account for
 * bursts on links (predict_unmeasured_seconds()). Broadcasts and allgathers stream, because their steps would
 * wait for each other. */
static int choose_one(struct planner *planner, const struct torus *t,
                      const struct predict_costs *costs, enum schedule_operation operation,
                      uint64_t bytes, struct candidate *list, struct error *e)
{
    const struct block_sizes sizes = {bytes, bytes};
    unsigned count;
    int result =
        operation == OPERATION_EXCHANGE
            ? choose_from(planner, t, costs, NULL, &sizes, MODE_OF_ALGORITHM, list, &count, e)
            : choose_gather_from(planner, costs, operation, bytes, MODE_STREAMING, list, &count, e);

    if (result > 0 && count == 0)
        return error_set(e, ERROR_REFUSED, "no algorithm works on this torus");
    return result;
}

/* `reduction_most`: NULL, or set to the most bytes in total with which a reduction on a tree is as fast as an
 * allgather. */
static int choose_all(struct choices *to, uint64_t *reduction_most, struct planner *planner,
                      const struct torus *t, const struct predict_costs *costs,
                      enum schedule_operation operation, struct error *e)
{
    struct candidate list[CHOOSE_MOST];
    bool shorter = reduction_most != NULL;

    for (uint32_t octave = 0; octave <= OCTAVE_MOST; octave++) {
        uint64_t bytes = UINT64_C(1) << octave;
        int result = choose_one(planner, t, costs, operation, bytes, list, e);
        if (result <= 0)
            return result;
        add_choice(to, octave, list[0].algorithm, list[0].mode);
        shorter = shorter && predict_joins_gather(t, &list[0].counts, costs, bytes);
        if (shorter)
            *reduction_most = bytes * t->nodes;
    }
    return 1;
}

/* Names the trees by the algorithms of the registry that have the same. */
static void choose_trees(struct choices *to, const struct detour *found,
                         const struct predict_costs *costs, bool one)
{
    const struct algorithm *disjoint = algorithm_find(FOUND_DISJOINT_NAME);

    for (uint32_t octave = 0; octave <= OCTAVE_MOST; octave++) {
        const struct algorithm *a =
            detour_gather_for(found, one, true, costs, UINT64_C(1) << octave);
        add_choice(to, octave, a == detour_gather(found) ? algorithm_find("trees") : disjoint,
                   MODE_STREAMING);
    }
}

/* Makes the table. `found`: routes that were found on this network, if it has other graphs than rings and lines. The
 * table then only says from which size on allgathers and broadcasts use `disjoint` trees. Returns 1; 0 while schedules
 * are being counted (the part's planner wakes); or -1. */
static int algorithm_table_make(struct algorithm_table *d, struct planner *planner,
                                const struct torus *t, const struct predict_costs *costs,
                                const struct detour *found, struct error *e)
{
    int result;

    *d = (struct algorithm_table){.long_reduction = predict_long_reduction(t, costs)};
    if (!torus_is_plain(t)) { /* calls find their routes (struct part) */
        choose_trees(&d->gather, found, costs, false);
        choose_trees(&d->broadcast, found, costs, true);
        return 1;
    }
    result = choose_all(&d->exchange, NULL, planner, t, costs, OPERATION_EXCHANGE, e);
    if (result > 0)
        result = choose_all(&d->gather, &d->allgather_reduction, planner, t, costs,
                            OPERATION_ALLGATHER, e);
    if (result > 0)
        result = choose_all(&d->broadcast, NULL, planner, t, costs, OPERATION_BROADCAST, e);
    return result;
}

static void log_choices(const char *name, const char *what, const struct choices *list)
{
    for (unsigned i = 0; i < list->count; i++)
        log_debug("group \"%s\": %s of blocks from %llu B: %s, %s", name, what,
                  1ull << list->choice[i].octave, list->choice[i].algorithm->name,
                  mode_name(list->choice[i].mode));
}

/* Logs the table of this group. */
static void algorithm_table_log(const struct algorithm_table *d, const char *group)
{
    log_choices(group, "exchanges", &d->exchange);
    log_choices(group, "allgathers", &d->gather);
    log_choices(group, "broadcasts", &d->broadcast);
    log_debug("group \"%s\": allgathers of up to %llu B in total: as reductions", group,
              (unsigned long long)d->allgather_reduction);
    log_debug("group \"%s\": reductions of vectors of %llu B or more: on the trees of all members",
              group, (unsigned long long)d->long_reduction);
}

static void pack_choices(struct peer_group_choice *to, const struct choices *from)
{
    for (unsigned i = 0; i < from->count; i++)
        to[i] = (struct peer_group_choice){.octave = from->choice[i].octave,
                                           .algorithm = from->choice[i].algorithm->name,
                                           .mode = mode_name(from->choice[i].mode)};
}

/* Encodes a table into TABLE_BYTES bytes at `table`. Returns 0, or -1 with *e. */
static int algorithm_table_pack(const struct algorithm_table *d, uint8_t *table, struct error *e)
{
    struct peer_group_choice exchange[CHOICES_MOST], gather[CHOICES_MOST], broadcast[CHOICES_MOST];
    const struct peer_group_table message = {.n_exchange = d->exchange.count,
                                             .n_gather = d->gather.count,
                                             .n_broadcast = d->broadcast.count,
                                             .exchange = exchange,
                                             .gather = gather,
                                             .broadcast = broadcast,
                                             .long_reduction = d->long_reduction,
                                             .allgather_reduction = d->allgather_reduction};

    pack_choices(exchange, &d->exchange);
    pack_choices(gather, &d->gather);
    pack_choices(broadcast, &d->broadcast);
    size_t size = peer_group_table_write(&message, table + 2, TABLE_MOST);
    if (size == 0)
        return error_set(e, ERROR_MEMORY, "out of memory for a group's table of algorithms");
    if (size > TABLE_MOST)
        return error_set(e, ERROR_MEMORY,
                         "the group's table of algorithms is too long: %zu bytes, at most %u are "
                         "possible",
                         size, TABLE_MOST);
    table[0] = (uint8_t)(size >> 8);
    table[1] = (uint8_t)size;
    return 0;
}

static int take_choice(struct choice *to, const struct peer_group_choice *from,
                       enum schedule_operation operation, const struct torus *t, struct error *e)
{
    struct spec spec = {.operation = operation};
    bool found = !torus_is_plain(t) && strcmp(from->algorithm, FOUND_DISJOINT_NAME) == 0 &&
                 schedule_operation_of_algorithms(operation) == OPERATION_ALLGATHER;
    struct error why;

    to->octave = from->octave;
    if (family_check(from->algorithm, t, &why) == 0 &&
        (to->algorithm = algorithm_find(from->algorithm)) != NULL &&
        mode_parse(from->mode, &to->mode) == 0 && to->mode != MODE_OF_ALGORITHM &&
        to->algorithm->port_model == PORT_MODEL_ALL &&
        (found || spec_check_algorithm(&spec, t, to->algorithm, &to->mode, &why) == 0))
        return 0;
    return error_set(
        e, ERROR_PROTOCOL,
        "the group's table names an unknown algorithm or mode, or one that does not work here");
}

static int take_choices(struct choices *to, const struct peer_group_choice *from, size_t count,
                        enum schedule_operation operation, const struct torus *t, struct error *e)
{
    if (count == 0 && !torus_is_plain(t))
        return 0; /* calls find their routes */
    if (count == 0 || count > CHOICES_MOST)
        return error_set(e, ERROR_PROTOCOL,
                         "the group's table lists %zu %s for one operation, not 1 to %u", count,
                         text_plural(count, "algorithm", "algorithms"), CHOICES_MOST);
    for (size_t i = 0; i < count; i++)
        if (take_choice(&to->choice[i], &from[i], operation, t, e) != 0)
            return -1;
    to->count = (unsigned)count;
    return 0;
}

struct taking {
    struct algorithm_table *table;
    const struct torus *torus;
    struct error *e;
};

static int take_table(void *context, const struct peer_group_table *m)
{
    struct taking *taking = context;
    struct algorithm_table *d = taking->table;
    const struct torus *t = taking->torus;
    struct error *e = taking->e;

    d->long_reduction = m->long_reduction;
    d->allgather_reduction = m->allgather_reduction;
    if (take_choices(&d->exchange, m->exchange, m->n_exchange, OPERATION_EXCHANGE, t, e) != 0 ||
        take_choices(&d->gather, m->gather, m->n_gather, OPERATION_ALLGATHER, t, e) != 0)
        return -1;
    return take_choices(&d->broadcast, m->broadcast, m->n_broadcast, OPERATION_BROADCAST, t, e);
}

int algorithm_table_unpack(struct algorithm_table *d, const uint8_t *table, const struct torus *t,
                           struct error *e)
{
    size_t size = (size_t)table[0] << 8 | table[1];
    struct taking taking = {d, t, e};
    bool malformed = true;
    int result = -1;

    *d = (struct algorithm_table){0};
    if (size <= TABLE_MOST)
        result = peer_group_table_read(table + 2, size, take_table, &taking, &malformed);
    if (malformed)
        return error_set(
            e, ERROR_PROTOCOL,
            "the group's table of algorithms cannot be read, or there is no memory for it");
    return result;
}

static void free_table(struct program_memory *memory)
{
    free(memory);
}

static struct program_memory *new_table(void)
{
    struct program_memory *memory = calloc(1, sizeof *memory + TABLE_BYTES);

    if (memory != NULL)
        *memory = (struct program_memory){(uint8_t *)(memory + 1), TABLE_BYTES, 1, free_table};
    return memory;
}

int part_table_call(struct checked_call *what, uint32_t mask, struct error *e)
{
    struct program_memory *memory = new_table();

    if (memory == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    *what = (struct checked_call){.call = {.operation = GROUP_PART,
                                           .part = mask,
                                           .type = REDUCTION_UINT8,
                                           .operator= REDUCTION_OR,
                                           .size = TABLE_BYTES,
                                           .in_place = true,
                                           .receive = {memory, 0, TABLE_BYTES}},
                                  .collective = &collective_part,
                                  .largest = TABLE_BYTES,
                                  .total = TABLE_BYTES};
    return 0;
}

void part_table_begin(const struct call *c)
{
    struct part *p = part_find(c->part->session, c->what.call.part);

    if (p->mask != 0)
        part_take_memory(p);
    if (p->lacks)
        c->what.call.receive.memory->data[TABLE_LACKS] = 1;
}

bool part_table_is_made_here(const struct call *c)
{
    return c->what.call.operation == GROUP_PART && c->part->members.own == 0 &&
           !call_spreads_result(c);
}

int part_table_make(struct call *c, struct error *e)
{
    struct session *s = c->part->session;
    const struct predict_costs costs = exchanges_costs(s->groups->exchanges);
    struct part *p = part_find(s, c->what.call.part);
    struct algorithm_table made;
    int result = torus_is_plain(p->torus) ? 1 : part_detour(p, e);

    if (result > 0)
        result = algorithm_table_make(&made, p->planner, p->torus, &costs, p->detour, e);
    if (result <= 0)
        return result;
    algorithm_table_log(&made, s->name);
    if (algorithm_table_pack(&made, c->what.call.receive.memory->data, e) != 0)
        return -1;
    c->blocks.ready = true;
    engine_wake(c->attempt.engine[STAGE_DATA]);
    return 1;
}

/* Some member has no memory for the part's eager calls, so there are none. */
static void become_poor(struct part *p)
{
    log_info(
        "group \"%s\": too little memory for part 0x%x, so all its calls wait for all members: "
        "close some groups, or raise memory in torusd.ini",
        p->session->name, p->mask);
    part_give_memory(p);
    for (struct call *c = p->calls; c != NULL; c = c->next)
        call_choose_size(c); /* they wait for the table */
}

int part_table_take(const struct call *c, struct error *e)
{
    struct session *s = c->part->session;
    const uint8_t *table = c->what.call.receive.memory->data;
    struct part *p = part_find(s, c->what.call.part);

    if (algorithm_table_unpack(&p->table, table, p->torus, e) != 0)
        return -1;
    if (s->grows && p->mask != 0 && table[TABLE_LACKS] != 0)
        become_poor(p);
    p->has_table = true;
    session_is_due(s); /* calls may have waited for the table */
    return 0;
}
