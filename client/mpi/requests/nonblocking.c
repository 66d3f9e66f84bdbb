/* The nonblocking functions of MPI. Calls that the torus does not carry out are passed on to the MPI library. */
#include "client/mpi/library/real.h"
#include "client/mpi/requests/requests.h"

/* Exports PMPI_X also as MPI_X. */
#define ALSO_AS_MPI(name) __attribute__((alias("PMPI_" #name))) __typeof__(MPI_##name) MPI_##name

/* Begins the call with these arguments (struct arguments, without the operation), or calls `otherwise`. */
#define BEGIN(its_operation, comm, request, otherwise, ...)                                        \
    do {                                                                                           \
        struct beginning b;                                                                        \
        if (requests_begin(&b,                                                                     \
                           &(const struct arguments){.operation = (its_operation), __VA_ARGS__},   \
                           comm, request, __builtin_return_address(0)))                            \
            return b.result;                                                                       \
        return requests_left(&b, otherwise);                                                       \
    } while (0)

int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Barrier, comm, request, real.Ibarrier(comm, request), .same = true);
}
ALSO_AS_MPI(Ibarrier);

#define NAME(name) name
#define PNAME(name) PMPI_##name
#define COUNT int
#define DISPLACEMENT int
#include "client/mpi/requests/nonblocking_counts.h"

#if ABI_LARGE_COUNTS
#undef NAME
#undef PNAME
#undef COUNT
#undef DISPLACEMENT
#define NAME(name) name##_c
#define PNAME(name) PMPI_##name##_c
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#include "client/mpi/requests/nonblocking_counts.h"
#endif
