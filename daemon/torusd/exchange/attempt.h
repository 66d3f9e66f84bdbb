/* All that a node knows about its exchanges: the attempts to carry jobs out. Times are nanoseconds of the router's
 * clock. */
#pragma once

/* Without memory, adding an entry to a table fails instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "daemon/lib/base/allowance.h"
#include "daemon/lib/base/shares.h"
#include "daemon/lib/schedule/tree.h"
#include "daemon/torusd/exchange/exchange_types.h"
#include "daemon/torusd/exchange/id.h"
#include "daemon/torusd/exchange/report.h"
#include "daemon/torusd/planning/spec.h"
#include "daemon/torusd/router/router.h"

struct attempt_name;

/* --- times that several files use --- */

/* How long the root waits after the first lost link before it retries: the links of a process that dies are not
 * all reported at once, and the exchange may be able to finish without that link. */
#define LINK_LOSS_GATHER_TIME (50 * MILLISECONDS)
/* How long a node waits for the root's abort. */
#define ABORT_TIME (4 * SECONDS)
/* A node that waits for its group's restart asks the root after this time. It is longer than nodes remember
 * aborts, because an abort may have been flooded while this node was cut off. */
#define ASK_TIME (10 * SECONDS)
/* How often a node in doubt asks, and a root reminds nodes that have not confirmed: ASK_EVERY while the torus
 * is whole; otherwise LOOK_EVERY, because a path to these nodes may open at any time. */
#define ASK_EVERY (2 * SECONDS)
#define LOOK_EVERY (ASK_EVERY / 4)
/* How long a job without a timeout waits to be started, or for nodes that are down. */
#define LONGEST_WAIT (3600 * SECONDS)
/* How much longer than the root other nodes wait. */
#define PEER_PATIENCE (5 * SECONDS)

/* --- the exchanges of a node --- */

#define ABORTS_REMEMBERED 256u
#define TRACES_KEPT 2u

/* The rates of links in plans: see plan_rates.h. */
struct plan_rates {
    uint16_t *used;             /* by rank * ports + port; NULL: all links are alike */
    uint32_t full_kbit;         /* the full rate */
    uint64_t changes;           /* how often these have changed */
    uint64_t changed_at;        /* when; 0: never */
    uint64_t *cleared;          /* when the rate of each channel last changed clearly; 0: never */
    struct allowance allowance; /* for changes of plans */
    uint32_t fastest;           /* kbit/s of the fastest channel; 0: not known */
    uint64_t
        look_at; /* when they are next compared with stated rates and plans; ROUTER_NEVER: no change */
};

struct exchanges {
    struct exchanges_setup set;
    struct job *jobs;       /* in the order in which they were asked for */
    struct attempt *table;  /* all attempts, by handle */
    struct attempt *active; /* attempts under way, oldest first */
    struct attempt *ended;  /* ended attempts, youngest last, until they are forgotten */
    unsigned active_count, ended_count;
    unsigned tellable; /* jobs that have ended and whose clients are told in the next tick */
    bool start_due;    /* the start queue must be checked again */
    uint32_t counter;  /* for ids that this node gives */
    /* For the blocks of all attempts; the context is the attempt. */
    struct block_events block_events;
    struct calibration calibration;
    struct plan_rates rates;
    uint32_t relayed[TORUS_MAX_PORTS]; /* exchanges_relayed_frames() */
    uint32_t links_up;                 /* ports (bits) whose links were up at the last change */
    uint64_t changes;                  /* number of changes of the topology */
    uint64_t changed_at;               /* when the last change was noticed */
    struct absence *absent;            /* an entry for each rank */
    bool may_be_cut_off;               /* nodes that are unreachable may be alive */
    uint32_t calibration_told;         /* ports (bits) whose neighbours know the calibration */
    struct planner *planner;
    struct schedules *schedules;
    /* By port: handle of the attempt that may send next. */
    uint32_t next_handle[TORUS_MAX_PORTS];
    uint64_t unknown_logged[TORUS_MAX_PORTS]; /* by port: when an ignored message was last logged */
    /* Hashes of the unknown ids whose aborts this node has flooded. */
    uint64_t abort[ABORTS_REMEMBERED];
    uint64_t abort_at[ABORTS_REMEMBERED]; /* when each of these aborts arrived */
    unsigned next_abort;                  /* index of the oldest abort */
    struct kept_trees *trees;
    struct resumed *kept; /* blocks that arrived in withdrawn attempts (kept_blocks.h) */
    struct doubt *doubts;
    struct decision *decisions;
    /* When doubts and decisions are next checked; ROUTER_NEVER: there are none. */
    uint64_t ask_at;
    struct trace *trace[TRACES_KEPT]; /* of the latest traced jobs; NULL: none */
    struct exchange_totals totals;
    struct error broken; /* code ERROR_NONE, or the first invariant that was violated */
};

/* Makes sure that doubts and decisions are checked at this time or before. */
static inline void ask_by(struct exchanges *exchanges, uint64_t at)
{
    if (at < exchanges->ask_at)
        exchanges->ask_at = at;
}

/* --- kinds of jobs ---
 *
 * The three kinds of jobs: exchanges (also allgathers and broadcasts), barriers and groups. One table lists how
 * they differ; other code reads the table's row and does not look at the operation. */

struct job_kind {
    /* True: a client enters the job at every node, and the job begins when all have entered. False: one client
     * asks for the job at its root. */
    bool is_entered;
    /* True: nodes move blocks. False: nodes exchange waves only. */
    bool has_blocks;
    /* The job stays open after all have entered, and its engine is a session (session.h). The root restarts the
     * job under another id, and keeps the session. */
    bool has_session;
    /* Nodes tell each other when each of them entered (report.h). */
    bool tells_arrivals;
    /* The root may withdraw an attempt that runs and start another one, because clients hear of the end only
     * from the root. Clients of a barrier learn it from `go`. */
    bool retries_running;
    /* If the job shrinks, the first remaining node is its root. */
    bool first_remaining_leads;
    /* The number of such jobs under way is limited: of one user, of one root, and in total. */
    bool takes_slot;
    enum share share; /* the share of memory that the job takes */
    /* Returns how many bytes of that share the job takes. NULL: the amount depends on the job's blocks. */
    uint64_t (*memory)(const struct exchanges *exchanges);
    /* Frees what is kept for a job whose first attempt had this id, because the job is over here. NULL: nothing
     * is kept. */
    void (*forget)(struct exchanges *exchanges, const struct exchange_id *first);
};

/* Returns the row of an operation. */
const struct job_kind *kind_of_operation(enum schedule_operation operation);

static inline const struct job_kind *kind_of_spec(const struct spec *spec)
{
    return kind_of_operation(spec->operation);
}

/* --- attempts: an attempt is one try to carry a job out on all nodes --- */

/* A bit in attempt.awaited, besides those of ports: this node's own part of the wave. */
#define OWN_PART (1u << 31)

/* Pieces of blocks that arrived damaged here, and pieces that other nodes have asked for again. */
struct repair_query {
    uint32_t destination, length;
    uint64_t offset;
};

struct pending_repairs {
    /* State of the engine's first damaged piece: */
    bool asked; /* a request for its next part is open */
    uint64_t asked_at;
    uint32_t have; /* bytes of the piece that have been repaired */
    struct piece_mark mark;
    struct piece_states states;
    uint32_t tries, repaired; /* counted over all pieces */
    /* Requests of other nodes, in order of arrival; at most one from each node. */
    struct repair_query *query;
    uint32_t queries;
};

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

/* A finished output of this node whose outcome is unknown, or cannot be carried out yet (decisions.h). */
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
    bool from_begin;         /* Prepare.from_begin */
    uint64_t planned_at;     /* root: plan_rates.changes of the rates that it was planned with */
    struct spec spec;
    /* The schedule that the spec names, until the attempt has ended and its client was told. */
    struct schedule *schedule;
    /* NULL: not chosen yet (spec_chooses_late()), not known yet, or not known any more (schedule, avoided). */
    const struct algorithm *algorithm;
    enum mode mode;

    enum exchange_state state;
    uint32_t awaited;     /* child ports (bits) and OWN_PART that the current wave still lacks */
    struct error failure; /* set when FAILING, FAILED, WITHDRAWN or IN_DOUBT */
    bool damaged;         /* FAILING: because of damage on the way to this node */
    bool abort_heard;     /* it failed by the root's abort, not by this node's own decision */
    bool before_go;       /* the abort says that the root had sent no `go`, in any attempt */
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

/* Sets an attempt's state, and frees what the new state does not need. To end an attempt, call attempt_end(). */
void attempt_enter(struct attempt *x, enum exchange_state state);
/* Counts that one source or sink of the attempt has been closed. */
void attempt_closed_one(struct attempt *x);

/* --- all attempts that this node knows: by handle, and in the order in which they began or ended --- */

/* Returns the attempt with this handle, or NULL. */
struct attempt *attempt_find(struct exchanges *exchanges, uint32_t handle);
/* Returns the attempt with this id that is under way here, otherwise the youngest that has ended, or NULL. */
struct attempt *attempt_find_id(const struct exchanges *exchanges, const struct exchange_id *id);
/* Like attempt_find_id(), by the text of the id. Returns NULL also if the text is not an id. */
struct attempt *attempt_find_text(const struct exchanges *exchanges, const char *text);
/* Creates an attempt, STARTING and without a job. The table owns it until attempt_forget() or
 * attempt_free_when_closed(). Returns NULL if there is no memory. */
struct attempt *attempt_new(struct exchanges *exchanges, const struct attempt_name *name,
                            uint32_t root);
/* Sets *name to a name of this node that no attempt or job has. */
void attempt_new_name(struct exchanges *exchanges, struct attempt_name *name);
/* Removes and frees an attempt; its engine, source and sink must be closed. */
void attempt_forget(struct attempt *x);
/* Gives up the attempt's schedule and routes, if it has any. */
void attempt_leave_schedule(struct attempt *x);
/* Like attempt_forget(), but if a source or sink is still being closed, the attempt is freed after that. */
void attempt_free_when_closed(struct attempt *x);

/* The one function that drives an attempt (dispatch.c): continues it as far as possible with the messages that have
 * arrived and the work that is complete. */
void attempt_advance(struct attempt *x);
