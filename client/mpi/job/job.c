#include "client/mpi/job/job.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
static bool torus_call_progress_mpi(void)
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
    enum mpi_operation operation;
    uint32_t ranks; /* number of ranks of the communicator */
} purpose;

void torus_call_for(enum mpi_operation operation, uint32_t ranks)
{
    purpose.operation = operation;
    purpose.ranks = ranks;
}

/* If the call is late, prints which nodes it waits for. If several processes wait, libtorus informs only one of them.
 * Returns whether a line was printed. */
static bool print_if_late(const struct torus_call *call, uint64_t taken)
{
    char whom[200];

    if (!torus_call_late(call, whom, sizeof whom))
        return false;
    (void)fprintf(stderr,
                  "torus: rank %u has waited %.0f s in %s on a communicator of %u ranks: %s\n",
                  (unsigned)job.rank, (double)taken / 1e9, mpi_operation_name(purpose.operation),
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

#define LEAST ((size_t)64 << 10)      /* the smallest piece */
#define IDLE 8u                       /* how many unused pieces are kept: a call uses up to 6 */
#define IDLE_BYTES ((size_t)64 << 20) /* the largest unused piece that is kept */

struct piece {
    struct piece *next;
    void *at;
    size_t size;
    bool shared, used;
};

static struct piece *pieces;

static struct torus_group *sharer; /* the group of scratch_share(); NULL: none */

static bool is_scratch(const void *at)
{
    const uintptr_t address = (uintptr_t)at;

    for (const struct piece *p = pieces; p != NULL; p = p->next)
        if (address - (uintptr_t)p->at < p->size)
            return true;
    return false;
}

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
    if (started != 0 || bytes > LEFT_BYTES || is_scratch(from))
        return torus_call_end(started, call, error);
    if (left[next_left] != NULL)
        result = await_older_half(error);
    left[next_left] = call;
    next_left = (next_left + 1) % LEFT_MOST;
    job_unlock();
    return result;
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

static void free_piece(struct piece **at)
{
    struct piece *p = *at;

    *at = p->next;
    if (p->shared)
        torus_memory_free(sharer, p->at);
    else
        free(p->at);
    free(p);
}

/* Returns the smallest unused piece that is large enough, or NULL. */
static struct piece *find_free_piece(size_t bytes)
{
    struct piece *best = NULL;

    for (struct piece *p = pieces; p != NULL; p = p->next)
        if (!p->used && p->size >= bytes && (best == NULL || p->size < best->size))
            best = p;
    return best;
}

static size_t rounded(size_t bytes)
{
    size_t size = LEAST;

    if (bytes > IDLE_BYTES)
        return bytes;
    while (size < bytes)
        size *= 2;
    return size;
}

static struct piece *add_piece(size_t bytes)
{
    struct piece *p = calloc(1, sizeof *p);
    struct torus_error ignored;

    if (p == NULL)
        return NULL;
    p->size = rounded(bytes);
    if (sharer != NULL && !job_has_failed(&ignored))
        p->at = torus_memory_new(sharer, p->size, &ignored);
    p->shared = p->at != NULL;
    if (!p->shared)
        p->at = malloc(p->size);
    if (p->at == NULL) {
        free(p);
        return NULL;
    }
    p->next = pieces;
    pieces = p;
    return p;
}

void *scratch_alloc(size_t bytes)
{
    struct piece *p;

    job_lock();
    p = find_free_piece(bytes);
    if (p == NULL)
        p = add_piece(bytes);
    if (p != NULL)
        p->used = true;
    job_unlock();
    return p != NULL ? p->at : NULL;
}

void scratch_free(void *memory)
{
    unsigned idle = 0;

    if (memory == NULL)
        return;
    job_lock();
    for (struct piece **at = &pieces; *at != NULL;) {
        struct piece *p = *at;
        if (p->at == memory)
            p->used = false;
        if (!p->used && (p->size > IDLE_BYTES || ++idle > IDLE))
            free_piece(at);
        else
            at = &p->next;
    }
    job_unlock();
}

void scratch_share(struct torus_group *group)
{
    sharer = group;
}

/* Frees all memory, because the group is about to be closed. No memory may be in use. */
static void scratch_forget(void)
{
    while (pieces != NULL)
        free_piece(&pieces);
    sharer = NULL;
}

#define ANOTHER_MS                                                                                 \
    1000 /* timeout for another lane: all leaders open it now, but a daemon may lack memory */

struct lane {
    struct torus_group *group;
    struct torus_group *part[1u << JOB_DIMS]; /* by dimensions; the group itself for all of them */
};

static char name[64]; /* of lane 0 */

static struct lane lanes[LANES_MOST];

static unsigned count;

static struct lane another; /* a lane that is open but not kept yet */

static unsigned operations; /* operations under way */

/* ---- Opening --------------------------------------------------------------------------------- */

static int open_lane(struct lane *lane, const char *its_name, uint32_t timeout_ms,
                     struct torus_error *e)
{
    struct torus_group_options options;

    *lane = (struct lane){0};
    torus_group_options_init(&options);
    options.name = its_name;
    options.timeout_ms = timeout_ms;
    return torus_group_open(&options, &lane->group, e);
}

/* Opens all parts. A part whose links are down stays NULL, which is not an error. */
static int open_parts(struct lane *lane, struct torus_error *e)
{
    for (uint32_t mask = 1; mask < 1u << job.dims; mask++)
        if (job_is_all(mask))
            lane->part[mask] = lane->group;
        else if (job_is_part(mask) &&
                 torus_group_part(lane->group, mask, &lane->part[mask], e) != 0 &&
                 e->code != TORUS_ERROR_LINK)
            return -1;
    return 0;
}

/* Opens the parts, and waits in a barrier until all leaders have done so. */
static int complete_lane(struct lane *lane, struct torus_error *e)
{
    if (open_parts(lane, e) != 0 || torus_barrier(lane->group, e) != 0)
        return -1;
    for (uint32_t mask = 1; mask < 1u << job.dims; mask++)
        if (lane->part[mask] != NULL) {
            torus_group_set_timeout(lane->part[mask], 0);
            torus_group_set_late(lane->part[mask], job.late_ms);
        }
    return 0;
}

int lanes_open(const char *its_name, uint32_t timeout_ms, struct torus_error *error)
{
    (void)snprintf(name, sizeof name, "%s", its_name);
    if (open_lane(&lanes[0], name, timeout_ms, error) != 0)
        return -1;
    count = 1;
    scratch_share(lanes[0].group);
    return 0;
}

int lanes_complete(struct torus_error *error)
{
    return complete_lane(&lanes[0], error);
}

/* ---- Another lane ---------------------------------------------------------------------------- */

struct opening {
    char name[sizeof name + 12];
    int result;
    struct torus_error error;
    _Atomic bool ended;
};

static void *open_another(void *context)
{
    struct opening *o = context;

    o->result = open_lane(&another, o->name, ANOTHER_MS, &o->error);
    if (o->result == 0)
        o->result = complete_lane(&another, &o->error);
    atomic_store(&o->ended, true);
    return NULL;
}

/* Opens the lane in a thread. libtorus waits for the other processes, which may be able to make their calls only if
 * MPI makes progress in this process. */
int lanes_open_another(struct torus_error *error)
{
    struct opening o = {.result = -1};
    pthread_t thread;

    *error = (struct torus_error){.code = TORUS_ERROR_MEMORY, .text = "there are no threads left"};

    (void)snprintf(o.name, sizeof o.name, "%s-%u", name, count);
    if (pthread_create(&thread, NULL, open_another, &o) != 0)
        return -1;
    while (!atomic_load(&o.ended)) {
        torus_call_progress_mpi();
        (void)poll(NULL, 0, 1);
    }
    (void)pthread_join(thread, NULL);
    *error = o.error;
    return o.result;
}

void lanes_keep_another(void)
{
    lanes[count++] = another;
    another = (struct lane){0};
}

void lanes_close_another(void)
{
    torus_group_close(another.group);
    another = (struct lane){0};
}

/* ---- Use ------------------------------------------------------------------------------------- */

unsigned lanes_count(void)
{
    return count;
}

struct torus_group *lanes_part(unsigned lane, uint32_t dimensions)
{
    return lane < count ? lanes[lane].part[dimensions] : NULL;
}

void lanes_close(void)
{
    scratch_forget();
    memset(left, 0, sizeof left);
    while (count > 0)
        torus_group_close(lanes[--count].group);
    memset(lanes, 0, sizeof lanes);
}

void lanes_enter(void)
{
    job_lock();
    operations++;
    job_unlock();
}

void lanes_leave(void)
{
    struct torus_error ignored;

    job_lock();
    if (--operations == 0 && job_has_failed(&ignored))
        lanes_close();
    job_unlock();
}
