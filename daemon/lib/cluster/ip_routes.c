#include "daemon/lib/cluster/ip_routes.h"

#include <stdlib.h>

#include "daemon/lib/schedule/watch.h"

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
    *r = (struct ip_routes){0};
}

/* Returns the direction of a shortest way along a dimension in which the nodes differ. If they are opposite nodes of
 * a ring, half of the nodes take one direction and half the other. After the first hop they are not opposite any
 * more, so the relays continue in this direction. */
static int direction(const struct torus *t, unsigned dim, const uint32_t *at, const uint32_t *to)
{
    int way = 0;
    uint32_t sum = at[dim];

    (void)torus_shortest(t, dim, at[dim], to[dim], &way);
    if (way != 0)
        return way;
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

unsigned ip_routes_choose(const struct torus *t, uint32_t rank, uint32_t to, uint32_t ports)
{
    uint32_t at[TORUS_MAX_DIMS], target[TORUS_MAX_DIMS];
    unsigned preferred[TORUS_MAX_PORTS], count;

    torus_coordinates(t, rank, at);
    torus_coordinates(t, to, target);
    count = preferences(t, at, target, preferred);
    for (unsigned i = 0; i < count; i++)
        if ((ports & UINT32_C(1) << preferred[i]) != 0 &&
            t->graph[torus_port_dim(t, preferred[i])] == NULL)
            return preferred[i];
    return choose_any(rank, to, ports);
}

/* Stores the distances of all nodes from node `to`, over cables that are not broken; TORUS_NO_NODE if there is no
 * way. */
static void measure(const struct ip_routes *r, uint32_t to, uint32_t *hops, uint32_t *queue)
{
    uint32_t first = 0, last = 0;

    for (uint32_t i = 0; i < r->torus.nodes; i++)
        hops[i] = TORUS_NO_NODE;
    hops[to] = 0;
    queue[last++] = to;
    while (first < last) {
        uint32_t rank = queue[first++];
        for (unsigned port = 0; port < torus_ports(&r->torus); port++) {
            uint32_t next = torus_neighbour(&r->torus, rank, port);
            if (!damage_has_link(&r->damage, rank, port) || hops[next] != TORUS_NO_NODE)
                continue;
            hops[next] = hops[rank] + 1;
            queue[last++] = next;
        }
    }
}

/* Returns the first preferred port that leads nearer to `to`. */
static uint8_t choose(const struct ip_routes *r, uint32_t rank, const uint32_t *to,
                      const uint32_t *hops)
{
    uint32_t at[TORUS_MAX_DIMS];
    unsigned ports[TORUS_MAX_PORTS], count;

    if (hops[rank] == 0 || hops[rank] == TORUS_NO_NODE)
        return IP_ROUTES_NO_PORT;
    torus_coordinates(&r->torus, rank, at);
    count = preferences(&r->torus, at, to, ports);
    for (unsigned i = 0; i < count; i++)
        if (damage_has_link(&r->damage, rank, ports[i]) &&
            hops[torus_neighbour(&r->torus, rank, ports[i])] + 1 == hops[rank])
            return (uint8_t)ports[i];
    return IP_ROUTES_NO_PORT;
}

int ip_routes_find(struct ip_routes *r, struct error *e)
{
    uint32_t nodes = r->torus.nodes, to[TORUS_MAX_DIMS];
    uint32_t *hops = malloc(nodes * sizeof hops[0]), *queue = malloc(nodes * sizeof queue[0]);
    bool room = hops != NULL && queue != NULL;

    for (uint32_t destination = 0; room && destination < nodes; destination++) {
        watch_tell((double)destination / nodes);
        measure(r, destination, hops, queue);
        torus_coordinates(&r->torus, destination, to);
        for (uint32_t rank = 0; rank < nodes; rank++)
            r->port[(size_t)rank * nodes + destination] = choose(r, rank, to, hops);
    }
    free(hops);
    free(queue);
    return room ? 0 : error_set(e, ERROR_MEMORY, "out of memory for the routes");
}

unsigned ip_routes_port(const struct ip_routes *r, uint32_t rank, uint32_t destination)
{
    return r->port[(size_t)rank * r->torus.nodes + destination];
}
