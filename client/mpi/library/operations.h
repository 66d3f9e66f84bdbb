/* The operations of MPI: those that the preload serves, those that it only counts, and the reasons why it may leave a
 * call to MPI. The functions (intercept.c, unserved.c), the pointers to the functions of the MPI library (real.h) and
 * the names in the statistics are all made from these lists. A row begins with the name of the function, without
 * "MPI_". */
#pragma once

#include <stdint.h>

#include "client/mpi/library/abi.h"

/* --- operations that the torus carries out --- */

/* COUNTS: the function also exists with large counts, as MPI_X_c, if the MPI library has such functions. */
#define OPERATIONS(X)                                                                              \
    X(Allgather, COUNTS)                                                                           \
    X(Allgatherv, COUNTS)                                                                          \
    X(Allreduce, COUNTS)                                                                           \
    X(Alltoall, COUNTS)                                                                            \
    X(Alltoallv, COUNTS)                                                                           \
    X(Alltoallw, COUNTS)                                                                           \
    X(Barrier, PLAIN)                                                                              \
    X(Bcast, COUNTS)                                                                               \
    X(Exscan, COUNTS)                                                                              \
    X(Gather, COUNTS)                                                                              \
    X(Gatherv, COUNTS)                                                                             \
    X(Neighbor_allgather, COUNTS)                                                                  \
    X(Neighbor_allgatherv, COUNTS)                                                                 \
    X(Neighbor_alltoall, COUNTS)                                                                   \
    X(Neighbor_alltoallv, COUNTS)                                                                  \
    X(Neighbor_alltoallw, COUNTS)                                                                  \
    X(Reduce, COUNTS)                                                                              \
    X(Reduce_scatter, COUNTS)                                                                      \
    X(Reduce_scatter_block, COUNTS)                                                                \
    X(Scan, COUNTS)                                                                                \
    X(Scatter, COUNTS)                                                                             \
    X(Scatterv, COUNTS)

/* Those of them in which the ranks may combine the vectors themselves (calls/combining.h). */
#define COMBINED(X)                                                                                \
    X(Allreduce)                                                                                   \
    X(Reduce)                                                                                      \
    X(Reduce_scatter)                                                                              \
    X(Reduce_scatter_block)

/* COMBINED_X: for choosing the faster way only, because such a call takes another time than OPERATION_X. */
enum mpi_operation {
#define X(name, kind) OPERATION_##name,
    OPERATIONS(X)
#undef X
        OPERATIONS_COUNT,
    BEFORE_COMBINED = OPERATIONS_COUNT - 1,
#define X(name) COMBINED_##name,
    COMBINED(X)
#undef X
        CHOICES_COUNT,
};

/* The nonblocking forms that the torus carries out: the function, and its operation. */
#define NONBLOCKING_PLAIN(X) X(Ibarrier, Barrier)

#define NONBLOCKING(X)                                                                             \
    X(Iallgather, Allgather)                                                                       \
    X(Iallgatherv, Allgatherv)                                                                     \
    X(Iallreduce, Allreduce)                                                                       \
    X(Ialltoall, Alltoall)                                                                         \
    X(Ialltoallv, Alltoallv)                                                                       \
    X(Ialltoallw, Alltoallw)                                                                       \
    X(Ibcast, Bcast)                                                                               \
    X(Igather, Gather)                                                                             \
    X(Igatherv, Gatherv)                                                                           \
    X(Ineighbor_allgather, Neighbor_allgather)                                                     \
    X(Ineighbor_allgatherv, Neighbor_allgatherv)                                                   \
    X(Ineighbor_alltoall, Neighbor_alltoall)                                                       \
    X(Ineighbor_alltoallv, Neighbor_alltoallv)                                                     \
    X(Ineighbor_alltoallw, Neighbor_alltoallw)                                                     \
    X(Ireduce, Reduce)                                                                             \
    X(Ireduce_scatter, Reduce_scatter)                                                             \
    X(Ireduce_scatter_block, Reduce_scatter_block)                                                 \
    X(Iscatter, Scatter)                                                                           \
    X(Iscatterv, Scatterv)

/* --- operations that torusd does not serve: the preload defines them only to count them --- */

/* The second part of a row is the shape of the parameters (unserved.c). The functions in lists named _PLAIN have no
 * counts. */
#define UNSERVED_NONBLOCKING(X)                                                                    \
    X(Iexscan, REDUCTION)                                                                          \
    X(Iscan, REDUCTION)

/* ABI_PERSISTENT() makes the full names of these. */
#if ABI_HAS_PERSISTENT
#define UNSERVED_PERSISTENT_PLAIN(X) X(Barrier_init, BARRIER)

#define UNSERVED_PERSISTENT(X)                                                                     \
    X(Allgather_init, ALLGATHER)                                                                   \
    X(Allgatherv_init, ALLGATHERV)                                                                 \
    X(Allreduce_init, REDUCTION)                                                                   \
    X(Alltoall_init, ALLTOALL)                                                                     \
    X(Alltoallv_init, ALLTOALLV)                                                                   \
    X(Alltoallw_init, ALLTOALLW)                                                                   \
    X(Bcast_init, BCAST)                                                                           \
    X(Exscan_init, REDUCTION)                                                                      \
    X(Gather_init, GATHER)                                                                         \
    X(Gatherv_init, GATHERV)                                                                       \
    X(Neighbor_allgather_init, ALLGATHER)                                                          \
    X(Neighbor_allgatherv_init, ALLGATHERV)                                                        \
    X(Neighbor_alltoall_init, NEIGHBOR_ALLTOALL)                                                   \
    X(Neighbor_alltoallv_init, ALLTOALLV)                                                          \
    X(Neighbor_alltoallw_init, NEIGHBOR_ALLTOALLW)                                                 \
    X(Reduce_init, REDUCE)                                                                         \
    X(Reduce_scatter_init, REDUCE_SCATTER)                                                         \
    X(Reduce_scatter_block_init, REDUCE_SCATTER_BLOCK)                                             \
    X(Scan_init, REDUCTION)                                                                        \
    X(Scatter_init, SCATTER)                                                                       \
    X(Scatterv_init, SCATTERV)
#else
#define UNSERVED_PERSISTENT_PLAIN(X)
#define UNSERVED_PERSISTENT(X)
#endif

/* All functions. */
#define UNSERVED(X)                                                                                \
    UNSERVED_NONBLOCKING(X)                                                                        \
    UNSERVED_PERSISTENT_PLAIN(X)                                                                   \
    UNSERVED_PERSISTENT(X)

enum unserved {
#define X(name, shape) UNSERVED_##name,
    UNSERVED(X)
#undef X
        UNSERVED_COUNT,
};

/* --- results --- */

/* SERVED, and the reasons why a call is left to MPI. All except ARGUMENTS are the same on all ranks of the
 * communicator. */
#define REASONS(X)                                                                                 \
    X(SERVED, "")                                                                                  \
    X(COMMUNICATOR, "a communicator with ranks that are not in MPI_COMM_WORLD")                    \
    X(INTERCOMMUNICATOR, "an intercommunicator")                                                   \
    X(ONE_NODE, "a communicator on one node")                                                      \
    X(FIRST, "one of the first calls of a communicator")                                           \
    X(GROUP, "a communicator that has no group of its own")                                        \
    X(FASTER, "MPI is faster, or both are timed")                                                  \
    X(LANE, "nonblocking, on a communicator that has no group for that")                           \
    X(COMBINED, "nonblocking, with other operators or types")                                      \
    X(SEVERAL, "nonblocking, with several ranks on a node")                                        \
    X(ORDER, "another communicator uses the same nodes, under MPI_THREAD_MULTIPLE")                \
    X(REPEATED, "a rank is a neighbor twice, and the order of its blocks is that of this MPI")     \
    X(LARGE, "blocks over 2 GiB, which this MPI may not be able to pack")                          \
    X(ARGUMENTS, "invalid arguments")

enum reason {
#define X(name, text) REASON_##name,
    REASONS(X)
#undef X
};

/* Return the name of an operation, and the texts above. Static. */
const char *mpi_operation_name(enum mpi_operation operation);
const char *mpi_nonblocking_name(enum mpi_operation operation);
const char *reason_text(enum reason reason);
