#include "client/mpi/job/torus_call.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/real.h"

/* Slices: nanoseconds between two polls of MPI while a call of the torus is under way. */
#define USUAL_SLICE                                                                                \
    1000000u /* the shortest slice while MPI is idle: most small calls have ended by then */
#define FIRST_SLICE 50000000u /* the longest first slice, if recent calls took long */
#define LEAST_SLICE 100000u   /* the slice while MPI is busy */
#define MOST_SLICE 10000000u  /* the longest later slice */
#define BUSY 30000u           /* nanoseconds of processor time after which a poll counts as busy */

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

/* As torus_call_test(), with the job locked; also -1 if the job has failed. */
static int test_call(struct torus_call *call, struct torus_error *error)
{
    int ended;

    job_lock();
    ended = job_has_failed(error) ? -1 : torus_call_test(call, error);
    job_unlock();
    return ended;
}

/* Slices grow with the time that the call has taken, because polling costs processor time that other processes on
 * this machine may need. */
static uint64_t next_slice(uint64_t taken)
{
    uint64_t slice = taken / 8;

    return slice < USUAL_SLICE ? USUAL_SLICE : slice > MOST_SLICE ? MOST_SLICE : slice;
}

/* How long recent calls have taken. If ranks share processors, a useless poll in each call would make all calls
 * slower. So the first poll comes when a call has taken twice as long as recent calls, unless polls have found MPI
 * busy. */
static _Thread_local uint64_t recent_ns;

static uint64_t first_slice(void)
{
    uint64_t slice = 2 * recent_ns;

    return slice < USUAL_SLICE ? USUAL_SLICE : slice > FIRST_SLICE ? FIRST_SLICE : slice;
}

static _Thread_local struct {
    enum operation operation;
    uint32_t ranks; /* number of ranks of the communicator */
} purpose;

void torus_call_for(enum operation operation, uint32_t ranks)
{
    purpose.operation = operation;
    purpose.ranks = ranks;
}

/* If the call is late, prints which nodes it waits for. Of several waiting processes, libtorus informs only one.
 * Returns whether a line was printed. */
static bool print_if_late(const struct torus_call *call, uint64_t taken)
{
    char whom[200];

    if (!torus_call_late(call, whom, sizeof whom))
        return false;
    (void)fprintf(stderr,
                  "torus: rank %u has waited %.0f s in %s on a communicator of %u ranks: %s\n",
                  (unsigned)job.rank, (double)taken / 1e9, operation_name(purpose.operation),
                  (unsigned)purpose.ranks, whom);
    return true;
}

static int wait_until_ended(struct torus_call *call, struct torus_error *error)
{
    uint64_t begin = statistics_now(), slice = first_slice();
    bool moved = false, printed = false;

    for (;;) {
        int ended;
        (void)torus_call_pause(call, slice);
        ended = test_call(call, error);
        if (ended != 0) {
            recent_ns = moved ? 0 : recent_ns - recent_ns / 8 + (statistics_now() - begin) / 8;
            return ended;
        }
        printed = printed || print_if_late(call, statistics_now() - begin);
        slice = torus_call_progress_mpi() ? LEAST_SLICE : next_slice(statistics_now() - begin);
        moved = moved || slice == LEAST_SLICE;
    }
}

int torus_call_begin(struct torus_error *error)
{
    job_lock();
    return job_has_failed(error) ? -1 : 0;
}

bool torus_call_retries(int started, const struct torus_error *error)
{
    struct torus_error ignored;

    if (started == 0 || !job.threaded || error->code != TORUS_ERROR_BUSY ||
        job_has_failed(&ignored))
        return false;
    job_unlock();
    (void)torus_call_progress_mpi();
    (void)poll(NULL, 0, 1);
    return true;
}

int torus_call_end(int started, struct torus_call *call, struct torus_error *error)
{
    if (started != 0)
        job_fail(error); /* other processes wait for a call that this process cannot make */
    job_unlock();
    return started == 0 && wait_until_ended(call, error) == 1 ? 0 : -1;
}
