/* The groups of torusd that a leader has open. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "client/mpi/job/job.h"

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
    torus_calls_forget_left();
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
