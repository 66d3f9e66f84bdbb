/* Which nodes and links an attempt may use, as this node sees the torus: which nodes are left out, and whether
 * the remaining ones suffice. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/attempt.h"

/* The nodes that need not take part. */
struct left_out {
    bool down;         /* leave out nodes that cannot be reached and count as down */
    const bool *nodes; /* by node: left out even if up; NULL: none */
    /* NULL, or a group of some nodes: with `down`, all of these take part, and other nodes may be left out whether or
     * not they count as down. */
    const struct spec *members;
};

/* Returns which nodes such a job may leave out while it has not been open. */
struct left_out membership_left_out_of(const struct spec *spec);

/* Returns which nodes this attempt may leave out. An open group keeps its members. Valid until x->avoided
 * changes. */
struct left_out membership_left_out(const struct attempt *x);
/* Returns which nodes the job's next attempt may leave out. */
struct left_out membership_left_out_next(const struct job *j);
/* Returns the first node that must take part and is down; TORUS_NO_NODE: there is none. */
uint32_t membership_first_down(const struct exchanges *exchanges, struct left_out out);
/* Sets *d to the links that are not up, as far as this node knows, and to the nodes that are left out. The
 * caller frees *d. Returns 0, or -1 with *e (ERROR_MEMORY). */
int membership_view(const struct exchanges *exchanges, struct left_out out, struct damage *d,
                    struct error *e);
/* Sets the rates that plans use (plan_rates.h) of the links in *d that are up. Returns 0, or -1 with *e
 * (ERROR_MEMORY). */
int membership_add_rates(const struct exchanges *exchanges, struct damage *d, struct error *e);
/* Checks that all nodes that must take part can be reached in this view. Returns 0, or -1 with *e. */
int membership_check(const struct exchanges *exchanges, struct left_out out, const struct damage *d,
                     struct error *e);
/* Applies membership_check() to what this node knows now. */
int membership_check_now(const struct exchanges *exchanges, struct left_out out, struct error *e);
/* Checks that this node's view of links and nodes is the same; the rates of links are the root's. Returns 0, or -1 with
 * *e. The error is ERROR_BUSY or ERROR_MEMORY, because the root may know more when it retries. */
int membership_agrees(const struct exchanges *exchanges, struct left_out out,
                      const struct damage *d, struct error *e);
/* Whether something is down that the job needs to begin. If so, sets *e to a text that names it. */
bool membership_prevents_start(const struct job *j, struct error *e);

#define MEMBERSHIP_ROOT 0u
/* Returns the root of a barrier or group, as far as this node knows: MEMBERSHIP_ROOT, or the first remaining
 * node of a group that shrinks. TORUS_NO_NODE: no memory. */
uint32_t membership_root(const struct exchanges *exchanges, const struct spec *spec);

/* --- the links and nodes that an attempt avoids, and its tree over the remaining links --- */

struct avoided {
    struct damage damage;
    uint8_t *parent; /* by node: the port towards the root (tree_find()) */
    /* NULL: not found yet, not needed any more, or the attempt is a barrier. */
    const struct detour *detour;
    bool
        takes_found; /* "auto" has chosen the found routes of a network in which nothing is avoided */
};

/* Whether the attempt's routes are found for its links, instead of by an algorithm of the registry. That is so if it
 * avoids links. On a network with other graphs than rings and lines it is also so for `stream` (named by the spec, or
 * chosen by "auto"), and for "auto" if the operation is not an exchange. */
bool avoided_has_routes(const struct attempt *x);
/* Returns the name of these routes. */
const char *avoided_routes_name(const struct attempt *x);
/* Whether a spec leaves no other choice than such routes; `whole`: no link or node is avoided. */
bool spec_finds_routes(const struct spec *s, const struct torus *t, bool whole);
/* Makes the attempt avoid these links and nodes, and finds its tree. Takes *d over, also on failure. If they
 * differ from those before, a root must choose its algorithm again. Returns 0, or -1 with *e. */
int avoided_set(struct attempt *x, struct damage *d, struct error *e);
/* Frees what the attempt avoids, and its routes. */
void avoided_drop(struct attempt *x);
/* Frees the routes, and keeps which links and nodes the attempt has avoided. */
void avoided_leave_routes(struct attempt *x);
/* Returns the child port that leads down to a node in the attempt's tree; -1 for this node and for nodes not
 * below it. */
int avoided_branch(const struct attempt *x, uint32_t node);
/* Finds a node's port towards the root without these links; *port is -1 if there is none. Returns 0, or -1 with
 * *e. */
int avoided_parent(const struct damage *d, uint32_t root, uint32_t rank, int *port,
                   struct error *e);
/* Whether a link that the attempt avoids is up again, between nodes that take part. */
bool avoided_are_restored(const struct attempt *x);
/* Whether the node takes no part. */
bool avoided_is_left_out(const struct attempt *x, uint32_t rank);
/* Returns the number of nodes that take part. */
uint32_t avoided_nodes(const struct attempt *x);
/* Returns how many blocks of other nodes a node that takes part receives. */
uint64_t exchange_receives(const struct attempt *x, uint32_t rank);
/* Whether this port has a link between two nodes that take part. */
bool avoided_joins_members(const struct damage *d, uint32_t rank, unsigned port);
/* Returns the node's ports (bits) whose links the attempt avoids. */
uint32_t avoided_ports(const struct attempt *x, uint32_t rank);
/* Whether a link or node that the attempt needs is down. If so, sets *e to a text that names it. */
bool avoided_fault(const struct attempt *x, struct error *e);

/* --- nodes that no link leads to, and since when; times are nanoseconds of the router's clock --- */

struct absence {
    uint64_t down_since;        /* ROUTER_NEVER: some of its links are up */
    uint64_t unreachable_since; /* ROUTER_NEVER: links that are up lead to it */
};

/* Allocates exchanges->absent, which the caller frees. Returns 0, or -1 if there is no memory. */
int absent_init(struct exchanges *exchanges);
/* Updates the times, because the topology has changed. */
void absent_note(struct exchanges *exchanges);
/* Whether the node counts as down: none of its links is up, or it went down together with its neighbours. A
 * node that is unreachable but not down may be alive. */
bool absent_is_down(const struct exchanges *exchanges, uint32_t rank);
/* Whether no path over links that are up leads to the node. */
bool absent_is_unreachable(const struct exchanges *exchanges, uint32_t rank);
/* Returns when an unreachable node is given up; ROUTER_NEVER: it can be reached. */
uint64_t absent_given_up_at(const struct exchanges *exchanges, uint32_t rank);
/* Returns when a node without links counts as dead; ROUTER_NEVER: it is up. */
uint64_t absent_dead_at(const struct exchanges *exchanges, uint32_t rank);
/* Returns the nanoseconds from the first lost link of a node that goes down until all its lost links are
 * reported. Neighbours notice at different times, up to a heartbeat apart. */
uint64_t absent_report_time(const struct exchanges *exchanges);
