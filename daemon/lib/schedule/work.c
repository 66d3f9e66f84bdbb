#include "daemon/lib/schedule/work.h"

#include <stddef.h>

static _Thread_local struct {
    watch_fn *fn;
    void *context;
} watch;

void watch_set(watch_fn *fn, void *context)
{
    watch.fn = fn;
    watch.context = context;
}

void watch_tell(double done)
{
    if (watch.fn != NULL)
        watch.fn(watch.context, done);
}

double work_routes(const struct torus *t, const struct algorithm *a)
{
    uint32_t period[TORUS_MAX_DIMS];
    double routes = (double)t->nodes * a->segments;

    algorithm_period(a, t, period);
    for (unsigned i = 0; i < t->dims; i++)
        routes *= period[i];
    return routes;
}

/* The work of one route: the most legs, and the average number of hops between two nodes. */
static double work_of_one(const struct torus *t, const struct algorithm *a)
{
    double work = algorithm_max_legs(a, t);

    for (unsigned i = 0; i < t->dims; i++)
        work += t->graph[i] != NULL ? t->graph[i]->diameter : t->size[i] / (t->wrap[i] ? 4.0 : 3.0);
    return work;
}

double work_of(const struct torus *t, const struct algorithm *a)
{
    return work_routes(t, a) * work_of_one(t, a);
}

double work_of_all(const struct torus *t, const struct algorithm *a)
{
    return (double)t->nodes * t->nodes * a->segments * work_of_one(t, a);
}

bool work_by_rule(const struct torus *t, const struct algorithm *a)
{
    return a->messages != NULL && torus_is_plain(t) && work_of(t, a) > (double)WORK_QUICK;
}

double work_routes_followed(const struct torus *t, const struct algorithm *a)
{
    double others = 0;

    for (unsigned i = 0; i < t->dims; i++)
        others += t->size[i] - 1;
    return a->by_lines ? work_routes(t, a) / t->nodes * others : work_routes(t, a);
}

static int add_work(void *context, const struct leg *leg, uint64_t blocks)
{
    double *work = context;

    (void)blocks;
    *work += 1 + leg->hops;
    return 0;
}

/* The messages of all nodes, and their hops, if all nodes send as many as node 0. */
static double work_of_rule(const struct torus *t, const struct algorithm *a)
{
    double work = 0;

    (void)a->messages(a, t, 0, add_work, &work);
    return work * t->nodes;
}

double work_to_verify(const struct torus *t, const struct algorithm *a)
{
    if (work_by_rule(t, a))
        return work_of_rule(t, a);
    /* A route between nodes of a line has the legs and hops of one dimension. */
    return work_routes_followed(t, a) * work_of_one(t, a) / (a->by_lines ? t->dims : 1);
}

int work_check(const struct torus *t, const struct algorithm *a, double work, uint64_t most,
               struct error *e)
{
    char dims[TORUS_TEXT_SIZE];

    if (work <= (double)most)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "the routes of %s on %s have about %.2g legs and hops, too many to follow "
                     "(the limit is %.2g): 'torusctl predict' has formulas for some algorithms",
                     a->name, torus_format(t, dims), work, (double)most);
}
