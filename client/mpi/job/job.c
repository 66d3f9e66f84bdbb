#include "client/mpi/job/job.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "client/mpi/job/statistics.h"
#include "client/mpi/library/real.h"

/* Up to this number of dimensions all parts are opened; with more dimensions, lines and planes only. */
#define ALL_PARTS_DIMS 4u

struct job job;

bool job_is_served;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct torus_error failed; /* the reason of job_fail(); code 0: none */

void job_lock(void)
{
    if (job_has_threads())
        (void)pthread_mutex_lock(&mutex);
}

void job_unlock(void)
{
    if (job_has_threads())
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

#define BUSY 30000u /* nanoseconds of processor time after which a poll counts as busy */

/* ---- Waiting --------------------------------------------------------------------------------- */

static uint64_t processor_time(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* MPI makes progress in any probe, even in one that can find no message. */
bool torus_call_progress_mpi(void)
{
    uint64_t begin = processor_time();
    int found;

    (void)real.Iprobe(MPI_ANY_SOURCE, JOB_UNUSED_TAG, job.messages, &found, MPI_STATUS_IGNORE);
    return processor_time() - begin > BUSY;
}

int torus_call_poll(struct torus_call *call, struct torus_error *error)
{
    int ended;

    job_lock();
    ended = job_has_failed(error) ? -1 : torus_call_test(call, error);
    job_unlock();
    return ended;
}

static _Thread_local struct {
    const char *function;
    uint32_t ranks; /* number of ranks of the communicator */
} purpose;

void torus_call_for(const char *function, uint32_t ranks)
{
    purpose.function = function;
    purpose.ranks = ranks;
}

bool torus_call_print_late(const struct torus_call *call, uint64_t taken)
{
    char whom[200];

    if (!torus_call_late(call, whom, sizeof whom))
        return false;
    (void)fprintf(
        stderr, "torus: rank %u has waited %.0f s in %s on a communicator of %u ranks: %s\n",
        (unsigned)job.rank, (double)taken / 1e9, purpose.function, (unsigned)purpose.ranks, whom);
    return true;
}
