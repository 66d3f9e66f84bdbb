#include "client/mpi/communicators/sharing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/mpi/communicators/placement.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/lanes.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/job/torus_call.h"
#include "client/mpi/library/real.h"

#define FIRST_QUESTION 2u   /* the second call: some communicators are made for one call */
#define MOST_DISTANCE 1024u /* the most calls between two questions */
#define RETRY_WITHIN 8u     /* calls until the next question if two communicators ask at a time */
#define OPEN_AGAIN_NS 60000000000u /* interval between attempts to open a lane */

/* The ownership of a lane in a part of the torus. */
struct seat {
    struct communicator *owner; /* NULL: no communicator of this process */
    uint32_t owners;            /* number of owners so far */
};

/* The state of a part, protected by job_lock(). */
static struct part {
    struct seat seat[LANES_MOST];
    bool asked;   /* a communicator is in step 2 or 3 of sharing.h */
    bool blocked; /* calls of owners wait, in step 2 */
} parts[1u << JOB_DIMS];

static pthread_cond_t unblocked = PTHREAD_COND_INITIALIZER; /* a part is not blocked any more */
static uint64_t open_again_at;

/* ---- Votes ----------------------------------------------------------------------------------- */

static int call_number(const struct communicator *c)
{
    return (int)(c->calls % (uint32_t)VOTE_ANY);
}

static struct lane_votes lane_votes_of(const struct communicator *c, const struct seat *seat,
                                       bool is_open)
{
    const struct communicator *owner = seat->owner;
    struct lane_votes v = {.free = owner == NULL && is_open, .owner = (int)seat->owners};

    v.minus_owner = -v.owner;
    if (owner != NULL) {
        v.yields = !owner->share.under_way && placement_is_within(owner, c);
        v.calls = call_number(owner);
        v.minus_calls = -v.calls;
    } else if (seat->owners == 0 && !job.leads) {
        v = (struct lane_votes){true, true, VOTE_ANY, VOTE_ANY, VOTE_ANY, VOTE_ANY};
    }
    return v;
}

/* Returns the votes of this rank. The job must be locked. */
static struct votes votes_of_rank(const struct communicator *c)
{
    static _Thread_local unsigned seed;
    const struct part *part = &parts[c->dimensions];
    struct torus_error ignored;
    struct votes v = {.proceeds = true, .opens = true, .lanes = VOTE_ANY};

    if (seed == 0)
        seed = (unsigned)statistics_now() ^ job.rank << 16;
    v.salt = rand_r(&seed);
    if (job_has_failed(&ignored))
        return (struct votes){.proceeds = true};
    if (job.leads) {
        v.lanes = (int)lanes_count();
        v.opens = job_is_all(c->dimensions) && v.lanes < (int)LANES_MOST &&
                  statistics_now() >= open_again_at;
    }
    for (unsigned l = 0; l < LANES_MOST; l++)
        v.lane[l] =
            lane_votes_of(c, &part->seat[l], !job.leads || lanes_part(l, c->dimensions) != NULL);
    return v;
}

/* Combines the votes of all ranks in *v. Returns 0, or -1 if MPI has failed and called the error handler. The call is
 * then left to MPI, which fails in the same way. */
static int combine_votes(struct communicator *c, struct votes *v)
{
    struct votes mine = *v;

    return real.Allreduce(&mine, v, (int)VOTE_INTS, mpi.integer, mpi.min, c->handle) == MPI_SUCCESS
               ? 0
               : -1;
}

/* ---- Taking a lane --------------------------------------------------------------------------- */

/* Makes `c` the owner of the lane, as its owner number `which`. The job must be locked. */
static void set_owner(struct communicator *c, unsigned lane, uint32_t which)
{
    struct seat *seat = &parts[c->dimensions].seat[lane];

    if (seat->owner != NULL)
        seat->owner->share.owns = false;
    seat->owner = c;
    seat->owners = which;
    c->share.owns = true;
    c->share.lane = lane;
    c->group = communicator_leads(c) ? lanes_part(lane, c->dimensions) : NULL;
}

/* As set_owner(), for a communicator whose call under way will use the lane. */
static void set_owner_in_call(struct communicator *c, unsigned lane, uint32_t which)
{
    set_owner(c, lane, which);
    c->share.under_way = true;
}

static void print_opened(bool opened, const char *why_not)
{
    if (opened)
        (void)fprintf(stderr, "torus: a second group is open, because several communicators make "
                              "calls at the same time\n");
    else
        (void)fprintf(stderr, "torus: a second group could not be opened: %s\n", why_not);
}

/* Opens a lane for `c`. All leaders of the torus do so at the same time. */
static void open_lane(struct communicator *c, unsigned lane)
{
    const bool leads = communicator_leads(c);
    struct torus_error error;
    int mine = leads ? lanes_open_another(&error) == 0 : true, all = false;
    bool opened =
        real.Allreduce(&mine, &all, 1, mpi.integer, mpi.min, c->handle) == MPI_SUCCESS && all;

    job_lock();
    if (leads && opened)
        lanes_keep_another();
    else if (leads)
        lanes_close_another();
    if (opened)
        set_owner_in_call(c, lane, 1);
    else
        open_again_at = statistics_now() + OPEN_AGAIN_NS;
    job_unlock();
    if (job.verbose && leads && (c->rank == 0 || !mine))
        print_opened(opened, mine ? "not all nodes could" : error.text);
}

/* Carries out steps 2 and 3 of sharing.h. Returns the votes. */
static struct votes decide(struct communicator *c)
{
    struct part *part = &parts[c->dimensions];
    struct claim claim = {CLAIM_NOTHING, 0};
    struct votes v;
    bool proceeds;

    job_lock();
    v = votes_of_rank(c);
    v.proceeds = proceeds = v.proceeds && !part->asked;
    if (proceeds)
        part->asked = part->blocked = true;
    job_unlock();
    if (combine_votes(c, &v) == 0)
        claim = claims_decide(&v, &c->share.seen, c->calls);
    job_lock();
    if (claim.kind == CLAIM_LANE)
        set_owner_in_call(c, claim.lane, 1 + (uint32_t)-v.lane[claim.lane].minus_owner);
    if (proceeds)
        part->blocked = false;
    (void)pthread_cond_broadcast(&unblocked);
    job_unlock();
    if (claim.kind == CLAIM_NEW)
        open_lane(c, claim.lane);
    job_lock();
    if (proceeds)
        part->asked = false;
    job_unlock();
    return v;
}

static uint32_t calls_until_next(const struct share *s, const struct votes *v)
{
    return v->proceeds ? s->ask_distance : 1 + (uint32_t)v->salt % RETRY_WITHIN;
}

static void ask(struct communicator *c)
{
    struct share *s = &c->share;
    struct votes v;

    job_lock();
    v = votes_of_rank(c);
    job_unlock();
    if (combine_votes(c, &v) != 0)
        return;
    if (claims_decide(&v, &s->seen, c->calls).kind != CLAIM_NOTHING)
        v = decide(c);
    claims_remember(&s->seen, &v, c->calls);
    s->ask_at = c->calls + calls_until_next(s, &v);
    if (v.proceeds && s->ask_distance < MOST_DISTANCE)
        s->ask_distance *= 2;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Begins a call. Returns whether the communicator owns a lane, which it then keeps until the call has ended. */
static bool begin_call(struct communicator *c)
{
    struct share *s = &c->share;

    job_lock();
    while (s->owns && parts[c->dimensions].blocked)
        job_wait(&unblocked);
    c->calls++;
    s->under_way = s->owns;
    job_unlock();
    return s->under_way;
}

enum reason sharing_enter(struct communicator *c)
{
    struct share *s = &c->share;

    if (!job.threaded) {
        c->calls++;
        c->group = communicator_leads(c) ? lanes_part(0, c->dimensions) : NULL;
        return REASON_SERVED;
    }
    if (begin_call(c))
        return REASON_SERVED;
    if (s->ask_distance == 0)
        s->ask_at = s->ask_distance = FIRST_QUESTION;
    if (c->calls < s->ask_at)
        return c->calls < FIRST_QUESTION ? REASON_FIRST : REASON_ORDER;
    lanes_enter();
    ask(c);
    lanes_leave();
    return s->under_way ? REASON_SERVED : REASON_ORDER; /* only this thread has set it */
}

void sharing_leave(struct communicator *c)
{
    job_lock();
    c->share.under_way = false;
    job_unlock();
}

void sharing_forget(struct communicator *c)
{
    job_lock();
    if (c->share.owns)
        parts[c->dimensions].seat[c->share.lane].owner = NULL;
    job_unlock();
}

void sharing_begin(struct communicator *world)
{
    if (world->reason == REASON_SERVED)
        set_owner(world, 0, 1);
}
