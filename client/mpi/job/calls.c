/* Calls of libtorus: starting them, and waiting for them. */
#include <poll.h>
#include <string.h>

#include "client/mpi/job/fibers.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"

/* Slices: nanoseconds between two polls of MPI while a call of the torus is under way. */
#define USUAL_SLICE                                                                                \
    1000000u /* the shortest slice while MPI is idle: most small calls have ended by then */

#define FIRST_SLICE 50000000u /* the longest first slice, if recent calls took long */
#define LEAST_SLICE 100000u   /* the slice while MPI is busy */
#define MOST_SLICE 10000000u  /* the longest later slice */

/* ---- Waiting --------------------------------------------------------------------------------- */

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

static int wait_until_ended(struct torus_call *call, struct torus_error *error)
{
    uint64_t begin = statistics_now(), slice = first_slice();
    bool moved = false, printed = false;

    for (;;) {
        int ended;
        (void)torus_call_pause(call, slice);
        ended = torus_call_poll(call, error);
        if (ended != 0) {
            recent_ns = moved ? 0 : recent_ns - recent_ns / 8 + (statistics_now() - begin) / 8;
            return ended;
        }
        printed = printed || torus_call_print_late(call, statistics_now() - begin);
        slice = torus_call_progress_mpi() ? LEAST_SLICE : next_slice(statistics_now() - begin);
        moved = moved || slice == LEAST_SLICE;
    }
}

int torus_call_begin(struct torus_error *error)
{
    fiber_await_turn();
    job_lock();
    return job_has_failed(error) ? -1 : 0;
}

bool torus_call_retries(int started, const struct torus_error *error)
{
    struct torus_error ignored;

    if (started == 0 || error->code != TORUS_ERROR_BUSY || job_has_failed(&ignored) ||
        !(job.threaded || fiber_is_here()))
        return false;
    job_unlock();
    if (fiber_is_here()) {
        fiber_lose_turn();
        return true;
    }
    (void)torus_call_progress_mpi();
    (void)poll(NULL, 0, 1);
    return true;
}

int torus_call_end(int started, struct torus_call *call, struct torus_error *error)
{
    if (started != 0)
        job_fail(error); /* other processes wait for a call that this process cannot make */
    job_unlock();
    fiber_has_started();
    if (started != 0) {
        fiber_leave_starter();
        return -1;
    }
    return (fiber_is_here() ? fiber_await_call(call, error) : wait_until_ended(call, error)) == 1
               ? 0
               : -1;
}

/* ---- Calls that are left ---------------------------------------------------------------------- */

#define LEFT_MOST 16u                 /* calls under way at a time */
#define LEFT_BYTES ((size_t)16 << 10) /* of a call; libtorus holds a copy */

/* Calls that nobody waits for, from the oldest one at `next_left` on; perhaps NULL. */
static struct torus_call *left[LEFT_MOST];

static unsigned next_left;

/* Waits for the older half of them, the last of these first, so that the wait ends once and not with each call. Returns 0, or
 * -1 with *e. The job must be locked. */
static int await_older_half(struct torus_error *e)
{
    struct torus_call *call[LEFT_MOST / 2];
    int result = 0;

    for (unsigned i = 0; i < LEFT_MOST / 2; i++) {
        call[i] = left[(next_left + i) % LEFT_MOST];
        left[(next_left + i) % LEFT_MOST] = NULL;
    }
    job_unlock();
    for (unsigned i = LEFT_MOST / 2; i-- > 0 && result == 0;)
        if (call[i] != NULL && wait_until_ended(call[i], e) != 1)
            result = -1;
    job_lock();
    if (result != 0)
        job_fail(e);
    return result;
}

int torus_call_leave(int started, struct torus_call *call, const void *from, size_t bytes,
                     struct torus_error *error)
{
    int result = 0;

    /* libtorus sends from scratch memory without copying it. */
    if (started != 0 || fiber_is_here() || bytes > LEFT_BYTES || scratch_has(from))
        return torus_call_end(started, call, error);
    if (left[next_left] != NULL)
        result = await_older_half(error);
    left[next_left] = call;
    next_left = (next_left + 1) % LEFT_MOST;
    job_unlock();
    return result;
}

bool torus_calls_left_have_ended(void)
{
    struct torus_error error;
    bool all = true;

    for (unsigned i = 0; i < LEFT_MOST && all; i++) {
        int ended = left[i] == NULL ? 1 : torus_call_test(left[i], &error);
        all = ended != 0;
        if (ended != 0)
            left[i] = NULL;
        if (ended < 0)
            job_fail(&error);
    }
    return all;
}

void torus_calls_await_left(void)
{
    struct torus_error ignored;

    for (unsigned i = 0; i < LEFT_MOST; i++) {
        if (left[i] != NULL)
            (void)wait_until_ended(left[i], &ignored);
        left[i] = NULL;
    }
}

void torus_calls_forget_left(void)
{
    memset(left, 0, sizeof left);
}
