/* The names of a target. */
#pragma once

#include "daemon/torusd/files/target/target_record.h"

/* Writes the path of the target, with its final name, to `name`. Returns `name`. */
const char *target_full_name(const struct target *t, char name[2 * PATH_MAX]);

/* Fills *e with an error: the temporary name that is made from `name` has `length` bytes, which do not fit
 * into `size`. Returns -1. */
int target_name_too_long(const char *name, size_t length, size_t size, struct error *e);

/* Splits a path at its last slash, in place: `path` keeps the part before the slash. Returns the part behind
 * it, or NULL if there is no slash. */
char *target_cut_last(char *path);

/* Fills in the temporary name, which contains the exchange and the node. Returns 0, or -1 with *e: it is
 * too long. */
int target_set_temporary(struct target *t, const char *name, uint32_t rank, struct error *e);

/* Fills in all names of a target at `place`. Returns 0, or -1 with *e: one is too long. */
int target_set_names(struct target *t, const struct place *place, uint32_t rank, struct error *e);
