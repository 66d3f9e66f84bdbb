/* Messages about attempts that fail: the root's verdict, and another node's objection. */
#pragma once

#include "daemon/torusd/exchange/record/job.h"

/* Root: tells all nodes that the attempt has failed or is withdrawn (ERROR_BUSY). The verdict goes down the
 * tree, and is flooded if links are down. */
void verdict_send(struct attempt *x, const struct error *e);
/* Root: floods a verdict on an attempt that was withdrawn before, because no other attempt will follow. */
void verdict_flood(struct attempt *x, const struct error *e);
/* Root: floods a verdict on the last attempt that all nodes know of, unless that attempt is under way. An open
 * group is named by its first id, which all members know. */
void verdict_send_former(const struct job *j, const struct error *e);
/* Sends a verdict to this port because a node behind it objected to an attempt that is over. */
void verdict_answer(struct exchanges *exchanges, unsigned port, uint32_t handle,
                    const struct exchange_id *id, const struct error *e);
/* Passes a verdict on. If `left` is 0, it goes to the children in the tree. Otherwise it is flooded over `left`
 * hops, to all links except the port `except` (-1: to all). */
void verdict_pass_on(struct attempt *x, const struct error *e, uint32_t left, int except);
/* Floods a verdict on an attempt that this node does not know. A verdict is passed on once, and not if its hops
 * are used up or too many verdicts are remembered. */
void verdict_pass_unknown(struct exchanges *exchanges, unsigned port, const struct exchange_id *id,
                          const struct peer_verdict *message);
/* Whether links of the attempt are or were down here, so that its tree may be cut and verdicts must be flooded. */
bool verdict_is_cut(const struct attempt *x);
/* Whether this node has lately passed on a verdict on this id, which it does not know. */
bool verdict_is_remembered(const struct exchanges *exchanges, const struct exchange_id *id);
/* Sends all verdicts again to this port, because its link is up again and the other end may have missed them. */
void verdicts_repeat(struct exchanges *exchanges, unsigned port);
/* Returns the port towards the root: the parent in the attempt's tree, or the shortest way if that link was
 * down. -1: there is no way. */
int objection_port(const struct attempt *x);
/* Sends an objection towards the root through this port; sends nothing if the port is -1. `retry_may_help`: blocks
 * were damaged on their way, and may arrive undamaged in a retry. */
void objection_send(struct exchanges *exchanges, int port, uint32_t handle,
                    const struct exchange_id *id, uint32_t root, const struct error *e,
                    bool retry_may_help);
