#include "daemon/schedule/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/schedule/routes.h"

/* A block's part in a message, as noted while walking the routes. Sorted by (key, block) it is the
 * plan. */
struct note {
    uint64_t key;   /* (step, port, hops, left): which message */
    uint64_t block; /* (source, destination) */
    uint32_t segment;
    uint32_t slot;
};

struct notes {
    struct note *at;
    size_t count, room;
};

/* What a plan is made from. */
struct draft {
    const struct routes *routes;
    uint32_t rank;
    uint32_t source; /* the only one whose blocks count, or TORUS_NO_NODE */
    struct notes sends, arrivals;
    uint32_t steps, slots;
    uint32_t blocks; /* those of messages that start or end here */
};

static uint64_t message_key(uint32_t step, unsigned port, uint16_t hops, uint16_t left)
{
    return (uint64_t)step << 36 | (uint64_t)port << 32 | (uint64_t)hops << 16 | left;
}

static struct plan_message message_of_key(uint64_t key)
{
    return (struct plan_message){.step = (uint32_t)(key >> 36),
                                 .port = (uint8_t)(key >> 32 & 0xf),
                                 .hops = (uint16_t)(key >> 16),
                                 .left = (uint16_t)key};
}

static int add_note(struct notes *notes, struct note note)
{
    if (notes->count == notes->room) {
        size_t room = notes->room == 0 ? 256 : 2 * notes->room;
        struct note *at = reallocarray(notes->at, room, sizeof *at);
        if (at == NULL)
            return -1;
        notes->at = at;
        notes->room = room;
    }
    notes->at[notes->count++] = note;
    return 0;
}

/* The current route's block, after the translation that takes `here` to the plan's node. */
static struct note block_note(const struct draft *d, uint32_t here, uint64_t key, uint32_t slot)
{
    const struct routes *r = d->routes;
    uint64_t source = routes_translate(r, r->source, here, d->rank);
    uint64_t destination = routes_translate(r, r->destination, here, d->rank);

    return (struct note){
        .key = key, .block = source << 32 | destination, .segment = r->segment, .slot = slot};
}

/* Whether the plan is about the current route's block, after that translation. */
static bool is_wanted(const struct draft *d, uint32_t here)
{
    return d->source == TORUS_NO_NODE ||
           d->source == routes_translate(d->routes, d->routes->source, here, d->rank);
}

/* Notes what the plan's node does for the current route and all its translations. */
static int note_route(struct draft *d)
{
    const struct routes *r = d->routes;
    uint32_t mine = r->class_of[d->rank];
    uint32_t new = routes_new_legs(r);
    uint32_t here = r->source;
    uint32_t slot = PLAN_NO_SLOT; /* of the block at the node where it waits */

    for (uint32_t i = 0; i < r->legs; i++) {
        const struct leg *leg = &r->leg[i];
        unsigned out = torus_port(leg->dim, leg->direction);
        unsigned in = torus_port_opposite(out);

        if (leg->step >= d->steps)
            d->steps = leg->step + 1;
        if (i < new) {
            here = routes_leg_end(r, here, leg);
            continue;
        }
        if (r->class_of[here] == mine && is_wanted(d, here)) {
            uint64_t key = message_key(leg->step, out, leg->hops, 0);
            d->blocks++;
            if (add_note(&d->sends, block_note(d, here, key, slot)) != 0)
                return -1;
        }
        for (uint16_t left = leg->hops; left-- > 0;) {
            here = routes_neighbour(r, here, out);
            if (r->class_of[here] != mine || !is_wanted(d, here))
                continue;
            uint64_t key = message_key(leg->step, in, leg->hops, left);
            struct note note = {.key = key};
            if (left == 0) {
                d->blocks++;
                slot = i + 1 < r->legs ? d->slots++ : PLAN_NO_SLOT;
                note = block_note(d, here, key, slot);
            }
            if (add_note(&d->arrivals, note) != 0)
                return -1;
        }
    }
    return 0;
}

static int compare_notes(const void *a, const void *b)
{
    const struct note *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->segment < y->segment ? -1 : x->segment > y->segment;
}

/* Sorts the notes, makes a message of each run with the same key, and appends the blocks of those
 * that start or end here. `block` has room. Returns the messages, NULL without memory. */
static struct plan_message *gather(struct notes *notes, struct plan_block *block, uint32_t *blocks,
                                   uint32_t *messages)
{
    uint32_t count = 0;

    if (notes->count > 0)
        qsort(notes->at, notes->count, sizeof *notes->at, compare_notes);
    for (size_t i = 0; i < notes->count; i++)
        count += i == 0 || notes->at[i].key != notes->at[i - 1].key;

    struct plan_message *message = calloc(count + 1, sizeof *message); /* never 0 bytes */
    if (message == NULL)
        return NULL;
    *messages = 0;
    for (size_t i = 0; i < notes->count; i++) {
        const struct note *n = &notes->at[i];
        if (i == 0 || n->key != n[-1].key) {
            message[*messages] = message_of_key(n->key);
            message[(*messages)++].first = *blocks;
        }
        struct plan_message *m = &message[*messages - 1];
        m->blocks++;
        if (m->left == 0)
            block[(*blocks)++] = (struct plan_block){.source = (uint32_t)(n->block >> 32),
                                                     .destination = (uint32_t)n->block,
                                                     .segment = n->segment,
                                                     .slot = n->slot};
    }
    return message;
}

/* The most blocks waiting at the end of any step, from the changes in each: change[0],
 * change[stride], ... */
static uint32_t peak(const int32_t *change, size_t stride, uint32_t steps)
{
    int32_t now = 0, most = 0;

    for (uint32_t step = 0; step < steps; step++) {
        now += change[step * stride];
        if (now > most)
            most = now;
    }
    return (uint32_t)most;
}

static int count_transit(struct plan *p)
{
    int32_t *change = calloc((size_t)p->steps + 1, sizeof *change); /* never 0 bytes */
    uint32_t *last = calloc((size_t)p->slots + 1, sizeof *last);    /* step in which it is sent */

    if (change != NULL && last != NULL) {
        for (const struct plan_message *m = p->arrival; m < p->arrival + p->arrivals; m++)
            for (uint32_t i = 0; m->left == 0 && i < m->blocks; i++)
                change[m->step] += p->block[m->first + i].slot != PLAN_NO_SLOT;
        for (const struct plan_message *m = p->send; m < p->send + p->sends; m++)
            for (uint32_t i = 0; i < m->blocks; i++)
                if (p->block[m->first + i].slot != PLAN_NO_SLOT)
                    last[p->block[m->first + i].slot] = m->step;
        for (uint32_t slot = 0; slot < p->slots; slot++)
            change[last[slot]]--;
        p->peak_transit = peak(change, 1, p->steps);
    }
    free(change);
    free(last);
    return change != NULL && last != NULL ? 0 : -1;
}

/* Allgather: a slot for each block that is taken in and sent on, and its number to all its sends.
 */
static int share_slots(struct plan *p, const struct routes *r)
{
    uint32_t segments = r->algorithm->segments;
    /* By source and segment: whether it is sent on, then its slot + 1. */
    uint32_t *slot = calloc((size_t)r->torus->nodes * segments, sizeof *slot);

    if (slot == NULL)
        return -1;
    for (const struct plan_message *m = p->send; m < p->send + p->sends; m++)
        for (const struct plan_block *b = p->block + m->first; b < p->block + m->first + m->blocks;
             b++)
            slot[b->source * segments + b->segment] = b->source != p->rank;
    for (const struct plan_message *m = p->arrival; m < p->arrival + p->arrivals; m++) {
        for (uint32_t i = 0; m->left == 0 && i < m->blocks; i++) {
            struct plan_block *b = &p->block[m->first + i];
            uint32_t *found = &slot[b->source * segments + b->segment];
            if (*found != 0) {
                b->slot = p->slots++;
                *found = p->slots;
            }
        }
    }
    for (const struct plan_message *m = p->send; m < p->send + p->sends; m++)
        for (struct plan_block *b = p->block + m->first; b < p->block + m->first + m->blocks; b++)
            b->slot = slot[b->source * segments + b->segment] - 1; /* own block: PLAN_NO_SLOT */
    free(slot);
    return 0;
}

int plan_build(struct plan *p, const struct torus *t, const struct algorithm *a, uint32_t rank,
               struct error *e)
{
    return plan_build_source(p, t, a, rank, TORUS_NO_NODE, e);
}

/* An algorithm knows its plans. */
static int ask_for_plan(struct plan *p, const struct torus *t, const struct algorithm *a,
                        uint32_t rank, struct error *e)
{
    if (a->accepts(t, e) != 0)
        return -1;
    if (a->plan(p, t, rank) != 0)
        return error_set(e, ERROR_MEMORY, "no memory for the plan of node %u", rank);
    return 0;
}

/* An algorithm knows how many blocks are in transit. */
static int ask_for_peak(const struct torus *t, const struct algorithm *a, uint32_t *most,
                        struct error *e)
{
    if (a->accepts(t, e) != 0)
        return -1;
    uint64_t peak_transit = a->peak_transit(t);
    if (peak_transit > UINT32_MAX)
        return error_set(e, ERROR_MEMORY, "no node has memory for %" PRIu64 " blocks in transit",
                         peak_transit);
    *most = (uint32_t)peak_transit;
    return 0;
}

int plan_build_source(struct plan *p, const struct torus *t, const struct algorithm *a,
                      uint32_t rank, uint32_t source, struct error *e)
{
    struct routes routes;
    struct draft d = {.routes = &routes, .rank = rank, .source = source};
    int rc = 0;

    *p = (struct plan){.rank = rank};
    if (rank >= t->nodes)
        return error_set(e, ERROR_USAGE, "there is no node %u among %u", rank, t->nodes);
    if (a->plan != NULL && source == TORUS_NO_NODE)
        return ask_for_plan(p, t, a, rank, e);
    if (routes_open(&routes, t, a, e) != 0)
        return -1;
    while (rc == 0 && routes_next(&routes))
        rc = note_route(&d);

    if (rc == 0) {
        p->steps = d.steps;
        p->slots = d.slots;
        p->block = calloc((size_t)d.blocks + 1, sizeof *p->block); /* never 0 bytes */
        if (p->block == NULL ||
            (p->send = gather(&d.sends, p->block, &p->blocks, &p->sends)) == NULL ||
            (p->arrival = gather(&d.arrivals, p->block, &p->blocks, &p->arrivals)) == NULL ||
            (a->operation == OPERATION_ALLGATHER && share_slots(p, &routes) != 0) ||
            count_transit(p) != 0)
            rc = -1;
    }
    routes_close(&routes);
    free(d.sends.at);
    free(d.arrivals.at);
    if (rc != 0) {
        plan_free(p);
        return error_set(e, ERROR_MEMORY, "no memory for the plan of node %u", rank);
    }
    return 0;
}

void plan_free(struct plan *p)
{
    free(p->send);
    free(p->arrival);
    free(p->block);
    *p = (struct plan){0};
}

static int compare_key(const void *key, const void *message)
{
    const struct plan_message *m = message;
    uint64_t x = *(const uint64_t *)key;
    uint64_t y = message_key(m->step, m->port, m->hops, m->left);

    return x < y ? -1 : x > y;
}

const struct plan_message *plan_arrival(const struct plan *p, uint32_t step, uint8_t port,
                                        uint16_t hops, uint16_t left)
{
    /* What does not fit in a key would be mistaken for another one. */
    if (step >= p->steps || port >= TORUS_MAX_PORTS)
        return NULL;
    uint64_t key = message_key(step, port, hops, left);
    return bsearch(&key, p->arrival, p->arrivals, sizeof *p->arrival, compare_key);
}

void plan_port_totals(const struct plan *p, unsigned port, uint64_t *blocks, uint64_t *messages)
{
    *blocks = *messages = 0;
    for (const struct plan_message *m = p->send; m < p->send + p->sends; m++) {
        if (m->port == port) {
            *blocks += m->blocks;
            ++*messages;
        }
    }
    for (const struct plan_message *m = p->arrival; m < p->arrival + p->arrivals; m++)
        if (m->left > 0 && torus_port_opposite(m->port) == port)
            *blocks += m->blocks;
}

/* How many more blocks wait at nodes of each class after each step. */
struct waits {
    const struct routes *routes;
    int32_t *change; /* step * classes + class */
    uint32_t steps;
    /* Allgather, by segment and node, for the block of the current source: 1 + the step in which it
     * comes, 1 + the last one in which it is sent on. */
    uint32_t *comes, *leaves;
};

/* Makes room for steps up to `last`. */
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

static void add_wait(struct waits *w, uint32_t node, uint32_t from, uint32_t to)
{
    const struct routes *r = w->routes;

    ++w->change[(size_t)from * r->classes + r->class_of[node]];
    --w->change[(size_t)to * r->classes + r->class_of[node]];
}

/* The waits between the legs of the current route. */
static void add_exchange_waits(struct waits *w)
{
    const struct routes *r = w->routes;
    uint32_t here = r->source;

    for (uint32_t i = 0; i + 1 < r->legs; i++) {
        here = routes_leg_end(r, here, &r->leg[i]);
        add_wait(w, here, r->leg[i].step, r->leg[i + 1].step);
    }
}

/* The current route's last leg, of its source's tree. */
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

/* The waits of a tree that is complete: at nodes that the block comes to and leaves. */
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

int plan_peak_transit(const struct torus *t, const struct algorithm *a, uint32_t *most,
                      struct error *e)
{
    struct routes routes;
    struct waits waits = {.routes = &routes};

    if (a->peak_transit != NULL)
        return ask_for_peak(t, a, most, e);
    if (routes_open(&routes, t, a, e) != 0)
        return -1;
    int rc = add_waits(&waits, &routes);
    *most = 0;
    for (uint32_t i = 0; rc == 0 && waits.steps > 0 && i < routes.classes; i++) {
        uint32_t here = peak(waits.change + i, routes.classes, waits.steps);
        if (here > *most)
            *most = here;
    }
    free(waits.change);
    free(waits.comes);
    free(waits.leaves);
    routes_close(&routes);
    return rc == 0 ? 0
                   : error_set(e, ERROR_MEMORY, "no memory for the waits of %u nodes", t->nodes);
}
