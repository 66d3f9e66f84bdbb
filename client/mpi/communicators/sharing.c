/* Which communicator uses the torus: see communicator.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/mpi/communicators/communicator.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/real.h"

#define FIRST_QUESTION 2u   /* the second call: some communicators are made for one call */
#define MOST_DISTANCE 1024u /* the most calls between two questions */
#define RETRY_WITHIN 8u     /* calls until the next question if two communicators ask at a time */
#define LONG_QUESTION 32u   /* as FIRST_QUESTION, for a group that must pay off */
#define OPEN_PAYS_NS 500000000u    /* opening a group took 4 to 7 ms on 2x2 and 4x4 */
#define OPEN_AGAIN_NS 60000000000u /* interval between attempts to open a group */

/* The ownership of a lane in a part of the torus. */
struct seat {
    struct communicator *owner; /* NULL: no communicator of this process */
    uint32_t owners;            /* number of owners so far */
};

/* The state of a part, protected by job_lock(). */
static struct part {
    struct seat seat[LANES_MOST];
    /* A communicator is in step 2 or 3 of communicator.h, or asks for its own group (NO_PART). */
    bool asked;
    bool blocked; /* calls of owners wait, in step 2 */
} parts[1u << JOB_DIMS];

static uint32_t last_number; /* of an own group of this process */

static pthread_cond_t unblocked = PTHREAD_COND_INITIALIZER; /* a part is not blocked any more */

static uint64_t open_again_at;

/* ---- Votes ----------------------------------------------------------------------------------- */

/* Whether calls on the communicator need a lane that it owns, or its own group. */
static bool needs_to_own(const struct communicator *c)
{
    return job.threaded || c->dimensions == NO_PART;
}

static int call_number(const struct communicator *c)
{
    return (int)(communicator_calls(c) % (uint32_t)VOTE_ANY);
}

static struct lane_votes lane_votes_of(const struct communicator *c, const struct seat *seat,
                                       bool is_open)
{
    const struct communicator *owner = seat->owner;
    struct lane_votes v = {.free = owner == NULL && is_open, .owner = (int)seat->owners};

    v.minus_owner = -v.owner;
    if (owner != NULL) {
        v.yields =
            !owner->share.under_way && owner->share.requests == 0 && placement_is_within(owner, c);
        v.calls = call_number(owner);
        v.minus_calls = -v.calls;
    } else if (seat->owners == 0 && !job.leads) {
        v = (struct lane_votes){true, true, VOTE_ANY, VOTE_ANY, VOTE_ANY, VOTE_ANY};
    }
    return v;
}

/* Lanes from this one on have owners. */
static unsigned first_owned_lane(void)
{
    return job.threaded ? 0 : 1;
}

static int random_salt(void)
{
    static _Thread_local unsigned seed;

    if (seed == 0)
        seed = (unsigned)statistics_now() ^ job.rank << 16;
    return rand_r(&seed);
}

/* Returns the votes of this rank. The job must be locked. */
static struct votes votes_of_rank(const struct communicator *c)
{
    const struct part *part = &parts[c->dimensions];
    struct torus_error ignored;
    struct votes v = {.proceeds = true, .opens = true, .lanes = VOTE_ANY};

    v.salt = random_salt();
    if (job_has_failed(&ignored))
        return (struct votes){.proceeds = true};
    if (job.leads) {
        v.lanes = (int)lanes_count();
        v.opens = job_is_all(c->dimensions) && v.lanes < (int)LANES_MOST &&
                  statistics_now() >= open_again_at;
    }
    for (unsigned l = first_owned_lane(); l < LANES_MOST; l++)
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

static void set_flag(struct communicator *c, uint64_t flag, bool is_set)
{
    const bool was_set = (atomic_load(&c->calls) & flag) != 0;

    if (is_set && !was_set)
        (void)atomic_fetch_or(&c->calls, flag);
    else if (!is_set && was_set)
        (void)atomic_fetch_and(&c->calls, ~flag);
}

void sharing_hold_or_pass(struct communicator *c)
{
    const struct share *s = &c->share;
    const bool lacks = c->reason == REASON_SERVED && !s->owns;

    set_flag(c, CALLS_UNSERVED, c->reason != REASON_SERVED || (lacks && needs_to_own(c)));
    set_flag(c, CALLS_HELD,
             needs_to_own(c) ? s->owns && (s->requests > 0 || parts[c->dimensions].blocked)
                             : lacks && s->wanted);
}

/* Makes the calls of owners wait, or ends that. The job must be locked. */
static void block(struct part *part, bool blocked)
{
    part->blocked = blocked;
    for (unsigned l = 0; l < LANES_MOST; l++)
        if (part->seat[l].owner != NULL)
            sharing_hold_or_pass(part->seat[l].owner);
    if (!blocked)
        (void)pthread_cond_broadcast(&unblocked);
}

/* Returns the group of a communicator that owns a lane, or has its own group; NULL at ranks that do not lead. */
static struct torus_group *group_of(const struct communicator *c)
{
    if (c->dimensions == NO_PART)
        return c->group;
    return communicator_leads(c) ? lanes_part(c->share.lane, c->dimensions) : NULL;
}

/* Makes `c` the owner of the lane, as its owner number `which`. The job must be locked. */
static void set_owner(struct communicator *c, unsigned lane, uint32_t which)
{
    struct seat *seat = &parts[c->dimensions].seat[lane];

    if (seat->owner != NULL) {
        seat->owner->share.owns = false;
        sharing_hold_or_pass(seat->owner);
    }
    seat->owner = c;
    seat->owners = which;
    c->share.owns = true;
    c->share.lane = lane;
    sharing_hold_or_pass(c);
    c->group = group_of(c);
}

/* As set_owner(), for a communicator whose call under way will use the lane. */
static void set_owner_in_call(struct communicator *c, unsigned lane, uint32_t which)
{
    set_owner(c, lane, which);
    c->share.under_way = true;
}

/* Returns whether all ranks could open their group. Called by all of them. */
static bool all_opened(struct communicator *c, bool mine)
{
    int here = mine, all = false;

    return real.Allreduce(&here, &all, 1, mpi.integer, mpi.min, c->handle) == MPI_SUCCESS && all;
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
    const bool mine = !leads || lanes_open_another(&error) == 0;
    const bool opened = all_opened(c, mine);

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
    if (job.verbose && (c->rank == 0 || !mine))
        print_opened(opened, mine ? "not all nodes could" : error.text);
}

/* Carries out steps 2 and 3 of communicator.h. Returns the votes. */
static struct votes decide(struct communicator *c)
{
    struct part *part = &parts[c->dimensions];
    struct claim claim = {CLAIM_NOTHING, 0};
    struct votes v;
    bool proceeds;

    job_lock();
    proceeds = !part->asked;
    if (proceeds) {
        part->asked = true;
        block(part, true); /* before the calls of the owners are read */
    }
    v = votes_of_rank(c);
    v.proceeds = proceeds;
    job_unlock();
    if (combine_votes(c, &v) == 0)
        claim = claims_decide(&v, &c->share.seen, communicator_calls(c));
    job_lock();
    if (claim.kind == CLAIM_LANE)
        set_owner_in_call(c, claim.lane, 1 + (uint32_t)-v.lane[claim.lane].minus_owner);
    if (proceeds)
        block(part, false);
    job_unlock();
    if (claim.kind == CLAIM_NEW)
        open_lane(c, claim.lane);
    job_lock();
    if (proceeds)
        part->asked = false;
    job_unlock();
    return v;
}

static void ask_again_later(struct communicator *c, bool proceeds, uint32_t salt)
{
    struct share *s = &c->share;

    s->ask_at = communicator_calls(c) + (proceeds ? s->ask_distance : 1 + salt % RETRY_WITHIN);
    if (proceeds && s->ask_distance < MOST_DISTANCE)
        s->ask_distance *= 2;
}

/* ---- Own groups ------------------------------------------------------------------------------ */

/* The vote of one rank or, number by number, the minimum of the votes of all ranks. */
struct group_vote {
    int proceeds;     /* no other communicator asks at the same time */
    int salt;         /* a random number */
    int opens;        /* this process can open another group */
    int minus_number; /* the next group has at least this number, which is negative here */
};

#define GROUP_VOTE_INTS (sizeof(struct group_vote) / sizeof(int))

static void print_own_group(const struct communicator *c, bool opened, const char *why_not)
{
    if (opened)
        (void)fprintf(stderr, "torus: a communicator of size %u on %u nodes has a group now\n",
                      (unsigned)c->size, (unsigned)c->nodes);
    else
        (void)fprintf(stderr,
                      "torus: a communicator of size %u on %u nodes could not open a group: %s\n",
                      (unsigned)c->size, (unsigned)c->nodes, why_not);
}

/* Opens the group of this node. */
static int open_own_group(const struct communicator *c, uint32_t number, struct torus_group **group,
                          struct torus_error *error)
{
    uint32_t *const nodes = calloc(c->nodes, sizeof *nodes), first = UINT32_MAX;
    int result;

    *error = (struct torus_error){.code = TORUS_ERROR_MEMORY, .text = "a rank is out of memory"};
    if (nodes == NULL)
        return -1;
    for (uint32_t n = 0; n < c->nodes; n++) {
        const uint32_t leader = (uint32_t)c->placement->world[c->rank_at[c->first[n]]];
        nodes[n] = job.process[leader].node;
        first = leader < first ? leader : first;
    }
    result = lanes_open_own(first, number, nodes, c->nodes, group, error);
    free(nodes);
    return result;
}

/* All ranks of `c` do so at the same time, and afterwards know whether all could. */
static void open_group(struct communicator *c, uint32_t number)
{
    struct torus_group *group = NULL;
    struct torus_error error;
    const bool mine = !communicator_leads(c) || open_own_group(c, number, &group, &error) == 0;
    const bool opened = all_opened(c, mine);

    job_lock();
    last_number = number;
    if (opened) {
        c->group = group;
        c->share.number = number;
        c->share.owns = c->share.under_way = true;
        sharing_hold_or_pass(c);
    } else {
        lanes_close_own(group);
        open_again_at = statistics_now() + OPEN_AGAIN_NS;
    }
    job_unlock();
    if (job.verbose && (c->rank == 0 || !mine))
        print_own_group(c, opened, mine ? "not all nodes could" : error.text);
}

static void ask_for_group(struct communicator *c)
{
    struct part *apart = &parts[NO_PART];
    struct group_vote mine = {.opens = true}, all = {0};
    struct torus_error ignored;

    job_lock();
    mine.proceeds = !apart->asked;
    mine.salt = random_salt();
    mine.minus_number = -(int)last_number - 1;
    if (job_has_failed(&ignored) || last_number >= JOB_NUMBERS_MOST)
        mine.opens = false;
    else if (communicator_leads(c))
        mine.opens = lanes_have_room_for_own() && statistics_now() >= open_again_at &&
                     (job.ways != WAYS_FASTER || statistics_now() >= c->share.opens_at);
    if (mine.proceeds)
        apart->asked = true;
    job_unlock();
    if (real.Allreduce(&mine, &all, (int)GROUP_VOTE_INTS, mpi.integer, mpi.min, c->handle) ==
        MPI_SUCCESS) {
        if (all.proceeds && all.opens)
            open_group(c, (uint32_t)-all.minus_number);
        ask_again_later(c, all.proceeds, (uint32_t)all.salt);
    }
    job_lock();
    if (mine.proceeds)
        apart->asked = false;
    job_unlock();
}

static void ask(struct communicator *c)
{
    struct share *s = &c->share;
    struct votes v;

    if (c->dimensions == NO_PART) {
        ask_for_group(c);
        return;
    }
    job_lock();
    v = votes_of_rank(c);
    job_unlock();
    if (combine_votes(c, &v) != 0)
        return;
    if (claims_decide(&v, &s->seen, communicator_calls(c)).kind != CLAIM_NOTHING)
        v = decide(c);
    claims_remember(&s->seen, &v, communicator_calls(c));
    ask_again_later(c, v.proceeds, (uint32_t)v.salt);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void count_call(struct communicator *c)
{
    (void)atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed);
}

/* Begins a call. Returns whether the communicator owns a lane, which it then keeps until the call has ended. */
static bool begin_call(struct communicator *c)
{
    struct share *s = &c->share;

    job_lock();
    while (s->owns && parts[c->dimensions].blocked)
        job_wait(&unblocked);
    count_call(c);
    s->under_way = s->owns;
    job_unlock();
    return s->under_way;
}

/* Returns in which call the ranks ask for the first time. */
static uint32_t first_question(const struct communicator *c)
{
    if (c->dimensions != NO_PART || job.ways == WAYS_TORUS)
        return FIRST_QUESTION;
    return job.ways == WAYS_FIXED ? OPEN_AFTER : LONG_QUESTION;
}

void sharing_set_up(struct communicator *c)
{
    c->share.opens_at = statistics_now() + OPEN_PAYS_NS;
    c->share.ask_distance = first_question(c);
    c->share.ask_at = c->reason == REASON_SERVED ? c->share.ask_distance : UINT32_MAX;
    sharing_hold_or_pass(c);
}

static void ask_if_due(struct communicator *c)
{
    if (communicator_calls(c) < c->share.ask_at)
        return;
    lanes_enter();
    ask(c);
    lanes_leave();
}

enum reason sharing_enter(struct communicator *c)
{
    struct share *s = &c->share;

    if (!needs_to_own(c)) {
        count_call(c);
        if (s->wanted && !s->owns)
            ask_if_due(c);
        c->group = communicator_leads(c) ? lanes_part(0, c->dimensions) : NULL;
        return REASON_SERVED;
    }
    if (begin_call(c)) {
        fibers_start(&c->line);
        return REASON_SERVED;
    }
    ask_if_due(c);
    if (s->under_way) /* only this thread has set it */
        return REASON_SERVED;
    if (communicator_calls(c) < first_question(c))
        return REASON_FIRST;
    return c->dimensions == NO_PART ? REASON_GROUP : REASON_ORDER;
}

bool communicator_begin_request(struct communicator *c, struct torus_group **group)
{
    struct share *s = &c->share;
    bool owns;

    job_lock();
    while (s->owns && parts[c->dimensions].blocked)
        job_wait(&unblocked);
    count_call(c);
    owns = s->owns;
    s->requests += owns;
    sharing_hold_or_pass(c);
    *group = owns ? group_of(c) : NULL;
    job_unlock();
    return owns;
}

void communicator_wants_lane(struct communicator *c)
{
    job_lock();
    c->share.wanted = true;
    sharing_hold_or_pass(c);
    job_unlock();
}

void sharing_leave(struct communicator *c)
{
    job_lock();
    c->share.under_way = false;
    job_unlock();
}

void sharing_forget(struct communicator *c)
{
    if (c->share.owns && c->dimensions == NO_PART)
        lanes_close_own(c->group);
    else if (c->share.owns)
        parts[c->dimensions].seat[c->share.lane].owner = NULL;
}

void sharing_begin(struct communicator *world)
{
    if (world->reason == REASON_SERVED)
        set_owner(world, 0, 1);
}
