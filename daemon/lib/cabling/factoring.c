#include <stdlib.h>
#include <string.h>

#include "daemon/lib/cabling/grid.h"
#include "daemon/lib/cabling/network.h"

/* --- the classes of links that belong to the same factor --- */

/* A link, or several links between the same two nodes. */
struct classed_link {
    uint32_t node[2];
    uint8_t count;
    unsigned class;
};

struct link_classes {
    struct classed_link *link;
    uint32_t links;
    unsigned classes; /* at most GRID_FACTORS_MOST; if there are more, all links are in one class */
};

struct classing {
    const struct network *net;
    struct link_classes *c;
    uint16_t *distance; /* node * nodes + node */
    uint32_t *parent;   /* by link: another one of its class; the last one leads to itself */
    uint32_t *number;   /* by place in net->neighbour: the link */
    uint32_t *tree;     /* by node: its place in net->neighbour of the link to the node before it */
    uint32_t root;
};

static uint32_t class_of(struct classing *s, uint32_t link)
{
    while (s->parent[link] != link) {
        s->parent[link] = s->parent[s->parent[link]];
        link = s->parent[link];
    }
    return link;
}

static void join(struct classing *s, uint32_t a, uint32_t b)
{
    s->parent[class_of(s, a)] = class_of(s, b);
}

/* Lists the links, each with the smaller node first. */
static void list(struct classing *s)
{
    const struct network *n = s->net;

    s->root = CABLING_NONE;
    for (uint32_t a = 0; a < n->nodes; a++)
        for (uint32_t k = n->first[a]; k < n->first[a + 1]; k++) {
            uint32_t b = n->neighbour[k];
            s->root = s->root == CABLING_NONE ? a : s->root;
            if (a < b) {
                s->number[k] = s->parent[s->c->links] = s->c->links;
                s->c->link[s->c->links++] =
                    (struct classed_link){.node = {a, b}, .count = network_links(n, a, b)};
                continue;
            }
            for (uint32_t i = n->first[b]; i < n->first[b + 1]; i++)
                if (n->neighbour[i] == a)
                    s->number[k] = s->number[i];
        }
}

static void measure(struct classing *s, uint32_t from, uint32_t *queue)
{
    const struct network *n = s->net;
    uint16_t *distance = s->distance + (size_t)from * n->nodes;
    uint32_t count = 0;

    memset(distance, 0xff, n->nodes * sizeof *distance);
    distance[from] = 0;
    queue[count++] = from;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = n->first[queue[i]]; k < n->first[queue[i] + 1]; k++) {
            uint32_t next = n->neighbour[k];
            if (distance[next] != UINT16_MAX)
                continue;
            distance[next] = (uint16_t)(distance[queue[i]] + 1);
            queue[count++] = next;
            if (from == s->root)
                s->tree[next] = k;
        }
}

/* Joins links that are related by distances. It is enough to compare the links of one tree with all links. */
static void join_by_distance(struct classing *s)
{
    const struct network *n = s->net;

    for (uint32_t y = 0; y < n->nodes; y++) {
        if (y == s->root || n->degree[y] == 0)
            continue;
        uint32_t tree = s->number[s->tree[y]];
        const uint32_t *end = s->c->link[tree].node;
        const uint16_t *one = s->distance + (size_t)end[0] * n->nodes;
        const uint16_t *other = s->distance + (size_t)end[1] * n->nodes;
        for (uint32_t i = 0; i < s->c->links; i++) {
            const uint32_t *node = s->c->link[i].node;
            if (one[node[0]] + other[node[1]] != one[node[1]] + other[node[0]])
                join(s, tree, i);
        }
    }
}

static uint32_t common_neighbours(const struct network *n, uint32_t a, uint32_t b)
{
    uint32_t common = 0;

    for (uint32_t k = n->first[a]; k < n->first[a + 1] && common < 2; k++)
        common += network_links(n, n->neighbour[k], b) > 0;
    return common;
}

/* Joins links that meet at the only common neighbour of their other ends. */
static void join_by_corner(struct classing *s)
{
    const struct network *n = s->net;

    for (uint32_t x = 0; x < n->nodes; x++)
        for (uint32_t i = n->first[x]; i < n->first[x + 1]; i++)
            for (uint32_t k = i + 1; k < n->first[x + 1]; k++)
                if (class_of(s, s->number[i]) != class_of(s, s->number[k]) &&
                    common_neighbours(n, n->neighbour[i], n->neighbour[k]) == 1)
                    join(s, s->number[i], s->number[k]);
}

static void number_classes(struct classing *s, uint32_t *class)
{
    struct link_classes *c = s->c;

    for (uint32_t i = 0; i < c->links; i++)
        class[i] = CABLING_NONE;
    for (uint32_t i = 0; i < c->links; i++) {
        uint32_t first = class_of(s, i);
        if (class[first] == CABLING_NONE)
            class[first] = c->classes++;
        c->link[i].class = class[first];
    }
    if (c->classes <= GRID_FACTORS_MOST)
        return;
    c->classes = 1;
    for (uint32_t i = 0; i < c->links; i++)
        c->link[i].class = 0;
}

static void link_classes_free(struct link_classes *c)
{
    free(c->link);
}

/* Returns 0, or -1 with *e and nothing to free. The nodes that have links must be connected. */
static int link_classes_find(struct link_classes *c, const struct network *n, struct error *e)
{
    struct classing s = {.net = n, .c = c};
    uint32_t *queue = calloc((size_t)n->nodes + 2 * (size_t)n->links + 1, sizeof *queue);
    int result = 0;

    *c = (struct link_classes){.links = 0};
    c->link = calloc((size_t)n->links + 1, sizeof *c->link);
    s.distance = calloc((size_t)n->nodes * n->nodes + 1, sizeof *s.distance);
    s.parent = calloc((size_t)n->links + 1, sizeof *s.parent);
    s.number = calloc(2 * (size_t)n->links + 1, sizeof *s.number);
    s.tree = calloc((size_t)n->nodes + 1, sizeof *s.tree);
    if (queue == NULL || c->link == NULL || s.distance == NULL || s.parent == NULL ||
        s.number == NULL || s.tree == NULL) {
        link_classes_free(c);
        result = error_set(e, ERROR_MEMORY, "no memory for a network of %u nodes", n->nodes);
    } else {
        list(&s);
        for (uint32_t node = 0; node < n->nodes; node++)
            measure(&s, node, queue);
        join_by_distance(&s);
        join_by_corner(&s);
        number_classes(&s, queue);
    }
    free(queue);
    free(s.distance);
    free(s.parent);
    free(s.number);
    free(s.tree);
    return result;
}

/* --- names the graph of one factor: a ring, a line, complete, a star, a tree --- */

/* A connected graph without repeated edges. */
struct factor_graph {
    uint32_t nodes;
    bool *edge;   /* node * nodes + node */
    bool doubled; /* each edge stands for two cables */
};

static bool edge(const struct factor_graph *g, uint32_t a, uint32_t b)
{
    return g->edge[(size_t)a * g->nodes + b];
}

static uint32_t degree(const struct factor_graph *g, uint32_t node)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < g->nodes; i++)
        count += edge(g, node, i);
    return count;
}

/* Puts the nodes in an order in which each one's new neighbours follow one after another. */
static void walk(const struct factor_graph *g, uint32_t from, uint32_t *order)
{
    bool seen[CABLING_HOSTS_MOST] = {false};
    uint32_t count = 0;

    order[count++] = from;
    seen[from] = true;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t next = 0; next < g->nodes; next++)
            if (!seen[next] && edge(g, order[i], next)) {
                seen[next] = true;
                order[count++] = next;
            }
}

/* As walk(), straight on along a ring or line. */
static void walk_along(const struct factor_graph *g, uint32_t from, uint32_t *order)
{
    bool seen[CABLING_HOSTS_MOST] = {false};

    for (uint32_t i = 0; i < g->nodes; i++) {
        order[i] = from;
        seen[from] = true;
        for (uint32_t next = 0; next < g->nodes; next++)
            if (!seen[next] && edge(g, order[i], next)) {
                from = next;
                break;
            }
    }
}

/* How many nodes have this degree, and the last of them. */
static uint32_t count_degree(const uint32_t *degrees, uint32_t nodes, uint32_t wanted,
                             uint32_t *last)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < nodes; i++)
        if (degrees[i] == wanted) {
            count++;
            *last = i;
        }
    return count;
}

/* Whether the graph is the tree with these branches, if its nodes are numbered in this order. */
static bool is_tree(const struct factor_graph *g, const struct graph *tree, const uint32_t *order)
{
    uint32_t links = 0;

    if (tree == NULL || tree->nodes != g->nodes)
        return false;
    for (uint32_t a = 0; a < g->nodes; a++)
        for (uint32_t b = a + 1; b < g->nodes; b++) {
            bool there = edge(g, order[a], order[b]);
            links += there;
            if (there != (graph_distance(tree, a, b) == 1))
                return false;
        }
    return links == tree->links;
}

static bool find_tree(const struct factor_graph *g, const uint32_t *degrees, struct grid_factor *f,
                      uint32_t *order)
{
    uint32_t most = 0, root = 0, leaf = 0, level = 1, nodes = 1, depth = 0;

    for (uint32_t i = 0; i < g->nodes; i++)
        most = degrees[i] > most ? degrees[i] : most;
    if (most < 3 || count_degree(degrees, g->nodes, 1, &leaf) == 0 ||
        count_degree(degrees, g->nodes, most - 1, &root) != 1)
        return false;
    while (nodes < g->nodes) {
        level *= most - 1;
        nodes += level;
        depth++;
    }
    if (nodes != g->nodes)
        return false;
    walk(g, root, order);
    f->graph = graph_tree(most - 1, depth, &(struct error){.code = ERROR_NONE});
    return is_tree(g, f->graph, order);
}

static int make_other(const struct factor_graph *g, struct grid_factor *f, uint32_t *order,
                      struct error *e)
{
    size_t count = 0, room = (size_t)g->nodes * g->nodes + 1;
    uint32_t *edges = calloc(room, sizeof *edges);
    struct error why;

    if (edges == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for a graph of %u nodes", g->nodes);
    for (uint32_t a = 0; a < g->nodes; a++) {
        order[a] = a;
        for (uint32_t b = a + 1; b < g->nodes; b++)
            if (edge(g, a, b)) {
                edges[2 * count] = a;
                edges[2 * count++ + 1] = b;
            }
    }
    f->graph = graph_of_edges(edges, count, &why);
    free(edges);
    if (f->graph == NULL && why.code == ERROR_MEMORY)
        return error_set(e, ERROR_MEMORY, "%s", why.text);
    return f->graph != NULL;
}

/* Rings, lines, stars, and complete graphs. */
static bool find_simple(const struct factor_graph *g, const uint32_t *degrees,
                        struct grid_factor *f, uint32_t *order)
{
    uint32_t n = g->nodes, last = 0;
    uint32_t twos = count_degree(degrees, n, 2, &last);
    uint32_t ones = count_degree(degrees, n, 1, &last); /* `last` is an end of a line */
    struct error why;

    if (twos == n || (ones == 2 && twos == n - 2)) {
        f->wrap = ones == 0 || g->doubled;
        walk_along(g, ones == 0 ? 0 : last, order);
        return true;
    }
    if (n > GRAPH_DIRECTIONS_MOST + 1)
        return false;
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    if (count_degree(degrees, n, n - 1, &last) == n) {
        f->graph = graph_complete(n, &why);
        return f->graph != NULL;
    }
    if (ones == n - 1 && count_degree(degrees, n, n - 1, &last) == 1) {
        walk(g, last, order);
        f->graph = graph_star(n, &why);
        return f->graph != NULL;
    }
    return false;
}

/* Sets *f, and the order of its nodes: order[i] is the node of the graph that has coordinate i. `other`: a graph of no
 * kind may be made, which is then kept for ever (graph_of_edges()). Returns 1; 0 if the graph has no name or too many
 * edges at a node; -1 with *e if there is no memory. */
static int factor_graph_name(const struct factor_graph *g, bool other, struct grid_factor *f,
                             uint32_t *order, struct error *e)
{
    uint32_t degrees[CABLING_HOSTS_MOST];

    *f = (struct grid_factor){.size = g->nodes};
    if (g->doubled && g->nodes != 2)
        return 0;
    for (uint32_t i = 0; i < g->nodes; i++)
        degrees[i] = degree(g, i);
    if (find_simple(g, degrees, f, order) || find_tree(g, degrees, f, order))
        return 1;
    f->graph = NULL;
    return other ? make_other(g, f, order, e) : 0;
}

struct factoring {
    const struct network *net;
    struct link_classes classes;
    uint32_t *coordinate; /* node * GRID_FACTORS_MOST + factor */
    uint32_t size[GRID_FACTORS_MOST];
    uint32_t nodes; /* with links */
};

static uint32_t *coordinate(const struct factoring *f, uint32_t node, unsigned factor)
{
    return &f->coordinate[(size_t)node * GRID_FACTORS_MOST + factor];
}

static uint32_t end_of(uint32_t *parent, uint32_t node)
{
    while (parent[node] != node) {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    return node;
}

/* Nodes that links of other classes connect have the same coordinate in a factor. */
static void find_coordinates(struct factoring *f, unsigned factor, uint32_t *parent)
{
    const struct link_classes *c = &f->classes;
    uint32_t number[CABLING_HOSTS_MOST + 1];

    for (uint32_t node = 0; node < f->net->nodes; node++) {
        parent[node] = node;
        number[node] = CABLING_NONE;
    }
    for (uint32_t i = 0; i < c->links; i++)
        if (c->link[i].class != factor)
            parent[end_of(parent, c->link[i].node[0])] = end_of(parent, c->link[i].node[1]);
    f->size[factor] = 0;
    for (uint32_t node = 0; node < f->net->nodes; node++) {
        if (f->net->degree[node] == 0)
            continue;
        uint32_t end = end_of(parent, node);
        if (number[end] == CABLING_NONE)
            number[end] = f->size[factor]++;
        *coordinate(f, node, factor) = number[end];
    }
}

static uint32_t place(const struct factoring *f, const struct grid *g, uint32_t node)
{
    uint32_t at = 0;

    for (unsigned i = 0; i < g->factors; i++)
        at = at * f->size[i] + *coordinate(f, node, i);
    return at;
}

/* Collects the edges of a factor. Returns whether each of them has a link wherever the factor is repeated, all with the
 * same number of cables. */
static bool collect(const struct factoring *f, unsigned factor, struct factor_graph *graph)
{
    const struct link_classes *c = &f->classes;
    uint32_t edges = 0, links = 0;
    uint8_t count = 0;

    for (uint32_t i = 0; i < c->links; i++) {
        const struct classed_link *l = &c->link[i];
        if (l->class != factor)
            continue;
        uint32_t a = *coordinate(f, l->node[0], factor), b = *coordinate(f, l->node[1], factor);
        if (a == b || (links > 0 && l->count != count))
            return false;
        count = l->count;
        links++;
        edges += !graph->edge[(size_t)a * graph->nodes + b];
        graph->edge[(size_t)a * graph->nodes + b] = graph->edge[(size_t)b * graph->nodes + a] =
            true;
    }
    graph->doubled = count == 2;
    return count <= 2 && (uint64_t)links * graph->nodes == (uint64_t)edges * f->nodes;
}

/* Names a factor, and gives its coordinates the order that the name implies. */
static int name(struct factoring *f, unsigned factor, bool other, struct grid_factor *named,
                struct error *e)
{
    uint32_t n = f->size[factor];
    uint32_t order[CABLING_HOSTS_MOST], at[CABLING_HOSTS_MOST];
    struct factor_graph graph = {.nodes = n};
    int result = 0;

    graph.edge = calloc((size_t)n * n + 1, sizeof *graph.edge);
    if (graph.edge == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for a graph of %u nodes", n);
    if (collect(f, factor, &graph))
        result = factor_graph_name(&graph, other, named, order, e);
    free(graph.edge);
    if (result != 1)
        return result;
    for (uint32_t i = 0; i < n; i++)
        at[order[i]] = i;
    for (uint32_t node = 0; node < f->net->nodes; node++)
        if (f->net->degree[node] > 0)
            *coordinate(f, node, factor) = at[*coordinate(f, node, factor)];
    return 1;
}

/* Puts the hosts into the grid. Returns whether each has a place of its own. */
static bool fill(const struct factoring *f, struct grid *g)
{
    for (uint32_t i = 0; i < g->nodes; i++)
        g->host[i] = CABLING_NONE;
    for (uint32_t node = 0; node < f->net->nodes; node++) {
        if (f->net->degree[node] == 0)
            continue;
        uint32_t at = place(f, g, node);
        if (at >= g->nodes || g->host[at] != CABLING_NONE)
            return false;
        g->host[at] = node;
    }
    return true;
}

/* Whether the sizes of the factors multiply to the number of nodes. */
static bool sizes_fit(const struct factoring *f)
{
    uint64_t product = 1;

    for (unsigned i = 0; i < f->classes.classes && product <= f->nodes; i++)
        product *= f->size[i];
    return product == f->nodes;
}

static int make_grid(struct factoring *f, struct grid *g, bool other, struct error *e)
{
    int named = 1;

    for (unsigned i = 0; i < f->classes.classes; i++)
        find_coordinates(f, i, g->host);
    if (!sizes_fit(f))
        return 0;
    g->factors = f->classes.classes;
    for (unsigned i = 0; i < g->factors && named == 1; i++)
        named = name(f, i, other, &g->factor[i], e);
    return named == 1 ? fill(f, g) : named;
}

int factoring_find(struct grid *g, const struct network *n, bool other, struct error *e)
{
    struct factoring f = {.net = n};
    int result = 0;

    *g = (struct grid){.factors = 0};
    for (uint32_t node = 0; node < n->nodes; node++)
        f.nodes += n->degree[node] > 0;
    if (f.nodes < 2)
        return 0;
    if (link_classes_find(&f.classes, n, e) != 0)
        return -1;
    g->nodes = f.nodes;
    g->host = calloc((size_t)n->nodes + 1, sizeof *g->host);
    f.coordinate = calloc((size_t)n->nodes * GRID_FACTORS_MOST + 1, sizeof *f.coordinate);
    if (g->host == NULL || f.coordinate == NULL)
        result = error_set(e, ERROR_MEMORY, "no memory for a network of %u nodes", n->nodes);
    else
        result = make_grid(&f, g, other, e);
    free(f.coordinate);
    link_classes_free(&f.classes);
    if (result != 1) {
        free(g->host);
        g->host = NULL;
    }
    return result;
}
