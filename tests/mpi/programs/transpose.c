/* Parallel matrix transposition, as HPC Challenge's PTRANS: C = A^T + C, with the rows of both matrices
 * spread over the ranks. Once with MPI_Alltoall and blocks as derived types, once with MPI_Alltoallw
 * into transposing types, and once with both matrices spread over a grid of ranks and MPI_Alltoallv in
 * its rows and columns. Every element is checked.
 *
 *     transpose [ROWS EACH] [REPEATS]
 *
 * Prints "transpose: right, SUM, SECONDS s", or an error. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, rows, n; /* rows of each rank; of the matrix */

static double a_at(int i, int j)
{
    return (double)i * 3 + (double)j * 1000;
}

static double c_at(int i, int j)
{
    return (double)(i * 7 % 13) - (double)j;
}

static void fill(double *m, double (*at)(int, int))
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++)
            m[(size_t)i * (size_t)n + (size_t)j] = at(rank * rows + i, j);
}

/* Block j of a row of blocks, and how it is transposed. */
static void make_types(MPI_Datatype *block, MPI_Datatype *transposed)
{
    MPI_Datatype all, column, columns;

    MPI_Type_vector(rows, rows, n, MPI_DOUBLE, &all);
    MPI_Type_create_resized(all, 0, (MPI_Aint)sizeof(double) * rows, block);
    MPI_Type_vector(rows, 1, n, MPI_DOUBLE, &column);
    MPI_Type_create_hvector(rows, 1, sizeof(double), column, &columns);
    MPI_Type_create_resized(columns, 0, (MPI_Aint)sizeof(double) * rows, transposed);
    MPI_Type_commit(block);
    MPI_Type_commit(transposed);
    MPI_Type_free(&all);
    MPI_Type_free(&column);
    MPI_Type_free(&columns);
}

/* C += A^T: blocks arrive untransposed, and are transposed here. */
static void by_alltoall(const double *a, double *c, double *room, MPI_Datatype block)
{
    MPI_Alltoall(a, 1, block, room, rows * rows, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int b = 0; b < ranks; b++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < rows; j++)
                c[i * n + b * rows + j] += room[(b * rows + j) * rows + i];
}

/* The types transpose. */
static void by_alltoallw(const double *a, double *c, double *room, MPI_Datatype block,
                         MPI_Datatype transposed)
{
    int *counts = malloc(2 * (size_t)ranks * sizeof *counts), *places = counts + ranks;
    MPI_Datatype *from = malloc(2 * (size_t)ranks * sizeof(MPI_Datatype)), *to = from + ranks;

    for (int b = 0; b < ranks; b++) {
        counts[b] = 1;
        places[b] = b * rows * (int)sizeof(double);
        from[b] = block;
        to[b] = transposed;
    }
    MPI_Alltoallw(a, counts, places, from, room, counts, places, to, MPI_COMM_WORLD);
    for (int i = 0; i < rows * n; i++)
        c[i] += room[i];
    free(from);
    free(counts);
}

/* On a grid of p x q ranks, whose row i has the rows of its q ranks: columns are spread within rows,
 * parts are transposed, and columns are brought together within columns. Elements go along with where
 * they belong, as row and column. */
struct element {
    double value;
    int row, column;
};

static struct element *sorted(const struct element *in, int count, int parts,
                              int (*part)(const struct element *), int *counts, int *places)
{
    struct element *out = malloc(((size_t)count + 1) * sizeof *out);
    int *next = calloc((size_t)parts, sizeof *next);

    memset(counts, 0, (size_t)parts * sizeof *counts);
    for (int i = 0; i < count; i++)
        counts[part(&in[i])]++;
    for (int p = 0, at = 0; p < parts; at += counts[p++])
        places[p] = next[p] = at;
    for (int i = 0; i < count; i++)
        out[next[part(&in[i])]++] = in[i];
    free(next);
    return out;
}

/* Passes elements on to the parts of a communicator that they belong to. Returns the received ones. */
static struct element *pass(MPI_Comm comm, MPI_Datatype type, struct element *in, int *count,
                            int (*part)(const struct element *))
{
    int parts, *numbers;
    struct element *out, *come;

    MPI_Comm_size(comm, &parts);
    numbers = malloc(4 * (size_t)parts * sizeof *numbers);
    int *sent = numbers, *from = sent + parts, *received = from + parts, *to = received + parts;
    out = sorted(in, *count, parts, part, sent, from);
    MPI_Alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, comm);
    *count = 0;
    for (int p = 0; p < parts; *count += received[p++])
        to[p] = *count;
    come = malloc(((size_t)*count + 1) * sizeof *come);
    MPI_Alltoallv(out, sent, from, type, come, received, to, type, comm);
    free(numbers);
    free(out);
    free(in);
    return come;
}

static int grid[2];

static int owner(const struct element *e)
{
    return e->row / rows;
}

static int owners_column(const struct element *e)
{
    return owner(e) % grid[1];
}

static int owners_row(const struct element *e)
{
    return owner(e) / grid[1];
}

static void by_grid(const double *a, double *c, MPI_Comm row, MPI_Comm column, MPI_Datatype type)
{
    int count = rows * n;
    struct element *all = malloc((size_t)count * sizeof *all);

    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++)
            all[i * n + j] = (struct element){a[i * n + j], j, rank * rows + i};
    all = pass(row, type, all, &count, owners_column);
    all = pass(column, type, all, &count, owners_row);
    for (int i = 0; i < count; i++)
        c[(all[i].row - rank * rows) * n + all[i].column] += all[i].value;
    free(all);
}

/* The number of wrong elements on all ranks, after `times` transposes have been added. */
static long check(const double *c, int times)
{
    long wrong = 0, all;

    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++)
            wrong += c[i * n + j] != c_at(rank * rows + i, j) + times * a_at(j, rank * rows + i);
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv)
{
    int repeats, periods[2] = {1, 1}, in_row[2] = {0, 1}, in_column[2] = {1, 0};
    MPI_Comm both, row, column;
    MPI_Datatype block, transposed, element;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rows = argc > 1 ? atoi(argv[1]) : 24;
    repeats = argc > 2 ? atoi(argv[2]) : 3;
    n = rows * ranks;
    MPI_Dims_create(ranks, 2, grid);
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid, periods, 0, &both);
    MPI_Cart_sub(both, in_row, &row);
    MPI_Cart_sub(both, in_column, &column);
    make_types(&block, &transposed);
    MPI_Type_contiguous(sizeof(struct element), MPI_BYTE, &element);
    MPI_Type_commit(&element);
    size_t bytes = (size_t)rows * (size_t)n * sizeof(double);
    double *a = malloc(bytes), *c = malloc(bytes), *room = malloc(bytes), seconds, sum = 0, total;
    if (a == NULL || c == NULL || room == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    fill(a, a_at);
    fill(c, c_at);

    MPI_Barrier(MPI_COMM_WORLD);
    seconds = MPI_Wtime();
    for (int k = 0; k < repeats; k++) {
        by_alltoall(a, c, room, block);
        by_alltoallw(a, c, room, block, transposed);
        by_grid(a, c, row, column, element);
    }
    seconds = (MPI_Wtime() - seconds) / (3 * repeats);
    long wrong = check(c, 3 * repeats);
    for (int i = 0; i < rows * n; i++)
        sum += c[i];
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); /* whole numbers */
    if (rank == 0 && wrong == 0)
        (void)printf("transpose: right, %.0f, %.6f s\n", total, seconds);
    else if (rank == 0)
        (void)printf("transpose: %ld elements are wrong\n", wrong);
    free(a);
    free(c);
    free(room);
    MPI_Type_free(&block);
    MPI_Type_free(&transposed);
    MPI_Type_free(&element);
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    MPI_Comm_free(&both);
    MPI_Finalize();
    return wrong != 0;
}
