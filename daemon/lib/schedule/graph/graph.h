/* The graph of one dimension that is neither a ring nor a line: complete graphs, stars, trees, and
 * connected graphs from a file. A topology (torus.h) is a Cartesian product of such factors.
 *
 * The links of a node have numbers, its directions, from 0. They are chosen so that, at every node,
 * the direction of a link determines its direction at the other end:
 * - If adding 1 to all nodes, modulo n, maps links to links (complete graphs and other circulant
 *   graphs), a direction adds a fixed number to the node. Moving two nodes together does not change
 *   the direction that leads from one to the other.
 * - Otherwise the directions are the colours of an edge colouring: a link has the same direction at
 *   both ends, and a node does not have all directions.
 *
 * Graphs are made once, kept in a list until the process ends, and shared, except those of graph_new(). They never change, so
 * that any thread can read them. Making them is not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

#define GRAPH_NODES_MOST 1024u    /* the distances of all pairs take 2 MiB */
#define GRAPH_DIRECTIONS_MOST 32u /* as many as a node has ports */
#define GRAPH_TEXT_SIZE 32        /* room for "graph:1024:0123456789abcdef" */
#define GRAPH_NO_NODE UINT32_MAX

enum graph_kind { GRAPH_KIND_COMPLETE, GRAPH_KIND_STAR, GRAPH_KIND_TREE, GRAPH_KIND_EDGES };

struct graph {
    enum graph_kind kind;
    char text[GRAPH_TEXT_SIZE]; /* "complete:4", "tree:2^3"; of edges: "graph:10:" and 16 digits of
                                 * the SHA-256 of the sorted edges */
    uint32_t nodes;             /* n, at least 2 */
    uint32_t links;
    unsigned directions;                     /* numbers 0..directions - 1 */
    uint8_t opposite[GRAPH_DIRECTIONS_MOST]; /* the direction of the link at its other end */
    uint32_t *neighbour;             /* node * directions + direction; GRAPH_NO_NODE: none */
    uint16_t *distance;              /* from * n + to: hops of a shortest path */
    bool moves;                      /* adding 1 to all nodes, modulo n, is an automorphism */
    uint32_t diameter, fewest_links; /* hops; of any node */
    uint32_t centre,
        radius; /* the first node whose farthest node is as near as possible; that distance */
    /* A lower bound on the blocks of the busiest channel in a complete exchange: the larger of the hops
     * of all shortest paths, divided among all channels, and the largest known |S| (n - |S|) over the
     * links between the nodes S and the others. */
    double least_load;
    struct graph *next;
    unsigned users; /* of a graph of graph_new(); 0: it lives until the process ends */
};

/* These return the graph, which lives until the process ends, or NULL with *e (ERROR_USAGE: too
 * few or too many nodes or links a node; no memory). `star` has node 0 in its middle. `tree` has
 * node 0 as its root; every node has `branches` children, except those `depth` hops from the
 * root; nodes are numbered level by level. */
const struct graph *graph_complete(uint32_t nodes, struct error *e);
const struct graph *graph_star(uint32_t nodes, struct error *e);
const struct graph *graph_tree(uint32_t branches, uint32_t depth, struct error *e);

/* The graph with these edges, two nodes each (array of 2 * count). Refuses, with ERROR_USAGE, an
 * edge from a node to itself, a repeated edge, a node without an edge, and a graph in parts. */
const struct graph *graph_of_edges(const uint32_t *edge, size_t count, struct error *e);

/* Reads edges from a file: two numbers a line, nodes from 0; `#` begins a comment. Returns as
 * graph_of_edges(); errors name the file and line. */
const struct graph *graph_read(const char *path, struct error *e);

/* The graph with this text, if one has been made; NULL if not. */
const struct graph *graph_known(const char *text, size_t length);

/* A graph with these edges that is in no list and does not know the second bound of `least_load`. Refuses what
 * graph_of_edges() refuses. Its users are counted by one thread: the caller is the first, and the last call of
 * graph_drop() frees it. NULL and other graphs are not counted. */
const struct graph *graph_new(const uint32_t *edge, size_t count, struct error *e);
void graph_keep(const struct graph *g);
void graph_drop(const struct graph *g);

/* Writes the edges of a graph, each with the smaller node first, in ascending order; `edge` has room
 * for 2 * links numbers. */
void graph_edges(const struct graph *g, uint32_t *edge);

static inline uint32_t graph_neighbour(const struct graph *g, uint32_t node, unsigned direction)
{
    return g->neighbour[(size_t)node * g->directions + direction];
}

static inline uint32_t graph_distance(const struct graph *g, uint32_t from, uint32_t to)
{
    return g->distance[(size_t)from * g->nodes + to];
}

/* The first direction from one node that is on a shortest path to another node. If the graph `moves`, the
 * direction stays the same when both nodes move. */
unsigned graph_towards(const struct graph *g, uint32_t from, uint32_t to);

/* Sets *cut as in struct graph. Up to GRAPH_CUT_EXACT nodes, every part is tried; in larger graphs, the balls around
 * each node, and then single nodes are moved into or out of the best ball as long as the bound rises. Returns 0, or -1
 * without memory. */
#define GRAPH_CUT_EXACT 16u
int graph_cut(const struct graph *g, double *cut);
