#include "client/mpi/library/errhandlers.h"

#include <pthread.h>

#include "client/mpi/library/real.h"

/* If two threads set aside the handler of one communicator, they would put back the wrong one. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void set_aside(struct errhandlers *h, MPI_Comm comm)
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

static void put_back(struct errhandler *e)
{
    MPI_Errhandler now;

    if (real.Comm_get_errhandler(e->comm, &now) == MPI_SUCCESS) {
        if (now == mpi.errors_return)
            (void)real.Comm_set_errhandler(e->comm, e->kept);
        (void)real.Errhandler_free(&now);
    }
    (void)real.Errhandler_free(&e->kept);
}

void errhandlers_set_aside(struct errhandlers *h, MPI_Comm comm)
{
    (void)pthread_mutex_lock(&mutex);
    h->count = 0;
    set_aside(h, mpi.world);
    set_aside(h, mpi.self);
    if (comm != mpi.null && comm != mpi.world && comm != mpi.self)
        set_aside(h, comm);
}

void errhandlers_put_back(struct errhandlers *h)
{
    while (h->count > 0)
        put_back(&h->each[--h->count]);
    (void)pthread_mutex_unlock(&mutex);
}
