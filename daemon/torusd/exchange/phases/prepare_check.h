/* Checks a root's prepare: whether it is valid, and whether this node can take part. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/record/exchange_record.h"
#include "daemon/torusd/exchange/record/id.h"
#include "proto/peer/peer_message.h"

/* The ids in a prepare: of its attempt, and of the first attempt of the same job. NO_ID stands for a text that
 * is not an id; `resumes` is also NO_ID in the first attempt. */
struct prepare_ids {
    struct exchange_id id, resumes;
};

/* Checks that a root can have sent this prepare to this node over this link. Returns 0 with *ids, or -1 with *e. */
int prepare_check(struct exchanges *exchanges, unsigned port, const struct peer_prepare *prepare,
                  const struct damage *damage, struct prepare_ids *ids, struct error *e);
/* Checks that this node can take part. Returns 0, or -1 with *e. */
int prepare_check_here(struct exchanges *exchanges, const struct peer_prepare *prepare,
                       const struct prepare_ids *ids, const struct spec *spec,
                       const struct damage *damage, struct error *e);
/* Whether the prepare restarts a group that has been open. */
bool prepare_is_restart(const struct peer_prepare *prepare);
