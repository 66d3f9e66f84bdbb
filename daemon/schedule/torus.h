/* Torus geometry in k dimensions. Pure arithmetic: nothing here allocates memory or does I/O.
 *
 * Ranks are row-major: the last dimension varies fastest. Each dimension either wraps (ring) or not
 * (mesh). A dimension of 2 that wraps has two separate links between the same two nodes; a
 * dimension of 1 has none. Ports are numbered 2*dimension for `+` and 2*dimension+1 for `-`. */
#ifndef TORUSD_SCHEDULE_TORUS_H
#define TORUSD_SCHEDULE_TORUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

#define TORUS_MAX_DIMS 8
#define TORUS_MAX_PORTS (2 * TORUS_MAX_DIMS)
#define TORUS_MAX_NODES (1u << 20)
#define TORUS_NO_NODE UINT32_MAX
#define TORUS_TEXT_SIZE 96     /* room for torus_format() */
#define TORUS_PORT_NAME_SIZE 4 /* room for "+7" */

struct torus {
    unsigned dims;                 /* k, 1..TORUS_MAX_DIMS */
    uint32_t size[TORUS_MAX_DIMS]; /* nodes along each dimension, at least 1 */
    bool wrap[TORUS_MAX_DIMS];     /* ring (true) or mesh (false) */
    uint32_t nodes;                /* product of the sizes */
};

/* Reads "4x8", "6", "3x4x5"; a size followed by `m` does not wrap ("4x8m"). Returns 0, or -1 with
 * *e (ERROR_USAGE), which says what is wrong with the text. */
int torus_parse(struct torus *t, const char *text, struct error *e);

/* Writes the text that torus_parse() reads; `text` has room for TORUS_TEXT_SIZE. Returns `text`. */
char *torus_format(const struct torus *t, char *text);

/* Whether both have the same dimensions, sizes and wraps. */
bool torus_equal(const struct torus *a, const struct torus *b);

/* Convert between ranks and coordinates (arrays of t->dims). A rank must be below t->nodes. */
uint32_t torus_rank(const struct torus *t, const uint32_t *coordinates);
void torus_coordinates(const struct torus *t, uint32_t rank, uint32_t *coordinates);

/* The node `hops` hops away from `rank` in this direction (1 or -1) of dimension `dim`, or
 * TORUS_NO_NODE if the mesh ends before that. */
uint32_t torus_walk(const struct torus *t, uint32_t rank, unsigned dim, int direction,
                    uint32_t hops);

/* The ports of a node, including ports without a link, and the dimension and direction (1 or -1) of
 * a port. */
static inline unsigned torus_ports(const struct torus *t)
{
    return 2 * t->dims;
}
static inline unsigned torus_port(unsigned dim, int direction)
{
    return 2 * dim + (direction < 0);
}
static inline unsigned torus_port_dim(unsigned port)
{
    return port / 2;
}
static inline int torus_port_direction(unsigned port)
{
    return (port & 1) != 0 ? -1 : 1;
}
/* The port at the other end of the link, which is also the port by which a straight run
 * continues. */
static inline unsigned torus_port_opposite(unsigned port)
{
    return port ^ 1u;
}

/* The node cabled to `port`, or TORUS_NO_NODE (dimension of 1, end of a mesh). */
uint32_t torus_neighbour(const struct torus *t, uint32_t rank, unsigned port);

/* The hops of a shortest path from coordinate `from` to `to` along `dim`. Sets *direction to 1 or
 * -1; leaves it unchanged if the two coordinates are equal, or both directions equally short, so
 * that the caller chooses. */
uint32_t torus_shortest(const struct torus *t, unsigned dim, uint32_t from, uint32_t to,
                        int *direction);

/* Writes the name of a port, "+0", "-1"; `name` has room for TORUS_PORT_NAME_SIZE. Returns
 * `name`. */
char *torus_port_name(unsigned port, char *name);

/* The port with this name, such as "+0"; -1 if the torus has no such port. */
int torus_port_parse(const struct torus *t, const char *name);

/* Hops of a shortest path between two nodes. */
uint32_t torus_distance(const struct torus *t, uint32_t a, uint32_t b);

/* The most hops of a shortest path: between two nodes of a line along `dim`, and between any two
 * nodes. */
uint32_t torus_longest_way(const struct torus *t, unsigned dim);
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

/* The number of links of a node with the fewest: in each dimension of more than one node, 2 on a
 * ring, 1 on a mesh. */
unsigned torus_fewest_links(const struct torus *t);

/* Lower bound on the blocks that the busiest channel carries in an all-to-all broadcast:
 * ceil((N-1)/links), since a node with the fewest links receives N-1 blocks by them. */
double torus_bound_broadcast(const struct torus *t);

#endif
