#include "client/mpi/job/job.h"

#define ALL_PARTS_DIMS                                                                             \
    4u /* up to so many dimensions all parts are opened, beyond that lines and planes */

struct job job;
bool job_is_served;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct torus_error failed; /* why this process has given up; code 0: it has not */

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

/* Parts are rows, columns, planes... A dimension of size 1 makes no difference, so no part has
 * it. */
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

/* ---- Giving up ------------------------------------------------------------------------------- */

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
