/* What nodes report: their counters, collected up the tree with the `done` wave; and when they entered a barrier. */
#pragma once

#include "daemon/torusd/exchange/exchange_types.h"
#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct attempt;
struct job;

/* Reports of this node and the nodes below it; at the root, of all nodes. */
struct report {
    struct exchange_node_report *node;
    uint32_t nodes, room; /* entries in use, and entries */
    uint8_t *reported;    /* a bit for each node that has reported */
    uint32_t *step_blocks, *step_messages;
    uint32_t steps;
    uint64_t sent_digest, delivered_digest;
    enum check check; /* of this node's sink */
};

/* Adds this node's own report; the repetition took `nanoseconds` here. Returns 0, or -1 with *e (ERROR_MEMORY). */
int report_add_own(struct attempt *x, uint64_t nanoseconds, struct error *e);
/* Adds the reports that a child has collected. Returns 0, or -1 with *e if they are invalid or there is no
 * memory. */
int report_add_child(struct attempt *x, unsigned port, const struct peer_done *done,
                     struct error *e);
/* Sends the reports to the parent. Returns 0, or -1 if there is no memory. */
int report_send(struct attempt *x);
/* Root, after all nodes have reported: checks that all blocks were delivered as they were sent. Returns 0, or
 * -1 with *e. */
int report_check(struct attempt *x, struct error *e);
/* Calls the client's ended(), once: with the error *e, or with the job's result if `e` is NULL. */
void client_tell(struct job *j, const struct error *e);
/* Frees what the report holds, but not *r. */
void report_free(struct report *r);

/* --- barriers: when the clients of all nodes entered ---
 *
 * Nodes have no common clock, so `ready` says how long before it was
 * sent each node below had entered; every node on the way adds how long the message waited there. The root compares
 * these times, and `go` tells all nodes how long after the first one each node came. The time that messages need is
 * not known: it counts as if the node had come later. */

struct barrier_times {
    /* By rank, of this node and the nodes below it: when it entered, in nanoseconds of the router's clock;
     * ARRIVAL_UNKNOWN: not known. NULL: nothing is known. */
    uint64_t *at;
    /* As `go` has it: pairs of a rank, ascending, and the microseconds from the first node's arrival to this node's. */
    uint64_t *told;
    size_t n_told;                /* numbers in `told` */
    struct exchange_arrival *all; /* the same for the client */
    uint64_t waited_ns; /* from when the client entered here until `go`; 0: no client has */
};

/* Makes the list for `ready`: pairs of a rank and how many microseconds ago it entered. Sets *count to its numbers. The
 * caller frees it. Returns NULL, and sets *count to 0, if nothing is known, the attempt is not a barrier, or memory is
 * short. */
uint64_t *barrier_times_below(struct attempt *x, size_t *count);
/* Takes the list of a child's `ready`. Returns 0, or -1 with *e if the list is invalid. */
int barrier_times_add_child(struct attempt *x, unsigned port, const uint64_t *list, size_t count,
                            struct error *e);
/* Root: compares the times of all nodes, for `go`. */
void barrier_times_compare(struct attempt *x);
/* Takes the list of the parent's `go`. Returns 0, or -1 with *e if the list is invalid. */
int barrier_times_set(struct attempt *x, const uint64_t *list, size_t count, struct error *e);
/* Notes when `go` came. */
void barrier_times_go(struct attempt *x);
/* Frees what the arrivals hold, but not *a. */
void barrier_times_free(struct barrier_times *a);
