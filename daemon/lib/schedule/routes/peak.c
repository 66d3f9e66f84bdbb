#include "daemon/lib/schedule/routes/peak.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/routes/routes.h"
#include "proto/text.h"

uint32_t peak_of_changes(const int32_t *change, size_t stride, uint32_t steps)
{
    int32_t now = 0, most = 0;

    for (uint32_t step = 0; step < steps; step++) {
        now += change[step * stride];
        if (now > most)
            most = now;
    }
    return (uint32_t)most;
}

/* By step and class: by how much the number of waiting blocks changes. */
struct waits {
    const struct routes *routes;
    int32_t *change; /* step * classes + class */
    uint32_t steps;
    /* Allgather, by segment and node, for the block of the current source: 1 + the step in which
     * the block arrives, and 1 + the last step in which it is sent on; 0: never. */
    uint32_t *comes, *leaves;
};

/* Makes room for the steps up to `last`. Returns 0, or -1 without memory. */
static int room_for_step(struct waits *w, uint32_t last)
{
    uint32_t classes = w->routes->classes;

    if (last < w->steps)
        return 0;
    int32_t *longer = reallocarray(w->change, (size_t)last + 1, classes * sizeof *longer);
    if (longer == NULL)
        return -1;
    memset(longer + (size_t)w->steps * classes, 0,
           (size_t)(last + 1 - w->steps) * classes * sizeof *longer);
    w->change = longer;
    w->steps = last + 1;
    return 0;
}

/* A block waits at a node from the end of step `from` until the end of step `to`. */
static void add_wait(struct waits *w, uint32_t node, uint32_t from, uint32_t to)
{
    const struct routes *r = w->routes;

    ++w->change[(size_t)from * r->classes + r->class_of[node]];
    --w->change[(size_t)to * r->classes + r->class_of[node]];
}

/* Adds the waits between the legs of the current route. */
static void add_exchange_waits(struct waits *w)
{
    const struct routes *r = w->routes;
    uint32_t here = r->source;

    for (uint32_t i = 0; i + 1 < r->legs; i++) {
        here = routes_leg_end(r, here, &r->leg[i]);
        add_wait(w, here, r->leg[i].step, r->leg[i + 1].step);
    }
}

/* Notes the current route's last leg in the tree of its source. */
static void note_tree_leg(struct waits *w)
{
    const struct routes *r = w->routes;
    size_t tree = (size_t)r->segment * r->torus->nodes;
    uint32_t here = r->source;
    uint32_t step = r->leg[r->legs - 1].step + 1;

    for (uint32_t i = 0; i + 1 < r->legs; i++)
        here = routes_leg_end(r, here, &r->leg[i]);
    w->comes[tree + r->destination] = step;
    if (w->leaves[tree + here] < step)
        w->leaves[tree + here] = step;
}

/* Adds the waits of all complete trees, at nodes that a block reaches and leaves, and empties the
 * trees. */
static void add_tree_waits(struct waits *w)
{
    const struct routes *r = w->routes;
    size_t entries = (size_t)r->algorithm->segments * r->torus->nodes;

    for (size_t i = 0; i < entries; i++) {
        if (w->comes[i] > 0 && w->leaves[i] > 0)
            add_wait(w, (uint32_t)(i % r->torus->nodes), w->comes[i] - 1, w->leaves[i] - 1);
        w->comes[i] = w->leaves[i] = 0;
    }
}

static int add_waits(struct waits *w, struct routes *r)
{
    bool trees = r->algorithm->operation == OPERATION_ALLGATHER;
    uint32_t source_class = 0;

    if (trees) {
        size_t entries = (size_t)r->algorithm->segments * r->torus->nodes;
        w->comes = calloc(entries, sizeof *w->comes);
        w->leaves = calloc(entries, sizeof *w->leaves);
        if (w->comes == NULL || w->leaves == NULL)
            return -1;
    }
    while (routes_next(r)) {
        if (r->legs > 0 && room_for_step(w, r->leg[r->legs - 1].step) != 0)
            return -1;
        if (trees && r->source_class != source_class)
            add_tree_waits(w);
        source_class = r->source_class;
        if (!trees)
            add_exchange_waits(w);
        else if (r->legs > 0)
            note_tree_leg(w);
    }
    if (trees)
        add_tree_waits(w);
    return 0;
}

/* For an algorithm that has a rule for it. */
static int ask_for_peak(const struct torus *t, const struct algorithm *a, uint32_t *most,
                        struct error *e)
{
    if (algorithm_accepts(a, t, e) != 0)
        return -1;
    uint64_t peak_transit = a->peak_transit(t);
    if (peak_transit > UINT32_MAX)
        return error_set(e, ERROR_MEMORY,
                         "a node would have %" PRIu64 " blocks in transit, too many to count",
                         peak_transit);
    *most = (uint32_t)peak_transit;
    return 0;
}

int plan_peak_transit(const struct torus *t, const struct algorithm *a, uint32_t *most,
                      struct error *e)
{
    struct routes routes;
    struct waits waits = {.routes = &routes};

    if (a->peak_transit != NULL && torus_is_plain(t))
        return ask_for_peak(t, a, most, e);
    if (routes_open_ends(&routes, t, a, e) != 0)
        return -1;
    int rc = add_waits(&waits, &routes);
    *most = 0;
    for (uint32_t i = 0; rc == 0 && waits.steps > 0 && i < routes.classes; i++) {
        uint32_t here = peak_of_changes(waits.change + i, routes.classes, waits.steps);
        if (here > *most)
            *most = here;
    }
    free(waits.change);
    free(waits.comes);
    free(waits.leaves);
    routes_close(&routes);
    return rc == 0
               ? 0
               : error_set(e, ERROR_MEMORY, "out of memory to count the waiting blocks of %u %s",
                           t->nodes, text_plural(t->nodes, "node", "nodes"));
}
