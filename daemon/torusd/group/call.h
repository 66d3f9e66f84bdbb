/* One call at one member, and its states. call.c has the table of which state may follow which, and of
 * what holds in each.
 *
 *      made, when the members of its part agree -> QUEUED -> OPENING -> RUNNING -> COMPLETE -> freed, or KEPT
 *
 * When links go down, calls that are not over here are SUSPENDED. After the members have agreed, calls that are
 * over at all members are COMPLETE. All other calls are QUEUED again, also those that were KEPT. */
#pragma once

#include "daemon/torusd/engine/blocks.h"
#include "daemon/torusd/group/blocks.h"
#include "daemon/torusd/group/state.h"

/* A short allgather as a reduction. The blocks of all members, in order, are one vector that is combined on a
 * tree: each member contributes its own block and zeros, and OR combines them. */
struct allgather_reduction {
    struct source source;
    struct sink sink;
    struct blocks *blocks; /* LAYOUT_GATHER */
    uint64_t own, bytes;   /* in bytes: where this member's block begins; the size of the vector */
};

enum stage { STAGE_WAVE, STAGE_DATA };

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
    /* This member has its result; if the call is made again, other members need it. */
    CALL_OVER_HERE,
    CALL_OVER_EVERYWHERE,
};

/* The engines that carry a call out, and their state: set as they are opened, and ended as a whole. */
struct call_attempt {
    struct wave wave;
    uint64_t wave_result
        [2]; /* of an uneven exchange the largest block; then the level of a large call */
    unsigned
        level; /* of memory for its rounds (GROUP_ROUNDS_LAST); 0 until all members have told theirs */
    bool levelled; /* they have */
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
        uint64_t finished_by_all;
    } suspended; /* SUSPENDED: how far the call was */
    struct blocks blocks;
    struct call_attempt attempt;
};

/* Adds a new call at the end of the part's calls. Takes `what` over. Returns NULL if there is no memory; `what`
 * is freed then, too. */
struct call *call_add(struct part *p, struct checked_call *what, uint64_t name, bool internal);
/* Frees a call, and takes it out of its part's lists. */
void call_free(struct call *c);
/* Sets what a mark says about the call's data. */
void call_mark_data(const struct call *c, struct peer_group_call *mark);
/* Decides whether the call is large, and what it needs waves for, by the current limits of its part. */
void call_choose_size(struct call *c);
/* Changes a call's state; this is the only function that does. It moves the call between its part's lists, and
 * ends the attempt if the new state has none. A change that the table forbids is recorded for groups_check(). */
void call_enter(struct call *c, enum call_state state);
/* Returns the list of its part that the call is in. */
struct call **call_list(const struct call *c);
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

/* Checks the calls of a part after an event that has not failed its session. Returns 0, or -1 with *e. */
int calls_check(const struct part *p, struct error *e);

/* Checks that members make the same calls, by the numbers and signatures of calls. */

/* Returns the number of the first call that is not complete here. */
uint64_t calls_first(const struct part *p);
/* Finds the call that a mark names, if it was made here. Returns 0 with *call; 1 with *e if the call has ended
 * here without the data that arrives now, so members call differently; or -1 with *e if there can be no such
 * call. */
int calls_find(const struct part *p, const struct peer_group_call *mark, struct call **call,
               struct error *e);
/* Whether the member behind this port of the part has made a call that differs from ours; if so, *e says how they
 * differ. */
bool signatures_differ(const struct part *p, uint32_t our_signature, uint32_t their_signature,
                       unsigned port, struct error *e);
/* Applies signatures_differ() to a call made here and the mark of a frame, and compares what they say about the data. */
bool call_differs(struct call *c, const struct peer_group_call *mark, unsigned port,
                  struct error *e);
