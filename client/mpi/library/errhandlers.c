#include "client/mpi/library/errhandlers.h"

#include <pthread.h>

#include "client/mpi/library/real.h"

/* If two threads replaced the handler of one communicator at the same time, they would restore the wrong one. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void replace_handler(struct errhandlers *h, MPI_Comm comm)
{
    struct errhandler *e = &h->each[h->count];

    e->comm = comm;
    if (real.Comm_get_errhandler(comm, &e->kept) != MPI_SUCCESS)
        return;
    if (real.Comm_set_errhandler(comm, mpi.errors_return) == MPI_SUCCESS)
        h->count++;
    else
        (void)real.Errhandler_free(&e->kept);
}

static void restore_handler(struct errhandler *e)
{
    MPI_Errhandler now;

    if (real.Comm_get_errhandler(e->comm, &now) == MPI_SUCCESS) {
        if (now == mpi.errors_return)
            (void)real.Comm_set_errhandler(e->comm, e->kept);
        (void)real.Errhandler_free(&now);
    }
    (void)real.Errhandler_free(&e->kept);
}

void errhandlers_replace(struct errhandlers *h, MPI_Comm comm)
{
    (void)pthread_mutex_lock(&mutex);
    h->count = 0;
    replace_handler(h, mpi.world);
    replace_handler(h, mpi.self);
    if (comm != mpi.null && comm != mpi.world && comm != mpi.self)
        replace_handler(h, comm);
}

void errhandlers_restore(struct errhandlers *h)
{
    while (h->count > 0)
        restore_handler(&h->each[--h->count]);
    (void)pthread_mutex_unlock(&mutex);
}
