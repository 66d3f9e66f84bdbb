/* Shared by the files of this folder only. Each calls only those below it:
 *
 *     groups      the groups of this node: what programs ask for, what they are told
 *     session     the engine of a group: frames in, frames out, failure
 *     agreement   which calls are made again, when it goes on around a link that went down
 *     compare     what stands still is compared with what the neighbours have called
 *     census      which nodes have not made a call that has not ended in time
 *     calls       when a call starts, what it waits for, when it is complete
 *     stages      the engines of a call
 *     decisions   which algorithm for which operation and size
 *     part        the whole torus, or a part of it, with an order of calls of its own
 *     parking     frames that have come before their call
 *     joined      the blocks of a short allgather as one vector
 *     blocks      a call's memory as source and sink
 *     check       whether a call can be; its signature
 */
#ifndef TORUSD_GROUP_INTERNAL_H
#define TORUSD_GROUP_INTERNAL_H

#include <utlist.h>

#include "daemon/engine/digest.h"
#include "daemon/engine/reducing.h"
#include "daemon/exchange/choose.h"
#include "daemon/group/digests.h"
#include "daemon/group/group.h"

/* Of the limits on memory; tests that play many groups take a part of them. */
#ifndef GROUP_SCALE
#define GROUP_SCALE 1u
#endif

#define GROUP_EAGER_MOST ((UINT64_C(256) << 10) / GROUP_SCALE)

/* Bytes that the calls of a part may use at a node. */
struct limits {
    uint64_t parked; /* frames that have come before their calls */
    uint64_t rounds; /* what a large call has under way */
    uint64_t eager; /* a call of so many bytes or less needs no leave of the others to start. Copies
                      * of six of them may be held (GROUP_COPIES) */
};
/* Of two that are under way, of two that others may not be through with, and of those of which nobody
 * knows it: of one more than fit into the size of one. */
#define GROUP_COPIES 6u

/* Bytes of a vector, or a block, on its way to a neighbour: with the digests of its frames. */
static inline uint64_t part_wire_bytes(uint64_t bytes)
{
    return bytes + (bytes / REDUCTION_LEAST_CHUNK + 1) * DIGEST_SIZE;
}

/* Of the part of a torus `whole` that is the torus `t`, damaged or not: all parts that there can be,
 * each with a large call under way, are within group_memory(whole). */
struct limits limits_of(const struct torus *whole, const struct torus *t, bool damaged);
uint64_t group_memory(const struct torus *whole);

/* Calls in a row that no member learns from whether the others have made them; before one more, or one with
 * which they would have more bytes than one that is eager may have, another one is put in that tells it. */
#define GROUP_UNPROVEN_MOST 8u
/* Calls that frames may belong to, from the first that is not over here. */
#define GROUP_WINDOW 32u

#define CALL_MASK 63u /* of its number in GroupCall, beside the stage */
enum stage { STAGE_WAVE, STAGE_DATA };
#define STAGES (STAGE_DATA + 1u)
#define STAGES_A_CALL 4u       /* in GroupCall.number */
#define STAGE_AGREEMENT STAGES /* of no call: the GroupCall.number of an agreement */

#define TABLE_BYTES 1024u /* an encoded struct decisions */

/* What no program calls: a call that is put in, see GROUP_UNPROVEN_MOST; and the last one. */
enum { GROUP_PROOF = GROUP_OPERATIONS, GROUP_LEAVE };

/* --- decisions.c: one table for all members, made by the first --- */

#define CHOICES_MOST 16u

/* For blocks of 2^octave bytes or more, digests included. Rising. */
struct choices {
    unsigned count;
    struct choice {
        uint32_t octave;
        const struct algorithm *algorithm;
        enum mode mode;
    } choice[CHOICES_MOST];
};

struct decisions {
    struct choices exchange;
    struct choices gather;
    struct choices broadcast; /* and, backwards, reduce */
    uint64_t long_reduction;  /* bytes of a vector from which it is combined on all trees */
    uint64_t joined_gather;   /* bytes up to which all blocks of an allgather are one vector */
};

struct part;

/* What is chosen for blocks of that size. */
const struct choice *decisions_find(const struct choices *list, uint64_t block_bytes);

/* Makes the table. Returns 1, 0 if schedules are being counted (the part's planner wakes), or -1. */
int decisions_make(struct decisions *d, struct planner *planner, const struct torus *t,
                   const struct predict_costs *costs, struct error *e);
void decisions_log(const struct decisions *d, const char *group);
/* Into TABLE_BYTES bytes; and back, checked for this torus. Return 0, or -1 with *e. */
int decisions_pack(const struct decisions *d, uint8_t *table, struct error *e);
int decisions_unpack(struct decisions *d, const uint8_t *table, const struct torus *t,
                     struct error *e);

/* --- part.c --- */

#define SIGNATURES 64u

/* Of one call, as it was when links went down. What has been completed anywhere has been called by all; */
enum over {
    OVER_NOWHERE,
    OVER_SOMEWHERE,  /* perhaps not everywhere: members that are through with it help the others */
    OVER_EVERYWHERE, /* all its data is where it belongs, whether its members know it or not */
};

/* What members say, element by element the largest, the first as ~number; the others by number. */
#define AGREEMENT_CALLS (CALL_MASK + 1u)

struct agreed {
    uint64_t first;                 /* call that is not over, of the member that is least far */
    uint64_t over[AGREEMENT_CALLS]; /* enum over; of this and the following ones */
    uint64_t
        settled[AGREEMENT_CALLS]; /* bytes of each block that are where they belong, everywhere */
};

struct agreement {
    struct engine *engine; /* NULL: none is under way */
    Peer__GroupCall mark;
    struct source source;
    struct sink sink;
    struct slab *slab; /* what this member says */
    struct agreed result;
};

struct part {
    struct part *next;
    struct session *session;
    uint32_t mask;             /* dimensions; 0: the whole */
    struct engine_part *place; /* NULL: the whole */
    const struct torus *torus;
    uint32_t rank;         /* this node's in it */
    uint32_t members, own; /* all nodes, and `rank`, unless some have been left out */
    uint32_t *node;        /* by member; NULL: they are the same */
    uint32_t *member;      /* by node, TORUS_NO_NODE: it has been left out; NULL as well */
    struct damage damage; /* links of it that are out of order, if `damaged`: then its calls take */
    bool damaged;         /* routes around these, whatever the table says */
    const struct detour *detour; /* NULL: not found yet */
    struct limits limits;
    int8_t port[TORUS_MAX_PORTS]; /* its own by the node's, or -1 */
    struct planner *planner;
    struct reduction_trees tree;  /* of waves and short vectors */
    struct reduction_trees trees; /* of long vectors, once there has been one */
    bool has_trees;
    struct decisions decisions;
    bool decided;
    bool agreed; /* on what is over; else its calls wait */
    struct agreement agreement;
    struct call *calls;             /* not over, by number */
    struct call *kept;              /* over here, perhaps not elsewhere; by number */
    uint64_t next_number;           /* of the next call made here */
    uint64_t everywhere;            /* of the last ones, by number, a bit: OVER_EVERYWHERE */
    uint32_t signature[SIGNATURES]; /* of the last ones, by number */
    uint64_t first_eager; /* limits.eager of a part that is whole: for the two below, which count
                                     * the same at all members whatever goes down */
    unsigned unproven;
    uint64_t unproven_bytes; /* as part_wire_bytes() */
    struct parked *parked,
        *parked_last;      /* in the order of arrival; a peer may send tens of thousands */
    uint64_t parked_bytes; /* of bodies; and what their heads take */
    uint64_t parked_heads;
};

/* The whole of a session (mask 0), or a part of it. NULL with *e: no memory. */
struct part *part_new(struct session *s, uint32_t mask, struct error *e);
void part_free(struct part *p);
/* What depends on the links that are out of order is given up, with all engines; and found again. The
 * calls stay. part_renew() returns 0, or -1 with *e. */
void part_suspend(struct part *p);
int part_renew(struct part *p, struct error *e);
struct part *part_find(const struct session *s, uint32_t mask);
/* The routes around what is out of order. Returns 1 with p->detour; 0 if they are being found (the
 * part's planner wakes); or -1 with *e. */
int part_detour(struct part *p, struct error *e);
/* The trees that long vectors are combined on. Returns 1 with p->trees; 0 or -1 as part_detour(). */
int part_trees(struct part *p, struct error *e);
/* Whether such a part can be opened: the members of each part of these dimensions reach each other
 * over links of their own. The same at all nodes. Returns 0, or -1 with *e. */
int part_may_be(const struct session *s, uint32_t mask, struct error *e);
/* Its members' ranks in the torus. */
uint32_t part_node(const struct part *p, uint32_t member);
/* The member at a node of the part's torus; and where it is there. */
static inline uint32_t part_member(const struct part *p, uint32_t rank)
{
    return p->member != NULL ? p->member[rank] : rank;
}
static inline uint32_t part_rank(const struct part *p, uint32_t member)
{
    return p->node != NULL ? p->node[member] : member;
}
/* "alltoall", of what is called and what is put in. */
const char *group_operation_name(uint32_t operation);

/* --- check.c --- */

/* What a program calls, checked and copied: arrays with it. */
struct checked {
    struct group_call call;
    uint64_t *counts; /* that its arrays point into */
    uint64_t largest; /* bytes of the largest block; alltoallv: here */
    uint64_t total;   /* bytes at this node, in one direction at most */
};
int check_call(struct checked *out, const struct group_call *call, uint32_t members, uint32_t own,
               struct error *e);
void checked_free(struct checked *c);
/* Equal at two members only if they call the same; the low four bits are the operation. */
uint32_t check_signature(const struct checked *c, uint32_t members, bool unchecked);
/* Whether a call without waves can be complete at a member while others have not made it. */
bool check_is_unproven(uint32_t operation);

/* --- blocks.c --- */

enum layout {
    LAYOUT_EXCHANGE, /* a block for each member, and one from each */
    LAYOUT_GATHER,   /* one block for all, and one from each that has one */
    LAYOUT_VECTOR,   /* one vector, an equal part for each owner: single tree: all of it */
};

struct blocks {
    struct source source;
    struct sink sink;
    const struct checked *what;
    enum layout layout;
    uint32_t members, rank;  /* of this member; all below is by member */
    const struct part *part; /* which knows the nodes that engines speak of */
    bool single;             /* a vector with one owner */
    bool digests;            /* blocks have them */
    uint32_t element;
    struct slab *sent;   /* what is read refers to it */
    const uint8_t *from; /* what is sent, */
    uint64_t *from_at;   /* and where each block begins there; NULL: see layout */
    uint8_t *digest;     /* in `sent`: by block, as they are sent */
    bool *digested;
    uint32_t senders; /* blocks that are sent */
    struct passing_digest *passing_out, *passing_in;
    uint8_t *to;
    uint64_t *got; /* bytes, by origin */
    uint8_t *got_digest;
    bool copied;                  /* what is sent is in `sent` */
    bool kept;                    /* what comes is discarded */
    uint64_t skip;                /* so many bytes at the beginning of each block are not moved */
    struct undo *undo;            /* what results have overwritten of a vector in place */
    bool ready;                   /* false: reads wait */
    uint64_t bytes_in, bytes_out; /* from and for others */
};

struct blocks_options {
    enum layout layout;
    bool digests;
    bool
        copy; /* what is sent is copied first, unless it is a vector: engines copy what they read */
    uint64_t skip; /* what does not come again of each block */
};
/* Borrows `what`. Returns 0, or -1 with *e and nothing to free. */
int blocks_init(struct blocks *b, const struct checked *what, const struct part *p,
                const struct blocks_options *options, struct error *e);
void blocks_free(struct blocks *b);
/* Its call is complete here and may be made again: what is sent then is in a copy, what comes is
 * discarded. Of a vector that all get it is the result. Returns 0, or -1 with *e. */
int blocks_keep(struct blocks *b, struct error *e);
/* Its call is made again, with what was sent. */
void blocks_again(struct blocks *b);
/* So many bytes of each block will not be needed again; all others of a vector in place that have been
 * overwritten are as they were. */
void blocks_settle(struct blocks *b, uint64_t bytes);
void blocks_restore(struct blocks *b);
/* It contributes nothing but zeros. Returns 0, or -1 with *e. */
int blocks_contribute_nothing(struct blocks *b, struct error *e);
/* Bytes that travel of a block of this size. */
static inline uint64_t blocks_wire(const struct blocks *b, uint64_t size)
{
    return size > 0 && b->digests ? size + DIGEST_SIZE : size;
}
/* Whether blocks_init() has been called, and blocks_free() has not. */
static inline bool blocks_are_there(const struct blocks *b)
{
    return b->what != NULL;
}
/* Whether every block has come whole. Returns 0, or -1 with *e. */
int blocks_check(const struct blocks *b, struct error *e);
/* Bytes that are to come of the block from a member, as they travel. */
uint64_t blocks_coming(const struct blocks *b, uint32_t member);

/* --- joined.c --- */

struct joined {
    struct source source;
    struct sink sink;
    struct blocks *blocks; /* LAYOUT_GATHER */
    uint64_t own, bytes; /* where this member's block begins in the vector, and how long that is */
};
/* Borrows the blocks. For engines that copy what they read (reducing.h). */
void joined_init(struct joined *j, struct blocks *b);

/* --- parking.c --- */

/* Keeps a frame for a call, or a stage of it, that is not there yet. Returns 0, or -1 with *e. */
int park(struct part *p, unsigned port, const Peer__Head *head, const struct extents *body,
         uint32_t body_length, struct error *e);
/* Gives the engine of a stage what has come for it. Returns 0, or -1 with *e. */
int unpark(struct part *p, uint32_t number, struct engine *engine, struct error *e);
void parked_free(struct part *p);
/* Whether the bytes are counted right and within their limit, and none is for an engine that is there. */
bool parked_agrees(const struct part *p);
/* The first frame that is marked otherwise than it would be by this call: its mark and port. */
const Peer__GroupCall *parked_differs(const struct part *p, uint32_t number, uint32_t signature,
                                      unsigned *port);

/* The mark of a frame for a call that has not been made here, or NULL. */
const Peer__GroupCall *parked_beyond(const struct part *p);

/* A call's states; call_state.c has the table of which may follow which, and of what holds in each.
 *
 *      made in a part whose members agree -> QUEUED -> OPENING -> RUNNING -> COMPLETE -> freed, or KEPT
 *
 * When links go down, what is not over here is SUSPENDED. Once the members have agreed, what is over nowhere,
 * or not everywhere, is QUEUED again, also from KEPT; and what is over everywhere is COMPLETE. */
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

struct wave {
    struct source source;
    struct sink sink;
    struct slab *slab; /* what this node contributes to the first round, then zeros */
    uint64_t result;   /* of the first */
};

/* What carries a call out: filled in as its engines are opened, and ended as a whole. */
struct call_attempt {
    struct wave wave;
    struct joined joined;
    struct planned *planned;
    struct engine *engine[STAGES];
    Peer__GroupCall mark[STAGES];
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
    struct call *prev, *next; /* in the part's calls, or in those that are kept: see call_enter() */
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

/* --- call_state.c --- */

/* The only way from one state to another: moves the call between its part's lists, and ends the attempt where
 * the table says that there is none. What the table forbids is remembered for groups_check(). */
void call_enter(struct call *c, enum call_state state);
/* It has been started, and is not complete: its engines are there, or being opened. */
bool call_is_under_way(const struct call *c);
/* Its engines are still being opened. */
bool call_is_opening(const struct call *c);
bool call_is_queued(const struct call *c);
/* Its program has its result, and it is not kept yet. */
bool call_is_complete(const struct call *c);
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

/* --- calls.c, stages.c --- */

/* A new call at the end of the part's. Takes over `what`. Returns NULL without memory (then `what` is
 * freed). */
struct call *call_add(struct part *p, struct checked *what, uint64_t name, bool internal);
void call_free(struct call *c);
/* Whether it is large, and what it needs waves for, by the limits of its part as they are now. */
void call_choose_size(struct call *c);
/* Goes on with all calls of a part as far as possible; fails the session if it must. */
void calls_advance(struct part *p);
/* What is kept. */
void calls_forget(struct part *p);
/* All engines of its calls are given up. */
void calls_suspend(struct part *p);
/* What is not over everywhere is made again. Returns 0, or -1 with *e: it cannot go on. */
int calls_resume(struct part *p, const struct agreed *agreed, struct error *e);
/* What this member knows of its calls. */
void calls_say(const struct part *p, struct agreed *agreed);
/* The call that a mark names, if it has been made here. Returns 0; 1 with *e if it has ended here
 * without what comes now: members call differently; or -1 with *e if no such call can be. */
int calls_find(const struct part *p, const Peer__GroupCall *mark, struct call **call,
               struct error *e);
/* Its time is over: asks who has not made it, and fails when nobody says. */
void calls_overdue(struct call *c, uint64_t now);
/* It takes long: asks whom it waits for, from time to time, until somebody knows. */
void calls_late(struct call *c, uint64_t now);
/* Whom a call waits for, in words. If it is overdue, it fails with that, unless all have called it: then it has a
 * little time left to end. Else the program of the node that has asked first is told. */
void calls_reported(struct part *p, uint32_t number, bool asked, bool all_called, const char *whom);
/* Whether a member has called otherwise: says so in *e. */
bool signatures_differ(const struct part *p, uint32_t own, uint32_t theirs, unsigned port,
                       struct error *e);
bool call_differs(const struct call *c, const Peer__GroupCall *mark, unsigned port,
                  struct error *e);

/* Opens what can be opened of its engines. Returns 1 if all are there; 0 if schedules are being planned, or the
 * first wave has to be heard; or -1 with *e. */
int stages_open(struct call *c, struct error *e);

/* --- compare.c --- */

/* It has run so long that others may have called differently. */
#define COMPARE_AFTER (250 * MILLISECONDS)
void compare_send(struct call *c, uint64_t now);
int compare_heard(struct session *s, unsigned port, const Peer__GroupCompare *message,
                  struct error *e);

/* --- agreement.c --- */

/* After links have gone down: on the whole, then on each part that has been opened somewhere. Fails the
 * session if there is no memory. */
void agreement_begin(struct part *p);
/* Goes on as far as possible. */
void agreement_advance(struct part *p);
void agreement_free(struct part *p);

/* --- census.c --- */

#define CENSUS_NAMED 8u
#define CENSUS_ALL_CALLED "all have called it"

/* One at a time. A question that comes meanwhile is dropped at the root; its asker asks again, or fails without
 * a list. */
struct census {
    bool running; /* `question` has come down to here, and this node has not answered it yet */
    Peer__GroupCensus question;
    uint32_t owed; /* child ports */
    uint32_t missing[CENSUS_NAMED], count, others;
    uint64_t deadline; /* of the root: who has not answered by then is not waited for */
};

/* A call has not ended in time here. calls_reported() gets the result, unless the call has ended. */
void census_ask(struct session *s, const struct call *c);
/* Messages; the functions return 0, or -1 with *e. */
int census_heard(struct session *s, unsigned port, const Peer__GroupCensus *question,
                 struct error *e);
int census_answered(struct session *s, unsigned port, const Peer__GroupAnswer *answer,
                    struct error *e);
int census_reported(struct session *s, const Peer__GroupReport *report, struct error *e);
void census_tick(struct session *s);

/* --- session.c --- */

struct session {
    struct engine base;
    struct session *next;
    struct groups *all;
    struct block_events events;
    char name[GROUP_NAME_SIZE];
    bool unchecked;
    struct planner *planner; /* of the whole torus */
    struct group *group;     /* the program here; NULL: it has left, or not opened it yet */
    struct part *part;       /* the whole comes first */
    struct tree_node tree;
    struct damage
        damage; /* links that were out of order when it was opened, if `damaged`: nothing is
                           * sent there, also when they are in order again */
    bool damaged;
    bool shrunk;               /* nodes were, too: they are not members */
    char id[EXCHANGE_ID_SIZE]; /* of the exchange's first attempt */
    struct census census;
    bool attached; /* to an exchange; else that is being prepared anew */
    bool begun;    /* all have opened it once */
    bool running, left;
    bool over; /* all have left it */
    bool due;  /* its exchange has to look at it */
};

/* All members have left it. */
void session_is_over(struct session *s);
/* Its exchange is over: it need not go on. */
void session_forget(void *context, const char *id);
struct engine *session_open(void *context, const struct session_setup *setup, struct error *e);
void session_fail(struct session *s, const struct error *e);
/* The program calls or leaves. Returns 0, or -1 with *e. */
int session_call(struct session *s, const struct group_call *call, uint64_t name, struct error *e);
bool session_has_calls(const struct session *s);
void session_leave(struct session *s);
void session_advance(struct session *s);
uint64_t session_deadline(const struct session *s);
void session_tick(struct session *s, uint64_t now);
/* For groups_check(). */
int session_check(const struct session *s, struct error *e);

/* --- groups.c --- */

struct groups {
    struct router *router;
    struct workers workers;
    struct exchanges *exchanges;
    struct group *groups;
    struct session *sessions;
    bool due;            /* somebody has to be told something */
    bool closing;        /* nothing goes on any more */
    struct error broken; /* the first change of a call's state that its table forbids: a bug */
};

/* What a program is told about later. */
void group_call_complete(struct group *g, const struct call *c);
void group_is_open(struct group *g);
/* Returns false if it is to be told of another one first. */
bool group_call_late(struct group *g, const struct call *c, const char *whom);
/* The member of this name here that has no session yet, which it gets. */
struct group *groups_join(struct groups *all, struct session *s);
/* The session ends. */
void groups_part_with(struct session *s);

#endif
