/* Multidimensional networks: Cartesian products of rings, linear arrays and complete graphs. Their
 * distances, statuses, lower bounds and one-port complete exchange follow from those of the single
 * dimensions. Dimakopoulos, Dimopoulos: A Theory for Total Exchange in Multidimensional
 * Interconnection Networks, sections 2 to 4.
 *
 * Nodes are numbered row-major, as in tori. */
#ifndef TORUSD_SCHEDULE_PRODUCT_H
#define TORUSD_SCHEDULE_PRODUCT_H

#include "daemon/schedule/factor.h"
#include "daemon/schedule/torus.h"

#define PRODUCT_MAX_DIMS 20 /* a hypercube of TORUS_MAX_NODES */
#define PRODUCT_TEXT_SIZE (PRODUCT_MAX_DIMS * sizeof "complete:1048576 x ")

struct product {
    unsigned dims; /* 1..PRODUCT_MAX_DIMS */
    struct factor factor[PRODUCT_MAX_DIMS];
    uint32_t nodes; /* N, at most TORUS_MAX_NODES */
};

/* Parses "ring:8 x array:4 x complete:3", with or without the spaces; "complete:2^10" stands for
 * ten such dimensions. Returns 0, or -1 with *e saying what is wrong with the text. */
int product_parse(struct product *p, const char *text, struct error *e);

/* Writes the text that product_parse() reads; `text` has room for PRODUCT_TEXT_SIZE. Returns
 * text. */
char *product_format(const struct product *p, char *text);

/* The torus as a product of rings, and of arrays where the torus does not wrap. */
struct product product_of_torus(const struct torus *t);

uint32_t product_distance(const struct product *p, uint32_t a, uint32_t b);
uint32_t product_diameter(const struct product *p);

/* Theorem 1: the sum over the dimensions of N/n_i times the status there. */
uint64_t product_status(const struct product *p, uint32_t node);
uint64_t product_least_status(const struct product *p);
uint64_t product_most_status(const struct product *p);
double product_average_status(const struct product *p); /* corollary 1 */

/* The average status divided by N-1; 0 if there is only one node. */
double product_average_distance(const struct product *p);

/* Lower bounds on the time of a complete exchange, in blocks. With all ports at once: the best
 * cut of one dimension into two halves (4). With one send and one receive at a time: the larger
 * of that and N-1, the blocks that a node receives. With single hops also the average status
 * (3), at which all nodes send all the time. In arrays, nodes at the ends have less to relay; so
 * the bound is also what the middle of an array has to send and, in a two-dimensional mesh, what
 * all nodes but the corners have to send. On a single array, on rings and on complete graphs A2
 * attains this bound. */
double product_bound_all_port(const struct product *p);
double product_bound_one_port(const struct product *p);
double product_bound_single_hops(const struct product *p);

/* Lower bounds on the time of reductions with all ports at once. The unit is the time that the
 * whole vector of one node needs to cross a link. Vectors may be split; nodes combine what they
 * receive.
 *
 * Reduce-scatter with blocks of equal size, and allgather in reverse: the node with the fewest
 * links, d, has to send something for N-1 of the N blocks: (N-1)/N / d.
 *
 * Allreduce: an element crosses at least 2(N-1) channels, N-1 until any node has all of it and
 * as many from then on; and a node with d links gets all of the vector, and sends all of its own. So
 * with C channels, two of them a link, it is the larger of 2(N-1)/C and 1/d. Where all nodes have
 * the same number of links, that is 2(N-1)/N / d, twice reduce-scatter: Jain, Sabharwal: Optimal Bucket
 * Algorithms for Large MPI Collectives on Torus Interconnects (2010). Where not, in arrays, a
 * reduce-scatter into equal blocks and an allgather of them take longer than that bound.
 *
 * Reduce to a root, and broadcast in reverse: a node with d links sends its whole vector or, at
 * the root, receives the whole result: 1/d for the node with the fewest links. The bound is
 * attained if the root has that many trees, no two of which share a channel, and each carries an
 * equal part. How many such trees exist: Edmonds: Edge-Disjoint Branchings (in: Combinatorial
 * Algorithms, 1973, p. 91). */
double product_bound_reduce(const struct product *p);
double product_bound_reduce_scatter(const struct product *p);
double product_bound_allreduce(const struct product *p);

/* The bound for a torus or mesh. */
double torus_bound_reduce(const struct torus *t);
double torus_bound_reduce_scatter(const struct torus *t);
double torus_bound_allreduce(const struct torus *t);

/* Exchanges of both algorithms by single hops, with one send and one receive a node at a time.
 *
 * A2 runs the exchanges of the single dimensions one after the other, the last dimension first. All
 * rounds of a dimension are combined: its messages have N/n_i blocks for each block of the
 * dimension's own exchange.
 *
 * A1: the last dimension is B, all others are A. First the nodes of each copy of B send one
 * after the other: a node sends to each other node of its copy, in rising order, one message
 * with all blocks for that node's copy of A. Then follow as many exchanges within the copies of
 * A as B has nodes; the j-th one moves the blocks from the j-th copy, again by A1. */
enum product_algorithm { PRODUCT_A1, PRODUCT_A2 };

const char *product_algorithm_name(enum product_algorithm a); /* "a1" */

/* Writes the route of one block, at most one walk per dimension (array of PRODUCT_MAX_DIMS), `dim` in
 * each, in the order of steps. Returns how many. No step of the schedule may be above UINT32_MAX. */
struct product_walk {
    struct walk walk;
    unsigned dim;
};
unsigned product_route(const struct product *p, enum product_algorithm a, uint32_t source,
                       uint32_t destination, struct product_walk *walks);

/* What the exchange costs: its steps, and the sum over the steps of the most blocks on any
 * channel. The blocks of A2 are corollary 2, which is product_bound_single_hops() on rings and
 * complete graphs. */
uint64_t product_steps(const struct product *p, enum product_algorithm a);
uint64_t product_blocks(const struct product *p, enum product_algorithm a);

#endif
