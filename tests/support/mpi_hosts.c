/* An MPI program: each rank prints its host, and checks a complete exchange. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;
    char host[65] = "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    (void)gethostname(host, sizeof host - 1);
    int *out = malloc(2 * (size_t)size * sizeof *out), *in = out + size;
    if (out == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < size; i++)
        out[i] = 1000 * rank + i;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        wrong += in[i] != 1000 * i + rank;
    (void)printf("rank %d of %d on %s: %d wrong\n", rank, size, host, wrong);
    (void)fflush(stdout);
    free(out);
    MPI_Finalize();
    if (rank == 0)
        (void)printf("finalized\n");
    return wrong != 0;
}
