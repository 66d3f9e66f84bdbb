/* Whether a root's prepare can be, and whether this node can take part in what it prepares. */
#ifndef TORUSD_EXCHANGE_PHASES_PREPARE_CHECK_H
#define TORUSD_EXCHANGE_PHASES_PREPARE_CHECK_H

#include "daemon/exchange/record/exchange_record.h"
#include "daemon/exchange/record/id.h"
#include "daemon/schedule/damage.h"
#include "proto/peer/peer_message.h"

/* What a prepare names its attempt, and the first attempt of the same job: NO_ID if it is the first itself, or if what
 * the prepare says is no id. */
struct prepare_ids {
    struct exchange_id id, resumes;
};

/* Whether it is a prepare that a root sends, to this node and over this link. Returns 0 with *ids, or -1 with *e. */
int prepare_check(struct exchanges *all, unsigned port, const struct peer_prepare *prepare,
                  const struct damage *damage, struct prepare_ids *ids, struct error *e);
/* Whether this node can take part. Returns 0, or -1 with *e. */
int prepare_check_here(struct exchanges *all, const struct peer_prepare *prepare,
                       const struct prepare_ids *ids, const struct spec *spec,
                       const struct damage *damage, struct error *e);
/* Whether it restarts a group that has been open. */
bool prepare_is_restart(const struct peer_prepare *prepare);

#endif
