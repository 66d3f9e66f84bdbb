#include "daemon/lib/base/shares.h"

#include <inttypes.h>
#include <stdlib.h>

#include "daemon/lib/base/grow.h"

/* `keeps` is small for slots, because a reserve of slots costs a single user little. For memory it is
 * larger, because less memory makes a user's work slower. */
static const struct {
    const char *name, *what, *advice;
    unsigned keeps;
    uint64_t least;
} kinds[SHARES] = {
    [SHARE_CLIENTS] = {"connections", "connections to the control socket",
                       "close some, or wait until others close theirs", 2, 1},
    [SHARE_ASKERS] = {"askers", "connections that may only ask for the state", "try again", 2, 1},
    [SHARE_PROGRAMS] = {"programs", "places for groups of programs", "close some groups", 2, 1},
    [SHARE_PROGRAM_MEMORY] = {"program_memory_bytes",
                              "bytes of memory that programs can share with the daemon",
                              "free some, or allocate less", 8, 0},
    [SHARE_EXCHANGES] = {"exchanges", "exchanges that can wait or run here",
                         "wait until some have ended", 2, 1},
    [SHARE_STARTED] = {"running", "exchanges that can run here at once", "wait until one has ended",
                       2, 1},
    [SHARE_TRANSIT] = {"exchange_bytes", "bytes of the memory budget for exchanges",
                       "wait until some have ended, or raise memory in torusd.ini", 4, 0},
    [SHARE_GROUPS] = {"group_bytes", "bytes of the memory budget for groups",
                      "close some, or raise memory in torusd.ini", 4, 0},
    [SHARE_SCHEDULES] = {"schedules", "places for schedules", "wait until some are not used", 2, 1},
    [SHARE_COPIES] = {"copy_bytes", "bytes of memory for copies of trees",
                      "wait until some have ended", 2, 0},
};

struct resource {
    uint64_t capacity, least, total;
    struct share_holder *holder; /* users that hold some */
    size_t count, room;
};

struct shares {
    struct resource resource[SHARES];
};

struct shares *shares_new(void)
{
    struct shares *all = calloc(1, sizeof *all);

    for (unsigned i = 0; all != NULL && i < SHARES; i++)
        all->resource[i].least = kinds[i].least;
    return all;
}

void shares_free(struct shares *all)
{
    for (unsigned i = 0; all != NULL && i < SHARES; i++)
        free(all->resource[i].holder);
    free(all);
}

void shares_set_capacity(struct shares *all, enum share share, uint64_t capacity)
{
    all->resource[share].capacity = capacity;
}

void shares_set_least(struct shares *all, enum share share, uint64_t least)
{
    all->resource[share].least = least;
}

static struct share_holder *find_holder(const struct resource *r, uint32_t user)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->holder[i].user == user)
            return &r->holder[i];
    return NULL;
}

static struct share_holder *add_holder(struct resource *r, uint32_t user)
{
    if (GROW(r->holder, r->count, r->room) != 0)
        return NULL;
    r->holder[r->count] = (struct share_holder){user, 0};
    return &r->holder[r->count++];
}

uint64_t shares_of(const struct shares *all, enum share share, uint32_t user)
{
    const struct share_holder *holder = find_holder(&all->resource[share], user);

    return holder != NULL ? holder->held : 0;
}

uint64_t shares_total(const struct shares *all, enum share share)
{
    return all->resource[share].total;
}

uint64_t shares_capacity(const struct shares *all, enum share share)
{
    return all->resource[share].capacity;
}

/* Returns what the user holds of the same capacity under the other name: groups and exchanges share the
 * memory budget. */
static uint64_t held_under_other_name(const struct shares *all, enum share share)
{
    if (share == SHARE_TRANSIT)
        return all->resource[SHARE_GROUPS].total;
    return share == SHARE_GROUPS ? all->resource[SHARE_TRANSIT].total : 0;
}

uint64_t shares_limit(const struct shares *all, enum share share, uint32_t user)
{
    const struct resource *r = &all->resource[share];
    uint64_t others = r->total - shares_of(all, share, user) + held_under_other_name(all, share),
             left, kept;

    left = r->capacity > others ? r->capacity - others : 0;
    kept = left / kinds[share].keeps + (left % kinds[share].keeps != 0);
    if (left - kept >= r->least)
        return left - kept;
    return left < r->least ? left : r->least;
}

static int refuse_share(const struct shares *all, enum share share, uint32_t user, uint64_t amount,
                        struct error *e)
{
    const struct resource *r = &all->resource[share];
    uint64_t held = shares_of(all, share, user), limit = shares_limit(all, share, user);

    if (amount > 1)
        return error_set(e, ERROR_BUSY,
                         "user %" PRIu32 " has %" PRIu64 " of %" PRIu64 " %s, wants %" PRIu64
                         " more, but may have at most %" PRIu64
                         ", because some are reserved for other users: %s",
                         user, held, r->capacity, kinds[share].what, amount, limit,
                         kinds[share].advice);
    if (held == 0)
        return error_set(e, ERROR_BUSY, "%" PRIu64 " of %" PRIu64 " %s are taken: try again later",
                         r->total, r->capacity, kinds[share].what);
    return error_set(e, ERROR_BUSY,
                     "user %" PRIu32 " has %" PRIu64 " of %" PRIu64
                     " %s, and may not have more, because some are reserved for other users: %s",
                     user, held, r->capacity, kinds[share].what, kinds[share].advice);
}

int shares_take(struct shares *all, enum share share, uint32_t user, uint64_t amount,
                struct error *e)
{
    struct resource *r = &all->resource[share];
    uint64_t limit = shares_limit(all, share, user), held = shares_of(all, share, user);
    struct share_holder *holder;

    if (amount == 0)
        return 0;
    if (held > limit || amount > limit - held)
        return refuse_share(all, share, user, amount, e);
    holder = held > 0 ? find_holder(r, user) : add_holder(r, user);
    if (holder == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to count the resources of user %" PRIu32,
                         user);
    holder->held += amount;
    r->total += amount;
    return 0;
}

void shares_give(struct shares *all, enum share share, uint32_t user, uint64_t amount)
{
    struct resource *r = &all->resource[share];
    struct share_holder *holder = find_holder(r, user);

    if (amount == 0 || holder == NULL)
        return;
    holder->held -= amount;
    r->total -= amount;
    if (holder->held == 0)
        *holder = r->holder[--r->count];
}

const char *shares_name(enum share share)
{
    return kinds[share].name;
}

size_t shares_holders(const struct shares *all, enum share share, struct share_holder *list,
                      size_t most)
{
    const struct resource *r = &all->resource[share];
    size_t n = r->count < most ? r->count : most;

    for (size_t i = 0; i < n; i++)
        list[i] = r->holder[i];
    return n;
}
