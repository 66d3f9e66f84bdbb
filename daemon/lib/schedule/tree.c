#include "daemon/lib/schedule/tree.h"

#include <stdlib.h>

#include "proto/text.h"

/* Back along the last leg of the path from the root, which is in the highest dimension where the two
 * nodes differ. */
int tree_parent(const struct torus *t, uint32_t root, uint32_t rank)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];

    torus_coordinates(t, root, from);
    torus_coordinates(t, rank, to);
    for (unsigned dim = t->dims; dim-- > 0;) {
        int direction = 1; /* at the exact opposite */
        if (t->graph[dim] != NULL) {
            if (from[dim] != to[dim])
                return (int)torus_port(t, dim,
                                       (int)graph_towards(t->graph[dim], to[dim], from[dim]) + 1);
            continue;
        }
        if (torus_shortest(t, dim, from[dim], to[dim], &direction) > 0)
            return (int)torus_port(t, dim, -direction);
    }
    return -1;
}

void tree_node(const struct torus *t, uint32_t root, uint32_t rank, struct tree_node *out)
{
    *out = (struct tree_node){.parent = tree_parent(t, root, rank)};
    for (unsigned port = 0; port < torus_ports(t); port++) {
        uint32_t neighbour = torus_neighbour(t, rank, port);
        if (neighbour != TORUS_NO_NODE &&
            tree_parent(t, root, neighbour) == (int)torus_port_opposite(t, port))
            out->child[out->children++] = (uint8_t)port;
    }
}

/* Finds the tree over links that carry at least this much in both directions. `order` has room for all nodes. Returns how
 * many nodes it reaches. */
static uint32_t reach(const struct damage *d, uint32_t root, uint32_t least, uint8_t *parent,
                      uint32_t *order)
{
    const struct torus *t = &d->torus;
    uint32_t known = 0;

    for (uint32_t node = 0; node < t->nodes; node++)
        parent[node] = TREE_NONE;
    order[known++] = root;
    for (uint32_t i = 0; i < known; i++) {
        for (unsigned port = 0; port < torus_ports(t); port++) {
            uint32_t there = torus_neighbour(t, order[i], port);
            if (!damage_has_link(d, order[i], port) || there == root ||
                parent[there] != TREE_NONE || damage_link_rate(d, order[i], port) < least)
                continue;
            parent[there] = (uint8_t)torus_port_opposite(t, port);
            order[known++] = there;
        }
    }
    return known;
}

static int no_memory(const struct torus *t, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for a tree of %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

int tree_find(const struct damage *d, uint32_t root, uint8_t *parent, struct error *e)
{
    uint32_t *order = calloc(d->torus.nodes, sizeof *order);

    if (order == NULL)
        return no_memory(&d->torus, e);
    (void)reach(d, root, 0, parent, order);
    free(order);
    return 0;
}

int tree_find_fast(const struct damage *d, uint32_t root, uint8_t *parent, struct error *e)
{
    uint32_t *order = calloc(d->torus.nodes, sizeof *order);
    uint32_t least = d->rate != NULL ? DAMAGE_FULL_RATE : 0;

    if (order == NULL)
        return no_memory(&d->torus, e);
    const uint32_t all = reach(d, root, 0, parent, order);
    do
        least /= 2;
    while (reach(d, root, least, parent, order) < all);
    free(order);
    return 0;
}

void tree_node_found(const struct torus *t, const uint8_t *parent, uint32_t rank,
                     struct tree_node *out)
{
    *out = (struct tree_node){.parent = parent[rank] == TREE_NONE ? -1 : (int)parent[rank]};
    for (unsigned port = 0; port < torus_ports(t); port++) {
        uint32_t neighbour = torus_neighbour(t, rank, port);
        if (neighbour != TORUS_NO_NODE && parent[neighbour] == torus_port_opposite(t, port))
            out->child[out->children++] = (uint8_t)port;
    }
}
