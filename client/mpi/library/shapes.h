/* The shapes of the parameters of MPI's collective operations. For each shape X there are X_PARAMETERS, X_ARGUMENTS
 * (the parameters as arguments of a call), and X_BYTES: the bytes that this rank contributes, or NOT_KNOWN if a count
 * and a type that this rank must set do not determine them. unserved.c defines bytes_of(), parts_of(), NOT_KNOWN, and
 * COUNT and DISPLACEMENT, the types of counts and displacements. Nonblocking and persistent functions have further
 * parameters after these. */
#pragma once

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
