#include "client/mpi/job/job.h"

/* Up to this number of dimensions all parts are opened; with more dimensions, lines and planes only. */
#define ALL_PARTS_DIMS 4u

struct job job;
bool job_is_served;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct torus_error failed; /* the reason of job_fail(); code 0: none */

void job_lock(void)
{
    if (job.threaded)
        (void)pthread_mutex_lock(&mutex);
}

void job_unlock(void)
{
    if (job.threaded)
        (void)pthread_mutex_unlock(&mutex);
}

void job_wait(pthread_cond_t *condition)
{
    (void)pthread_cond_wait(condition, &mutex);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Parts are rows, columns, planes... No part has a dimension of size 1, which would make no difference. */
bool job_is_part(uint32_t mask)
{
    unsigned wide = 0, in = 0;

    for (unsigned d = 0; d < job.dims; d++) {
        wide += job.size[d] > 1;
        in += mask >> d & 1;
        if ((mask >> d & 1) != 0 && job.size[d] == 1)
            return false;
    }
    return in > 0 && in < wide && (wide <= ALL_PARTS_DIMS || in <= 2);
}

static uint32_t all_dims(void)
{
    uint32_t mask = 0;

    for (unsigned d = 0; d < job.dims; d++)
        mask |= (uint32_t)(job.size[d] > 1) << d;
    return mask;
}

bool job_is_all(uint32_t mask)
{
    return mask == all_dims();
}

bool job_has_part(uint32_t mask)
{
    return job_is_all(mask) || (job_is_part(mask) && !job.refused[mask]);
}

/* ---- Failure --------------------------------------------------------------------------------- */

bool job_has_failed(struct torus_error *error)
{
    if (failed.code != 0)
        *error = failed;
    return failed.code != 0;
}

void job_fail(const struct torus_error *error)
{
    if (failed.code == 0)
        failed = *error;
}
