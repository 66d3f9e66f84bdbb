#include "daemon/planning/planner.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/schedule/family.h"
#include "daemon/schedule/imported.h"
#include "daemon/schedule/peak.h"

#define DETOURS_KEPT 3u /* that nobody uses now */
#define UNUSED_KEPT 64u /* of the plans that need not be kept */
#define JOBS_MOST 64u   /* with more under way, nothing new is begun for other nodes */

enum kind { BUILD, TRANSIT, COUNT, DETOUR };

struct job {
    struct work work;
    struct job *next;
    struct planner *planner; /* NULL: it has gone */
    enum kind kind;
    struct torus torus;
    uint32_t rank;
    /* BUILD, TRANSIT: what for, and what has been computed */
    const struct algorithm *algorithm;
    enum mode mode;
    uint32_t sender;
    bool reduces;
    struct plan plan;
    struct passages passages;
    struct reduction_trees trees;
    uint32_t most_transit;
    struct counted *counted; /* COUNT: by index */
    struct damage damage;    /* DETOUR */
    struct detour *detour;
    struct error error;
};

/* Routes around what is out of order. The youngest come first. */
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
    struct planned *planned; /* those that were asked for or used last come first */
    struct counted *counted; /* by index */
    bool is_counted;
    struct kept_detour *detours;
    struct job *jobs;         /* under way */
    const struct job *failed; /* while those who wait for it are woken */
};

/* --- off the loop --- */

static int build(struct job *j)
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

static int find_transit(struct job *j)
{
    if (j->mode == MODE_STREAMING)
        return passages_most_transit(&j->torus, j->algorithm, j->sender, &j->most_transit,
                                     &j->error);
    if (j->sender != TORUS_NO_NODE) {
        j->most_transit = j->algorithm->segments; /* of one block */
        return 0;
    }
    return plan_peak_transit(&j->torus, j->algorithm, &j->most_transit, &j->error);
}

static int count_one(struct job *j, const struct algorithm *a, struct counted *c)
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

static int count(struct job *j)
{
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        struct counted *c = &j->counted[i];
        c->candidate = a->port_model == PORT_MODEL_ALL && a->accepts(&j->torus, NULL) == 0 &&
                       predict_is_quick(&j->torus, a);
        if (c->candidate && count_one(j, a, c) != 0)
            return -1;
    }
    return 0;
}

static int find_detour(struct job *j)
{
    if (detour_new(&j->detour, &j->damage, &j->error) != 0)
        return -1;
    detour_find_bound(j->detour);
    return 0;
}

static int run(struct job *j)
{
    switch (j->kind) {
    case BUILD:
        return build(j);
    case TRANSIT:
        return find_transit(j);
    case COUNT:
        return count(j);
    case DETOUR:
        return find_detour(j);
    }
    return -1;
}

static void on_run(struct work *work)
{
    struct job *j = (struct job *)work;

    if (run(j) == 0)
        j->error.code = ERROR_NONE;
}

/* --- on the loop --- */

static void free_job(struct job *j)
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

/* What is planned as the job says. */
static struct planned *find(const struct planner *p, const struct job *like)
{
    struct planned *found = p->planned;

    while (found != NULL && (found->algorithm != like->algorithm || found->mode != like->mode ||
                             found->sender != like->sender || found->reduces != like->reduces))
        found = found->next;
    return found;
}

/* Those that nobody uses go, but the youngest few. */
static void drop_detours(struct planner *p, unsigned kept)
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
        detour_free(k->detour);
        free(k);
    }
}

static struct kept_detour *find_kept(const struct planner *p, const struct damage *damage)
{
    struct kept_detour *k = p->detours;

    while (k != NULL && !damage_equal(detour_damage(k->detour), damage))
        k = k->next;
    return k;
}

/* Without memory it is thrown away, and the next one who asks has it found again. */
static void keep_detour(struct planner *p, struct job *j)
{
    struct kept_detour *k = calloc(1, sizeof *k);

    if (k == NULL)
        return;
    drop_detours(p, DETOURS_KEPT - 1);
    k->detour = j->detour;
    j->detour = NULL;
    k->next = p->detours;
    p->detours = k;
}

static void install(struct planner *p, struct job *j)
{
    struct planned *planned;

    if (j->kind == DETOUR) {
        keep_detour(p, j);
        return;
    }
    if (j->kind == COUNT) {
        for (size_t i = 0; i < algorithm_count(); i++) {
            p->counted[i].candidate = j->counted[i].candidate;
            p->counted[i].counts = j->counted[i].counts;
            memcpy(p->counted[i].gather, j->counted[i].gather, sizeof p->counted[i].gather);
        }
        p->is_counted = true;
        return;
    }
    planned = find(p, j);
    if (planned == NULL)
        return; /* nobody waits for it any more: the next one asks again */
    if (j->kind == TRANSIT) {
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

/* The others are many: as many broadcasts as nodes, and half as many algorithms of a family. */
static bool is_kept(const struct planned *planned)
{
    return planned->sender == TORUS_NO_NODE &&
           (planned->algorithm == NULL || !family_made(planned->algorithm));
}

static bool has_job(const struct planner *p, const struct planned *planned)
{
    for (const struct job *j = p->jobs; j != NULL; j = j->next)
        if ((j->kind == BUILD || j->kind == TRANSIT) && j->algorithm == planned->algorithm &&
            j->mode == planned->mode && j->sender == planned->sender &&
            j->reduces == planned->reduces)
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

/* A program's broadcasts mostly come from few roots, again and again: of what nobody uses now, the youngest
 * stay. Perhaps nobody has ever come for them. */
static void drop_unused(struct planner *p)
{
    unsigned kept = 0;

    for (struct planned **at = &p->planned; *at != NULL;) {
        struct planned *planned = *at;
        if (planned->users > 0 || is_kept(planned) || has_job(p, planned) || kept++ < UNUSED_KEPT) {
            at = &planned->next;
            continue;
        }
        *at = planned->next;
        free_planned(planned);
    }
}

static void on_done(struct work *work)
{
    struct job *j = (struct job *)work;
    struct planner *p = j->planner;

    if (p != NULL) {
        for (struct job **at = &p->jobs; *at != NULL; at = &(*at)->next)
            if (*at == j) {
                *at = j->next;
                break;
            }
        if (j->error.code != ERROR_NONE)
            p->failed = j;
        else
            install(p, j);
        p->wake(p->context);
        p->failed = NULL;
    }
    free_job(j);
}

static bool is_for_the_same(const struct job *j, const struct job *like)
{
    if (j->kind != like->kind)
        return false;
    if (j->kind == DETOUR)
        return damage_equal(&j->damage, &like->damage);
    return j->algorithm == like->algorithm && j->mode == like->mode && j->sender == like->sender &&
           j->reduces == like->reduces;
}

static bool under_way(const struct planner *p, const struct job *like)
{
    for (const struct job *j = p->jobs; j != NULL; j = j->next)
        if (is_for_the_same(j, like))
            return true;
    return false;
}

/* Returns 0: it is under way; -1 with *e: there is no memory, or it has just failed. */
static int begin(struct planner *p, const struct job *like, struct error *e)
{
    struct job *j;

    if (under_way(p, like))
        return 0;
    if (p->failed != NULL && is_for_the_same(p->failed, like)) {
        *e = p->failed->error;
        return -1;
    }
    j = malloc(sizeof *j);
    if (j == NULL)
        goto no_memory;
    *j = *like;
    j->damage = (struct damage){0};
    if (j->algorithm != NULL && j->algorithm->imported != NULL)
        imported_keep(j->algorithm->imported); /* it may be forgotten meanwhile */
    if (j->algorithm != NULL && j->algorithm->detour != NULL)
        detour_keep(j->algorithm->detour);
    if (j->kind == DETOUR && damage_copy(&j->damage, &like->damage, e) != 0)
        goto no_memory;
    j->work = (struct work){.run = on_run, .done = on_done};
    j->planner = p;
    j->torus = p->torus;
    j->rank = p->rank;
    if (j->kind == COUNT && (j->counted = calloc(algorithm_count(), sizeof *j->counted)) == NULL)
        goto no_memory;
    if (workers_submit(&p->workers, &j->work) != 0)
        goto no_memory;
    j->next = p->jobs;
    p->jobs = j;
    return 0;
no_memory:
    if (j != NULL)
        free_job(j);
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
    for (struct job *j = p->jobs; j != NULL; j = j->next)
        j->planner = NULL;
    while (p->planned != NULL) {
        struct planned *planned = p->planned;
        p->planned = planned->next;
        free_planned(planned);
    }
    drop_detours(p, 0);
    free(p->counted);
    free(p);
}

int planner_detour(struct planner *p, const struct damage *damage, const struct detour **out,
                   struct error *e)
{
    const struct job like = {.kind = DETOUR, .damage = *damage};
    struct kept_detour *k = find_kept(p, damage);

    if (k == NULL)
        return begin(p, &like, e);
    k->users++;
    *out = k->detour;
    return 1;
}

void planner_leave_detour(struct planner *p, const struct detour *detour)
{
    for (struct kept_detour *k = p->detours; k != NULL; k = k->next)
        k->users -= k->detour == detour;
    drop_detours(p, DETOURS_KEPT);
}

/* What the job, a BUILD, would bring, and what is on its way at the most if `anywhere`. */
static int get(struct planner *p, const struct job *build_job, bool anywhere, struct planned **out,
               struct error *e)
{
    struct planned *planned = find(p, build_job);
    struct job transit = *build_job;

    if (planned == NULL) {
        drop_unused(p);
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
        return begin(p, build_job, e);
    transit.kind = TRANSIT;
    if (anywhere && !planned->transit_known)
        return begin(p, &transit, e);
    planned->users++;
    *out = planned;
    return 1;
}

int planner_get(struct planner *p, const struct algorithm *a, enum mode mode, uint32_t sender,
                bool anywhere, struct planned **out, struct error *e)
{
    const struct job like = {.kind = BUILD, .algorithm = a, .mode = mode, .sender = sender};

    return get(p, &like, anywhere, out, e);
}

int planner_get_reduction(struct planner *p, const struct algorithm *a, uint32_t root,
                          struct planned **out, struct error *e)
{
    const struct job like = {
        .kind = BUILD, .algorithm = a, .mode = MODE_STREAMING, .sender = root, .reduces = true};

    return get(p, &like, false, out, e);
}

struct planned *planner_get_empty(struct planner *p)
{
    const struct job like = {.mode = MODE_STEPPED, .sender = TORUS_NO_NODE};
    struct planned *planned = find(p, &like);

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

    if (--planned->users > 0 || is_kept(planned))
        return;
    while (*at != planned)
        at = &(*at)->next;
    *at = planned->next;
    planned->next = p->planned;
    p->planned = planned;
    drop_unused(p);
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

    for (const struct job *j = p->jobs; j != NULL; j = j->next)
        jobs++;
    return jobs >= JOBS_MOST;
}

int planner_count(struct planner *p, struct counted **out, struct error *e)
{
    const struct job like = {.kind = COUNT};

    if (!p->is_counted)
        return begin(p, &like, e);
    *out = p->counted;
    return 1;
}

struct counted *planner_counted(struct planner *p)
{
    return p->counted;
}
