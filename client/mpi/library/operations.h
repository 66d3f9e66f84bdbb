/* The operations that the preload serves, and the reasons why it may leave a call to MPI. */
#pragma once

#define OPERATIONS(X)                                                                              \
    X(ALLGATHER, "MPI_Allgather")                                                                  \
    X(ALLGATHERV, "MPI_Allgatherv")                                                                \
    X(ALLREDUCE, "MPI_Allreduce")                                                                  \
    X(ALLTOALL, "MPI_Alltoall")                                                                    \
    X(ALLTOALLV, "MPI_Alltoallv")                                                                  \
    X(ALLTOALLW, "MPI_Alltoallw")                                                                  \
    X(BARRIER, "MPI_Barrier")                                                                      \
    X(BCAST, "MPI_Bcast")                                                                          \
    X(REDUCE, "MPI_Reduce")                                                                        \
    X(REDUCE_SCATTER, "MPI_Reduce_scatter")                                                        \
    X(REDUCE_SCATTER_BLOCK, "MPI_Reduce_scatter_block")

enum operation {
#define X(name, text) OPERATION_##name,
    OPERATIONS(X)
#undef X
};

/* SERVED, and the reasons why a call is left to MPI. All except ARGUMENTS are the same on all ranks of the
 * communicator. */
#define REASONS(X)                                                                                 \
    X(SERVED, "")                                                                                  \
    X(COMMUNICATOR, "a communicator that is not the torus or a row, column or plane of it")        \
    X(RANKS, "a communicator that lacks the lowest rank of a node, or has more on some nodes")     \
    X(INTERCOMMUNICATOR, "an intercommunicator")                                                   \
    X(ONE_NODE, "a communicator on one node")                                                      \
    X(FIRST, "the first call of a communicator")                                                   \
    X(ORDER, "another communicator uses the same nodes, under MPI_THREAD_MULTIPLE")                \
    X(OPERATOR, "an operator that torusd lacks")                                                   \
    X(TYPE, "a type that torusd cannot reduce")                                                    \
    X(LARGE, "blocks over 2 GiB, which this MPI may not be able to pack")                          \
    X(ARGUMENTS, "invalid arguments")

enum reason {
#define X(name, text) REASON_##name,
    REASONS(X)
#undef X
};

/* Return the texts above. Static. */
const char *operation_name(enum operation operation);
const char *reason_text(enum reason reason);
