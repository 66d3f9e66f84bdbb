/* Every different route of an algorithm on a torus, for what is derived from them: plans, peak
 * transit, the verifier.
 *
 * Translation by a multiple of the algorithm's period changes nothing, so nodes fall into classes
 * (coordinates modulo the period), and it is enough to look at the sources within the first period
 * box, one of each class. What happens at some node of such a route happens, moved along, at every
 * node of the same class. */
#ifndef TORUSD_SCHEDULE_ROUTES_H
#define TORUSD_SCHEDULE_ROUTES_H

#include "daemon/schedule/algorithm.h"

struct routes {
    const struct torus *torus;
    const struct algorithm *algorithm;
    uint32_t classes;
    uint32_t *representative; /* class -> its node in the first period box */
    uint32_t *class_of;       /* node -> class */
    uint32_t *neighbour;      /* node * ports + port -> node or TORUS_NO_NODE */

    /* The route that routes_next() has come to, if `begun`. */
    bool begun;
    uint32_t source_class, source, destination, segment;
    uint32_t legs;
    struct leg *leg;
};

/* Returns 0, or -1 with *e set (algorithm refuses the torus, no memory) and nothing to close. The
 * torus is borrowed until routes_close(). */
int routes_open(struct routes *r, const struct torus *t, const struct algorithm *a,
                struct error *e);
void routes_close(struct routes *r);

/* Goes on to the next route: all segments of all destinations of all representatives. Returns false
 * at the end; the next call begins again. */
bool routes_next(struct routes *r);

/* The node on the far side of `port`. */
static inline uint32_t routes_neighbour(const struct routes *r, uint32_t node, unsigned port)
{
    return r->neighbour[(size_t)node * torus_ports(r->torus) + port];
}

/* The node at the end of a leg of the route that starts at `node`; TORUS_NO_NODE if it leaves a
 * mesh. */
uint32_t routes_leg_end(const struct routes *r, uint32_t node, const struct leg *leg);

/* The first of the current route's legs that no other route has: in an allgather the last one. */
static inline uint32_t routes_new_legs(const struct routes *r)
{
    return r->algorithm->operation == OPERATION_ALLGATHER && r->legs > 0 ? r->legs - 1 : 0;
}

/* Where `node` is after the translation that takes `from` to `to`. */
uint32_t routes_translate(const struct routes *r, uint32_t node, uint32_t from, uint32_t to);

#endif
