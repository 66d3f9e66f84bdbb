/* Shared by the files of this folder only, from the top down. Some still call upward: scripts/lint lists them.
 *
 *     exchanges   the public functions; what sources, sinks and the planner tell
 *     messages    the table: message, states, side, handler
 *     turn        the queue of jobs at their root: begins attempts
 *     job_watch   what a fault or a deadline makes of a job that waits
 *     advance     goes on as far as what has been heard and done allows
 *     settle      how doubts and decisions come together
 *     prepare     opening, sizes, memory, engine: until a node is ready
 *     rounds      go, rounds, repetitions: until a node is done
 *     failure     what a fault or a deadline makes of an attempt
 *     commit      decision, commit, confirmation
 *     fail        the root fails it for all, any other node objects
 *     retry       withdrawn everywhere: a node was busy, or a link went down
 *     verdict     messages about failures, and which have been passed on
 *     doubt, decision, unconfirmed, client, barrier, standing, costs, choose, report
 *     state       one function changes an attempt's state; every state has an invariant
 *     job         the same for jobs
 *     job_kind    what differs between exchanges, barriers and groups: one table
 *     opening     this node's blocks, memory and engine
 *     resume      what has arrived in attempts that were withdrawn
 *     absent      nodes that no link leads to, and since when
 *     around      what an attempt goes around, its tree
 *     wave, table, id
 */
#ifndef TORUSD_EXCHANGE_RECORD_EXCHANGE_RECORD_H
#define TORUSD_EXCHANGE_RECORD_EXCHANGE_RECORD_H

/* A table that has no memory for an entry says so. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "daemon/engine/arrived.h"
#include "daemon/engine/piece_digest.h"
#include "daemon/exchange/exchange.h"
#include "daemon/exchange/record/job_kind.h"
#include "daemon/planning/planner.h"
#include "daemon/planning/schedule_store.h"
#include "daemon/schedule/tree.h"

enum presence { NONE, MAY, MUST };

/* A state of an attempt. `next`: the states that may follow. */
struct attempt_state {
    const char *name;
    uint32_t next;
    /* Its invariant: */
    enum presence blocks; /* source and sink */
    enum presence engine; /* and memory reserved for it */
    enum presence owed;   /* parts of a wave */
    bool root, other;     /* which nodes can be in it */
    /* What several places ask: */
    bool unheard;   /* no other node has heard of it */
    bool prepares;  /* this node gets ready, or waits for those below */
    bool before_go; /* not the root: `go` has not come here. FAILING: perhaps */
    bool runs;      /* between the first `go` and the end of the last repetition, */
    bool moves;     /* and blocks are moved: there may be rounds under way */
    bool repairs;   /* pieces of blocks may be asked for once more */
    bool
        may_be_committed; /* this node's output is finished, and may have been committed elsewhere */
    bool decided; /* the root records its decision to commit, or it has: nothing fails any more */
    bool awaits_verdict; /* this node has told the root that it cannot go on, */
    bool over;           /* or has ended: nothing is expected here any more but a verdict */
    bool ended;
};
extern const struct attempt_state attempt_states[EXCHANGE_STATES];

#define OWN_PART (1u << 31) /* in exchange.owed, beside ports: this node's own part of the wave */

/* From the first link that goes down until an exchange begins anew around it: the links of a process that
 * dies are not all reported at once, and it may be complete without that link. */
#define LINK_LOSS_GATHER_TIME (50 * MILLISECONDS)
/* Since none of its links is up, until a node is taken for dead: a connection that is lost is replaced within
 * that time (BACKOFF_FIRST of the router, and the handshake), and a node may have none but one. */
#define GONE_TIME (150 * MILLISECONDS)
/* How long a node waits for the root's verdict. */
#define VERDICT_TIME (4 * SECONDS)
/* For how long a node that waits for its group to go on has heard nothing before it asks: longer than nodes
 * remember that they have passed a verdict on, which may have gone past this node while it was cut off. */
#define ASK_TIME (10 * SECONDS)
/* Nodes wait that much longer than their root. */
#define PEER_PATIENCE (5 * SECONDS)
/* How long a client waits for an output that something is in the way of. */
#define OBSTACLE_TIME (10 * SECONDS)
/* How often a node in doubt asks, and a root reminds who has not confirmed; and how often either looks
 * whether the torus is whole, without which nobody is asked. */
#define ASK_EVERY (2 * SECONDS)
#define LOOK_EVERY (ASK_EVERY / 4)
/* How long an exchange without a timeout of its own waits for its turn. */
#define LONGEST_WAIT (3600 * SECONDS) /* or for nodes that are down */

/* What has been reported from this node and below; the root's is everybody's. */
struct report {
    struct exchange_node_report *node;
    uint32_t nodes;
    uint8_t *reported; /* of all nodes, a bit each */
    uint32_t *step_blocks, *step_messages;
    uint32_t steps;
    uint64_t sent_digest, delivered_digest;
    enum check check; /* of this node's sink */
};

/* A sink between two attempts: the context of its events. */
struct parked {
    struct sink *sink;
    struct parked **at;   /* who has it, */
    struct arrived *here; /* and what is lost with it */
};

/* A block, as has been told so far: bytes that it has, and that have arrived. */
struct resumed_pair {
    uint64_t whole, arrived;
};

/* It has begun before, and what has arrived since then does not come again. */
struct resumed {
    struct arrived here;  /* by origin: before this attempt; */
    struct arrived there; /* and by destination, of this node's blocks, as all have said */
    uint64_t bytes;       /* of others' blocks that have arrived here, */
    uint64_t all_bytes;   /* and everywhere */
    uint64_t *size;       /* by origin: of its block for this node; ENGINE_NOT_TOLD */
    uint64_t *elsewhere;  /* by origin: bytes of its blocks that have arrived at others */
    uint64_t *incoming;   /* by origin: bytes that are missing here */
    uint64_t went;        /* when the first attempt's `go` came; 0: nothing is left of that here */
    uint8_t *heard;       /* by node: from which sides its message has come */
    bool said;            /* what is here */
    bool wrapped;         /* own.sink leaves out what is here */
    /* Files: */
    struct resumed_pair
        *pairs;      /* root: by both nodes, of the first one's block for the second; or NULL */
    uint64_t *marks; /* by destination: source_ops.mark(); NULL: nothing has been moved */
    struct parked *parked; /* the sink of the attempt before, until it is open again */
};

struct repair_query {
    uint32_t destination, length;
    uint64_t offset;
};

struct pending_repairs {
    /* Of the engine's first damaged piece: */
    bool asked; /* for the next part, */
    uint64_t asked_at;
    uint32_t have; /* bytes */
    struct piece_mark mark;
    struct piece_states states;
    uint32_t tries, mended; /* of all pieces */
    /* What others have asked for, in order; at most one of each. */
    struct repair_query *query;
    uint32_t queries;
};

/* This node's blocks and what moves them. */
struct own {
    struct resumed *resumed;         /* NULL: all blocks come whole */
    struct pending_repairs *repairs; /* NULL: nothing has been damaged */
    uint64_t kept_bytes;             /* root: that had arrived everywhere when this attempt began */
    struct planned *planned;
    struct source *source;
    struct sink *sink;
    unsigned closing;                 /* sources and sinks whose close() goes on */
    uint64_t largest_block;           /* here and, from what they have told, below */
    uint64_t whole_block;             /* the same before some of it had arrived */
    uint64_t bytes_here, bytes_below; /* of all blocks for other nodes */
    uint64_t round_bytes;             /* 0: not known yet */
    uint32_t window;
    uint64_t reserved; /* for `user` of the exchange */
    struct engine *engine;
    uint64_t delivered_bytes; /* by an engine that has gone */
};

struct rounds {
    uint32_t repetition; /* the one under way */
    uint64_t count;      /* of one repetition; all that follows counts rounds through */
    uint64_t round;      /* the first that has not been finished here and by all below */
    uint64_t admitted;   /* rounds below this one may leave from here */
    uint64_t finished_below[TORUS_MAX_PORTS]; /* so many, says the child at the port */
    uint64_t first_went;                      /* when the first `go` came, */
    uint64_t went;                            /* and the last */
    uint64_t slowest; /* nanoseconds that this repetition took the slowest node here and below */
    uint64_t all_ns;  /* root: from the first `go` to the end of the last repetition */
};

/* Links have gone down meanwhile. */
struct fault {
    uint64_t at;        /* ROUTER_NEVER: none */
    uint64_t judged_at; /* last, by the root, */
    uint32_t down;      /* which needs this node, and takes it for down; TORUS_NO_NODE: none */
    struct error e;
    uint32_t lost; /* ports whose links have been down: nothing is sent or taken there */
    bool unseen; /* of a job: links that were down when it began to wait have not been looked at */
    uint64_t
        restart_at; /* a group that is open begins anew then, at its root, as links that it goes
                        * around are up again; 0: none are */
};

#define NO_FAULT ((struct fault){.at = ROUTER_NEVER, .down = TORUS_NO_NODE})
/* The same of a job that waits for its next attempt: links that went down before are not told of again. */
#define UNSEEN_FAULT ((struct fault){.at = ROUTER_NEVER, .down = TORUS_NO_NODE, .unseen = true})

/* Links that are out of order, which it goes around, and nodes, which it leaves out. */
struct avoided {
    struct damage damage;
    uint8_t *parent;             /* by node: its port towards the root (tree_find()) */
    const struct detour *detour; /* NULL: not found yet, not needed any more, or for a barrier */
};

enum client_state { CLIENT_NONE, CLIENT_WAITING, CLIENT_TOLD };

/* What a job does next; the table of what may follow what is in job.c. */
enum job_state {
    JOB_WAITING, /* at its root: for its turn, or for its next attempt */
    JOB_ENTERED, /* a barrier or group: its root has not prepared it here, or has withdrawn what it had prepared */
    JOB_UNDER_WAY, /* it has an attempt */
    JOB_ENDED,     /* as its last attempt has */
};
#define JOB_STATES (JOB_ENDED + 1u)

/* A state of a job. `next`: the states that may follow. */
struct job_state_row {
    const char *name;
    uint32_t next;
    bool waits;     /* for an attempt that other nodes know of */
    bool starting;  /* it may have one that they do not know of */
    bool under_way; /* it has one that other nodes may know of */
    bool ended;     /* the attempt that it has, if any, has ended */
};
extern const struct job_state_row job_states[JOB_STATES];

/* A name that other nodes know an attempt by. */
struct name {
    char id[EXCHANGE_ID_SIZE]; /* "": none */
    uint32_t handle;
};

/* Times of repetitions at the root, of all attempts that count. */
struct repetitions {
    uint64_t *each; /* nanoseconds; there is room for `room` */
    uint32_t count, room;
    uint32_t kept; /* so many were complete in attempts that have been withdrawn, and count; */
    uint64_t first_went; /* then, when the first of these began */
};

/* What a client has asked for at its root (this node), or has entered here. It lasts from then until its client
 * has been told how it ended, however many attempts that takes. A node where nobody has asked for an attempt or
 * entered it has no job for it. */
struct job {
    struct job *prev, *next; /* in exchanges.jobs, in the order of asking */
    struct exchanges *all;
    enum job_state state;
    struct spec spec;          /* as asked for here */
    struct schedule *schedule; /* at its root: that the spec names */
    uint32_t user;
    enum client_state client_state;
    struct exchange_client client;

    struct attempt *
        attempt; /* UNDER_WAY: that one; ENDED: the last one, NULL without memory; WAITING: one that
                              * no other node knows of yet (STARTING), or NULL; ENTERED: NULL */
    struct attempt *last; /* the one before, which was withdrawn; NULL: none has been */
    struct name name;     /* of its first attempt until that begins; then of the last one */
    bool name_known;      /* other nodes have heard it: the next attempt needs another */
    char resumes
        [EXCHANGE_ID_SIZE]; /* the id of the first attempt, if the next one goes on where that was: what
                                     * has arrived does not come again; of a group: it has been open. Else "" */
    struct name former;     /* root: of the last attempt that ran, so that all nodes know of it */

    uint64_t began, deadline, timeout_ns;
    struct error
        failure; /* WAITING: why the last attempt was withdrawn, or why it has to wait; ENTERED: why this
                           * node cannot go on with its group; ENDED: why it failed, without an attempt that says so */
    struct fault fault; /* WAITING, ENTERED: links that are down */

    /* The root's: */
    uint64_t retry_at;   /* a node was busy; 0: it may begin */
    uint64_t pause;      /* the last one before a retry */
    uint64_t since;      /* it waits */
    uint64_t back_at;    /* the last attempt was withdrawn */
    bool asked;          /* it holds a share of the exchanges that have been asked for here, */
    bool placed;         /* and of those that have begun */
    uint32_t reroutes;   /* attempts that were withdrawn because a link went down, */
    uint32_t damages;    /* and because something was damaged on its way, */
    uint64_t damaged_at; /* the last time then */
    struct repetitions repetitions;

    /* What is entered: */
    uint64_t entered_deadline,
        entered_timeout_ns; /* the client's, while no attempt has a tighter one */
    uint64_t asks_at; /* a node that waits for the next attempt of a group asks its root then */
    bool
        ready; /* the root may have heard that it is entered here, and not have said yet that it has told
                       * nobody to go */
    uint64_t reserved; /* of a group that has been open, between two attempts; for `user` */
};

/* One try to carry a job out on all nodes. It is made, and it is freed; it is never used again. */
struct attempt {
    UT_hash_handle hh;           /* by handle, in exchanges.table */
    struct attempt *prev, *next; /* in exchanges.active or .ended */
    struct exchanges *all;
    struct job *job; /* NULL: nobody has asked for it here, or that job is over */
    uint32_t handle;
    char id[EXCHANGE_ID_SIZE];
    char resumes[EXCHANGE_ID_SIZE]; /* "", or the id of the first attempt (struct job) */
    uint32_t root;
    uint32_t id_boot;   /* of the root, as its id says; */
    uint64_t root_boot; /* and as known when this attempt was made, */
    uint64_t named_at;  /* which was then */
    uint32_t user;      /* the job's, else who has asked for it at its root, as that says */
    struct tree_node tree;
    struct avoided *avoided; /* NULL: the torus is whole */
    bool avoids_links;       /* spec_avoids_links(), of what the root was asked for */
    struct spec spec;
    struct schedule
        *schedule; /* that the spec names, until it has ended and its client been told */
    const struct algorithm *algorithm; /* NULL: not chosen yet (spec_chooses_late()), or not known
                                        * yet or any more (schedule, around) */
    enum mode mode;

    enum exchange_state state;
    uint32_t owed;        /* child ports (bits) and OWN_PART that this wave still owes */
    struct error failure; /* when FAILING, FAILED, WITHDRAWN or IN_DOUBT */
    bool damaged;         /* FAILING: and it was damage on the way here */
    bool verdict_heard;   /* it failed by the root's decision, not only by its own: */
    bool before_go;       /* and that it had told nobody to go, in any attempt */
    uint64_t began, deadline, timeout_ns;

    struct fault fault;
    struct own own;
    struct rounds rounds;
    struct report report;

    struct doubt *doubt; /* durable: memory for one, if it comes to that */
    uint32_t *confirmed; /* COMMITTING: nodes below that have confirmed, this one too */
    uint32_t confirmed_count;
};

/* A finished output of this node whose outcome is not known, or cannot be carried out yet. */
struct doubt {
    struct doubt *next;
    char id[EXCHANGE_ID_SIZE];
    bool committed; /* the outcome is known */
    bool resolving; /* and being carried out */
};

/* What this node, as a root, has decided to commit. */
struct decision {
    struct decision *next;
    char id[EXCHANGE_ID_SIZE];
    uint64_t remind_at;
    uint64_t reminded_at;    /* when the last round of reminders began; 0: there was none */
    uint32_t remind_next;    /* the node that it goes on with; 0: it is over */
    uint32_t confirmed;      /* nodes, with those that need not */
    uint32_t obstacle_at;    /* a node that could not yet, TORUS_NO_NODE: none is known */
    uint64_t obstacle_since; /* when that was heard */
    char obstacle[sizeof((struct error *)0)->text];
    uint8_t by[]; /* bit per rank */
};

/* A node that no link leads to. */
struct absence {
    uint64_t down_since;        /* ROUTER_NEVER: it is not down */
    uint64_t unreachable_since; /* ROUTER_NEVER: links that are up lead to it */
};

#define VERDICTS_REMEMBERED 256u

struct exchanges {
    struct exchanges_setup set;
    struct job *jobs;       /* in the order of asking */
    struct attempt *table;  /* all, by handle */
    struct attempt *active; /* in the order of their beginning */
    struct attempt *ended;  /* the youngest last, until they are forgotten */
    unsigned active_count, ended_count;
    unsigned tellable; /* jobs that have ended and whose clients are to be told in the next tick */
    bool start_due;    /* something has changed for those that wait */
    uint32_t counter;
    struct block_events block_events; /* of all blocks; the context is the exchange */
    struct calibration calibration;
    uint32_t links_up;         /* ports (bits), as heard last */
    uint64_t changes;          /* of the topology: how many there have been, */
    uint64_t changed_at;       /* and when the last one was heard of */
    struct absence *absent;    /* by rank, */
    bool apart;                /* and those that are unreachable may be alive */
    uint32_t calibration_told; /* ports (bits) whose neighbours have been told of it */
    struct planner *planner;
    struct schedules *schedules;
    double least_pause; /* seconds between two exchanges of a session, seen so far */
    uint32_t next_handle[TORUS_MAX_PORTS];    /* whose turn it is at a port */
    uint64_t unknown_logged[TORUS_MAX_PORTS]; /* when a message was last ignored aloud */
    uint64_t verdict[VERDICTS_REMEMBERED];    /* hashes of ids unknown here, for flooding */
    uint64_t verdict_at[VERDICTS_REMEMBERED]; /* when they were heard */
    unsigned next_verdict;                    /* the oldest */
    struct kept_trees *trees;
    struct kept *kept; /* what had arrived of exchanges that may begin anew (resume.c) */
    struct doubt *doubts;
    struct decision *decisions;
    uint64_t ask_at;     /* about doubts, and reminders of decisions; ROUTER_NEVER: none */
    struct error broken; /* code ERROR_NONE, or an invariant that has not held */
};

static inline struct router *router_of(const struct attempt *x)
{
    return x->all->set.router;
}

static inline const struct torus *torus_of(const struct attempt *x)
{
    return router_torus(x->all->set.router);
}

static inline uint32_t rank_of(const struct attempt *x)
{
    return router_rank(x->all->set.router);
}

static inline bool attempt_is_root(const struct attempt *x)
{
    return x->tree.parent < 0;
}

static inline const struct attempt_state *state_of(const struct attempt *x)
{
    return &attempt_states[x->state];
}

static inline bool job_waits(const struct job *j)
{
    return job_states[j->state].waits;
}

static inline bool job_is_under_way(const struct job *j)
{
    return job_states[j->state].under_way;
}

static inline bool job_has_ended(const struct job *j)
{
    return job_states[j->state].ended;
}

/* The attempt that is under way, else the last one, which was withdrawn; NULL: there is none. */
static inline struct attempt *job_last_attempt(const struct job *j)
{
    return job_is_under_way(j) ? j->attempt : j->last;
}

static inline const struct job_kind *kind_of(const struct attempt *x)
{
    return kind_of_spec(&x->spec);
}

/* A client of this node waits for what becomes of it. */
static inline bool attempt_is_awaited(const struct attempt *x)
{
    return x->job != NULL && x->job->client_state == CLIENT_WAITING;
}

/* There is a result to commit. */
static inline bool exchange_is_durable(const struct attempt *x)
{
    return x->own.sink != NULL && x->own.sink->durable;
}

/* The rounds of the repetition under way are these, */
static inline uint64_t exchange_first_round(const struct attempt *x)
{
    return x->rounds.repetition * x->rounds.count;
}

/* up to this one, which is not one of them. */
static inline uint64_t exchange_end_round(const struct attempt *x)
{
    return (x->rounds.repetition + 1) * x->rounds.count;
}

static inline bool exchange_last_repetition(const struct attempt *x)
{
    return x->rounds.repetition + 1 == x->spec.repeat;
}

static inline bool commit_log_has(const struct decision *d, uint32_t rank)
{
    return (d->by[rank / 8] & 1u << rank % 8) != 0;
}

/* Doubts and decisions are looked at then, at the latest. */
static inline void ask_by(struct exchanges *all, uint64_t at)
{
    if (at < all->ask_at)
        all->ask_at = at;
}

/* Whether a node has blocks to send. */
static inline bool exchange_sends(const struct attempt *x, uint32_t rank)
{
    return kind_of(x)->has_blocks &&
           (x->spec.operation != OPERATION_BROADCAST || rank == x->spec.sender);
}

/* id.c */
uint32_t exchange_root_of(const char *id);
uint64_t exchange_hash(const char *id);
bool exchange_is_id_of(const char *id, uint32_t root);
/* Whether the first of two ids of one root is the older one; of two starts of it nobody can tell. */
bool exchange_is_before(const char *id, const char *other);

/* table.c */
struct attempt *attempt_find(struct exchanges *all, uint32_t handle);
/* The one under way here, else the youngest that has ended; NULL: none. */
struct attempt *attempt_find_id(const struct exchanges *all, const char *id);
/* STARTING, and of nobody's job yet. NULL: no memory. */
struct attempt *attempt_new(struct exchanges *all, const struct name *name, uint32_t root);
/* A name of this node's own that no attempt or job has. */
void attempt_new_name(struct exchanges *all, struct name *name);
void attempt_forget(struct attempt *x);
/* What it needs of its schedule or its routes, if any, is over. */
void attempt_leave_schedule(struct attempt *x);
/* With the exchanges, or, if its source or sink is still closing, after that. */
void attempt_let_go(struct attempt *x);

/* job.c */
/* Takes *spec over on success. NULL: no memory. */
struct job *job_new(struct exchanges *all, struct spec *spec, const struct exchange_client *client);
/* It has no attempt under way; those that it had are no longer its own. */
void job_free(struct job *j);
void job_enter(struct job *j, enum job_state state);
/* Its attempt has begun at the root: other nodes hear of it. */
void job_begin(struct job *j);
/* This is its attempt from now on, as its root has prepared it. */
void job_take(struct job *j, struct attempt *x);
/* An attempt ends, and so does its job; or, if it was withdrawn, the job waits for the next one, at its root or where it
 * was entered. */
void attempt_end(struct attempt *x, enum exchange_state state);
/* Gives up an attempt that no other node knows of. */
void job_drop_attempt(struct job *j);
/* Others may have its place among those that run. */
void job_give_place(struct job *j);
/* Ends a job that waits for an attempt: for this reason. What other nodes know of it, if it has led or been open, has failed, too; */
void job_end_failed(struct job *j, const struct error *why);
/* or as its root says of the attempt that it has withdrawn before. */
void job_end_by_verdict(struct job *j, const struct error *why);
/* Sources and sinks of its attempts that are still closing. */
unsigned job_closing(const struct job *j);
bool job_is_tellable(const struct job *j);
/* Its group has been open here. */
bool job_has_been_open(const struct job *j);
/* The same at another node than its root, which has withdrawn it: this node waits for it to restart the group. */
bool job_awaits_restart(const struct job *j);

/* client.c: tells its client, once, of an error or, if `e` is NULL, of its result. */
void client_tell(struct job *j, const struct error *e);

/* advance.c: goes on as far as what has been heard and done allows. */
void attempt_advance(struct attempt *x);

/* state.c */
/* It is in another state: what it has no longer is given back. Where that is an end: attempt_end(). */
void attempt_enter(struct attempt *x, enum exchange_state state);
/* One of its source and sink has been closed. */
void attempt_closed_one(struct attempt *x);

/* wave.c */
void tree_messages_begin_wave(struct attempt *x);
int tree_messages_child_part(struct attempt *x, unsigned port, struct error *e);
bool tree_messages_is_child(const struct attempt *x, unsigned port);
void tree_messages_send(struct attempt *x, unsigned port, const struct peer_message *message);
void tree_messages_to_parent(struct attempt *x, const struct peer_message *message);
void tree_messages_to_children(struct attempt *x, const struct peer_message *message);
/* What tree_messages_parents() has found. NULL: no memory. */
struct kept_trees *tree_messages_trees_new(void);
void tree_messages_trees_free(struct kept_trees *trees);
/* The tree of a node over the links that are up (tree_find()), valid until the next call; NULL: it is
 * that of the whole torus, or there is no memory. */
const uint8_t *tree_messages_parents(const struct exchanges *all, uint32_t rank);
/* The port one link nearer to a node: along its tree while the torus is whole, else the shortest way
 * over the links that are up. -1: it is this node, or there is no way. */
int tree_messages_port(const struct exchanges *all, uint32_t rank);
void tree_messages_towards(struct exchanges *all, uint32_t rank,
                           const struct peer_message *message);

/* mend.c */
void piece_repair_advance(struct attempt *x);
void pending_repairs_free(struct attempt *x);
uint32_t pending_repairs_count(const struct attempt *x); /* pieces that have come again here */
/* When what was asked for should have come; and it has not. */
uint64_t piece_repair_deadline(const struct attempt *x);
void piece_repair_late(struct attempt *x);
int again_heard(struct attempt *x, unsigned port, const struct peer_again *message,
                struct error *e);
int mended_heard(struct attempt *x, unsigned port, const struct peer_mended *message,
                 struct error *e);

/* around.c */
/* Whether such an exchange needs no more than that the torus is connected. */
bool spec_avoids_links(const struct spec *spec);
/* It has routes that were made for that, not an algorithm's of the registry. */
bool avoided_has_routes(const struct attempt *x);
/* Which nodes need not take part. */
struct left_out {
    bool down;         /* those that cannot be reached, if they can be taken for down */
    const bool *nodes; /* by node: these, whether they are up or not; NULL: none */
};
/* A group that has been shrunk goes on with the members that it has. Valid until x->avoided changes. */
struct left_out membership_left_out(const struct attempt *x);
struct left_out membership_left_out_next(const struct job *j); /* of its next attempt */
/* Which is down, and not one of these (by node; NULL: none); TORUS_NO_NODE: none is. */
uint32_t membership_first_down(const struct exchanges *all, const bool *gone);
/* The links that are not up, as far as this node knows, and the nodes that are left out. Returns 0, or
 * -1 with *e (no memory). */
int membership_view(const struct exchanges *all, struct left_out out, struct damage *d,
                    struct error *e);
/* Whether that view suffices: all nodes that have to take part can be reached. Returns 0, or -1 with *e. */
int membership_check(const struct exchanges *all, struct left_out out, const struct damage *d,
                     struct error *e);
/* The same of what this node knows now. */
int membership_check_now(const struct exchanges *all, struct left_out out, struct error *e);
/* From now on it goes around these links, and has its tree; takes *d over, also on failure. If they are
 * others than before, a root's algorithm has to be chosen again. Returns 0, or -1 with *e. */
int avoided_set(struct attempt *x, struct damage *d, struct error *e);
void avoided_drop(struct attempt *x);
/* Only what it has gone around is of interest any more. */
void avoided_leave_routes(struct attempt *x);
/* A node's part of its tree. */
void avoided_tree(const struct attempt *x, uint32_t rank, struct tree_node *out);
/* The child port of this exchange's tree that a node is below, -1 for this node and for those that are
 * not below it. */
int avoided_branch(const struct attempt *x, uint32_t node);
/* The node's port towards the root, over other links than these; -1: none. Returns 0, or -1 with *e. */
int avoided_parent(const struct damage *d, uint32_t root, uint32_t rank, int *port,
                   struct error *e);
/* Whether this node has the same view. Returns 0, or -1 with *e (ERROR_BUSY, no memory): the root may
 * know more when it begins anew. */
int membership_agrees(const struct exchanges *all, struct left_out out, const struct damage *d,
                      struct error *e);
/* Whether all nodes that are left out of this view can be taken for down. */
bool membership_are_down(const struct exchanges *all, const struct damage *d);
/* Whether a link that it goes around is up, between nodes that take part. */
bool avoided_are_restored(const struct attempt *x);
/* Whether the node takes no part, and how many do. */
bool avoided_is_gone(const struct attempt *x, uint32_t rank);
uint32_t avoided_nodes(const struct attempt *x);
/* How many blocks of others a node that takes part takes in. */
uint64_t exchange_takes(const struct attempt *x, uint32_t rank);
/* Whether there is a link at this port, between two nodes that take part. */
bool avoided_is_between_left(const struct damage *d, uint32_t rank, unsigned port);
/* The node's ports (bits) whose links it goes around. */
uint32_t avoided_ports(const struct attempt *x, uint32_t rank);
/* Whether a link or node is down that it needs; then *e says which. */
bool avoided_fault(const struct attempt *x, struct error *e);
/* Whether something is down that a job cannot begin without; then *e says what. */
bool membership_prevents(const struct job *j, struct error *e);
/* Fills prepare->without and ->missing, for prepare_links_free(). Returns 0, or -1 without memory and
 * with nothing to free. */
int prepare_links_pack(const struct attempt *x, struct peer_prepare *prepare);
void prepare_links_free(struct peer_prepare *prepare);
/* Returns 0 with *d, or -1 with *e (ERROR_PROTOCOL, no memory) and nothing to free. */
int prepare_links_unpack(const struct torus *t, const struct peer_prepare *prepare,
                         struct damage *d, struct error *e);

/* absent.c */
/* Returns 0, or -1 if there is no memory. all->absent is the caller's to free. */
int absent_init(struct exchanges *all);
/* The topology has changed. */
void absent_note(struct exchanges *all);
/* It is taken for down: no link of it is up, or it went down together with its neighbours. Else, if it
 * cannot be reached, it may be alive. */
bool absent_is_down(const struct exchanges *all, uint32_t rank);
bool absent_is_unreachable(const struct exchanges *all, uint32_t rank);
/* When nothing is expected of a node any longer that cannot be reached, unless it is heard of before.
 * ROUTER_NEVER: it can be reached. */
uint64_t absent_given_up_at(const struct exchanges *all, uint32_t rank);
/* When a node that seems to be down is taken for dead, unless it is heard of before. ROUTER_NEVER: it is up. */
uint64_t absent_dead_at(const struct exchanges *all, uint32_t rank);
/* From the first link of a node that goes down until all of them have been reported: what its
 * neighbours have heard last may be a heartbeat apart, and not all of them notice at once. */
uint64_t absent_naming_time(const struct exchanges *all);

/* choose.c: the algorithm that is named; if that is the best of a family, the one that stands for
 * all of it; NULL: "auto". */
const struct algorithm *choose_named(const struct spec *spec);

/* choose.c: sets the algorithm and mode. Returns 1; 0 if schedules are being counted; or -1 with *e. */
int choose_for(struct attempt *x, struct error *e);

/* turn.c */
void start_queue_advance(struct exchanges *all);
void start_queue_set_capacities(struct shares *shares);
/* Sets *e: links are down, and it cannot go around them. Returns -1. */
int start_queue_refuse_links(const struct exchanges *all, struct error *e);

/* retry.c */
bool retry_may(const struct attempt *x);
/* Whether its job retries when a link goes down: it can go around links, and nothing is decided yet. */
bool retry_after_link_loss(const struct attempt *x);
void retry_pause(struct job *j); /* before its next attempt */
void retry_later(struct attempt *x, const struct error *busy);
/* A link went down: the same, without links that are down by then. */
void retry_without_links(struct attempt *x, const struct error *fault);
/* Whether its job retries when something was damaged on its way, and how. */
bool retry_after_damage(const struct attempt *x);
void retry_links_restored(struct attempt *x); /* links are up again */
void retry_damaged(struct attempt *x, const struct error *damage);
uint64_t retry_deadline(const struct job *j);

/* prepare.c */
/* By the sizes of the blocks, and the nominal rate of the links. */
uint64_t prepare_default_timeout(const struct attempt *x);
int prepare_heard(struct exchanges *all, unsigned port, const struct peer_prepare *prepare,
                  struct error *e);
void prepare_begin(struct attempt *x);
/* Names this node in *e, which refuses what the node at the port has told it; that one, too, if no root says so. */
void prepare_refuse(const struct exchanges *all, unsigned port, struct error *e);
/* This node cannot take part. */
void prepare_object(struct attempt *x, struct error *e);

/* prepare_check.c */
/* Whether it is a prepare that a root sends, to this node and over this link. Returns 0, or -1 with *e. */
int prepare_check(struct exchanges *all, unsigned port, const struct peer_prepare *prepare,
                  const struct damage *damage, struct error *e);
/* Whether this node can take part. Returns 0, or -1 with *e. */
int prepare_check_here(struct exchanges *all, const struct peer_prepare *prepare,
                       const struct spec *spec, const struct damage *damage, struct error *e);
/* Of a group that has been open. */
bool prepare_is_restart(const struct peer_prepare *prepare);
void prepare_advance(struct attempt *x);
int sized_heard(struct attempt *x, unsigned port, const struct peer_sized *sized, struct error *e);
int layout_heard(struct attempt *x, unsigned port, const struct peer_layout *layout,
                 struct error *e);
int ready_heard(struct attempt *x, unsigned port, const struct peer_ready *message,
                struct error *e);

/* opening.c: this node's own part of that. Each goes on as far as it can: 1 done, 0 something is
 * under way, -1 with *e. */
int local_resources_open(struct attempt *x, struct error *e);
int local_resources_make_engine(struct attempt *x, struct error *e);
/* Root only: how much goes in a round, at most; own.largest_block is everybody's, and the algorithm has
 * been chosen. */
int local_resources_choose_rounds(struct attempt *x, struct error *e);
void local_resources_release_engine(struct attempt *x);
void local_resources_close(struct attempt *x, bool keep);

/* resume.c */
/* The id of its first attempt, which generated blocks are made of. */
const char *attempt_first_id(const struct attempt *x);
/* Whether what has arrived in it need not come again in the next one. */
bool attempt_may_resume(const struct attempt *x);
/* Spans of one block that are told; more come again. */
uint32_t kept_blocks_spans_most(const struct attempt *x);
/* Bytes of a block; of files what has arrived is told exactly. */
uint64_t kept_blocks_bytes(const struct attempt *x);
/* What is kept of the exchange whose first attempt had this id is the caller's from now on. */
void kept_blocks_take(struct exchanges *all, const char *first, struct resumed *r);
/* The engine goes: what has arrived is noted, */
void kept_blocks_note(struct attempt *x);
/* and, when blocks are about to be closed, kept for the next attempt, with an output of files: then there is no
 * sink any more. */
void kept_blocks_keep(struct attempt *x);
/* Whether there may be a next one, which the root decides; */
bool attempt_may_be_followed(const struct attempt *x);
/* and there is none. */
void kept_blocks_drop(struct attempt *x);
void kept_blocks_free(struct exchanges *all);
/* What waits too long for a next attempt, or for a node that is down, goes. */
void kept_blocks_tick(struct exchanges *all, uint64_t now);
uint64_t kept_blocks_deadline(const struct exchanges *all);
/* Of an attempt that goes on. Each returns 0 (also if it is not one), or -1 with *e. */
int resumed_blocks_begin(struct attempt *x, struct error *e);
void resumed_blocks_ask(const struct attempt *x,
                        struct folder_request *request); /* for what is kept */
int resumed_blocks_wrap(struct attempt *x,
                        struct error *e);              /* its source and sink, which are open */
int progress_tell(struct attempt *x, struct error *e); /* the others what has arrived here */
int resumed_blocks_lay_out(struct attempt *x, struct error *e); /* all have told */
/* Generated blocks: the largest one, and bytes, of what is missing here. */
void resumed_blocks_sizes(struct attempt *x);
/* Root, all have told: the same of files, everywhere. Returns 0, or -1 with *e. */
int resumed_blocks_largest(struct attempt *x, struct error *e);
int arrived_heard(struct attempt *x, unsigned port, const struct peer_arrived *message,
                  struct error *e);

/* rounds.c */
void rounds_begin(struct attempt *x); /* root: all are ready */
void rounds_advance(struct attempt *x);
void rounds_resume(struct attempt *x); /* PAUSED without a parent: its turn in the loop */
int go_heard(struct attempt *x, unsigned port, const struct peer_go *message, struct error *e);
int round_done_heard(struct attempt *x, unsigned port, const struct peer_round_done *done,
                     struct error *e);
int round_go_heard(struct attempt *x, unsigned port, const struct peer_round_go *message,
                   struct error *e);
int repeated_heard(struct attempt *x, unsigned port, const struct peer_repeated *repeated,
                   struct error *e);
int done_heard(struct attempt *x, unsigned port, const struct peer_done *done, struct error *e);

/* commit.c */
void commit_decide(struct attempt *x); /* root: all have done */
void commit_advance(struct attempt *x);
int commit_heard(struct attempt *x, unsigned port, const struct peer_commit *message,
                 struct error *e);
/* The outcome has been heard from the root by another way than the wave. */
void commit_begin(struct attempt *x);
/* Takes what a child confirms, if it is waited for, to confirm it together with this node's. */
bool commit_collects(struct attempt *x, unsigned port, const uint32_t *rank, size_t count);
void commit_waits_no_longer(struct attempt *x);
/* Links have gone down: what was to come over them comes another way, or never. */
void commit_topology(struct attempt *x);
/* Root: when the client hears of the end, although not all nodes have confirmed. */
uint64_t commit_deadline(const struct attempt *x);

/* decision.c: the decisions of this node, as a root, that not every node has confirmed */
int commit_log_load(struct exchanges *all, struct error *e);
void commit_log_free(struct exchanges *all);
struct decision *commit_log_find(struct exchanges *all, const char *id);
/* Nodes that have not confirmed are reminded from then on. NULL: no memory. */
struct decision *commit_log_add(struct exchanges *all, const char *id, uint64_t remind_at);
void commit_log_drop(struct exchanges *all, struct decision *d);
unsigned commit_log_count(const struct exchanges *all);
/* It is on record. */
bool commit_log_is_on_record(const struct exchanges *all, const struct decision *d);
/* This node has taken no part, and nothing to confirm. After a restart of the root that is forgotten; it
 * confirms then, when it is asked. */
void commit_log_excuse(struct decision *d, uint32_t rank);
void commit_log_confirm(struct exchanges *all, const char *id, const uint32_t *rank, size_t count,
                        const char *obstacle);
/* The same of this node. */
void commit_log_confirm_own(struct exchanges *all, const char *id, const char *obstacle);
/* Links have gone down or come up: nodes may have missed the decision, or their confirmation got lost. */
void commit_log_remind_soon(struct exchanges *all, struct decision *d);
void commit_log_remind_all_soon(struct exchanges *all);

/* unconfirmed.c */
/* Which nodes have not confirmed, why, and what becomes of that, in words. */
void unconfirmed_describe(const struct decision *d, const struct exchanges *all, struct error *e);
/* When it is known that those that have not will not soon. ROUTER_NEVER: they may at any moment, as may nodes that
 * are down if these are waited for. */
uint64_t unconfirmed_until(const struct decision *d, const struct exchanges *all, bool waits);

/* All have entered it, as far as this node knows. */
bool attempt_has_gone(const struct attempt *x);

/* barrier.c */
/* Not the root: it has withdrawn this attempt. What this node itself has against going on with an open group it
 * says in the next one. */
void retry_withdrawn(struct attempt *x, const struct error *why);
#define MEMBERSHIP_ROOT 0u
/* The barrier of this name that this node waits for or prepares: its job, and the attempt that nobody has entered
 * here, each NULL if there is none. */
struct job *entry_waiting(struct exchanges *all, const struct spec *spec);
struct attempt *entry_preparing(struct exchanges *all, const struct spec *spec);
/* The job of a client that enters what the root has prepared already; takes *spec over. NULL with *e. */
struct job *entry_enter(struct attempt *x, struct spec *spec, const struct exchange_client *client,
                        struct error *e);
/* Attempts before this one are over. Returns the job that it is for, or NULL. */
struct job *entry_prepared(struct exchanges *all, const struct spec *spec, uint32_t root);
/* Whether the root has withdrawn `id` since: then -1 with *e (ERROR_BUSY). */
int entry_check_id(struct exchanges *all, const struct spec *spec, const char *id, struct error *e);
/* The node that prepares it, as far as this one knows: MEMBERSHIP_ROOT; of a group that shrinks, the first
 * node that is left. TORUS_NO_NODE: no memory. */
uint32_t membership_root(const struct exchanges *all, const struct spec *spec);
/* Whether that has become another one, or this one: prepares it here from now on, or no longer. */
void entry_lead(struct job *j);
/* The client's word of it differs from the root's: it fails for all. Returns whether it does. */
bool entry_differs(struct attempt *x, const struct spec *entered, const struct spec *prepared);

/* waiting.c */
/* Whether it waits for nodes and links that are down, instead of failing. A group that has been open does not:
 * a node that went down has lost it. */
bool attempt_waits_for_nodes(const struct attempt *x);
bool job_waits_for_nodes(const struct job *j); /* the same of a job, between attempts */
/* Whether it begins anew when a link goes down: it goes around links, or waits for what is down. */
bool attempt_survives_link_loss(const struct attempt *x);
bool job_survives_link_loss(const struct job *j);
/* Adds what it waits for at the moment ("node 4 (1,0)"), if it waits. */
struct sentence;
void waiting_describe(const struct job *j, struct sentence *s);

/* standing.c */
/* All nodes have entered the group: its root restarts it when a link goes down, also without the nodes that it has
 * left out. */
bool attempt_is_open_group(const struct attempt *x);
/* The root has failed the group of this first id, whichever attempt this node knows of. */
void group_restart_failed(struct exchanges *all, const char *first, const struct error *why);
/* This node's own, of this first id, that has failed; or NULL. */
const struct attempt *group_restart_find_failed(const struct exchanges *all, const char *first);
/* The job that goes on as `id`, whatever its state; or that this node had not heard `go` of. NULL with
 * *e: there is none here, or `id` has been withdrawn. */
struct job *group_restart_find(struct exchanges *all, const char *first, const char *id,
                               struct error *e);

/* verdict.c */
/* Root: the attempt is over everywhere. */
void verdict_send(struct attempt *x, const struct error *e);
/* The same over all links, of one that was withdrawn before. */
void verdict_flood(struct attempt *x, const struct error *e);
/* The attempt that somebody behind this port objects to is over, which he has not heard. */
void verdict_answer(struct exchanges *all, unsigned port, const struct peer_objection *objection,
                    const struct error *e);
/* The same about the last attempt that all nodes know of, if it is not this one; a group that goes on all
 * know by its first id. */
void verdict_send_former(const struct job *j, const struct error *e);
void verdict_pass_on(struct attempt *x, const struct error *e, uint32_t left, int except);
void verdict_pass_unknown(struct exchanges *all, unsigned port, const struct peer_verdict *message);
bool verdict_is_cut(const struct attempt *x); /* links are down: verdicts are flooded */
bool verdict_is_remembered(const struct exchanges *all, const char *id);
void verdicts_repeat(struct exchanges *all, unsigned port);
/* Towards the root, by its tree, or where that is cut by any way. -1: there is none. */
int objection_port(const struct attempt *x);
/* Towards the root by this port; -1: there is no way. `again`: blocks were damaged on their way. */
void objection_send(struct exchanges *all, int port, uint32_t handle, const char *id, uint32_t root,
                    const struct error *e, bool again);

/* fail.c */
/* Of a link, a busy node, damage: the root may take the attempt back and begin anew. */
bool error_is_for_now(const struct error *e);
/* This node cannot go on: the root decides for all, any other node tells it. */
void attempt_fail(struct attempt *x, const struct error *e);
/* The same of a job, whether it has an attempt or waits for one. */
void job_fail(struct job *j, const struct error *e);
/* The same: blocks were damaged on their way here. Sent again, they may arrive whole. */
void attempt_damaged(struct attempt *x, const struct error *e);
int verdict_heard(struct exchanges *all, unsigned port, const struct peer_verdict *message,
                  struct error *e);
int objection_heard(struct exchanges *all, unsigned port, const struct peer_objection *message,
                    struct error *e);
void objections_repeat(struct exchanges *all, unsigned port);

/* failure.c */
void fault_watch_topology(struct attempt *x);
bool fault_watch_own_link_down(const struct attempt *x, struct error *e);
void fault_watch_tick(struct attempt *x, uint64_t now);
/* Its root is down, or up again without any memory of it; and that in words. */
bool fault_watch_root_gone(const struct attempt *x);
void fault_watch_name_root(const struct attempt *x, struct error *e);
/* Until when two starts of its root cannot be told from each other; ROUTER_NEVER: there is but one. */
uint64_t fault_watch_root_differs_until(const struct attempt *x);
uint64_t fault_watch_deadline(const struct attempt *x);

/* job_watch.c: the same of a job that has no attempt under way. */
void job_watch_topology(struct job *j);
void job_watch_tick(struct job *j, uint64_t now);
uint64_t job_watch_deadline(const struct job *j);

/* doubt.c */
/* Takes x->doubt, so that no doubt is ever without memory. `decided`: that it was committed is known,
 * and only the output cannot be put in place yet. */
void in_doubt_add(struct attempt *x, bool decided);
bool in_doubt_resolve(struct exchanges *all, const char *id,
                      bool committed);                               /* false: no such doubt */
unsigned in_doubt_about(const struct exchanges *all, uint32_t root); /* exchanges of this root */
int in_doubt_load(struct exchanges *all, struct error *e);
void in_doubt_free(struct exchanges *all);

/* settle.c */
void outcome_ask(struct exchanges *all);
void outcome_remind(struct exchanges *all, uint64_t now);
uint64_t outcome_pause(const struct exchanges *all); /* until the next look at them */
int outcome_confirm_heard(struct exchanges *all, unsigned port, const struct peer_confirm *message,
                          struct error *e);
int outcome_query_heard(struct exchanges *all, unsigned port,
                        const struct peer_outcome_query *query, struct error *e);
int outcome_heard(struct exchanges *all, unsigned port, const struct peer_outcome *answer,
                  struct error *e);

/* costs.c */
void link_costs_load(struct exchanges *all);
int link_costs_heard(struct exchanges *all, unsigned port, const struct peer_calibration *in,
                     struct error *e);
/* Links may have come up, whose other ends have not heard of it. */
void link_costs_topology(struct exchanges *all);

/* report.c */
int report_add_own(struct attempt *x, uint64_t nanoseconds, struct error *e);
int report_add_child(struct attempt *x, unsigned port, const struct peer_done *done,
                     struct error *e);
int report_send(struct attempt *x);
int report_check(struct attempt *x, struct error *e);
void report_result(const struct attempt *x, struct exchange_result *result);
void report_free(struct report *r);

#endif
