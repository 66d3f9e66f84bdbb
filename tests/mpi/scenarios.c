/* Scenarios of programs with collective operations. scenarios NAME... runs these in order.
 * Each rank checks its own results, prints "rank R: right" at the end, and exits with 0. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "scenario.h"

static void pause_for(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&time, NULL);
}

/* ---- Scenarios ------------------------------------------------------------------------------- */

static void plain(void)
{
    use(MPI_COMM_WORLD);
}

/* Rank 1 reaches the barrier only after the large message has arrived, and the message makes progress only while
 * rank 0 is in MPI. */
static void isend(void)
{
    const int bytes = 20000000;
    unsigned char *data = calloc((size_t)bytes, 1);
    MPI_Request request = MPI_REQUEST_NULL;

    use(MPI_COMM_WORLD);
    if (rank == 0) {
        for (int i = 0; i < bytes; i++)
            data[i] = (unsigned char)(i * 7 >> 3);
        MPI_Isend(data, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    } else if (rank == 1) {
        MPI_Recv(data, bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < bytes; i++)
            CHECK(data[i] == (unsigned char)(i * 7 >> 3));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(data);
}

static void late(void)
{
    for (int i = 0; i < size; i++) {
        if (rank == i)
            pause_for(0.3);
        use(MPI_COMM_WORLD);
    }
}

/* The root calls after all others have finished their call. The torus allows that, though MPI does not promise it,
 * but only for a limited number of calls ahead, so all ranks meet between two roots. */
static void late_root(void)
{
    int in[300], sum[300], flag, all;

    for (int root = 0; root < size; root++) {
        use(MPI_COMM_WORLD);
        for (int i = 0; i < 300; i++)
            in[i] = sum[i] = 1000 * rank + i;
        flag = rank == root ? 8 : 1; /* neither 0 nor the same: true */
        if (rank != root) {
            MPI_Reduce(in, NULL, 300, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
            MPI_Reduce(&flag, NULL, 1, MPI_INT, MPI_LAND, root, MPI_COMM_WORLD);
            memset(in, 0, sizeof in);
            MPI_Send(&rank, 1, MPI_INT, root, 6, MPI_COMM_WORLD);
            continue;
        }
        for (int i = 1; i < size; i++)
            MPI_Recv(&all, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Reduce(MPI_IN_PLACE, sum, 300, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        MPI_Reduce(&flag, &all, 1, MPI_INT, MPI_LAND, root, MPI_COMM_WORLD);
        for (int i = 0; i < 300; i++)
            CHECK(sum[i] == 1000 * size * (size - 1) / 2 + size * i);
        CHECK(all == 1);
    }
    use(MPI_COMM_WORLD);
}

/* Ranks that only send in a call go on at once, and change what they have sent. The last calls are under way when
 * MPI_Finalize begins. */
static void ahead(void)
{
    int data[6000], sum[6000], flag, all;

    for (int i = 0; i < 100; i++) {
        const int count = i % 10 == 9 ? 6000 : 1 + i % 3, root = i / 50;
        for (int k = 0; k < count; k++)
            data[k] = rank == root ? i + k : -1;
        MPI_Bcast(data, count, MPI_INT, root, MPI_COMM_WORLD);
        CHECK(data[count - 1] == i + count - 1);
        for (int k = 0; k < count; k++)
            data[k] = rank + i + k;
        MPI_Reduce(data, sum, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        CHECK(rank != root || sum[count - 1] == size * (i + count - 1) + size * (size - 1) / 2);
        MPI_Gather(data, 1, MPI_INT, sum, 1, MPI_INT, root, MPI_COMM_WORLD);
        CHECK(rank != root || sum[size - 1] == size - 1 + i);
    }
    /* So many calls that some cannot begin before the root makes them, too. Logical values are converted. */
    if (rank == 1)
        pause_for(0.2);
    for (int i = 0; i < 14; i++) {
        flag = i % 3 == 0 ? 8 : 0;
        MPI_Reduce(&flag, &all, 1, MPI_INT, MPI_LAND, 1, MPI_COMM_WORLD);
        CHECK(rank != 1 || all == (i % 3 == 0));
    }
    if (rank != 0)
        pause_for(0.4);
    for (int i = 0; i < 14; i++) {
        data[0] = rank == 0 ? i : -1;
        MPI_Bcast(data, 1, MPI_INT, 0, MPI_COMM_WORLD);
        CHECK(data[0] == i);
    }
}

static void late_at_first(void)
{
    if (rank == 1)
        pause_for(2);
    use(MPI_COMM_WORLD);
}

/* Calls of several operations and sizes, on several communicators, so often that both ways are timed. Now and then one
 * rank is late. */
static void choosing_on(MPI_Comm comm, int calls)
{
    enum { MOST = 20000 };
    static int in[MOST], sum[MOST];
    int n, r;

    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &r);
    for (int i = 0; i < calls; i++) {
        const int count = i % 2 == 0 ? 3 : MOST, root = i % n;
        if (i % 7 == 0 && root == r)
            pause_for(0.01);
        use(comm);
        for (int k = 0; k < MOST; k++)
            in[k] = r + k;
        MPI_Allreduce(in, sum, count, MPI_INT, MPI_SUM, comm);
        CHECK(sum[count - 1] == n * (count - 1) + n * (n - 1) / 2);
        MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_INT, MPI_MAX, comm);
        CHECK(in[count - 1] == n - 1 + count - 1);
        MPI_Reduce(in, r == root ? sum : NULL, 3, MPI_INT, MPI_SUM, root, comm);
        CHECK(r != root || sum[2] == n * (n - 1 + 2));
        MPI_Bcast(sum, 0, MPI_INT, root, comm);
        MPI_Bcast(sum, count, MPI_INT, root, comm);
    }
}

static void choosing(void)
{
    MPI_Comm row, again;

    choosing_on(MPI_COMM_WORLD, 150);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
    choosing_on(row, rank < 2 ? 160 : 140);
    MPI_Comm_free(&row);
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    choosing_on(again, 40);
    MPI_Comm_free(&again);
}

/* Short calls of the same kind. The last rank has a type of its own. The second communicator may get the handle of the
 * first one. */
static void alike(void)
{
    MPI_Datatype pair;

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int i = 0; i < 700; i++)
            use_shortly(comm, pair, i, turn, i % size);
        MPI_Comm_free(&comm);
    }
    MPI_Type_free(&pair);
}

static void aborts(void)
{
    use(MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void many_communicators(void)
{
    for (int i = 0; i < 40; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        use(comm);
        MPI_Comm_free(&comm);
    }
}

static void cartesian(void)
{
    int dims[] = {size / 2, 2}, periods[] = {1, 1}, rows[] = {0, 1}, columns[] = {1, 0};
    MPI_Comm grid, row, column, inter, half, group_made;
    MPI_Group world, first;
    int value, n = rank < size / 2, ranks[] = {0, 1};

    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_sub(grid, rows, &row);
    MPI_Cart_sub(grid, columns, &column);
    use(grid);
    use(row);
    use(column);
    MPI_Comm_split(MPI_COMM_WORLD, n, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, n ? size / 2 : 0, 9, &inter);
    value = 10 + n;
    int sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == (n ? 10 : 11) * size / 2);
    MPI_Barrier(inter);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, ranks, &first);
    if (rank < 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, first, 3, &group_made);
        use(group_made);
        MPI_Comm_free(&group_made);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&first);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    MPI_Comm_free(&grid);
}

static void halves(void)
{
    MPI_Comm half;

    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, -rank, &half);
    use(half);
    use(MPI_COMM_WORLD);
    MPI_Comm_free(&half);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static void print_class(const char *what, int code)
{
    int class;

    MPI_Error_class(code, &class);
    say("%s: %d", what, class);
}

static void arguments(void)
{
    double a[64] = {0}, b[64] = {0};
    int zero[64] = {0}, negative[64] = {-1};
    MPI_Comm world = MPI_COMM_WORLD;

    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    print_class("root", MPI_Bcast(a, 1, MPI_INT, size, world));
    print_class("negative root", MPI_Bcast(a, 1, MPI_INT, -5, world));
    print_class("reduce root", MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, size, world));
    print_class("negative reduce root", MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, -77, world));
    print_class("count", MPI_Bcast(a, -1, MPI_INT, 0, world));
    print_class("alltoall count", MPI_Alltoall(a, 1, MPI_INT, b, -1, MPI_INT, world));
    print_class("alltoall send count", MPI_Alltoall(a, -1, MPI_INT, b, 1, MPI_INT, world));
    print_class("allgather count", MPI_Allgather(a, 1, MPI_INT, b, -1, MPI_INT, world));
    print_class("counts", MPI_Alltoallv(a, negative, zero, MPI_INT, b, zero, zero, MPI_INT, world));
    print_class("type", MPI_Allgather(a, 1, MPI_DATATYPE_NULL, b, 1, MPI_INT, world));
    print_class("bcast type", MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, world));
    print_class("op", MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, world));
    print_class("op and type", MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, world));
    print_class("reduce type", MPI_Allreduce(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, world));
    print_class("alltoall into place",
                MPI_Alltoall(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, world));
    print_class("sum into place", MPI_Allreduce(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world));
    print_class("scattered into place",
                MPI_Reduce_scatter_block(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world));
    print_class("nothing", MPI_Bcast(NULL, 0, MPI_INT, 0, world));
    print_class("alltoall of nothing", MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, world));
    print_class("sum of nothing", MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, world));
    print_class("nothing for all", MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, world));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    print_class("communicator", MPI_Barrier(MPI_COMM_NULL));
    MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
    use(world);
}

static int handled_code;

static void handler(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_WORLD);
    handled_code = *code;
}

static jmp_buf before_the_call;

static void jumping_handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    longjmp(before_the_call, 1);
}

/* An error handler that does not return, as if it threw a C++ exception. */
static void handler_jumps(void)
{
    int in[256], out[256] = {0};
    MPI_Errhandler errhandler;

    MPI_Comm_create_errhandler(jumping_handler, &errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    if (setjmp(before_the_call) == 0) {
        MPI_Alltoall(out, 2, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
        CHECK(!"an error");
    }
    if (rank == 0) { /* leaves the library's function, on this rank only */
        MPI_Comm alone;
        MPI_Comm_dup(MPI_COMM_SELF, &alone);
        MPI_Comm_set_errhandler(alone, errhandler);
        if (setjmp(before_the_call) == 0) {
            MPI_Bcast(in, 1, MPI_INT, 7, alone);
            CHECK(!"an error");
        }
        MPI_Comm_free(&alone);
    }
    MPI_Errhandler_free(&errhandler);
    use(MPI_COMM_WORLD);
}

/* Runs until the test breaks the torus. */
static void until_error(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int code, class, length, predefined, set, *last, again;
    double in[1000] = {0}, out[1000];
    MPI_Errhandler errhandler;

    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    use(MPI_COMM_WORLD);
    say("running");
    do
        code = MPI_Allreduce(in, out, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    while (code == MPI_SUCCESS);
    CHECK(handled_code == code);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &set);
    predefined = class <= MPI_ERR_LASTCODE;
    say("error: %s: %s", predefined ? "predefined" : "new class", text);
    handled_code = MPI_SUCCESS;
    again = MPI_Barrier(MPI_COMM_WORLD);
    CHECK(again != MPI_SUCCESS && handled_code == again);
    MPI_Errhandler_free(&errhandler);
}

static void until_abort(void)
{
    use(MPI_COMM_WORLD);
    say("running");
    for (;;)
        use(MPI_COMM_WORLD);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void *loop(void *comm)
{
    for (int i = 0; i < 40; i++)
        use(*(MPI_Comm *)comm);
    return NULL;
}

static void threads(void)
{
    MPI_Comm comms[4] = {MPI_COMM_WORLD};
    pthread_t thread[4];

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[3]);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[(i + rank) % 4], NULL, loop, &comms[(i + rank) % 4]);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (int i = 1; i < 4; i++)
        MPI_Comm_free(&comms[i]);
}

static void *read_for_ever(void *fd)
{
    char byte;

    while (read(*(int *)fd, &byte, 1) < 0)
        ;
    return NULL;
}

/* A thread that reads can be cancelled, the same as without a preload. */
static void cancels_a_reader(void)
{
    struct timespec end;
    pthread_t reader;
    void *how = NULL;
    int ends[2];

    use(MPI_COMM_WORLD);
    CHECK(pipe(ends) == 0);
    pthread_create(&reader, NULL, read_for_ever, &ends[0]);
    pthread_cancel(reader);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    CHECK(pthread_timedjoin_np(reader, &how, &end) == 0 && how == PTHREAD_CANCELED);
}

/* ---- Costs ----------------------------------------------------------------------------------- */

/* Prints the cost of a call on a communicator that is left to MPI. */
static void cost(void)
{
    const int calls = 1000000;
    double begin, best = 1;
    int in = 1, out;

    for (int turn = 0; turn < 5; turn++) {
        begin = MPI_Wtime();
        for (int i = 0; i < calls; i++)
            MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
        if (MPI_Wtime() - begin < best)
            best = MPI_Wtime() - begin;
    }
    if (rank == 0)
        say("%.3f us a call", best / calls * 1e6);
}

static const struct scenario scenarios[] = {
    {"plain", plain},
    {"isend", isend},
    {"late", late},
    {"late-root", late_root},
    {"ahead", ahead},
    {"late-at-first", late_at_first},
    {"choosing", choosing},
    {"alike", alike},
    {"alike-if-threaded", alike},
    {"aborts", aborts},
    {"many-communicators", many_communicators},
    {"cartesian", cartesian},
    {"halves", halves},
    {"arguments", arguments},
    {"until-error", until_error},
    {"until-abort", until_abort},
    {"threads", threads},
    {"handler-jumps", handler_jumps},
    {"cancels-a-reader", cancels_a_reader},
    {"cost", cost},
};

int main(int argc, char **argv)
{
    bool threaded =
        argc > 1 && (strcmp(argv[1], "threads") == 0 || strcmp(argv[1], "alike-if-threaded") == 0);

    return run_scenarios(scenarios, sizeof scenarios / sizeof scenarios[0], argc, argv,
                         threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
}
