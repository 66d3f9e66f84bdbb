/* All different routes of an algorithm on a torus. Plans, peak transit and the verifier are derived
 * from them.
 *
 * An algorithm declares symmetries (algorithm.h): moves of all nodes, either translations or XORs,
 * under which its routes stay the same. So the nodes fall into classes, by their coordinates modulo
 * the period, and it is enough to follow the routes of one source of each class, the
 * representative, which is in the first box of the period. What such a route does at the ends of
 * its legs, moved routes do at every other node of the same class; under translations also between
 * the ends. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

struct routes {
    const struct torus *torus;
    const struct algorithm *algorithm;
    bool by_xor;                     /* the moves are XORs, not translations */
    uint32_t period[TORUS_MAX_DIMS]; /* of the moves */
    uint32_t classes;
    uint32_t *representative; /* class -> its node in the first period box */
    uint32_t *class_of;       /* node -> class */
    uint32_t *neighbour;      /* node * ports + port -> node or TORUS_NO_NODE */

    bool on_lines; /* only routes between nodes of a line: see routes_only_on_lines() */

    uint32_t via; /* routes that cannot pass this node are left out; TORUS_NO_NODE: none are */

    /* The current route of routes_next(), if `begun` */
    bool begun;
    uint32_t last;   /* the source's last destination + 1; on lines, that of its current line */
    uint32_t stride; /* between two destinations */
    unsigned line;   /* on lines: the dimension of the current line */
    uint32_t source_class, source, destination, segment;
    uint32_t legs;
    struct leg *leg;
};

/* Opens a walk over the routes. Torus and algorithm are borrowed until routes_close(). Returns 0,
 * or -1 with *e (the algorithm refuses the torus, no memory) and nothing to close. */
int routes_open(struct routes *r, const struct torus *t, const struct algorithm *a,
                struct error *e);

/* As routes_open(), but uses XOR moves if the algorithm declares them, which make fewer classes.
 * The caller must ask routes_moved_leg() for every leg. */
int routes_open_ends(struct routes *r, const struct torus *t, const struct algorithm *a,
                     struct error *e);
/* Frees what the walk holds, and empties *r. */
void routes_close(struct routes *r);

/* Restricts the walk to routes that may pass `node`, if the algorithm makes that easy to tell and
 * every node is a class of its own. Returns true if it has; then *steps is the highest step of all
 * routes + 1. */
bool routes_only_via(struct routes *r, uint32_t node, uint32_t *steps);

/* Restricts the walk to the routes between nodes of a line, if these make up all others (by_lines
 * in algorithm.h). Each of their legs then stands for routes_weight() blocks. */
void routes_only_on_lines(struct routes *r);

/* The blocks for which a leg of the current route stands: without a restriction to lines, 1. A
 * block that moves along a line has come from any node of its source's coordinate there, and goes
 * to any node of its destination's. */
static inline uint32_t routes_weight(const struct routes *r)
{
    return r->on_lines ? r->torus->nodes / r->torus->size[r->line] : 1;
}

/* Moves to the next route: all segments of all destinations of all representatives, without blocks
 * that have no route (algorithm_route()). Returns false at the end; the next call begins again. */
bool routes_next(struct routes *r);

/* Moves to this route; routes_next() continues from there. */
void routes_seek(struct routes *r, uint32_t source_class, uint32_t destination, uint32_t segment);

/* The node on the far side of `port`, or TORUS_NO_NODE. */
static inline uint32_t routes_neighbour(const struct routes *r, uint32_t node, unsigned port)
{
    return r->neighbour[(size_t)node * torus_ports(r->torus) + port];
}

/* The node at the end of a leg that starts at `node`; TORUS_NO_NODE if the leg leaves a mesh. */
uint32_t routes_leg_end(const struct routes *r, uint32_t node, const struct leg *leg);

/* The index of the first leg of the current route that is not part of an earlier route: in an exchange 0, in an
 * allgather the last leg, since the others are those of another route of the tree. */
static inline uint32_t routes_new_legs(const struct routes *r)
{
    return r->algorithm->operation == OPERATION_ALLGATHER && r->legs > 0 ? r->legs - 1 : 0;
}

/* The node to which `node` moves under the move that takes `from` to `to`, two nodes of one
 * class. */
uint32_t routes_move(const struct routes *r, uint32_t node, uint32_t from, uint32_t to);

/* The leg that results from a leg that starts at `from` under the move that takes `from` to `to`.
 * Only XOR moves change a leg's hops and direction. */
struct leg routes_moved_leg(const struct routes *r, const struct leg *leg, uint32_t from,
                            uint32_t to);
