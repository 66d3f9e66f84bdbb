/* Which nodes and links an attempt may use, as this node sees the torus: which nodes are left out, and whether
 * the remaining ones suffice. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/interface/exchange_types.h"

struct attempt;
struct exchanges;
struct job;

/* The nodes that need not take part. */
struct left_out {
    bool down;         /* true: nodes that cannot be reached, if they count as down */
    const bool *nodes; /* by node: left out even if up; NULL: none */
};

/* Returns which nodes this attempt may leave out. An open group keeps its members. Valid until x->avoided
 * changes. */
struct left_out membership_left_out(const struct attempt *x);
/* Returns which nodes the job's next attempt may leave out. */
struct left_out membership_left_out_next(const struct job *j);
/* Returns the first node that is down and not in `gone` (by node; NULL: empty); TORUS_NO_NODE: there is none. */
uint32_t membership_first_down(const struct exchanges *exchanges, const bool *gone);
/* Sets *d to the links that are not up, as far as this node knows, and to the nodes that are left out. The
 * caller frees *d. Returns 0, or -1 with *e (ERROR_MEMORY). */
int membership_view(const struct exchanges *exchanges, struct left_out out, struct damage *d,
                    struct error *e);
/* Checks that all nodes that must take part can be reached in this view. Returns 0, or -1 with *e. */
int membership_check(const struct exchanges *exchanges, struct left_out out, const struct damage *d,
                     struct error *e);
/* Applies membership_check() to what this node knows now. */
int membership_check_now(const struct exchanges *exchanges, struct left_out out, struct error *e);
/* Checks that this node's view is the same. Returns 0, or -1 with *e. The error is ERROR_BUSY or ERROR_MEMORY,
 * because the root may know more when it retries. */
int membership_agrees(const struct exchanges *exchanges, struct left_out out,
                      const struct damage *d, struct error *e);
/* Whether all nodes that this view leaves out count as down. */
bool membership_are_down(const struct exchanges *exchanges, const struct damage *d);
/* Whether something is down that the job needs to begin. If so, sets *e to a text that names it. */
bool membership_prevents_start(const struct job *j, struct error *e);

#define MEMBERSHIP_ROOT 0u
/* Returns the root of a barrier or group, as far as this node knows: MEMBERSHIP_ROOT, or the first remaining
 * node of a group that shrinks. TORUS_NO_NODE: no memory. */
uint32_t membership_root(const struct exchanges *exchanges, const struct spec *spec);
