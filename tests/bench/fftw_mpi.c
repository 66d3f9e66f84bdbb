/* FFTW's MPI transforms: a cube to the frequencies and back, out of place, with the planner's best plan
 * (FFTW_MEASURE | FFTW_DESTROY_INPUT). Prints seconds per transform and the largest error. */
#include <fftw3-mpi.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A value that depends on the position only. */
static double value_at(ptrdiff_t place)
{
    uint64_t x = (uint64_t)place * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    return (double)(x % 1000003) / 1000003 - 0.5;
}

int main(int argc, char **argv)
{
    ptrdiff_t n = argc > 1 ? atol(argv[1]) : 64, here, first;
    int repeats = argc > 2 ? atoi(argv[2]) : 5, rank;
    double error = 0, worst;

    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ptrdiff_t size = fftw_mpi_local_size_3d(n, n, n, MPI_COMM_WORLD, &here, &first);
    fftw_complex *a = fftw_alloc_complex((size_t)size), *b = fftw_alloc_complex((size_t)size);
    unsigned flags = FFTW_MEASURE | FFTW_DESTROY_INPUT;
    fftw_plan there = fftw_mpi_plan_dft_3d(n, n, n, a, b, MPI_COMM_WORLD, FFTW_FORWARD, flags);
    fftw_plan back = fftw_mpi_plan_dft_3d(n, n, n, b, a, MPI_COMM_WORLD, FFTW_BACKWARD, flags);
    if (a == NULL || b == NULL || there == NULL || back == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);

    ptrdiff_t count = here * n * n, offset = first * n * n;
    for (ptrdiff_t i = 0; i < count; i++) {
        a[i][0] = value_at(2 * (offset + i));
        a[i][1] = value_at(2 * (offset + i) + 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime(), scale = 1.0 / ((double)n * (double)n * (double)n);
    for (int k = 0; k < repeats; k++) {
        fftw_execute(there);
        fftw_execute(back);
        for (ptrdiff_t i = 0; i < count; i++) {
            a[i][0] *= scale;
            a[i][1] *= scale;
        }
    }
    seconds = (MPI_Wtime() - seconds) / (2 * repeats);
    for (ptrdiff_t i = 0; i < count; i++)
        error = fmax(error, fmax(fabs(a[i][0] - value_at(2 * (offset + i))),
                                 fabs(a[i][1] - value_at(2 * (offset + i) + 1))));
    MPI_Allreduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        (void)printf("seconds %.6f error %.3g\n", seconds, worst);
    MPI_Finalize();
    return worst < 1e-12 ? 0 : 1;
}
