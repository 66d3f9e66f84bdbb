/* Shares of the users of this host. Every bounded resource that clients can take is counted here, for the
 * user that takes it.
 *
 * The rule: after a user has taken more of a resource, at least 1/keeps of what the other users leave must still be
 * free. Exception: up to `least` (one slot, or the memory that one group needs) a user may take whatever is free. The
 * groups and the exchanges of a user count as two users of the memory budget, so that a user who keeps groups open can
 * still exchange.
 *
 * The guarantee: while k users hold something, at least capacity / keeps^k is free for a user who has nothing
 * (except what was taken as `least`). Proof by induction over k: consider the user who took last. The
 * holdings of the others have not grown since, so at least 1/keeps of what they leave is free. What they
 * leave is what would be free if that user held nothing, with k - 1 users. So the number of a user's
 * processes or requests does not matter, and a single user may take all but 1/keeps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

enum share {
    SHARE_CLIENTS,        /* connections to the control socket */
    SHARE_ASKERS,         /* connections of users without a slot, which may ask for the state
                           * only */
    SHARE_PROGRAMS,       /* connections to the socket of programs: groups */
    SHARE_PROGRAM_MEMORY, /* bytes that programs share with the daemon, or have requested */
    SHARE_EXCHANGES,      /* jobs of this node that have not ended */
    SHARE_STARTED,        /* jobs among them that have been started */
    SHARE_TRANSIT,        /* bytes of the memory budget that exchanges have reserved */
    SHARE_GROUPS,         /* bytes of the same budget that groups have reserved */
    SHARE_SCHEDULES,      /* schedules that are in use, or not complete */
    SHARE_COPIES,         /* bytes of memory for copies of trees */
};
#define SHARES (SHARE_COPIES + 1u)

struct shares;

/* Makes a set of shares, which the caller gives to shares_free(). Every resource has the
 * capacity 0 until it is set. Returns NULL without memory. */
struct shares *shares_new(void);
/* Frees the shares; NULL does nothing. */
void shares_free(struct shares *all);

/* Sets the capacity of a resource. Users keep what they hold. */
void shares_set_capacity(struct shares *all, enum share share, uint64_t capacity);

/* Sets what every user may have if it is free; the default is one slot, or no bytes. */
void shares_set_least(struct shares *all, enum share share, uint64_t least);

/* Takes `amount` for the user (a uid of this host, or of the node that asked). The caller gives it back with
 * shares_give(). Returns 0, or -1 with *e and nothing taken: ERROR_BUSY (the text says how much the user has
 * and may have, or that nothing is free) or ERROR_MEMORY. */
int shares_take(struct shares *all, enum share share, uint32_t user, uint64_t amount,
                struct error *e);
/* Gives back what was taken. */
void shares_give(struct shares *all, enum share share, uint32_t user, uint64_t amount);

/* Returns how much the user may hold now, including what it holds already. */
uint64_t shares_limit(const struct shares *all, enum share share, uint32_t user);
/* Return how much one user holds, how much all users hold together, and the capacity. */
uint64_t shares_of(const struct shares *all, enum share share, uint32_t user);
uint64_t shares_total(const struct shares *all, enum share share);
uint64_t shares_capacity(const struct shares *all, enum share share);

/* The name of a resource, "programs"; `status` prints it. */
const char *shares_name(enum share share);

/* Lists up to `most` users that hold some of a resource, in no order. Returns how many it has
 * listed. */
struct share_holder {
    uint32_t user;
    uint64_t held;
};
size_t shares_holders(const struct shares *all, enum share share, struct share_holder *list,
                      size_t most);
