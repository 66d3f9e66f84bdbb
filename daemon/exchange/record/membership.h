/* Which nodes and links an attempt can have, as this node sees the torus: who is left out, and whether the rest
 * suffices. */
#ifndef TORUSD_EXCHANGE_RECORD_MEMBERSHIP_H
#define TORUSD_EXCHANGE_RECORD_MEMBERSHIP_H

#include "daemon/exchange/interface/exchange_types.h"
#include "daemon/schedule/damage.h"

struct attempt;
struct exchanges;
struct job;

/* Which nodes need not take part. */
struct left_out {
    bool down;         /* those that cannot be reached, if they can be taken for down */
    const bool *nodes; /* by node: these, whether they are up or not; NULL: none */
};

/* An open group keeps the members that it has. Valid until x->avoided changes. */
struct left_out membership_left_out(const struct attempt *x);
/* The same of the job's next attempt. */
struct left_out membership_left_out_next(const struct job *j);
/* The first node that is down, and not one of these (by node; NULL: none); TORUS_NO_NODE: none is. */
uint32_t membership_first_down(const struct exchanges *all, const bool *gone);
/* The links that are not up, as far as this node knows, and the nodes that are left out. Returns 0, or
 * -1 with *e (no memory). */
int membership_view(const struct exchanges *all, struct left_out out, struct damage *d,
                    struct error *e);
/* Whether that view suffices: all nodes that have to take part can be reached. Returns 0, or -1 with *e. */
int membership_check(const struct exchanges *all, struct left_out out, const struct damage *d,
                     struct error *e);
/* The same of what this node knows now. */
int membership_check_now(const struct exchanges *all, struct left_out out, struct error *e);
/* Whether this node has the same view. Returns 0, or -1 with *e (ERROR_BUSY, no memory): the root may
 * know more when it retries. */
int membership_agrees(const struct exchanges *all, struct left_out out, const struct damage *d,
                      struct error *e);
/* Whether all nodes that are left out of this view can be taken for down. */
bool membership_are_down(const struct exchanges *all, const struct damage *d);
/* Whether something is down that a job cannot begin without; then *e says what. */
bool membership_prevents(const struct job *j, struct error *e);

#define MEMBERSHIP_ROOT 0u
/* The node that prepares a barrier or group, as far as this node knows: MEMBERSHIP_ROOT; of a group that shrinks, the
 * first node that is left. TORUS_NO_NODE: no memory. */
uint32_t membership_root(const struct exchanges *all, const struct spec *spec);

#endif
