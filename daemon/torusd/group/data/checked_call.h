/* A program's call, checked and copied. */
#pragma once

#include "daemon/torusd/group/data/members.h"
#include "daemon/torusd/group/data/operation.h"

struct checked_call {
    struct group_call call; /* borrows the program's memory */
    uint64_t *counts;       /* memory of the call's arrays */
    uint64_t largest;       /* bytes of the largest block; alltoallv: of those at this member */
    uint64_t total;         /* bytes at this node in one direction, at most */
};

/* Checks and copies a program's call, which may contain anything. Returns 0 with *out, which the caller frees;
 * or -1 with *e if the call is invalid. */
int checked_init(struct checked_call *out, const struct group_call *call,
                 const struct members *members, struct error *e);
/* Frees what *c holds, and gives back its references to the program's memory. */
void checked_free(struct checked_call *c);

/* Returns a signature that is equal at two members only if they make the same call; its low four bits are the
 * operation. `unchecked`: whether the group was opened unchecked. `internal`: the number of internal calls that the
 * group has made before. It is part of the signature, because members that call differently may make an internal call under
 * the number of another call. */
uint32_t checked_signature(const struct checked_call *c, uint32_t members, bool unchecked,
                           uint64_t internal);
