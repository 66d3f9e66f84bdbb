/* The states of attempts and of jobs, a table each (states.c): what may follow what, what must hold, and what several
 * places ask about a state. */
#ifndef TORUSD_EXCHANGE_RECORD_STATES_H
#define TORUSD_EXCHANGE_RECORD_STATES_H

#include "daemon/exchange/record/attempt.h"

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
    /* This node's output is finished, and may have been committed elsewhere. */
    bool may_be_committed;
    bool decided; /* the root records its decision to commit, or it has: nothing fails any more */
    bool awaits_verdict; /* this node has told the root that it cannot go on, */
    bool over;           /* or has ended: nothing is expected here any more but a verdict */
    bool ended;
};
extern const struct attempt_state attempt_states[EXCHANGE_STATES];

static inline const struct attempt_state *state_of(const struct attempt *x)
{
    return &attempt_states[x->state];
}

/* What a job does next. */
enum job_state {
    /* At its root: to be started, or for its next attempt. */
    JOB_WAITING,
    /* A barrier or group: its root has not prepared it here, or has withdrawn what it had prepared. */
    JOB_ENTERED,
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

#endif
