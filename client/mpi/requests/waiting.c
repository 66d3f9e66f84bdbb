/* The functions of MPI that wait for requests or look whether they are complete. Without requests of this preload they
 * are those of the MPI library. */
#include <stdatomic.h>

#include "client/mpi/calls/unserved.h"
#include "client/mpi/library/real.h"
#include "client/mpi/requests/requests.h"

/* Exports PMPI_X also as MPI_X. */
#define ALSO_AS_MPI(name) __attribute__((alias("PMPI_" #name))) __typeof__(MPI_##name) MPI_##name

/* Returns whether requests of this preload are in the array. */
static bool finds(struct request_set *set, int count, const MPI_Request *array)
{
    return atomic_load_explicit(&requests_count, memory_order_relaxed) > 0 &&
           requests_find(set, count, array);
}

/* The same for functions that do not wait. Lets calls of the torus make progress first. */
static bool finds_now(struct request_set *set, int count, const MPI_Request *array)
{
    fibers_progress();
    return finds(set, count, array);
}

/* Perhaps before MPI_Init. */
#define REAL(name) (real.name != NULL ? (void)0 : real_find(), real.name)

/* ---- One request ----------------------------------------------------------------------------- */

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct request_set set;

    if (!finds(&set, 1, request))
        return REAL(Wait)(request, status);
    requests_wait(&set);
    return requests_completed(&set, request, real.Wait(request, status));
}
ALSO_AS_MPI(Wait);

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct request_set set;

    if (!finds_now(&set, 1, request))
        return REAL(Test)(request, flag, status);
    return requests_completed(&set, request, real.Test(request, flag, status));
}
ALSO_AS_MPI(Test);

int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    struct request_set set;

    if (!finds_now(&set, 1, &request))
        return REAL(Request_get_status)(request, flag, status);
    return requests_completed(&set, &request, real.Request_get_status(request, flag, status));
}
ALSO_AS_MPI(Request_get_status);

int PMPI_Request_free(MPI_Request *request)
{
    struct request_set set;

    if (request != NULL) {
        unserved_freed(*request);
        if (finds(&set, 1, request))
            requests_abandon(&set);
    }
    return REAL(Request_free)(request);
}
ALSO_AS_MPI(Request_free);

/* ---- Several requests ------------------------------------------------------------------------ */

int PMPI_Waitall(int count, MPI_Request array[], MPI_Status statuses[])
{
    struct request_set set;

    if (!finds(&set, count, array))
        return REAL(Waitall)(count, array, statuses);
    requests_wait(&set);
    return requests_completed_with(&set, array, real.Waitall(count, array, statuses), NULL, count,
                                   statuses);
}
ALSO_AS_MPI(Waitall);

int PMPI_Testall(int count, MPI_Request array[], int *flag, MPI_Status statuses[])
{
    struct request_set set;

    if (!finds_now(&set, count, array))
        return REAL(Testall)(count, array, flag, statuses);
    return requests_completed_with(&set, array, real.Testall(count, array, flag, statuses), NULL,
                                   count, statuses);
}
ALSO_AS_MPI(Testall);

int PMPI_Testany(int count, MPI_Request array[], int *index, int *flag, MPI_Status *status)
{
    struct request_set set;

    if (!finds_now(&set, count, array))
        return REAL(Testany)(count, array, index, flag, status);
    return requests_completed(&set, array, real.Testany(count, array, index, flag, status));
}
ALSO_AS_MPI(Testany);

int PMPI_Waitany(int count, MPI_Request array[], int *index, MPI_Status *status)
{
    struct fibers_rest rest;
    struct request_set set;
    int result, flag = 0;

    if (!finds(&set, count, array))
        return REAL(Waitany)(count, array, index, status);
    fibers_rest_begin(&rest, set.others > 0);
    for (;;) {
        fibers_progress();
        result = real.Testany(count, array, index, &flag, status);
        if (flag || result != MPI_SUCCESS)
            return requests_completed(&set, array, result);
        requests_rest(&set, &rest);
    }
}
ALSO_AS_MPI(Waitany);

int PMPI_Testsome(int count, MPI_Request array[], int *completed, int indices[],
                  MPI_Status statuses[])
{
    struct request_set set;

    if (!finds_now(&set, count, array))
        return REAL(Testsome)(count, array, completed, indices, statuses);
    int result = real.Testsome(count, array, completed, indices, statuses);
    return requests_completed_with(&set, array, result, indices, *completed, statuses);
}
ALSO_AS_MPI(Testsome);

int PMPI_Waitsome(int count, MPI_Request array[], int *completed, int indices[],
                  MPI_Status statuses[])
{
    struct fibers_rest rest;
    struct request_set set;
    int result;

    if (!finds(&set, count, array))
        return REAL(Waitsome)(count, array, completed, indices, statuses);
    fibers_rest_begin(&rest, set.others > 0);
    for (;;) {
        fibers_progress();
        result = real.Testsome(count, array, completed, indices, statuses);
        if (*completed != 0 || result != MPI_SUCCESS)
            return requests_completed_with(&set, array, result, indices, *completed, statuses);
        requests_rest(&set, &rest);
    }
}
ALSO_AS_MPI(Waitsome);
