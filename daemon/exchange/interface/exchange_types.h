/* What exchanges and their users tell each other. */
#ifndef TORUSD_EXCHANGE_INTERFACE_EXCHANGE_TYPES_H
#define TORUSD_EXCHANGE_INTERFACE_EXCHANGE_TYPES_H

#include "daemon/base/shares.h"
#include "daemon/base/work.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/output_store.h"
#include "daemon/exchange/interface/session.h"
#include "daemon/planning/calibration.h"
#include "daemon/planning/spec.h"

#define EXCHANGE_ID_SIZE 48

enum exchange_state {
    EXCHANGE_WAITING, /* a job between attempts: at its root, */
    EXCHANGE_ENTERED, /* or where it was entered; all others are states of attempts */
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
    EXCHANGE_FINISHED, /* ended from here on */
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
    uint32_t most_starts, most_ends; /* legs at a time, see engine.h */
    uint32_t repaired;               /* pieces that came again, because they had arrived damaged */
    struct unmoved unmoved;          /* files of its source folder */
    struct engine_port_counts port[TORUS_MAX_PORTS];
    struct connection_stat link[TORUS_MAX_PORTS]; /* by port, when the node had finished */
};

struct exchange_result {
    const char *id;
    const char *algorithm;
    enum operation operation;
    enum mode mode;       /* stepped or streaming */
    uint64_t block_bytes; /* the largest */
    uint64_t rounds;
    uint64_t nanoseconds; /* of the last repetition, like all that is counted */
    double bound;
    char without[200]; /* links that were out of order: "link 3:+0"; "": none */
    const bool *gone;  /* by rank: nodes that were down, and took no part; NULL: no node */
    uint32_t reroutes; /* attempts that were withdrawn because a link or node went down, */
    uint32_t damages; /* and because something was damaged on its way, or pieces that came again; */
    uint64_t kept_bytes;   /* that had arrived before the last time, and did not come again */
    uint32_t startups;     /* counted, per round; streaming: most messages by any channel */
    uint64_t transmission; /* counted, per round; streaming: most blocks by any channel */
    uint64_t blocks_delivered, bytes_delivered;
    const struct exchange_node_report *node; /* rising ranks; NULL: known at the root only */
    uint32_t nodes;                          /* so many */
    uint32_t repeat;
    const uint64_t *each;   /* `repeat` of them: nanoseconds; NULL: known at the root only */
    uint64_t all_ns;        /* from the first go until all had done the last, at the root */
    enum check check;       /* what was compared with what had been sent */
    struct unmoved unmoved; /* of all nodes */
};

/* Who asked for an exchange. */
struct exchange_client {
    void *context;
    /* Exactly one of result and e is NULL. Called once, not from inside exchange_start() or
     * exchange_cancel(), when nothing of a failed exchange is left on this node. */
    void (*ended)(void *context, const struct exchange_result *result, const struct error *e);
    uint32_t user; /* whose share it takes (base/shares.h) */
};

struct exchange_progress {
    enum exchange_state state;
    uint32_t repetition, repeat;
    uint64_t round, rounds;           /* of a repetition */
    uint64_t done_bytes, total_bytes; /* delivered at this node; total 0: not known */
    /* What is down, if it waits for that: "node 4 (1,0)"; "": nothing. */
    char waits_for[sizeof(((struct error *)0)->text)];
};

struct exchange_info {
    char id[EXCHANGE_ID_SIZE];
    char algorithm[32];
    enum exchange_state state;
    char reason[sizeof(((struct error *)0)->text)];
    uint32_t root;
    uint64_t age_ns;
};

/* An exchange that this node has decided to commit, as its root, and that is on record until all nodes have
 * confirmed that their output is in place. */
#define EXCHANGE_UNCONFIRMED_NAMED 64u
struct exchange_unconfirmed {
    char id[EXCHANGE_ID_SIZE];
    uint32_t count;                                 /* nodes that have not, */
    uint32_t node[EXCHANGE_UNCONFIRMED_NAMED];      /* and the first of them, rising */
    char reason[sizeof(((struct error *)0)->text)]; /* why, and what becomes of that, for people */
};

struct exchanges;
/* What a client has asked for here, or entered, until it has been told how that ended. */
struct job;

struct exchanges_setup {
    struct router *router;
    struct shares *shares;         /* must outlive the exchanges */
    const struct storage *storage; /* must outlive the exchanges */
    struct workers workers;        /* what takes long runs there */
    uint64_t memory_budget;        /* bytes for blocks on their way, all exchanges together */
    double link_mbit;              /* nominal rate; 0 = unknown */
    uint64_t link_burst;           /* bytes that a link passes at once after a pause */
    double daemons_per_processor;  /* that handle messages in turn; 1: a machine of its own */
    struct sessions sessions;      /* open NULL: there are no groups */
    /* May be NULL: schedules have been counted, who asked for candidates may ask again. */
    void (*planned)(void *context);
    void *planned_context;
};

const char *exchange_state_name(enum exchange_state state);
bool exchange_has_ended(enum exchange_state state);

#endif
