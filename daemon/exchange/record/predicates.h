/* What is asked about attempts and jobs in many places, and follows from what they hold. */
#ifndef TORUSD_EXCHANGE_RECORD_PREDICATES_H
#define TORUSD_EXCHANGE_RECORD_PREDICATES_H

#include "daemon/exchange/record/job.h"

/* All nodes have entered the group: its root restarts it when a link goes down, also without the nodes that it has
 * left out. */
bool attempt_is_open_group(const struct attempt *x);
/* A barrier or group that not all have entered, as far as this node knows, and that it has not failed at. */
bool attempt_awaits_entry(const struct attempt *x);
/* All have entered it, as far as this node knows. */
bool attempt_has_gone(const struct attempt *x);
/* The job's group has been open here. */
bool job_has_been_open(const struct job *j);
/* The same at another node than its root, which has withdrawn it: this node waits for it to restart the group. */
bool job_awaits_restart(const struct job *j);

/* The id of its first attempt, which generated blocks are made of. */
const struct exchange_id *attempt_first_id(const struct attempt *x);
/* Whether what arrives in it need not come again in the next attempt. */
bool attempt_may_resume(const struct attempt *x);
/* Whether the root may begin another attempt after this one. */
bool attempt_may_be_followed(const struct attempt *x);
/* An error of a link, a busy node or damage: the root may withdraw the attempt and begin another one. */
bool error_is_for_now(const struct error *e);

/* Whether what is asked for needs no more than that the torus is connected. */
bool spec_avoids_links(const struct spec *spec);
/* Whether it waits for nodes and links that are down, instead of failing. A group that has been open does not: a node
 * that went down has lost it. */
bool attempt_waits_for_nodes(const struct attempt *x);
bool job_waits_for_nodes(const struct job *j); /* the same between attempts */
/* Whether its root retries when a link goes down: it avoids links, or waits for what is down. */
bool attempt_survives_link_loss(const struct attempt *x);
bool job_survives_link_loss(const struct job *j); /* the same between attempts */

/* How many sources and sinks of its attempts are still closing. */
unsigned job_closing(const struct job *j);
/* Its client can be told how it ended. */
bool job_is_tellable(const struct job *j);

#endif
