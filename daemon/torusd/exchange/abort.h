/* How an attempt fails: the root decides for all nodes; any other node tells the root. */
#pragma once

#include "daemon/torusd/exchange/job.h"

/* Fails an attempt because this node cannot continue it. The root retries if a retry can help, and otherwise
 * fails the attempt on all nodes. Any other node sends the root a nack, and waits for its abort. Does
 * nothing if the attempt has ended or is decided. *e is copied. */
void attempt_fail(struct attempt *x, const struct error *e);
/* Fails an attempt because blocks were damaged on their way to this node. The root retries a few times, because
 * the blocks may arrive undamaged when they are sent again. */
void attempt_damaged(struct attempt *x, const struct error *e);
/* Fails a job: its attempt if it has one under way; otherwise the job ends, and all nodes that expect its next
 * attempt are told. Does nothing if the job has ended. */
void job_fail(struct job *j, const struct error *e);

/* --- retries: the root withdraws an attempt on all nodes, and its job starts another one --- */

/* Whether this node is the root and the attempt is still being prepared. Only then may the root withdraw it
 * because a node is busy. */
bool retry_may_withdraw(const struct attempt *x);
/* Notes at the root that a node has no memory for the group that is being opened. Returns whether this has lasted for
 * spec.memory_wait_ns. */
bool retry_lacks_memory_too_long(struct job *j);
/* Whether this node, the root, retries when a link goes down: the attempt can avoid links or waits for them,
 * and is not decided. */
bool retry_after_link_loss(const struct attempt *x);
/* Whether this node, the root, retries after damage: the attempt runs, and was not damaged too often. */
bool retry_after_damage(const struct attempt *x);

/* Withdraws the attempt because a node is busy; the job retries after a pause that grows each time. *busy is
 * copied. This and the next three functions are for the root. */
void retry_later(struct attempt *x, const struct error *busy);
/* Withdraws the attempt because a link went down; the next attempt avoids all links that are down by then. */
void retry_without_links(struct attempt *x, const struct error *fault);
/* Withdraws the attempt because links that it avoids are up again. */
void retry_links_restored(struct attempt *x);
/* Withdraws the attempt because data was damaged on its way. */
void retry_damaged(struct attempt *x, const struct error *damage);
/* Whether the next attempt could continue where this one is: an exchange that runs, and what has arrived is kept. */
bool retry_may_continue(const struct attempt *x);
/* Withdraws the attempt, because other rates of links call for another plan: an open group, between two repetitions, or
 * when retry_may_continue(). Repetitions that are complete are not repeated. */
void retry_rates_changed(struct attempt *x);

/* For any node but the root: ends the attempt here because its root has withdrawn it, for the reason *why. If
 * this node cannot continue an open group, its job keeps that error, and objects to the next attempt. */
void retry_withdrawn(struct attempt *x, const struct error *why);

/* Sets a random pause before the job's next attempt. Its mean doubles with each call, from 10 to 1,000 ms. */
void retry_pause(struct job *j);
/* Returns when the pause ends or the job times out, whichever is first, in nanoseconds of the router's clock. */
uint64_t retry_deadline(const struct job *j);

/* --- messages about attempts that fail: the root's abort, and another node's nack --- */

/* Root: tells all nodes that the attempt has failed or is withdrawn (ERROR_BUSY). The abort goes down the
 * tree, and is flooded if links are down. */
void abort_send(struct attempt *x, const struct error *e);
/* Sends an abort to this port because a node behind it objected to an attempt that is over. */
void abort_answer(struct exchanges *exchanges, unsigned port, uint32_t handle,
                  const struct exchange_id *id, const struct error *e);
/* Passes an abort on. If `left` is 0, it goes to the children in the tree. Otherwise it is flooded over `left`
 * hops, to all links except the port `except` (-1: to all). */
void abort_pass_on(struct attempt *x, const struct error *e, uint32_t left, int except);
/* Floods an abort on an attempt that this node does not know. An abort is passed on once, and not if its hops
 * are used up or too many aborts are remembered. */
void abort_pass_unknown(struct exchanges *exchanges, unsigned port, const struct exchange_id *id,
                        const struct peer_abort *message);
/* Whether links of the attempt are or were down here, so that its tree may be cut and aborts must be flooded. */
bool abort_is_cut(const struct attempt *x);
/* Whether this node has lately passed on an abort on this id, which it does not know. */
bool abort_is_remembered(const struct exchanges *exchanges, const struct exchange_id *id);
/* Sends all aborts again to this port, because its link is up again and the other end may have missed them. */
void aborts_repeat(struct exchanges *exchanges, unsigned port);
/* Returns the next hop towards the root: the parent in the attempt's tree, or that of the shortest path if that link was
 * down. -1: there is no path. */
int nack_port(const struct attempt *x);
/* Sends a nack towards the root through this port; sends nothing if the port is -1. `retry_may_help`: blocks
 * were damaged on their way, and may arrive undamaged in a retry. */
void nack_send(struct exchanges *exchanges, int port, uint32_t handle, const struct exchange_id *id,
               uint32_t root, const struct error *e, bool retry_may_help);

/* --- restarts: how a node finds the open group that its root restarts or fails --- */

/* Ends this node's job of a group that its root has failed. `first` is the id of the group's first attempt,
 * because this node may not know the latest one. Does nothing if there is no such job. */
void group_restart_failed(struct exchanges *exchanges, const struct exchange_id *first,
                          const struct error *why);
/* Returns the failed attempt of an open group whose root is this node and whose first attempt had this id, or
 * NULL. */
const struct attempt *group_restart_find_failed(const struct exchanges *exchanges,
                                                const struct exchange_id *first);
/* Finds the job of this node whose group, first opened as `first`, its root now restarts as `id`. The job may
 * be in any state, and this node need not have heard `go`. Returns NULL with *e if this node does not have the
 * group (ERROR_REFUSED), or has a newer attempt than `id` (ERROR_BUSY). */
struct job *group_restart_find(struct exchanges *exchanges, const struct exchange_id *first,
                               const struct exchange_id *id, struct error *e);
/* At a node that is no member of the group: ends its earlier attempts, because the root has restarted the group. */
void group_restart_passive(struct exchanges *exchanges, const struct exchange_id *first);

/* --- messages of other nodes (abort_messages.c) --- */

/* Handles a node's nack, which is for this node or on its way to the root. Returns 0, or -1 with *e if the
 * neighbour is to blame. */
int nack_heard(struct exchanges *exchanges, unsigned port, const struct peer_nack *message,
               struct error *e);
/* Handles the root's abort. Returns 0. */
int abort_heard(struct exchanges *exchanges, unsigned port, const struct peer_abort *message,
                struct error *e);
/* Repeats this node's nacks to the parent at this port, because the link to it is up again. */
void nacks_repeat(struct exchanges *exchanges, unsigned port);
