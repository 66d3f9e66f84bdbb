/* Sorts numbers that are distributed over the nodes. Each member sorts its numbers, all members agree on splitters,
 * and each range between two splitters goes to one member.
 *
 *     sample_sort [count]       one program on every node, with this number of numbers */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include <torus/group.h>

static struct torus_error error;

static void check(int result)
{
    if (result != 0)
        errx(1, "%s", error.text);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000, received = 0;
    uint64_t sum = 0, unsorted = 0;
    struct torus_group *group;
    check(torus_group_open(NULL, &group, &error));
    size_t rank = torus_group_rank(group), size = torus_group_size(group);
    uint64_t *mine = torus_memory_new(group, (count + 1) * sizeof *mine, &error);
    uint64_t *sample = torus_memory_new(group, size * size * sizeof *sample, &error);
    uint64_t borders[2 * size];
    size_t out[size], out_at[size], in[size], in_at[size];

    check(mine == NULL || sample == NULL);
    for (uint64_t i = 0, random = rank; i < count; i++) {
        random = random * 6364136223846793005 + 1442695040888963407;
        sum += mine[i] = random >> 11;
    }
    qsort(mine, count, sizeof *mine, by_value);

    /* Each member contributes a sample of its numbers at regular intervals. In the sorted sample of all members,
     * every size-th number is a splitter. */
    for (size_t i = 0; i < size; i++)
        sample[rank * size + i] = count > 0 ? mine[count * i / size] : 0;
    check(torus_allgather(group, TORUS_IN_PLACE, sample, size * sizeof *sample, &error));
    qsort(sample, size * size, sizeof *sample, by_value);
    for (size_t i = 0, k = 0; i < size; i++) {
        out_at[i] = k * sizeof *mine;
        while (k < count && (i + 1 == size || mine[k] < sample[(i + 1) * size]))
            k++;
        out[i] = k * sizeof *mine - out_at[i];
    }
    check(torus_alltoall(group, out, in, sizeof *out, &error)); /* the bytes from each member */
    for (size_t i = 0; i < size; received += in[i++])
        in_at[i] = received;
    uint64_t *sorted = torus_memory_new(group, received + 1, &error);
    check(sorted == NULL);
    check(torus_alltoallv(group, mine, out, out_at, sorted, in, in_at, &error));
    received /= sizeof *sorted;
    qsort(sorted, received, sizeof *sorted, by_value);

    /* The last number of a member must not be above the first number of a later member. */
    borders[2 * rank] = received > 0 ? sorted[0] : UINT64_MAX;
    borders[2 * rank + 1] = received > 0 ? sorted[received - 1] : 0;
    check(torus_allgather(group, TORUS_IN_PLACE, borders, 2 * sizeof *borders, &error));
    for (size_t i = rank + 1; i < size; i++)
        unsorted += borders[2 * i] < borders[2 * rank + 1];
    for (size_t i = 0; i < received; i++)
        sum -= sorted[i]; /* if no number is lost, this is 0 over all members */
    uint64_t totals[] = {sum, unsorted, received};
    check(torus_allreduce(group, TORUS_IN_PLACE, totals, 3, TORUS_UINT64, TORUS_SUM, &error));
    bool right = totals[0] == 0 && totals[1] == 0 && totals[2] == count * size;
    if (rank == 0)
        printf("sorted %zu numbers on %zu node%s (%s): %s\n", count * size, size,
               size == 1 ? "" : "s", torus_group_dims(group), right ? "right" : "WRONG");
    torus_group_close(group);
    return !right;
}
