/* Torus geometry in k dimensions. Pure arithmetic: nothing here allocates memory or does I/O.
 *
 * Ranks are row-major: the last dimension varies fastest. Each dimension either wraps (ring) or not
 * (mesh). A dimension of 2 that wraps has two separate links between the same two nodes; a
 * dimension of 1 has none. Ports are numbered 2*dimension for `+` and 2*dimension+1 for `-`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/schedule/graph/graph.h"
#include "proto/error.h"

#define TORUS_MAX_DIMS 8
#define TORUS_MAX_PORTS 32
#define TORUS_MAX_NODES (1u << 20)
#define TORUS_NO_NODE UINT32_MAX
#define TORUS_TEXT_SIZE 288    /* room for torus_format() */
#define TORUS_PORT_NAME_SIZE 8 /* room for "7:1023" */

struct torus {
    unsigned dims;                 /* k, 1..TORUS_MAX_DIMS */
    uint32_t size[TORUS_MAX_DIMS]; /* nodes along each dimension, at least 1 */
    bool wrap[TORUS_MAX_DIMS];     /* ring (true); line or other graph (false) */
    uint32_t nodes;                /* product of the sizes */

    /* Without other graphs, `graphs` is 0 and what follows is not used. */
    unsigned graphs;                           /* how many factors are other graphs */
    const struct graph *graph[TORUS_MAX_DIMS]; /* NULL: a ring or line */
    unsigned ports;
    uint8_t first_port[TORUS_MAX_DIMS];
    uint8_t dim_of_port[TORUS_MAX_PORTS], opposite[TORUS_MAX_PORTS];
};

/* Parses "4x8", "6", "3x4x5". A factor is a ring of a size, `4` or `ring:4`; a line, `4m` or
 * `line:4`; `complete:4`, `star:5` (the middle and 4 others), `tree:2^3` (2 children a node, 3
 * levels of children), or `graph:FILE`, a list of edges (graph_read()), up to a space. `2m^5`
 * stands for five such factors. Spaces beside the `x` are allowed. A graph that is known may also
 * be given as torus_format() writes it. Returns 0, or -1 with *e saying what is wrong with the text.
 * Not thread-safe where other graphs are named: see graph.h. */
int torus_parse(struct torus *t, const char *text, struct error *e);

/* As torus_parse(), for a text that the user did not write: opens no files. A graph from a file must be known, and be
 * named as torus_format() writes it. */
int torus_parse_named(struct torus *t, const char *text, struct error *e);

/* As torus_parse(), for a text from a stranger, in any thread: reads no files and makes no graphs. A graph must
 * have been made before, and be named as torus_format() writes it. */
int torus_parse_known(struct torus *t, const char *text, struct error *e);

/* Appends a factor: a ring or line of `size` nodes, or a graph. *t begins with `nodes` 1 and all
 * else 0. Returns 0, or -1 if there are too many dimensions, ports or nodes, with *t unchanged. */
int torus_append(struct torus *t, uint32_t size, bool wrap, const struct graph *graph);

/* Writes the text that torus_parse() reads, in which a graph from a file has the place of its nodes
 * and digest, "graph:10:0123456789abcdef"; `text` has room for TORUS_TEXT_SIZE. Returns text. */
char *torus_format(const struct torus *t, char *text);

/* Whether both have the same dimensions, sizes and wraps. */
bool torus_equal(const struct torus *a, const struct torus *b);

/* Convert between ranks and coordinates (arrays of t->dims). A rank must be below t->nodes. */
uint32_t torus_rank(const struct torus *t, const uint32_t *coordinates);
void torus_coordinates(const struct torus *t, uint32_t rank, uint32_t *coordinates);

/* The rank `hops` hops away in direction `direction` of dimension `dim`, or TORUS_NO_NODE where the
 * dimension ends before that. In a graph whose links are coloured, every second hop leads back. */
uint32_t torus_walk(const struct torus *t, uint32_t rank, unsigned dim, int direction,
                    uint32_t hops);

/* Whether all factors are rings and lines. */
static inline bool torus_is_plain(const struct torus *t)
{
    return t->graphs == 0;
}

/* Whether a dimension has a direction of this number. */
static inline bool torus_has_direction(const struct torus *t, unsigned dim, int direction)
{
    if (t->graph[dim] == NULL)
        return direction == 1 || direction == -1;
    return direction >= 1 && (unsigned)direction <= t->graph[dim]->directions;
}

/* Ports are 0..torus_ports() - 1, at most TORUS_MAX_PORTS. */
static inline unsigned torus_ports(const struct torus *t)
{
    return t->graphs == 0 ? 2 * t->dims : t->ports;
}
static inline unsigned torus_port(const struct torus *t, unsigned dim, int direction)
{
    if (t->graphs == 0)
        return 2 * dim + (direction < 0);
    return t->first_port[dim] +
           (t->graph[dim] != NULL ? (unsigned)direction - 1 : (unsigned)(direction < 0));
}
static inline unsigned torus_port_dim(const struct torus *t, unsigned port)
{
    return t->graphs == 0 ? port / 2 : t->dim_of_port[port];
}
static inline int torus_port_direction(const struct torus *t, unsigned port)
{
    unsigned dim = torus_port_dim(t, port);
    unsigned number = port - (t->graphs == 0 ? 2 * dim : t->first_port[dim]);

    if (t->graphs != 0 && t->graph[dim] != NULL)
        return (int)number + 1;
    return number != 0 ? -1 : 1;
}
/* The port at the other end of the link, which is also the port through which a straight run
 * continues. */
static inline unsigned torus_port_opposite(const struct torus *t, unsigned port)
{
    return t->graphs == 0 ? port ^ 1u : t->opposite[port];
}

/* The node cabled to `port`, or TORUS_NO_NODE (no link there: dimension of 1, end of a line). */
uint32_t torus_neighbour(const struct torus *t, uint32_t rank, unsigned port);

/* Whether this end of a link dials, and the other one listens: the + end in rings and lines, the
 * end with the smaller coordinate in other graphs. False where there is no link. */
bool torus_port_dials(const struct torus *t, uint32_t rank, unsigned port);

/* The hops of a shortest path from coordinate `from` to `to` along `dim`, a ring or line. Sets
 * *direction to 1 or -1; leaves it unchanged if the two coordinates are equal, or both directions
 * equally short, so that the caller chooses. */
uint32_t torus_shortest(const struct torus *t, unsigned dim, uint32_t from, uint32_t to,
                        int *direction);

/* The hops of a shortest path from coordinate `from` to `to` along any dimension. */
uint32_t torus_dim_distance(const struct torus *t, unsigned dim, uint32_t from, uint32_t to);

/* "+0" and "-1" in rings and lines; in other graphs the dimension and the coordinate of the neighbour,
 * "0:3". A port without a link there is "0:?". `name` has room for TORUS_PORT_NAME_SIZE. Returns
 * name. */
char *torus_port_name(const struct torus *t, uint32_t rank, unsigned port, char *name);

/* The port of a node that a text such as "+0" or "0:3" names; -1 if none has that name. */
int torus_port_parse(const struct torus *t, uint32_t rank, const char *name);

/* Hops of a shortest path between two nodes. */
uint32_t torus_distance(const struct torus *t, uint32_t a, uint32_t b);

/* The hops along `dim` from coordinate `from` to the one that is farthest from it. */
uint32_t torus_farthest(const struct torus *t, unsigned dim, uint32_t from);

/* A coordinate of `dim` from which the farthest one is as near as possible: 0 in a ring. */
uint32_t torus_centre(const struct torus *t, unsigned dim);

/* Hops between the two coordinates of `dim` that are furthest apart, and between the two nodes
 * that are. */
uint32_t torus_longest_path(const struct torus *t, unsigned dim);
uint32_t torus_diameter(const struct torus *t);

/* Sets the translation period (algorithm.h) of algorithms that depend only on where two nodes
 * lie relative to each other and to the ends of a mesh: 1 in dimensions that wrap, the size in
 * others. */
void torus_full_period(const struct torus *t, uint32_t *period);

/* Sets the translation period of algorithms without a symmetry: every node is different. */
void torus_no_period(const struct torus *t, uint32_t *period);

/* Lower bound on the blocks that the busiest channel carries in a complete exchange with all ports
 * in use: the maximum over the dimensions of (N/n_i) * floor(n_i^2/4) / 2 for rings (Liu, Gu, Bi,
 * Tu, Dong: Optimal All-to-All Personalized Communication in All-Port Tori, lemma 1), of (N/n_i) *
 * floor(n_i/2) * ceil(n_i/2) for meshes. It may be fractional (ring of 6: 4.5). A ring of 2 has two
 * links: the bound is 4 on 2x2x2x2, and 8 on the hypercube, 2mx2mx2mx2m. */
double torus_bound_all_port(const struct torus *t);

/* Lower bound with one send and one receive at a time, if nodes relay inside a leg at no cost:
 * max(torus_bound_all_port(), N-1). */
double torus_bound_one_port(const struct torus *t);

/* The fewest links of any node: in each dimension of more than one node 2 on a ring, 1 on a line. */
unsigned torus_fewest_links(const struct torus *t);

/* All links. */
uint64_t torus_links(const struct torus *t);

/* Lower bound on the blocks that the busiest channel must carry in an all-to-all broadcast: the
 * node with the fewest links takes in N-1, ceil((N-1)/links) by one of them. */
double torus_bound_broadcast(const struct torus *t);

/* Lower bounds on the time of reductions: see product_bound_reduce() and the functions after it. */
double torus_bound_reduce(const struct torus *t);
double torus_bound_reduce_scatter(const struct torus *t);
double torus_bound_allreduce(const struct torus *t);
