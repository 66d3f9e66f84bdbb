/* The exchanges of one node, from what a client asks for to what every node has delivered.
 *
 * What a client asks for, or enters (a barrier or group), is a job (job.c). It has one attempt after the other until
 * one of them is not withdrawn:
 *
 *     WAITING <--> ENTERED      at its root; at any other node, or not the root yet
 *         ^           ^
 *         v           v         begun by the root; prepared by the root
 *         UNDER_WAY ------> ENDED
 *
 * An attempt is one try to carry it out on all nodes. A node where nobody has asked for it has no job.
 *
 *             STARTING                                  at the root: no other node knows of it
 *                |
 *        prepare v
 *    (sizes   OPENING            sized: sizes go up
 *     differ)    |
 *                v
 *             OPENED             layout comes down
 *                |
 *                v
 *            PREPARING           own and children's parts: ready goes up
 *                |
 *                v
 *              READY             go comes down
 *                |
 *                v  repeated up
 *             RUNNING <--------------> PAUSED      rounds: round_done up, round_go down
 *                |     go down
 *      done up   +---------------> FINISHED        nothing to keep
 *                |        \------> COMMITTED       the same at the root
 *                v
 *      DONE / DECIDING (root)
 *                |   commit comes down
 *                v
 *           COMMITTING ----------> COMMITTED       confirm goes to the root
 *
 * From every state but DECIDING and COMMITTING an attempt can fail: a node tells the root (objection) and is
 * FAILING, the root decides for all (verdict): FAILED. A node that is DONE and hears nothing any more is IN_DOUBT and
 * asks. Until the decision (of a barrier: before `go`; of a group at any time) the root can also withdraw an attempt
 * (retry.c), and its job waits for the next one. If there is none, what was WITHDRAWN has FAILED. The same as tables,
 * with what may follow what, is state.c and job.c; which message may come in which state is messages.c.
 *
 * Waves run over the spanning tree of the exchange's root (schedule/tree.h); in each one a node
 * hears from its children before it tells its parent. Of the rounds `window` may be under way at the
 * same time, so their waves overlap: round k + window starts on a node after round k is finished on
 * all. A session of several exchanges back to back is one exchange here: its repetitions are rounds
 * that go on counting.
 *
 * Every exchange ends committed, failed (everywhere with the same error) or in doubt. */
#ifndef TORUSD_EXCHANGE_EXCHANGE_H
#define TORUSD_EXCHANGE_EXCHANGE_H

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
    uint32_t mended;                 /* pieces that came again, because they had arrived damaged */
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
    uint32_t reroutes; /* times that it began anew because a link or node went down, */
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

/* Returns NULL with *e if there is no memory, or the storage cannot tell what is on record. */
struct exchanges *exchanges_new(const struct exchanges_setup *setup, struct error *e);
/* Ends all exchanges on this node without a word to the others (their links go down). */
void exchanges_free(struct exchanges *all);

/* The router's handler calls these. */
int exchanges_frame(struct exchanges *all, unsigned port, const struct peer_message *message,
                    const struct extents *body, uint32_t body_length, struct error *e);
struct outgoing *exchanges_next(struct exchanges *all, unsigned port);
void exchanges_topology(struct exchanges *all);

uint64_t exchanges_deadline(const struct exchanges *all);
void exchanges_tick(struct exchanges *all);

/* Asks for an exchange on all nodes, with this one as its root; it waits for its turn. Returns it
 * (good until the client is told that it has ended) or NULL with *e if it is refused right here.
 * `spec` and `client` are copied. */
struct job *exchange_start(struct exchanges *all, const struct spec *spec,
                           const struct exchange_client *client, struct error *e);

/* Asks that it ends: it fails everywhere, unless it has already been decided to commit. The client
 * is told how it ended. */
void exchange_cancel(struct job *j);

/* The client has gone: the same, but it is not called again, and *j is no longer good. */
void exchange_abandon(struct job *j);

/* The client wants to hear nothing more of it: it goes on, and *j is no longer good. */
void exchange_release(struct job *j);

/* The same, and it fails everywhere for this reason, unless it has been decided to commit it. */
void exchange_give_up(struct job *j, const struct error *why);

/* Whether a barrier may have ended at other nodes, or a group may have been opened there, although it has failed at
 * this one. False is certain. */
bool exchange_may_have_gone(const struct job *j);

/* Whether it is certain that it has not been decided to commit it, nor will be if this node, its root, stops now. */
bool exchange_is_undecided(const struct job *j);

/* Good until the client is told, but it changes when the exchange begins anew because a node was
 * busy or a link went down. */
const char *exchange_id(const struct job *j);
/* Of a barrier or group that not all have entered: their number, and their ranks ("3, 7", as many as
 * fit into `size`, 32 or more, bytes), as far as they are in branches below this node that have not
 * been heard of as a whole. Node 0 has all below it; another node that has not heard of node 0 names
 * it alone. */
uint32_t exchange_missing(const struct job *j, char *list, size_t size);
void exchange_progress(const struct job *j, struct exchange_progress *progress);

/* Running ones first, then the last that ended, youngest first; at most `most`. Returns how many.
 */
size_t exchanges_list(const struct exchanges *all, struct exchange_info *info, size_t most);
/* What is on record, the youngest first; at most `most`. Returns how many. */
size_t exchanges_unconfirmed(const struct exchanges *all, struct exchange_unconfirmed *list,
                             size_t most);
unsigned exchanges_under_way(const struct exchanges *all); /* barriers and groups too */
uint64_t exchanges_reserved(const struct exchanges *all);

/* The schedules that clients have given to this node, or neighbours (schedules.h). */
struct schedules *exchanges_schedules(struct exchanges *all);

/* --- what predictions are made with (calibration.h) --- */

/* What this node knows; version 0: nothing. */
const struct calibration *exchanges_calibration(const struct exchanges *all);

/* What predictions are made with: what was measured, else the default costs. */
struct predict_costs exchanges_costs(const struct exchanges *all);

/* What engine_setup.relayed is on the links of this node. */
uint32_t exchanges_relayed_frame(const struct exchanges *all);

/* New costs for all nodes, measured at this time, or NULL: back to the default costs. Returns 0, or
 * -1 with *e if the costs are out of range. */
int exchanges_calibrate(struct exchanges *all, const struct predict_costs *costs,
                        uint64_t measured_at, struct error *e);

const char *exchange_state_name(enum exchange_state state);
bool exchange_has_ended(enum exchange_state state);

/* Whether everything that must hold between two events does: the invariant of every exchange's
 * state, and the sum of what they have reserved. Returns 0, or -1 with *e. */
int exchanges_check(const struct exchanges *all, struct error *e);

#endif
