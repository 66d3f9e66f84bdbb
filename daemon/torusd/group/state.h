/* What a node knows of its groups, their sessions, and the parts of each session. */
#pragma once

#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/engine/reducing.h"
#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/exchange/exchange_types.h"
#include "daemon/torusd/group/algorithm_table.h"
#include "daemon/torusd/group/group.h"
#include "daemon/torusd/group/operations/operations.h"

/* The groups of this node, and events that groups_tick() still has to tell their programs. */

struct call;

struct session;

/* What the programs of this node have done in groups since the daemon started. */
struct groups_totals {
    uint64_t calls, calls_done, bytes_sent, bytes_received;
};

struct completion {
    uint64_t name;
    uint32_t
        from; /* of a message from any member: who has sent it; GROUP_ANY_MEMBER: another call */
};

struct group {
    struct group *next;
    struct groups *groups;
    struct group_client client;
    char name[GROUP_NAME_SIZE];
    char *listed; /* as spec.members; NULL: all nodes are members, or may be */
    uint64_t process;
    uint32_t user;
    bool unchecked, shrinks, waits, traced;
    uint64_t deadline; /* for opening the group, as router_now() */
    uint64_t memory_wait_ns;
    /* Number of members; from when the group is open until its program is told of the end. */
    uint32_t members;
    bool *gone;           /* by node: whether it is not a member; NULL: all nodes are members */
    bool retry_due;       /* the opening must be tried again */
    struct job *exchange; /* NULL while the job is being started */
    /* NULL: some members have not opened the group yet, or it has failed. */
    struct session *session;
    bool open, open_due; /* open_due: its program must be told that it is open */
    bool late_due;       /* its program must be told which members a call waits for */
    uint64_t late;
    char late_text[200];
    struct completion *completed; /* complete calls that its program must be told of */
    size_t completions, room;
    uint64_t calls, calls_done, bytes_sent, bytes_received;
    struct group_carrier carried;
};

struct groups {
    struct groups_totals totals;
    struct router *router;
    struct workers workers;
    struct exchanges *exchanges;
    struct group *groups;
    struct session *sessions;
    bool due;            /* a program must be told something */
    bool closing;        /* groups_free() is under way */
    struct error broken; /* the first change of a call's state that the table forbids: a bug */
};

/* Notes that all members have opened the group; its program is told later. */
void group_is_open(struct group *g);
/* Notes that a call is complete; its program is told later. If there is no memory for that, the session fails. */
void group_call_complete(struct group *g, const struct call *c);
/* The same for a message, with its bytes. */
void group_message_complete(struct group *g, const struct completion *done, uint64_t bytes_sent,
                            uint64_t bytes_received);
/* Notes that a call waits for other members, "node 3 has not called it"; its program is told later. Returns
 * false if the program must be told of another late call first. */
bool group_call_late(struct group *g, const struct call *c, const char *whom);
/* Returns this node's group of this name that has no session yet, and gives it this session; or NULL. */
struct group *groups_join(struct groups *groups, struct session *s);
/* Detaches a session that ends from its group. */
void groups_leave(struct session *s);

/* A session: the engine of a group that is open, or is being opened, at this node. */

struct part;

#define CENSUS_NAMED 8u

/* The census under way: which nodes have not made a call (late.c). There is only one at a time. The root
 * drops a question that arrives meanwhile; its node asks again, or fails its call without a list. */
struct census {
    bool running; /* `question` has arrived here, and this node has not answered it yet */
    struct peer_group_census question;
    uint32_t awaited; /* ports of children that have not answered */
    uint32_t missing[CENSUS_NAMED], count, others;
    uint64_t deadline; /* root: until when it waits for answers, as router_now() */
};

struct relay;

struct session {
    struct engine base;
    struct session *next;
    struct groups *groups;
    struct block_events events;
    struct session_memory memory;
    char name[GROUP_NAME_SIZE];
    bool *is_member;     /* by node; NULL: all nodes are members, or may be (`shrunk`) */
    bool passive;        /* this node is not a member, has no part, and only passes data on */
    struct relay *relay; /* NULL: all nodes are members (relay.h) */
    bool unchecked;
    bool grows;              /* as spec.grows: its parts reserve memory when they need it */
    struct planner *planner; /* for the whole torus */
    /* The program here; NULL: it has left, or has not opened the group yet. */
    struct group *group;
    struct part *part; /* list of parts; the whole comes first */
    struct tree_node tree;
    /* Links that were down when the session was opened, if `damaged`, and the rates of the others. The session sends
     * nothing over the former, even when they are up again. */
    struct damage damage;
    bool damaged;
    bool shrunk;               /* some nodes were down, too: they are not members */
    char id[EXCHANGE_ID_SIZE]; /* id of the exchange's first attempt */
    struct census census;
    struct messages *messages; /* between two members (messages.c); NULL: there were none */
    int8_t *
        towards; /* by node: this node's port on the path of messages, or -1; NULL: not found yet */
    bool attached; /* an attempt of its exchange uses it */
    bool begun;    /* all members have opened it once */
    bool running, left;
    bool over; /* all members have left it */
    bool due;  /* its exchange must check it */
};

/* Notes that the session's exchange must check it, in the next groups_tick(). */
void session_is_due(struct session *s);
/* Fails the session at all members; only the first error counts. */
void session_fail(struct session *s, const struct error *e);
/* Notes that all members have left the session. */
void session_is_over(struct session *s);

/* Limits on what a group may have under way. */

/* Divides the limits on memory; tests that run many groups set it. */
#ifndef GROUP_SCALE
#define GROUP_SCALE 1u
#endif

/* Bytes of messages between two members that may be on their way through a node. */
#define GROUP_MESSAGES_MOST ((UINT64_C(2) << 20) / GROUP_SCALE)
#define GROUP_CALLS_MOST 64u /* that a program may have under way (proto/program.h) */

#define GROUP_EAGER_MOST ((UINT64_C(256) << 10) / GROUP_SCALE)

/* Bytes that the calls of a part may use at a node. */
struct limits {
    uint64_t early;  /* early frames */
    uint64_t rounds; /* data of a large call that is under way, at level 0 */
    /* A call of at most this size starts without waiting for other members; up to GROUP_COPIES copies of such
     * calls are held. */
    uint64_t eager;
};

/* Copies of eager calls that may be held: of two calls under way, of two that other members may not have
 * finished, and of calls without a proof (as many as fit into the size of one eager call, and one more). */
#define GROUP_COPIES 6u
/* Most calls in a row from which members do not learn whether the others have made them. Before one more such
 * call, or one that would bring their bytes above those of an eager call, the group inserts a call that proves
 * it. */
#define GROUP_UNPROVEN_MOST 8u
/* How many calls frames may belong to, counted from the first call that is not over here. */
#define GROUP_WINDOW 32u

/* Returns the bytes of a vector or block on its way to a neighbour, including the digests of its frames. */
static inline uint64_t limits_wire_bytes(uint64_t bytes)
{
    return bytes + (bytes / REDUCTION_LEAST_CHUNK + 1) * DIGEST_SIZE;
}

/* How much of limits.rounds a call has: all at level 0, and at each other level half of the one before. A group that grows
 * has the last one for each of its parts, and reserves more while large calls are under way. */
#define GROUP_ROUNDS_LAST 5u

/* Returns the limits of the part `t` of a torus `whole`; `damaged`: links or nodes are down. All possible parts, each with
 * a large call under way, fit into group_memory(whole). NULL: `t` is the network of some nodes, and the call fits into
 * group_some_memory(). */
struct limits limits_of(const struct torus *whole, const struct torus *t, bool damaged);
/* Returns the bytes that a group may use at a node. */
uint64_t group_memory(const struct torus *whole);
/* The same for a group that grows and whose parts have not reserved more. */
uint64_t group_first_memory(const struct torus *whole);
/* Returns the bytes that a part of a group that grows may use for the rounds of its large calls at a level. */
uint64_t part_rounds_memory(const struct part *p, unsigned level);
/* Returns the bytes that a part needs beside its rounds, but the whole, which has them. */
uint64_t part_calls_memory(const struct part *p);
/* The same in a group of some nodes. */
uint64_t group_some_memory(void);
/* Returns the bytes that a node which is no member of a group may hold for it on their way. */
uint64_t group_passing_memory(void);
/* Returns how many blocks count for the rounds of a large call, if a member has `blocks` at the same time, and at most
 * `crossing` blocks cross a channel in a round: nodes that are no members have less memory. */
uint64_t part_blocks(const struct part *p, uint64_t blocks, uint64_t crossing);

/* The whole torus of a group, or a part of it that this node is in, as the engines of its calls see it. Each
 * part numbers its calls separately. In a group of some nodes, the whole is the network of its members. */

#define SIGNATURES 64u
/* The bits of a call's number in GroupCall.number; the others are the stage. */
#define CALL_MASK 63u

/* The source and sink of waves. Each round calculates, number by number, the maximum of vectors of all members. The
 * numbers mean something in the first rounds only; in the others they are zero, and only their arrival counts. */
struct wave {
    struct source source;
    struct sink sink;
    struct slab
        *slab;      /* what this member contributes: its numbers in the first rounds, then zeros */
    uint32_t bytes; /* of a round */
    uint32_t told;  /* of the rounds in which the numbers mean something */
    void *result;   /* their maxima */
};

/* What is known about a call when links have gone down. If it is complete at one member, all members have made it. */
enum over {
    OVER_NOWHERE,
    OVER_SOMEWHERE,  /* perhaps not at all members; members that have finished it help the others */
    OVER_EVERYWHERE, /* all its data has arrived at all members, even if they do not know that */
};

/* What members say about their calls. The result is the largest value of each element; `first` is sent as ~number.
 * Arrays are indexed by call number. */
#define AGREEMENT_CALLS (CALL_MASK + 1u)

struct agreed {
    /* The first call that is not over, at the member that is furthest behind. */
    uint64_t first;
    uint64_t over[AGREEMENT_CALLS]; /* enum over, of this and the following calls */
    /* Bytes of each block that have arrived at all members. */
    uint64_t finished_by_all[AGREEMENT_CALLS];
};

/* An agreement under way; see restart.h. */
struct agreement {
    struct engine *engine; /* NULL: no agreement is under way */
    struct peer_group_call mark;
    struct wave wave; /* of what this member says */
    struct agreed result;
};

struct part {
    struct part *next;
    struct session *session;
    uint32_t mask;             /* dimensions of the part; 0: the whole */
    struct engine_part *place; /* NULL: the whole */
    const struct torus *torus;
    uint32_t rank; /* this node's rank in the part */
    struct members members;
    struct damage
        damage; /* links of the part that are down, and rates of the others, if `finds_routes` */
    /* Routes are found for the links that are up, whatever the table says: if links are down or slower than others,
     * and in networks with other graphs than rings and lines. */
    bool finds_routes;
    const struct detour *detour;    /* NULL: not found yet */
    const struct detour *both_ways; /* the same for reductions; NULL: not found yet */
    struct limits limits;
    /* Of a group that grows: the level of the memory for rounds that is reserved here; whether memory for the eager calls
     * of a part that is not the whole is reserved (`has_memory`), or there was none here (`lacks`), or none at some
     * member, so that the part has no eager calls with data (`poor`). */
    unsigned level;
    bool has_memory, lacks, poor;
    /* By port of the node: port of the part, or -1. In a group of some nodes: any of its ports there (part_port()). */
    int8_t port[TORUS_MAX_PORTS];
    struct planner *planner;
    struct reduction_trees tree;  /* for waves and short vectors */
    struct reduction_trees trees; /* for long vectors, once there has been one */
    bool has_trees;
    struct algorithm_table table;
    bool has_table;
    bool agreed; /* the members agree which calls are over; otherwise calls are suspended */
    struct agreement agreement;
    struct call *calls; /* calls that are not over, by number */
    /* Calls that are over here, but perhaps not at other members, by number. */
    struct call *kept;
    uint64_t next_number;    /* number of the next call made here */
    uint64_t internal_calls; /* internal calls made here so far */
    uint64_t everywhere;     /* OVER_EVERYWHERE, a bit for each of the latest calls, by number */
    uint32_t signature[SIGNATURES]; /* of the latest calls, by number */
    /* limits.eager of the undamaged part, so that the two fields below are the same at all members whatever
     * goes down. */
    uint64_t undamaged_eager;
    unsigned unproven;
    uint64_t unproven_bytes; /* as limits_wire_bytes() counts them */
    struct early_frame *early,
        *early_last;      /* in the order of arrival; a peer may send tens of thousands */
    uint64_t early_bytes; /* bytes of the bodies; early_heads: bytes that their heads use */
    uint64_t early_heads;
};

/* Returns the part of these dimensions (0: the whole), or NULL if it was not opened here. */
struct part *part_find(const struct session *s, uint32_t mask);
/* Finds routes that avoid what is down. Returns 1 with p->detour; 0 while they are being found (the part's
 * planner wakes); or -1 with *e. */
int part_detour(struct part *p, struct error *e);
/* Finds routes for reductions, which go up and down the same trees: each link counts with the lower of its two rates.
 * Returns 1 with p->both_ways; 0 while they are being found; or -1 with *e. */
int part_detour_both_ways(struct part *p, struct error *e);
/* Finds the trees for long vectors. Returns 1 with p->trees; 0 while they are being found; or -1 with *e. */
int part_trees(struct part *p, struct error *e);
/* Returns what the engines of a part have in common. */
struct engine_setup part_engine_setup(const struct part *p, const struct peer_group_call *mark,
                                      struct source *source, struct sink *sink);
/* Sets *w up, and opens its engine, on the tree of the part: this member contributes w->bytes at `numbers`, which are
 * uint64_t, in each of the first rounds, w->told bytes in all. Borrows `mark` and w->result. The caller sets these three
 * before, and frees *w, also after an error. Returns NULL with *e if there is no memory. */
struct engine *wave_open(struct wave *w, const struct part *p, const struct peer_group_call *mark,
                         const void *numbers, uint32_t window, struct error *e);
/* Sets the number that this member contributes to a round that it has not admitted, one of the first. */
void wave_set(struct wave *w, unsigned round, uint64_t number);
/* Frees a wave after its engine; *w may be all zero instead. */
void wave_free(struct wave *w);
/* Returns the part's port of a frame that has arrived through this port of the node; -1: it has none there. `channel`: of
 * the frame's mark. */
int part_port(const struct part *p, unsigned port, uint32_t channel);
/* Sets p->limits, for links that are up or down as p->finds_routes says. */
void part_set_limits(struct part *p);
/* Returns limits.eager of the undamaged part. */
uint64_t part_undamaged_eager(const struct part *p);
/* Reserves memory for the eager calls of a part, if the group grows and that was not tried before: sets p->has_memory or
 * p->lacks. */
void part_take_memory(struct part *p);
/* Gives that memory back, because some member lacks it, and sets p->poor. */
void part_give_memory(struct part *p);
/* Reserves as much as there is for the rounds of a large call. Never waits. */
void part_take_rounds(struct part *p);
/* Gives it back. */
void part_give_rounds(struct part *p);
/* Tells an engine of the part which links its session has lost. */
void part_tell_lost(const struct part *p, struct engine *engine);

/* Which nodes and links of the whole torus a part has. */

/* Sets p->torus, p->rank and p->port, in p->place, of a part whose mask is not 0. */
void part_cut_out(struct part *p, const struct torus *whole, uint32_t node);
/* Makes the planner of a part that has p->place. Returns 0, or -1 with *e (ERROR_MEMORY). */
int part_make_planner(struct part *p, struct error *e);
/* Sets p->torus, p->rank and p->port, in p->place, of a group of some nodes, and makes its planner. Returns 0, or -1 with *e
 * (ERROR_MEMORY). */
int part_take_members(struct part *p, struct error *e);
/* Sets p->damage if the part is damaged. Returns 0, or -1 with *e (ERROR_MEMORY). */
int part_take_damage(struct part *p, struct error *e);
/* Checks that such parts can be opened: the members of each part of these dimensions reach each other over
 * links of their part. All nodes get the same result. Returns 0, or -1 with *e. */
int part_check_opening(const struct session *s, uint32_t mask, struct error *e);
