/* Defines the functions that torusd does not serve, to count their calls, from the lists in operations.h. */
#include "client/mpi/calls/unserved.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/operations.h"
#include "client/mpi/library/real.h"

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

/* ---- Persistent requests --------------------------------------------------------------------- */

/* Requests of persistent operations are remembered, to count their starts. MPI_Start and MPI_Startall also start other
 * requests, such as those of MPI_Send_init. */

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

/* The program has made a request of this operation. Each start contributes `bytes`. */
static void persistent_made(MPI_Request request, enum unserved operation, uint64_t bytes)
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

void unserved_freed(MPI_Request request)
{
    struct made **at, *made;

    if (atomic_load_explicit(&requests, memory_order_relaxed) == 0)
        return;
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

/* ---- Shapes of parameters -------------------------------------------------------------------- */

/* For each shape X there are X_PARAMETERS, X_ARGUMENTS (the parameters as arguments of a call), and X_BYTES: the bytes
 * that this rank contributes, or NOT_KNOWN if a count and a type that this rank must set do not determine them. COUNT
 * and DISPLACEMENT, the types of counts and displacements, are defined below. Nonblocking and persistent functions have
 * further parameters after these. */

#define BARRIER_PARAMETERS MPI_Comm comm
#define BARRIER_ARGUMENTS comm
#define BARRIER_BYTES NOT_KNOWN

#define BCAST_PARAMETERS void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm
#define BCAST_ARGUMENTS buffer, count, type, root, comm
#define BCAST_BYTES (root < 0 ? NOT_KNOWN : bytes_of(count, type)) /* < 0: intercommunicator */

#define REDUCTION_PARAMETERS                                                                       \
    const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define REDUCTION_ARGUMENTS send, receive, count, type, op, comm
#define REDUCTION_BYTES bytes_of(count, type)

#define REDUCE_PARAMETERS                                                                          \
    const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op, int root,          \
        MPI_Comm comm
#define REDUCE_ARGUMENTS send, receive, count, type, op, root, comm
#define REDUCE_BYTES (root < 0 ? NOT_KNOWN : bytes_of(count, type))

#define REDUCE_SCATTER_PARAMETERS                                                                  \
    const void *send, void *receive, const COUNT counts[], MPI_Datatype type, MPI_Op op,           \
        MPI_Comm comm
#define REDUCE_SCATTER_ARGUMENTS send, receive, counts, type, op, comm
#define REDUCE_SCATTER_BYTES NOT_KNOWN

#define REDUCE_SCATTER_BLOCK_PARAMETERS REDUCTION_PARAMETERS
#define REDUCE_SCATTER_BLOCK_ARGUMENTS REDUCTION_ARGUMENTS
#define REDUCE_SCATTER_BLOCK_BYTES parts_of(bytes_of(count, type), comm)

/* The first parameters of operations with blocks of one size. */
#define BLOCKS_PARAMETERS                                                                          \
    const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,                     \
        COUNT receive_count, MPI_Datatype receive_type
#define BLOCKS_ARGUMENTS send, send_count, send_type, receive, receive_count, receive_type
#define SENT_BLOCK (send == MPI_IN_PLACE ? NOT_KNOWN : bytes_of(send_count, send_type))
#define RECEIVED_BLOCK (receive == MPI_IN_PLACE ? NOT_KNOWN : bytes_of(receive_count, receive_type))

#define ALLGATHER_PARAMETERS BLOCKS_PARAMETERS, MPI_Comm comm
#define ALLGATHER_ARGUMENTS BLOCKS_ARGUMENTS, comm
#define ALLGATHER_BYTES SENT_BLOCK

#define ALLGATHERV_PARAMETERS                                                                      \
    const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,                     \
        const COUNT receive_counts[], const DISPLACEMENT displacements[],                          \
        MPI_Datatype receive_type, MPI_Comm comm
#define ALLGATHERV_ARGUMENTS                                                                       \
    send, send_count, send_type, receive, receive_counts, displacements, receive_type, comm
#define ALLGATHERV_BYTES SENT_BLOCK

#define ALLTOALL_PARAMETERS BLOCKS_PARAMETERS, MPI_Comm comm
#define ALLTOALL_ARGUMENTS BLOCKS_ARGUMENTS, comm
#define ALLTOALL_BYTES                                                                             \
    parts_of(send == MPI_IN_PLACE ? bytes_of(receive_count, receive_type) : SENT_BLOCK, comm)

#define NEIGHBOR_ALLTOALL_PARAMETERS ALLTOALL_PARAMETERS
#define NEIGHBOR_ALLTOALL_ARGUMENTS ALLTOALL_ARGUMENTS
#define NEIGHBOR_ALLTOALL_BYTES NOT_KNOWN

#define ALLTOALLV_PARAMETERS                                                                       \
    const void *send, const COUNT send_counts[], const DISPLACEMENT send_displacements[],          \
        MPI_Datatype send_type, void *receive, const COUNT receive_counts[],                       \
        const DISPLACEMENT receive_displacements[], MPI_Datatype receive_type, MPI_Comm comm
#define ALLTOALLV_ARGUMENTS                                                                        \
    send, send_counts, send_displacements, send_type, receive, receive_counts,                     \
        receive_displacements, receive_type, comm
#define ALLTOALLV_BYTES NOT_KNOWN

#define ALLTOALLW_WITH(DISTANCE)                                                                   \
    const void *send, const COUNT send_counts[], const DISTANCE send_displacements[],              \
        const MPI_Datatype send_types[], void *receive, const COUNT receive_counts[],              \
        const DISTANCE receive_displacements[], const MPI_Datatype receive_types[], MPI_Comm comm
#define ALLTOALLW_PARAMETERS ALLTOALLW_WITH(DISPLACEMENT)
#define ALLTOALLW_ARGUMENTS                                                                        \
    send, send_counts, send_displacements, send_types, receive, receive_counts,                    \
        receive_displacements, receive_types, comm
#define ALLTOALLW_BYTES NOT_KNOWN

#define NEIGHBOR_ALLTOALLW_PARAMETERS ALLTOALLW_WITH(MPI_Aint)
#define NEIGHBOR_ALLTOALLW_ARGUMENTS ALLTOALLW_ARGUMENTS
#define NEIGHBOR_ALLTOALLW_BYTES NOT_KNOWN

#define GATHER_PARAMETERS BLOCKS_PARAMETERS, int root, MPI_Comm comm
#define GATHER_ARGUMENTS BLOCKS_ARGUMENTS, root, comm
#define GATHER_BYTES (root < 0 ? NOT_KNOWN : SENT_BLOCK)

#define GATHERV_PARAMETERS                                                                         \
    const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,                     \
        const COUNT receive_counts[], const DISPLACEMENT displacements[],                          \
        MPI_Datatype receive_type, int root, MPI_Comm comm
#define GATHERV_ARGUMENTS                                                                          \
    send, send_count, send_type, receive, receive_counts, displacements, receive_type, root, comm
#define GATHERV_BYTES GATHER_BYTES

#define SCATTER_PARAMETERS GATHER_PARAMETERS
#define SCATTER_ARGUMENTS GATHER_ARGUMENTS
#define SCATTER_BYTES (root < 0 ? NOT_KNOWN : RECEIVED_BLOCK)

#define SCATTERV_PARAMETERS                                                                        \
    const void *send, const COUNT send_counts[], const DISPLACEMENT displacements[],               \
        MPI_Datatype send_type, void *receive, COUNT receive_count, MPI_Datatype receive_type,     \
        int root, MPI_Comm comm
#define SCATTERV_ARGUMENTS                                                                         \
    send, send_counts, displacements, send_type, receive, receive_count, receive_type, root, comm
#define SCATTERV_BYTES SCATTER_BYTES

/* ---- Functions ------------------------------------------------------------------------------- */

/* The parameters that follow those of a shape. */
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
#define X(name, shape) COUNTED(MPI_##name, name, name, shape, NONBLOCKING)
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
#define X(name, shape) COUNTED(MPI_##name##_c, name##_c, name, shape, NONBLOCKING)
UNSERVED_NONBLOCKING(X)
#undef X
#define X(name, shape) COUNTED_REQUEST(ABI_PERSISTENT(name##_c), name##_c, name, shape)
UNSERVED_PERSISTENT(X)
#undef X
#endif
