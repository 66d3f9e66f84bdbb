/* Measures collective operations of a group, for `torusctl perf`. Every member runs this with the same plan. */
#pragma once

#include <jansson.h>
#include <torus/group.h>
#include <torus/status.h>

#include "client/cli/terminal/writer.h"
#include "daemon/lib/schedule/torus.h"

#define PERF_MOST_SIZES 64
#define PERF_SMALL 16384 /* below this many bytes, calls back to back are measured, too */
#define PERF_BATCH 8     /* number of calls back to back that are timed together */

struct perf_job;

/* An operation. */
struct perf_operation {
    const char *name;

    /* Sets the sizes of both areas and the arguments of the call, for job->bytes. */
    void (*lay_out)(struct perf_job *job);
    int (*call)(struct perf_job *job, struct torus_error *e);
    /* Fill the send area for call job->number, and return how many blocks (or elements) are wrong after the call. NULL: the
     * operation has no data. */
    void (*fill)(struct perf_job *job);
    uint64_t (*wrong)(const struct perf_job *job);

    /* A lower bound on the bytes that the busiest channel must carry: job->bytes times a factor, or a function. */
    double (*bound_factor)(const struct torus *t);
    double (*bound)(const struct perf_job *job, const struct torus *t);

    /* What a node receives from other nodes, on average: */
    size_t (*size)(uint64_t bytes, uint32_t i,
                   uint32_t j); /* the bytes from member i to member j; or */
    bool to_each;               /* job->bytes from each other member; or */
    double
        shares; /* this many times what all other members would have if they shared job->bytes with this one */

    bool reduces; /* has a type and an operator */
    bool rooted;  /* has a root */
};

/* Returns the bytes that a node receives from other nodes, on average. An operation without data has 0. */
double perf_received(const struct perf_job *job);
/* Returns a lower bound on the bytes that the busiest channel must carry. An operation without data has 0. */
double perf_bound(const struct perf_job *job, const struct torus *t);

extern const struct perf_operation perf_operations[]; /* ended by a row without a name */

/* Calls lay_out() of the operation. Returns 0, or -1 with *e if job->bytes are so many that sizes could overflow. */
int perf_lay_out(struct perf_job *job, struct torus_error *e);

struct perf_plan {
    const struct perf_operation *operation;
    uint64_t size[PERF_MOST_SIZES]; /* bytes of a block, or of the vector of a reduction */
    size_t sizes;
    uint32_t repeat; /* 0: see perf_repetitions() */
    uint32_t warm_up;
    uint64_t pause_ns;
    bool verify, ordinary;
    uint32_t dimensions; /* dimensions of the part, bit d for dimension d; 0: the whole torus */
    uint32_t root;
    enum torus_type type;
    enum torus_operator combination;
};

/* The measurement of one size at this member. */
struct perf_job {
    const struct perf_plan *plan;
    struct torus_group *group; /* the group or part that makes the calls */
    uint32_t rank, members;    /* in this group */
    uint64_t bytes;
    size_t count; /* elements of a reduction */
    uint64_t number;
    size_t send_size, receive_size; /* bytes of the areas */
    uint8_t *send, *receive;
    size_t *send_bytes, *send_offset, *receive_bytes, *receive_offset; /* by member */
};

/* The results for one size, the same at all members. Times are the longest of any member, for each repetition. */
struct perf_row {
    uint64_t bytes;
    size_t repeat;
    double *latency; /* seconds, sorted */
    double *period;  /* seconds per call back to back, sorted; NULL if not measured */
    uint64_t wrong;
    double received; /* see struct perf_operation */
    double bound;
    /* If links have different rates: as in torus_link_rates, and the bound at these rates (0: not known). */
    char rates[1024];
    double full_bps, rated_bound;
};

/* Runs the plan for size `index`. `whole` is the group for barriers and memory; `part` makes the measured calls, and
 * may be `whole`; `t` is the torus of `part`. Returns 0 with *row, which the caller frees with perf_row_release(), or
 * -1 with *e. */
int perf_run(const struct perf_plan *plan, size_t index, struct torus_group *whole,
             struct torus_group *part, const struct torus *t, struct perf_row *row,
             struct torus_error *e);
void perf_row_release(struct perf_row *row);

/* Notes the rates of links that the group used. `whole`: whether it is that of the whole torus *t; of parts no bound is
 * known. */
void perf_row_set_rates(struct perf_row *row, const struct perf_plan *plan, const struct torus *t,
                        bool whole, const struct torus_group_info *info);

/* Returns the default number of repetitions if one takes `seconds`: as many as fit into a second, but 5 to 100. */
uint32_t perf_repetitions(double seconds);

/* Returns the bytes of the block from member i to member j in alltoallv. Blocks have `bytes` on average. */
size_t perf_uneven(uint64_t bytes, uint32_t i, uint32_t j);

/* Returns a lower bound on the bytes that the busiest channel must carry if i sends size(bytes, i, j) bytes to j. It
 * follows from the bytes that cross cuts of the torus along a dimension, and from the bytes that nodes send and
 * receive. Returns 0 if memory is short. */
double perf_bound_uneven(const struct torus *t, uint64_t bytes,
                         size_t (*size)(uint64_t bytes, uint32_t i, uint32_t j));

extern const char *const perf_types[];     /* by enum torus_type; NULL at 0 and at the end */
extern const char *const perf_operators[]; /* by enum torus_operator; NULL at 0 and at the end */

/* Returns an object for one size. link_mbit: 0 if unknown. NULL if memory is short. */
json_t *perf_row_value(const struct perf_plan *plan, const struct perf_row *row, double link_mbit);

/* Returns the whole report. Takes ownership of `rows`, a list of the objects above. NULL if memory is short. */
json_t *perf_value(const struct perf_plan *plan, const struct torus *whole,
                   const struct torus *part, double link_mbit, json_t *rows);

/* The view of the report; `rated`: links have different rates. */
const struct view *perf_view(bool rated);
