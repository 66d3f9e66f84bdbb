/* How an attempt starts on all nodes: from the root's prepare until this node is ready. */
#pragma once

#include "daemon/torusd/exchange/record/attempt.h"

/* Returns the default timeout in nanoseconds. It depends on the sizes of the blocks and the nominal rate of the
 * links. */
uint64_t prepare_default_timeout(const struct attempt *x);
/* Starts the first wave: tells the children of the attempt. */
void prepare_begin(struct attempt *x);
/* Continues preparing as far as possible now. */
void prepare_advance(struct attempt *x);
/* Wraps *e in a text that says that this node refuses the message from this port. Names the neighbour too,
 * because no root has said this. */
void prepare_wrap_refusal(const struct exchanges *exchanges, unsigned port, struct error *e);
/* Fails the attempt because this node cannot take part; *e is extended by this node's name. */
void prepare_object(struct attempt *x, struct error *e);
/* Handle messages. Each returns 0, or -1 with *e if the neighbour is to blame. */
int sized_heard(struct attempt *x, unsigned port, const struct peer_sized *sized, struct error *e);
int layout_heard(struct attempt *x, unsigned port, const struct peer_layout *layout,
                 struct error *e);
int ready_heard(struct attempt *x, unsigned port, const struct peer_ready *message,
                struct error *e);
