/* Questions about attempts and jobs that many places ask, and that follow from their fields. */
#pragma once

#include "daemon/torusd/exchange/record/job.h"

/* Whether all nodes have entered the group. Its root then restarts the group when a link goes down, also
 * without the nodes that the group has left out. */
bool attempt_is_open_group(const struct attempt *x);
/* Whether the attempt is at a barrier or group that some nodes have not entered, as far as this node knows, and
 * that has not failed here. */
bool attempt_awaits_entry(const struct attempt *x);
/* Whether all nodes have entered, as far as this node knows. */
bool attempt_all_entered(const struct attempt *x);
/* Whether the job's group has been open here. */
bool job_has_been_open(const struct job *j);
/* Whether this node, which is not the root, waits for the root to restart the group after it withdrew an
 * attempt. */
bool job_awaits_restart(const struct job *j);

/* Returns the id of the job's first attempt, which determines the contents of generated blocks. */
const struct exchange_id *attempt_first_id(const struct attempt *x);
/* Whether blocks that arrive in this attempt need not be sent again in the next one. */
bool attempt_may_resume(const struct attempt *x);
/* Whether the root may start another attempt after this one. */
bool attempt_may_be_followed(const struct attempt *x);
/* Whether the error is a lost link, a busy node or damage, so that the root may retry. */
bool error_is_temporary(const struct error *e);

/* Whether what is asked for works on any connected torus. */
bool spec_avoids_links(const struct spec *spec);
/* Whether the attempt waits for nodes and links that are down, instead of failing. An open group does not wait:
 * a node that went down has lost it. */
bool attempt_waits_for_nodes(const struct attempt *x);
/* Like attempt_waits_for_nodes(), between attempts. */
bool job_waits_for_nodes(const struct job *j);
/* Whether the root retries when a link goes down: the attempt avoids links, or waits for what is down. */
bool attempt_survives_link_loss(const struct attempt *x);
/* Like attempt_survives_link_loss(), between attempts. */
bool job_survives_link_loss(const struct job *j);

/* Returns how many sources and sinks of the job's attempts are still being closed. */
unsigned job_closing(const struct job *j);
/* Whether the job's client can be told how the job ended. */
bool job_is_tellable(const struct job *j);
