/* Transposes a matrix that is distributed by rows. Member r of N has rows r * n to r * n + n - 1 of an Nn x Nn matrix,
 * and afterwards the same rows of its transpose.
 *
 *     transpose [n]       one program on every node; exit status 0 if every element is right */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include <torus/group.h>

static struct torus_error error;

static void *memory(struct torus_group *group, size_t bytes)
{
    void *result = torus_memory_new(group, bytes, &error);

    if (result == NULL)
        errx(1, "%s", error.text);
    return result;
}

/* Returns the element of the matrix in this row and column. */
static double element(size_t row, size_t column)
{
    return (double)row * 1e6 + (double)column;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 64, rank, size, block = n * n;
    struct torus_group *group;
    uint64_t wrong = 0;

    if (n == 0)
        errx(2, "usage: transpose [n]");
    if (torus_group_open(NULL, &group, &error) != 0)
        errx(1, "%s", error.text);
    rank = torus_group_rank(group);
    size = torus_group_size(group);

    double *matrix = memory(group, size * block * sizeof *matrix); /* n rows of Nn */
    double *out = memory(group, size * block * sizeof *out);       /* N blocks of n x n */
    double *in = memory(group, size * block * sizeof *in);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < size * n; j++)
            matrix[i * size * n + j] = element(rank * n + i, j);

    for (size_t b = 0; b < size; b++) /* each block transposed */
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                out[b * block + j * n + i] = matrix[i * size * n + b * n + j];
    if (torus_alltoall(group, out, in, block * sizeof *out, &error) != 0)
        errx(1, "%s", error.text);
    for (size_t b = 0; b < size; b++)
        for (size_t i = 0; i < n; i++)
            memcpy(&matrix[i * size * n + b * n], &in[b * block + i * n], n * sizeof *in);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < size * n; j++)
            wrong += matrix[i * size * n + j] != element(j, rank * n + i);
    if (torus_allreduce(group, TORUS_IN_PLACE, &wrong, 1, TORUS_UINT64, TORUS_SUM, &error) != 0)
        errx(1, "%s", error.text);
    if (rank == 0)
        printf("transposed a matrix of %zu x %zu on %zu node%s (%s): %llu element%s wrong\n",
               size * n, size * n, size, size == 1 ? "" : "s", torus_group_dims(group),
               (unsigned long long)wrong, wrong == 1 ? "" : "s");
    torus_group_close(group); /* frees the memory, too */
    return wrong != 0;
}
