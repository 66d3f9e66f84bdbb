/* The states of attempts and of jobs, a table each (states.c): which state may follow which, what must hold,
 * and properties of states that several places ask for. */
#pragma once

#include "daemon/torusd/exchange/record/attempt.h"

enum presence { NONE, MAY, MUST };

/* A state of an attempt. `next`: the states that may follow. */
struct attempt_state {
    const char *name;
    uint32_t next;
    /* What must hold in this state: */
    enum presence blocks; /* of the source and sink */
    enum presence engine; /* of the engine and the memory reserved for it */
    enum presence owed;   /* of parts of a wave that have not arrived */
    bool root, other;     /* whether the root, or any other node, can be in this state */
    /* Properties that several places ask for: */
    bool unheard;   /* no other node knows of the attempt */
    bool prepares;  /* this node prepares, or waits for nodes below it */
    bool before_go; /* not the root: `go` has not arrived here. FAILING: perhaps it has */
    bool runs;      /* between the first `go` and the end of the last repetition */
    bool moves;     /* blocks are moved; rounds may be under way */
    bool repairs;   /* pieces of blocks may be asked for again */
    /* This node's output is finished, and may have been committed elsewhere. */
    bool may_be_committed;
    /* The root records or has recorded its decision to commit: the attempt cannot fail any more. */
    bool decided;
    bool awaits_verdict; /* this node has told the root that it cannot continue */
    bool over;           /* failing or ended here: only a verdict may still arrive */
    bool ended;
};
extern const struct attempt_state attempt_states[EXCHANGE_STATES];

static inline const struct attempt_state *state_of(const struct attempt *x)
{
    return &attempt_states[x->state];
}

/* The states of jobs. */
enum job_state {
    /* At its root: waits to be started, or for its next attempt. */
    JOB_WAITING,
    /* Barrier or group: its root has not prepared it here, or has withdrawn what it prepared. */
    JOB_ENTERED,
    JOB_UNDER_WAY, /* the job has an attempt */
    JOB_ENDED,     /* the last attempt has ended */
};
#define JOB_STATES (JOB_ENDED + 1u)

/* A state of a job. `next`: the states that may follow. */
struct job_state_row {
    const char *name;
    uint32_t next;
    bool waits;     /* the job waits for an attempt that other nodes know of */
    bool starting;  /* the job may have an attempt that other nodes do not know of */
    bool under_way; /* the job has an attempt that other nodes may know of */
    bool ended;     /* the job's attempt, if it has one, has ended */
};
extern const struct job_state_row job_states[JOB_STATES];
