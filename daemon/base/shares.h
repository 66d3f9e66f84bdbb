/* What the users of this daemon's host share, and how much of it each may take: whatever is bounded and can be
 * taken by a client is counted here by the user that asked for it.
 *
 * The rule, for each resource of a capacity: a user may take more as long as, of what all others leave, one
 * part in `keeps` stays free afterwards. Who has no more than `least` with it (one place; of the memory budget,
 * what one group needs) may take it if it is free at all. What a user's groups
 * hold of the memory budget and what its exchanges do are as if of two users: who keeps groups open can still
 * exchange.
 *
 * The guarantee: while k users hold something, at least capacity / keeps^k is free for a user who has nothing
 * (but for what was taken as `least`). Proof: look at the user who took last. What the others hold has not grown
 * since, so at least one part in `keeps` of what they leave is free; and what they leave is what would be free
 * without that user, with k - 1 users, to each of whom the same applies. So the number of a user's processes or
 * requests does not matter, and one user alone may use all but one part in `keeps`. */
#ifndef TORUSD_BASE_SHARES_H
#define TORUSD_BASE_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

enum share {
    SHARE_CLIENTS,        /* connections to the control socket */
    SHARE_ASKERS,         /* those of users without a place, who may ask for the state only */
    SHARE_PROGRAMS,       /* connections to the socket of programs: groups */
    SHARE_PROGRAM_MEMORY, /* bytes that programs share with the daemon, or have requested */
    SHARE_EXCHANGES,      /* exchanges that have been asked for here and have not ended, */
    SHARE_TURNS,          /* and those of them that have begun */
    SHARE_TRANSIT,        /* bytes of the memory budget that exchanges have reserved, */
    SHARE_GROUPS,         /* and groups: of the same budget, where both count */
    SHARE_SCHEDULES,      /* schedules that are in use, or not complete */
};
#define SHARES (SHARE_SCHEDULES + 1u)

struct shares;

/* Makes a set of shares. Every resource has the capacity 0 until it is set. Returns NULL without memory. */
struct shares *shares_new(void);
void shares_free(struct shares *all);

/* Sets how much there is of a resource. What is held already is not taken away. */
void shares_set_capacity(struct shares *all, enum share share, uint64_t capacity);

/* Sets what everybody may have if it is free; it is one place, or no bytes. */
void shares_set_least(struct shares *all, enum share share, uint64_t least);

/* Takes `amount` for the user (a uid of this host, or of the node that asked). Returns 0, or -1 with *e and
 * nothing taken: ERROR_BUSY, which says how much the user has and may have, or that nothing is free;
 * ERROR_MEMORY. */
int shares_take(struct shares *all, enum share share, uint32_t user, uint64_t amount,
                struct error *e);
/* Gives back what was taken. */
void shares_give(struct shares *all, enum share share, uint32_t user, uint64_t amount);

/* How much the user may hold now, with what it has. */
uint64_t shares_limit(const struct shares *all, enum share share, uint32_t user);
uint64_t shares_of(const struct shares *all, enum share share, uint32_t user);
uint64_t shares_total(const struct shares *all, enum share share);
uint64_t shares_capacity(const struct shares *all, enum share share);

/* "programs"; it is part of what status prints. */
const char *shares_name(enum share share);

/* Lists the users that hold some of it, at most `most` of them, in no order. Returns how many it has listed. */
struct share_holder {
    uint32_t user;
    uint64_t held;
};
size_t shares_holders(const struct shares *all, enum share share, struct share_holder *list,
                      size_t most);

#endif
