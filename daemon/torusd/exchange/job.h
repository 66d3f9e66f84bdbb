/* A job is what a client has asked for at its root (this node), or has entered here. It lasts until its client
 * has been told how it ended, however many attempts that takes. A node where no client has asked for or entered
 * an attempt has no job for it. Times are nanoseconds of the router's clock. */
#pragma once

#include "daemon/torusd/exchange/id.h"
#include "daemon/torusd/exchange/states.h"

enum client_state { CLIENT_NONE, CLIENT_WAITING, CLIENT_TOLD };

/* The id and handle by which other nodes know an attempt. */
struct attempt_name {
    struct exchange_id id;
    uint32_t handle;
};

/* At the root: the times of all repetitions that have been completed, in any attempt. */
struct repetitions {
    uint64_t *each; /* nanoseconds of each repetition; `room` entries are allocated */
    uint32_t count;
    size_t room;
    uint32_t kept;        /* repetitions that count although their attempts were withdrawn */
    uint64_t first_go_at; /* when the first of these attempts began; 0: there is none */
};

struct job {
    struct job *prev, *next; /* in exchanges.jobs, in the order of asking */
    struct exchanges *exchanges;
    enum job_state state;
    struct spec spec;          /* as asked for at this node */
    struct schedule *schedule; /* root: the schedule that the spec names */
    uint32_t user;
    enum client_state client_state;
    struct exchange_client client;

    /* UNDER_WAY: the attempt under way. ENDED: the last attempt; NULL if there was no memory for one. WAITING:
     * an attempt that no other node knows of yet (STARTING), or NULL. ENTERED: NULL. */
    struct attempt *attempt;
    struct attempt *last; /* the attempt before, which was withdrawn; NULL: none */
    /* The name of the latest attempt; before the first attempt begins, the name that it will have. */
    struct attempt_name name;
    bool name_known; /* other nodes know the name, so the next attempt needs another one */
    /* The id of the first attempt, if the next attempt resumes it: what has arrived is not sent again. For a
     * group: the group has been open. Otherwise NO_ID. */
    struct exchange_id resumes;
    struct attempt_name former; /* root: the last attempt that ran, which all nodes know of */

    uint64_t began, deadline, timeout_ns;
    /* WAITING: why the last attempt was withdrawn, or why the job must wait. ENTERED: why this node cannot
     * continue its group. ENDED: why the job failed, if no attempt has the error. */
    struct error failure;
    struct fault fault; /* WAITING, ENTERED: links that are down */

    /* For the root only: */
    uint64_t retry_at; /* when the pause after a busy node ends; 0: the job may start */
    uint64_t pause;    /* nanoseconds of the last pause before a retry */
    uint64_t waiting_since;
    /* Since when, and when last, a node had no memory for the group; 0: never. Only if spec.memory_wait_ns is not 0. */
    uint64_t lacks_since, lacked_at;
    uint64_t withdrawn_at; /* when the last attempt was withdrawn */
    bool asked;            /* the job holds a share of the jobs asked for at this node */
    bool has_slot;         /* the job holds a share of the jobs that have started */
    uint32_t reroutes;     /* attempts that were withdrawn because a link went down */
    uint32_t replans;      /* attempts that were withdrawn because the rates of links had changed */
    uint32_t damages;      /* attempts that were withdrawn because of damage */
    uint64_t damaged_at;   /* when the last of these was withdrawn */
    struct error
        damage; /* with damages > 0: why the last of them was withdrawn that could name the damaged bytes */
    uint64_t replanned_at; /* when a group was last restarted because rates had changed; 0: never */
    struct repetitions repetitions;

    /* For barriers and groups: */
    /* As the client asked; the job uses them again between two attempts. */
    uint64_t entered_deadline, entered_timeout_ns;
    uint64_t asks_at; /* when a node that waits for a group's restart asks its root */
    /* This node has told the root that it is ready, and the root has not said since then that it sent no `go`. */
    bool ready;
    /* Bytes that an open group keeps between two attempts, in the share of `user`. */
    uint64_t reserved;
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

/* Returns the attempt that is under way, otherwise the last one, which was withdrawn; NULL: there is none. */
static inline struct attempt *job_last_attempt(const struct job *j)
{
    return job_is_under_way(j) ? j->attempt : j->last;
}

/* Whether a client of this node waits for the attempt's outcome. */
static inline bool attempt_is_awaited(const struct attempt *x)
{
    return x->job != NULL && x->job->client_state == CLIENT_WAITING;
}

/* Creates a job; job_free() frees it. Takes *spec over on success. Returns NULL if there is no memory. */
struct job *job_new(struct exchanges *exchanges, struct spec *spec,
                    const struct exchange_client *client);
/* Frees a job that has no attempt under way. Its attempts stay, without a job. */
void job_free(struct job *j);
/* Sets a job's state. Jobs that wait or have ended give back their slot. */
void job_enter(struct job *j, enum job_state state);
/* Notes that the job's attempt has begun at the root, so that other nodes know its name. */
void job_begin(struct job *j);
/* Makes an attempt that the root has prepared the job's attempt. */
void job_set_attempt(struct job *j, struct attempt *x);
/* Ends an attempt. Its job ends too; but if the attempt was withdrawn, the job waits for its next attempt, at
 * its root or where it was entered. */
void attempt_end(struct attempt *x, enum exchange_state state);
/* Frees the job's attempt, which no other node knows of. */
void job_drop_attempt(struct job *j);
/* Gives back the job's slot among the jobs that run. */
void job_release_slot(struct job *j);
/* Ends a job that waits for an attempt, for this reason. If this node was the job's root or its group was open,
 * the last attempt fails too, because other nodes know that attempt. */
void job_end_failed(struct job *j, const struct error *why);
/* Ends a job that waits for an attempt, because its root has sent an abort on the attempt that was withdrawn. */
void job_end_by_abort(struct job *j, const struct error *why);
