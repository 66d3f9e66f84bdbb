/* Part of nonblocking.c, which includes this file once for each type of counts, as intercept.c does with its own. */

#define ALSO_AS_MPI_(name) ALSO_AS_MPI(name)
#define ROW(buffer, count, its_type)                                                               \
    {                                                                                              \
        .at = (buffer), .counts = NUMBER(count), .type = (its_type)                                \
    }
#define ROWS(buffer, its_counts, its_displacements, its_type)                                      \
    {                                                                                              \
        .at = (buffer), .counts = NUMBERS(its_counts),                                             \
        .displacements = NUMBERS(its_displacements), .type = (its_type)                            \
    }

#define ROWS_OF(buffer, its_counts, its_displacements, its_types)                                  \
    {                                                                                              \
        .at = (buffer), .counts = NUMBERS(its_counts),                                             \
        .displacements = NUMBERS(its_displacements), .types = (its_types)                          \
    }

int PNAME(Ialltoall)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                     COUNT receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                     MPI_Request *request)
{
    BEGIN(OPERATION_Alltoall, comm, request,
          real.NAME(Ialltoall)(send, send_count, send_type, receive, receive_count, receive_type,
                               comm, request),
          .send = ROW(send, send_count, send_type),
          .receive = ROW(receive, receive_count, receive_type), .same = true);
}
ALSO_AS_MPI_(NAME(Ialltoall));

int PNAME(Ialltoallv)(const void *send, const COUNT send_counts[],
                      const DISPLACEMENT send_displacements[], MPI_Datatype send_type,
                      void *receive, const COUNT receive_counts[],
                      const DISPLACEMENT receive_displacements[], MPI_Datatype receive_type,
                      MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Alltoallv, comm, request,
          real.NAME(Ialltoallv)(send, send_counts, send_displacements, send_type, receive,
                                receive_counts, receive_displacements, receive_type, comm, request),
          .send = ROWS(send, send_counts, send_displacements, send_type),
          .receive = ROWS(receive, receive_counts, receive_displacements, receive_type));
}
ALSO_AS_MPI_(NAME(Ialltoallv));

int PNAME(Ialltoallw)(const void *send, const COUNT send_counts[],
                      const DISPLACEMENT send_displacements[], const MPI_Datatype send_types[],
                      void *receive, const COUNT receive_counts[],
                      const DISPLACEMENT receive_displacements[],
                      const MPI_Datatype receive_types[], MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Alltoallw, comm, request,
          real.NAME(Ialltoallw)(send, send_counts, send_displacements, send_types, receive,
                                receive_counts, receive_displacements, receive_types, comm,
                                request),
          .send = ROWS_OF(send, send_counts, send_displacements, send_types),
          .receive = ROWS_OF(receive, receive_counts, receive_displacements, receive_types));
}
ALSO_AS_MPI_(NAME(Ialltoallw));

int PNAME(Iallgather)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                      COUNT receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                      MPI_Request *request)
{
    BEGIN(OPERATION_Allgather, comm, request,
          real.NAME(Iallgather)(send, send_count, send_type, receive, receive_count, receive_type,
                                comm, request),
          .send = ROW(send, send_count, send_type),
          .receive = ROW(receive, receive_count, receive_type), .same = true);
}
ALSO_AS_MPI_(NAME(Iallgather));

int PNAME(Iallgatherv)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                       const COUNT receive_counts[], const DISPLACEMENT displacements[],
                       MPI_Datatype receive_type, MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Allgatherv, comm, request,
          real.NAME(Iallgatherv)(send, send_count, send_type, receive, receive_counts,
                                 displacements, receive_type, comm, request),
          .send = ROW(send, send_count, send_type),
          .receive = ROWS(receive, receive_counts, displacements, receive_type));
}
ALSO_AS_MPI_(NAME(Iallgatherv));

int PNAME(Igather)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                   COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                   MPI_Request *request)
{
    BEGIN(OPERATION_Gather, comm, request,
          real.NAME(Igather)(send, send_count, send_type, receive, receive_count, receive_type,
                             root, comm, request),
          .send = ROW(send, send_count, send_type),
          .receive = ROW(receive, receive_count, receive_type), .same = true, .root = root);
}
ALSO_AS_MPI_(NAME(Igather));

int PNAME(Igatherv)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                    const COUNT receive_counts[], const DISPLACEMENT displacements[],
                    MPI_Datatype receive_type, int root, MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Gatherv, comm, request,
          real.NAME(Igatherv)(send, send_count, send_type, receive, receive_counts, displacements,
                              receive_type, root, comm, request),
          .send = ROW(send, send_count, send_type),
          .receive = ROWS(receive, receive_counts, displacements, receive_type), .root = root);
}
ALSO_AS_MPI_(NAME(Igatherv));

int PNAME(Iscatter)(const void *send, COUNT send_count, MPI_Datatype send_type, void *receive,
                    COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                    MPI_Request *request)
{
    BEGIN(OPERATION_Scatter, comm, request,
          real.NAME(Iscatter)(send, send_count, send_type, receive, receive_count, receive_type,
                              root, comm, request),
          .send = ROW(send, send_count, send_type),
          .receive = ROW(receive, receive_count, receive_type), .same = true, .root = root);
}
ALSO_AS_MPI_(NAME(Iscatter));

int PNAME(Iscatterv)(const void *send, const COUNT send_counts[],
                     const DISPLACEMENT displacements[], MPI_Datatype send_type, void *receive,
                     COUNT receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                     MPI_Request *request)
{
    BEGIN(OPERATION_Scatterv, comm, request,
          real.NAME(Iscatterv)(send, send_counts, displacements, send_type, receive, receive_count,
                               receive_type, root, comm, request),
          .send = ROWS(send, send_counts, displacements, send_type),
          .receive = ROW(receive, receive_count, receive_type), .root = root);
}
ALSO_AS_MPI_(NAME(Iscatterv));

int PNAME(Ibcast)(void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm,
                  MPI_Request *request)
{
    BEGIN(OPERATION_Bcast, comm, request,
          real.NAME(Ibcast)(buffer, count, type, root, comm, request),
          .receive = ROW(buffer, count, type), .root = root);
}
ALSO_AS_MPI_(NAME(Ibcast));

int PNAME(Iallreduce)(const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Allreduce, comm, request,
          real.NAME(Iallreduce)(send, receive, count, type, op, comm, request),
          .send = {.at = send}, .receive = ROW(receive, count, type), .op = op, .root = ALL_RANKS);
}
ALSO_AS_MPI_(NAME(Iallreduce));

int PNAME(Ireduce)(const void *send, void *receive, COUNT count, MPI_Datatype type, MPI_Op op,
                   int root, MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Reduce, comm, request,
          real.NAME(Ireduce)(send, receive, count, type, op, root, comm, request),
          .send = {.at = send}, .receive = ROW(receive, count, type), .op = op, .root = root);
}
ALSO_AS_MPI_(NAME(Ireduce));

int PNAME(Ireduce_scatter)(const void *send, void *receive, const COUNT counts[], MPI_Datatype type,
                           MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Reduce_scatter, comm, request,
          real.NAME(Ireduce_scatter)(send, receive, counts, type, op, comm, request),
          .send = {.at = send}, .receive = {.at = receive, .counts = NUMBERS(counts), .type = type},
          .op = op);
}
ALSO_AS_MPI_(NAME(Ireduce_scatter));

int PNAME(Ireduce_scatter_block)(const void *send, void *receive, COUNT count, MPI_Datatype type,
                                 MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Reduce_scatter_block, comm, request,
          real.NAME(Ireduce_scatter_block)(send, receive, count, type, op, comm, request),
          .send = {.at = send}, .receive = ROW(receive, count, type), .op = op);
}
ALSO_AS_MPI_(NAME(Ireduce_scatter_block));

int PNAME(Ineighbor_allgather)(const void *send, COUNT send_count, MPI_Datatype send_type,
                               void *receive, COUNT receive_count, MPI_Datatype receive_type,
                               MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Neighbor_allgather, comm, request,
          real.NAME(Ineighbor_allgather)(send, send_count, send_type, receive, receive_count,
                                         receive_type, comm, request),
          .send = ROW(send, send_count, send_type),
          .receive = ROW(receive, receive_count, receive_type), .same = true);
}
ALSO_AS_MPI_(NAME(Ineighbor_allgather));

int PNAME(Ineighbor_allgatherv)(const void *send, COUNT send_count, MPI_Datatype send_type,
                                void *receive, const COUNT receive_counts[],
                                const DISPLACEMENT displacements[], MPI_Datatype receive_type,
                                MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Neighbor_allgatherv, comm, request,
          real.NAME(Ineighbor_allgatherv)(send, send_count, send_type, receive, receive_counts,
                                          displacements, receive_type, comm, request),
          .send = ROW(send, send_count, send_type),
          .receive = ROWS(receive, receive_counts, displacements, receive_type));
}
ALSO_AS_MPI_(NAME(Ineighbor_allgatherv));

int PNAME(Ineighbor_alltoall)(const void *send, COUNT send_count, MPI_Datatype send_type,
                              void *receive, COUNT receive_count, MPI_Datatype receive_type,
                              MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Neighbor_alltoall, comm, request,
          real.NAME(Ineighbor_alltoall)(send, send_count, send_type, receive, receive_count,
                                        receive_type, comm, request),
          .send = ROW(send, send_count, send_type),
          .receive = ROW(receive, receive_count, receive_type), .same = true);
}
ALSO_AS_MPI_(NAME(Ineighbor_alltoall));

int PNAME(Ineighbor_alltoallv)(const void *send, const COUNT send_counts[],
                               const DISPLACEMENT send_displacements[], MPI_Datatype send_type,
                               void *receive, const COUNT receive_counts[],
                               const DISPLACEMENT receive_displacements[],
                               MPI_Datatype receive_type, MPI_Comm comm, MPI_Request *request)
{
    BEGIN(OPERATION_Neighbor_alltoallv, comm, request,
          real.NAME(Ineighbor_alltoallv)(send, send_counts, send_displacements, send_type, receive,
                                         receive_counts, receive_displacements, receive_type, comm,
                                         request),
          .send = ROWS(send, send_counts, send_displacements, send_type),
          .receive = ROWS(receive, receive_counts, receive_displacements, receive_type));
}
ALSO_AS_MPI_(NAME(Ineighbor_alltoallv));

int PNAME(Ineighbor_alltoallw)(const void *send, const COUNT send_counts[],
                               const MPI_Aint send_displacements[], const MPI_Datatype send_types[],
                               void *receive, const COUNT receive_counts[],
                               const MPI_Aint receive_displacements[],
                               const MPI_Datatype receive_types[], MPI_Comm comm,
                               MPI_Request *request)
{
    BEGIN(OPERATION_Neighbor_alltoallw, comm, request,
          real.NAME(Ineighbor_alltoallw)(send, send_counts, send_displacements, send_types, receive,
                                         receive_counts, receive_displacements, receive_types, comm,
                                         request),
          .send = ROWS_OF(send, send_counts, send_displacements, send_types),
          .receive = ROWS_OF(receive, receive_counts, receive_displacements, receive_types));
}
ALSO_AS_MPI_(NAME(Ineighbor_alltoallw));

#undef ALSO_AS_MPI_
#undef ROW
#undef ROWS
#undef ROWS_OF
