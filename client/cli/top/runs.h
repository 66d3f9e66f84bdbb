/* What runs on a torus, put together from what all nodes say: exchanges and groups of programs. */
#ifndef TORUSD_CLI_TOP_RUNS_H
#define TORUSD_CLI_TOP_RUNS_H

#include "client/cli/survey/all_nodes.h"

#define TOP_MOST_RUNS 64u
#define TOP_RUN_NAME_SIZE 80u
#define TOP_STATES (TORUS_STATE_IN_DOUBT + 1u)

struct top_run {
    char name[TOP_RUN_NAME_SIZE]; /* the id of an exchange, the name of a group */
    bool group;
    bool ended;         /* at all nodes that know it */
    uint32_t nodes;     /* that know it */
    double rate;        /* bytes a second that all nodes receive; below 0: not known */
    double part;        /* that is done, 0 to 1; below 0: not known */
    double left;        /* seconds; below 0: not known */
    const char *reason; /* of a failure; "": none. Valid as long as the survey */

    /* Exchanges: */
    const char *algorithm;       /* valid as long as the survey */
    uint32_t states[TOP_STATES]; /* how many nodes are in each state */
    uint32_t coordinator;
    uint64_t age_ms, round, rounds;   /* the lowest round */
    uint64_t done, total;             /* bytes at all nodes */
    double first_part, first_seconds; /* when the run was seen first */

    /* Groups: */
    uint32_t open;                /* nodes on which it is open */
    uint64_t calls, calls_done;   /* made by the fastest member; done by the slowest */
    double call_rate;             /* calls a second; below 0: not known */
    const char *missing, *avoids; /* as in torus_group_info */
};

struct top_runs {
    struct top_run run[TOP_MOST_RUNS]; /* first those that are under way */
    size_t count, left_out;
};

/* Fills *runs from the survey `now`, and rates from `before` (`state` may be NULL). `elapsed[rank]` are the seconds
 * between both, by the clock of each node; 0 or less: not known. `*runs` has what it was filled with before, or zeros. */
void top_runs_fill(struct top_runs *runs, const struct all_nodes *now,
                   const struct all_nodes *before, const double *elapsed, double seconds);

/* The state of an exchange for people: "running", or "running 12, done 4". Returns `out`. */
const char *top_run_states(const struct top_run *r, char *out, size_t size);

/* An exchange or group at one node; NULL: the node does not know it, or has not answered. */
const struct torus_activity *top_run_exchange_at(const struct top_run *r, const struct all_nodes *c,
                                                 uint32_t rank);
const struct torus_group_info *top_run_group_at(const struct top_run *r, const struct all_nodes *c,
                                                uint32_t rank);

#endif
