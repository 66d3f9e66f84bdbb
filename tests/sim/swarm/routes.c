/* Nodes that see the same damage find the same routes (tests/contract/test_detour.c), each daemon for itself. In one
 * process they are found once, because the search took half of the time of all worlds; each node gets a copy. The
 * linker puts the functions of this file in front of the real ones (--wrap). */
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/detour/internal.h"
#include "daemon/lib/schedule/predict.h"
#include "tests/sim/memory.h"
#include "tests/sim/swarm/swarm.h"

#define WRAPPED(name, ...)                                                                         \
    int __real_##name(__VA_ARGS__);                                                                \
    int __wrap_##name(__VA_ARGS__)
WRAPPED(balance_find, struct balance *b, const struct damage *d, struct error *e);
WRAPPED(spread_find, struct spread *s, const struct damage *d, struct error *e);
WRAPPED(disjoint_trees_find, struct disjoint_trees *f, const struct damage *d, struct error *e);
WRAPPED(predict_count_gather, const struct torus *t, const struct algorithm *a, bool one,
        bool streaming, struct predict_counts *counts, struct error *e);

/* What was found for a damage. A member is empty until it is asked for. */
struct found {
    struct found *next;
    struct damage damage;
    struct balance balance;
    struct spread spread;
    struct disjoint_trees trees;
    bool counted[2][2][2]; /* by disjoint, one, streaming */
    struct predict_counts counts[2][2][2];
};

static struct found *all;

/* NULL while an allocation is to fail: then those of the search count, and it must be made. */
static struct found *found_for(const struct damage *damage)
{
    struct found *f = all;

    if (memory_countdown != NULL && *memory_countdown > 0)
        return NULL;
    while (f != NULL && !damage_equal(&f->damage, damage))
        f = f->next;
    if (f == NULL) {
        f = sim_alloc(sizeof *f);
        f->next = all;
        if (damage_copy(&f->damage, damage, NULL) != 0)
            abort();
        all = f;
    }
    return f;
}

static void *copy_of(const void *from, size_t size)
{
    return from != NULL ? memcpy(sim_alloc(size), from, size) : NULL;
}

static struct balance balance_copy(const struct balance *from)
{
    const size_t routes = (size_t)from->nodes * from->nodes * from->segments;
    struct balance copy = *from;

    copy.hops = copy_of(from->hops, routes * sizeof *from->hops);
    copy.port = copy_of(from->port, routes * from->stride);
    return copy;
}

int __wrap_balance_find(struct balance *b, const struct damage *d, struct error *e)
{
    struct found *f = found_for(d);

    if (f == NULL || f->balance.hops == NULL) {
        int result = __real_balance_find(b, d, e);
        if (f != NULL && result == 0)
            f->balance = balance_copy(b);
        return result;
    }
    *b = balance_copy(&f->balance);
    return 0;
}

static struct spread spread_copy(const struct spread *from)
{
    struct spread copy = *from;

    copy.towards = copy_of(from->towards, (size_t)from->nodes * from->nodes);
    return copy;
}

int __wrap_spread_find(struct spread *s, const struct damage *d, struct error *e)
{
    struct found *f = found_for(d);

    if (f == NULL || f->spread.towards == NULL) {
        int result = __real_spread_find(s, d, e);
        if (f != NULL && result == 0)
            f->spread = spread_copy(s);
        return result;
    }
    *s = spread_copy(&f->spread);
    return 0;
}

static struct disjoint_trees disjoint_trees_copy(const struct disjoint_trees *from)
{
    struct disjoint_trees copy = *from;

    copy.towards = copy_of(from->towards, (size_t)from->nodes * from->trees * from->nodes);
    return copy;
}

int __wrap_disjoint_trees_find(struct disjoint_trees *t, const struct damage *d, struct error *e)
{
    struct found *f = found_for(d);

    if (f == NULL || f->trees.nodes == 0) {
        int result = __real_disjoint_trees_find(t, d, e);
        if (f != NULL && result == 0)
            f->trees = disjoint_trees_copy(t);
        return result;
    }
    *t = disjoint_trees_copy(&f->trees);
    return 0;
}

int __wrap_predict_count_gather(const struct torus *t, const struct algorithm *a, bool one,
                                bool streaming, struct predict_counts *counts, struct error *e)
{
    struct found *f = a->detour != NULL ? found_for(detour_damage(a->detour)) : NULL;
    const bool disjoint = f != NULL && a == detour_disjoint(a->detour);

    if (f == NULL || !f->counted[disjoint][one][streaming]) {
        int result = __real_predict_count_gather(t, a, one, streaming, counts, e);
        if (f != NULL && result == 0) {
            f->counted[disjoint][one][streaming] = true;
            f->counts[disjoint][one][streaming] = *counts;
        }
        return result;
    }
    *counts = f->counts[disjoint][one][streaming];
    return 0;
}

void swarm_forget_routes(void)
{
    while (all != NULL) {
        struct found *f = all;
        all = f->next;
        balance_free(&f->balance);
        spread_free(&f->spread);
        disjoint_trees_free(&f->trees);
        damage_free(&f->damage);
        free(f);
    }
}
