/* Multidimensional networks: Cartesian products of rings, linear arrays, complete and other graphs. Their
 * distances, statuses, lower bounds and one-port complete exchanges follow from those of the single
 * dimensions. Dimakopoulos, Dimopoulos: A Theory for Total Exchange in Multidimensional
 * Interconnection Networks, sections 2 to 4.
 *
 * Nodes are numbered row-major, as on tori. */
#pragma once

#include "daemon/lib/schedule/factor.h"
#include "daemon/lib/schedule/torus.h"

#define PRODUCT_MAX_DIMS 20 /* a hypercube of TORUS_MAX_NODES */
#define PRODUCT_TEXT_SIZE (PRODUCT_MAX_DIMS * sizeof "complete:1048576 x ")

struct product {
    unsigned dims; /* 1..PRODUCT_MAX_DIMS */
    struct factor factor[PRODUCT_MAX_DIMS];
    uint32_t nodes; /* N, at most TORUS_MAX_NODES */
};

/* Reads "ring:8 x array:4 x complete:3" or any other text that torus_parse() reads. The product needs no
 * ports: it may have PRODUCT_MAX_DIMS dimensions, such as "complete:2^10", and complete graphs of any
 * size, such as "complete:64". Returns 0, or -1 with *e (ERROR_USAGE), which says what is wrong with
 * the text. Not thread-safe where other graphs are named: see graph.h. */
int product_parse(struct product *p, const char *text, struct error *e);

/* Writes the text that product_parse() reads; `text` has room for PRODUCT_TEXT_SIZE. Returns
 * `text`. */
char *product_format(const struct product *p, char *text);

/* The torus as a product of rings, of arrays where a dimension does not wrap, of complete graphs and
 * of other graphs. */
struct product product_of_torus(const struct torus *t);

/* Hops of a shortest path between two nodes, and the most between any two. */
uint32_t product_distance(const struct product *p, uint32_t a, uint32_t b);
uint32_t product_diameter(const struct product *p);

/* The sum of a node's distances to all others: theorem 1, the sum over the dimensions of N/n_i
 * times the status there. The least and the most of any node, and the average. */
uint64_t product_status(const struct product *p, uint32_t node);
uint64_t product_least_status(const struct product *p);
uint64_t product_most_status(const struct product *p);
double product_average_status(const struct product *p); /* corollary 1 */

/* The average status divided by N-1; 0 if there is only one node. */
double product_average_distance(const struct product *p);

/* Lower bounds in blocks on the time of a complete exchange.
 * - All-port: the best cut of one dimension into two halves, the paper's (4).
 * - One-port: the larger of that and N-1, the blocks that a node receives.
 * - Single hops, one-port: the largest of these, of the average status, (3), at which all nodes
 *   send all the time, and of three more bounds. In arrays, nodes at the ends have less to relay. So
 *   there is also what the middle of an array has to send and, in a two-dimensional mesh, what all
 *   nodes except the corners have to send. A node that divides a graph relays all blocks between the
 *   parts. A2 attains this bound on a single array, star or tree, on rings and on complete graphs. */
double product_bound_all_port(const struct product *p);
double product_bound_one_port(const struct product *p);
double product_bound_single_hops(const struct product *p);

/* Lower bounds on the time of reductions with all ports at once. The unit is the time in which the
 * whole vector of one node crosses a link. Vectors may be split, and nodes combine what they
 * receive. d is the number of links of the node with the fewest.
 *
 * Reduce-scatter with blocks of equal size, and allgather in reverse: (N-1)/N / d. The node with d
 * links has to send something for N-1 of the N blocks.
 *
 * Allreduce: the larger of 2(N-1)/C and 1/d, for C channels, two for each link. An element crosses
 * at least 2(N-1) channels: N-1 until some node has the sum, and N-1 more until all nodes have it.
 * A node with d links sends its whole vector, and receives the whole result. If all nodes have d
 * links, the bound is 2(N-1)/N / d, twice reduce-scatter: Jain, Sabharwal: Optimal Bucket
 * Algorithms for Large MPI Collectives on Torus Interconnects (2010). Otherwise, in arrays, a
 * reduce-scatter into equal blocks and an allgather of these take longer than the bound.
 *
 * Reduce to a root, and broadcast in reverse: 1/d. The node with d links sends its whole vector or,
 * as the root, receives the whole result. The bound is attained if the root has d trees, no two of
 * which share a channel, and each carries an equal part. How many such trees exist: Edmonds:
 * Edge-Disjoint Branchings (in: Combinatorial Algorithms, 1973, p. 91). */
double product_bound_reduce(const struct product *p);
double product_bound_reduce_scatter(const struct product *p);
double product_bound_allreduce(const struct product *p);

/* A1 and A2 are complete exchanges by single hops, in which a node sends one message and receives
 * one at a time. algorithms/a1_a2.c explains them.
 *
 * A2 runs the exchanges of the single dimensions one after another, the last dimension first. A
 * dimension's messages have N/n_i blocks for each block of the dimension's own exchange.
 *
 * A1: let B be the last dimension, A all others. First the nodes of each copy of B send in turn: a
 * node sends to each other node of its copy, in ascending order, one message with all blocks for that
 * node's copy of A. Then follow as many exchanges within the copies of A as B has nodes; the j-th
 * one moves the blocks from the j-th copy, again by A1. */
enum product_algorithm { PRODUCT_A1, PRODUCT_A2 };

/* Whether every factor has an exchange (factor.h), and with that the product. */
bool product_has_exchange(const struct product *p);

const char *product_algorithm_name(enum product_algorithm a); /* "a1" */

/* Writes the route of one block: at most one walk for each dimension (array of PRODUCT_MAX_DIMS),
 * in the order of steps. Returns how many. The product must have an exchange, and the schedule no step
 * above UINT32_MAX. In other graphs, a walk without a path makes a hop in each step, on the
 * shortest path that graph_towards() gives. */
struct product_walk {
    struct walk walk;
    unsigned dim;
    uint32_t from; /* coordinates in this dimension */
    uint32_t to;
};
unsigned product_route(const struct product *p, enum product_algorithm a, uint32_t source,
                       uint32_t destination, struct product_walk *walks);

/* The costs of the exchange: its steps, and the most blocks on any channel summed over the steps.
 * The blocks of A2 are those of corollary 2, which on rings and complete graphs is
 * product_bound_single_hops(). */
uint64_t product_steps(const struct product *p, enum product_algorithm a);
uint64_t product_blocks(const struct product *p, enum product_algorithm a);
