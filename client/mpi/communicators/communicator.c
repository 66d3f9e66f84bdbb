#include "client/mpi/communicators/communicator.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/errors.h"
#include "client/mpi/library/real.h"
#include "proto/text.h"

/* Finds the places of a communicator's ranks on the torus, without messages: all processes have exchanged their nodes
 * in MPI_Init. */

/* ---- Tables ---------------------------------------------------------------------------------- */

/* Frees the tables; NULL does nothing. */
static void placement_free(struct placement *p)
{
    if (p == NULL)
        return;
    free(p->world);
    free(p->rank_at);
    free(p->place_of);
    free(p);
}

static struct placement *new_tables(uint32_t size)
{
    struct placement *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->world = calloc(size, sizeof *p->world);
    p->rank_at = calloc(size, sizeof *p->rank_at);
    p->place_of = calloc(size, sizeof *p->place_of);
    if (p->world != NULL && p->rank_at != NULL && p->place_of != NULL)
        return p;
    placement_free(p);
    return NULL;
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* Finds the ranks of a communicator in MPI_COMM_WORLD. Returns 0 with world[], 1 if a rank is not in MPI_COMM_WORLD
 * or MPI fails, or -1 if memory is short. */
static int world_ranks(MPI_Comm comm, uint32_t size, int *world)
{
    int *mine = calloc(size, sizeof *mine), result = 1;
    MPI_Group group, world_group;

    if (mine == NULL)
        return -1;
    for (uint32_t i = 0; i < size; i++)
        mine[i] = (int)i;
    if (real.Comm_group(comm, &group) == MPI_SUCCESS) {
        if (real.Comm_group(mpi.world, &world_group) == MPI_SUCCESS) {
            if (real.Group_translate_ranks(group, (int)size, mine, world_group, world) ==
                MPI_SUCCESS)
                result = 0;
            (void)real.Group_free(&world_group);
        }
        (void)real.Group_free(&group);
    }
    for (uint32_t i = 0; i < size && result == 0; i++)
        if (world[i] < 0 || (uint32_t)world[i] >= job.processes)
            result = 1;
    free(mine);
    return result;
}

static uint32_t coordinate(uint32_t node, unsigned d)
{
    for (unsigned k = job.dims; --k > d;)
        node /= job.size[k];
    return node % job.size[d];
}

/* Returns the dimensions (bit d: dimension d) in which the nodes of these ranks differ. */
static uint32_t dimensions_of(const int *world, uint32_t size)
{
    uint32_t mask = 0, first = job.process[world[0]].node;

    for (uint32_t i = 1; i < size; i++)
        for (unsigned d = 0; d < job.dims; d++)
            if (coordinate(job.process[world[i]].node, d) != coordinate(first, d))
                mask |= 1u << d;
    return mask;
}

/* Returns the member number of a node in the part with these dimensions, as libtorus counts. */
static uint32_t member_of(uint32_t node, uint32_t mask)
{
    uint32_t member = 0;

    for (unsigned d = 0; d < job.dims; d++)
        if ((mask >> d & 1) != 0)
            member = member * job.size[d] + coordinate(node, d);
    return member;
}

/* Gives every rank its place: on each node the leader first, then the other ranks in order. Returns REASON_RANKS
 * unless all nodes have the same number of ranks, including their leaders. `count` has a 0 for each node on entry. */
static enum reason place(struct communicator *c, uint32_t *count)
{
    struct placement *p = c->placement;
    enum reason reason = REASON_SERVED;

    for (int leaders = 1; leaders >= 0; leaders--)
        for (uint32_t r = 0; r < c->size; r++) {
            const struct job_process *process = &job.process[p->world[r]];
            uint32_t node = member_of(process->node, c->dimensions);
            if ((int)process->leads != leaders)
                continue;
            if (count[node] == c->locals || (leaders == 0 && count[node] == 0)) {
                reason = REASON_RANKS;
                continue;
            }
            p->place_of[r] = node * c->locals + count[node]++;
            p->rank_at[p->place_of[r]] = r;
        }
    return reason;
}

static int find_places(struct communicator *c)
{
    struct placement *p = c->placement;
    uint32_t *count = calloc(c->nodes, sizeof *count);

    if (count == NULL)
        return -1;
    c->reason = place(c, count);
    free(count);
    c->in_order = true;
    for (uint32_t r = 0; r < c->size; r++)
        c->in_order &= p->place_of[r] == r;
    c->node = p->place_of[c->rank] / c->locals;
    c->local = p->place_of[c->rank] % c->locals;
    c->rank_at = p->rank_at;
    c->place_of = p->place_of;
    return 0;
}

static int find_nodes(struct communicator *c)
{
    uint64_t nodes = 1;

    c->dimensions = dimensions_of(c->placement->world, c->size);
    for (unsigned d = 0; d < job.dims; d++)
        if ((c->dimensions >> d & 1) != 0)
            nodes *= job.size[d];
    if (c->dimensions == 0) {
        c->reason = REASON_ONE_NODE;
        return 0;
    }
    if (c->size % nodes != 0 || !job_has_part(c->dimensions)) {
        c->reason = REASON_COMMUNICATOR;
        return 0;
    }
    c->nodes = (uint32_t)nodes;
    c->locals = (uint32_t)(c->size / nodes);
    return find_places(c);
}

/* Fills in *c for the communicator c->handle, which must be valid. c->reason is REASON_SERVED if the torus can serve
 * the communicator. Returns 0, or -1 if memory is short. Errors of MPI call error handlers. */
static int placement_find(struct communicator *c)
{
    int inter = 0, size = 0, rank = 0, result;

    c->reason = REASON_COMMUNICATOR;
    if (real.Comm_size(c->handle, &size) != MPI_SUCCESS ||
        real.Comm_rank(c->handle, &rank) != MPI_SUCCESS)
        return 0;
    c->size = (uint32_t)size;
    c->rank = (uint32_t)rank;
    if (real.Comm_test_inter(c->handle, &inter) != MPI_SUCCESS || inter != 0) {
        c->reason = REASON_INTERCOMMUNICATOR;
        return 0;
    }
    c->placement = new_tables(c->size);
    if (c->placement == NULL)
        return -1;
    result = world_ranks(c->handle, c->size, c->placement->world);
    if (result != 0)
        return result < 0 ? -1 : 0;
    return find_nodes(c);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* Returns whether every rank of `inner` is also a rank of `outer`; false if memory is short. */
static bool placement_is_within(const struct communicator *inner, const struct communicator *outer)
{
    bool *is_outer, within = true;

    is_outer = calloc(job.processes, sizeof *is_outer);
    if (is_outer == NULL)
        return false;
    for (uint32_t r = 0; r < outer->size; r++)
        is_outer[outer->placement->world[r]] = true;
    for (uint32_t r = 0; r < inner->size && within; r++)
        within = is_outer[inner->placement->world[r]];
    free(is_outer);
    return within;
}

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
    bool asked;   /* a communicator is in step 2 or 3 of communicator.h */
    bool blocked; /* calls of owners wait, in step 2 */
} parts[1u << JOB_DIMS];

static pthread_cond_t unblocked = PTHREAD_COND_INITIALIZER; /* a part is not blocked any more */

static uint64_t open_again_at;

/* ---- Votes ----------------------------------------------------------------------------------- */

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

/* Holds the calls of `c` that would go by what is remembered, or lets them pass: see communicator.h. The job must be locked.
 * While calls stay held, nothing is written, because a request may be copying the record. */
static void hold_or_pass(struct communicator *c)
{
    const struct share *s = &c->share;
    const bool was_held = (atomic_load(&c->calls) & CALLS_HELD) != 0;
    const bool held = job.threaded ? !s->owns || s->requests > 0 || parts[c->dimensions].blocked
                                   : s->wanted && !s->owns;

    if (held && !was_held)
        (void)atomic_fetch_or(&c->calls, CALLS_HELD);
    else if (!held && was_held)
        (void)atomic_fetch_and(&c->calls, ~CALLS_HELD);
}

/* Makes the calls of owners wait, or ends that. The job must be locked. */
static void block(struct part *part, bool blocked)
{
    part->blocked = blocked;
    for (unsigned l = 0; l < LANES_MOST; l++)
        if (part->seat[l].owner != NULL)
            hold_or_pass(part->seat[l].owner);
    if (!blocked)
        (void)pthread_cond_broadcast(&unblocked);
}

/* Makes `c` the owner of the lane, as its owner number `which`. The job must be locked. */
static void set_owner(struct communicator *c, unsigned lane, uint32_t which)
{
    struct seat *seat = &parts[c->dimensions].seat[lane];

    if (seat->owner != NULL) {
        seat->owner->share.owns = false;
        hold_or_pass(seat->owner);
    }
    seat->owner = c;
    seat->owners = which;
    c->share.owns = true;
    c->share.lane = lane;
    hold_or_pass(c);
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
    if (claims_decide(&v, &s->seen, communicator_calls(c)).kind != CLAIM_NOTHING)
        v = decide(c);
    claims_remember(&s->seen, &v, communicator_calls(c));
    s->ask_at = communicator_calls(c) + calls_until_next(s, &v);
    if (v.proceeds && s->ask_distance < MOST_DISTANCE)
        s->ask_distance *= 2;
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

static void ask_if_due(struct communicator *c)
{
    struct share *s = &c->share;

    if (s->ask_distance == 0)
        s->ask_at = s->ask_distance = FIRST_QUESTION;
    if (communicator_calls(c) < s->ask_at)
        return;
    lanes_enter();
    ask(c);
    lanes_leave();
}

enum reason sharing_enter(struct communicator *c)
{
    struct share *s = &c->share;

    if (!job.threaded) {
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
    return communicator_calls(c) < FIRST_QUESTION ? REASON_FIRST : REASON_ORDER;
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
    hold_or_pass(c);
    *group = owns && communicator_leads(c) ? lanes_part(s->lane, c->dimensions) : NULL;
    job_unlock();
    return owns;
}

void communicator_wants_lane(struct communicator *c)
{
    job_lock();
    c->share.wanted = true;
    hold_or_pass(c);
    job_unlock();
}

static void sharing_leave(struct communicator *c)
{
    job_lock();
    c->share.under_way = false;
    job_unlock();
}

/* Frees the lane of a communicator whose record is about to be freed. The job must be locked. */
static void sharing_forget(struct communicator *c)
{
    if (c->share.owns)
        parts[c->dimensions].seat[c->share.lane].owner = NULL;
}

void sharing_begin(struct communicator *world)
{
    if (world->reason == REASON_SERVED)
        set_owner(world, 0, 1);
}

/* ---- Calls that stay with MPI ------------------------------------------------------------------ */

struct staying staying[OPERATIONS_COUNT][1u << STAYING_BITS];

/* The job must be locked. */
static void staying_write(struct staying *s, const struct call_kind *kind, struct communicator *c,
                          struct choice *choice)
{
    const memory_order order = memory_order_release;
    const uint32_t version = atomic_load_explicit(&s->version, memory_order_relaxed);

    atomic_store_explicit(&s->version, version + 1, memory_order_relaxed);
    atomic_store_explicit(&s->caller, kind->caller, order);
    atomic_store_explicit(&s->comm, kind->comm, order);
    atomic_store_explicit(&s->type, kind->type, order);
    atomic_store_explicit(&s->op, kind->op, order);
    atomic_store_explicit(&s->count, kind->count, order);
    atomic_store_explicit(&s->c, c, order);
    atomic_store_explicit(&s->choice, choice, order);
    atomic_store_explicit(&s->version, version + 2, order);
}

void call_remember(enum mpi_operation operation, const struct call_kind *kind,
                   struct communicator *c, struct choice *choice)
{
    if (job.statistics) /* they need the time of each call */
        return;
    job_lock();
    staying_write(staying_at(operation, kind), kind, c, choice);
    job_unlock();
}

/* The job must be locked. */
static void staying_forget(const struct communicator *c)
{
    for (unsigned o = 0; o < OPERATIONS_COUNT; o++)
        for (unsigned i = 0; i < 1u << STAYING_BITS; i++)
            if (atomic_load_explicit(&staying[o][i].c, memory_order_relaxed) == c)
                staying_write(&staying[o][i], &(struct call_kind){0}, NULL, NULL);
}

/* The record of a communicator is an MPI attribute of it, so MPI frees the record with the communicator. The attribute
 * is never copied: MPI copies attributes not only to duplicates, which have the same ranks (MPI_Comm_create_group of
 * Open MPI copies them too), so a copied record could say nothing about its new communicator. */

static pthread_once_t once = PTHREAD_ONCE_INIT;

static int keyval = MPI_KEYVAL_INVALID;

/* Frees the record, or leaves that to communicator_end_request(). */
static void free_communicator(struct communicator *c)
{
    if (c == NULL)
        return;
    job_lock();
    staying_forget(c);
    c->freed = c->share.requests > 0;
    if (!c->freed)
        sharing_forget(c);
    job_unlock();
    if (c->freed)
        return;
    placement_free(c->placement);
    neighborhood_free(c->neighborhood);
    for (unsigned o = 0; o < CHOICES_COUNT; o++)
        for (unsigned k = 0; k < CHOICE_CLASSES; k++)
            free(c->choice[o][k]);
    free(c->numbers);
    free(c);
}

void communicator_end_request(struct communicator *c)
{
    bool is_last;

    job_lock();
    is_last = --c->share.requests == 0 && c->freed;
    hold_or_pass(c);
    job_unlock();
    if (is_last)
        free_communicator(c);
}

static int add_numbers(struct communicator *c)
{
    if (c->reason != REASON_SERVED)
        return 0;
    c->numbers = malloc(4 * (size_t)c->size * sizeof *c->numbers);
    return c->numbers != NULL ? 0 : -1;
}

/* ---- The attribute --------------------------------------------------------------------------- */

static int on_freed(MPI_Comm comm, int its_keyval, void *value, void *extra)
{
    (void)comm, (void)its_keyval, (void)extra;
    free_communicator(value);
    return MPI_SUCCESS;
}

static void create_keyval(void)
{
    if (real.Comm_create_keyval(attribute_stays, on_freed, &keyval, NULL) != MPI_SUCCESS)
        keyval = MPI_KEYVAL_INVALID;
}

/* ---- Setting up ------------------------------------------------------------------------------ */

/* Makes the group fail: other ranks may already use the torus for this call. */
static void fail_for_memory(void)
{
    static const struct torus_error out_of_memory = {
        .code = TORUS_ERROR_MEMORY, .text = "a process has no memory for a communicator"};

    lanes_enter();
    job_lock();
    job_fail(&out_of_memory);
    job_unlock();
    lanes_leave();
}

/* Frees the parts of the record that only a served communicator has. */
static void free_places(struct communicator *c)
{
    placement_free(c->placement);
    *c = (struct communicator){
        .handle = c->handle, .reason = c->reason, .size = c->size, .rank = c->rank};
}

static struct communicator *set_up(MPI_Comm comm)
{
    struct communicator *c = calloc(1, sizeof *c);
    struct errhandlers errhandlers;
    int result = -1;

    if (c != NULL) {
        c->handle = comm;
        errhandlers_replace(&errhandlers, comm);
        result = placement_find(c);
        if (c->reason != REASON_SERVED)
            free_places(c);
        if (result == 0 &&
            (add_numbers(c) != 0 || real.Comm_set_attr(comm, keyval, c) != MPI_SUCCESS))
            result = -1;
        errhandlers_restore(&errhandlers);
    }
    if (result == 0) {
        atomic_store(&c->calls, job.threaded ? CALLS_OF_THREADS : 0);
        job_lock();
        hold_or_pass(c);
        job_unlock();
        return c;
    }
    free_communicator(c);
    fail_for_memory();
    return NULL;
}

struct communicator *communicator_of(MPI_Comm comm)
{
    struct communicator *c;
    int found;

    (void)pthread_once(&once, create_keyval);
    if (comm == mpi.null || keyval == MPI_KEYVAL_INVALID ||
        real.Comm_get_attr(comm, keyval, &c, &found) != MPI_SUCCESS)
        return NULL;
    if (!found)
        return set_up(comm);
    c->handle = comm;
    return c;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void print_placement(const struct communicator *c, enum reason reason)
{
    if (reason == REASON_SERVED)
        (void)fprintf(stderr, "torus: a communicator of size %u is on %u %s\n", (unsigned)c->size,
                      (unsigned)c->nodes, text_plural(c->nodes, "node", "nodes"));
    else
        (void)fprintf(stderr, "torus: a communicator of size %u is left to " ABI_NAME ": %s\n",
                      (unsigned)c->size, reason_text(reason));
}

bool communicator_is_new(const struct communicator *c)
{
    return communicator_calls(c) == 1 && c->handle != mpi.world;
}

enum reason communicator_enter(struct communicator *c)
{
    enum reason reason = c->reason == REASON_SERVED ? sharing_enter(c) : c->reason;

    if (job.verbose && c->rank == 0 && reason != REASON_FIRST && c->printed != reason + 1) {
        print_placement(c, reason);
        c->printed = reason + 1;
    }
    if (reason == REASON_SERVED && c->wants_neighborhood) {
        c->wants_neighborhood = false;
        (void)neighborhood_read(c);
    }
    return reason;
}

void communicator_leave(struct communicator *c)
{
    sharing_leave(c);
}
