#include "daemon/lib/cluster/route_weights.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/work.h"

#define PARTS_LEAST 8u /* of the traffic between two nodes, each of which takes one path */
#define PARTS_MOST 64u

/* --- paths --- */

static size_t channel_of(const struct route_links *l, uint32_t node, unsigned port)
{
    return (size_t)node * torus_ports(l->torus) + port;
}

static uint32_t cost_of(const struct route_links *l, uint32_t node, unsigned port)
{
    const uint32_t rate = l->rate[channel_of(l, node, port)];

    return (ROUTE_COST * DAMAGE_FULL_RATE + rate / 2) / rate;
}

static bool may_pass(const struct route_links *l, uint32_t node, uint32_t to)
{
    return node == to || l->forwards == NULL || l->forwards[node];
}

int route_paths_init(struct route_paths *p, const struct torus *torus)
{
    const size_t nodes = torus->nodes;

    *p = (struct route_paths){.cost = calloc(nodes, sizeof *p->cost),
                              .hops = calloc(nodes, sizeof *p->hops),
                              .nearer = calloc(nodes, sizeof *p->nearer),
                              .order = calloc(nodes, sizeof *p->order),
                              .heap = calloc(nodes * torus_ports(torus) + 1, sizeof *p->heap)};
    return p->cost != NULL && p->hops != NULL && p->nearer != NULL && p->order != NULL &&
                   p->heap != NULL
               ? 0
               : -1;
}

void route_paths_free(struct route_paths *p)
{
    free(p->cost);
    free(p->hops);
    free(p->nearer);
    free(p->order);
    free(p->heap);
    *p = (struct route_paths){0};
}

/* The heap has the smallest cost first, and among those the lowest node. */
static void push(uint64_t *heap, size_t count, uint32_t cost, uint32_t node)
{
    const uint64_t key = (uint64_t)cost << 32 | node;
    size_t at = count;

    for (; at > 0 && heap[(at - 1) / 2] > key; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = key;
}

static uint64_t pop(uint64_t *heap, size_t count)
{
    const uint64_t first = heap[0], key = heap[count - 1];
    size_t at = 0;

    for (size_t child = 1; child < count - 1; child = 2 * at + 1) {
        child += child + 1 < count - 1 && heap[child + 1] < heap[child];
        if (heap[child] >= key)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
    return first;
}

/* Dijkstra's algorithm, from the destination against the direction of packets. */
static void find_costs(struct route_paths *p, const struct route_links *l, uint32_t to)
{
    const struct torus *t = l->torus;
    size_t waiting = 0;

    for (uint32_t node = 0; node < t->nodes; node++)
        p->cost[node] = ROUTE_FAR;
    p->cost[to] = 0;
    p->count = 0;
    push(p->heap, waiting++, 0, to);
    while (waiting > 0) {
        const uint64_t first = pop(p->heap, waiting--);
        const uint32_t node = (uint32_t)first;
        if (p->cost[node] != first >> 32)
            continue;
        p->order[p->count++] = node;
        for (unsigned port = 0; port < torus_ports(t) && may_pass(l, node, to); port++) {
            const uint32_t before = torus_neighbour(t, node, port);
            if (before == TORUS_NO_NODE || (l->up[node] & 1u << port) == 0)
                continue;
            const uint32_t cost = p->cost[node] + cost_of(l, before, torus_port_opposite(t, port));
            if (cost >= p->cost[before])
                continue;
            p->cost[before] = cost;
            push(p->heap, waiting++, cost, before);
        }
    }
}

void route_paths_find(struct route_paths *p, const struct route_links *l, uint32_t to)
{
    const struct torus *t = l->torus;

    find_costs(p, l, to);
    memset(p->nearer, 0, t->nodes * sizeof *p->nearer);
    memset(p->hops, 0, t->nodes * sizeof *p->hops);
    for (uint32_t i = 0; i < p->count; i++) {
        const uint32_t node = p->order[i];
        for (unsigned port = 0; port < torus_ports(t); port++) {
            const uint32_t next = torus_neighbour(t, node, port);
            if (next == TORUS_NO_NODE || (l->up[node] & 1u << port) == 0 ||
                p->cost[next] >= p->cost[node] || !may_pass(l, next, to))
                continue;
            p->nearer[node] |= 1u << port;
            if (p->hops[next] >= p->hops[node])
                p->hops[node] = p->hops[next] + 1;
        }
    }
}

/* --- weights --- */

struct balance {
    const struct route_links *l;
    size_t nodes, ports;
    uint32_t from;
    uint32_t *nearer, *order, *count; /* of the paths to each node */
    uint64_t *load;                   /* by channel: parts */
    double *price, busiest;           /* by node: of the path to the destination; load over rate */
    uint32_t *parts, *best;           /* by node: parts that pass, and the port that they take */
    uint32_t *flow;                   /* as the weights */
};

static void balance_free(struct balance *b)
{
    free(b->nearer);
    free(b->order);
    free(b->count);
    free(b->load);
    free(b->price);
    free(b->parts);
    free(b->best);
    free(b->flow);
}

static size_t rows(const struct balance *b)
{
    return b->from == ROUTE_ALL_NODES ? b->nodes : 1;
}

/* Returns where the flows and weights of a node to a destination begin. */
static size_t row(const struct balance *b, uint32_t node, uint32_t to)
{
    return ((b->from == ROUTE_ALL_NODES ? node * b->nodes : 0) + to) * b->ports;
}

static bool is_wanted(const struct balance *b, uint32_t node)
{
    return b->from == ROUTE_ALL_NODES || b->from == node;
}

static int balance_init(struct balance *b)
{
    b->nearer = calloc(b->nodes * b->nodes, sizeof *b->nearer);
    b->order = calloc(b->nodes * b->nodes, sizeof *b->order);
    b->count = calloc(b->nodes, sizeof *b->count);
    b->load = calloc(b->nodes * b->ports, sizeof *b->load);
    b->price = calloc(b->nodes, sizeof *b->price);
    b->parts = calloc(b->nodes, sizeof *b->parts);
    b->best = calloc(b->nodes, sizeof *b->best);
    b->flow = calloc(rows(b) * b->nodes * b->ports, sizeof *b->flow);
    return b->nearer != NULL && b->order != NULL && b->count != NULL && b->load != NULL &&
                   b->price != NULL && b->parts != NULL && b->best != NULL && b->flow != NULL
               ? 0
               : -1;
}

static void find_paths(struct balance *b, struct route_paths *p)
{
    for (uint32_t to = 0; to < b->nodes; to++) {
        route_paths_find(p, b->l, to);
        memcpy(&b->nearer[to * b->nodes], p->nearer, b->nodes * sizeof *b->nearer);
        memcpy(&b->order[to * b->nodes], p->order, p->count * sizeof *b->order);
        b->count[to] = p->count;
    }
}

static double busy(const struct balance *b, size_t channel, unsigned more)
{
    return (double)(b->load[channel] + more) / b->l->rate[channel];
}

/* Returns the price of one more part on a channel, which rises steeply to that of the busiest one, and above it. */
static double price_of(const struct balance *b, size_t channel)
{
    const double share = b->busiest > 0 ? busy(b, channel, 1) / b->busiest : 0;
    const double square = share * share, fourth = square * square, eighth = fourth * fourth;

    return (eighth * eighth + 1e-6) / b->l->rate[channel];
}

/* Finds the cheapest path of each node to `to`. */
static void choose_paths(struct balance *b, uint32_t to)
{
    for (uint32_t i = 1; i < b->count[to]; i++) {
        const uint32_t node = b->order[to * b->nodes + i];
        double least = -1;
        for (uint32_t left = b->nearer[to * b->nodes + node]; left != 0; left &= left - 1) {
            const unsigned port = (unsigned)__builtin_ctz(left);
            const uint32_t next = torus_neighbour(b->l->torus, node, port);
            const double price =
                price_of(b, channel_of(b->l, node, port)) + (next == to ? 0 : b->price[next]);
            if (least >= 0 && price >= least)
                continue;
            least = price;
            b->best[node] = port;
        }
        b->price[node] = least;
    }
}

/* Sends a part from each node to `to`. */
static void send_parts(struct balance *b, uint32_t to)
{
    for (uint32_t i = 0; i < b->count[to]; i++)
        b->parts[b->order[to * b->nodes + i]] = 1;
    for (uint32_t i = b->count[to]; i-- > 1;) {
        const uint32_t node = b->order[to * b->nodes + i];
        const size_t channel = channel_of(b->l, node, b->best[node]);
        b->load[channel] += b->parts[node];
        b->parts[torus_neighbour(b->l->torus, node, b->best[node])] += b->parts[node];
        if (is_wanted(b, node))
            b->flow[row(b, node, to) + b->best[node]] += b->parts[node];
        if (busy(b, channel, 0) > b->busiest)
            b->busiest = busy(b, channel, 0);
    }
}

static unsigned common_factor(unsigned a, unsigned b)
{
    while (b != 0) {
        const unsigned rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void set_weights(const struct balance *b, const uint32_t *flow, uint8_t *weight)
{
    uint64_t all = 0;
    unsigned factor = 0;

    for (size_t port = 0; port < b->ports; port++)
        all += flow[port];
    for (size_t port = 0; port < b->ports && all > 0; port++) {
        weight[port] = (uint8_t)((flow[port] * (uint64_t)ROUTE_WEIGHT_SUM + all / 2) / all);
        factor = common_factor(factor, weight[port]);
    }
    for (size_t port = 0; port < b->ports && factor > 1; port++)
        weight[port] = (uint8_t)(weight[port] / factor);
}

static int balance_paths(struct balance *b, struct route_paths *p, unsigned parts)
{
    if (balance_init(b) != 0)
        return -1;
    find_paths(b, p);
    for (unsigned part = 0; part < parts; part++)
        for (uint32_t to = 0; to < b->nodes; to++) {
            watch_tell(((double)part + (double)to / (double)b->nodes) / parts);
            choose_paths(b, to);
            send_parts(b, to);
        }
    return 0;
}

/* The network is too large: the weights of a node follow the rates of its own links. */
static void follow_rates(const struct balance *b, struct route_paths *p, uint8_t *weight)
{
    uint32_t flow[TORUS_MAX_PORTS];

    for (uint32_t to = 0; to < b->nodes; to++) {
        route_paths_find(p, b->l, to);
        for (uint32_t node = 0; node < b->nodes; node++) {
            for (unsigned port = 0; port < b->ports; port++)
                flow[port] = (p->nearer[node] & 1u << port) != 0
                                 ? b->l->rate[channel_of(b->l, node, port)]
                                 : 0;
            if (is_wanted(b, node))
                set_weights(b, flow, &weight[row(b, node, to)]);
        }
    }
}

int route_weights_find(const struct route_links *l, uint32_t from, uint64_t effort, uint8_t *weight)
{
    struct balance b = {
        .l = l, .nodes = l->torus->nodes, .ports = torus_ports(l->torus), .from = from};
    const uint64_t parts = effort / (b.nodes * b.nodes * b.ports + 1);
    struct route_paths p;
    int rc = route_paths_init(&p, l->torus);

    memset(weight, 0, rows(&b) * b.nodes * b.ports);
    if (rc == 0 && parts < PARTS_LEAST) {
        follow_rates(&b, &p, weight);
    } else if (rc == 0) {
        rc = balance_paths(&b, &p, parts < PARTS_MOST ? (unsigned)parts : PARTS_MOST);
        for (size_t i = 0; rc == 0 && i < rows(&b) * b.nodes; i++)
            set_weights(&b, &b.flow[i * b.ports], &weight[i * b.ports]);
        balance_free(&b);
    }
    route_paths_free(&p);
    return rc;
}
