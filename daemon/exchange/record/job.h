/* A job: what a client has asked for at its root (this node), or has entered here. It lasts from then until its client
 * has been told how it ended, however many attempts that takes. A node where nobody has asked for an attempt or entered
 * it has no job for it. */
#ifndef TORUSD_EXCHANGE_RECORD_JOB_H
#define TORUSD_EXCHANGE_RECORD_JOB_H

#include "daemon/exchange/record/id.h"
#include "daemon/exchange/record/states.h"

enum client_state { CLIENT_NONE, CLIENT_WAITING, CLIENT_TOLD };

/* A name that other nodes know an attempt by. */
struct name {
    struct exchange_id id;
    uint32_t handle;
};

/* Times of repetitions at the root, of all attempts that count. */
struct repetitions {
    uint64_t *each; /* nanoseconds; there is room for `room` */
    uint32_t count, room;
    uint32_t kept; /* so many were complete in attempts that have been withdrawn, and count; */
    uint64_t first_went; /* then, when the first of these began */
};

struct job {
    struct job *prev, *next; /* in exchanges.jobs, in the order of asking */
    struct exchanges *all;
    enum job_state state;
    struct spec spec;          /* as asked for here */
    struct schedule *schedule; /* at its root: that the spec names */
    uint32_t user;
    enum client_state client_state;
    struct exchange_client client;

    /* UNDER_WAY: that one; ENDED: the last one, NULL without memory; WAITING: one that no other node knows of yet
     * (STARTING), or NULL; ENTERED: NULL. */
    struct attempt *attempt;
    struct attempt *last; /* the one before, which was withdrawn; NULL: none has been */
    struct name name;     /* of its first attempt until that begins; then of the last one */
    bool name_known;      /* other nodes have heard it: the next attempt needs another */
    /* The id of the first attempt, if the next one goes on where that was: what has arrived does not come again. Of a
     * group: it has been open. Else NO_ID. */
    struct exchange_id resumes;
    struct name former; /* root: of the last attempt that ran, so that all nodes know of it */

    uint64_t began, deadline, timeout_ns;
    /* WAITING: why the last attempt was withdrawn, or why it has to wait; ENTERED: why this node cannot go on with its
     * group; ENDED: why it failed, without an attempt that says so. */
    struct error failure;
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
    /* The root may have heard that it is entered here, and not have said yet that it has told nobody to go. */
    bool ready;
    uint64_t reserved; /* of a group that has been open, between two attempts; for `user` */
};

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

/* A client of this node waits for what becomes of it. */
static inline bool attempt_is_awaited(const struct attempt *x)
{
    return x->job != NULL && x->job->client_state == CLIENT_WAITING;
}

/* A new job. Takes *spec over on success. NULL: no memory. */
struct job *job_new(struct exchanges *all, struct spec *spec, const struct exchange_client *client);
/* The job has no attempt under way; those that it had are no longer its own. */
void job_free(struct job *j);
/* Changes its state. */
void job_enter(struct job *j, enum job_state state);
/* Its attempt has begun at the root: other nodes hear of it. */
void job_begin(struct job *j);
/* The attempt is its own from now on, as its root has prepared it. */
void job_take(struct job *j, struct attempt *x);
/* An attempt ends, and so does its job; or, if it was withdrawn, the job waits for the next one, at its root or where
 * it was entered. */
void attempt_end(struct attempt *x, enum exchange_state state);
/* Gives up an attempt that no other node knows of. */
void job_drop_attempt(struct job *j);
/* Gives back its place among those that run. */
void job_give_place(struct job *j);
/* Ends a job that waits for an attempt, for this reason. What other nodes know of it, if this node has led it or its
 * group has been open, has failed, too. */
void job_end_failed(struct job *j, const struct error *why);
/* The same, as its root says of the attempt that it has withdrawn before. */
void job_end_by_verdict(struct job *j, const struct error *why);

#endif
