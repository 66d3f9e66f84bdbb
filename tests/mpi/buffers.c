/* Buffers, types and counts that collective operations may have. buffers NAME... runs these tests in order. */
#include <stdbool.h>

#include "scenario.h"

/* A type that contains this address, for MPI_BOTTOM. */
static MPI_Datatype type_at(const int *at)
{
    int one = 1;
    MPI_Aint address;
    MPI_Datatype type;

    MPI_Get_address(at, &address);
    MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void check_received(int *in)
{
    for (int i = 0; i < size; i++) {
        CHECK(in[i] == 100 * i + rank);
        in[i] = -1;
    }
}

/* At rank 0 both buffers begin at the same address, which is allowed if their blocks do not overlap. Other ranks
 * need not do the same. */
static void same_buffers(void)
{
    int both[256], *out = both, *in = both + 64, ones[64], others[64], near[64], far[64], bytes[64];
    int far_bytes[64], nothing[64] = {0};
    MPI_Datatype types[64], from[64], to[64], block;
    MPI_Comm world = MPI_COMM_WORLD;
    bool one = rank == 0;

    for (int i = 0; i < size; i++) {
        out[i] = 100 * rank + i;
        ones[i] = others[i] = 1;
        near[i] = i;
        far[i] = one ? 64 + i : i;
        bytes[i] = i * (int)sizeof *out;
        far_bytes[i] = far[i] * (int)sizeof *out;
        types[i] = MPI_INT;
        from[i] = type_at(&out[i]);
        to[i] = type_at(&in[i]);
    }
    MPI_Alltoallv(out, ones, near, MPI_INT, one ? both : in, others, far, MPI_INT, world);
    check_received(in);
    MPI_Alltoallw(out, ones, bytes, types, one ? both : in, others, far_bytes, types, world);
    check_received(in);
    if (one)
        MPI_Alltoallw(MPI_BOTTOM, ones, nothing, from, MPI_BOTTOM, others, nothing, to, world);
    else
        MPI_Alltoallw(out, ones, bytes, types, in, others, bytes, types, world);
    check_received(in);
    MPI_Type_create_resized(to[0], 0, sizeof *in, &block);
    MPI_Type_commit(&block);
    if (one)
        MPI_Allgather(MPI_BOTTOM, 1, from[0], MPI_BOTTOM, 1, block, world);
    else
        MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_INT, world);
    for (int i = 0; i < size; i++) {
        CHECK(in[i] == 100 * i);
        MPI_Type_free(&from[i]);
        MPI_Type_free(&to[i]);
    }
    MPI_Type_free(&block);
}

/* Two elements of a type with absolute addresses, relative to MPI_BOTTOM. */
static void bottom(void)
{
    struct {
        int first;
        double second;
    } pairs[2] = {0};
    int lengths[] = {1, 1};
    MPI_Aint at[2];
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE}, pair, spaced;

    if (rank == size - 1)
        for (int i = 0; i < 2; i++) {
            pairs[i].first = 70 + i;
            pairs[i].second = 0.5 + i;
        }
    MPI_Get_address(&pairs[0].first, &at[0]);
    MPI_Get_address(&pairs[0].second, &at[1]);
    MPI_Type_create_struct(2, lengths, at, types, &pair);
    MPI_Type_create_resized(pair, 0, sizeof pairs[0], &spaced);
    MPI_Type_commit(&spaced);
    MPI_Bcast(MPI_BOTTOM, 2, spaced, size - 1, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++)
        CHECK(pairs[i].first == 70 + i && pairs[i].second == 0.5 + i);
    MPI_Type_free(&pair);
    MPI_Type_free(&spaced);
}

/* MPICH does not look at the types of blocks that have no elements. */
static void null_types(void)
{
    int out[64], in[64] = {0}, counts[64], bytes[64];
    MPI_Datatype types[64];

    for (int i = 0; i < size; i++) {
        out[i] = 100 * rank + i;
        counts[i] = rank != 0 && i != 0;
        bytes[i] = i * (int)sizeof *out;
        types[i] = counts[i] == 0 ? MPI_DATATYPE_NULL : MPI_INT;
    }
    MPI_Alltoallw(out, counts, bytes, types, in, counts, bytes, types, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(in[i] == (counts[i] != 0 ? 100 * i + rank : 0));
}

#if MPI_VERSION >= 4
static void large_reductions(const int *out, const MPI_Count *counts)
{
    int sum;

    MPI_Allreduce_c(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Reduce_c(&rank, &sum, 1, MPI_INT, MPI_MAX, 1, MPI_COMM_WORLD);
    CHECK(rank != 1 || sum == size - 1);
    MPI_Scan_c(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == rank * (rank + 1) / 2);
    MPI_Exscan_c(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(rank == 0 || sum == rank * (rank - 1) / 2);
    MPI_Reduce_scatter_block_c(out, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(sum == 1000 * (size - 1) + rank);
    MPI_Reduce_scatter_c(out, &sum, counts, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    CHECK(sum == rank);
}

static void large_neighbors(const int *out, const MPI_Count *counts, const MPI_Aint *places)
{
    const int dims[] = {size}, periods[] = {1}, next = (rank + 1) % size;
    MPI_Aint offsets[] = {0, sizeof(int)};
    MPI_Datatype types[] = {MPI_INT, MPI_INT};
    MPI_Comm ring;
    int in[2];

    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    MPI_Barrier(ring); /* the first call is left to MPI */
    MPI_Neighbor_allgather_c(&rank, 1, MPI_INT, in, 1, MPI_INT, ring);
    CHECK(in[1] == next);
    MPI_Neighbor_allgatherv_c(&next, 1, MPI_INT, in, counts, places, MPI_INT, ring);
    CHECK(in[0] == rank);
    MPI_Neighbor_alltoall_c(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    CHECK(in[1] == 1000 * next);
    MPI_Neighbor_alltoallv_c(out + 1, counts, places, MPI_INT, in, counts, places, MPI_INT, ring);
    CHECK(in[1] == 1000 * next + 1);
    MPI_Neighbor_alltoallw_c(out + 2, counts, offsets, types, in, counts, offsets, types, ring);
    CHECK(in[1] == 1000 * next + 2);
    MPI_Comm_free(&ring);
}

static void large_counts(void)
{
    int in[256], out[256], sum;
    MPI_Count counts[256];
    MPI_Aint displacements[256];
    MPI_Datatype types[256];

    for (int i = 0; i < size; i++) {
        out[i] = 1000 * rank + i;
        counts[i] = 1;
        displacements[i] = i;
        types[i] = MPI_INT;
    }
    MPI_Alltoall_c(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(in[i] == 1000 * i + rank);
    memset(in, 0, sizeof in);
    MPI_Alltoallv_c(out, counts, displacements, MPI_INT, in, counts, displacements, MPI_INT,
                    MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(in[i] == 1000 * i + rank);
    MPI_Allgather_c(&rank, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(in[i] == i);
    memset(in, 0, sizeof in);
    MPI_Allgatherv_c(&rank, 1, MPI_INT, in, counts, displacements, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(in[i] == i);
    memset(in, 0, sizeof in);
    MPI_Gather_c(&rank, 1, MPI_INT, in, 1, MPI_INT, 1, MPI_COMM_WORLD);
    for (int i = 0; i < size && rank == 1; i++)
        CHECK(in[i] == i);
    memset(in, 0, sizeof in);
    MPI_Gatherv_c(&rank, 1, MPI_INT, in, counts, displacements, MPI_INT, 1, MPI_COMM_WORLD);
    for (int i = 0; i < size && rank == 1; i++)
        CHECK(in[i] == i);
    MPI_Scatter_c(in, 1, MPI_INT, &sum, 1, MPI_INT, 1, MPI_COMM_WORLD);
    CHECK(sum == rank);
    MPI_Scatterv_c(in, counts, displacements, MPI_INT, &sum, 1, MPI_INT, 1, MPI_COMM_WORLD);
    CHECK(sum == rank);
    large_reductions(out, counts);
    large_neighbors(out, counts, displacements);
    sum = rank == 2 ? 99 : 0;
    MPI_Bcast_c(&sum, 1, MPI_INT, 2, MPI_COMM_WORLD);
    CHECK(sum == 99);
    for (int i = 0; i < size; i++)
        displacements[i] *= (MPI_Aint)sizeof(int);
    memset(in, 0, sizeof in);
    MPI_Alltoallw_c(out, counts, displacements, types, in, counts, displacements, types,
                    MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(in[i] == 1000 * i + rank);
}
#endif

static const struct scenario scenarios[] = {
    {"bottom", bottom},
    {"same-buffers", same_buffers},
    {"null-types", null_types},
#if MPI_VERSION >= 4
    {"large-counts", large_counts},
#endif
};

int main(int argc, char **argv)
{
    return run_scenarios(scenarios, sizeof scenarios / sizeof scenarios[0], argc, argv,
                         MPI_THREAD_SINGLE);
}
