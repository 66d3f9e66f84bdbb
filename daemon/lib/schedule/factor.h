/* One dimension of a multidimensional network: a ring, a linear array, a complete graph or any other
 * graph (graph.h) with nodes 0..n-1, its distances and statuses, and a one-port complete exchange on
 * it. Tori are products of rings, meshes of arrays, generalized hypercubes of complete graphs
 * (product.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "proto/error.h"

enum factor_kind { FACTOR_RING, FACTOR_ARRAY, FACTOR_COMPLETE, FACTOR_GRAPH };

struct factor {
    enum factor_kind kind;
    uint32_t nodes;            /* n, at least 1 */
    const struct graph *graph; /* of FACTOR_GRAPH; of FACTOR_COMPLETE or NULL */
};

const char *factor_kind_name(enum factor_kind kind); /* "ring", "array", "complete", "graph" */

/* Hops of a shortest path between two nodes, and the most between any two. */
uint32_t factor_distance(const struct factor *f, uint32_t a, uint32_t b);
uint32_t factor_diameter(const struct factor *f);

/* The status of a node is the sum of its distances to all others; the least, the most and the
 * average over all nodes. */
uint64_t factor_status(const struct factor *f, uint32_t node);
uint64_t factor_least_status(const struct factor *f);
uint64_t factor_most_status(const struct factor *f);
double factor_average_status(const struct factor *f);

/* A lower bound on the blocks that the busiest channel carries in a complete exchange: cut into
 * halves a and b, |a| * |b| / links between them. A ring of 2 counts as two links, as on a
 * torus. In other graphs: graph.h's least_load. */
double factor_cut(const struct factor *f);

/* All links of the dimension (a ring of 2 has two), and the number of links of a node with the
 * fewest. */
uint64_t factor_links(const struct factor *f);
uint32_t factor_fewest_links(const struct factor *f);

/* The route of one block in a one-port complete exchange by single hops: a hop in each of `hops`
 * steps from `step` on. Every hop adds `stride` to the node's number, modulo n. In other graphs the
 * hops are those of `path`, whose steps count from `step`. */
struct walk {
    uint32_t step;
    uint32_t hops;
    int32_t stride;               /* 0 in other graphs */
    const struct graph_hop *path; /* NULL if the factor is no other graph */
};

/* Whether there is an exchange: false for other graphs that are too large, see graph_exchange(). */
bool factor_has_exchange(const struct factor *f);

/* The block's route from `from` to `to`; no hops if these are the same. */
struct walk factor_walk(const struct factor *f, uint32_t from, uint32_t to);

/* The costs of that exchange, 0 if there is none: its steps, and the most blocks on any channel summed
 * over the steps. */
uint32_t factor_steps(const struct factor *f);
uint64_t factor_blocks(const struct factor *f);

/* The text of a network: factors joined by `x`. torus_parse() and product_parse() read it with these functions, and
 * differ only in what they make of the factors. */

#define FACTOR_NODES_MOST (1u << 20) /* a larger number is read as this and 1 */

struct factor_text {
    const char *what; /* for errors: "torus" */
    const char *text; /* the whole text */
    const char *at;   /* what is left of it */
    bool links;       /* a complete graph needs a `graph`, too, so that it has ports */
    bool files;       /* may open the file of `graph:FILE` */
    bool known;       /* makes no graphs; a graph must have been made before */
};

/* Reads a factor, and how many times it is repeated: `4`, `ring:4`, `4m`, `line:4`, `array:4`, `complete:4`, `star:5`,
 * `tree:2^3`, `graph:FILE`, `2m^5`. Checks only that there is a number, and what graphs need. Returns 0, or -1 with *e
 * (ERROR_USAGE, or ERROR_MEMORY). */
int factor_text_read(struct factor_text *r, struct factor *f, uint32_t *times, struct error *e);

/* Whether an `x` follows, with or without blanks; if so, moves behind it. */
bool factor_text_goes_on(struct factor_text *r);

/* Returns 0 if the text ends here, or -1 with *e. */
int factor_text_end(const struct factor_text *r, struct error *e);
