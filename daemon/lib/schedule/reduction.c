#include "daemon/lib/schedule/reduction.h"

#include <stdlib.h>

#include "daemon/lib/schedule/routes.h"
#include "daemon/lib/schedule/tree.h"
#include "proto/text.h"

_Static_assert(TORUS_MAX_PORTS <= 32, "a set of ports has 32 bits");

/* The tree of one segment of one source's block. All arrays are by node. */
struct growth {
    uint8_t *parent;    /* port towards the source */
    uint32_t *children; /* bits of the ports towards children */
    uint16_t *distance; /* hops from the source */
    uint32_t *edges;    /* children in the trees of all segments so far */
};

/* Makes room for `count` trees; *children are the ports of each, for order_channels(). Returns 0,
 * or -1 without memory. */
static int allocate_trees(struct reduction_trees *p, uint64_t count, uint32_t **children)
{
    p->tree = count < UINT32_MAX ? calloc((size_t)count, sizeof *p->tree) : NULL;
    *children = p->tree != NULL ? calloc((size_t)count, sizeof **children) : NULL;
    p->count = (uint32_t)count;
    return *children != NULL ? 0 : -1;
}

/* Makes p->child, and gives every piece its place on its channel; the trees are complete otherwise.
 * Returns 0, or -1 without memory. */
static int order_channels(struct reduction_trees *p, unsigned ports, const uint32_t *children)
{
    for (uint32_t i = 0; i < p->count; i++)
        p->edges += p->tree[i].children;
    p->child = calloc((size_t)p->edges + 1, sizeof *p->child);
    if (p->child == NULL)
        return -1;
    for (unsigned port = 0; port < ports; port++) {
        p->arrival[port] = calloc((size_t)p->edges + 1, sizeof *p->arrival[port]);
        p->departure[port] = calloc((size_t)p->count + 1, sizeof *p->departure[port]);
        if (p->arrival[port] == NULL || p->departure[port] == NULL)
            return -1;
    }
    for (uint32_t i = 0, edge = 0; i < p->count; i++) {
        struct reduction_tree *tree = &p->tree[i];
        tree->first = edge;
        if (tree->parent != REDUCTION_NO_PORT) {
            tree->place = p->departures[tree->parent]++;
            p->departure[tree->parent][tree->place] = i;
        }
        for (unsigned port = 0; port < ports; port++) {
            if ((children[i] & 1u << port) == 0)
                continue;
            uint32_t place = p->arrivals[port]++;
            p->child[edge] = (struct reduction_child){i, place, (uint8_t)port};
            p->arrival[port][place] = edge++;
        }
    }
    return 0;
}

/* Fills *g with the tree of a segment's routes from the representative of a class. Returns 0, or -1
 * with *e if they are not a tree. */
static int grow(struct growth *g, struct routes *r, uint32_t source_class, uint32_t segment,
                struct error *e)
{
    const uint32_t nodes = r->torus->nodes, source = r->representative[source_class];

    for (uint32_t node = 0; node < nodes; node++) {
        g->parent[node] = REDUCTION_NO_PORT;
        g->children[node] = g->distance[node] = 0;
    }
    for (uint32_t destination = 0; destination < nodes; destination++) {
        uint32_t here = source;
        if (destination == source)
            continue;
        routes_seek(r, source_class, destination, segment);
        for (uint32_t i = 0; i < r->legs; i++) {
            unsigned port = torus_port(r->torus, r->leg[i].dim, r->leg[i].direction);
            unsigned back = torus_port_opposite(r->torus, port);
            for (uint16_t hop = 0; hop < r->leg[i].hops; hop++) {
                uint32_t next = routes_neighbour(r, here, port);
                if (next == source || next == TORUS_NO_NODE ||
                    (g->parent[next] != REDUCTION_NO_PORT && g->parent[next] != back))
                    return error_set(e, ERROR_USAGE,
                                     "the routes of %s from node %u are not a tree: reductions "
                                     "cannot use them",
                                     r->algorithm->name, source);
                g->parent[next] = (uint8_t)back;
                g->distance[next] = (uint16_t)(g->distance[here] + 1);
                g->children[here] |= (1u << port);
                here = next;
            }
        }
    }
    return 0;
}

/* Adds the tree *g as it looks from every node that a translation takes to node p->rank; with a
 * single owner, only from the node at which the moved source is the root. */
static void note(struct reduction_trees *p, const struct routes *r, const struct growth *g,
                 uint32_t root, uint32_t *children)
{
    for (uint32_t here = 0; here < r->torus->nodes; here++) {
        if (g->distance[here] > p->most_distance)
            p->most_distance = g->distance[here];
        g->edges[here] += (uint32_t)__builtin_popcount(g->children[here]);
        if (p->single && g->edges[here] > p->most_children)
            p->most_children = g->edges[here];
        if (r->class_of[here] != r->class_of[p->rank])
            continue;
        uint32_t owner = routes_move(r, r->source, here, p->rank);
        if (p->single && owner != root)
            continue;
        size_t index = (size_t)(p->single ? 0 : owner) * p->segments + r->segment;
        p->tree[index] =
            (struct reduction_tree){.owner = owner,
                                    .segment = (uint16_t)r->segment,
                                    .distance = g->distance[here],
                                    .parent = g->parent[here],
                                    .children = (uint8_t)__builtin_popcount(g->children[here])};
        children[index] = g->children[here];
    }
}

static int walk(struct reduction_trees *p, struct routes *r, uint32_t root, uint32_t *children,
                struct error *e)
{
    const uint32_t nodes = r->torus->nodes;
    struct growth g = {.parent = calloc(nodes, sizeof *g.parent),
                       .children = calloc(nodes, sizeof *g.children),
                       .distance = calloc(nodes, sizeof *g.distance),
                       .edges = calloc(nodes, sizeof *g.edges)};
    int rc = 0;

    if (g.parent == NULL || g.children == NULL || g.distance == NULL || g.edges == NULL)
        rc = error_set(e, ERROR_MEMORY, "out of memory for the trees of %u %s", nodes,
                       text_plural(nodes, "node", "nodes"));
    for (uint32_t c = 0; rc == 0 && c < r->classes; c++) {
        if (p->single && c != r->class_of[root])
            continue;
        for (uint32_t segment = 0; rc == 0 && segment < p->segments; segment++) {
            r->source = r->representative[c];
            r->segment = segment;
            rc = grow(&g, r, c, segment, e);
            if (rc == 0)
                note(p, r, &g, root, children);
        }
    }
    free(g.parent);
    free(g.children);
    free(g.distance);
    free(g.edges);
    return rc;
}

static int no_memory(struct reduction_trees *p, struct error *e)
{
    uint32_t rank = p->rank;

    reduction_free(p);
    return error_set(e, ERROR_MEMORY, "out of memory for the trees of node %u", rank);
}

/* Builds the trees of all owners or, if p->single, of `root`. */
static int build(struct reduction_trees *p, const struct torus *t, const struct algorithm *a,
                 uint32_t root, struct error *e)
{
    struct routes routes;
    uint32_t *children = NULL;
    uint64_t owners = p->single ? 1 : t->nodes;

    if (a->operation != OPERATION_ALLGATHER)
        return error_set(e, ERROR_USAGE, "%s is not an algorithm for allgathers", a->name);
    if (routes_open(&routes, t, a, e) != 0)
        return -1;
    int rc = allocate_trees(p, owners * a->segments, &children);
    bool walked = rc == 0 && walk(p, &routes, root, children, e) == 0;
    routes_close(&routes);
    if (rc == 0 && walked)
        rc = order_channels(p, torus_ports(t), children);
    free(children);
    if (rc != 0)
        return no_memory(p, e);
    if (!walked) {
        reduction_free(p);
        return -1;
    }
    return 0;
}

static int no_node(const struct torus *t, uint32_t rank, struct error *e)
{
    return error_set(e, ERROR_USAGE, "there is no node %u: the torus has nodes 0 to %u", rank,
                     t->nodes - 1);
}

int reduction_build(struct reduction_trees *p, const struct torus *t, const struct algorithm *a,
                    uint32_t rank, struct error *e)
{
    *p = (struct reduction_trees){.rank = rank, .segments = a->segments};
    if (rank >= t->nodes)
        return no_node(t, rank, e);
    return build(p, t, a, TORUS_NO_NODE, e);
}

int reduction_build_rooted(struct reduction_trees *p, const struct torus *t,
                           const struct algorithm *a, uint32_t root, uint32_t rank, struct error *e)
{
    *p = (struct reduction_trees){.rank = rank, .single = true, .segments = a->segments};
    if (rank >= t->nodes || root >= t->nodes)
        return no_node(t, rank >= t->nodes ? rank : root, e);
    return build(p, t, a, root, e);
}

/* Fills *p with one tree, in which this node is `node`, `distance` hops from the root. */
static int plant(struct reduction_trees *p, const struct torus *t, uint32_t root, uint32_t distance,
                 const struct tree_node *node, struct error *e)
{
    uint32_t *children = NULL;
    int rc = allocate_trees(p, 1, &children);

    p->most_children = torus_ports(t);
    if (rc == 0) {
        p->tree[0] = (struct reduction_tree){.owner = root,
                                             .distance = (uint16_t)distance,
                                             .parent = node->parent >= 0 ? (uint8_t)node->parent
                                                                         : REDUCTION_NO_PORT,
                                             .children = (uint8_t)node->children};
        for (unsigned i = 0; i < node->children; i++)
            children[0] |= (1u << node->child[i]);
        rc = order_channels(p, torus_ports(t), children);
    }
    free(children);
    return rc == 0 ? 0 : no_memory(p, e);
}

int reduction_build_single(struct reduction_trees *p, const struct torus *t, uint32_t root,
                           uint32_t rank, struct error *e)
{
    struct tree_node node;
    uint32_t at[TORUS_MAX_DIMS];

    *p = (struct reduction_trees){.rank = rank, .single = true, .segments = 1};
    if (rank >= t->nodes || root >= t->nodes)
        return no_node(t, rank >= t->nodes ? rank : root, e);
    torus_coordinates(t, root, at);
    for (unsigned i = 0; i < t->dims; i++)
        p->most_distance += torus_farthest(t, i, at[i]);
    tree_node(t, root, rank, &node);
    return plant(p, t, root, torus_distance(t, root, rank), &node, e);
}

/* Hops from a node to the root. */
static uint32_t count_hops(const struct torus *t, const uint8_t *parent, uint32_t node)
{
    uint32_t hops = 0;

    for (; parent[node] != TREE_NONE; hops++)
        node = torus_neighbour(t, node, parent[node]);
    return hops;
}

int reduction_build_around(struct reduction_trees *p, const struct damage *d, uint32_t root,
                           uint32_t rank, struct error *e)
{
    const struct torus *t = &d->torus;
    uint8_t *parent = calloc(t->nodes, sizeof *parent);
    struct tree_node node;

    *p = (struct reduction_trees){.rank = rank, .single = true, .segments = 1};
    if (parent == NULL || tree_find_fast(d, root, parent, e) != 0) {
        free(parent);
        return no_memory(p, e);
    }
    for (uint32_t other = 0; other < t->nodes; other++) {
        uint32_t hops = count_hops(t, parent, other);
        p->most_distance = hops > p->most_distance ? hops : p->most_distance;
    }
    tree_node_found(t, parent, rank, &node);
    int rc = plant(p, t, root, count_hops(t, parent, rank), &node, e);
    free(parent);
    return rc;
}

void reduction_free(struct reduction_trees *p)
{
    free(p->tree);
    free(p->child);
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
        free(p->arrival[port]);
        free(p->departure[port]);
    }
    *p = (struct reduction_trees){0};
}

uint32_t reduction_root(const struct torus *t)
{
    uint32_t at[TORUS_MAX_DIMS];

    for (unsigned i = 0; i < t->dims; i++)
        at[i] = torus_centre(t, i);
    return torus_rank(t, at);
}
