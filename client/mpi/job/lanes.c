/* The groups of torusd that a leader has open. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "client/mpi/job/job.h"

/* Timeouts for another group: all its leaders open it now, but a daemon may lack memory. */
#define ANOTHER_MS 1000
#define MEMORY_MS 100

struct lane {
    struct torus_group *group;
    struct torus_group *part[1u << JOB_DIMS]; /* by dimensions; the group itself for all of them */
};

static struct lane lanes[LANES_MOST];

static unsigned count;

static struct lane another; /* a lane that is open but not kept yet */

static unsigned operations; /* operations under way */

#define OWN_MOST 4u /* own groups of a process: each reserves memory of every daemon */

static struct own {
    struct torus_group *group; /* NULL: none */
    bool closes;               /* as soon as no call is under way that was left */
} owns[OWN_MOST];

static bool own_closes; /* one of them closes */

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

int lanes_open(uint32_t timeout_ms, struct torus_error *error)
{
    if (open_lane(&lanes[0], job.name, timeout_ms, error) != 0)
        return -1;
    count = 1;
    scratch_share(lanes[0].group);
    return 0;
}

int lanes_complete(struct torus_error *error)
{
    return complete_lane(&lanes[0], error);
}

/* ---- Opening in a thread ---------------------------------------------------------------------- */

struct opening {
    char name[JOB_NAME_SIZE + 24];
    const uint32_t *nodes; /* NULL: another lane */
    uint32_t node_count;
    struct torus_group *group; /* of these nodes */
    int result;
    struct torus_error error;
    _Atomic bool ended;
};

static void open_own(struct opening *o)
{
    struct torus_group_options options;

    torus_group_options_init(&options);
    options.name = o->name;
    options.timeout_ms = ANOTHER_MS;
    options.memory_timeout_ms = MEMORY_MS;
    options.members = o->nodes;
    options.member_count = o->node_count;
    o->result = torus_group_open(&options, &o->group, &o->error);
    if (o->result == 0) {
        torus_group_set_timeout(o->group, 0);
        torus_group_set_late(o->group, job.late_ms);
    }
}

static void *open_now(void *context)
{
    struct opening *o = context;

    if (o->nodes != NULL)
        open_own(o);
    else
        o->result = open_lane(&another, o->name, ANOTHER_MS, &o->error);
    if (o->nodes == NULL && o->result == 0)
        o->result = complete_lane(&another, &o->error);
    atomic_store(&o->ended, true);
    return NULL;
}

/* libtorus waits for the other processes, which may be able to make their calls only if MPI makes progress in this
 * process. */
static int open_in_thread(struct opening *o, struct torus_error *error)
{
    pthread_t thread;

    *error = (struct torus_error){.code = TORUS_ERROR_MEMORY, .text = "there are no threads left"};
    if (pthread_create(&thread, NULL, open_now, o) != 0)
        return -1;
    while (!atomic_load(&o->ended)) {
        torus_call_progress_mpi();
        (void)poll(NULL, 0, 1);
    }
    (void)pthread_join(thread, NULL);
    *error = o->error;
    return o->result;
}

/* ---- Another lane ---------------------------------------------------------------------------- */

int lanes_open_another(struct torus_error *error)
{
    struct opening o = {.result = -1};

    (void)snprintf(o.name, sizeof o.name, "%s-%u", job.name, count);
    return open_in_thread(&o, error);
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

/* ---- Own groups ------------------------------------------------------------------------------ */

int lanes_open_own(uint32_t first, uint32_t number, const uint32_t *nodes, uint32_t node_count,
                   struct torus_group **group, struct torus_error *error)
{
    struct opening o = {.nodes = nodes, .node_count = node_count, .result = -1};
    unsigned at = 0;

    (void)snprintf(o.name, sizeof o.name, "%s-%u-%u", job.name, (unsigned)first, (unsigned)number);
    if (open_in_thread(&o, error) != 0)
        return -1;
    job_lock();
    while (owns[at].group != NULL) /* only one communicator opens a group at a time */
        at++;
    owns[at] = (struct own){.group = o.group};
    *group = o.group;
    job_unlock();
    return 0;
}

/* Closing a group makes calls that are under way fail on all nodes. The job must be locked. */
static void close_owns(void)
{
    if (!own_closes || !torus_calls_left_have_ended())
        return;
    for (unsigned i = 0; i < OWN_MOST; i++)
        if (owns[i].closes) {
            torus_group_close(owns[i].group);
            owns[i] = (struct own){0};
        }
    own_closes = false;
}

bool lanes_have_room_for_own(void)
{
    close_owns();
    for (unsigned i = 0; i < OWN_MOST; i++)
        if (owns[i].group == NULL)
            return true;
    return false;
}

void lanes_close_own(struct torus_group *group)
{
    for (unsigned i = 0; i < OWN_MOST && group != NULL; i++)
        if (owns[i].group == group)
            own_closes = owns[i].closes = true;
    close_owns();
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
    for (unsigned i = 0; i < OWN_MOST; i++)
        torus_group_close(owns[i].group);
    memset(owns, 0, sizeof owns);
    own_closes = false;
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
    close_owns();
    job_unlock();
}
