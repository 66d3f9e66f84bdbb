#include "daemon/lib/schedule/graph/graph.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/sha256.h"
#include "proto/text_file.h"

/* Edge colouring: gives each edge a number, so that no two edges of a node have the same. */

/* What the sources of this folder share. */

#define NONE UINT32_MAX

/* By node and colour: the edge of that colour, NONE if there is none. */
struct colouring {
    const uint32_t *edge;
    uint32_t *coloured;
    unsigned colours;
    uint32_t *fan;   /* neighbours of the node whose edge is being coloured */
    uint32_t *spoke; /* the edges to them */
    uint32_t length;
};

static uint32_t *edge_at(const struct colouring *c, uint32_t node, unsigned colour)
{
    return &c->coloured[(size_t)node * c->colours + colour];
}

static unsigned free_colour(const struct colouring *c, uint32_t node)
{
    unsigned colour = 0;

    while (*edge_at(c, node, colour) != NONE) /* one more colour than a node can have edges */
        colour++;
    return colour;
}

static uint32_t other_end(const struct colouring *c, uint32_t edge, uint32_t node)
{
    return c->edge[2 * edge] == node ? c->edge[2 * edge + 1] : c->edge[2 * edge];
}

static void set_colour(struct colouring *c, uint8_t *colour, uint32_t edge, unsigned to)
{
    colour[edge] = (uint8_t)to;
    *edge_at(c, c->edge[2 * edge], to) = edge;
    *edge_at(c, c->edge[2 * edge + 1], to) = edge;
}

static void clear_colour(struct colouring *c, uint32_t edge, unsigned from)
{
    *edge_at(c, c->edge[2 * edge], from) = NONE;
    *edge_at(c, c->edge[2 * edge + 1], from) = NONE;
}

/* The longest fan of `node` that begins with an edge without a colour: the colour of each spoke is
 * free at the end of the spoke before it. */
static void make_fan(struct colouring *c, uint32_t node, uint32_t edge)
{
    bool longer = true;

    c->length = 1;
    c->spoke[0] = edge;
    c->fan[0] = other_end(c, edge, node);
    while (longer) {
        longer = false;
        for (unsigned colour = 0; colour < c->colours && !longer; colour++) {
            uint32_t next = *edge_at(c, node, colour);
            bool used = next == NONE || *edge_at(c, c->fan[c->length - 1], colour) != NONE;
            for (uint32_t i = 0; i < c->length && !used; i++)
                used = c->spoke[i] == next;
            if (used)
                continue;
            c->spoke[c->length] = next;
            c->fan[c->length++] = other_end(c, next, node);
            longer = true;
        }
    }
}

/* Swaps two colours along the path of edges of these colours that begins at `node` with `first`. */
static void invert_path(struct colouring *c, uint8_t *colour, uint32_t node, unsigned first,
                        unsigned second)
{
    uint32_t edge = *edge_at(c, node, first), carried = NONE;
    unsigned from = first, to = second;

    /* An edge takes the other colour at both ends once the next edge of the path has given it up. */
    while (edge != NONE) {
        uint32_t there = other_end(c, edge, node), next = *edge_at(c, there, to);
        clear_colour(c, edge, from);
        if (carried != NONE)
            set_colour(c, colour, carried, from);
        carried = edge;
        node = there;
        edge = next;
        from = to;
        to = to == first ? second : first;
    }
    if (carried != NONE)
        set_colour(c, colour, carried, from);
}

/* Moves the colours of the spokes before `last` one spoke towards the beginning, and gives `last` a
 * colour that is free at both of its ends. */
static void rotate_fan(struct colouring *c, uint8_t *colour, uint32_t last, unsigned fresh)
{
    for (uint32_t i = 0; i < last; i++) {
        unsigned moved = colour[c->spoke[i + 1]];
        clear_colour(c, c->spoke[i + 1], moved);
        set_colour(c, colour, c->spoke[i], moved);
    }
    set_colour(c, colour, c->spoke[last], fresh);
}

static void colour_edge(struct colouring *c, uint8_t *colour, uint32_t edge)
{
    uint32_t node = c->edge[2 * edge], last = 0;

    /* If a colour is free at both ends, the last colour is not needed: trees never need it. */
    for (unsigned i = 0; i + 1 < c->colours; i++)
        if (*edge_at(c, node, i) == NONE && *edge_at(c, c->edge[2 * edge + 1], i) == NONE) {
            set_colour(c, colour, edge, i);
            return;
        }
    make_fan(c, node, edge);
    unsigned here = free_colour(c, node), there = free_colour(c, c->fan[c->length - 1]);
    invert_path(c, colour, node, there, here);
    /* The path may have ended at a spoke: rotates the longest part of the fan that is still a fan, and at whose end the
     * colour is free. */
    for (uint32_t i = 0; i < c->length; i++) {
        if (i > 0 && *edge_at(c, c->fan[i - 1], colour[c->spoke[i]]) != NONE)
            break;
        if (*edge_at(c, c->fan[i], there) == NONE)
            last = i;
    }
    rotate_fan(c, colour, last, there);
}

/* Colours the edges, two nodes each (array of 2 * count), of a simple graph. Writes the colour of
 * each edge (array of count), and to *colours how many colours there are: at most one more than
 * the most edges of a node, `most`. Misra, Gries: A Constructive Proof of Vizing's Theorem (1992).
 * Returns 0, or -1 without memory. */
static int colouring_find(uint32_t nodes, const uint32_t *edge, size_t count, unsigned most,
                          uint8_t *colour, unsigned *colours)
{
    struct colouring c = {.edge = edge, .colours = most + 1};
    unsigned highest = 0;

    c.coloured = malloc((size_t)nodes * c.colours * sizeof *c.coloured);
    c.fan = calloc(c.colours, sizeof *c.fan);
    c.spoke = calloc(c.colours, sizeof *c.spoke);
    if (c.coloured != NULL && c.fan != NULL && c.spoke != NULL) {
        for (size_t i = 0; i < (size_t)nodes * c.colours; i++)
            c.coloured[i] = NONE;
        for (uint32_t i = 0; i < count; i++)
            colour_edge(&c, colour, i);
        for (size_t i = 0; i < count; i++)
            highest = colour[i] > highest ? colour[i] : highest;
        *colours = highest + 1;
    }
    int result = c.coloured != NULL && c.fan != NULL && c.spoke != NULL ? 0 : -1;
    free(c.coloured);
    free(c.fan);
    free(c.spoke);
    return result;
}

#define DIGEST_DIGITS 16
#define FAR UINT16_MAX

/* All that have been made, the newest first. Settings are also read, and schedules imported, off the loop. */
static struct graph *_Atomic graphs;

/* What graph_of_edges() knows of a graph while it makes one. */
struct draft {
    uint32_t nodes, links;
    uint32_t *edge;  /* sorted, each with the smaller node first */
    uint32_t *count; /* links by node */
    uint32_t most;   /* links of a node, at most */
};

const struct graph *graph_known(const char *text, size_t length)
{
    for (const struct graph *g = graphs; g != NULL; g = g->next)
        if (strlen(g->text) == length && strncmp(g->text, text, length) == 0)
            return g;
    return NULL;
}

static int compare_edges(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;

    if (a[0] != b[0])
        return a[0] < b[0] ? -1 : 1;
    return a[1] < b[1] ? -1 : a[1] > b[1];
}

static void draft_free(struct draft *d)
{
    free(d->edge);
    free(d->count);
}

/* Checks the sorted edges, and counts the links of each node. */
static int check_edges(struct draft *d, struct error *e)
{
    for (uint32_t i = 0; i < d->links; i++) {
        uint32_t a = d->edge[2 * i], b = d->edge[2 * i + 1];
        if (a == b)
            return error_set(e, ERROR_USAGE, "the edge %u %u leads from a node to itself", a, b);
        if (i > 0 && compare_edges(&d->edge[2 * i], &d->edge[2 * i - 2]) == 0)
            return error_set(e, ERROR_USAGE, "the edge %u %u is there twice", a, b);
        d->count[a]++;
        d->count[b]++;
    }
    for (uint32_t node = 0; node < d->nodes; node++) {
        if (d->count[node] == 0)
            return error_set(e, ERROR_USAGE, "node %u of 0 to %u has no edge", node, d->nodes - 1);
        if (d->count[node] > GRAPH_DIRECTIONS_MOST)
            return error_set(e, ERROR_USAGE, "node %u has %u edges: at most %u are possible", node,
                             d->count[node], GRAPH_DIRECTIONS_MOST);
        if (d->count[node] > d->most)
            d->most = d->count[node];
    }
    return 0;
}

static int draft_make(struct draft *d, const uint32_t *edge, size_t count, struct error *e)
{
    uint32_t highest = 0;

    if (count == 0)
        return error_set(e, ERROR_USAGE, "a graph needs at least one edge");
    for (size_t i = 0; i < 2 * count; i++)
        highest = edge[i] > highest ? edge[i] : highest;
    if (highest >= GRAPH_NODES_MOST)
        return error_set(e, ERROR_USAGE, "node %u: a graph has at most %u nodes, from 0", highest,
                         GRAPH_NODES_MOST);
    if (count > (size_t)GRAPH_NODES_MOST * GRAPH_DIRECTIONS_MOST)
        return error_set(e, ERROR_USAGE, "%zu edges are too many for any graph", count);
    *d = (struct draft){.nodes = highest + 1, .links = (uint32_t)count};
    d->edge = calloc(2 * count, sizeof *d->edge);
    d->count = calloc(d->nodes, sizeof *d->count);
    if (d->edge == NULL || d->count == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a graph of %u nodes", d->nodes);
    for (size_t i = 0; i < count; i++) {
        bool in_order = edge[2 * i] < edge[2 * i + 1];
        d->edge[2 * i] = edge[2 * i + !in_order];
        d->edge[2 * i + 1] = edge[2 * i + in_order];
    }
    qsort(d->edge, count, 2 * sizeof *d->edge, compare_edges);
    return check_edges(d, e);
}

static bool draft_has_edge(const struct draft *d, uint32_t a, uint32_t b)
{
    uint32_t wanted[2] = {a < b ? a : b, a < b ? b : a};

    return bsearch(wanted, d->edge, d->links, 2 * sizeof *d->edge, compare_edges) != NULL;
}

/* Whether adding 1 to all nodes maps edges to edges; it then maps the edges onto each other, because
 * there are as many before as after. */
static bool draft_moves(const struct draft *d)
{
    for (uint32_t i = 0; i < d->links; i++)
        if (!draft_has_edge(d, (d->edge[2 * i] + 1) % d->nodes,
                            (d->edge[2 * i + 1] + 1) % d->nodes))
            return false;
    return true;
}

/* Directions that add a number to the node, in ascending order of these numbers. */
static void number_by_moves(struct graph *g, const struct draft *d)
{
    uint32_t n = d->nodes, added[GRAPH_DIRECTIONS_MOST];

    for (uint32_t i = 1; i < n; i++)
        if (draft_has_edge(d, 0, i))
            added[g->directions++] = i;
    for (unsigned i = 0; i < g->directions; i++)
        g->opposite[i] = (uint8_t)(g->directions - 1 - i); /* added[] has i and n - i */
    for (uint32_t node = 0; node < n; node++)
        for (unsigned i = 0; i < g->directions; i++)
            g->neighbour[(size_t)node * g->directions + i] = (node + added[i]) % n;
}

/* Directions that are the colours of the links. */
static int number_by_colours(struct graph *g, const struct draft *d)
{
    uint8_t *colour = calloc(d->links, sizeof *colour);

    if (colour == NULL ||
        colouring_find(d->nodes, d->edge, d->links, d->most, colour, &g->directions) != 0) {
        free(colour);
        return -1;
    }
    for (unsigned i = 0; i < g->directions && i < GRAPH_DIRECTIONS_MOST; i++)
        g->opposite[i] = (uint8_t)i;
    for (uint32_t i = 0; i < d->links; i++) {
        uint32_t a = d->edge[2 * i], b = d->edge[2 * i + 1];
        g->neighbour[(size_t)a * g->directions + colour[i]] = b;
        g->neighbour[(size_t)b * g->directions + colour[i]] = a;
    }
    free(colour);
    return 0;
}

static int number_links(struct graph *g, const struct draft *d, struct error *e)
{
    g->fewest_links = UINT32_MAX;
    for (uint32_t node = 0; node < d->nodes; node++)
        g->fewest_links = d->count[node] < g->fewest_links ? d->count[node] : g->fewest_links;
    /* One more colour than a node has links is enough, see colouring_find(). */
    size_t places = (size_t)d->nodes * (d->most + 1);

    g->neighbour = malloc(places * sizeof *g->neighbour);
    if (g->neighbour == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a graph of %u nodes", d->nodes);
    for (size_t i = 0; i < places; i++)
        g->neighbour[i] = GRAPH_NO_NODE;
    g->moves = draft_moves(d);
    if (g->moves)
        number_by_moves(g, d);
    else if (number_by_colours(g, d) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for a graph of %u nodes", d->nodes);
    if (g->directions > GRAPH_DIRECTIONS_MOST)
        return error_set(e, ERROR_USAGE,
                         "this graph needs %u numbers for the links of a node: at most %u are "
                         "possible",
                         g->directions, GRAPH_DIRECTIONS_MOST);
    return 0;
}

/* Finds the distances from one node, by breadth-first search. */
static void find_distances(struct graph *g, uint32_t from, uint32_t *queue)
{
    uint16_t *distance = g->distance + (size_t)from * g->nodes;
    uint32_t known = 1;

    for (uint32_t i = 0; i < g->nodes; i++)
        distance[i] = FAR;
    distance[from] = 0;
    queue[0] = from;
    for (uint32_t i = 0; i < known; i++)
        for (unsigned direction = 0; direction < g->directions; direction++) {
            uint32_t there = graph_neighbour(g, queue[i], direction);
            if (there == GRAPH_NO_NODE || distance[there] != FAR)
                continue;
            distance[there] = (uint16_t)(distance[queue[i]] + 1);
            queue[known++] = there;
        }
}

static int measure(struct graph *g, bool cuts, struct error *e)
{
    uint32_t n = g->nodes, *queue = calloc(n, sizeof *queue);
    uint64_t hops = 0;

    g->distance = calloc((size_t)n * n, sizeof *g->distance);
    if (g->distance == NULL || queue == NULL) {
        free(queue);
        return error_set(e, ERROR_MEMORY, "out of memory for a graph of %u nodes", n);
    }
    for (uint32_t from = 0; from < n; from++)
        find_distances(g, from, queue);
    free(queue);
    for (uint32_t to = 0; to < n; to++)
        if (g->distance[to] == FAR)
            return error_set(e, ERROR_USAGE, "no edges connect node 0 with node %u", to);
    g->radius = UINT32_MAX;
    for (uint32_t from = 0; from < n; from++) {
        uint32_t farthest = 0;
        for (uint32_t to = 0; to < n; to++) {
            hops += graph_distance(g, from, to);
            if (graph_distance(g, from, to) > farthest)
                farthest = graph_distance(g, from, to);
        }
        if (farthest > g->diameter)
            g->diameter = farthest;
        if (farthest < g->radius) {
            g->radius = farthest;
            g->centre = from;
        }
    }
    if (cuts && graph_cut(g, &g->least_load) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for a graph of %u nodes", n);
    if ((double)hops / (2.0 * g->links) > g->least_load)
        g->least_load = (double)hops / (2.0 * g->links);
    return 0;
}

static void name_by_digest(struct graph *g, const struct draft *d)
{
    char digest[SHA256_TEXT_SIZE];
    size_t length = 2 * (size_t)d->links, size = 4 * length;
    uint8_t *bytes = malloc(size);

    /* Little-endian, so that the digest is the same on every machine. */
    for (size_t i = 0; bytes != NULL && i < length; i++)
        for (unsigned byte = 0; byte < 4; byte++)
            bytes[4 * i + byte] = (uint8_t)(d->edge[i] >> 8 * byte);
    if (bytes == NULL)
        return;
    sha256_text(bytes, size, digest);
    free(bytes);
    (void)snprintf(g->text, sizeof g->text, "graph:%u:%.*s", g->nodes, DIGEST_DIGITS, digest);
}

static void free_graph(struct graph *g)
{
    free(g->neighbour);
    free(g->distance);
    free(g);
}

/* Makes the graph of a draft; `text` is NULL for graphs that are known by their edges. */
static const struct graph *make(const struct draft *d, enum graph_kind kind, const char *text,
                                struct error *e)
{
    struct graph *g = calloc(1, sizeof *g);
    const struct graph *known;

    if (g == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for a graph of %u nodes", d->nodes);
        return NULL;
    }
    *g = (struct graph){.kind = kind, .nodes = d->nodes, .links = d->links};
    if (text != NULL)
        (void)snprintf(g->text, sizeof g->text, "%s", text);
    else
        name_by_digest(g, d);
    known = graph_known(g->text, strlen(g->text));
    if (known != NULL || number_links(g, d, e) != 0 || measure(g, true, e) != 0) {
        free_graph(g);
        return known;
    }
    do
        g->next = graphs;
    while (!atomic_compare_exchange_weak(&graphs, &g->next, g));
    return g;
}

/* Makes a graph of edges, as graph_of_edges(), under a text of its own; with NULL the text is
 * made from the edges. If a graph with this text is known, returns that one. */
static const struct graph *graph_make(const uint32_t *edge, size_t count, enum graph_kind kind,
                                      const char *text, struct error *e)
{
    struct draft d = {0};
    const struct graph *g = NULL;

    if (draft_make(&d, edge, count, e) == 0)
        g = make(&d, kind, text, e);
    draft_free(&d);
    return g;
}

const struct graph *graph_of_edges(const uint32_t *edge, size_t count, struct error *e)
{
    return graph_make(edge, count, GRAPH_KIND_EDGES, NULL, e);
}

const struct graph *graph_new(const uint32_t *edge, size_t count, struct error *e)
{
    struct graph *g = calloc(1, sizeof *g);
    struct draft d = {0};

    if (g == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for a graph");
    else if (draft_make(&d, edge, count, e) == 0) {
        *g = (struct graph){
            .kind = GRAPH_KIND_EDGES, .nodes = d.nodes, .links = d.links, .users = 1};
        name_by_digest(g, &d);
        if (number_links(g, &d, e) == 0 && measure(g, false, e) == 0) {
            draft_free(&d);
            return g;
        }
    }
    draft_free(&d);
    if (g != NULL)
        free_graph(g);
    return NULL;
}

void graph_keep(const struct graph *g)
{
    if (g != NULL && g->users > 0)
        ((struct graph *)(uintptr_t)g)->users++;
}

void graph_drop(const struct graph *g)
{
    struct graph *owned = (struct graph *)(uintptr_t)g;

    if (g != NULL && g->users > 0 && --owned->users == 0)
        free_graph(owned);
}

void graph_edges(const struct graph *g, uint32_t *edge)
{
    size_t count = 0;

    for (uint32_t node = 0; node < g->nodes; node++)
        for (unsigned direction = 0; direction < g->directions; direction++) {
            uint32_t there = graph_neighbour(g, node, direction);
            if (there == GRAPH_NO_NODE || there < node)
                continue;
            edge[2 * count] = node;
            edge[2 * count++ + 1] = there;
        }
    qsort(edge, count, 2 * sizeof *edge, compare_edges);
}

unsigned graph_towards(const struct graph *g, uint32_t from, uint32_t to)
{
    for (unsigned direction = 0; direction < g->directions; direction++) {
        uint32_t there = graph_neighbour(g, from, direction);
        if (there != GRAPH_NO_NODE && graph_distance(g, there, to) < graph_distance(g, from, to))
            return direction;
    }
    return 0; /* only where the two are the same node */
}

static const struct graph *refuse(struct error *e, const char *text, const char *what)
{
    (void)error_set(e, ERROR_USAGE, "%s: %s", text, what);
    return NULL;
}

const struct graph *graph_complete(uint32_t nodes, struct error *e)
{
    char text[GRAPH_TEXT_SIZE];
    size_t count = 0;

    (void)snprintf(text, sizeof text, "complete:%u", nodes);
    if (nodes < 2 || nodes > GRAPH_DIRECTIONS_MOST + 1)
        return refuse(e, text, "a complete graph has 2 to 33 nodes");
    uint32_t edge[(GRAPH_DIRECTIONS_MOST + 1) * GRAPH_DIRECTIONS_MOST];
    for (uint32_t a = 0; a < nodes; a++)
        for (uint32_t b = a + 1; b < nodes; b++) {
            edge[2 * count] = a;
            edge[2 * count++ + 1] = b;
        }
    return graph_make(edge, count, GRAPH_KIND_COMPLETE, text, e);
}

const struct graph *graph_star(uint32_t nodes, struct error *e)
{
    char text[GRAPH_TEXT_SIZE];
    uint32_t edge[2 * GRAPH_DIRECTIONS_MOST];

    (void)snprintf(text, sizeof text, "star:%u", nodes);
    if (nodes < 2 || nodes > GRAPH_DIRECTIONS_MOST + 1)
        return refuse(e, text, "a star has 2 to 33 nodes");
    for (uint32_t i = 1; i < nodes; i++) {
        edge[2 * i - 2] = 0;
        edge[2 * i - 1] = i;
    }
    return graph_make(edge, nodes - 1, GRAPH_KIND_STAR, text, e);
}

const struct graph *graph_tree(uint32_t branches, uint32_t depth, struct error *e)
{
    char text[GRAPH_TEXT_SIZE];
    uint32_t edge[2 * GRAPH_NODES_MOST], nodes = 1, level = 1, parent = 0;

    (void)snprintf(text, sizeof text, "tree:%u^%u", branches, depth);
    if (branches == 0 || depth == 0)
        return refuse(e, text, "a tree has at least one branch a node, and one level of them");
    if (branches >= GRAPH_DIRECTIONS_MOST)
        return refuse(e, text, "a tree has at most 31 branches a node");
    for (uint32_t i = 0; i < depth; i++) {
        if (level * branches > GRAPH_NODES_MOST - nodes)
            return refuse(e, text, "a tree has at most 1024 nodes");
        level *= branches;
        nodes += level;
    }
    for (uint32_t node = 1; node < nodes; node++) {
        parent = (node - 1) / branches;
        edge[2 * node - 2] = parent;
        edge[2 * node - 1] = node;
    }
    return graph_make(edge, nodes - 1, GRAPH_KIND_TREE, text, e);
}

#define BYTES_MOST (1u << 20)
#define EDGES_MOST (GRAPH_NODES_MOST * GRAPH_DIRECTIONS_MOST / 2)

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

/* Reads a node's number, and the blanks behind it. */
static int read_node(const char **text, uint32_t *node, struct error *e)
{
    const char *p = *text;
    uint32_t number = 0;

    if (*p < '0' || *p > '9')
        return error_set(e, ERROR_USAGE,
                         "expected two numbers of nodes, as in \"0 1\", at \"%.*s\"",
                         (int)strcspn(p, "\r\n") < 16 ? (int)strcspn(p, "\r\n") : 16, p);
    for (; *p >= '0' && *p <= '9'; p++)
        if ((number = 10 * number + (uint32_t)(*p - '0')) >= GRAPH_NODES_MOST)
            return error_set(e, ERROR_USAGE, "a graph has at most %u nodes, from 0",
                             GRAPH_NODES_MOST);
    *node = number;
    *text = skip_blanks(p);
    return 0;
}

/* Reads a line up to its end, or to its comment. */
static int read_line(const char **text, uint32_t *edge, size_t *count, struct error *e)
{
    const char *p = skip_blanks(*text);

    if (*p != '\0' && *p != '\n' && *p != '#') {
        if (*count == EDGES_MOST)
            return error_set(e, ERROR_USAGE, "a graph has at most %u edges", EDGES_MOST);
        if (read_node(&p, &edge[2 * *count], e) != 0 ||
            read_node(&p, &edge[2 * *count + 1], e) != 0)
            return -1;
        if (*p != '\0' && *p != '\n' && *p != '#')
            return error_set(e, ERROR_USAGE, "an edge has two numbers; there is more behind them");
        ++*count;
    }
    p += strcspn(p, "\n");
    *text = *p == '\n' ? p + 1 : p;
    return 0;
}

static const struct graph *read_edges(const char *path, const char *text, uint32_t *edge,
                                      struct error *e)
{
    const struct graph *g;
    size_t count = 0;

    for (unsigned line = 1; *text != '\0'; line++)
        if (read_line(&text, edge, &count, e) != 0) {
            (void)error_wrap(e, "%s, line %u", path, line);
            return NULL;
        }
    g = graph_of_edges(edge, count, e);
    if (g == NULL)
        (void)error_wrap(e, "%s", path);
    return g;
}

const struct graph *graph_read(const char *path, struct error *e)
{
    static const struct text_kind kind = {.name = "a list of edges", .most = BYTES_MOST};
    uint32_t *edge = calloc(2 * (size_t)EDGES_MOST, sizeof *edge);
    const struct graph *g = NULL;
    size_t length;
    char *text;

    if (edge == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for the edges of %s", path);
    else if (text_file_read(path, &kind, &text, &length, e) == 0) {
        g = read_edges(path, text, edge, e);
        free(text);
    }
    free(edge);
    return g;
}
