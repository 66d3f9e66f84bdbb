#include "daemon/torusd/planning/planner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/imported.h"
#include "daemon/lib/schedule/plan.h"

#define DETOURS_KEPT 3u /* detours that are kept unused */
#define UNUSED_KEPT 64u /* unused plans that are kept, in addition to those of is_always_kept() */
#define JOBS_MOST 64u   /* with more jobs under way, no work starts for other nodes */

/* The work that is done off the loop, one job for each plan, count or detour. */
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
    /* PLAN_JOB_COUNT: by index. With rates, and on networks other than tori, the request may have the algorithm with
     * the found routes; otherwise the job finds them. */
    struct counted *counted;
    struct damage damage;  /* PLAN_JOB_DETOUR; PLAN_JOB_COUNT: with rates, or none */
    struct detour *detour; /* PLAN_JOB_DETOUR, PLAN_JOB_COUNT: found routes */
    struct error error;
};

static int build_plan(struct plan_job *j)
{
    if (j->reduces)
        return reduction_build_rooted(&j->trees, &j->torus, j->algorithm, j->sender, j->rank,
                                      &j->error);
    if (j->mode == MODE_STREAMING)
        return passages_build(&j->passages, &j->torus, j->algorithm, j->rank, j->sender, &j->error);
    return plan_build_source(&j->plan, &j->torus, j->algorithm, j->rank, j->sender, &j->error);
}

static int find_transit(struct plan_job *j)
{
    if (j->mode == MODE_STREAMING)
        return passages_most_transit(&j->torus, j->algorithm, j->sender, &j->most_transit,
                                     &j->error);
    if (j->sender != TORUS_NO_NODE) {
        j->most_transit = j->algorithm->segments; /* the pieces of one block */
        return 0;
    }
    return plan_peak_transit(&j->torus, j->algorithm, &j->most_transit, &j->error);
}

static const struct damage *rates_of(const struct plan_job *j)
{
    return j->damage.rate != NULL ? &j->damage : NULL;
}

static int count_algorithm(struct plan_job *j, const struct algorithm *a, struct counted *c)
{
    if (a->operation == OPERATION_EXCHANGE)
        return predict_count_rated(&j->torus, a, a->streaming, rates_of(j), &c->counts, &j->error);
    for (int one = 0; one < 2; one++)
        for (int streaming = 0; streaming < 2; streaming++)
            if (predict_count_gather(&j->torus, a, one, streaming, &c->gather[one][streaming],
                                     &j->error) != 0)
                return -1;
    return 0;
}

static int find_detour(struct plan_job *j)
{
    if (detour_new(&j->detour, &j->damage, &j->error) != 0)
        return -1;
    detour_find_bound(j->detour);
    /* on plain tori of equal links the counts of the registry's algorithms decide */
    if (torus_is_plain(&j->torus) && j->damage.rate == NULL)
        return 0;
    return detour_count_trees(j->detour, &j->error);
}

/* With rates, and on networks other than tori: finds the routes of `stream`, unless they are known. There are none if
 * they would take too much memory; then "auto" chooses among the others. */
static int find_routes(struct plan_job *j)
{
    if ((torus_is_plain(&j->torus) && rates_of(j) == NULL) || j->algorithm != NULL ||
        (rates_of(j) != NULL ? find_detour(j)
                             : detour_new_whole(&j->detour, &j->torus, &j->error)) == 0)
        return 0;
    return j->error.code == ERROR_REFUSED ? 0 : -1;
}

/* Returns the algorithm whose counts stand for this one: the found routes for `stream`, if there are any. NULL: with rates
 * there must be such routes. */
static const struct algorithm *algorithm_here(const struct plan_job *j, const struct algorithm *a)
{
    if (strcmp(a->name, FOUND_NAME) != 0)
        return a;
    if (j->algorithm != NULL)
        return j->algorithm;
    if (j->detour != NULL)
        return detour_algorithm(j->detour);
    return rates_of(j) == NULL ? a : NULL;
}

static int count_algorithms(struct plan_job *j)
{
    if (find_routes(j) != 0)
        return -1;
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_here(j, algorithm_at(i));
        struct counted *c = &j->counted[i];
        c->candidate = a != NULL && a->port_model == PORT_MODEL_ALL && !a->only_by_name &&
                       (rates_of(j) == NULL || a->operation == OPERATION_EXCHANGE) &&
                       algorithm_accepts(a, &j->torus, NULL) == 0 && predict_is_quick(&j->torus, a);
        if (c->candidate && count_algorithm(j, a, c) != 0)
            return -1;
    }
    return 0;
}

static int run_plan_job(struct plan_job *j)
{
    switch (j->kind) {
    case PLAN_JOB_BUILD:
        return build_plan(j);
    case PLAN_JOB_TRANSIT:
        return find_transit(j);
    case PLAN_JOB_COUNT:
        return count_algorithms(j);
    case PLAN_JOB_DETOUR:
        return find_detour(j);
    }
    return -1;
}

static void run_work(struct work *work)
{
    struct plan_job *j = (struct plan_job *)work;

    if (run_plan_job(j) == 0)
        j->error.code = ERROR_NONE;
}

/* Adds or ends a use of the graphs of a network. */
static void count_user(const struct torus *t, void (*count)(const struct graph *g))
{
    for (unsigned dim = 0; dim < t->dims; dim++)
        count(t->graph[dim]);
}

/* Frees the job, with a result that was not taken out of it. */
static void plan_job_free(struct plan_job *j)
{
    if (j->algorithm != NULL && j->algorithm->imported != NULL)
        imported_free(j->algorithm->imported); /* also frees the algorithm */
    else if (j->algorithm != NULL)
        detour_free(j->algorithm->detour);
    detour_free(j->detour);
    damage_free(&j->damage);
    plan_free(&j->plan);
    passages_free(&j->passages);
    reduction_free(&j->trees);
    free(j->counted);
    count_user(&j->torus, graph_drop);
    free(j);
}

/* Copies `like`, in which the kind and the request of that kind are set. The copy's `work` is
 * ready except for done(), which the caller sets together with `planner` before it submits the
 * work. An imported algorithm or a detour stays until the caller calls plan_job_free(). Returns
 * NULL if there is no memory. */
static struct plan_job *plan_job_new(const struct plan_job *like, const struct torus *torus,
                                     uint32_t rank)
{
    struct plan_job *j = malloc(sizeof *j);
    struct error e;

    if (j == NULL)
        return NULL;
    *j = *like;
    j->damage = (struct damage){0};
    if (j->algorithm != NULL && j->algorithm->imported != NULL)
        imported_keep(j->algorithm->imported); /* the store may drop it while the job runs */
    if (j->algorithm != NULL && j->algorithm->detour != NULL)
        detour_keep(j->algorithm->detour);
    j->work = (struct work){.run = run_work};
    j->torus = *torus;
    count_user(torus, graph_keep);
    j->rank = rank;
    if (like->damage.dead != NULL && damage_copy(&j->damage, &like->damage, &e) != 0)
        goto no_memory;
    if (j->kind == PLAN_JOB_COUNT &&
        (j->counted = calloc(algorithm_count(), sizeof *j->counted)) == NULL)
        goto no_memory;
    return j;
no_memory:
    plan_job_free(j);
    return NULL;
}

/* Whether both jobs compute the same result. Both must be of the same torus and node. */
static bool plan_job_is_same(const struct plan_job *a, const struct plan_job *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == PLAN_JOB_COUNT && (rates_of(a) == NULL || rates_of(b) == NULL))
        return rates_of(a) == rates_of(b);
    if (a->kind == PLAN_JOB_DETOUR || a->kind == PLAN_JOB_COUNT)
        return damage_equal(&a->damage, &b->damage);
    return a->algorithm == b->algorithm && a->mode == b->mode && a->sender == b->sender &&
           a->reduces == b->reduces;
}

/* --- the planner --- */

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
    struct counted *rated;   /* the same for these rates; NULL: for none yet */
    struct damage rates;
    double least_pause; /* seconds; see planner_least_pause() */
    bool is_counted;
    struct kept_detour *detours;
    struct plan_job *jobs; /* under way */
    const struct plan_job
        *failed; /* the job that has failed, while the exchanges that wait for it are woken */
};

/* Whether this is the plan that the job builds. */
static bool builds(const struct plan_job *j, const struct planned *planned)
{
    return j->algorithm == planned->algorithm && j->mode == planned->mode &&
           j->sender == planned->sender && j->reduces == planned->reduces;
}

/* The plan that the job would build, if there is one. */
static struct planned *find_planned(const struct planner *p, const struct plan_job *like)
{
    struct planned *found = p->planned;

    while (found != NULL && !builds(like, found))
        found = found->next;
    return found;
}

/* Drops unused detours except the latest `kept`. */
static void drop_unused_detours(struct planner *p, unsigned kept)
{
    struct kept_detour *k, *next;

    LL_FOREACH_SAFE(p->detours, k, next)
    {
        if (k->users > 0 || kept > 0) {
            kept -= k->users == 0;
            continue;
        }
        LL_DELETE(p->detours, k);
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

/* The routes that were found where nothing is down, if they are kept. */
static const struct kept_detour *find_whole_detour(const struct planner *p)
{
    const struct kept_detour *k = p->detours;

    while (k != NULL && !damage_is_none(detour_damage(k->detour)))
        k = k->next;
    return k;
}

static void drop_rated(struct planner *p)
{
    free(p->rated);
    p->rated = NULL;
    damage_free(&p->rates);
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
    LL_PREPEND(p->detours, k);
}

static void keep_rated(struct planner *p, struct plan_job *j)
{
    drop_rated(p);
    p->rated = j->counted;
    p->rates = j->damage;
    j->counted = NULL;
    j->damage = (struct damage){0};
}

static void install_result(struct planner *p, struct plan_job *j)
{
    struct planned *planned;

    if (j->kind == PLAN_JOB_DETOUR) {
        keep_detour(p, j);
        return;
    }
    if (j->kind == PLAN_JOB_COUNT) {
        if (j->detour != NULL && find_kept_detour(p, detour_damage(j->detour)) == NULL)
            keep_detour(p, j);
        if (rates_of(j) != NULL) {
            keep_rated(p, j);
            return;
        }
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
        if ((j->kind == PLAN_JOB_BUILD || j->kind == PLAN_JOB_TRANSIT) && builds(j, planned))
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
    struct planned *planned, *next;
    unsigned kept = 0;

    LL_FOREACH_SAFE(p->planned, planned, next)
    {
        if (planned->users > 0 || is_always_kept(planned) || has_job_under_way(p, planned) ||
            kept++ < UNUSED_KEPT)
            continue;
        LL_DELETE(p->planned, planned);
        free_planned(planned);
    }
}

static void on_job_done(struct work *work)
{
    struct plan_job *j = (struct plan_job *)work;
    struct planner *p = j->planner;

    if (p != NULL) {
        LL_DELETE(p->jobs, j);
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
            LL_PREPEND(p->jobs, j);
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
    count_user(torus, graph_keep);
    p->rank = rank;
    p->least_pause = INFINITY;
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
    drop_rated(p);
    free(p->counted);
    count_user(&p->torus, graph_drop);
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

const struct detour *planner_find_detour(const struct planner *p, const struct damage *damage)
{
    const struct kept_detour *k = find_kept_detour(p, damage);

    return k != NULL ? k->detour : NULL;
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
        LL_PREPEND(p->planned, planned);
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
        LL_PREPEND(p->planned, planned);
    }
    planned->users++;
    return planned;
}

void planner_put(struct planner *p, struct planned *planned)
{
    if (--planned->users > 0 || is_always_kept(planned))
        return;
    LL_DELETE(p->planned, planned);
    LL_PREPEND(p->planned, planned);
    drop_unused_plans(p);
}

void planner_forget(struct planner *p, const struct algorithm *a)
{
    struct planned *planned, *next;

    LL_FOREACH_SAFE(p->planned, planned, next)
    {
        if (planned->algorithm != a)
            continue;
        LL_DELETE(p->planned, planned);
        free_planned(planned);
    }
}

bool planner_is_busy(const struct planner *p)
{
    const struct plan_job *j;
    unsigned jobs;

    LL_COUNT(p->jobs, j, jobs);
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

int planner_count_rated(struct planner *p, const struct damage *rates, const struct counted **out,
                        struct error *e)
{
    if (p->rated == NULL || !damage_equal(&p->rates, rates)) {
        const struct kept_detour *found = find_kept_detour(p, rates);
        const struct plan_job like = {.kind = PLAN_JOB_COUNT,
                                      .damage = *rates,
                                      .algorithm =
                                          found != NULL ? detour_algorithm(found->detour) : NULL};
        return begin_job(p, &like, e);
    }
    *out = p->rated;
    return 1;
}

struct counted *planner_counted(struct planner *p)
{
    return p->counted;
}

double planner_least_pause(struct planner *p, double pause)
{
    p->least_pause = fmin(p->least_pause, pause);
    return p->least_pause;
}
