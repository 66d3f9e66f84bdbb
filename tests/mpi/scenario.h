/* Shared by the programs with scenarios. Each rank checks its own results, and ends the program if one is wrong. */
#pragma once

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d: line %d: wrong: %s\n", rank, __LINE__, #condition);          \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

static int rank, size;

static void say(const char *format, ...)
{
    va_list arguments;
    char line[1024];
    int n = snprintf(line, sizeof line, "rank %d: ", rank);

    va_start(arguments, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, arguments);
    va_end(arguments);
    line[n++] = '\n';
    fwrite(line, 1, (size_t)n, stdout);
    fflush(stdout);
}

/* Calls some of all operations on a communicator. */
static inline void use(MPI_Comm comm)
{
    int n, r, sum, in[256], out[256];

    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &r);
    for (int i = 0; i < n; i++)
        out[i] = 1000 * r + i;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm);
    for (int i = 0; i < n; i++)
        CHECK(in[i] == 1000 * i + r);
    MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == n * (n - 1) / 2);
    sum = r == n - 1 ? 77 : 0;
    MPI_Bcast(&sum, 1, MPI_INT, n - 1, comm);
    CHECK(sum == 77);
    MPI_Allgather(&r, 1, MPI_INT, in, 1, MPI_INT, comm);
    for (int i = 0; i < n; i++)
        CHECK(in[i] == i);
    MPI_Barrier(comm);
}

/* Two short calls, in which only the last rank uses the type: two int. */
static inline void use_shortly(MPI_Comm comm, MPI_Datatype pair, int a, int b, int root)
{
    int both[2] = {a, b}, sum = 0;

    if (rank == size - 1)
        MPI_Bcast(both, 1, pair, root, comm);
    else
        MPI_Bcast(both, 2, MPI_INT, root, comm);
    both[0] += rank;
    MPI_Allreduce(both, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size * a + size * (size - 1) / 2 && both[1] == b);
}

struct scenario {
    const char *name;
    void (*run)(void);
};

/* Runs the scenarios that the arguments name, in order, between MPI_Init_thread() and MPI_Finalize(). At the end
 * each rank prints "rank R: right". */
static int run_scenarios(const struct scenario *scenarios, size_t count, int argc, char **argv,
                         int wanted_level)
{
    int level;

    MPI_Init_thread(&argc, &argv, wanted_level, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(level >= wanted_level);
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < count && strcmp(scenarios[k].name, argv[i]) != 0)
            k++;
        CHECK(k < count);
        scenarios[k].run();
    }
    say("right");
    MPI_Finalize();
    return 0;
}
