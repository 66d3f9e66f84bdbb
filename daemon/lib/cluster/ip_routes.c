#include "daemon/lib/cluster/ip_routes.h"

#include <stdlib.h>

#include "daemon/lib/cluster/route_planner.h"
#include "daemon/lib/cluster/route_weights.h"
#include "daemon/lib/schedule/work.h"

#define EFFORT UINT64_C(400000000) /* some seconds */

int ip_routes_init(struct ip_routes *r, const struct torus *t, const char *without, struct error *e)
{
    int rc;

    *r = (struct ip_routes){.torus = *t};
    if (t->nodes > IP_ROUTES_MOST_NODES)
        return error_set(e, ERROR_USAGE,
                         "%u nodes are too many: routes can be written for up to %d nodes",
                         t->nodes, IP_ROUTES_MOST_NODES);
    rc = without != NULL ? damage_parse(&r->damage, t, without, e) : damage_init(&r->damage, t, e);
    if (rc != 0)
        return without != NULL ? error_wrap(e, "--without") : rc;
    r->port = malloc((size_t)t->nodes * t->nodes);
    if (r->port != NULL)
        return 0;
    ip_routes_free(r);
    return error_set(e, ERROR_MEMORY, "out of memory for the routes");
}

void ip_routes_free(struct ip_routes *r)
{
    damage_free(&r->damage);
    free(r->port);
    free(r->weight);
    *r = (struct ip_routes){0};
}

/* Returns the direction of a shortest path along a dimension in which the nodes differ. If they are opposite nodes of
 * a ring, half of the nodes take one direction and half the other. After the first hop they are not opposite any
 * more, so the relays continue in this direction. */
static int direction(const struct torus *t, unsigned dim, const uint32_t *at, const uint32_t *to)
{
    int direction = 0;
    uint32_t sum = at[dim];

    (void)torus_shortest(t, dim, at[dim], to[dim], &direction);
    if (direction != 0)
        return direction;
    for (unsigned i = 0; i < t->dims; i++)
        sum += i != dim ? to[i] : 0;
    return sum % 2 == 0 ? 1 : -1;
}

/* Stores all ports in the order in which the way to `to` prefers them. Returns their number. */
static unsigned preferences(const struct torus *t, const uint32_t *at, const uint32_t *to,
                            unsigned *ports)
{
    unsigned count = 0, rest = 0, other[TORUS_MAX_PORTS];

    for (unsigned dim = 0; dim < t->dims; dim++) {
        if (t->graph[dim] != NULL)
            continue;
        if (at[dim] != to[dim])
            ports[count++] = torus_port(t, dim, direction(t, dim, at, to));
        else
            other[rest++] = torus_port(t, dim, 1);
    }
    /* Then the ports of detours, which are used if no other port leads nearer. */
    for (unsigned i = 0, straight = count; i < straight; i++)
        ports[count++] = torus_port_opposite(t, ports[i]);
    for (unsigned i = 0; i < rest; i++) {
        ports[count++] = other[i];
        ports[count++] = torus_port_opposite(t, other[i]);
    }
    for (unsigned port = 0; port < torus_ports(t); port++)
        if (t->graph[torus_port_dim(t, port)] != NULL)
            ports[count++] = port;
    return count;
}

/* Returns one of the ports, by the two nodes. */
static unsigned choose_any(uint32_t rank, uint32_t to, uint32_t ports)
{
    unsigned skip = (rank + to) % (unsigned)__builtin_popcount(ports);

    for (; skip > 0; skip--)
        ports &= ports - 1;
    return (unsigned)__builtin_ctz(ports);
}

/* Returns the one of these ports (bits; not 0) that the way to `to` prefers. */
static unsigned prefer(const struct torus *t, uint32_t rank, uint32_t to, uint32_t ports)
{
    uint32_t at[TORUS_MAX_DIMS], target[TORUS_MAX_DIMS];
    unsigned preferred[TORUS_MAX_PORTS], count, i = 0;

    torus_coordinates(t, rank, at);
    torus_coordinates(t, to, target);
    count = preferences(t, at, target, preferred);
    while (i + 1 < count && (ports & UINT32_C(1) << preferred[i]) == 0)
        i++;
    return preferred[i];
}

unsigned ip_routes_choose(const struct torus *t, uint32_t rank, uint32_t to, uint32_t ports)
{
    unsigned preferred = prefer(t, rank, to, ports);

    return t->graph[torus_port_dim(t, preferred)] == NULL ? preferred : choose_any(rank, to, ports);
}

/* Returns the preferred port of those that lead nearer to `to`. */
static uint8_t choose(const struct torus *t, const uint32_t *up, uint32_t rank, uint32_t to,
                      const uint32_t *hops)
{
    uint32_t nearer = 0;

    for (unsigned port = 0; port < torus_ports(t) && hops[rank] != PLANNER_FAR; port++)
        if ((up[rank] & UINT32_C(1) << port) != 0 &&
            hops[torus_neighbour(t, rank, port)] + 1 == hops[rank])
            nearer |= UINT32_C(1) << port;
    return nearer != 0 ? (uint8_t)prefer(t, rank, to, nearer) : IP_ROUTES_NO_PORT;
}

/* Sets by rank the bits of the ports whose cables are not broken. */
static void list_links(const struct ip_routes *r, uint32_t *up)
{
    for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&r->torus); port++)
            if (damage_has_link(&r->damage, rank, port))
                up[rank] |= UINT32_C(1) << port;
}

/* Finds routes by the rates of cables. */
static int find_by_rates(struct ip_routes *r, const uint32_t *up)
{
    const size_t nodes = r->torus.nodes, ports = torus_ports(&r->torus);
    const struct route_links links = {&r->torus, up, NULL, r->damage.rate};

    r->weight = calloc(nodes * nodes * ports, sizeof *r->weight);
    if (r->weight == NULL || route_weights_find(&links, ROUTE_ALL_NODES, EFFORT, r->weight) != 0)
        return -1;
    for (size_t i = 0; i < nodes * nodes; i++) {
        const uint8_t *weight = &r->weight[i * ports];
        unsigned best = 0;
        for (unsigned port = 1; port < ports; port++)
            if (weight[port] > weight[best])
                best = port;
        r->port[i] = ports > 0 && weight[best] > 0 ? (uint8_t)best : IP_ROUTES_NO_PORT;
    }
    return 0;
}

static void find_by_hops(struct ip_routes *r, const uint32_t *up, uint32_t *hops, uint32_t *queue)
{
    const uint32_t nodes = r->torus.nodes;

    for (uint32_t to = 0; to < nodes; to++) {
        watch_tell((double)to / nodes);
        route_planner_measure(&r->torus, up, NULL, to, hops, queue);
        for (uint32_t rank = 0; rank < nodes; rank++)
            r->port[(size_t)rank * nodes + to] = choose(&r->torus, up, rank, to, hops);
    }
}

/* Whether the cables that work have different rates. */
static bool has_rates(const struct damage *d)
{
    bool any = false;

    for (uint32_t rank = 0; d->rate != NULL && rank < d->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            any |= damage_has_link(d, rank, port) && damage_rate(d, rank, port) < DAMAGE_FULL_RATE;
    return any;
}

int ip_routes_find(struct ip_routes *r, struct error *e)
{
    uint32_t nodes = r->torus.nodes, *up = calloc((size_t)3 * nodes, sizeof *up);
    int rc = up != NULL ? 0 : -1;

    if (rc == 0)
        list_links(r, up);
    if (rc == 0 && has_rates(&r->damage))
        rc = find_by_rates(r, up);
    else if (rc == 0)
        find_by_hops(r, up, up + nodes, up + 2 * (size_t)nodes);
    free(up);
    return rc == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory for the routes");
}

unsigned ip_routes_port(const struct ip_routes *r, uint32_t rank, uint32_t destination)
{
    return r->port[(size_t)rank * r->torus.nodes + destination];
}

unsigned ip_routes_weight(const struct ip_routes *r, uint32_t rank, uint32_t destination,
                          unsigned port)
{
    const size_t route = (size_t)rank * r->torus.nodes + destination;

    if (r->weight == NULL)
        return r->port[route] == port;
    return r->weight[route * torus_ports(&r->torus) + port];
}
