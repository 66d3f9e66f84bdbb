/* Defines the functions that torusd does not serve, to count their calls, from the lists in unserved_list.h. */
#include "client/mpi/library/unserved_list.h"

#include "client/mpi/calls/persistent.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/caller.h"
#include "client/mpi/library/real.h"
#include "client/mpi/library/shapes.h"

/* ---- Counting -------------------------------------------------------------------------------- */

#define NOT_KNOWN UINT64_C(0)

/* Returns the bytes of `count` elements. An invalid type gives NOT_KNOWN; the function of the MPI library
 * reports it. */
static uint64_t bytes_of(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size;

    if (count <= 0 || type == mpi.type_null || real.Type_size_x(type, &size) != MPI_SUCCESS ||
        size < 0)
        return NOT_KNOWN;
    return (uint64_t)count * (uint64_t)size;
}

/* Returns `bytes` times the number of ranks to which this rank sends. */
static uint64_t parts_of(uint64_t bytes, MPI_Comm comm)
{
    int inter, size;

    if (bytes == 0 || comm == mpi.null || real.Comm_test_inter(comm, &inter) != MPI_SUCCESS ||
        (inter != 0 ? real.Comm_remote_size : real.Comm_size)(comm, &size) != MPI_SUCCESS)
        return NOT_KNOWN;
    return bytes * (uint64_t)size;
}

static inline bool is_counted(const void *return_address)
{
    return job_is_served && job.statistics && !caller_is_mpi(return_address);
}

/* ---- Functions ------------------------------------------------------------------------------- */

/* The parameters that follow those of a shape. */
#define BLOCKING_PARAMETERS
#define BLOCKING_ARGUMENTS
#define NONBLOCKING_PARAMETERS , MPI_Request *request
#define NONBLOCKING_ARGUMENTS , request
#define PERSISTENT_PARAMETERS , MPI_Info info, MPI_Request *request
#define PERSISTENT_ARGUMENTS , info, request

/* Defines MPI_X and PMPI_X, because bindings call either of them. */
#define FUNCTION(name, shape, kind)                                                                \
    __attribute__((alias("P" #name))) __typeof__(name) name;                                       \
    int P##name(shape##_PARAMETERS kind##_PARAMETERS)

/* Calls the function of the MPI library, perhaps before MPI_Init. An MPI library may lack the function. */
#define PASS_ON(name, shape, kind)                                                                 \
    (real.name != NULL || (real_find(), real.name != NULL)                                         \
         ? real.name(shape##_ARGUMENTS kind##_ARGUMENTS)                                           \
         : MPI_ERR_OTHER)

#define COUNTED(function, name, operation, shape, kind)                                            \
    FUNCTION(function, shape, kind)                                                                \
    {                                                                                              \
        if (is_counted(__builtin_return_address(0)))                                               \
            statistics_add_unserved(UNSERVED_##operation, shape##_BYTES);                          \
        return PASS_ON(name, shape, kind);                                                         \
    }

/* Functions that make a persistent request, which may be started any number of times. */
#define COUNTED_REQUEST(function, name, operation, shape)                                          \
    FUNCTION(function, shape, PERSISTENT)                                                          \
    {                                                                                              \
        const bool counted = is_counted(__builtin_return_address(0));                              \
        const int result = PASS_ON(name, shape, PERSISTENT);                                       \
        if (counted)                                                                               \
            statistics_add_unserved(UNSERVED_##operation, 0);                                      \
        if (counted && result == MPI_SUCCESS)                                                      \
            persistent_made(*request, UNSERVED_##operation, shape##_BYTES);                        \
        return result;                                                                             \
    }

#define COUNT int
#define DISPLACEMENT int
#define X(name, shape) COUNTED(MPI_##name, name, name, shape, BLOCKING)
UNSERVED_BLOCKING(X)
UNSERVED_NEIGHBORHOOD(X)
#undef X
#define X(name, shape) COUNTED(MPI_##name, name, name, shape, NONBLOCKING)
UNSERVED_NONBLOCKING_PLAIN(X)
UNSERVED_NONBLOCKING(X)
#undef X
#define X(name, shape) COUNTED_REQUEST(ABI_PERSISTENT(name), name, name, shape)
UNSERVED_PERSISTENT_PLAIN(X)
UNSERVED_PERSISTENT(X)
#undef X

#if ABI_LARGE_COUNTS
#undef COUNT
#undef DISPLACEMENT
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define X(name, shape) COUNTED(MPI_##name##_c, name##_c, name, shape, BLOCKING)
UNSERVED_BLOCKING(X)
UNSERVED_NEIGHBORHOOD(X)
#undef X
#define X(name, shape) COUNTED(MPI_##name##_c, name##_c, name, shape, NONBLOCKING)
UNSERVED_NONBLOCKING(X)
#undef X
#define X(name, shape) COUNTED_REQUEST(ABI_PERSISTENT(name##_c), name##_c, name, shape)
UNSERVED_PERSISTENT(X)
#undef X
#endif
