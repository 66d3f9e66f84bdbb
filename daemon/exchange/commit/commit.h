/* From done to committed: the root's decision, and what every node does to carry it out. */
#ifndef TORUSD_EXCHANGE_COMMIT_COMMIT_H
#define TORUSD_EXCHANGE_COMMIT_COMMIT_H

#include "daemon/exchange/record/attempt.h"

/* Root: all have done their part. Its decision goes on record; then all hear of it. */
void commit_decide(struct attempt *x);
/* Puts this node's output in place, as far as that goes now. */
void commit_advance(struct attempt *x);
/* The root's decision, from the parent. Returns 0. */
int commit_heard(struct attempt *x, unsigned port, const struct peer_commit *message,
                 struct error *e);
/* The outcome has been heard from the root by another way than the wave. */
void commit_begin(struct attempt *x);
/* Takes what a child confirms, if it is waited for, to confirm it together with this node's. */
bool commit_collects(struct attempt *x, unsigned port, const uint32_t *rank, size_t count);
/* Children are late: they confirm by themselves. */
void commit_waits_no_longer(struct attempt *x);
/* Links have gone down: what was to come over them comes another way, or never. */
void commit_topology(struct attempt *x);
/* Root: when the client hears of the end, although not all nodes have confirmed. */
uint64_t commit_deadline(const struct attempt *x);

#endif
