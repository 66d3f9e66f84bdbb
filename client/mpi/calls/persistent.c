#include "client/mpi/calls/persistent.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "client/mpi/job/statistics.h"
#include "client/mpi/library/real.h"

#define LISTS 256u /* a power of two */

struct made {
    struct made *next;
    MPI_Request request;
    enum unserved operation;
    uint64_t bytes;
};

static struct made *lists[LISTS]; /* by a hash of the request */
/* How many requests are known. 0 in most programs, where the functions below then cost nothing. */
static _Atomic unsigned requests;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Multiplies before taking bits, because the lowest bits of handles are all the same: handles are integers (MPICH) or
 * pointers (Open MPI). */
static struct made **list_of(MPI_Request request)
{
    uint64_t bits = (uint64_t)(uintptr_t)request * UINT64_C(0x9e3779b97f4a7c15);

    return &lists[bits >> 32 & (LISTS - 1)];
}

/* Returns the pointer that links the request, or the NULL at the end of its list if it is unknown. The mutex must be
 * locked. */
static struct made **find_request(MPI_Request request)
{
    struct made **at = list_of(request);

    while (*at != NULL && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

void persistent_made(MPI_Request request, enum unserved operation, uint64_t bytes)
{
    struct made **at, *made;

    (void)pthread_mutex_lock(&mutex);
    at = find_request(request);
    made = *at != NULL ? *at : calloc(1, sizeof *made);
    if (made != NULL) {
        *made = (struct made){made->next, request, operation, bytes};
        atomic_fetch_add_explicit(&requests, *at == NULL, memory_order_relaxed);
        *at = made;
    }
    (void)pthread_mutex_unlock(&mutex);
}

static void count_starts(const MPI_Request *started, int count)
{
    if (atomic_load_explicit(&requests, memory_order_relaxed) == 0 || started == NULL)
        return;
    (void)pthread_mutex_lock(&mutex);
    for (int i = 0; i < count; i++) {
        const struct made *made = *find_request(started[i]);
        if (made != NULL)
            statistics_add_start(made->operation, made->bytes);
    }
    (void)pthread_mutex_unlock(&mutex);
}

static void remove_request(MPI_Request request)
{
    struct made **at, *made;

    (void)pthread_mutex_lock(&mutex);
    at = find_request(request);
    made = *at;
    if (made != NULL) {
        *at = made->next;
        free(made);
        atomic_fetch_sub_explicit(&requests, 1, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&mutex);
}

/* ---- Functions of MPI ------------------------------------------------------------------------ */

int PMPI_Start(MPI_Request *request)
{
    count_starts(request, 1);
    if (real.Start == NULL)
        real_find();
    return real.Start(request);
}
__attribute__((alias("PMPI_Start"))) __typeof__(MPI_Start) MPI_Start;

int PMPI_Startall(int count, MPI_Request requests_to_start[])
{
    count_starts(requests_to_start, count);
    if (real.Startall == NULL)
        real_find();
    return real.Startall(count, requests_to_start);
}
__attribute__((alias("PMPI_Startall"))) __typeof__(MPI_Startall) MPI_Startall;

int PMPI_Request_free(MPI_Request *request)
{
    if (atomic_load_explicit(&requests, memory_order_relaxed) > 0 && request != NULL)
        remove_request(*request);
    if (real.Request_free == NULL)
        real_find();
    return real.Request_free(request);
}
__attribute__((alias("PMPI_Request_free"))) __typeof__(MPI_Request_free) MPI_Request_free;
