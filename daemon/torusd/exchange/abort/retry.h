/* Retries: the root withdraws an attempt on all nodes, and its job starts another attempt. */
#pragma once

#include "daemon/torusd/exchange/record/job.h"

/* Whether this node is the root and the attempt is still being prepared. Only then may the root withdraw it
 * because a node is busy. */
bool retry_may_withdraw(const struct attempt *x);
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

/* For any node but the root: ends the attempt here because its root has withdrawn it, for the reason *why. If
 * this node cannot continue an open group, its job keeps that error, and objects to the next attempt. */
void retry_withdrawn(struct attempt *x, const struct error *why);

/* Sets a random pause before the job's next attempt. Its mean doubles with each call, from 10 to 1,000 ms. */
void retry_pause(struct job *j);
/* Returns when the pause ends or the job times out, whichever is first, in nanoseconds of the router's clock. */
uint64_t retry_deadline(const struct job *j);
