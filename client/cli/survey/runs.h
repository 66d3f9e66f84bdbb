/* What runs on a torus, put together from what all nodes say: exchanges, groups of programs, and copies of trees. */
#pragma once

#include "client/cli/survey/all_nodes.h"

#define RUNS_MOST 64u
#define RUN_ID_SIZE 101u
#define RUN_STATES (TORUS_STATE_IN_DOUBT + 1u)

enum run_kind { RUN_EXCHANGE, RUN_GROUP, RUN_COPY };

/* All texts but `id` are valid as long as the survey. */
struct run {
    enum run_kind kind;
    char id[RUN_ID_SIZE]; /* of a group: its name */
    const char *what;     /* the algorithm, the name of the group, or the target of the copy */
    bool ended;           /* at all nodes that know it */
    uint32_t nodes;       /* that know it */
    uint32_t root;        /* the node that was asked; TORUS_RANK_NONE: nobody */
    uint64_t done, total; /* bytes at all nodes; of a copy as its root counts; total 0: not known */
    double rate;          /* bytes a second that all nodes receive; below 0: not known */
    double part;          /* that is done, 0 to 1; below 0: not known */
    double left;          /* seconds; below 0: not known */
    double first_part, first_seconds; /* when the run was seen first */

    /* Exchanges: */
    uint32_t states[RUN_STATES];    /* how many nodes are in each state */
    uint64_t age_ms, round, rounds; /* the lowest round */
    const char *reason;             /* of a failure; "": none */

    /* Groups: */
    uint32_t open;                /* nodes on which it is open */
    uint64_t calls, calls_done;   /* made by the fastest member; done by the slowest */
    double call_rate;             /* calls a second; below 0: not known */
    const char *missing, *avoids; /* as in torus_group_info */

    /* Copies: */
    enum torus_copy_phase phase;
    const char *waits_for; /* nodes, for people; "": none */
};

struct runs {
    struct run run[RUNS_MOST]; /* first those that are under way */
    size_t count, left_out;
};

/* Fills *runs from the survey `now`, and rates from `before` (`state` may be NULL). `elapsed[rank]` are the seconds
 * between both, by the clock of each node; 0 or less: not known. `*runs` has what it was filled with before, or zeros.
 * `seconds` is a steady clock. */
void runs_fill(struct runs *runs, const struct all_nodes *now, const struct all_nodes *before,
               const double *elapsed, double seconds);

/* "exchange", "group" or "copy". */
const char *run_kind_name(enum run_kind kind);

/* The state of a run for people: "running", or "running 12, done 4"; "open"; the phase of a copy. Returns `out`. */
const char *run_state(const struct run *r, char *out, size_t size);

/* Whether a run has failed or fails at any node, as far as nodes say. */
bool run_has_failed(const struct run *r);

/* Whether it is known that its client has ended it. */
bool run_was_cancelled(const struct run *r);

/* What there is to say about a run that failed, waits or avoids links, for people; "": nothing. Returns `out`. */
const char *run_reason(const struct run *r, char *out, size_t size);

/* An exchange, group or copy at one node; NULL: it is of another kind, or the node does not know it or has not
 * answered. */
const struct torus_activity *run_exchange_at(const struct run *r, const struct all_nodes *c,
                                             uint32_t rank);
const struct torus_group_info *run_group_at(const struct run *r, const struct all_nodes *c,
                                            uint32_t rank);
const struct torus_copy_activity *run_copy_at(const struct run *r, const struct all_nodes *c,
                                              uint32_t rank);
