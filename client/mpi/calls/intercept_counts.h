/* Part of intercept.c, which includes this file once for each type of counts: int, and MPI_Count (MPI_X_c). NAME,
 * PNAME, COUNT and DISPLACEMENT are defined there. */

_Static_assert(sizeof(COUNT) == sizeof(int) || sizeof(COUNT) == sizeof(int64_t), "number_at()");
_Static_assert(sizeof(DISPLACEMENT) == sizeof(int) || sizeof(DISPLACEMENT) == sizeof(int64_t),
               "number_at()");

#define ALSO_AS_MPI_(name) ALSO_AS_MPI(name)
#define ROW(buffer, count, its_type)                                                               \
    &(const struct blocks)                                                                         \
    {                                                                                              \
        .at = (buffer), .counts = NUMBER(count), .type = (its_type)                                \
    }
#define ROWS(buffer, its_counts, its_displacements, its_type)                                      \
    &(const struct blocks)                                                                         \
    {                                                                                              \
        .at = (buffer), .counts = NUMBERS(its_counts),                                             \
        .displacements = NUMBERS(its_displacements), .type = (its_type)                            \
    }
#define ROWS_OF(buffer, its_counts, its_displacements, its_types)                                  \
    &(const struct blocks)                                                                         \
    {                                                                                              \
        .at = (buffer), .counts = NUMBERS(its_counts),                                             \
        .displacements = NUMBERS(its_displacements), .types = (its_types)                          \
    }

int PNAME(Alltoall)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                    COUNT receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    INTERCEPT_KIND(OPERATION_Alltoall, comm, receive_count, receive_type, NO_OP,
                   serve_alltoall(t, ROW(send, send_count, send_type),
                                  ROW(receive, receive_count, receive_type), true),
                   real.NAME(Alltoall)(send, send_count, send_type, receive, receive_count,
                                       receive_type, comm));
}
ALSO_AS_MPI_(NAME(Alltoall));

int PNAME(Alltoallv)(const void *send, const COUNT send_counts[],
                     const DISPLACEMENT send_displacements[], MPI_Datatype send_type, void *receive,
                     const COUNT receive_counts[], const DISPLACEMENT receive_displacements[],
                     MPI_Datatype receive_type, MPI_Comm comm)
{
    INTERCEPT(OPERATION_Alltoallv, comm,
              serve_alltoall(t, ROWS(send, send_counts, send_displacements, send_type),
                             ROWS(receive, receive_counts, receive_displacements, receive_type),
                             false),
              real.NAME(Alltoallv)(send, send_counts, send_displacements, send_type, receive,
                                   receive_counts, receive_displacements, receive_type, comm));
}
ALSO_AS_MPI_(NAME(Alltoallv));

int PNAME(Alltoallw)(const void *send, const COUNT send_counts[],
                     const DISPLACEMENT send_displacements[], const MPI_Datatype send_types[],
                     void *receive, const COUNT receive_counts[],
                     const DISPLACEMENT receive_displacements[], const MPI_Datatype receive_types[],
                     MPI_Comm comm)
{
    INTERCEPT(OPERATION_Alltoallw, comm,
              serve_alltoall(t, ROWS_OF(send, send_counts, send_displacements, send_types),
                             ROWS_OF(receive, receive_counts, receive_displacements, receive_types),
                             false),
              real.NAME(Alltoallw)(send, send_counts, send_displacements, send_types, receive,
                                   receive_counts, receive_displacements, receive_types, comm));
}
ALSO_AS_MPI_(NAME(Alltoallw));

int PNAME(Allgather)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                     COUNT receive_count, MPI_Datatype receive_type, MPI_Comm comm)
{
    INTERCEPT_KIND(OPERATION_Allgather, comm, receive_count, receive_type, NO_OP,
                   serve_allgather(t, ROW(send, send_count, send_type),
                                   ROW(receive, receive_count, receive_type), true),
                   real.NAME(Allgather)(send, send_count, send_type, receive, receive_count,
                                        receive_type, comm));
}
ALSO_AS_MPI_(NAME(Allgather));

int PNAME(Allgatherv)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                      const COUNT receive_counts[], const DISPLACEMENT displacements[],
                      MPI_Datatype receive_type, MPI_Comm comm)
{
    INTERCEPT(OPERATION_Allgatherv, comm,
              serve_allgather(t, ROW(send, send_count, send_type),
                              ROWS(receive, receive_counts, displacements, receive_type), false),
              real.NAME(Allgatherv)(send, send_count, send_type, receive, receive_counts,
                                    displacements, receive_type, comm));
}
ALSO_AS_MPI_(NAME(Allgatherv));

int PNAME(Gather)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                  COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    INTERCEPT_KIND(OPERATION_Gather, comm, send == MPI_IN_PLACE ? receive_count : send_count,
                   send == MPI_IN_PLACE ? receive_type : send_type, NO_OP,
                   serve_gather(t, ROW(send, send_count, send_type),
                                ROW(receive, receive_count, receive_type), true, root),
                   real.NAME(Gather)(send, send_count, send_type, receive, receive_count,
                                     receive_type, root, comm));
}
ALSO_AS_MPI_(NAME(Gather));

int PNAME(Gatherv)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                   const COUNT receive_counts[], const DISPLACEMENT displacements[],
                   MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    INTERCEPT(OPERATION_Gatherv, comm,
              serve_gather(t, ROW(send, send_count, send_type),
                           ROWS(receive, receive_counts, displacements, receive_type), false, root),
              real.NAME(Gatherv)(send, send_count, send_type, receive, receive_counts,
                                 displacements, receive_type, root, comm));
}
ALSO_AS_MPI_(NAME(Gatherv));

int PNAME(Scatter)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                   COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    INTERCEPT_KIND(OPERATION_Scatter, comm, receive == MPI_IN_PLACE ? send_count : receive_count,
                   receive == MPI_IN_PLACE ? send_type : receive_type, NO_OP,
                   serve_scatter(t, ROW(send, send_count, send_type),
                                 ROW(receive, receive_count, receive_type), true, root),
                   real.NAME(Scatter)(send, send_count, send_type, receive, receive_count,
                                      receive_type, root, comm));
}
ALSO_AS_MPI_(NAME(Scatter));

int PNAME(Scatterv)(const void *send, const COUNT send_counts[], const DISPLACEMENT displacements[],
                    MPI_Datatype send_type, void *receive, COUNT receive_count,
                    MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    INTERCEPT(OPERATION_Scatterv, comm,
              serve_scatter(t, ROWS(send, send_counts, displacements, send_type),
                            ROW(receive, receive_count, receive_type), false, root),
              real.NAME(Scatterv)(send, send_counts, displacements, send_type, receive,
                                  receive_count, receive_type, root, comm));
}
ALSO_AS_MPI_(NAME(Scatterv));

int PNAME(Bcast)(void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm)
{
    INTERCEPT_KIND(OPERATION_Bcast, comm, count, type, NO_OP,
                   serve_broadcast(t, buffer, count, type, root),
                   real.NAME(Bcast)(buffer, count, type, root, comm));
}
ALSO_AS_MPI_(NAME(Bcast));

int PNAME(Allreduce)(const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm)
{
    INTERCEPT_KIND(OPERATION_Allreduce, comm, count, type, op,
                   serve_reduce(t, send, receive, count, type, op, ALL_RANKS),
                   real.NAME(Allreduce)(send, receive, count, type, op, comm));
}
ALSO_AS_MPI_(NAME(Allreduce));

int PNAME(Reduce)(const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op,
                  int root, MPI_Comm comm)
{
    INTERCEPT_KIND(OPERATION_Reduce, comm, count, type, op,
                   root < 0 ? REASON_ARGUMENTS
                            : serve_reduce(t, send, receive, count, type, op, root),
                   real.NAME(Reduce)(send, receive, count, type, op, root, comm));
}
ALSO_AS_MPI_(NAME(Reduce));

int PNAME(Reduce_scatter)(const void *send, void *receive, const COUNT counts[], MPI_Datatype type,
                          MPI_Op op, MPI_Comm comm)
{
    INTERCEPT(OPERATION_Reduce_scatter, comm,
              serve_reduce_scatter(t, send, receive, &NUMBERS(counts), type, op),
              real.NAME(Reduce_scatter)(send, receive, counts, type, op, comm));
}
ALSO_AS_MPI_(NAME(Reduce_scatter));

int PNAME(Reduce_scatter_block)(const void *send, void *receive, COUNT count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm)
{
    INTERCEPT_KIND(OPERATION_Reduce_scatter_block, comm, count, type, op,
                   serve_reduce_scatter(t, send, receive, &NUMBER(count), type, op),
                   real.NAME(Reduce_scatter_block)(send, receive, count, type, op, comm));
}
ALSO_AS_MPI_(NAME(Reduce_scatter_block));

int PNAME(Scan)(const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm)
{
    INTERCEPT(OPERATION_Scan, comm, serve_scan(t, send, receive, count, type, op, false),
              real.NAME(Scan)(send, receive, count, type, op, comm));
}
ALSO_AS_MPI_(NAME(Scan));

int PNAME(Exscan)(const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    INTERCEPT(OPERATION_Exscan, comm, serve_scan(t, send, receive, count, type, op, true),
              real.NAME(Exscan)(send, receive, count, type, op, comm));
}
ALSO_AS_MPI_(NAME(Exscan));

int PNAME(Neighbor_allgather)(const void *send, COUNT send_count, MPI_Datatype send_type,
                              void *receive, COUNT receive_count, MPI_Datatype receive_type,
                              MPI_Comm comm)
{
    INTERCEPT(OPERATION_Neighbor_allgather, comm,
              serve_neighbors(t, ROW(send, send_count, send_type),
                              ROW(receive, receive_count, receive_type), true, true),
              real.NAME(Neighbor_allgather)(send, send_count, send_type, receive, receive_count,
                                            receive_type, comm));
}
ALSO_AS_MPI_(NAME(Neighbor_allgather));

int PNAME(Neighbor_allgatherv)(const void *send, COUNT send_count, MPI_Datatype send_type,
                               void *receive, const COUNT receive_counts[],
                               const DISPLACEMENT displacements[], MPI_Datatype receive_type,
                               MPI_Comm comm)
{
    INTERCEPT(OPERATION_Neighbor_allgatherv, comm,
              serve_neighbors(t, ROW(send, send_count, send_type),
                              ROWS(receive, receive_counts, displacements, receive_type), true,
                              false),
              real.NAME(Neighbor_allgatherv)(send, send_count, send_type, receive, receive_counts,
                                             displacements, receive_type, comm));
}
ALSO_AS_MPI_(NAME(Neighbor_allgatherv));

int PNAME(Neighbor_alltoall)(const void *send, COUNT send_count, MPI_Datatype send_type,
                             void *receive, COUNT receive_count, MPI_Datatype receive_type,
                             MPI_Comm comm)
{
    INTERCEPT(OPERATION_Neighbor_alltoall, comm,
              serve_neighbors(t, ROW(send, send_count, send_type),
                              ROW(receive, receive_count, receive_type), false, true),
              real.NAME(Neighbor_alltoall)(send, send_count, send_type, receive, receive_count,
                                           receive_type, comm));
}
ALSO_AS_MPI_(NAME(Neighbor_alltoall));

int PNAME(Neighbor_alltoallv)(const void *send, const COUNT send_counts[],
                              const DISPLACEMENT send_displacements[], MPI_Datatype send_type,
                              void *receive, const COUNT receive_counts[],
                              const DISPLACEMENT receive_displacements[], MPI_Datatype receive_type,
                              MPI_Comm comm)
{
    INTERCEPT(OPERATION_Neighbor_alltoallv, comm,
              serve_neighbors(t, ROWS(send, send_counts, send_displacements, send_type),
                              ROWS(receive, receive_counts, receive_displacements, receive_type),
                              false, false),
              real.NAME(Neighbor_alltoallv)(send, send_counts, send_displacements, send_type,
                                            receive, receive_counts, receive_displacements,
                                            receive_type, comm));
}
ALSO_AS_MPI_(NAME(Neighbor_alltoallv));

int PNAME(Neighbor_alltoallw)(const void *send, const COUNT send_counts[],
                              const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                              void *receive, const COUNT receive_counts[],
                              const MPI_Aint receive_displacements[],
                              const MPI_Datatype receive_types[], MPI_Comm comm)
{
    INTERCEPT(
        OPERATION_Neighbor_alltoallw, comm,
        serve_neighbors(t, ROWS_OF(send, send_counts, send_displacements, send_types),
                        ROWS_OF(receive, receive_counts, receive_displacements, receive_types),
                        false, false),
        real.NAME(Neighbor_alltoallw)(send, send_counts, send_displacements, send_types, receive,
                                      receive_counts, receive_displacements, receive_types, comm));
}
ALSO_AS_MPI_(NAME(Neighbor_alltoallw));

#undef ALSO_AS_MPI_
#undef ROW
#undef ROWS
#undef ROWS_OF
