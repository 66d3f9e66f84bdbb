/* Simulates heat in a grid whose rows are distributed over a ring of members. In every step each member needs the row
 * before its first row and the row after its last row, which its two neighbours in the ring have.
 *
 *     halos [rows]        one program on every node, with this number of rows */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <torus/group.h>

#define WIDTH 256
#define STEPS 100
#define RATE 0.2 /* part of the difference between two cells that flows in a step */

static struct torus_error error;

/* The initial heat: a wave around the ring that keeps its shape, while its height falls by a known factor each step. */
static double wave(size_t row, size_t column, size_t rows)
{
    return (double)(column + 1) * cos(2 * acos(-1) * (double)row / (double)rows);
}

int main(int argc, char **argv)
{
    size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 64, row = WIDTH * sizeof(double);
    double worst = 0;
    struct torus_group *group;

    if (rows == 0)
        errx(2, "usage: halos [rows]");
    if (torus_group_open(NULL, &group, &error) != 0)
        errx(1, "%s", error.text);
    size_t rank = torus_group_rank(group), size = torus_group_size(group), all = rows * size;
    size_t before = (rank + size - 1) % size, after = (rank + 1) % size;
    double(*heat)[WIDTH] = calloc(rows, row), (*next)[WIDTH] = calloc(rows, row);
    double(*edges)[WIDTH] = torus_memory_new(group, 2 * row, &error); /* first row, last row */
    double(*halos)[WIDTH] = torus_memory_new(group, 2 * row, &error); /* row after, row before */
    size_t out[size], out_at[size], in[size], in_at[size];

    if (heat == NULL || next == NULL || edges == NULL || halos == NULL)
        errx(1, "out of memory");
    /* The first row goes to the member before, and the last row to the member after. With one or two members these
     * are the same member, and both rows are one block. */
    for (size_t i = 0; i < size; i++) {
        out[i] = in[i] = (i == before ? row : 0) + (i == after ? row : 0);
        out_at[i] = i == before ? 0 : row;
        in_at[i] = i == after ? 0 : row;
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < WIDTH; j++)
            heat[i][j] = wave(rank * rows + i, j, all);
    for (int step = 0; step < STEPS; step++) {
        memcpy(edges[0], heat[0], row);
        memcpy(edges[1], heat[rows - 1], row);
        if (torus_alltoallv(group, edges, out, out_at, halos, in, in_at, &error) != 0)
            errx(1, "%s", error.text);
        for (size_t i = 0; i < rows; i++) {
            const double *up = i > 0 ? heat[i - 1] : halos[1];
            const double *down = i + 1 < rows ? heat[i + 1] : halos[0];
            for (size_t j = 0; j < WIDTH; j++)
                next[i][j] = heat[i][j] + RATE * (up[j] + down[j] - 2 * heat[i][j]);
        }
        memcpy(heat, next, rows * row);
    }
    double fallen = pow(1 - 2 * RATE * (1 - cos(2 * acos(-1) / (double)all)), STEPS);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < WIDTH; j++)
            worst = fmax(worst, fabs(heat[i][j] - wave(rank * rows + i, j, all) * fallen) / WIDTH);
    if (torus_allreduce(group, TORUS_IN_PLACE, &worst, 1, TORUS_FLOAT64, TORUS_MAX, &error) != 0)
        errx(1, "%s", error.text);
    if (rank == 0)
        printf("%d steps on %zu x %d cells on %zu node%s (%s): largest error %.1e\n", STEPS, all,
               WIDTH, size, size == 1 ? "" : "s", torus_group_dims(group), worst);
    torus_group_close(group);
    free(heat);
    free(next);
    return !(worst < 1e-9);
}
