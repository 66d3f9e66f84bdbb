/* What a target has and the manifest lacks: it is counted, or removed. */
#pragma once

#include "daemon/torusd/tree/removal.h"

/* Removes everything in the folders of the manifest that it does not name, by the rules of *r; counts in *r. Returns 0, or
 * -1 with *e. */
int extras_remove(const struct manifest *m, struct removal *r, struct error *e);
