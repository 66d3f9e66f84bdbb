/* An attempt: one try to carry a job out on all nodes. */
#pragma once

/* Without memory, adding an entry to a table fails instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/lib/schedule/tree.h"
#include "daemon/torusd/exchange/record/barrier_times.h"
#include "daemon/torusd/exchange/record/exchange_record.h"
#include "daemon/torusd/exchange/record/id.h"
#include "daemon/torusd/exchange/record/job_kind.h"
#include "daemon/torusd/exchange/record/report.h"

/* A bit in attempt.owed, besides those of ports: this node's own part of the wave. */
#define OWN_PART (1u << 31)

/* This node's blocks, and the engine that moves them. */
struct local_part {
    struct resumed *resumed;         /* NULL: all blocks are sent from the start */
    struct pending_repairs *repairs; /* NULL: no piece has been damaged */
    /* Root: bytes that had arrived on all nodes when this attempt began. */
    uint64_t kept_bytes;
    struct planned *planned;
    struct source *source;
    struct sink *sink;
    unsigned closing; /* number of sources and sinks that are being closed */
    /* Bytes of the largest block at this node and, once they have told, at the nodes below it. */
    uint64_t largest_block;
    uint64_t whole_block;             /* bytes; like largest_block, with what had arrived before */
    uint64_t bytes_here, bytes_below; /* bytes of all blocks for other nodes */
    uint64_t round_bytes;             /* bytes of a block in one round; 0: not known yet */
    uint32_t window;
    uint64_t reserved; /* bytes, in the share of the attempt's `user` */
    struct engine *engine;
    uint64_t delivered_bytes; /* bytes that engines before this one delivered */
};

struct rounds {
    uint32_t repetition; /* the current repetition, from 0 */
    /* Rounds of one repetition; the fields below count rounds through all repetitions. */
    uint64_t count;
    uint64_t round;    /* the first round that this node or a node below it has not finished */
    uint64_t admitted; /* the number of rounds that may start here */
    uint64_t finished_below[TORUS_MAX_PORTS]; /* rounds that the child at each port has finished */
    uint64_t first_go_at;                     /* when the first `go` arrived, as router_now() */
    uint64_t go_at;                           /* when the latest `go` arrived */
    /* Nanoseconds that the slowest of this node and those below it took for this repetition. */
    uint64_t slowest;
    uint64_t all_ns; /* root: nanoseconds from the first `go` to the end of the last repetition */
};

/* Links that went down during the attempt. Times are nanoseconds of the router's clock. */
struct fault {
    uint64_t at;        /* when the first fault was noticed; ROUTER_NEVER: none */
    uint64_t judged_at; /* when the root last judged the fault */
    /* Rank of the needed node that the root takes for down; TORUS_NO_NODE: none. */
    uint32_t down;
    struct error e;
    uint32_t lost; /* ports whose links have been down; the attempt sends and takes nothing there */
    bool unchecked; /* of a job: links that were down when it began to wait have not been checked */
    /* Root: when an open group is restarted because links that it avoids are up; 0: never. */
    uint64_t restart_at;
};

#define NO_FAULT ((struct fault){.at = ROUTER_NEVER, .down = TORUS_NO_NODE})
/* The initial value for a job that waits for its next attempt: links that are down already are not reported
 * again, so the job must check them. */
#define UNCHECKED_FAULT                                                                            \
    ((struct fault){.at = ROUTER_NEVER, .down = TORUS_NO_NODE, .unchecked = true})

/* A finished output of this node whose outcome is unknown, or cannot be carried out yet (commit/in_doubt.h). */
struct doubt {
    struct doubt *next;
    struct exchange_id id;
    bool committed; /* the outcome is known */
    bool resolving; /* the outcome is being carried out */
};

/* One try to carry a job out. An attempt is never reset or used again. */
struct attempt {
    UT_hash_handle hh;           /* by handle, in exchanges.table */
    struct attempt *prev, *next; /* in exchanges.active or .ended */
    struct exchanges *exchanges;
    struct job *job; /* NULL: no client has asked for it here, or its job is over */
    uint32_t handle;
    struct exchange_id id;
    /* NO_ID, or the id of the first attempt (struct job) that this one resumes. */
    struct exchange_id resumes;
    uint32_t root;
    uint64_t root_boot; /* the root's start, as known when this attempt was made */
    uint64_t made_at;   /* when this attempt was made, in nanoseconds of the router's clock */
    uint32_t user;      /* the job's user; without a job, the user that the root names */
    struct tree_node tree;
    struct avoided *avoided; /* NULL: the attempt avoids no link or node, and finds no routes */
    bool avoids_links;       /* spec_avoids_links(), of the root's spec */
    struct spec spec;
    /* The schedule that the spec names, until the attempt has ended and its client was told. */
    struct schedule *schedule;
    /* NULL: not chosen yet (spec_chooses_late()), not known yet, or not known any more (schedule, avoided). */
    const struct algorithm *algorithm;
    enum mode mode;

    enum exchange_state state;
    uint32_t owed;        /* child ports (bits) and OWN_PART that the current wave still lacks */
    struct error failure; /* set when FAILING, FAILED, WITHDRAWN or IN_DOUBT */
    bool damaged;         /* FAILING: because of damage on the way to this node */
    bool verdict_heard;   /* it failed by the root's verdict, not by this node's own decision */
    bool before_go;       /* the verdict says that the root had sent no `go`, in any attempt */
    uint64_t began, deadline, timeout_ns;

    struct fault fault;
    struct local_part local;
    struct rounds rounds;
    struct report report;
    struct barrier_times barrier_times; /* of a barrier */
    struct trace *trace;                /* NULL: it is not traced */

    struct doubt *doubt; /* durable exchanges: memory for a doubt, allocated in advance */
    uint32_t *confirmed; /* COMMITTING: ranks of nodes here and below that have confirmed */
    uint32_t confirmed_count;
};

static inline struct router *router_of(const struct attempt *x)
{
    return x->exchanges->set.router;
}

static inline const struct torus *torus_of(const struct attempt *x)
{
    return router_torus(x->exchanges->set.router);
}

static inline uint32_t rank_of(const struct attempt *x)
{
    return router_rank(x->exchanges->set.router);
}

static inline bool attempt_is_root(const struct attempt *x)
{
    return x->tree.parent < 0;
}

static inline const struct job_kind *kind_of(const struct attempt *x)
{
    return kind_of_spec(&x->spec);
}

/* Whether the attempt has a result to commit. */
static inline bool exchange_is_durable(const struct attempt *x)
{
    return x->local.sink != NULL && x->local.sink->durable;
}

/* Returns the first round of the current repetition. */
static inline uint64_t exchange_first_round(const struct attempt *x)
{
    return x->rounds.repetition * x->rounds.count;
}

/* Returns the round after the last one of the current repetition. */
static inline uint64_t exchange_end_round(const struct attempt *x)
{
    return (x->rounds.repetition + 1) * x->rounds.count;
}

static inline bool exchange_last_repetition(const struct attempt *x)
{
    return x->rounds.repetition + 1 == x->spec.repeat;
}

/* Whether a node has blocks to send. */
static inline bool exchange_sends(const struct attempt *x, uint32_t rank)
{
    return kind_of(x)->has_blocks &&
           (x->spec.operation != OPERATION_BROADCAST || rank == x->spec.sender);
}
