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

int work_check(const struct torus *t, const struct algorithm *a, double work, uint64_t most,
               struct error *e)
{
    char dims[TORUS_TEXT_SIZE];

    if (work <= (double)most)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "the routes of %s on %s have about %.2g legs and hops, too many to follow "
                     "(the limit is %.2g): 'torusctl predict' has formulas",
                     a->name, torus_format(t, dims), work, (double)most);
}
