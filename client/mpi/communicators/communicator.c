#include "client/mpi/communicators/communicator.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/errors.h"
#include "client/mpi/library/real.h"
#include "proto/text.h"

/* ---- Calls that stay with MPI ------------------------------------------------------------------ */

struct staying staying[OPERATIONS_COUNT][1u << STAYING_BITS];

struct choice staying_unserved;

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
    sharing_hold_or_pass(c);
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
        sharing_set_up(c);
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
