// Collective operations from C++.
#include <complex>
#include <cstdio>
#include <mpi.h>
#include <numeric>
#include <vector>

int main(int argc, char **argv)
{
    int rank, n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);

    std::vector<double> out(n), in(n), expected(n);
    for (int i = 0; i < n; i++) {
        out[i] = 1000 * rank + i;
        expected[i] = 1000 * i + rank;
    }
    MPI_Alltoall(out.data(), 1, MPI_DOUBLE, in.data(), 1, MPI_DOUBLE, MPI_COMM_WORLD);
    bool right = in == expected;

    std::vector<std::complex<double>> z(5, {double(rank), 1});
    MPI_Allreduce(MPI_IN_PLACE, z.data(), 5, MPI_CXX_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
    right &= z == std::vector<std::complex<double>>(5, {n * (n - 1) / 2.0, double(n)});

    std::vector<int> ranks(n), all(n);
    std::iota(all.begin(), all.end(), 0);
    MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, MPI_COMM_WORLD);
    right &= ranks == all;

    int wrong = !right, any;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && !any)
        std::puts("right");
    MPI_Finalize();
}
