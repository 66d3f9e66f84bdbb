/* Every collective operation that torusd does not serve, once, and once with large counts where MPI has them.
 * Persistent requests are started three times. Each rank checks some of the results, and prints "rank R: right" at
 * the end. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64
#define STARTS 3

#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name
#else
#define PERSISTENT(name) MPIX_##name
#endif

#ifdef OPEN_MPI
#define FEW_STARTS STARTS
#else
#define FEW_STARTS 1 /* MPICH 4.0.2 alone fails to start these a second time */
#endif

static int rank, size;
static int out[MOST], in[MOST], ones[MOST], places[MOST], offsets[MOST];
static MPI_Aint large_places[MOST], large_offsets[MOST];
static MPI_Datatype types[MOST];
static MPI_Comm world = MPI_COMM_NULL, ring = MPI_COMM_NULL;

#if MPI_VERSION >= 4
static MPI_Count large_ones[MOST];
#endif

static void check(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void set_up(void)
{
    int periodic = 1;

    world = MPI_COMM_WORLD;
    MPI_Cart_create(world, 1, &size, &periodic, 0, &ring);
    for (int i = 0; i < MOST; i++) {
        out[i] = 100 * rank + i;
        ones[i] = 1;
        places[i] = i;
        offsets[i] = i * (int)sizeof(int);
        large_places[i] = places[i];
        large_offsets[i] = offsets[i];
        types[i] = MPI_INT;
#if MPI_VERSION >= 4
        large_ones[i] = 1;
#endif
    }
}

/* The fields that all shapes of operations begin with. */
#define SUM &rank, in, 1, MPI_INT, MPI_SUM
#define SCATTERED_SUM(ones) out, in, ones, MPI_INT, MPI_SUM
#define BLOCKS(from) from, 1, MPI_INT, in, 1, MPI_INT
#define TO_ROWS(ones, places) &rank, 1, MPI_INT, in, ones, places, MPI_INT
#define FROM_ROWS(ones, places) out, ones, places, MPI_INT, in, 1, MPI_INT
#define ROWS(ones, places) out, ones, places, MPI_INT, in, ones, places, MPI_INT
#define TYPED_ROWS(ones, offsets) out, ones, offsets, types, in, ones, offsets, types

static void wait_for(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

#define I(name, ...)                                                                               \
    do {                                                                                           \
        MPI_Request request;                                                                       \
        MPI_I##name(__VA_ARGS__, &request);                                                        \
        wait_for(&request);                                                                        \
    } while (0)

#define NONBLOCKING(c, ones, places, offsets)                                                      \
    do {                                                                                           \
        I(allgather##c, BLOCKS(&rank), world);                                                     \
        check(in[size - 1] == size - 1, "MPI_Iallgather");                                         \
        I(allgatherv##c, TO_ROWS(ones, places), world);                                            \
        I(allreduce##c, SUM, world);                                                               \
        check(in[0] == size * (size - 1) / 2, "MPI_Iallreduce");                                   \
        I(alltoall##c, BLOCKS(out), world);                                                        \
        check(in[1] == 100 + rank, "MPI_Ialltoall");                                               \
        I(alltoallv##c, ROWS(ones, places), world);                                                \
        I(alltoallw##c, TYPED_ROWS(ones, offsets), world);                                         \
        I(bcast##c, in, 1, MPI_INT, 0, world);                                                     \
        I(gather##c, BLOCKS(&rank), 0, world);                                                     \
        I(gatherv##c, TO_ROWS(ones, places), 0, world);                                            \
        I(scatter##c, BLOCKS(out), 0, world);                                                      \
        I(scatterv##c, FROM_ROWS(ones, places), 0, world);                                         \
        I(reduce##c, SUM, 0, world);                                                               \
        I(reduce_scatter##c, SCATTERED_SUM(ones), world);                                          \
        I(reduce_scatter_block##c, SCATTERED_SUM(1), world);                                       \
        check(in[0] == 100 * size * (size - 1) / 2 + size * rank, "MPI_Ireduce_scatter_block");    \
        I(scan##c, SUM, world);                                                                    \
        I(exscan##c, SUM, world);                                                                  \
        I(neighbor_allgather##c, BLOCKS(&rank), ring);                                             \
        I(neighbor_allgatherv##c, TO_ROWS(ones, places), ring);                                    \
        I(neighbor_alltoall##c, BLOCKS(out), ring);                                                \
        I(neighbor_alltoallv##c, ROWS(ones, places), ring);                                        \
        I(neighbor_alltoallw##c, TYPED_ROWS(ones, large_offsets), ring);                           \
    } while (0)

static void start(MPI_Request *request, int times)
{
    for (int i = 0; i < times; i++) {
        if (i == 0)
            MPI_Startall(1, request);
        else
            MPI_Start(request);
        wait_for(request);
    }
    MPI_Request_free(request);
}

#define INIT(name, ...) STARTED(STARTS, name, __VA_ARGS__)
#define STARTED(times, name, ...)                                                                  \
    do {                                                                                           \
        MPI_Request request;                                                                       \
        PERSISTENT(name)(__VA_ARGS__, MPI_INFO_NULL, &request);                                    \
        start(&request, times);                                                                    \
    } while (0)

#define PERSISTENTLY(c, ones, places, offsets)                                                     \
    do {                                                                                           \
        INIT(Allgather_init##c, BLOCKS(&rank), world);                                             \
        check(in[size - 1] == size - 1, "MPI_Allgather_init");                                     \
        INIT(Allgatherv_init##c, TO_ROWS(ones, places), world);                                    \
        INIT(Allreduce_init##c, SUM, world);                                                       \
        check(in[0] == size * (size - 1) / 2, "MPI_Allreduce_init");                               \
        INIT(Alltoall_init##c, BLOCKS(out), world);                                                \
        INIT(Alltoallv_init##c, ROWS(ones, places), world);                                        \
        INIT(Alltoallw_init##c, TYPED_ROWS(ones, offsets), world);                                 \
        INIT(Bcast_init##c, in, 1, MPI_INT, 0, world);                                             \
        INIT(Gather_init##c, BLOCKS(&rank), 0, world);                                             \
        INIT(Gatherv_init##c, TO_ROWS(ones, places), 0, world);                                    \
        STARTED(FEW_STARTS, Scatter_init##c, BLOCKS(out), 0, world);                               \
        INIT(Scatterv_init##c, FROM_ROWS(ones, places), 0, world);                                 \
        STARTED(FEW_STARTS, Reduce_init##c, SUM, 0, world);                                        \
        INIT(Reduce_scatter_init##c, SCATTERED_SUM(ones), world);                                  \
        INIT(Reduce_scatter_block_init##c, SCATTERED_SUM(1), world);                               \
        INIT(Scan_init##c, SUM, world);                                                            \
        INIT(Exscan_init##c, SUM, world);                                                          \
        INIT(Neighbor_allgather_init##c, BLOCKS(&rank), ring);                                     \
        INIT(Neighbor_allgatherv_init##c, TO_ROWS(ones, places), ring);                            \
        INIT(Neighbor_alltoall_init##c, BLOCKS(out), ring);                                        \
        INIT(Neighbor_alltoallv_init##c, ROWS(ones, places), ring);                                \
        INIT(Neighbor_alltoallw_init##c, TYPED_ROWS(ones, large_offsets), ring);                   \
    } while (0)

/* Arguments that are not significant on a rank are not read. */
static void insignificant(void)
{
    MPI_Datatype none = MPI_DATATYPE_NULL;
    MPI_Request request;

    if (rank == 0)
        MPI_Igather(MPI_IN_PLACE, -1, none, in, 1, MPI_INT, 0, world, &request);
    else
        MPI_Igather(&rank, 1, MPI_INT, NULL, -1, none, 0, world, &request);
    wait_for(&request);
    check(rank != 0 || in[size - 1] == size - 1, "MPI_IN_PLACE");
}

/* A persistent request of point-to-point messages does not count as collective. */
static void point_to_point(void)
{
    MPI_Request request[2];

    MPI_Send_init(&rank, 1, MPI_INT, (rank + 1) % size, 3, world, &request[0]);
    MPI_Recv_init(in, 1, MPI_INT, (rank + size - 1) % size, 3, world, &request[1]);
    MPI_Startall(2, request);
    wait_for(&request[0]);
    wait_for(&request[1]);
    check(in[0] == (rank + size - 1) % size, "MPI_Startall");
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    set_up();
    I(barrier, world);
    NONBLOCKING(, ones, places, offsets);
    INIT(Barrier_init, world);
    PERSISTENTLY(, ones, places, offsets);
#if MPI_VERSION >= 4
    NONBLOCKING(_c, large_ones, large_places, large_offsets);
    PERSISTENTLY(_c, large_ones, large_places, large_offsets);
#endif
    insignificant();
    point_to_point();
    MPI_Comm_free(&ring);
    printf("rank %d: right\n", rank);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
