/* The work of a planner that is done off the loop, one job for each plan, count or detour. */
#pragma once

#include "daemon/torusd/planning/planner.h"

enum plan_job_kind { PLAN_JOB_BUILD, PLAN_JOB_TRANSIT, PLAN_JOB_COUNT, PLAN_JOB_DETOUR };

struct plan_job {
    struct work work;
    struct plan_job *next;
    struct planner *planner; /* NULL: the planner has been freed */
    enum plan_job_kind kind;
    struct torus torus;
    uint32_t rank;
    /* PLAN_JOB_BUILD, PLAN_JOB_TRANSIT: the request, and the result */
    const struct algorithm *algorithm;
    enum mode mode;
    uint32_t sender;
    bool reduces;
    struct plan plan;
    struct passages passages;
    struct reduction_trees trees;
    uint32_t most_transit;
    /* PLAN_JOB_COUNT: by index. On networks other than tori the request may have the algorithm with the found
     * routes; otherwise the job finds them. */
    struct counted *counted;
    struct damage damage;  /* PLAN_JOB_DETOUR */
    struct detour *detour; /* PLAN_JOB_DETOUR, PLAN_JOB_COUNT: found routes */
    struct error error;
};

/* Copies `like`, in which the kind and the request of that kind are set. The copy's `work` is
 * ready except for done(), which the caller sets together with `planner` before it submits the
 * work. An imported algorithm or a detour stays until the caller calls plan_job_free(). Returns
 * NULL if there is no memory. */
struct plan_job *plan_job_new(const struct plan_job *like, const struct torus *torus,
                              uint32_t rank);
/* Frees the job, with a result that was not taken out of it. */
void plan_job_free(struct plan_job *j);

/* Whether both jobs compute the same result. Both must be of the same torus and node. */
bool plan_job_is_same(const struct plan_job *a, const struct plan_job *b);
