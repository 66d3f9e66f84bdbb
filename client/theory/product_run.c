#include "client/theory/product_run.h"

#include <stdlib.h>

#include "client/theory/timed.h"
#include "daemon/lib/schedule/tally.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

/* The key of a combined message. The order of the keys is that of the steps. */
static uint64_t hop_key(uint32_t step, uint32_t from, uint32_t to)
{
    return (uint64_t)step << 40 | (uint64_t)from << 20 | to;
}

static uint32_t key_step(uint64_t key)
{
    return (uint32_t)(key >> 40);
}

static uint32_t key_from(uint64_t key)
{
    return (uint32_t)(key >> 20) & (TORUS_MAX_NODES - 1);
}

static uint32_t key_to(uint64_t key)
{
    return (uint32_t)key & (TORUS_MAX_NODES - 1);
}
static int no_memory(const struct product *p, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory to simulate %u %s", p->nodes,
                     text_plural(p->nodes, "node", "nodes"));
}

/* The node after hop `hop` of a walk: the walk's stride further along its dimension, modulo the size, or that to which
 * the graph's path leads. */
static uint32_t next_node(const struct product *p, uint32_t node, const struct product_walk *walk,
                          uint32_t hop)
{
    const struct graph *g = p->factor[walk->dim].graph;
    uint32_t below = 1, n = p->factor[walk->dim].nodes;

    for (unsigned i = walk->dim + 1; i < p->dims; i++)
        below *= p->factor[i].nodes;
    uint32_t x = node / below % n;
    if (p->factor[walk->dim].kind == FACTOR_GRAPH) {
        unsigned direction = walk->walk.path != NULL ? walk->walk.path[hop].direction
                                                     : graph_towards(g, x, walk->to);
        return node - x * below + graph_neighbour(g, x, direction) * below;
    }
    int64_t to = ((int64_t)x + walk->walk.stride) % (int64_t)n;
    return node - x * below + (uint32_t)(to < 0 ? to + n : to) * below;
}

/* Follows one block along its route and counts its messages. Returns 0, or -1 with *e. */
static int follow(const struct product *p, uint32_t source, uint32_t destination,
                  const struct product_walk *walks, unsigned count, struct tally *messages,
                  struct product_report *r, struct error *e)
{
    uint32_t here = source, free_from = 0;

    for (unsigned i = 0; i < count; i++) {
        for (uint32_t hop = 0; hop < walks[i].walk.hops; hop++) {
            const struct graph_hop *path = walks[i].walk.path;
            uint32_t step = walks[i].walk.step + (path != NULL ? path[hop].step : hop);
            if (step < free_from)
                return error_set(e, ERROR_DAMAGED, "block %u -> %u: step %u comes after step %u",
                                 source, destination, step, free_from - 1);
            uint32_t next = next_node(p, here, &walks[i], hop);
            if (product_distance(p, here, next) != 1)
                return error_set(e, ERROR_DAMAGED,
                                 "block %u -> %u, step %u: nodes %u and %u are not adjacent",
                                 source, destination, step, here, next);
            if (tally_add(messages, hop_key(step, here, next)) != 0)
                return no_memory(p, e);
            r->hops++;
            here = next;
            free_from = step + 1;
        }
    }
    if (here != destination)
        return error_set(e, ERROR_DAMAGED, "block %u -> %u ends at node %u", source, destination,
                         here);
    r->blocks++;
    return 0;
}

/* A message of each step on each link that has one. `channel` has room for a number by pair of nodes. */
static int add_messages(struct timed *t, const struct tally *messages, uint32_t nodes,
                        uint32_t *channel, struct product_report *r)
{
    uint32_t channels = 0;

    for (size_t i = 0; i < messages->count; i++) {
        const uint64_t key = messages->at[i].key;
        const struct timed_channel link = {.from = key_from(key), .to = key_to(key), .unit = 1};
        const struct timed_message message = {.units = (uint32_t)messages->at[i].count,
                                              .step = key_step(key)};
        uint32_t *at = &channel[(size_t)link.from * nodes + link.to];
        if (*at == 0) { /* numbered from 1 here */
            if (timed_add_channel(t, &link) != 0)
                return -1;
            *at = ++channels;
        }
        if (timed_add_message(t, &message) != 0 || timed_add_hop(t, *at - 1) != 0)
            return -1;
        r->steps += i == 0 || key_step(messages->at[i - 1].key) != message.step;
    }
    r->messages = messages->count;
    return 0;
}

/* A message waited for another one of its step: their node sends to two nodes, or receives from two. */
static int broken_rule(struct timed *t, const struct timed_wait *w, struct error *e)
{
    uint32_t hops;
    const struct timed_channel *wanted = timed_channel_at(t, w->channel);
    const struct timed_channel *taken = timed_channel_at(t, *timed_path(t, w->behind, &hops));
    const uint32_t step = timed_message_at(t, w->message)->step;

    if (wanted->from == taken->from)
        return error_set(e, ERROR_DAMAGED, "step %u: node %u sends to nodes %u and %u", step,
                         wanted->from, taken->to, wanted->to);
    return error_set(e, ERROR_DAMAGED, "step %u: node %u receives from nodes %u and %u", step,
                     wanted->to, taken->from, wanted->from);
}

/* Runs the steps one after another on nodes with one port: what waits within a step is against the rules. */
static int run_steps(const struct product *p, const struct tally *messages,
                     struct product_report *r, struct error *e)
{
    const struct timed_model model = {.ports = 1, .barrier = true};
    struct timed_report report;
    struct timed *t = timed_new(p->nodes);
    uint32_t *channel = calloc((size_t)p->nodes * p->nodes, sizeof *channel);
    int rc;

    if (t == NULL || channel == NULL || add_messages(t, messages, p->nodes, channel, r) != 0)
        rc = no_memory(p, e);
    else
        rc = timed_run(t, &model, NULL, NULL, &report, e);
    if (rc == 0 && report.waited > 0)
        rc = broken_rule(t, &report.first, e);
    else if (rc == 0)
        r->transmission = report.time;
    free(channel);
    timed_free(t);
    return rc;
}

int product_run(const struct product *p, enum product_algorithm a, product_route_fn *route,
                struct product_report *r, struct error *e)
{
    struct product_walk walks[PRODUCT_MAX_DIMS];
    struct tally messages = {0};
    uint64_t followed = 0;
    int rc = 0;

    if (p->nodes > PRODUCT_RUN_MOST_NODES)
        return error_set(e, ERROR_REFUSED, "%u nodes are too many: at most %u can be simulated",
                         p->nodes, PRODUCT_RUN_MOST_NODES);
    if (!product_has_exchange(p))
        return error_set(e, ERROR_REFUSED,
                         "a graph of this network is too large for an exchange of its own, which "
                         "%s needs",
                         product_algorithm_name(a));
    if (product_steps(p, a) > MESSAGE_MAX_STEP + 1)
        return error_set(e, ERROR_REFUSED,
                         "%s takes more than %u steps on this network, too many to simulate",
                         product_algorithm_name(a), MESSAGE_MAX_STEP + 1);
    *r = (struct product_report){0};
    for (uint32_t s = 0; s < p->nodes && rc == 0; s++)
        for (uint32_t d = 0; d < p->nodes && rc == 0; d++)
            if (s != d) {
                rc = follow(p, s, d, walks, route(p, a, s, d, walks), &messages, r, e);
                watch_count(&followed, (uint64_t)p->nodes * (p->nodes - 1));
            }
    if (rc == 0) {
        tally_sort(&messages);
        rc = run_steps(p, &messages, r, e);
    }
    tally_free(&messages);
    return rc;
}
