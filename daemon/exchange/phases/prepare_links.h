/* Links and nodes that an attempt avoids, as its root's prepare lists them. */
#ifndef TORUSD_EXCHANGE_PHASES_PREPARE_LINKS_H
#define TORUSD_EXCHANGE_PHASES_PREPARE_LINKS_H

#include "daemon/exchange/record/attempt.h"
#include "daemon/schedule/damage.h"
#include "proto/peer/peer_message.h"

/* Fills prepare->without and ->missing, for prepare_links_free(). Returns 0, or -1 without memory and
 * with nothing to free. */
int prepare_links_pack(const struct attempt *x, struct peer_prepare *prepare);
void prepare_links_free(struct peer_prepare *prepare);
/* Returns 0 with *d, or -1 with *e (ERROR_PROTOCOL, no memory) and nothing to free. */
int prepare_links_unpack(const struct torus *t, const struct peer_prepare *prepare,
                         struct damage *d, struct error *e);

#endif
