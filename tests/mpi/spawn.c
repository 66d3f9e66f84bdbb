/* spawn COUNT COMMAND: starts COUNT ranks with MPI_Comm_spawn, by COMMAND with the path of this program behind it. All
 * ranks add up numbers: those of the program, those that it has started, and both together. Each program's rank 0 prints
 * how many ranks it has. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void add_up(MPI_Comm comm)
{
    int rank, size, sum;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 5; i++) {
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (sum != size * (size - 1) / 2) {
            fprintf(stderr, "wrong: the sum of %d ranks is %d\n", size, sum);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parent, between, all;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (parent == MPI_COMM_NULL) {
        char *arguments[] = {argv[0], NULL};
        if (argc != 3)
            MPI_Abort(MPI_COMM_WORLD, 2);
        MPI_Comm_spawn(argv[2], arguments, atoi(argv[1]), MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                       &between, MPI_ERRCODES_IGNORE);
    } else {
        between = parent;
    }
    MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &all);
    add_up(MPI_COMM_WORLD);
    add_up(all);
    if (rank == 0)
        printf("%s: %d ranks\n", parent == MPI_COMM_NULL ? "first" : "second", size);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&between);
    MPI_Finalize();
    return 0;
}
