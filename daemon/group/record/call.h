/* One call at one member, and its states. call_state.c has the table of which state may follow which, and of
 * what holds in each.
 *
 *      made, when the members of its part agree -> QUEUED -> OPENING -> RUNNING -> COMPLETE -> freed, or KEPT
 *
 * When links go down, what is not over here is SUSPENDED. Once the members have agreed, what is over nowhere,
 * or not everywhere, is QUEUED again, also from KEPT; and what is over everywhere is COMPLETE. */
#ifndef TORUSD_GROUP_RECORD_CALL_H
#define TORUSD_GROUP_RECORD_CALL_H

#include "daemon/group/data/allgather_reduction.h"
#include "daemon/group/data/wave.h"
#include "daemon/group/record/part.h"

enum stage { STAGE_WAVE, STAGE_DATA };
#define STAGES (STAGE_DATA + 1u)
#define STAGES_A_CALL 4u       /* in GroupCall.number */
#define STAGE_AGREEMENT STAGES /* of no call: the GroupCall.number of an agreement */

enum call_state {
    CALL_SUSPENDED, /* waits for the members to agree whether it is made again */
    CALL_QUEUED,    /* waits for earlier calls */
    CALL_OPENING,   /* one of its engines, or the table that it spreads, is not there yet */
    CALL_RUNNING,
    CALL_COMPLETE, /* its program has its result */
    CALL_KEPT, /* complete; others may not be through with it, so what they need of it is kept */
    CALL_STATES
};

/* Where a call is over, as far as this member knows. */
enum call_over {
    CALL_OVER_NOWHERE,
    CALL_OVER_ELSEWHERE, /* some members have its result, and this one does not */
    CALL_OVER_HERE,      /* this member has its result; if it is made again, that is for others */
    CALL_OVER_EVERYWHERE,
};

/* What carries a call out: filled in as its engines are opened, and ended as a whole. */
struct call_attempt {
    struct wave wave;
    struct allgather_reduction allgather;
    struct planned *planned;
    struct engine *engine[STAGES];
    struct peer_group_call mark[STAGES];
    uint64_t rounds, admitted, waved;
    uint32_t window;
    uint64_t block_bytes, round_bytes; /* as engines see them */
};

/* When somebody is asked, or told, about a call that takes long; ROUTER_NEVER: not. */
struct call_watch {
    uint64_t deadline;
    uint64_t late_at;    /* when it is asked whom it waits for */
    uint64_t compare_at; /* when it has stood still for long, or again */
    bool overdue;        /* the deadline has passed; the new one is that of the census */
    bool all_called;     /* as the last census has found */
};

struct call {
    struct call *prev, *next; /* in the part's calls, or in those that are kept */
    struct part *part;
    struct checked what;
    uint64_t name;
    bool internal; /* the program knows nothing of it */
    enum call_state state;
    enum call_over over;
    uint64_t number;
    uint32_t signature;
    struct call_watch watch;
    bool waves; /* round 0: all have called; then one after each round, up to window rounds later */
    bool large; /* an uneven exchange: known once it is open */
    uint64_t
        skip; /* bytes of each block that all have from an earlier attempt: they are not moved again */
    struct {
        bool whole;        /* all its data had come; */
        uint64_t finished; /* bytes of each block with which this member was through, */
        uint64_t settled;  /* and all others, as far as it knew */
    } suspended;           /* SUSPENDED: how far it was */
    struct blocks blocks;
    struct call_attempt attempt;
};

/* A new call at the end of the part's. Takes over `what`. Returns NULL without memory (then `what` is
 * freed). */
struct call *call_add(struct part *p, struct checked *what, uint64_t name, bool internal);
void call_free(struct call *c);
/* Whether it is large, and what it needs waves for, by the limits of its part as they are now. */
void call_choose_size(struct call *c);

/* The only way from one state to another: moves the call between its part's lists, and ends the attempt where
 * the table says that there is none. What the table forbids is remembered for groups_check(). */
void call_enter(struct call *c, enum call_state state);
/* The list of its part that it is in. */
struct call **call_list(const struct call *c);
/* Frees its engines, and what they have. */
void call_end_attempt(struct call *c);
/* It has been started, and is not complete: its engines are there, or being opened. */
bool call_is_under_way(const struct call *c);
/* Its engines are still being opened. */
static inline bool call_is_opening(const struct call *c)
{
    return c->state == CALL_OPENING;
}
/* It waits for earlier calls. */
static inline bool call_is_queued(const struct call *c)
{
    return c->state == CALL_QUEUED;
}
/* Its program has its result, and it is not kept yet. */
static inline bool call_is_complete(const struct call *c)
{
    return c->state == CALL_COMPLETE;
}
/* It is made again because others have not got it, not this member's program. */
static inline bool call_is_for_others(const struct call *c)
{
    return c->over == CALL_OVER_HERE;
}
/* It is made again where some have the result of a reduction: they give it to the others, so that all have
 * the same bits. */
bool call_spreads(const struct call *c);
/* Whether the calls of a part can be so, after an event that has not failed its session. Returns 0, or -1
 * with *e. */
int calls_check(const struct part *p, struct error *e);

#endif
