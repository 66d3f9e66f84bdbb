/* Solves A x = b by conjugate gradients. Each member has n rows of the matrix, which is symmetric and positive
 * definite, and n elements of each vector. Every step gathers one vector, and sums two numbers over all members. The
 * sums have the same bits on all members, so all members stop in the same step.
 *
 *     conjugate_gradients [n]       one program on every node */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <torus/group.h>

static struct torus_error error;
static struct torus_group *group;

/* Returns the scalar product of two distributed vectors. */
static double product(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    if (torus_allreduce(group, TORUS_IN_PLACE, &sum, 1, TORUS_FLOAT64, TORUS_SUM, &error) != 0)
        errx(1, "%s", error.text);
    return sum;
}

/* Computes result = A v, where each member has n elements of both vectors. `all` has room for all elements of v. */
static void multiply(double *result, const double *v, double *all, size_t n)
{
    size_t first = torus_group_rank(group) * n, size = torus_group_size(group) * n;

    if (torus_allgather(group, v, all, n * sizeof *v, &error) != 0)
        errx(1, "%s", error.text);
    for (size_t i = 0; i < n; i++) {
        result[i] = 0;
        for (size_t j = 0; j < size; j++) {
            double distance = (double)(first + i) - (double)j;
            result[i] += all[j] * (distance == 0 ? 2 : 1 / (1 + distance * distance));
        }
    }
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 32, steps = 0;
    if (n == 0 || torus_group_open(NULL, &group, &error) != 0)
        errx(1, "%s", n == 0 ? "usage: conjugate_gradients [n]" : error.text);
    size_t size = torus_group_size(group), first = torus_group_rank(group) * n;
    double x[n], b[n], r[n], p[n], q[n], all[size * n];

    for (size_t i = 0; i < n; i++)
        x[i] = sin((double)(first + i)); /* the solution: b = A x is computed from it */
    multiply(b, x, all, n);
    memset(x, 0, sizeof x);
    memcpy(r, b, sizeof b);
    memcpy(p, b, sizeof b);
    double old = product(r, r, n), enough = old * 1e-24;
    for (; old > enough && steps < 1000; steps++) {
        multiply(q, p, all, n);
        double alpha = old / product(p, q, n);
        for (size_t i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        double now = product(r, r, n);
        for (size_t i = 0; i < n; i++)
            p[i] = r[i] + now / old * p[i];
        old = now;
    }
    for (size_t i = 0; i < n; i++)
        r[i] = x[i] - sin((double)(first + i));
    double off = sqrt(product(r, r, n));
    if (first == 0)
        printf("solved %zu equations on %zu node%s (%s) in %zu steps: error %.1e\n", size * n, size,
               size == 1 ? "" : "s", torus_group_dims(group), steps, off);
    torus_group_close(group);
    return !(off < 1e-9);
}
