/* Large messages that are in transit while their senders, receivers, or both are in a collective operation:
 *
 *     pending BYTES ROUNDS
 *
 * They go from one rank to another, between pairs in both directions, and around a ring; they are received before,
 * during and after the operation. Each rank checks the data, and prints "rank R: right" at the end. With
 * PENDING_VERBOSE in the environment, each rank prints its progress. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 5

static int rank, size, bytes;
static unsigned char *out, *in;

static void check(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- Operations ------------------------------------------------------------------------------ */

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void broadcast(void)
{
    int value = rank == 0 ? 7 : 0;

    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    check(value == 7, "broadcast");
}

static void reduce(void)
{
    int sum = 0;

    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, size - 1, MPI_COMM_WORLD);
    check(rank != size - 1 || sum == size * (size - 1) / 2, "reduce");
}

static void allreduce(void)
{
    int sum = 0;

    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == size * (size - 1) / 2, "allreduce");
}

static void allgather(void)
{
    int all[64];

    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    check(all[size - 1] == size - 1, "allgather");
}

static void alltoall(void)
{
    int from[64], to[64];

    for (int i = 0; i < size; i++)
        from[i] = 100 * rank + i;
    MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD);
    check(to[size - 1] == 100 * (size - 1) + rank, "alltoall");
}

static void reduce_scatter(void)
{
    int from[64], mine = 0;

    for (int i = 0; i < size; i++)
        from[i] = i;
    MPI_Reduce_scatter_block(from, &mine, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(mine == rank * size, "reduce_scatter");
}

static const struct {
    const char *name;
    void (*call)(void);
} operations[] = {{"barrier", barrier},
                  {"broadcast", broadcast},
                  {"reduce", reduce},
                  {"allreduce", allreduce},
                  {"allgather", allgather},
                  {"alltoall", alltoall},
                  {"reduce_scatter", reduce_scatter}};

/* ---- Messages -------------------------------------------------------------------------------- */

/* The rank to send to and the rank to receive from; MPI_PROC_NULL for none. */
static void one_way(int *to, int *from)
{
    *to = rank == 0 ? 1 : MPI_PROC_NULL;
    *from = rank == 1 ? 0 : MPI_PROC_NULL;
}

static void pairs(int *to, int *from)
{
    *to = *from = (rank ^ 1) < size ? rank ^ 1 : MPI_PROC_NULL;
}

static void ring(int *to, int *from)
{
    *to = (rank + 1) % size;
    *from = (rank + size - 1) % size;
}

static const struct {
    const char *name;
    void (*partners)(int *to, int *from);
} patterns[] = {{"one way", one_way}, {"pairs", pairs}, {"ring", ring}};

enum when { BEFORE, DURING, AFTER, MIXED, WHENS };
static const char *const whens[] = {"before", "during", "after", "mixed"};

static unsigned char byte_of(int from, int i, int salt)
{
    return (unsigned char)((i * 7 >> 3) + 31 * from + salt);
}

/* A receiver that waits for its message before the operation needs a sender that makes progress inside of it. */
static void exchange(int pattern, enum when when, int operation, int salt)
{
    MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
    int to, from;

    if (when == MIXED)
        when = (enum when)((rank + salt) % MIXED);
    patterns[pattern].partners(&to, &from);
    for (int i = 0; i < bytes; i += 97)
        out[i] = byte_of(rank, i, salt);
    memset(in, 0, (size_t)bytes);
    MPI_Isend(out, bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &sending);
    if (when == BEFORE)
        MPI_Recv(in, bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (when == DURING)
        MPI_Irecv(in, bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &receiving);
    operations[operation].call();
    if (when == AFTER)
        MPI_Recv(in, bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&receiving, MPI_STATUS_IGNORE);
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes && from != MPI_PROC_NULL; i += 97)
        check(in[i] == byte_of(from, i, salt), "message");
}

int main(int argc, char **argv)
{
    const int all = (int)(sizeof operations / sizeof operations[0]);
    int rounds, salt = 0, verbose = getenv("PENDING_VERBOSE") != NULL;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bytes = argc == 3 ? atoi(argv[1]) : 0;
    rounds = argc == 3 ? atoi(argv[2]) : 0;
    check(bytes > 0 && rounds > 0 && size > 1 && size <= 64, "usage: pending BYTES ROUNDS");
    out = malloc((size_t)bytes);
    in = malloc((size_t)bytes);
    for (int round = 0; round < rounds; round++)
        for (int pattern = 0; pattern < (int)(sizeof patterns / sizeof patterns[0]); pattern++)
            for (int when = BEFORE; when < WHENS; when++)
                for (int operation = 0; operation < all; operation++) {
                    if (verbose)
                        fprintf(stderr, "rank %d: round %d: %s, received %s %s\n", rank, round,
                                patterns[pattern].name, whens[when], operations[operation].name);
                    exchange(pattern, (enum when)when, operation, salt++);
                }
    free(out);
    free(in);
    printf("rank %d: right\n", rank);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
