/* The states of attempts and of jobs, a table each (states.c): which state may follow which, what must hold,
 * and properties of states that several places ask for. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"

struct job;

enum presence { NONE, MAY, MUST };

/* A state of an attempt. `next`: the states that may follow. */
struct attempt_state {
    const char *name;
    uint32_t next;
    /* What must hold in this state: */
    enum presence blocks;  /* of the source and sink */
    enum presence engine;  /* of the engine and the memory reserved for it */
    enum presence awaited; /* of parts of a wave that have not arrived */
    bool root, other;      /* whether the root, or any other node, can be in this state */
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
    bool awaits_abort; /* this node has told the root that it cannot continue */
    bool over;         /* failing or ended here: only an abort may still arrive */
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

/* --- questions about attempts and jobs that many places ask, and that follow from their fields --- */

/* Whether all nodes have entered the group. Its root then restarts the group when a link goes down, also
 * without the nodes that the group has left out. */
bool attempt_is_open_group(const struct attempt *x);
/* Whether this node takes part in a group of other nodes only to pass on their data. It then has no job. */
bool attempt_is_passive(const struct attempt *x);
/* Whether the attempt is at a barrier or group that some nodes have not entered, as far as this node knows, and
 * that has not failed here. */
bool attempt_awaits_entry(const struct attempt *x);
/* Whether all nodes have entered, as far as this node knows. */
bool attempt_all_entered(const struct attempt *x);
/* Whether the job's group has been open here. */
bool job_has_been_open(const struct job *j);
/* Whether this node, which is not the root, waits for the root to restart the group after it withdrew an
 * attempt. */
bool job_awaits_restart(const struct job *j);

/* Returns the id of the job's first attempt, which determines the contents of generated blocks. */
const struct exchange_id *attempt_first_id(const struct attempt *x);
/* Whether blocks that arrive in this attempt need not be sent again in the next one. Which pieces of files have been
 * compared is known only of streams. */
bool attempt_may_resume(const struct attempt *x);
/* Whether the root may start another attempt after this one. */
bool attempt_may_be_followed(const struct attempt *x);
/* Whether the error is a lost link, a busy node or damage, so that the root may retry. */
bool error_is_temporary(const struct error *e);

/* Whether what is asked for works on any connected torus. */
bool spec_avoids_links(const struct spec *spec);
/* Whether the routes of such a job are found for the rates of links (plan_rates.h): those of groups, of exchanges by `auto`
 * or `stream`, and of allgathers and broadcasts by `auto` or `disjoint`. The others have their own routes. */
bool spec_uses_rates(const struct spec *spec);
/* Whether the attempt waits for nodes and links that are down, instead of failing. An open group does not wait:
 * a node that went down has lost it. */
bool attempt_waits_for_nodes(const struct attempt *x);
/* Like attempt_waits_for_nodes(), between attempts. */
bool job_waits_for_nodes(const struct job *j);
/* Whether the root retries when a link goes down: the attempt avoids links, or waits for what is down. */
bool attempt_survives_link_loss(const struct attempt *x);
/* Like attempt_survives_link_loss(), between attempts. */
bool job_survives_link_loss(const struct job *j);

/* Returns how many sources and sinks of the job's attempts are still being closed. */
unsigned job_closing(const struct job *j);
/* Whether the job's client can be told how the job ended. */
bool job_is_tellable(const struct job *j);
