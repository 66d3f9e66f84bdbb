/* The families of algorithms that there are, by name. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_FAMILIES_H
#define TORUSD_SCHEDULE_ALGORITHMS_FAMILIES_H

#include "daemon/schedule/algorithms/family.h"

/* Returns -1 with *e if the name is that of a member that is not possible on the torus; 0 for all
 * other names. Check what a peer or client names before you look it up, because members are kept for
 * ever (family_of_degree()). */
int family_check(const char *name, const struct torus *t, struct error *e);

/* The member with this name. NULL: no such name, or no memory. May be called from several threads. */
const struct algorithm *family_member(const char *name);

/* The family whose best member the name stands for, or NULL. */
const struct family *family_of_best(const char *name);

#endif
