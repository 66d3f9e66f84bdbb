#include "daemon/exchange/choose.h"

#include "daemon/exchange/internal.h"

/* Puts a candidate behind those that are faster. Of equals the one that is further down in the
 * registry comes first: the schedules made for few messages on real links, not those of papers. */
static void insert(struct candidate *list, size_t count, const struct candidate *one)
{
    size_t at = count;

    while (at > 0 && one->seconds <= list[at - 1].seconds) {
        list[at] = list[at - 1];
        at--;
    }
    list[at] = *one;
}

/* Counts the algorithm's schedule when it is asked for the first time. */
static int counted(struct exchanges *all, size_t index, struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    const struct algorithm *a = algorithm_at(index);
    struct planned *p = &all->planned[index];

    if (p->counted)
        return 0;
    p->candidate = a->operation == OPERATION_EXCHANGE && a->port_model == PORT_MODEL_ALL &&
                   a->accepts(t, NULL) == 0 && predict_is_quick(t, a);
    if (p->candidate && predict_count(t, a, a->streaming, &p->counts, e) != 0)
        return -1;
    p->counted = true;
    return 0;
}

int choose_candidates(struct exchanges *all, uint64_t block_bytes, enum mode mode,
                      struct candidate *list, struct error *e)
{
    const struct predict_costs costs = exchanges_costs(all);
    size_t count = 0;

    for (size_t i = 0; i < algorithm_count() && count < CHOOSE_MOST; i++) {
        const struct algorithm *a = algorithm_at(i);
        enum mode its_mode = a->streaming ? MODE_STREAMING : MODE_STEPPED;
        if (counted(all, i, e) != 0)
            return -1;
        if (!all->planned[i].candidate || (mode != MODE_OF_ALGORITHM && mode != its_mode))
            continue;
        const struct candidate one = {
            .algorithm = a,
            .mode = its_mode,
            .counts = all->planned[i].counts,
            .piece_bytes = (block_bytes + a->segments - 1) / a->segments,
            .seconds = predict_seconds(&all->planned[i].counts, &costs, block_bytes),
        };
        insert(list, count++, &one);
    }
    return (int)count;
}

/* The first of the registry that does it on this torus. */
static const struct algorithm *first_for(const struct torus *t, enum operation operation)
{
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        if (a->operation == operation_of_algorithms(operation) && a->accepts(t, NULL) == 0)
            return a;
    }
    return NULL;
}

const struct algorithm *choose_algorithm(struct exchanges *all, enum operation operation,
                                         uint64_t block_bytes, bool folders, enum mode *mode,
                                         struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    const struct algorithm *chosen = NULL;
    struct candidate list[CHOOSE_MOST];
    char dims[TORUS_TEXT_SIZE];
    int count = 0;

    if (operation == OPERATION_EXCHANGE)
        count = choose_candidates(all, folders ? CHOOSE_FOLDER_BLOCK : block_bytes, *mode, list, e);
    if (count < 0)
        return NULL;
    if (count > 0)
        *mode = list[0].mode;
    chosen = count > 0 ? list[0].algorithm : first_for(t, operation);
    if (chosen == NULL)
        (void)error_set(e, ERROR_REFUSED, "no algorithm for operation %s takes a torus of %s",
                        operation_name(operation), torus_format(t, dims));
    return chosen;
}
