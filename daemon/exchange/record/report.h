/* What the nodes counted, gathered up the tree with the `done` wave. */
#ifndef TORUSD_EXCHANGE_RECORD_REPORT_H
#define TORUSD_EXCHANGE_RECORD_REPORT_H

#include "daemon/exchange/interface/exchange_types.h"
#include "proto/peer/peer_message.h"

struct attempt;

/* What has been reported from this node and below; the root's is everybody's. */
struct report {
    struct exchange_node_report *node;
    uint32_t nodes;
    uint8_t *reported; /* of all nodes, a bit each */
    uint32_t *step_blocks, *step_messages;
    uint32_t steps;
    uint64_t sent_digest, delivered_digest;
    enum check check; /* of this node's sink */
};

/* This node's own, which took so long. Returns 0, or -1 with *e (no memory). */
int report_add_own(struct attempt *x, uint64_t nanoseconds, struct error *e);
/* What a child has gathered. Returns 0, or -1 with *e: it cannot be, or there is no memory. */
int report_add_child(struct attempt *x, unsigned port, const struct peer_done *done,
                     struct error *e);
/* Tells the parent. Returns 0, or -1 without memory. */
int report_send(struct attempt *x);
/* Root, all have reported: whether all blocks were delivered as they were sent. Returns 0, or -1 with *e. */
int report_check(struct attempt *x, struct error *e);
/* For the client; good as long as the attempt. */
void report_result(const struct attempt *x, struct exchange_result *result);
void report_free(struct report *r);

#endif
