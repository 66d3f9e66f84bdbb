/* All different routes of an algorithm on a torus. Plans, peak transit and the verifier are derived
 * from them.
 *
 * An algorithm declares symmetries (algorithm.h): moves of all nodes that change nothing, either
 * translations or XORs. So nodes fall into classes (coordinates modulo the period), and it is
 * enough to look at the sources within the first period box, one of each class. What happens at the
 * ends of the legs of such a route happens, moved along, at every node of the same class; with
 * translation also what happens between them. */
#ifndef TORUSD_SCHEDULE_ROUTES_ROUTES_H
#define TORUSD_SCHEDULE_ROUTES_ROUTES_H

#include "daemon/schedule/algorithm.h"

struct routes {
    const struct torus *torus;
    const struct algorithm *algorithm;
    bool by_xor;                     /* the moves are XORs */
    uint32_t period[TORUS_MAX_DIMS]; /* of the moves */
    uint32_t classes;
    uint32_t *representative; /* class -> its node in the first period box */
    uint32_t *class_of;       /* node -> class */
    uint32_t *neighbour;      /* node * ports + port -> node or TORUS_NO_NODE */

    uint32_t via; /* TORUS_NO_NODE, or a node: routes that surely do not pass it are left out */

    /* The current route of routes_next(), if `begun`. */
    bool begun;
    uint32_t last; /* destination of this source, + 1 */
    uint32_t source_class, source, destination, segment;
    uint32_t legs;
    struct leg *leg;
};

/* Opens a walk over the routes. The torus is borrowed until routes_close(). Returns 0, or -1
 * with *e set (algorithm refuses the torus, no memory) and nothing to close. */
int routes_open(struct routes *r, const struct torus *t, const struct algorithm *a,
                struct error *e);

/* As routes_open(), for callers that ask routes_moved_leg() for each leg: uses XOR moves if the
 * algorithm declares them, since these make fewer classes. */
int routes_open_ends(struct routes *r, const struct torus *t, const struct algorithm *a,
                     struct error *e);
void routes_close(struct routes *r);

/* Restricts the walk to the routes that may pass `node`, if the algorithm makes that easy to
 * tell and no two nodes are of one class. Returns whether it has restricted the walk; then
 * *steps is the highest step of all routes + 1. */
bool routes_only_via(struct routes *r, uint32_t node, uint32_t *steps);

/* Moves to the next route, over all segments of all destinations of all representatives that
 * have one. Returns false at the end; the call after that starts from the beginning. */
bool routes_next(struct routes *r);

/* Moves to one of these routes; routes_next() continues from there. */
void routes_seek(struct routes *r, uint32_t source_class, uint32_t destination, uint32_t segment);

/* The node on the far side of `port`. */
static inline uint32_t routes_neighbour(const struct routes *r, uint32_t node, unsigned port)
{
    return r->neighbour[(size_t)node * torus_ports(r->torus) + port];
}

/* The node at the end of a leg of the route that starts at `node`; TORUS_NO_NODE if it leaves a
 * mesh. */
uint32_t routes_leg_end(const struct routes *r, uint32_t node, const struct leg *leg);

/* The index of the first leg of the current route that no other route has: in an allgather the
 * last leg. */
static inline uint32_t routes_new_legs(const struct routes *r)
{
    return r->algorithm->operation == OPERATION_ALLGATHER && r->legs > 0 ? r->legs - 1 : 0;
}

/* The node to which `node` moves with the move that takes `from` to `to`, two nodes of one
 * class. */
uint32_t routes_move(const struct routes *r, uint32_t node, uint32_t from, uint32_t to);

/* The leg that becomes of a leg that starts at `from`, with the move that takes `from` to `to`. */
struct leg routes_moved_leg(const struct routes *r, const struct leg *leg, uint32_t from,
                            uint32_t to);

#endif
