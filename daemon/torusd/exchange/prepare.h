/* How an attempt starts on all nodes: from the root's prepare until this node is ready, or objects. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/attempt.h"
#include "proto/peer/peer_message.h"

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
int sizes_heard(struct attempt *x, unsigned port, const struct peer_sizes *sizes, struct error *e);
int layout_heard(struct attempt *x, unsigned port, const struct peer_layout *layout,
                 struct error *e);
int ready_heard(struct attempt *x, unsigned port, const struct peer_ready *message,
                struct error *e);

/* Reads the lists of links and nodes that the attempt avoids. Returns 0 with *d, which the caller frees; or -1 with *e (ERROR_PROTOCOL, ERROR_MEMORY) and
 * nothing to free. */
int prepare_links_unpack(const struct torus *t, const struct peer_prepare *prepare,
                         struct damage *d, struct error *e);

/* --- progress: in an attempt that resumes an earlier one, each node tells all others what has arrived there --- */

/* Handles another node's message about what has arrived there. Returns 0, or -1 with *e if the neighbour is to
 * blame. */
int arrived_heard(struct attempt *x, unsigned port, const struct peer_arrived *message,
                  struct error *e);

/* --- the root's prepare (prepare_heard.c) --- */

/* Handles a prepare. Returns 0, also if this node objects; or -1 with *e if the neighbour is to blame. */
int prepare_heard(struct exchanges *exchanges, unsigned port, const struct peer_prepare *prepare,
                  struct error *e);
