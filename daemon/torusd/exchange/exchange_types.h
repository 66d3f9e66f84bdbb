/* Types that exchanges share with their users, and with the sessions of groups. */
#pragma once

#include "daemon/lib/base/histogram.h"
#include "daemon/lib/base/shares.h"
#include "daemon/lib/base/work.h"
#include "daemon/lib/schedule/tree.h"
#include "daemon/torusd/engine/engine.h"
#include "daemon/torusd/engine/output_store.h"
#include "daemon/torusd/planning/calibration.h"
#include "daemon/torusd/planning/link_rates.h"
#include "daemon/torusd/planning/planner.h"
#include "daemon/torusd/planning/spec.h"

struct exchanges;

/* A group has a session instead of blocks: an engine that lives as long as the group is open and carries out
 * the calls of programs (daemon/torusd/group). Its round 0 is admitted when all members have opened the group, and is
 * finished when all have left it. In a group of some nodes there is a second round, which other nodes finish when it is
 * admitted: until then they pass on what members send. */

/* How a session gets more memory than it was opened with; `context`: of its events. */
struct session_memory {
    /* Reserves this many bytes, if there is room for them beside other groups. Returns whether it has. */
    bool (*take)(void *context, uint64_t bytes);
    /* Gives back what was taken. */
    void (*give)(void *context, uint64_t bytes);
};

struct session_setup {
    struct router *router;
    uint32_t handle;       /* Prepare.handle: identifies the group in frames */
    struct tree_node tree; /* from the group's root to all nodes */
    /* Links that the group avoids, valid until the group is open; NULL: none. */
    const struct damage *damage;
    /* Id of the group's first attempt; stays the same after a restart. */
    const char *id;
    /* True: a restart, which continues the session with this id; false: start a new one. */
    bool restarts;
    /* Beside `restarts`: data was damaged, so blocks are sent from their beginning. */
    bool from_begin;
    const char *name;        /* of the group; copied */
    const char *members;     /* as spec.members */
    bool unchecked;          /* true: blocks travel without digests */
    bool grows;              /* as spec.grows */
    struct trace *trace;     /* NULL, or where calls are noted; the session takes a reference */
    struct planner *planner; /* for the whole torus; borrowed */
    /* `wake` asks the owner to check whether the session failed or finished. */
    struct block_events events;
    struct session_memory memory;
};

struct sessions {
    void *context;
    /* Opens a session. Returns NULL with *e if there is no memory, or if the session cannot continue without
     * these links or nodes. If the engine is freed while its group runs, the session is kept: after a restart
     * it repeats the calls that are not complete on all nodes. */
    struct engine *(*open)(void *context, const struct session_setup *setup, struct error *e);
    /* Frees what is kept under this id, because the group has ended. */
    void (*forget)(void *context, const char *id);
    uint64_t memory;         /* most bytes that one session may use */
    uint64_t first_memory;   /* with which a session that grows is opened */
    uint64_t some_memory;    /* the same in a group of some nodes, at a member */
    uint64_t passing_memory; /* and at a node that only passes on what members send */
};

#define EXCHANGE_ID_SIZE 48

enum exchange_state {
    EXCHANGE_WAITING, /* state of a job: waits at its root for its next attempt */
    /* State of a job: waits where it was entered; the other states are those of attempts. */
    EXCHANGE_ENTERED,
    EXCHANGE_STARTING,
    EXCHANGE_OPENING,
    EXCHANGE_OPENED,
    EXCHANGE_PREPARING,
    EXCHANGE_READY,
    EXCHANGE_RUNNING,
    EXCHANGE_PAUSED,
    EXCHANGE_DONE,
    EXCHANGE_DECIDING,
    EXCHANGE_COMMITTING,
    EXCHANGE_FAILING,
    EXCHANGE_FINISHED, /* from this state on, an attempt has ended */
    EXCHANGE_COMMITTED,
    EXCHANGE_WITHDRAWN,
    EXCHANGE_FAILED,
    EXCHANGE_IN_DOUBT,
};
#define EXCHANGE_STATES (EXCHANGE_IN_DOUBT + 1u)

struct exchange_node_report {
    uint32_t rank;
    uint64_t nanoseconds;
    uint64_t blocks_delivered, bytes_delivered;
    uint32_t most_starts, most_ends; /* at one time, counted in legs; see engine.h */
    uint32_t repaired;               /* pieces that arrived damaged and were sent again */
    struct unmoved unmoved;          /* files of this node's source folder */
    struct engine_port_counts port[TORUS_MAX_PORTS];
    struct connection_stat link[TORUS_MAX_PORTS]; /* by port, when the node had finished */
};

/* When the client of a node entered a barrier: the time since the client of the first node entered it, by the root's
 * clock (report.h). */
struct exchange_arrival {
    uint32_t rank;
    uint64_t after_ns;
};

struct exchange_result {
    const char *id;
    const char *algorithm;
    enum schedule_operation operation;
    enum mode mode;       /* stepped or streaming */
    uint64_t block_bytes; /* size of the largest block */
    uint64_t rounds;
    /* Time of the last repetition; all counters describe that repetition, too. */
    uint64_t nanoseconds;
    double bound;            /* at the rates of `links` */
    struct link_rates links; /* that the routes were found for */
    char without[200];       /* links that were avoided: "link 3:+0"; "": none */
    const bool *gone;        /* by rank: nodes that were down and took no part; NULL: none */
    uint32_t reroutes;       /* attempts that were withdrawn because a link or node went down */
    uint32_t replans; /* attempts that were withdrawn because the rates of links had changed */
    /* Attempts that were withdrawn because of damage, and pieces that were sent again. */
    uint32_t damages;
    uint64_t kept_bytes;   /* bytes that arrived in earlier attempts and were not sent again */
    uint32_t startups;     /* counted per round; streaming, which has no steps: 0 */
    uint64_t transmission; /* counted per round; streaming: 0 */
    uint64_t blocks_delivered, bytes_delivered;
    /* One entry per node, by rising rank; NULL: known at the root only. */
    const struct exchange_node_report *node;
    uint32_t nodes; /* number of entries in `node` */
    uint32_t repeat;
    /* Nanoseconds of each of `repeat` repetitions; NULL: known at the root only. */
    const uint64_t *each;
    /* Root: nanoseconds from the first `go` until all nodes had finished the last repetition. */
    uint64_t all_ns;
    enum check check;       /* how the received data was compared with the data sent */
    struct unmoved unmoved; /* files of all nodes */
    /* Barriers: how long the client of this node waited, and when each node came, by rising rank. Nodes of which this
     * is not known are left out. */
    uint64_t waited_ns;
    const struct exchange_arrival *arrival;
    uint32_t arrivals;
};

/* The client that asked for an exchange. */
struct exchange_client {
    void *context;
    /* Called once when the job has ended and this node keeps nothing of a failed exchange. Exactly one of
     * `result` and `e` is NULL; both are valid during the call only. Never called from inside exchange_start()
     * or exchange_cancel(). */
    void (*ended)(void *context, const struct exchange_result *result, const struct error *e);
    uint32_t user; /* whose share the exchange takes (base/shares.h) */
};

struct exchange_progress {
    enum exchange_state state;
    uint32_t repetition, repeat;
    uint64_t round, rounds;           /* of the current repetition */
    uint64_t done_bytes, total_bytes; /* delivered at this node; total_bytes 0: unknown */
    /* What the job waits for because it is down: "node 4 (1,0)"; "": nothing. */
    char waits_for[sizeof(((struct error *)0)->text)];
};

struct exchange_info {
    char id[EXCHANGE_ID_SIZE];
    char algorithm[32];
    enum exchange_state state;
    char reason[sizeof(((struct error *)0)->text)];
    uint32_t root;
    uint64_t age_ns;
    uint64_t round, rounds;           /* of the current repetition, at this node */
    uint64_t done_bytes, total_bytes; /* delivered at this node; total_bytes 0: unknown */
};

/* An exchange that this node, its root, has decided to commit. It stays on record until all nodes have
 * confirmed that their output is in place. */
#define EXCHANGE_UNCONFIRMED_NAMED 64u
struct exchange_unconfirmed {
    char id[EXCHANGE_ID_SIZE];
    uint32_t count;                                 /* number of nodes that have not confirmed */
    uint32_t node[EXCHANGE_UNCONFIRMED_NAMED];      /* their lowest ranks, ascending */
    char reason[sizeof(((struct error *)0)->text)]; /* why, and what will happen, for people */
};

/* Counters of exchanges since the start of the daemon, for monitoring. */
struct exchange_totals {
    /* How many attempts have entered each state in which an attempt has ended; the other states stay 0. */
    uint64_t ended[OPERATIONS][EXCHANGE_STATES];
    /* Bytes that have been delivered here by engines that are gone, or in repetitions that are over. */
    uint64_t delivered_bytes;
    struct histogram duration; /* in seconds, of attempts that have succeeded, without groups */
};

/* How many exchanges there are and have been at this node, for monitoring. */
struct exchange_counts {
    unsigned waiting; /* jobs that wait to be started, for their next attempt, or for other nodes */
    unsigned under_way; /* attempts that other nodes know of, without groups */
    unsigned in_doubt;
    unsigned unconfirmed;          /* decisions of this node that some nodes have not confirmed */
    struct exchange_totals totals; /* with what the engines under way have delivered */
};
/* A job: a request that a client has made or entered here, until the client is told how it ended. */
struct job;

struct exchanges_setup {
    struct router *router;
    struct shares *shares;         /* must outlive the exchanges */
    const struct storage *storage; /* must outlive the exchanges */
    struct workers workers;        /* threads for long computations */
    /* Bytes that blocks on their way may use, in all exchanges together. */
    uint64_t memory_budget;
    double link_mbit;             /* nominal rate in Mbit/s; 0: unknown */
    uint64_t link_burst;          /* bytes that a link passes at once after a pause */
    double daemons_per_processor; /* daemons that share one processor; 1: each has its own */
    struct sessions sessions;     /* sessions.open NULL: this daemon has no groups */
    /* Called when schedules have been counted, so that choose_candidates() may be called again. May be NULL. */
    void (*planned)(void *context);
    void *planned_context;
    /* Sets the nanoseconds that this thread has used of a processor, and those for which it could have run and did
     * not. NULL: not known, and a node is never late. */
    void (*processor)(void *context, uint64_t *used, uint64_t *delayed);
    void *processor_context;
};

/* Returns the name of a state, as status shows it. */
const char *exchange_state_name(enum exchange_state state);
/* Whether an attempt in this state has ended. */
bool exchange_has_ended(enum exchange_state state);
