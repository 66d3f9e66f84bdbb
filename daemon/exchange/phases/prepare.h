/* How an attempt begins on all nodes: from the root's prepare until this node is ready. */
#ifndef TORUSD_EXCHANGE_PHASES_PREPARE_H
#define TORUSD_EXCHANGE_PHASES_PREPARE_H

#include "daemon/exchange/record/attempt.h"

/* Nanoseconds, by the sizes of the blocks, and the nominal rate of the links. */
uint64_t prepare_default_timeout(const struct attempt *x);
/* The first wave: children hear of the attempt. */
void prepare_begin(struct attempt *x);
/* Goes on as far as it can. */
void prepare_advance(struct attempt *x);
/* Names this node in *e, which refuses what the node at the port has told it; that one, too, if no root says so. */
void prepare_refuse(const struct exchanges *all, unsigned port, struct error *e);
/* This node cannot take part. */
void prepare_object(struct attempt *x, struct error *e);
/* Messages. Each returns 0, or -1 with *e if the neighbour is to blame. */
int sized_heard(struct attempt *x, unsigned port, const struct peer_sized *sized, struct error *e);
int layout_heard(struct attempt *x, unsigned port, const struct peer_layout *layout,
                 struct error *e);
int ready_heard(struct attempt *x, unsigned port, const struct peer_ready *message,
                struct error *e);

#endif
