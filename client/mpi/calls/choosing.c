#include "client/mpi/calls/choosing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/mpi/job/job.h"
#include "client/mpi/job/known.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/real.h"
#include "client/mpi/nodes/node_collectives.h"

#define SHORT_BYTES ((size_t)64 << 10)

static _Thread_local uint64_t question; /* nanoseconds of the last one */

/* The time of a call depends on which ranks are neighbors, or where the nodes are, so no other communicator's time says
 * anything. */
static bool is_alone(const struct served_call *t)
{
    const bool among_neighbors =
        t->row >= OPERATION_Neighbor_allgather && t->row <= OPERATION_Neighbor_alltoallw;

    return among_neighbors || t->c->dimensions == NO_PART;
}

static struct choice_known *known_of(const struct served_call *t, unsigned size_class)
{
    return known_at(t->c->dimensions, t->c->several, t->row, size_class);
}

/* The present number of changes of the torus. Returns 0, or -1 if the torus can no longer be used. */
static int torus_changes(const struct communicator *c, uint32_t *changes)
{
    struct torus_error ignored;
    int result = 0;

    *changes = 0;
    job_lock();
    if (job_has_failed(&ignored) ||
        (c->group != NULL && torus_group_changes(c->group, changes, &ignored) != 0))
        result = -1;
    job_unlock();
    return result;
}

static void print_choice(const struct communicator *c, enum mpi_operation operation,
                         const struct choice *choice)
{
    char size[64] = "";

    if (choice->size_class != CHOICE_ANY_SIZE)
        (void)snprintf(size, sizeof size, " of at most %" PRIu64 " bytes",
                       choice_class_end(choice->size_class));
    (void)fprintf(stderr,
                  "torus: %s%s on a communicator of %u ranks goes by %s: %.0f us by the torus, "
                  "%.0f us by " ABI_NAME "\n",
                  mpi_operation_name(operation), size, (unsigned)c->size,
                  choice->way == WAY_TORUS ? "the torus" : ABI_NAME,
                  (double)choice->time[WAY_TORUS] / 1e3, (double)choice->time[WAY_MPI] / 1e3);
}

/* Combines the votes of all ranks, and decides. If MPI fails, the calls stay with MPI, which fails in the same way. */
static void ask(struct served_call *t, struct choice *choice)
{
    const uint64_t begin = statistics_now();
    struct communicator *c = t->c;
    struct choice_known known = {0};
    struct choice_vote mine, all = {.failed = true};
    uint32_t changes;
    bool failed = torus_changes(c, &changes) != 0;

    job_lock();
    if (!is_alone(t))
        known = *known_of(t, choice->size_class);
    if (choice_is_fresh(choice) && !choice->waited && known.known)
        known_of(t, choice->size_class)->used++;
    job_unlock();
    mine = choice_vote(choice, changes, &known);
    mine.failed = failed;
    mine.question = question;
    if (real.Allreduce(&mine, &all, (int)CHOICE_VOTE_NUMBERS, mpi.uint64, mpi.max, c->handle) !=
        MPI_SUCCESS)
        all.failed = true;
    question = statistics_now() - begin;
    if (!choice_decide(choice, &all, changes))
        return;
    job_lock();
    choice_remember(choice, known_of(t, choice->size_class));
    job_unlock();
    if (job.verbose && c->rank == 0)
        print_choice(c, t->row, choice);
}

/* Returns the record for such calls. NULL: memory is short. */
static struct choice *find_choice(struct served_call *t, unsigned size_class)
{
    struct choice **at = &t->c->choice[t->row][size_class];

    if (*at == NULL) {
        *at = malloc(sizeof **at);
        if (*at != NULL)
            choice_begin(*at, size_class);
    }
    return *at;
}

static enum way fixed_way(const struct served_call *t, unsigned size_class)
{
    const struct choice_known *known = known_of(t, size_class);

    return known->known ? known->way : choice_usual(size_class);
}

/* Sets *way. Returns whether there was memory for that. */
static bool find_way(struct served_call *t, unsigned size_class, enum way *way)
{
    struct choice *choice = find_choice(t, size_class);

    if (choice == NULL)
        return false;
    while (choice_asks(choice))
        ask(t, choice);
    *way = choice_next(choice, &t->sample);
    t->choice = choice;
    if (t->sample != NULL) {
        (void)real.Barrier(t->c->handle);
        t->sample_begin = statistics_now();
    }
    return true;
}

/* A nonblocking call goes the way that blocking calls have found, but it is not timed: its time says little, and its
 * rank must not wait for others. It must be one call of the torus, because the second one would come after calls that
 * were begun later. */
static enum reason choose_nonblocking(struct served_call *t, unsigned size_class)
{
    const struct choice *choice = t->c->choice[t->row][size_class];
    enum way way = choice != NULL ? choice->way : choice_usual_nonblocking(size_class);

    if (t->row != t->operation)
        return REASON_COMBINED;
    if (job.ways == WAYS_TORUS)
        way = WAY_TORUS;
    else if (job.ways == WAYS_FIXED)
        way = fixed_way(t, size_class);
    if (way == WAY_MPI)
        return REASON_FASTER;
    communicator_wants_lane(t->c);
    return t->has_lane ? REASON_SERVED : REASON_LANE;
}

enum reason choose_way(struct served_call *t, size_t bytes)
{
    const unsigned size_class = bytes == BYTES_DIFFER ? CHOICE_ANY_SIZE : choice_class(bytes);
    enum way way = WAY_TORUS;
    struct torus_error ignored;

    if (t->is_nonblocking)
        return choose_nonblocking(t, size_class);
    if (t->first && bytes <= SHORT_BYTES)
        return REASON_FIRST;
    if (job.ways == WAYS_FIXED)
        way = fixed_way(t, size_class);
    else if (job.ways == WAYS_FASTER && !find_way(t, size_class, &way))
        (void)node_lacks_memory(t->c, &ignored); /* the call by the torus then fails on all ranks */
    return way == WAY_TORUS ? REASON_SERVED : REASON_FASTER;
}

void choose_ended(struct served_call *t)
{
    if (t->sample != NULL)
        *t->sample = (struct choice_sample){statistics_now() - t->sample_begin, t->bytes};
}
