/* The record of a communicator: the places of its ranks on the torus, and its lane. */
#pragma once

#include <stdatomic.h>
#include <torus/group.h>

#include "client/mpi/communicators/claims.h"
#include "client/mpi/communicators/neighborhood.h"
#include "client/mpi/job/choice.h"
#include "client/mpi/job/fibers.h"
#include "client/mpi/library/abi.h"
#include "client/mpi/library/operations.h"

/* The lane of a communicator, or its own group. */
struct share {
    bool owns; /* the communicator owns lane `lane`, or has its own group */
    unsigned lane;
    uint32_t number;   /* of its own group */
    bool under_way;    /* a call that uses the lane is under way */
    uint32_t requests; /* nonblocking calls in the lane that the program has not completed */
    bool wanted;       /* a nonblocking call would have used a lane */
    /* The number of the call in which the communicator asks next (UINT32_MAX: never), and of calls between questions. */
    uint32_t ask_at, ask_distance;
    uint64_t
        opens_at; /* when opening its own group pays off, if calls go the faster way: in statistics_now() */
    struct lanes_seen seen;
};

/* The tables of a communicator. */
struct placement {
    int *world; /* [rank]: its rank in MPI_COMM_WORLD */
    uint32_t *rank_at;
    uint32_t *place_of;
    uint32_t *first;
};

#define NO_PART 0u /* as dimensions */

/* A communicator. Its first collective operation makes the record. Nodes are numbered like the
 * members of their group. The ranks on a node are numbered from its leader on: rank `local` on node `n` has place first[n]
 * + local. Blocks are sent in the order of places. */
struct communicator {
    MPI_Comm handle;
    /* REASON_SERVED, or why no call on this communicator is ever served; then only the next two fields are set. */
    enum reason reason;
    uint32_t size, rank; /* of the communicator */
    /* Dimensions of the part of the torus that its nodes form. NO_PART: it needs a group of its own. */
    uint32_t dimensions;
    uint32_t nodes;              /* number of nodes */
    uint32_t locals;             /* number of ranks on this node */
    bool several;                /* a node has several ranks */
    bool even;                   /* all nodes have equally many */
    uint32_t node, local;        /* the node and local rank of this process */
    bool in_order;               /* every rank equals its place */
    struct placement *placement; /* owns the next three tables */
    const uint32_t *first;       /* [node]: the place of its first rank; and the size at the end */
    const uint32_t *rank_at;     /* [place] */
    const uint32_t *place_of;    /* [rank] */
    struct neighborhood *neighborhood; /* NULL: not read yet, or there is no topology */
    bool wants_neighborhood;           /* a blocking call must read it, for nonblocking ones */
    struct torus_group *group;         /* NULL: this process is not a leader */
    size_t *numbers;                   /* room for 4 * size numbers */
    /* The number of calls on it, and flags. With CALLS_HELD, no call may go by what is remembered. */
    _Atomic uint64_t calls;
    unsigned printed; /* the reason printed last, plus 1; 0: none */
    struct share share;
    struct fiber_line line; /* of its nonblocking calls */
    bool freed;             /* by the program; the record exists until its requests are completed */
    /* By operation and class of sizes; NULL: there has been no such call. */
    struct choice *choice[CHOICES_COUNT][CHOICE_CLASSES];
};

#define CALLS_HELD (UINT64_C(1) << 63)
#define CALLS_OF_THREADS (UINT64_C(1) << 62) /* another thread may hold them */
#define CALLS_UNSERVED (UINT64_C(1) << 61)   /* all calls stay with MPI, until the ranks ask next */

static inline uint32_t communicator_calls(const struct communicator *c)
{
    return (uint32_t)atomic_load_explicit(&c->calls, memory_order_relaxed);
}

/* Returns the number of ranks on a node, and the node of a place. */
static inline uint32_t communicator_locals(const struct communicator *c, uint32_t node)
{
    return c->first[node + 1] - c->first[node];
}

uint32_t communicator_node(const struct communicator *c, uint32_t place);

static inline bool communicator_leads(const struct communicator *c)
{
    return c->local == 0;
}

/* The places of a communicator's ranks (placement.c). */

/* Fills in *c for the communicator c->handle, which must be valid. c->reason is REASON_SERVED if the torus can serve
 * the communicator. Returns 0, or -1 if memory is short. Errors of MPI call error handlers. */
int placement_find(struct communicator *c);
void placement_free(struct placement *p); /* NULL does nothing */
/* Returns whether every rank of `inner` is also a rank of `outer`; false if memory is short. */
bool placement_is_within(const struct communicator *inner, const struct communicator *outer);

/* Finds the record of a communicator, and begins and ends its calls. */

/* Returns the record of a communicator, which MPI frees with the communicator. NULL: the communicator is invalid, or
 * memory is short, which makes the group fail. */
struct communicator *communicator_of(MPI_Comm comm);
/* Returns whether this is the first call on a communicator that the program has created. */
bool communicator_is_new(const struct communicator *c);

/* Begins a call, which communicator_leave() ends. Returns REASON_SERVED if the call may use the torus. All ranks of
 * the communicator make this call at the same point, and get the same result. */
enum reason communicator_enter(struct communicator *c);

void communicator_leave(struct communicator *c);

/* Calls that stay with MPI. After a pause the caches hold little of the preload, and then each cache line that a call
 * needs costs more than many instructions. So the latest calls that have stayed with MPI are remembered, and the next call
 * of the same kind goes to MPI without a look at the communicator, the types and the torus.
 *
 * Under MPI_THREAD_MULTIPLE all threads remember in one table, without a lock for those who read it. Only one thread at a
 * time makes calls on a communicator, as MPI demands, so that the rest of its record needs no care. But the thread of another
 * communicator may take its lane away, which all ranks must learn at the same call: such calls are counted, and are held while
 * another communicator asks for the lane, or nonblocking calls are under way (CALLS_HELD). While a communicator has neither a
 * lane nor a group (CALLS_UNSERVED), its calls are remembered in another way: as `staying_unserved`, without a choice.
 * They pass until the call in which the ranks ask next. */

/* A kind of calls, which go the same way at the same time. Parts that the operation lacks are 0. */
struct call_kind {
    const void *caller; /* the return address, which is not in MPI */
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op op;
    int64_t count;
};

#define STAYING_BITS 3u /* 8 kinds of each operation are remembered */

/* One cache line. The job must be locked to write it, and `version` is odd meanwhile: what was read before and after the same
 * even number belongs together. */
struct staying {
    const void *_Atomic caller; /* NULL: no kind is remembered */
    _Atomic MPI_Comm comm;
    _Atomic MPI_Datatype type;
    _Atomic MPI_Op op;
    _Atomic int64_t count;
    struct communicator *_Atomic c;
    struct choice *_Atomic choice; /* NULL: the way is fixed; or &staying_unserved */
    _Atomic uint32_t version;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct staying) == 64, "an entry is one cache line");

extern struct staying staying[OPERATIONS_COUNT][1u << STAYING_BITS]
    __attribute__((visibility("hidden"))); /* without the global offset table */

extern struct choice staying_unserved __attribute__((visibility("hidden")));

static inline struct staying *staying_at(enum mpi_operation operation, const struct call_kind *kind)
{
    const uint64_t mixed =
        ((uint64_t)kind->count ^ (uint64_t)(uintptr_t)kind->comm ^ (uintptr_t)kind->caller) *
        UINT64_C(0x9e3779b97f4a7c15);

    return &staying[operation][mixed >> (64 - STAYING_BITS)];
}

/* Whether the entry is for calls of this kind. If so, reads the communicator and the choice. */
static inline bool staying_is_for(struct staying *s, const struct call_kind *kind,
                                  struct communicator **c, struct choice **choice)
{
    const memory_order order = memory_order_acquire;
    const uint32_t version = atomic_load_explicit(&s->version, order);

    if (atomic_load_explicit(&s->caller, order) != kind->caller ||
        atomic_load_explicit(&s->comm, order) != kind->comm ||
        atomic_load_explicit(&s->count, order) != kind->count ||
        atomic_load_explicit(&s->type, order) != kind->type ||
        atomic_load_explicit(&s->op, order) != kind->op)
        return false;
    *c = atomic_load_explicit(&s->c, order);
    *choice = atomic_load_explicit(&s->choice, order);
    return version % 2 == 0 && atomic_load_explicit(&s->version, memory_order_relaxed) == version;
}

/* Counts a call that goes by what is remembered. Returns false if it must not: then it is not counted. */
static inline bool communicator_passes(struct communicator *c, bool unserved)
{
    uint64_t calls = atomic_load_explicit(&c->calls, memory_order_acquire);

    if ((calls & (CALLS_HELD | CALLS_OF_THREADS | CALLS_UNSERVED)) == 0 && !unserved) {
        atomic_store_explicit(&c->calls, calls + 1, memory_order_relaxed); /* in half of the time */
        return true;
    }
    while ((calls & CALLS_HELD) == 0 && unserved == ((calls & CALLS_UNSERVED) != 0) &&
           (!unserved || (uint32_t)calls + 1 < c->share.ask_at))
        if (atomic_compare_exchange_weak_explicit(&c->calls, &calls, calls + 1,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return true;
    return false;
}

/* Returns whether the call stays with MPI. If so, it is counted, as at ranks that have not remembered such a call. */
static inline bool call_stays(enum mpi_operation operation, const struct call_kind *kind)
{
    struct communicator *c;
    struct choice *choice;
    bool unserved, chosen;

    if (!staying_is_for(staying_at(operation, kind), kind, &c, &choice))
        return false;
    unserved = choice == &staying_unserved;
    chosen = choice != NULL && !unserved;
    if (c->wants_neighborhood || (chosen && !choice_stays(choice)) ||
        !communicator_passes(c, unserved))
        return false;
    if (chosen)
        choice_count(choice);
    return true;
}

/* Remembers a call that has stayed with MPI, as `choice` says; NULL: as all such calls do; &staying_unserved: as all calls
 * on the communicator do. Otherwise handles of the kind must be of types and operators that MPI defines, because others may
 * be freed, and stand for something else later. */
void call_remember(enum mpi_operation operation, const struct call_kind *kind,
                   struct communicator *c, struct choice *choice);

/* A nonblocking call would have used a lane, so the communicator asks for one. */
void communicator_wants_lane(struct communicator *c);

/* The same for a nonblocking call, if there is one rank on each node. Returns whether the communicator has a lane for
 * it; then *group is the lane's, and the communicator keeps the lane until communicator_end_request(). Does not wait for
 * other ranks. */
bool communicator_begin_request(struct communicator *c, struct torus_group **group);
/* May free the record. */
void communicator_end_request(struct communicator *c);

/* Decides which communicator uses the torus under MPI_THREAD_MULTIPLE.
 *
 * A group of torusd has one order of calls, the same on all nodes. Without MPI_THREAD_MULTIPLE all processes make
 * their calls in one order, whatever the communicators, so all communicators can share a group. With
 * MPI_THREAD_MULTIPLE, threads make calls on several communicators in an order that differs between nodes; only the
 * calls on one communicator have the same order everywhere. So in each part of the torus a *lane*, a group with its
 * parts (job.h), belongs to one communicator at a time, its owner. At first MPI_COMM_WORLD owns lane 0. Calls of
 * communicators that own no lane are left to MPI.
 *
 * A communicator without a lane *asks* for one in its second call, and then less and less often. All its ranks are in
 * this call, and take the same steps:
 *
 * 1. Each rank votes: it reports the state of the lanes (struct votes) in an MPI_Allreduce. If the communicator can
 * get no lane, the question ends here.
 *
 * 2. Each rank now knows that all other ranks have come this far, so nothing in the program prevents them from
 * continuing. It blocks calls of the owners of lanes in its process during a second MPI_Allreduce, in which all ranks
 * vote again. So the state that they report does not change meanwhile.
 *
 * 3. These votes decide (claims.h). The communicator gets a lane that is free; or a lane whose owner has not used it
 * since the last question, or has made less than half as many calls; or a new lane, which only a communicator on all
 * nodes can open. A communicator can take a lane only if it has all ranks of the previous owner. So all these ranks
 * learn of the loss at a point where they have made equally many calls, and the owner's next call is left to MPI on
 * all of them.
 *
 * Nonblocking calls on several communicators may be made in different orders even without MPI_THREAD_MULTIPLE. So they
 * need a lane of their communicator. Without MPI_THREAD_MULTIPLE, lane 0 is for the blocking calls of all communicators,
 * and the other lanes have owners, for nonblocking calls only. The questions come in blocking calls, because a
 * nonblocking call must not wait for other ranks: in those that follow a nonblocking call that could have used a lane. */

/* The nodes of other communicators form no row, column or plane, or the lowest rank of a node is none of theirs. Such a
 * communicator has *its own group*, of its nodes only, for its blocking and nonblocking calls. There is one order of calls
 * in it, so it needs no owner. Its ranks open it together in one of their blocking calls: not in the first ones, because it
 * takes milliseconds and memory of every daemon. If calls go the faster way, the communicator must have been in use for
 * some time, because a program may make many for a few calls. The ranks first vote, by an MPI_Allreduce, whether each of
 * them can open another group, and a second one tells whether all of them have. A communicator that gets no group asks
 * again, less and less often. */

/* Makes MPI_COMM_WORLD, whose record is `world`, the owner of lane 0. Called once under MPI_THREAD_MULTIPLE, in
 * MPI_Init after the group has been opened. */
void sharing_begin(struct communicator *world);

/* Begin and end a call: communicator_enter() and communicator_leave() for a communicator that can be served. */
enum reason sharing_enter(struct communicator *c);
void sharing_leave(struct communicator *c);
/* Called once for each record. The job must be locked. */
void sharing_set_up(struct communicator *c);
/* Holds the calls of `c` that would go by what is remembered, or lets them pass. The job must be locked. While calls
 * stay held, nothing is written, because a request may be copying the record. */
void sharing_hold_or_pass(struct communicator *c);
/* Frees the lane, or closes the group, of a communicator whose record is about to be freed. The job must be locked. */
void sharing_forget(struct communicator *c);
