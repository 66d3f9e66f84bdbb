#include "daemon/lib/schedule/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/grow.h"
#include "daemon/lib/schedule/routes.h"
#include "daemon/lib/schedule/tally.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

/* For bsearch(): compares a key with the key of a message. */
static int plan_compare_key(const void *key, const void *message)
{
    const struct plan_message *m = message;
    uint64_t x = *(const uint64_t *)key;
    uint64_t y = plan_key(m->step, m->port, m->hops, m->left);

    return x < y ? -1 : x > y;
}

void plan_free(struct plan *p)
{
    free(p->send);
    free(p->arrival);
    free(p->block);
    *p = (struct plan){0};
}

const struct plan_message *plan_arrival(const struct plan *p, uint32_t step, uint8_t port,
                                        uint16_t hops, uint16_t left)
{
    /* A step or port that does not fit in a key would be mistaken for another one. */
    if (step >= p->steps || port >= TORUS_MAX_PORTS)
        return NULL;
    uint64_t key = plan_key(step, port, hops, left);
    return bsearch(&key, p->arrival, p->arrivals, sizeof *p->arrival, plan_compare_key);
}

/* The most blocks that wait at the end of any of `steps` steps, from the change in each step:
 * change[0], change[stride], change[2 * stride], ... */
static uint32_t peak_of_changes(const int32_t *change, size_t stride, uint32_t steps)
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

/* A route of a representative with a leg that, moved, starts or ends at the plan's node. */
struct hit {
    uint32_t source_class, destination, segment;
};

/* The state of building a plan. A first walk over all routes counts the messages. A second walk,
 * over the hits only, puts the blocks into the messages. So nothing else as large as the plan's
 * blocks is ever held. */
struct draft {
    const struct routes *routes;
    uint32_t source; /* the only source whose blocks count; TORUS_NO_NODE: all */
    struct plan *plan;
    bool counted;                 /* the first walk is done */
    struct tally sends, arrivals; /* numbers of blocks, by plan_key() */
    struct hit *hit;
    size_t hits, hit_room;
    /* By port * classes + class: how many hops back from the plan's node, against the port's
     * direction, the nearest node of the class is. 0: there is none, or it is too far for a leg. */
    uint16_t *behind;
};

static struct plan_message message_of_key(uint64_t key)
{
    return (struct plan_message){.step = (uint32_t)(key >> 37),
                                 .port = (uint8_t)(key >> 32 & (TORUS_MAX_PORTS - 1)),
                                 .hops = (uint16_t)(key >> 16),
                                 .left = (uint16_t)key};
}

/* Puts the current route's block, moved as `from` moves to `to`, into the message with this key. */
static void place(const struct draft *d, struct plan_message *messages, uint32_t count,
                  uint64_t key, uint32_t from, uint32_t to, uint32_t slot)
{
    const struct routes *r = d->routes;
    struct plan_message *m = bsearch(&key, messages, count, sizeof *messages, plan_compare_key);

    d->plan->block[m->first + m->blocks++] =
        (struct plan_block){.source = routes_move(r, r->source, from, to),
                            .destination = routes_move(r, r->destination, from, to),
                            .segment = r->segment,
                            .slot = slot};
}

/* Whether there is a move that takes the node `from` of the current route to `to`, and the moved
 * block counts. */
static bool is_wanted(const struct draft *d, uint32_t from, uint32_t to)
{
    return d->routes->class_of[from] == d->routes->class_of[to] &&
           (d->source == TORUS_NO_NODE ||
            d->source == routes_move(d->routes, d->routes->source, from, to));
}

/* Notes a leg that starts at `here`, moved to start at the plan's node. `slot` is where the block
 * waits there. Returns 0, or -1 without memory. */
static int note_send(struct draft *d, const struct leg *leg, uint32_t here, uint32_t slot)
{
    struct plan *p = d->plan;
    struct leg moved = routes_moved_leg(d->routes, leg, here, p->rank);
    uint64_t key = plan_key(moved.step, torus_port(d->routes->torus, moved.dim, moved.direction),
                            moved.hops, 0);
    if (!d->counted)
        return tally_add(&d->sends, key);
    place(d, p->send, p->sends, key, here, p->rank, slot);
    return 0;
}

/* Notes a leg from `here` to `end`, moved to end at the plan's node. Sets *slot to where the
 * block waits there for its next leg; PLAN_NO_SLOT after the `last` leg. Returns 0, or -1
 * without memory. */
static int note_take(struct draft *d, const struct leg *leg, uint32_t here, uint32_t end, bool last,
                     uint32_t *slot)
{
    struct plan *p = d->plan;
    struct leg moved =
        routes_moved_leg(d->routes, leg, here, routes_move(d->routes, here, end, p->rank));
    unsigned in = torus_port_opposite(d->routes->torus,
                                      torus_port(d->routes->torus, moved.dim, moved.direction));
    uint64_t key = plan_key(moved.step, in, moved.hops, 0);
    if (!d->counted)
        return tally_add(&d->arrivals, key);
    *slot = last ? PLAN_NO_SLOT : p->slots++;
    place(d, p->arrival, p->arrivals, key, end, p->rank, *slot);
    return 0;
}

/* Notes a leg from `here`, moved to every start from which it passes the plan's node and leaves
 * that by `port`. Returns 0, or -1 without memory. */
static int note_relays(struct draft *d, const struct leg *leg, uint32_t here, unsigned port)
{
    const struct routes *r = d->routes;
    unsigned in = torus_port_opposite(r->torus, port);
    int direction = torus_port_direction(r->torus, port);
    uint32_t longest = r->by_xor ? torus_longest_path(r->torus, leg->dim) : leg->hops;
    uint32_t done = d->behind[port * r->classes + r->class_of[here]];
    if (done == 0)
        return 0;

    for (; done < longest; done += r->period[leg->dim]) {
        uint32_t start =
            torus_walk(r->torus, d->plan->rank, leg->dim, torus_port_direction(r->torus, in), done);
        if (start == TORUS_NO_NODE)
            break;
        if (!is_wanted(d, here, start))
            continue;
        struct leg moved = routes_moved_leg(r, leg, here, start);
        if (moved.direction == direction && moved.hops > done &&
            tally_add(&d->arrivals,
                      plan_key(moved.step, in, moved.hops, (uint16_t)(moved.hops - done))) != 0)
            return -1;
    }
    return 0;
}

/* Fills d->behind. Returns 0, or -1 without memory. */
static int look_behind(struct draft *d)
{
    const struct routes *r = d->routes;
    unsigned ports = torus_ports(r->torus);

    d->behind = calloc((size_t)ports * r->classes + 1, sizeof *d->behind); /* never 0 bytes */
    if (d->behind == NULL)
        return -1;
    for (unsigned port = 0; port < ports; port++) {
        uint32_t node = d->plan->rank;
        for (uint16_t done = 1; done < UINT16_MAX; done++) {
            node = routes_neighbour(r, node, torus_port_opposite(r->torus, port));
            if (node == TORUS_NO_NODE || done >= r->torus->size[torus_port_dim(r->torus, port)])
                break;
            uint16_t *first = &d->behind[(size_t)port * r->classes + r->class_of[node]];
            if (*first == 0)
                *first = done;
        }
    }
    return 0;
}

static int add_hit(struct draft *d)
{
    const struct routes *r = d->routes;

    if (GROW(d->hit, d->hits, d->hit_room) != 0)
        return -1;
    d->hit[d->hits++] = (struct hit){r->source_class, r->destination, r->segment};
    return 0;
}

/* Notes what the plan's node does in a leg of the current route, from `here` to `end`, under all
 * moves. *slot is where the block waits at the plan's node. Returns 1 if the moved leg starts or
 * ends at the plan's node, 0 if not, -1 without memory. */
static int note_leg(struct draft *d, uint32_t index, uint32_t here, uint32_t end, uint32_t *slot)
{
    const struct routes *r = d->routes;
    const struct leg *leg = &r->leg[index];
    unsigned port = torus_port(r->torus, leg->dim, leg->direction);
    bool sent = is_wanted(d, here, d->plan->rank), taken = is_wanted(d, end, d->plan->rank);

    if (sent && note_send(d, leg, here, *slot) != 0)
        return -1;
    if (taken && note_take(d, leg, here, end, index + 1 == r->legs, slot) != 0)
        return -1;
    if (!d->counted && note_relays(d, leg, here, port) != 0)
        return -1;
    if (!d->counted && r->by_xor &&
        note_relays(d, leg, here, torus_port_opposite(r->torus, port)) != 0)
        return -1;
    return sent || taken;
}

static int note_route(struct draft *d)
{
    const struct routes *r = d->routes;
    uint32_t here = r->source;
    uint32_t slot = PLAN_NO_SLOT;
    bool hit = false;

    for (uint32_t i = 0; i < r->legs; i++) {
        uint32_t end = routes_leg_end(r, here, &r->leg[i]);
        if (i >= routes_new_legs(r)) {
            int noted = note_leg(d, i, here, end, &slot);
            if (noted < 0)
                return -1;
            hit |= noted > 0;
        }
        here = end;
    }
    if (r->legs > 0 && r->leg[r->legs - 1].step >= d->plan->steps)
        d->plan->steps = r->leg[r->legs - 1].step + 1;
    return hit && !d->counted ? add_hit(d) : 0;
}

/* Turns a tally into messages, and frees it. Messages that start or end here get room for their
 * blocks, which are added later. Returns NULL without memory. */
static struct plan_message *make_messages(struct plan *p, struct tally *tally, uint32_t *count)
{
    struct plan_message *message =
        tally_sort(tally) == 0 ? calloc(tally->count + 1, sizeof *message) /* never 0 bytes */
                               : NULL;
    if (message == NULL)
        return NULL;
    for (size_t i = 0; i < tally->count; i++) {
        message[i] = message_of_key(tally->at[i].key);
        if (message[i].left > 0) {
            message[i].blocks = (uint32_t)tally->at[i].count;
        } else {
            message[i].first = p->blocks;
            p->blocks += (uint32_t)tally->at[i].count;
        }
    }
    *count = (uint32_t)tally->count;
    tally_free(tally);
    return message;
}

static int compare_blocks(const void *a, const void *b)
{
    const struct plan_block *x = a, *y = b;

    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->destination != y->destination)
        return x->destination < y->destination ? -1 : 1;
    return x->segment < y->segment ? -1 : x->segment > y->segment;
}

static void sort_blocks(const struct plan *p, const struct plan_message *messages, uint32_t count)
{
    for (const struct plan_message *m = messages; m < messages + count; m++)
        if (m->left == 0)
            qsort(p->block + m->first, m->blocks, sizeof *p->block, compare_blocks);
}

static int count_transit(struct plan *p)
{
    int32_t *change = calloc((size_t)p->steps + 1, sizeof *change); /* never 0 bytes */
    uint32_t *last = calloc((size_t)p->slots + 1, sizeof *last);    /* by slot: the last step in
                                                                     * which its block is sent */

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
        p->peak_transit = peak_of_changes(change, 1, p->steps);
    }
    free(change);
    free(last);
    return change != NULL && last != NULL ? 0 : -1;
}

/* Allgather: gives each block that arrives and is sent on one slot, used by all its sends. Returns
 * 0, or -1 without memory. */
static int share_slots(struct plan *p, const struct routes *r)
{
    uint32_t segments = r->algorithm->segments;
    /* By source and segment: 1 if the block is sent on, then its slot + 1. */
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
            b->slot = slot[b->source * segments + b->segment] - 1; /* own: PLAN_NO_SLOT */
    free(slot);
    return 0;
}

int plan_build(struct plan *p, const struct torus *t, const struct algorithm *a, uint32_t rank,
               struct error *e)
{
    return plan_build_source(p, t, a, rank, TORUS_NO_NODE, e);
}

/* The first walk. Returns 0, or -1 without memory. */
static int count_messages(struct draft *d, struct routes *r)
{
    struct plan *p = d->plan;
    uint64_t followed = 0;

    if (look_behind(d) != 0)
        return -1;
    routes_only_via(r, p->rank, &p->steps);
    while (routes_next(r)) {
        watch_count(&followed, 0);
        if (note_route(d) != 0)
            return -1;
    }
    d->counted = true;
    p->send = make_messages(p, &d->sends, &p->sends);
    p->arrival = make_messages(p, &d->arrivals, &p->arrivals);
    return p->send != NULL && p->arrival != NULL ? 0 : -1;
}

/* The second walk. Returns 0, or -1 without memory. */
static int place_blocks(struct draft *d, struct routes *r)
{
    struct plan *p = d->plan;

    p->block = calloc((size_t)p->blocks + 1, sizeof *p->block); /* never 0 bytes */
    if (p->block == NULL)
        return -1;
    for (const struct hit *hit = d->hit; hit < d->hit + d->hits; hit++) {
        routes_seek(r, hit->source_class, hit->destination, hit->segment);
        note_route(d); /* allocates nothing in the second walk */
    }
    sort_blocks(p, p->send, p->sends);
    sort_blocks(p, p->arrival, p->arrivals);
    return 0;
}

/* For an algorithm that has a rule for its plans. */
static int ask_for_plan(struct plan *p, const struct torus *t, const struct algorithm *a,
                        uint32_t rank, struct error *e)
{
    if (algorithm_accepts(a, t, e) != 0)
        return -1;
    if (a->plan(p, t, rank) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the plan of node %u", rank);
    return 0;
}

int plan_build_source(struct plan *p, const struct torus *t, const struct algorithm *a,
                      uint32_t rank, uint32_t source, struct error *e)
{
    struct routes routes;
    struct draft d = {.routes = &routes, .source = source, .plan = p};

    *p = (struct plan){.rank = rank};
    if (rank >= t->nodes)
        return error_set(e, ERROR_USAGE, "there is no node %u: the torus has nodes 0 to %u", rank,
                         t->nodes - 1);
    if (a->plan != NULL && torus_is_plain(t) && source == TORUS_NO_NODE)
        return ask_for_plan(p, t, a, rank, e);
    if (routes_open_ends(&routes, t, a, e) != 0)
        return -1;
    int rc = count_messages(&d, &routes);
    if (rc == 0)
        rc = place_blocks(&d, &routes);
    if (rc == 0 && a->operation == OPERATION_ALLGATHER)
        rc = share_slots(p, &routes);
    if (rc == 0)
        rc = count_transit(p);
    routes_close(&routes);
    tally_free(&d.sends);
    tally_free(&d.arrivals);
    free(d.behind);
    free(d.hit);
    if (rc != 0) {
        plan_free(p);
        return error_set(e, ERROR_MEMORY, "out of memory for the plan of node %u", rank);
    }
    return 0;
}
