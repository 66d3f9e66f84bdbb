#include "daemon/torusd/planning/plan_job.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/imported.h"
#include "daemon/lib/schedule/routes/peak.h"
#include "daemon/lib/schedule/routes/plan_build.h"

static int build_plan(struct plan_job *j)
{
    if (j->reduces)
        return reduction_build_rooted(&j->trees, &j->torus, j->algorithm, j->sender, j->rank,
                                      &j->error);
    if (j->mode == MODE_STREAMING)
        return passages_build_source(&j->passages, &j->torus, j->algorithm, j->rank, j->sender,
                                     &j->error);
    if (j->sender != TORUS_NO_NODE)
        return plan_build_source(&j->plan, &j->torus, j->algorithm, j->rank, j->sender, &j->error);
    return plan_build(&j->plan, &j->torus, j->algorithm, j->rank, &j->error);
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

static int count_algorithm(struct plan_job *j, const struct algorithm *a, struct counted *c)
{
    if (a->operation == OPERATION_EXCHANGE)
        return predict_count(&j->torus, a, a->streaming, &c->counts, &j->error);
    for (int one = 0; one < 2; one++)
        for (int streaming = 0; streaming < 2; streaming++)
            if (predict_count_gather(&j->torus, a, one, streaming, &c->gather[one][streaming],
                                     &j->error) != 0)
                return -1;
    return 0;
}

/* On networks other than tori: finds the routes of `stream`, unless they are known. There are none if they would
 * take too much memory; then "auto" chooses among the others. */
static int find_whole_routes(struct plan_job *j)
{
    if (torus_is_plain(&j->torus) || j->algorithm != NULL ||
        detour_new_whole(&j->detour, &j->torus, &j->error) == 0)
        return 0;
    return j->error.code == ERROR_REFUSED ? 0 : -1;
}

/* Returns the algorithm whose counts stand for this one: the found routes for `stream`, if there are any. */
static const struct algorithm *algorithm_here(const struct plan_job *j, const struct algorithm *a)
{
    if (strcmp(a->name, FOUND_NAME) != 0)
        return a;
    if (j->algorithm != NULL)
        return j->algorithm;
    return j->detour != NULL ? detour_algorithm(j->detour) : a;
}

static int count_algorithms(struct plan_job *j)
{
    if (find_whole_routes(j) != 0)
        return -1;
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_here(j, algorithm_at(i));
        struct counted *c = &j->counted[i];
        c->candidate = a->port_model == PORT_MODEL_ALL &&
                       algorithm_accepts(a, &j->torus, NULL) == 0 && predict_is_quick(&j->torus, a);
        if (c->candidate && count_algorithm(j, a, c) != 0)
            return -1;
    }
    return 0;
}

static int find_detour(struct plan_job *j)
{
    if (detour_new(&j->detour, &j->damage, &j->error) != 0)
        return -1;
    detour_find_bound(j->detour);
    if (torus_is_plain(&j->torus)) /* there the counts of the registry's algorithms decide */
        return 0;
    return detour_count_trees(j->detour, &j->error);
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

struct plan_job *plan_job_new(const struct plan_job *like, const struct torus *torus, uint32_t rank)
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
    j->rank = rank;
    if (j->kind == PLAN_JOB_DETOUR && damage_copy(&j->damage, &like->damage, &e) != 0)
        goto no_memory;
    if (j->kind == PLAN_JOB_COUNT &&
        (j->counted = calloc(algorithm_count(), sizeof *j->counted)) == NULL)
        goto no_memory;
    return j;
no_memory:
    plan_job_free(j);
    return NULL;
}

void plan_job_free(struct plan_job *j)
{
    if (j->algorithm != NULL && j->algorithm->imported != NULL)
        imported_free(j->algorithm->imported); /* the algorithm with it */
    else if (j->algorithm != NULL)
        detour_free(j->algorithm->detour);
    detour_free(j->detour);
    damage_free(&j->damage);
    plan_free(&j->plan);
    passages_free(&j->passages);
    reduction_free(&j->trees);
    free(j->counted);
    free(j);
}

bool plan_job_is_same(const struct plan_job *a, const struct plan_job *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == PLAN_JOB_DETOUR)
        return damage_equal(&a->damage, &b->damage);
    if (a->kind == PLAN_JOB_COUNT)
        return true;
    return a->algorithm == b->algorithm && a->mode == b->mode && a->sender == b->sender &&
           a->reduces == b->reduces;
}
