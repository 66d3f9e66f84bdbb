/* Messages about attempts that fail: the root's verdict, and the objection of any other node. */
#ifndef TORUSD_EXCHANGE_ABORT_VERDICT_H
#define TORUSD_EXCHANGE_ABORT_VERDICT_H

#include "daemon/exchange/record/job.h"

/* Root: the attempt is over everywhere. */
void verdict_send(struct attempt *x, const struct error *e);
/* The same over all links, of one that was withdrawn before. */
void verdict_flood(struct attempt *x, const struct error *e);
/* The same about the last attempt that all nodes know of, if it is not this one; a group that has been open all know by
 * its first id. */
void verdict_send_former(const struct job *j, const struct error *e);
/* The attempt that somebody behind this port objects to is over, which he has not heard. */
void verdict_answer(struct exchanges *all, unsigned port, uint32_t handle,
                    const struct exchange_id *id, const struct error *e);
/* Down the tree; or with `left` hops to go over all links but the one it came by (-1: none). */
void verdict_pass_on(struct attempt *x, const struct error *e, uint32_t left, int except);
/* The same of an attempt that is not known here. */
void verdict_pass_unknown(struct exchanges *all, unsigned port, const struct exchange_id *id,
                          const struct peer_verdict *message);
/* Links are down: verdicts are flooded. */
bool verdict_is_cut(const struct attempt *x);
/* A verdict on this id, which is unknown here, has been passed on lately. */
bool verdict_is_remembered(const struct exchanges *all, const struct exchange_id *id);
/* The link at this port is up again: says all verdicts once more. */
void verdicts_repeat(struct exchanges *all, unsigned port);
/* The port of this node towards the root, by the attempt's tree, or where that is cut by any way. -1: there is none. */
int objection_port(const struct attempt *x);
/* Towards the root by this port; -1: there is no way. `again`: blocks were damaged on their way. */
void objection_send(struct exchanges *all, int port, uint32_t handle, const struct exchange_id *id,
                    uint32_t root, const struct error *e, bool again);

#endif
