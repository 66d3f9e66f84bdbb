/* The collective operations that torusd does not serve. The MPI library carries them out, and the preload defines
 * them only to count them. The functions (unserved.c), the pointers to the functions of the MPI library (real.h) and
 * the names in the statistics are all made from these lists.
 *
 * A row has the name of the function, without "MPI_", and the shape of its parameters (shapes.h). The functions in
 * lists named _PLAIN have no counts. Each other function also exists with large counts, as MPI_X_c, if the MPI
 * library has such functions. */
#pragma once

#include <stdint.h>

#include "client/mpi/library/abi.h"

#define UNSERVED_BLOCKING(X)                                                                       \
    X(Exscan, REDUCTION)                                                                           \
    X(Gather, GATHER)                                                                              \
    X(Gatherv, GATHERV)                                                                            \
    X(Scan, REDUCTION)                                                                             \
    X(Scatter, SCATTER)                                                                            \
    X(Scatterv, SCATTERV)

#define UNSERVED_NEIGHBORHOOD(X)                                                                   \
    X(Neighbor_allgather, ALLGATHER)                                                               \
    X(Neighbor_allgatherv, ALLGATHERV)                                                             \
    X(Neighbor_alltoall, NEIGHBOR_ALLTOALL)                                                        \
    X(Neighbor_alltoallv, ALLTOALLV)                                                               \
    X(Neighbor_alltoallw, NEIGHBOR_ALLTOALLW)

#define UNSERVED_NONBLOCKING_PLAIN(X) X(Ibarrier, BARRIER)

#define UNSERVED_NONBLOCKING(X)                                                                    \
    X(Iallgather, ALLGATHER)                                                                       \
    X(Iallgatherv, ALLGATHERV)                                                                     \
    X(Iallreduce, REDUCTION)                                                                       \
    X(Ialltoall, ALLTOALL)                                                                         \
    X(Ialltoallv, ALLTOALLV)                                                                       \
    X(Ialltoallw, ALLTOALLW)                                                                       \
    X(Ibcast, BCAST)                                                                               \
    X(Iexscan, REDUCTION)                                                                          \
    X(Igather, GATHER)                                                                             \
    X(Igatherv, GATHERV)                                                                           \
    X(Ineighbor_allgather, ALLGATHER)                                                              \
    X(Ineighbor_allgatherv, ALLGATHERV)                                                            \
    X(Ineighbor_alltoall, NEIGHBOR_ALLTOALL)                                                       \
    X(Ineighbor_alltoallv, ALLTOALLV)                                                              \
    X(Ineighbor_alltoallw, NEIGHBOR_ALLTOALLW)                                                     \
    X(Ireduce, REDUCE)                                                                             \
    X(Ireduce_scatter, REDUCE_SCATTER)                                                             \
    X(Ireduce_scatter_block, REDUCE_SCATTER_BLOCK)                                                 \
    X(Iscan, REDUCTION)                                                                            \
    X(Iscatter, SCATTER)                                                                           \
    X(Iscatterv, SCATTERV)

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

/* Combined lists: the functions whose names begin with MPI_, and all functions. */
#define UNSERVED_OF_MPI_PLAIN(X) UNSERVED_NONBLOCKING_PLAIN(X)
#define UNSERVED_OF_MPI(X) UNSERVED_BLOCKING(X) UNSERVED_NEIGHBORHOOD(X) UNSERVED_NONBLOCKING(X)
#define UNSERVED(X)                                                                                \
    UNSERVED_OF_MPI(X)                                                                             \
    UNSERVED_OF_MPI_PLAIN(X)                                                                       \
    UNSERVED_PERSISTENT_PLAIN(X)                                                                   \
    UNSERVED_PERSISTENT(X)

enum unserved {
#define X(name, shape) UNSERVED_##name,
    UNSERVED(X)
#undef X
        UNSERVED_COUNT,
};
