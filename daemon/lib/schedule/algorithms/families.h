/* The families of algorithms (family.h), by name. */
#pragma once

#include "daemon/lib/schedule/algorithms/family.h"

/* Checks a name from a peer or client before it is looked up, because members are kept for ever
 * (family_of_degree()). Returns -1 with *e if it names a member that is not possible on the torus;
 * 0 for all other names. */
int family_check(const char *name, const struct torus *t, struct error *e);

/* Returns the member with this name, never freed, or NULL: no such name, or no memory.
 * Thread-safe. */
const struct algorithm *family_member(const char *name);

/* The family whose best member this name stands for ("cccube-best"), or NULL. */
const struct family *family_of_best(const char *name);
