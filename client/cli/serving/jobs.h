/* What runs on a torus, put together from what all nodes say: exchanges, groups of programs, copies of trees. */
#ifndef TORUSD_CLI_JOBS_H
#define TORUSD_CLI_JOBS_H

#include "client/cli/survey/all_nodes.h"

#define JOBS_MOST 64u
#define JOB_TEXT_SIZE 101u
#define JOB_STATES (TORUS_STATE_IN_DOUBT + 1u)

enum job_kind { JOB_EXCHANGE, JOB_GROUP, JOB_COPY };

struct job {
    enum job_kind kind;
    char id[JOB_TEXT_SIZE];
    char what[JOB_TEXT_SIZE];    /* the algorithm, the name of the group, the target of the copy */
    char reason[200];            /* why it failed, waits or avoids links; "": nothing to say */
    bool ended;                  /* at all nodes that know it */
    uint32_t nodes;              /* that know it */
    uint32_t root;               /* that was asked; TORUS_RANK_NONE: nobody */
    uint32_t states[JOB_STATES]; /* exchanges: how many nodes are in each state */
    const char *phase;           /* copies; static, NULL otherwise */
    uint32_t open;               /* groups: nodes at which the group is open */
    uint64_t age_ms;             /* 0: not known */
    uint64_t done, total;        /* bytes; total 0: not known */
    uint64_t round, rounds;      /* exchanges: the lowest round of any node */
    uint64_t calls, calls_done;  /* groups: made by the fastest member, done by the slowest */
    double part;                 /* that is done, 0 to 1; below 0: not known */
    double rate;                 /* bytes a second; below 0: not known */
    double left;                 /* seconds; below 0: not known */
};

struct jobs {
    struct job job[JOBS_MOST]; /* first those that are under way */
    size_t count, left_out;
};

/* Replaces *jobs, which has what the survey before gave (or zeros), by what the survey `now` says. `since`: seconds
 * between both; 0: rates are not known. */
void jobs_fill(struct jobs *jobs, const struct all_nodes *now, double since);

/* The kind and the state of a job for people: "exchange"; "running", "running 12, done 4". */
const char *job_kind_name(enum job_kind kind);
const char *job_state(const struct job *j, char *out, size_t size);

#endif
