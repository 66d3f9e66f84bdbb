/* Counters of all nodes, collected up the tree with the `done` wave. */
#pragma once

#include "daemon/torusd/exchange/interface/exchange_types.h"
#include "proto/peer/peer_message.h"

struct attempt;

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
/* Sets *result for the client; valid as long as the attempt. */
void report_result(const struct attempt *x, struct exchange_result *result);
/* Frees what the report holds, but not *r. */
void report_free(struct report *r);
