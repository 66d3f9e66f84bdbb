// Fourier transforms of a cube that is spread over a grid of ranks as pencils: each rank transforms whole
// lines of one direction, then pencils are turned by exchanges within the rows of the grid, or within
// its columns. Each wave must give one peak, and the inverse transform must restore the values.
//
//     fourier [SIDE, a power of two] [REPEATS]
//
// Prints "fourier: right, WORDS, SECONDS s", or an error.
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <utility>
#include <vector>

using number = std::complex<double>;
using line = std::vector<number>;

static const double pi = std::acos(-1.0);
static int side;

// In place; `sign` -1: to frequencies.
static void transform(number *x, int sign)
{
    for (int i = 1, j = 0; i < side; i++) {
        int bit = side >> 1;
        for (; (j & bit) != 0; bit >>= 1)
            j ^= bit;
        j |= bit;
        if (i < j)
            std::swap(x[i], x[j]);
    }
    for (int length = 2; length <= side; length *= 2) {
        number step = std::polar(1.0, sign * 2 * pi / length);
        for (int begin = 0; begin < side; begin += length) {
            number w = 1;
            for (int k = 0; k < length / 2; k++, w *= step) {
                number even = x[begin + k], odd = x[begin + k + length / 2] * w;
                x[begin + k] = even + odd;
                x[begin + k + length / 2] = even - odd;
            }
        }
    }
}

// The parts of `count` elements on the ranks of a communicator.
struct spread {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0, ranks = 1;
    spread(MPI_Comm c) : comm(c)
    {
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &ranks);
    }
    int begin(int r, int count) const
    {
        return count * r / ranks;
    }
    int size(int r, int count) const
    {
        return begin(r + 1, count) - begin(r, count);
    }
};

// A pencil has `first` x `second` lines, of the third direction. Turns it so that lines are of the second
// direction, which is spread over the ranks of `over`: then there are first x third (a part of it).
static line turned(const line &in, int first, const spread &over)
{
    int mine = over.size(over.rank, side);
    std::vector<int> sent(over.ranks), from(over.ranks), received(over.ranks), to(over.ranks);
    line out(in.size()), come, result;

    for (int r = 0, at = 0, next = 0; r < over.ranks; r++) {
        from[r] = at;
        to[r] = next;
        for (int i = 0; i < first; i++) // the elements in its part of the third direction
            for (int j = 0; j < mine; j++)
                for (int k = over.begin(r, side); k < over.begin(r + 1, side); k++)
                    out[at++] = in[(i * mine + j) * side + k];
        sent[r] = at - from[r];
        received[r] = first * over.size(r, side) * mine;
        next += received[r];
    }
    come.resize(to.back() + received.back());
    MPI_Alltoallv(out.data(), sent.data(), from.data(), MPI_CXX_DOUBLE_COMPLEX, come.data(),
                  received.data(), to.data(), MPI_CXX_DOUBLE_COMPLEX, over.comm);
    result.resize(come.size());
    for (int r = 0, at = 0; r < over.ranks; r++)
        for (int i = 0; i < first; i++)
            for (int j = over.begin(r, side); j < over.begin(r + 1, side); j++)
                for (int k = 0; k < mine; k++)
                    result[(i * mine + k) * side + j] = come[at++];
    return result;
}

// From first x third lines of the second direction to third x second... of the first: the same with the
// two directions of the lines' places exchanged.
static line exchanged(const line &in, int first, int second)
{
    line out(in.size());

    for (int i = 0; i < first; i++)
        for (int j = 0; j < second; j++)
            for (int k = 0; k < side; k++)
                out[(j * first + i) * side + k] = in[(i * second + j) * side + k];
    return out;
}

struct pencils {
    spread rows, columns; // x is spread over a column of ranks, y over a row
    int x, y, z;          // parts of this rank: of x and y at first, of z and x later
    pencils(MPI_Comm row, MPI_Comm column)
        : rows(row), columns(column), x(columns.size(columns.rank, side)),
          y(rows.size(rows.rank, side)), z(rows.size(rows.rank, side))
    {
    }

    static void lines(line &a, int sign)
    {
        for (std::size_t i = 0; i < a.size(); i += side)
            transform(&a[i], sign);
    }

    // x x y lines of z -> z x y lines of x
    line there(line a) const
    {
        lines(a, -1);
        a = turned(a, x, rows); // x x z lines of y
        lines(a, -1);
        a = turned(exchanged(a, x, z), z, columns); // z x y lines of x
        lines(a, -1);
        return a;
    }

    line back(line a) const
    {
        int part = columns.size(columns.rank, side); // of y
        lines(a, 1);
        a = exchanged(turned(a, z, columns), z, part); // x x z lines of y
        lines(a, 1);
        a = turned(a, x, rows); // x x y lines of z
        lines(a, 1);
        for (number &value : a)
            value /= double(side) * side * side;
        return a;
    }
};

struct wave {
    int x, y, z;
    double amplitude;
};

int main(int argc, char **argv)
{
    int rank, ranks, grid[2] = {0, 0}, periods[2] = {1, 1}, in_row[2] = {0, 1},
                     in_column[2] = {1, 0};
    MPI_Comm both, row, column;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    side = argc > 1 ? std::atoi(argv[1]) : 16;
    int repeats = argc > 2 ? std::atoi(argv[2]) : 3;
    MPI_Dims_create(ranks, 2, grid);
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &both);
    MPI_Cart_sub(both, in_row, &row);
    MPI_Cart_sub(both, in_column, &column);

    const wave waves[] = {{1, 2, 3, 1}, {0, side - 1, side / 2, 0.5}, {3, 0, 0, 2}};
    double error = 0, energy[2] = {0, 0}, total[2], worst, seconds;
    {
        pencils p(row, column);
        int x0 = p.columns.begin(p.columns.rank, side), y0 = p.rows.begin(p.rows.rank, side);
        line a(std::size_t(p.x) * p.y * side);
        for (int i = 0; i < p.x; i++)
            for (int j = 0; j < p.y; j++)
                for (int k = 0; k < side; k++)
                    for (const wave &w : waves)
                        a[(i * p.y + j) * side + k] +=
                            std::polar(w.amplitude,
                                       2 * pi / side * ((x0 + i) * w.x + (y0 + j) * w.y + k * w.z));
        const line before = a;
        line frequencies;
        MPI_Barrier(MPI_COMM_WORLD);
        seconds = MPI_Wtime();
        for (int k = 0; k < repeats; k++) {
            frequencies = p.there(a);
            a = p.back(frequencies);
        }
        seconds = (MPI_Wtime() - seconds) / (2 * repeats);

        const double all = double(side) * side * side;
        int part = p.columns.size(p.columns.rank, side), z0 = y0;
        for (int k = 0; k < p.z; k++)
            for (int j = 0; j < part; j++)
                for (int i = 0; i < side; i++) {
                    number wanted = 0, got = frequencies[(k * part + j) * side + i] / all;
                    for (const wave &w : waves)
                        if (w.x == i && w.y == x0 + j && w.z == z0 + k)
                            wanted = w.amplitude;
                    error = std::fmax(error, std::abs(got - wanted));
                    energy[0] += std::norm(got);
                }
        for (std::size_t i = 0; i < a.size(); i++) {
            error = std::fmax(error, std::abs(a[i] - before[i]));
            energy[1] += std::norm(a[i]) / all;
        }
    }
    MPI_Allreduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(energy, total, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    bool right =
        worst < 1e-12 && std::fabs(total[0] - 5.25) < 1e-9 && std::fabs(total[1] - 5.25) < 1e-9;
    if (rank == 0 && right)
        std::printf("fourier: right, energy %.6f, %.6f s\n", total[0], seconds);
    else if (rank == 0)
        std::printf("fourier: an error of %g, energies %.12f and %.12f\n", worst, total[0],
                    total[1]);
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    MPI_Comm_free(&both);
    MPI_Finalize();
    return right ? 0 : 1;
}
