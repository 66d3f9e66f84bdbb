/* Collective operations of a group, called and timed as a program would: `torusctl perf`. Every
 * member runs all of this with the same plan. */
#ifndef TORUSD_CLI_PERF_H
#define TORUSD_CLI_PERF_H

#include <torus/group.h>

#include "daemon/schedule/torus.h"

#define PERF_MOST_SIZES 64
#define PERF_SMALL 16384 /* below so many bytes, calls back to back are measured as well */
#define PERF_BATCH 8     /* calls that are timed together when they are back to back */

struct perf_job;

/* One operation. */
struct perf_operation {
    const char *name;
    bool sized;   /* else it has no data: barrier */
    bool reduces; /* it has a type and an operator */
    bool rooted;

    /* Sets the sizes of both areas, and what the call needs besides, for job->bytes. */
    void (*lay_out)(struct perf_job *job);
    int (*call)(struct perf_job *job, struct torus_error *e);
    /* The contents of call job->number before it; how many blocks (or elements) are wrong after. */
    void (*fill)(struct perf_job *job);
    uint64_t (*wrong)(const struct perf_job *job);
    /* Bytes that a node receives from others, on average, and that the busiest channel must carry. */
    double (*received)(const struct perf_job *job);
    double (*bound)(const struct perf_job *job, const struct torus *t);
};

extern const struct perf_operation perf_operations[]; /* without a name at the end */

/* Calls the operation's lay_out(), with which the sizes of no area overflow. Returns 0, or -1 with *e
 * if job->bytes are too many for so many members. */
int perf_lay_out(struct perf_job *job, struct torus_error *e);

struct perf_plan {
    const struct perf_operation *operation;
    uint64_t size[PERF_MOST_SIZES]; /* in bytes: of a block; of a reduction's vector */
    size_t sizes;
    uint32_t repeat; /* 0: as the time of a call allows */
    uint32_t warm_up;
    uint64_t pause_ns;
    bool verify, ordinary;
    uint32_t dimensions; /* of the part, bit d: dimension d; 0: the whole torus */
    uint32_t root;
    enum torus_type type;
    enum torus_operator combination;
};

/* One size of it, at this member. */
struct perf_job {
    const struct perf_plan *plan;
    struct torus_group *group; /* that is called: the whole one or the part */
    uint32_t rank, members;    /* in it */
    uint64_t bytes;
    size_t count; /* elements of a reduction */
    uint64_t number;
    size_t send_size, receive_size; /* of the areas */
    uint8_t *send, *receive;
    size_t *send_bytes, *send_offset, *receive_bytes, *receive_offset; /* one for each member */
};

/* What came of one size, the same at all members: of each repetition the longest time of any. */
struct perf_row {
    uint64_t bytes;
    size_t repeat;
    double *latency; /* seconds, sorted */
    double *period;  /* the same; NULL if not measured */
    uint64_t wrong;
    double received; /* as above */
    double bound;
};

/* Runs the plan at size `index`. `whole` is the group that members meet in, and the memory's; `part`
 * is the one to call, often the same; `t` is its torus. Returns 0 with *row, to be released, or -1
 * with *e. */
int perf_run(const struct perf_plan *plan, size_t index, struct torus_group *whole,
             struct torus_group *part, const struct torus *t, struct perf_row *row,
             struct torus_error *e);
void perf_row_release(struct perf_row *row);

/* How often a size is measured if nobody says: about a second, but at least 5 times and at most 100. */
uint32_t perf_repetitions(double seconds);

/* The block that member i sends to member j in alltoallv, where blocks have `bytes` on average. */
size_t perf_uneven(uint64_t bytes, uint32_t i, uint32_t j);

/* A lower bound on the bytes that the busiest channel must carry if i sends size(bytes, i, j) to j:
 * by what crosses cuts of the torus into two parts along a dimension, and by what the nodes send and
 * receive. 0 for want of memory. */
double perf_bound_uneven(const struct torus *t, uint64_t bytes,
                         size_t (*size)(uint64_t bytes, uint32_t i, uint32_t j));

#endif
