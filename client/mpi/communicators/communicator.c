/* The record of a communicator is an MPI attribute of it, so MPI frees the record with the communicator. The attribute
 * is never copied: MPI copies attributes not only to duplicates, which have the same ranks (MPI_Comm_create_group of
 * Open MPI copies them too), so a copied record could say nothing about its new communicator. */
#include "client/mpi/communicators/communicator.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/mpi/communicators/placement.h"
#include "client/mpi/communicators/sharing.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/lanes.h"
#include "client/mpi/library/errhandlers.h"
#include "client/mpi/library/real.h"
#include "proto/text.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int keyval = MPI_KEYVAL_INVALID;

static void free_communicator(struct communicator *c)
{
    if (c == NULL)
        return;
    sharing_forget(c);
    placement_free(c->placement);
    free(c->numbers);
    free(c);
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
    if (result == 0)
        return c;
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
    return c->calls == 1 && c->handle != mpi.world;
}

enum reason communicator_enter(struct communicator *c)
{
    enum reason reason = c->reason == REASON_SERVED ? sharing_enter(c) : c->reason;

    if (job.verbose && c->rank == 0 && reason != REASON_FIRST && c->printed != reason + 1) {
        print_placement(c, reason);
        c->printed = reason + 1;
    }
    return reason;
}

void communicator_leave(struct communicator *c)
{
    sharing_leave(c);
}
