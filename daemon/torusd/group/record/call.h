/* One call at one member, and its states. call_state.c has the table of which state may follow which, and of
 * what holds in each.
 *
 *      made, when the members of its part agree -> QUEUED -> OPENING -> RUNNING -> COMPLETE -> freed, or KEPT
 *
 * When links go down, calls that are not over here are SUSPENDED. After the members have agreed, calls that are
 * over at all members are COMPLETE. All other calls are QUEUED again, also those that were KEPT. */
#pragma once

#include "daemon/torusd/group/data/allgather_reduction.h"
#include "daemon/torusd/group/data/wave.h"
#include "daemon/torusd/group/record/part.h"

enum stage { STAGE_WAVE, STAGE_DATA };
#define DATA_KIND_MINOR 3u /* the minor version of the peer protocol that has added kinds of data */
#define STAGES (STAGE_DATA + 1u)
#define STAGES_A_CALL 4u       /* how many stages GroupCall.number distinguishes for a call */
#define STAGE_AGREEMENT STAGES /* of no call: the GroupCall.number of an agreement */

enum call_state {
    CALL_SUSPENDED, /* waits until the members have agreed whether it is made again */
    CALL_QUEUED,    /* waits for earlier calls */
    CALL_OPENING,   /* one of its engines, or the table that it spreads, is not ready */
    CALL_RUNNING,
    CALL_COMPLETE, /* its program has its result */
    CALL_KEPT,     /* complete, but other members may still need its data, so that is kept */
    CALL_STATES
};

/* Where a call is over, as far as this member knows. */
enum call_over {
    CALL_OVER_NOWHERE,
    CALL_OVER_ELSEWHERE, /* some members have its result, but not this one */
    /* This member has its result; if the call is made again, that is for other members. */
    CALL_OVER_HERE,
    CALL_OVER_EVERYWHERE,
};

/* The engines that carry a call out, and their state: set as they are opened, and ended as a whole. */
struct call_attempt {
    struct wave wave;
    struct allgather_reduction allgather;
    struct planned *planned;
    struct engine *engine[STAGES];
    struct peer_group_call mark[STAGES];
    uint64_t rounds, admitted, waved;
    uint32_t window;
    uint64_t block_bytes, round_bytes; /* bytes, as engines count them */
};

/* When to ask or tell about a call that is late, as router_now(); ROUTER_NEVER: not at all. */
struct call_watch {
    uint64_t deadline;
    uint64_t late_at; /* when to ask which members it waits for */
    /* When to compare it with the neighbours' calls, because it makes no progress. */
    uint64_t compare_at;
    bool overdue;    /* the deadline has passed; `deadline` is now that of the census */
    bool all_called; /* all members have made it, as the last census found */
};

struct call {
    struct call *prev, *next; /* in the part's calls, or in its kept calls */
    struct part *part;
    struct checked_call what;
    uint64_t name;
    bool internal; /* made by the group; the program does not know of it */
    enum call_state state;
    enum call_over over;
    uint64_t number;
    uint32_t signature;
    /* The kind of the data, as member `data_member` has it: this member, if its program has said so, or else the first
     * other member whose data arrived. `compares_data`, which is known from the beginning: all nodes compare the
     * kinds. */
    struct data_kind data;
    uint32_t data_member;
    bool compares_data;
    struct call_watch watch;
    /* Round 0: all members have called; then one after each round, up to `window` rounds later. */
    bool waves;
    bool large; /* of an uneven exchange: known only after its first wave */
    /* Bytes of each block that all members have from an earlier attempt; they are not moved again. */
    uint64_t skip;
    struct {
        bool whole;        /* all its data had arrived */
        uint64_t finished; /* bytes of each block that this member had finished */
        /* Bytes of each block that all members had finished, as far as this one knew. */
        uint64_t settled;
    } suspended; /* SUSPENDED: how far the call was */
    struct blocks blocks;
    struct call_attempt attempt;
};

/* Adds a new call at the end of the part's calls. Takes `what` over. Returns NULL if there is no memory; `what`
 * is freed then, too. */
struct call *call_add(struct part *p, struct checked_call *what, uint64_t name, bool internal);
/* Frees a call, and takes it out of its part's lists. */
void call_free(struct call *c);
/* Stores what is known of the call's data, in the call and in what it sends from now on. */
void call_set_data(struct call *c, const struct data_kind *data, uint32_t member);
/* Sets what a mark says of the call's data. */
void call_mark_data(const struct call *c, struct peer_group_call *mark);
/* Decides whether the call is large, and what it needs waves for, by the current limits of its part. */
void call_choose_size(struct call *c);

/* Changes a call's state; this is the only function that does. It moves the call between its part's lists, and
 * ends the attempt if the new state has none. A change that the table forbids is recorded for groups_check(). */
void call_enter(struct call *c, enum call_state state);
/* Returns the list of its part that the call is in. */
struct call **call_list(const struct call *c);
/* Frees the call's engines and what they use. */
void call_end_attempt(struct call *c);
/* Whether the call was started and is not complete: its engines are there, or being opened. */
bool call_is_under_way(const struct call *c);
/* Whether its engines are still being opened. */
static inline bool call_is_opening(const struct call *c)
{
    return c->state == CALL_OPENING;
}
/* Whether it waits for earlier calls. */
static inline bool call_is_queued(const struct call *c)
{
    return c->state == CALL_QUEUED;
}
/* Whether its program has its result, and the call is not kept yet. */
static inline bool call_is_complete(const struct call *c)
{
    return c->state == CALL_COMPLETE;
}
/* Whether it is made again for other members only, not for this member's program. */
static inline bool call_is_for_others(const struct call *c)
{
    return c->over == CALL_OVER_HERE;
}
/* Whether it is a reduction that is made again although some members have its result: they send it to the
 * others, so that all have the same bits. */
bool call_spreads_result(const struct call *c);
/* Whether it combines data: a reduction, or the call that opens a part. */
static inline bool call_combines(const struct call *c)
{
    const uint32_t operation = c->what.call.operation;

    return operation == GROUP_ALLREDUCE || operation == GROUP_REDUCE_SCATTER ||
           operation == GROUP_REDUCE || operation == GROUP_PART;
}
/* Checks the calls of a part after an event that has not failed its session. Returns 0, or -1 with *e. */
int calls_check(const struct part *p, struct error *e);
