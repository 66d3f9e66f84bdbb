/* The list of stagings in the state folder: copies/DIGEST, a file for each, which contains the path of the target. */
#pragma once

#include "daemon/torusd/tree/staging.h"

/* Lists a target. Returns 0, or -1 with *e. A copy lists its target before it makes the staging, in case it crashes, and
 * again when it has the staging: another copy may have removed its own staging, and the entry, meanwhile. The entry is
 * durable after listing_sync(), which is called before a copy becomes complete: for interrupted copies, two syncs at the
 * begin of each copy would cost more than they are worth. */
int listing_add(const char *state_folder, const char *path, struct error *e);
int listing_sync(const char *state_folder, const char *path, struct error *e);
/* Removes a target, which has been found, from the list, unless another copy has made a new staging meanwhile. A failure is
 * logged; the next start finds the entry, and no staging. */
void listing_remove(const char *state_folder, const struct staging *s);
/* Calls each() with every target in the list. Returns 0, or -1 with *e: the list could not be read. */
int listing_each(const char *state_folder, void (*each)(void *context, const char *path),
                 void *context, struct error *e);
