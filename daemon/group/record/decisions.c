#include "daemon/group/record/decisions.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/schedule/algorithms/families.h"
#include "daemon/schedule/algorithms/registry.h"
#include "daemon/schedule/product.h"
#include "proto/text.h"

#define OCTAVE_MOST 47u

const struct choice *decisions_find(const struct choices *list, uint64_t block_bytes)
{
    uint32_t octave = block_bytes < 2 ? 0 : 63u - (uint32_t)__builtin_clzll(block_bytes);
    unsigned i = 0;

    while (i + 1 < list->count && list->choice[i + 1].octave <= octave)
        i++;
    return &list->choice[i];
}

static void add(struct choices *list, uint32_t octave, const struct algorithm *a, enum mode mode)
{
    if (list->count == CHOICES_MOST ||
        (list->count > 0 && list->choice[list->count - 1].algorithm == a))
        return;
    list->choice[list->count++] = (struct choice){octave, a, mode};
}

/* For blocks of at least so many bytes. Nothing is ever measured of calls, so that what links pass at once is a matter
 * of the model (predict_unmeasured_seconds()). Broadcasts and allgathers stream: their steps would wait for each other. */
static int choose_one(struct planner *planner, const struct torus *t,
                      const struct predict_costs *costs, enum operation operation, uint64_t bytes,
                      struct candidate *list, struct error *e)
{
    const struct block_sizes sizes = {bytes, bytes};
    unsigned count;
    int result =
        operation == OPERATION_EXCHANGE
            ? choose_from(planner, t, costs, &sizes, MODE_OF_ALGORITHM, list, &count, e)
            : choose_gather_from(planner, costs, operation, bytes, MODE_STREAMING, list, &count, e);

    if (result > 0 && count == 0)
        return error_set(e, ERROR_REFUSED, "no algorithm takes this torus");
    return result;
}

/* `joined`: NULL, or set to the bytes up to which all blocks together are as fast on a tree. */
static int choose_all(struct choices *to, uint64_t *joined, struct planner *planner,
                      const struct torus *t, const struct predict_costs *costs,
                      enum operation operation, struct error *e)
{
    struct candidate list[CHOOSE_MOST];
    bool shorter = joined != NULL;

    for (uint32_t octave = 0; octave <= OCTAVE_MOST; octave++) {
        uint64_t bytes = UINT64_C(1) << octave;
        int result = choose_one(planner, t, costs, operation, bytes, list, e);
        if (result <= 0)
            return result;
        add(to, octave, list[0].algorithm, list[0].mode);
        shorter = shorter && predict_joins_gather(t, &list[0].counts, costs, bytes);
        if (shorter)
            *joined = bytes * t->nodes;
    }
    return 1;
}

int decisions_make(struct decisions *d, struct planner *planner, const struct torus *t,
                   const struct predict_costs *costs, struct error *e)
{
    int result;

    *d = (struct decisions){.long_reduction = predict_long_reduction(t, costs)};
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

void decisions_log(const struct decisions *d, const char *group)
{
    log_choices(group, "exchanges", &d->exchange);
    log_choices(group, "allgathers", &d->gather);
    log_choices(group, "broadcasts", &d->broadcast);
    log_debug("group \"%s\": allgathers of up to %llu B together: on the tree of one member", group,
              (unsigned long long)d->allgather_reduction);
    log_debug("group \"%s\": reductions of vectors from %llu B on: on the trees of all members",
              group, (unsigned long long)d->long_reduction);
}

struct packed {
    Peer__GroupTable__Choice choice[CHOICES_MOST], *list[CHOICES_MOST];
};

static void pack_choices(struct packed *to, const struct choices *from)
{
    for (unsigned i = 0; i < from->count; i++) {
        to->list[i] = &to->choice[i];
        peer__group_table__choice__init(&to->choice[i]);
        to->choice[i].octave = from->choice[i].octave;
        to->choice[i].algorithm = (char *)(uintptr_t)from->choice[i].algorithm->name;
        to->choice[i].mode = (char *)(uintptr_t)mode_name(from->choice[i].mode);
    }
}

int decisions_pack(const struct decisions *d, uint8_t *table, struct error *e)
{
    Peer__GroupTable message = PEER__GROUP_TABLE__INIT;
    struct packed exchange, gather, broadcast;

    pack_choices(&exchange, &d->exchange);
    pack_choices(&gather, &d->gather);
    pack_choices(&broadcast, &d->broadcast);
    message.exchange = exchange.list;
    message.n_exchange = d->exchange.count;
    message.gather = gather.list;
    message.n_gather = d->gather.count;
    message.broadcast = broadcast.list;
    message.n_broadcast = d->broadcast.count;
    message.long_reduction = d->long_reduction;
    message.joined_gather = d->allgather_reduction;
    size_t size = peer__group_table__get_packed_size(&message);
    if (size > TABLE_BYTES - 2)
        return error_set(e, ERROR_MEMORY,
                         "the group's table of algorithms is too long: %zu bytes, at most %u are "
                         "possible",
                         size, TABLE_BYTES - 2);
    memset(table, 0, TABLE_BYTES);
    table[0] = (uint8_t)(size >> 8);
    table[1] = (uint8_t)size;
    (void)peer__group_table__pack(&message, table + 2);
    return 0;
}

static int take_choice(struct choice *to, const Peer__GroupTable__Choice *from,
                       enum operation operation, const struct torus *t, struct error *e)
{
    struct spec spec = {.operation = operation};
    struct error why;

    to->octave = from->octave;
    if (family_check(from->algorithm, t, &why) == 0 &&
        (to->algorithm = algorithm_find(from->algorithm)) != NULL &&
        mode_parse(from->mode, &to->mode) == 0 && to->mode != MODE_OF_ALGORITHM &&
        to->algorithm->port_model == PORT_MODEL_ALL &&
        spec_check_algorithm(&spec, t, to->algorithm, &to->mode, &why) == 0)
        return 0;
    return error_set(e, ERROR_PROTOCOL, "a table with an algorithm or mode that cannot be");
}

static int take_choices(struct choices *to, Peer__GroupTable__Choice **from, size_t count,
                        enum operation operation, const struct torus *t, struct error *e)
{
    if (count == 0 || count > CHOICES_MOST)
        return error_set(e, ERROR_PROTOCOL, "a table of %zu %s: it has 1 to %u", count,
                         text_plural(count, "algorithm", "algorithms"), CHOICES_MOST);
    for (size_t i = 0; i < count; i++)
        if (take_choice(&to->choice[i], from[i], operation, t, e) != 0)
            return -1;
    to->count = (unsigned)count;
    return 0;
}

int decisions_unpack(struct decisions *d, const uint8_t *table, const struct torus *t,
                     struct error *e)
{
    size_t size = (size_t)table[0] << 8 | table[1];
    Peer__GroupTable *m =
        size <= TABLE_BYTES - 2 ? peer__group_table__unpack(NULL, size, table + 2) : NULL;
    int result;

    *d = (struct decisions){0};
    if (m == NULL)
        return error_set(e, ERROR_PROTOCOL, "a table that cannot be read, or out of memory");
    d->long_reduction = m->long_reduction;
    d->allgather_reduction = m->joined_gather;
    result = take_choices(&d->exchange, m->exchange, m->n_exchange, OPERATION_EXCHANGE, t, e);
    if (result == 0)
        result = take_choices(&d->gather, m->gather, m->n_gather, OPERATION_ALLGATHER, t, e);
    if (result == 0)
        result =
            take_choices(&d->broadcast, m->broadcast, m->n_broadcast, OPERATION_BROADCAST, t, e);
    peer__group_table__free_unpacked(m, NULL);
    return result;
}
