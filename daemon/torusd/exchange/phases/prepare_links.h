/* The links and nodes that an attempt avoids, as lists in the root's prepare. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/record/attempt.h"
#include "proto/peer/peer_message.h"

/* Fills prepare->without and prepare->missing; prepare_links_free() frees them. Returns 0, or -1 if there is no
 * memory, with nothing to free. */
int prepare_links_pack(const struct attempt *x, struct peer_prepare *prepare);
/* Frees the lists of prepare_links_pack(). */
void prepare_links_free(struct peer_prepare *prepare);
/* Reads the lists. Returns 0 with *d, which the caller frees; or -1 with *e (ERROR_PROTOCOL, ERROR_MEMORY) and
 * nothing to free. */
int prepare_links_unpack(const struct torus *t, const struct peer_prepare *prepare,
                         struct damage *d, struct error *e);
