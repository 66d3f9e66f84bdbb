/* An attempt: one try to carry a job out on all nodes. */
#ifndef TORUSD_EXCHANGE_RECORD_ATTEMPT_H
#define TORUSD_EXCHANGE_RECORD_ATTEMPT_H

/* A table that has no memory for an entry says so. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/exchange/record/exchange_record.h"
#include "daemon/exchange/record/id.h"
#include "daemon/exchange/record/job_kind.h"
#include "daemon/exchange/record/report.h"
#include "daemon/schedule/tree.h"

#define OWN_PART (1u << 31) /* in attempt.owed, beside ports: this node's own part of the wave */

/* This node's blocks and what moves them. */
struct own {
    struct resumed *resumed;         /* NULL: all blocks are sent from the start */
    struct pending_repairs *repairs; /* NULL: nothing has been damaged */
    uint64_t kept_bytes;             /* root: that had arrived everywhere when this attempt began */
    struct planned *planned;
    struct source *source;
    struct sink *sink;
    unsigned closing;                 /* sources and sinks whose close() is under way */
    uint64_t largest_block;           /* here and, from what they have told, below */
    uint64_t whole_block;             /* the same before some of it had arrived */
    uint64_t bytes_here, bytes_below; /* of all blocks for other nodes */
    uint64_t round_bytes;             /* 0: not known yet */
    uint32_t window;
    uint64_t reserved; /* for `user` of the attempt */
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
        restart_at; /* root: an open group is restarted then, as links that it avoids are up; 0: none */
};

#define NO_FAULT ((struct fault){.at = ROUTER_NEVER, .down = TORUS_NO_NODE})
/* The same of a job that waits for its next attempt: links that went down before are not told of again. */
#define UNSEEN_FAULT ((struct fault){.at = ROUTER_NEVER, .down = TORUS_NO_NODE, .unseen = true})

/* A finished output of this node whose outcome is not known, or cannot be carried out yet (commit/in_doubt.h). */
struct doubt {
    struct doubt *next;
    struct exchange_id id;
    bool committed; /* the outcome is known */
    bool resolving; /* and being carried out */
};

/* It is made, and it is freed; it is never used again. */
struct attempt {
    UT_hash_handle hh;           /* by handle, in exchanges.table */
    struct attempt *prev, *next; /* in exchanges.active or .ended */
    struct exchanges *all;
    struct job *job; /* NULL: nobody has asked for it here, or that job is over */
    uint32_t handle;
    struct exchange_id id;
    struct exchange_id resumes; /* NO_ID, or the id of the first attempt (struct job) */
    uint32_t root;
    uint64_t root_boot; /* and as known when this attempt was made, */
    uint64_t named_at;  /* which was then */
    uint32_t user;      /* the job's, else who has asked for it at its root, as that says */
    struct tree_node tree;
    struct avoided *avoided; /* NULL: the torus is whole */
    bool avoids_links;       /* spec_avoids_links(), of what the root was asked for */
    struct spec spec;
    struct schedule
        *schedule; /* that the spec names, until it has ended and its client been told */
    /* NULL: not chosen yet (spec_chooses_late()), or not known yet or any more (schedule, avoided). */
    const struct algorithm *algorithm;
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

static inline const struct job_kind *kind_of(const struct attempt *x)
{
    return kind_of_spec(&x->spec);
}

/* There is a result to commit. */
static inline bool exchange_is_durable(const struct attempt *x)
{
    return x->own.sink != NULL && x->own.sink->durable;
}

/* The first round of the repetition under way, */
static inline uint64_t exchange_first_round(const struct attempt *x)
{
    return x->rounds.repetition * x->rounds.count;
}

/* and the one behind its last round. */
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

#endif
