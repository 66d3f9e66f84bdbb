#include "client/mpi/job/torus_call.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/real.h"

/* Nanoseconds between two turns for MPI. */
#define USUAL_SLICE 1000000u  /* at first: most small calls have ended by then */
#define FIRST_SLICE 50000000u /* the longest first slice, where calls take longer */
#define LEAST_SLICE 100000u   /* the slice while MPI has something to do */
#define MOST_SLICE 10000000u  /* the longest slice, while MPI has nothing to do */
#define BUSY 30000u /* a poll of MPI that takes so much processor time has moved something */

/* ---- Waiting --------------------------------------------------------------------------------- */

static uint64_t processor_time(void)
{
    struct timespec used;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Uses a probe that finds nothing: even a probe that finds a message lets MPI make progress. */
bool torus_call_let_mpi_go_on(void)
{
    uint64_t begin = processor_time();
    int found;

    (void)real.Iprobe(MPI_ANY_SOURCE, JOB_UNUSED_TAG, job.messages, &found, MPI_STATUS_IGNORE);
    return processor_time() - begin > BUSY;
}

static int look(struct torus_call *call, struct torus_error *error)
{
    int ended;

    job_lock();
    ended = job_has_failed(error) ? -1 : torus_call_test(call, error);
    job_unlock();
    return ended;
}

/* Slices grow with the time that the call has taken: polling costs processor time, which other
 * processes on this machine may need. */
static uint64_t next_slice(uint64_t taken)
{
    uint64_t slice = taken / 8;

    return slice < USUAL_SLICE ? USUAL_SLICE : slice > MOST_SLICE ? MOST_SLICE : slice;
}

/* How long calls have taken lately. A useless poll in each call would make all calls slower
 * where ranks share processors: so the first poll comes when a call has taken twice as long,
 * unless MPI has had something to do. */
static _Thread_local uint64_t lately;

static uint64_t first_slice(void)
{
    uint64_t slice = 2 * lately;

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

/* Prints which nodes the call waits for; only one of the waiting processes is told. Returns
 * whether that was printed. */
static bool say_if_late(const struct torus_call *call, uint64_t taken)
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
    bool moved = false, said = false;

    for (;;) {
        int ended;
        (void)torus_call_pause(call, slice);
        ended = look(call, error);
        if (ended != 0) {
            lately = moved ? 0 : lately - lately / 8 + (statistics_now() - begin) / 8;
            return ended;
        }
        said = said || say_if_late(call, statistics_now() - begin);
        slice = torus_call_let_mpi_go_on() ? LEAST_SLICE : next_slice(statistics_now() - begin);
        moved = moved || slice == LEAST_SLICE;
    }
}

int torus_call_begin(struct torus_error *error)
{
    job_lock();
    return job_has_failed(error) ? -1 : 0;
}

bool torus_call_is_for_later(int started, const struct torus_error *error)
{
    struct torus_error ignored;

    if (started == 0 || !job.threaded || error->code != TORUS_ERROR_BUSY ||
        job_has_failed(&ignored))
        return false;
    job_unlock();
    (void)torus_call_let_mpi_go_on();
    (void)poll(NULL, 0, 1);
    return true;
}

int torus_call_end(int started, struct torus_call *call, struct torus_error *error)
{
    if (started != 0)
        job_fail(error); /* the other processes wait for a call that this process cannot make */
    job_unlock();
    return started == 0 && wait_until_ended(call, error) == 1 ? 0 : -1;
}
