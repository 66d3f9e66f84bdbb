/* One table for all members: which algorithm carries out which operation at which size. The first
 * member makes it when the group, or a part, is opened, and all others take it from there, since
 * nodes that chose for themselves might choose differently. */
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/group/internal.h"
#include "daemon/schedule/family.h"
#include "daemon/schedule/product.h"

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

/* Small blocks spread along the tree of least depth, large ones in parts along trees that share no
 * channel: they are deeper, and carry about a fifth less where it counts. */
static int choose_gather(struct choices *list, const struct torus *t,
                         const struct predict_costs *costs, struct error *e)
{
    const struct algorithm *shallow = NULL, *even = algorithm_find("disjoint");
    double deeper, gain;
    uint32_t octave = 0;

    for (size_t i = 0; i < algorithm_count() && shallow == NULL; i++) {
        const struct algorithm *a = algorithm_at(i);
        if (a->operation == OPERATION_ALLGATHER && a->accepts(t, NULL) == 0)
            shallow = a;
    }
    if (shallow == NULL)
        return error_set(e, ERROR_REFUSED, "no algorithm takes this torus");
    add(list, 0, shallow, MODE_STREAMING);
    if (even == NULL || even->accepts(t, NULL) != 0 || costs->bytes_per_second <= 0)
        return 0;
    deeper = (double)torus_diameter(t) * (costs->step + costs->message);
    gain = 0.2 * torus_bound_broadcast(t) / costs->bytes_per_second;
    while (octave < OCTAVE_MOST && (double)(UINT64_C(1) << octave) * gain < deeper)
        octave++;
    add(list, octave, even, MODE_STREAMING);
    return 0;
}

int decisions_make(struct decisions *d, struct planner *planner, const struct torus *t,
                   const struct predict_costs *costs, struct error *e)
{
    struct candidate list[CHOOSE_MOST];
    unsigned count;

    *d = (struct decisions){.long_reduction = predict_long_reduction(t, costs)};
    if (choose_gather(&d->gather, t, costs, e) != 0)
        return -1;
    for (uint32_t octave = 0; octave <= OCTAVE_MOST; octave++) {
        const struct block_sizes sizes = {UINT64_C(1) << octave, UINT64_C(1) << octave};
        int result = choose_from(planner, t, costs, &sizes, MODE_OF_ALGORITHM, list, &count, e);
        if (result <= 0)
            return result;
        if (count == 0)
            return error_set(e, ERROR_REFUSED, "no algorithm takes this torus");
        add(&d->exchange, octave, list[0].algorithm, list[0].mode);
    }
    return 1;
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
    log_choices(group, "allgathers and broadcasts", &d->gather);
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
    struct packed exchange, gather;

    pack_choices(&exchange, &d->exchange);
    pack_choices(&gather, &d->gather);
    message.exchange = exchange.list;
    message.n_exchange = d->exchange.count;
    message.gather = gather.list;
    message.n_gather = d->gather.count;
    message.long_reduction = d->long_reduction;
    size_t size = peer__group_table__get_packed_size(&message);
    if (size > TABLE_BYTES - 2)
        return error_set(e, ERROR_MEMORY, "the group's table of algorithms is too long");
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
        return error_set(e, ERROR_PROTOCOL, "a table of %zu algorithms", count);
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
    result = take_choices(&d->exchange, m->exchange, m->n_exchange, OPERATION_EXCHANGE, t, e);
    if (result == 0)
        result = take_choices(&d->gather, m->gather, m->n_gather, OPERATION_ALLGATHER, t, e);
    peer__group_table__free_unpacked(m, NULL);
    return result;
}
