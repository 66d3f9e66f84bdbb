#include "daemon/torusd/planning/planner.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/imported.h"
#include "daemon/lib/schedule/routes/peak.h"
#include "daemon/lib/schedule/routes/plan_build.h"
#include "daemon/torusd/planning/plan_job.h"

#define DETOURS_KEPT 3u /* detours that are kept unused */
#define UNUSED_KEPT 64u /* unused plans that are kept, in addition to those of is_always_kept() */
#define JOBS_MOST 64u   /* with more jobs under way, no work starts for other nodes */

/* Routes that avoid the damage. The latest routes come first. */
struct kept_detour {
    struct kept_detour *next;
    struct detour *detour;
    unsigned users;
};

struct planner {
    struct torus torus;
    uint32_t rank;
    struct workers workers;
    void (*wake)(void *context);
    void *context;
    struct planned *planned; /* in the order of their last use, the latest first */
    struct counted *counted; /* by index */
    bool is_counted;
    struct kept_detour *detours;
    struct plan_job *jobs; /* under way */
    const struct plan_job
        *failed; /* the job that has failed, while the exchanges that wait for it are woken */
};

/* The plan that the job would build, if there is one. */
static struct planned *find_planned(const struct planner *p, const struct plan_job *like)
{
    struct planned *found = p->planned;

    while (found != NULL && (found->algorithm != like->algorithm || found->mode != like->mode ||
                             found->sender != like->sender || found->reduces != like->reduces))
        found = found->next;
    return found;
}

/* Drops unused detours except the latest `kept`. */
static void drop_unused_detours(struct planner *p, unsigned kept)
{
    for (struct kept_detour **at = &p->detours; *at != NULL;) {
        struct kept_detour *k = *at;
        if (k->users > 0 || kept > 0) {
            kept -= k->users == 0;
            at = &k->next;
            continue;
        }
        *at = k->next;
        planner_forget(p, detour_algorithm(k->detour));
        planner_forget(p, detour_gather(k->detour));
        if (detour_disjoint(k->detour) != NULL)
            planner_forget(p, detour_disjoint(k->detour));
        detour_free(k->detour);
        free(k);
    }
}

static struct kept_detour *find_kept_detour(const struct planner *p, const struct damage *damage)
{
    struct kept_detour *k = p->detours;

    while (k != NULL && !damage_equal(detour_damage(k->detour), damage))
        k = k->next;
    return k;
}

/* The routes that were found where nothing is out of order, if they are kept. */
static const struct kept_detour *find_whole_detour(const struct planner *p)
{
    const struct kept_detour *k = p->detours;

    while (k != NULL && !damage_is_none(detour_damage(k->detour)))
        k = k->next;
    return k;
}

/* If there is no memory, the result is dropped, and the next request starts the search again. */
static void keep_detour(struct planner *p, struct plan_job *j)
{
    struct kept_detour *k = calloc(1, sizeof *k);

    if (k == NULL)
        return;
    drop_unused_detours(p, DETOURS_KEPT - 1);
    k->detour = j->detour;
    j->detour = NULL;
    k->next = p->detours;
    p->detours = k;
}

static void install_result(struct planner *p, struct plan_job *j)
{
    struct planned *planned;

    if (j->kind == PLAN_JOB_DETOUR) {
        keep_detour(p, j);
        return;
    }
    if (j->kind == PLAN_JOB_COUNT) {
        if (j->detour != NULL && find_whole_detour(p) == NULL)
            keep_detour(p, j);
        for (size_t i = 0; i < algorithm_count(); i++) {
            p->counted[i].candidate = j->counted[i].candidate;
            p->counted[i].counts = j->counted[i].counts;
            memcpy(p->counted[i].gather, j->counted[i].gather, sizeof p->counted[i].gather);
        }
        p->is_counted = true;
        return;
    }
    planned = find_planned(p, j);
    if (planned == NULL)
        return; /* the result is no longer needed, and the next request starts the work again */
    if (j->kind == PLAN_JOB_TRANSIT) {
        planned->most_transit = j->most_transit;
        planned->transit_known = true;
        return;
    }
    planned->plan = j->plan;
    planned->passages = j->passages;
    planned->trees = j->trees;
    planned->built = true;
    j->plan = (struct plan){0};
    j->passages = (struct passages){0};
    j->trees = (struct reduction_trees){0};
}

/* Other plans are too many to keep all: there are as many broadcasts as nodes, and half as many algorithms of
 * a family. */
static bool is_always_kept(const struct planned *planned)
{
    return planned->sender == TORUS_NO_NODE &&
           (planned->algorithm == NULL || algorithm_is_listed(planned->algorithm));
}

static bool has_job_under_way(const struct planner *p, const struct planned *planned)
{
    for (const struct plan_job *j = p->jobs; j != NULL; j = j->next)
        if ((j->kind == PLAN_JOB_BUILD || j->kind == PLAN_JOB_TRANSIT) &&
            j->algorithm == planned->algorithm && j->mode == planned->mode &&
            j->sender == planned->sender && j->reduces == planned->reduces)
            return true;
    return false;
}

static void free_planned(struct planned *planned)
{
    plan_free(&planned->plan);
    passages_free(&planned->passages);
    reduction_free(&planned->trees);
    free(planned);
}

/* Keeps only the latest unused plans: the broadcasts of a program usually have the same few roots. */
static void drop_unused_plans(struct planner *p)
{
    unsigned kept = 0;

    for (struct planned **at = &p->planned; *at != NULL;) {
        struct planned *planned = *at;
        if (planned->users > 0 || is_always_kept(planned) || has_job_under_way(p, planned) ||
            kept++ < UNUSED_KEPT) {
            at = &planned->next;
            continue;
        }
        *at = planned->next;
        free_planned(planned);
    }
}

static void on_job_done(struct work *work)
{
    struct plan_job *j = (struct plan_job *)work;
    struct planner *p = j->planner;

    if (p != NULL) {
        for (struct plan_job **at = &p->jobs; *at != NULL; at = &(*at)->next)
            if (*at == j) {
                *at = j->next;
                break;
            }
        if (j->error.code != ERROR_NONE)
            p->failed = j;
        else
            install_result(p, j);
        p->wake(p->context);
        p->failed = NULL;
    }
    plan_job_free(j);
}

static bool find_job_like(const struct planner *p, const struct plan_job *like)
{
    for (const struct plan_job *j = p->jobs; j != NULL; j = j->next)
        if (plan_job_is_same(j, like))
            return true;
    return false;
}

/* Returns 0 if the job is under way; -1 with *e: there is no memory, or the job has just failed. */
static int begin_job(struct planner *p, const struct plan_job *like, struct error *e)
{
    struct plan_job *j;

    if (find_job_like(p, like))
        return 0;
    if (p->failed != NULL && plan_job_is_same(p->failed, like)) {
        *e = p->failed->error;
        return -1;
    }
    j = plan_job_new(like, &p->torus, p->rank);
    if (j != NULL) {
        j->planner = p;
        j->work.done = on_job_done;
        if (workers_submit(&p->workers, &j->work) == 0) {
            j->next = p->jobs;
            p->jobs = j;
            return 0;
        }
        plan_job_free(j);
    }
    return error_set(e, ERROR_MEMORY, "out of memory for a schedule");
}

struct planner *planner_new(const struct torus *torus, uint32_t rank, const struct workers *workers,
                            void (*wake)(void *context), void *context)
{
    struct planner *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->counted = calloc(algorithm_count(), sizeof *p->counted);
    if (p->counted == NULL) {
        free(p);
        return NULL;
    }
    p->torus = *torus;
    p->rank = rank;
    p->workers = *workers;
    p->wake = wake;
    p->context = context;
    return p;
}

void planner_free(struct planner *p)
{
    for (struct plan_job *j = p->jobs; j != NULL; j = j->next)
        j->planner = NULL;
    while (p->planned != NULL) {
        struct planned *planned = p->planned;
        p->planned = planned->next;
        free_planned(planned);
    }
    drop_unused_detours(p, 0);
    free(p->counted);
    free(p);
}

int planner_get_detour(struct planner *p, const struct damage *damage, const struct detour **out,
                       struct error *e)
{
    const struct plan_job like = {.kind = PLAN_JOB_DETOUR, .damage = *damage};
    struct kept_detour *k = find_kept_detour(p, damage);

    if (k == NULL)
        return begin_job(p, &like, e);
    k->users++;
    *out = k->detour;
    return 1;
}

void planner_put_detour(struct planner *p, const struct detour *detour)
{
    for (struct kept_detour *k = p->detours; k != NULL; k = k->next)
        k->users -= k->detour == detour;
    drop_unused_detours(p, DETOURS_KEPT);
}

/* Gets the result of a PLAN_JOB_BUILD job; if `anywhere`, with most_transit. */
static int get_planned(struct planner *p, const struct plan_job *build_job, bool anywhere,
                       struct planned **out, struct error *e)
{
    struct planned *planned = find_planned(p, build_job);
    struct plan_job transit = *build_job;

    if (planned == NULL) {
        drop_unused_plans(p);
        planned = calloc(1, sizeof *planned);
        if (planned == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for a schedule");
        planned->algorithm = build_job->algorithm;
        planned->mode = build_job->mode;
        planned->sender = build_job->sender;
        planned->reduces = build_job->reduces;
        planned->next = p->planned;
        p->planned = planned;
    }
    if (!planned->built)
        return begin_job(p, build_job, e);
    transit.kind = PLAN_JOB_TRANSIT;
    if (anywhere && !planned->transit_known)
        return begin_job(p, &transit, e);
    planned->users++;
    *out = planned;
    return 1;
}

int planner_get(struct planner *p, const struct algorithm *a, enum mode mode, uint32_t sender,
                bool anywhere, struct planned **out, struct error *e)
{
    const struct plan_job like = {
        .kind = PLAN_JOB_BUILD, .algorithm = a, .mode = mode, .sender = sender};

    return get_planned(p, &like, anywhere, out, e);
}

int planner_get_reduction(struct planner *p, const struct algorithm *a, uint32_t root,
                          struct planned **out, struct error *e)
{
    const struct plan_job like = {.kind = PLAN_JOB_BUILD,
                                  .algorithm = a,
                                  .mode = MODE_STREAMING,
                                  .sender = root,
                                  .reduces = true};

    return get_planned(p, &like, false, out, e);
}

struct planned *planner_get_empty(struct planner *p)
{
    const struct plan_job like = {.mode = MODE_STEPPED, .sender = TORUS_NO_NODE};
    struct planned *planned = find_planned(p, &like);

    if (planned == NULL) {
        planned = calloc(1, sizeof *planned);
        if (planned == NULL)
            return NULL;
        planned->mode = MODE_STEPPED;
        planned->sender = TORUS_NO_NODE;
        planned->plan.rank = p->rank;
        planned->built = planned->transit_known = true;
        planned->next = p->planned;
        p->planned = planned;
    }
    planned->users++;
    return planned;
}

void planner_put(struct planner *p, struct planned *planned)
{
    struct planned **at = &p->planned;

    if (--planned->users > 0 || is_always_kept(planned))
        return;
    while (*at != planned)
        at = &(*at)->next;
    *at = planned->next;
    planned->next = p->planned;
    p->planned = planned;
    drop_unused_plans(p);
}

void planner_forget(struct planner *p, const struct algorithm *a)
{
    for (struct planned **at = &p->planned; *at != NULL;) {
        struct planned *planned = *at;
        if (planned->algorithm != a) {
            at = &planned->next;
            continue;
        }
        *at = planned->next;
        free_planned(planned);
    }
}

bool planner_is_busy(const struct planner *p)
{
    unsigned jobs = 0;

    for (const struct plan_job *j = p->jobs; j != NULL; j = j->next)
        jobs++;
    return jobs >= JOBS_MOST;
}

int planner_count(struct planner *p, struct counted **out, struct error *e)
{
    if (!p->is_counted) {
        const struct kept_detour *found = torus_is_plain(&p->torus) ? NULL : find_whole_detour(p);
        const struct plan_job like = {.kind = PLAN_JOB_COUNT,
                                      .algorithm =
                                          found != NULL ? detour_algorithm(found->detour) : NULL};
        return begin_job(p, &like, e);
    }
    *out = p->counted;
    return 1;
}

struct counted *planner_counted(struct planner *p)
{
    return p->counted;
}
