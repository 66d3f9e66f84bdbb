/* Finished outputs of this node whose outcome is not known, or cannot be carried out yet. */
#ifndef TORUSD_EXCHANGE_COMMIT_IN_DOUBT_H
#define TORUSD_EXCHANGE_COMMIT_IN_DOUBT_H

#include "daemon/exchange/record/attempt.h"

/* Takes x->doubt, so that no doubt is ever without memory. `decided`: that it was committed is known,
 * and only the output cannot be put in place yet. */
void in_doubt_add(struct attempt *x, bool decided);
/* The outcome is known: it is carried out. Returns false if there is no such doubt. */
bool in_doubt_resolve(struct exchanges *all, const struct exchange_id *id, bool committed);
/* How many there are about exchanges of this root. */
unsigned in_doubt_about(const struct exchanges *all, uint32_t root);
/* What was in doubt when this node stopped. Returns 0, or -1 with *e. */
int in_doubt_load(struct exchanges *all, struct error *e);
void in_doubt_free(struct exchanges *all);

#endif
