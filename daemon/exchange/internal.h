/* Shared by the files of this folder only. */
#ifndef TORUSD_EXCHANGE_INTERNAL_H
#define TORUSD_EXCHANGE_INTERNAL_H

#include <uthash.h>

#include "daemon/exchange/calibration.h"
#include "daemon/exchange/exchange.h"
#include "daemon/schedule/passages.h"
#include "daemon/schedule/plan.h"
#include "daemon/schedule/predict.h"
#include "daemon/schedule/tree.h"

/* In exchange.waiting, beside ports: */
#define OWN_PART (1u << 31)  /* this node's own part of the wave */
#define TURN_PART (1u << 30) /* of a node without neighbours: the other work of this process */

/* What has been reported from this node and below; the root's is everybody's. */
struct report {
    struct exchange_node_report *node;
    uint32_t nodes;
    uint32_t *step_blocks, *step_messages;
    uint32_t steps;
    uint64_t sent_digest, delivered_digest;
};

#define CHOOSE_OCTAVES 48u

/* How long an exchange has really taken. */
struct learnt {
    uint64_t block_bytes;
    double seconds; /* 0: not known */
};

/* What is known of an algorithm on this torus, from when it is first needed. */
struct planned {
    struct plan plan;
    uint32_t peak_transit; /* of the node that has the largest; the root's own may be far smaller */
    bool built, peak_known;
    struct passages passages; /* for streaming */
    uint32_t passages_transit;
    bool passages_built, transit_known;
    struct predict_counts counts; /* if it is a candidate for "auto" */
    bool counted, candidate;
    struct learnt learnt[CHOOSE_OCTAVES]; /* by the binary logarithm of the block's size */
};

struct exchange {
    UT_hash_handle hh; /* by handle, in exchanges.active or .ended */
    struct exchanges *all;
    uint32_t handle;
    char id[EXCHANGE_ID_SIZE];
    uint32_t root;
    struct tree_node tree;
    const struct algorithm *algorithm; /* NULL: known only by a word of its failure */
    enum operation operation;
    enum mode mode;
    uint32_t window;
    uint32_t sender; /* broadcast: whose block */
    char barrier[BARRIER_NAME_SIZE];
    bool entered;       /* a barrier that a client has entered here, and that is not prepared yet */
    struct planned own; /* broadcast: the plan for that block alone */
    uint64_t block_bytes;
    char from[EXCHANGE_PATH_SIZE], to[EXCHANGE_PATH_SIZE];
    bool missing_ok;
    uint64_t segment_bytes;
    uint64_t timeout_ns;

    enum exchange_state state;
    struct error failure; /* when FAILING or FAILED */
    uint64_t began, deadline;
    uint64_t fault_at; /* a link has gone down meanwhile; ROUTER_NEVER: none */
    struct error fault;
    uint32_t lost; /* ports whose links have been down meanwhile: nothing is sent or taken there */
    uint64_t root_boot;               /* of its root, as known when it began */
    bool word_passed, verdict_passed; /* Aborts flooded already: not final, final */

    uint32_t waiting; /* child ports (bits) and OWN_PART that this wave still owes */
    uint64_t largest_block;
    uint32_t repeat;     /* exchanges back to back, at least 1 */
    uint32_t repetition; /* the one under way */
    uint64_t rounds;     /* of one of them; all that follows counts rounds through */
    uint64_t round;      /* the first that has not been finished here and by all below */
    uint64_t admitted;   /* rounds below this one may leave from here */
    uint64_t finished_below[TORUS_MAX_PORTS]; /* so many, by the word of the child at the port */
    uint64_t first_went;                      /* when the first `go` came, */
    uint64_t went;                            /* and the last */
    uint64_t slowest; /* nanoseconds that this repetition took the slowest node here and below */
    uint64_t *each;   /* root: that of all, by repetition; there is room for each_room */
    uint32_t each_count, each_room;
    uint64_t all_ns; /* root: from the first `go` to the end of the last repetition */

    uint64_t reserved;
    struct source *source;
    struct sink *sink;
    struct engine *engine;
    struct report report;

    bool has_client, client_told;
    bool unconfirmed; /* committed, but not all have said so */
    struct exchange_client client;
};

struct doubt {
    struct doubt *next;
    char id[EXCHANGE_ID_SIZE];
};

struct exchanges {
    struct exchanges_setup set;
    struct exchange *active; /* by handle */
    struct exchange *ended;  /* by handle, the youngest last, until they are forgotten */
    unsigned untold;         /* ended ones whose clients are to be told in the next tick */
    uint64_t reserved;
    uint32_t counter;
    struct calibration calibration;
    uint32_t calibration_told; /* ports (bits) whose neighbours have been told of it */
    struct planned *planned;   /* by algorithm index */
    double least_pause;        /* seconds between two exchanges of a session, seen so far */
    uint32_t next_handle[TORUS_MAX_PORTS];   /* whose turn it is at a port */
    uint64_t unheard_since[TORUS_MAX_PORTS]; /* see failure_heard() */
    uint32_t unheard_of[TORUS_MAX_PORTS];
    struct doubt *doubts;
    uint64_t ask_at; /* about doubts; ROUTER_NEVER: none */
};

static inline bool exchange_over(const struct exchange *x)
{
    return x->state >= EXCHANGE_COMMITTED;
}

static inline bool exchange_is_root(const struct exchange *x)
{
    return x->tree.parent < 0;
}

/* The rounds of the repetition under way are these, */
static inline uint64_t exchange_first_round(const struct exchange *x)
{
    return x->repetition * x->rounds;
}

/* up to this one, which is not one of them. */
static inline uint64_t exchange_end_round(const struct exchange *x)
{
    return (x->repetition + 1) * x->rounds;
}

static inline bool exchange_last_repetition(const struct exchange *x)
{
    return x->repetition + 1 == x->repeat;
}

/* Whether a node has blocks to send, */
static inline bool exchange_sends(const struct exchange *x, uint32_t rank)
{
    return x->operation != OPERATION_BARRIER &&
           (x->operation != OPERATION_BROADCAST || rank == x->sender);
}

/* and how many blocks of others it takes in. */
static inline uint64_t exchange_takes(const struct exchange *x, uint32_t rank)
{
    if (x->operation == OPERATION_BARRIER)
        return 0;
    if (x->operation == OPERATION_BROADCAST)
        return rank != x->sender;
    return router_torus(x->all->set.router)->nodes - 1;
}

/* exchange.c */
struct exchange *exchange_find(struct exchanges *all, uint32_t handle);
struct exchange *exchange_add(struct exchanges *all, uint32_t handle, const char *id,
                              uint32_t root);
void exchange_rename(struct exchange *x, uint32_t handle, const char *id, uint32_t root);
void exchange_end(struct exchange *x, enum exchange_state state);
/* Gives back everything but the memory of it; and that, too. */
void exchange_release(struct exchange *x, bool keep_output);
void exchange_forget(struct exchange *x);

/* prepare.c */
int prepare_heard(struct exchanges *all, unsigned port, const Peer__Prepare *prepare,
                  struct error *e);

/* waves.c */
void wave_begin(struct exchange *x);
/* A word of the running wave from a peer. */
int wave_word(struct exchange *x, unsigned port, const Peer__Head *head, struct error *e);
void wave_to_children(struct exchange *x, const Peer__Head *head);
void exchange_send(struct exchange *x, unsigned port, const Peer__Head *head);
/* Goes on as far as what has been heard and done allows. */
void exchange_advance(struct exchange *x);
/* TURN_PART: it is this exchange's turn again. */
void exchange_resume(struct exchange *x);

/* barrier.c */
#define BARRIER_ROOT 0u
struct exchange *barrier_preparing(struct exchanges *all, const char *name);
int barrier_enter(struct exchange *x, uint64_t timeout_ns, const struct exchange_client *client,
                  struct error *e);
struct exchange *barrier_prepared(struct exchanges *all, const Peer__Prepare *prepare,
                                  const char *id);

/* failure.c */
void failure_here(struct exchange *x, const struct error *e);
int failure_heard(struct exchanges *all, unsigned port, const Peer__Abort *abort, struct error *e);
void failure_topology(struct exchange *x);
bool failure_own_link_down(const struct exchange *x, struct error *e);
void failure_tick(struct exchange *x, uint64_t now);
uint64_t failure_deadline(const struct exchange *x);

/* doubt.c */
void doubt_add(struct exchanges *all, const char *id);
void doubts_load(struct exchanges *all);
void doubts_free(struct exchanges *all);
void doubts_tick(struct exchanges *all, uint64_t now);
int doubt_query_heard(struct exchanges *all, const Peer__OutcomeQuery *query, struct error *e);
int doubt_outcome_heard(struct exchanges *all, const Peer__Outcome *outcome, struct error *e);

/* calibration.c */
void calibration_load(struct exchanges *all);
int calibration_heard(struct exchanges *all, unsigned port, const Peer__Calibration *in,
                      struct error *e);
/* Links may have come up, whose other ends have not heard of it. */
void calibration_topology(struct exchanges *all);

/* report.c */
int report_add_own(struct exchange *x, uint64_t nanoseconds, struct error *e);
int report_add_child(struct exchange *x, const Peer__Done *done, struct error *e);
int report_send(struct exchange *x, unsigned port);
int report_check(struct exchange *x, struct error *e);
void report_result(const struct exchange *x, struct exchange_result *result);
void report_free(struct report *r);

#endif
