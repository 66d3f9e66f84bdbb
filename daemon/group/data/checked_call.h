/* What a program calls, checked and copied. */
#ifndef TORUSD_GROUP_DATA_CHECKED_CALL_H
#define TORUSD_GROUP_DATA_CHECKED_CALL_H

#include "daemon/group/data/members.h"
#include "daemon/group/data/operation.h"

struct checked {
    struct group_call call; /* refers to the program's memory */
    uint64_t *counts;       /* that its arrays point into */
    uint64_t largest;       /* bytes of the largest block; alltoallv: here */
    uint64_t total;         /* bytes at this node, in one direction at most */
};

/* A program's call, which may be anything. Returns 0 with *out, to be freed; or -1 with *e: it cannot be. */
int checked_init(struct checked *out, const struct group_call *call, const struct members *members,
                 struct error *e);
void checked_free(struct checked *c);

/* Equal at two members only if they call the same; the low four bits are the operation. `unchecked`: the group's.
 * `internal`: how many calls of the group's own have come before. When these are put in depends on what programs
 * call: after one of them has called something else, its calls may have the numbers of other calls, and must not be
 * taken for these. */
uint32_t checked_signature(const struct checked *c, uint32_t members, bool unchecked,
                           uint64_t internal);

#endif
