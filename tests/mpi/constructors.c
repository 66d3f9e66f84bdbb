/* Communicators from every constructor of MPI, of all ranks and of some, in several orders. Each is used by three calls
 * of every operation that the torus serves. constructors NAME... runs these tests in order. */
#include <stdbool.h>

#include "scenario.h"

#define RANKS 64 /* the most in a communicator */

/* ---- Calls ----------------------------------------------------------------------------------- */

/* A communicator under test: its size and rank, and a number that its results depend on. */
struct tested {
    MPI_Comm comm;
    int n, r, turn;
};

static int value(const struct tested *t, int from, int to)
{
    return 10000 * t->turn + 100 * from + to;
}

static void call_alltoall(const struct tested *t)
{
    int out[RANKS], in[RANKS], counts[RANKS], at[RANKS], bytes[RANKS];
    MPI_Datatype types[RANKS];

    for (int i = 0; i < t->n; i++) {
        out[i] = value(t, t->r, i);
        counts[i] = 1;
        at[i] = t->n - 1 - i; /* in the reverse order */
        bytes[i] = at[i] * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, t->comm);
    for (int i = 0; i < t->n; i++)
        CHECK(in[i] == value(t, i, t->r));
    MPI_Alltoallv(out, counts, at, MPI_INT, in, counts, at, MPI_INT, t->comm);
    for (int i = 0; i < t->n; i++)
        CHECK(in[at[i]] == value(t, i, t->n - 1 - t->r));
    MPI_Alltoallw(out, counts, bytes, types, in, counts, bytes, types, t->comm);
    for (int i = 0; i < t->n; i++)
        CHECK(in[at[i]] == value(t, i, t->n - 1 - t->r));
}

static void call_allgather(const struct tested *t)
{
    int mine[RANKS], in[RANKS * RANKS], counts[RANKS], at[RANKS], end = 0;

    for (int i = 0; i < t->n; i++) {
        mine[i] = value(t, t->r, i);
        counts[i] = i + 1;
        at[i] = end;
        end += counts[i];
    }
    MPI_Allgather(mine, 1, MPI_INT, in, 1, MPI_INT, t->comm);
    for (int i = 0; i < t->n; i++)
        CHECK(in[i] == value(t, i, 0));
    MPI_Allgatherv(mine, counts[t->r], MPI_INT, in, counts, at, MPI_INT, t->comm);
    for (int i = 0; i < t->n; i++)
        CHECK(in[at[i]] == value(t, i, 0) && in[at[i] + i] == value(t, i, i));
}

static void call_rooted(const struct tested *t)
{
    const int root = t->turn % t->n;
    int mine[RANKS], in[RANKS * RANKS], out[RANKS], counts[RANKS], at[RANKS], end = 0;

    for (int i = 0; i < t->n; i++) {
        mine[i] = value(t, t->r, i);
        counts[i] = i + 1;
        at[i] = end;
        end += counts[i];
    }
    MPI_Gather(mine, 1, MPI_INT, in, 1, MPI_INT, root, t->comm);
    for (int i = 0; i < t->n && t->r == root; i++)
        CHECK(in[i] == value(t, i, 0));
    MPI_Gatherv(mine, counts[t->r], MPI_INT, in, counts, at, MPI_INT, root, t->comm);
    for (int i = 0; i < t->n && t->r == root; i++)
        CHECK(in[at[i]] == value(t, i, 0) && in[at[i] + i] == value(t, i, i));
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < counts[i]; k++)
            in[at[i] + k] = value(t, root, i) + k;
    MPI_Scatterv(in, counts, at, MPI_INT, out, counts[t->r], MPI_INT, root, t->comm);
    CHECK(out[0] == value(t, root, t->r) && out[t->r] == out[0] + t->r);
    MPI_Scatter(mine, 1, MPI_INT, out, 1, MPI_INT, root, t->comm);
    CHECK(out[0] == value(t, root, t->r));
}

/* Element i of the vector of rank r is value(r, i): the sum over all ranks. */
static int sum(const struct tested *t, int i)
{
    return t->n * value(t, 0, i) + 100 * (t->n * (t->n - 1) / 2);
}

static void call_reductions(const struct tested *t, int root)
{
    int mine[RANKS], all[RANKS], counts[RANKS];

    for (int i = 0; i < t->n; i++) {
        mine[i] = value(t, t->r, i);
        counts[i] = i % 2 == 0 && i + 1 < t->n ? 2 : i % 2 == 0 ? 1 : 0;
    }
    MPI_Allreduce(mine, all, t->n, MPI_INT, MPI_SUM, t->comm);
    for (int i = 0; i < t->n; i++)
        CHECK(all[i] == sum(t, i));
    MPI_Reduce(mine, all, t->n, MPI_INT, MPI_MAX, root, t->comm);
    for (int i = 0; i < t->n && t->r == root; i++)
        CHECK(all[i] == value(t, t->n - 1, i));
    MPI_Reduce_scatter_block(mine, all, 1, MPI_INT, MPI_SUM, t->comm);
    CHECK(all[0] == sum(t, t->r));
    MPI_Reduce_scatter(mine, all, counts, MPI_INT, MPI_SUM, t->comm);
    for (int i = 0; i < counts[t->r]; i++)
        CHECK(all[i] == sum(t, t->r + i));
}

/* Checks three calls of every operation. */
static void check(MPI_Comm comm)
{
    struct tested t = {.comm = comm};

    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_size(comm, &t.n);
    MPI_Comm_rank(comm, &t.r);
    CHECK(t.n <= RANKS);
    for (t.turn = 1; t.turn <= 3; t.turn++) {
        int root = t.turn % t.n, told = t.r == root ? value(&t, root, 0) : 0;
        call_alltoall(&t);
        call_allgather(&t);
        call_rooted(&t);
        MPI_Bcast(&told, 1, MPI_INT, root, comm);
        CHECK(told == value(&t, root, 0));
        call_reductions(&t, root);
        MPI_Barrier(comm);
    }
}

/* Checks a communicator and its duplicates, which are made before and after its first use, and frees it. */
static void check_with_duplicates(MPI_Comm comm)
{
    MPI_Comm before, after, later;
    MPI_Request request;

    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_dup(comm, &before);
    check(comm);
    MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &after);
    MPI_Comm_idup(comm, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(before);
    check(after);
    check(later);
#if MPI_VERSION >= 4
    MPI_Comm_free(&later);
    MPI_Comm_idup_with_info(comm, MPI_INFO_NULL, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(later);
#endif
    MPI_Comm_free(&later);
    MPI_Comm_free(&after);
    MPI_Comm_free(&before);
    MPI_Comm_free(&comm);
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

/* Sets of ranks of a parent, in the order that they have in the new communicator. */
enum set {
    SET_ALL,
    SET_REVERSED,
    SET_TURNED, /* from rank 1 on */
    SET_MIXED,  /* in steps of size - 1 and of others without a common divisor */
    SET_EVEN,
    SET_ODD_REVERSED,
    SET_LOW,
    SET_HIGH_REVERSED,
    SET_ENDS, /* the first and the last */
    SET_LAST,
    SETS,
};

static int add(int *ranks, int count, int which)
{
    ranks[count] = which;
    return count + 1;
}

static int ranks_of(enum set set, int n, int *ranks)
{
    int count = 0, step = n % 3 == 0 ? 5 : 3;

    for (int i = 0; i < n; i++)
        switch (set) {
        case SET_ALL:
            count = add(ranks, count, i);
            break;
        case SET_REVERSED:
            count = add(ranks, count, n - 1 - i);
            break;
        case SET_TURNED:
            count = add(ranks, count, (i + 1) % n);
            break;
        case SET_MIXED:
            count = add(ranks, count, i * step % n);
            break;
        case SET_EVEN:
            count = i % 2 == 0 ? add(ranks, count, i) : count;
            break;
        case SET_ODD_REVERSED:
            count = (n - 1 - i) % 2 != 0 ? add(ranks, count, n - 1 - i) : count;
            break;
        case SET_LOW:
            count = i < n / 2 ? add(ranks, count, i) : count;
            break;
        case SET_HIGH_REVERSED:
            count = n - 1 - i >= n / 2 ? add(ranks, count, n - 1 - i) : count;
            break;
        case SET_ENDS:
            count = i == 0 || i == n - 1 ? add(ranks, count, i) : count;
            break;
        default:
            count = i == n - 1 ? add(ranks, count, i) : count;
            break;
        }
    return count;
}

/* Sets *group to the group of a set, and returns the rank of this process in it, or MPI_UNDEFINED. */
static int group_of(MPI_Comm parent, enum set set, MPI_Group *group)
{
    int ranks[RANKS], n, mine;
    MPI_Group all;

    MPI_Comm_size(parent, &n);
    MPI_Comm_group(parent, &all);
    MPI_Group_incl(all, ranks_of(set, n, ranks), ranks, group);
    MPI_Group_rank(*group, &mine);
    MPI_Group_free(&all);
    return mine;
}

/* ---- Constructors of a set ------------------------------------------------------------------- */

static MPI_Comm by_create(MPI_Comm parent, MPI_Group group, int mine)
{
    MPI_Comm comm;

    (void)mine;
    MPI_Comm_create(parent, group, &comm);
    return comm;
}

/* Only the ranks of the group call it. */
static MPI_Comm by_create_group(MPI_Comm parent, MPI_Group group, int mine)
{
    MPI_Comm comm = MPI_COMM_NULL;

    if (mine != MPI_UNDEFINED)
        MPI_Comm_create_group(parent, group, 5, &comm);
    return comm;
}

static MPI_Comm by_split(MPI_Comm parent, MPI_Group group, int mine)
{
    MPI_Comm comm;

    (void)group;
    MPI_Comm_split(parent, mine != MPI_UNDEFINED ? 0 : MPI_UNDEFINED,
                   mine != MPI_UNDEFINED ? mine : 0, &comm);
    return comm;
}

#if MPI_VERSION >= 4
static MPI_Comm by_from_group(MPI_Comm parent, MPI_Group group, int mine)
{
    MPI_Comm comm = MPI_COMM_NULL;

    (void)parent;
    if (mine != MPI_UNDEFINED)
        MPI_Comm_create_from_group(group, "torus", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    return comm;
}
#endif

typedef MPI_Comm constructor(MPI_Comm parent, MPI_Group group, int mine);

/* The parents have been used before, and the world is used between. */
static void test_sets(constructor *make)
{
    MPI_Comm parents[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &parents[1]);
    for (int p = 0; p < 2; p++) {
        check(parents[p]);
        for (enum set set = 0; set < SETS; set++) {
            MPI_Group group;
            int mine = group_of(parents[p], set, &group);
            check_with_duplicates(make(parents[p], group, mine));
            MPI_Group_free(&group);
            check(parents[p]);
        }
    }
    MPI_Comm_free(&parents[1]);
}

static void create(void)
{
    test_sets(by_create);
}

static void create_group(void)
{
    test_sets(by_create_group);
}

static void split(void)
{
    test_sets(by_split);
}

static void from_group(void)
{
#if MPI_VERSION >= 4
    test_sets(by_from_group);
#endif
}

/* ---- Other constructors ---------------------------------------------------------------------- */

static void split_type(void)
{
    MPI_Comm comm;

    check(MPI_COMM_WORLD);
    for (int key = -1; key <= 1; key += 2) {
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, key * rank, MPI_INFO_NULL, &comm);
        check_with_duplicates(comm);
    }
}

/* Grids of all ranks and of some, and their rows, columns and points. */
static void cart(void)
{
    const int shapes[][2] = {{2, size / 2}, {size / 2, 2}, {2, size / 2 - 1}, {1, 2}};
    int periods[] = {1, 0};

    check(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int reorder = 0; reorder < 2; reorder++) {
            MPI_Comm grid, sub;
            MPI_Cart_create(MPI_COMM_WORLD, 2, shapes[i], periods, reorder, &grid);
            for (int keeps = 0; keeps < 4 && grid != MPI_COMM_NULL; keeps++) {
                int remain[] = {keeps & 1, keeps >> 1};
                check(grid);
                MPI_Cart_sub(grid, remain, &sub);
                check_with_duplicates(sub);
            }
            check_with_duplicates(grid);
        }
}

/* Rings of all ranks and of some. */
static void graph(void)
{
    int index[RANKS], edges[2 * RANKS];
    MPI_Comm comm;

    check(MPI_COMM_WORLD);
    for (int n = size; n >= 2; n -= size / 2) {
        for (int i = 0; i < n; i++) {
            index[i] = 2 * i + 2;
            edges[2 * i] = (i + 1) % n;
            edges[2 * i + 1] = (i + n - 1) % n;
        }
        MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, 0, &comm);
        check_with_duplicates(comm);
    }
}

static void dist_graph(void)
{
    int from = (rank + size - 1) % size, to = (rank + 1) % size, one = 1;
    MPI_Comm comm, reversed;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    check(MPI_COMM_WORLD);
    check(reversed);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, &one, 1, &to, &one, MPI_INFO_NULL, 0,
                                   &comm);
    check_with_duplicates(comm);
    MPI_Dist_graph_create(reversed, 1, &rank, &one, &to, &one, MPI_INFO_NULL, 0, &comm);
    check_with_duplicates(comm);
    MPI_Comm_free(&reversed);
}

/* Merges halves, with the one or the other first. */
static void merge(void)
{
    int low = rank < size / 2;

    check(MPI_COMM_WORLD);
    for (int order = 0; order < 2; order++) {
        MPI_Comm half, inter, copy, both;
        MPI_Comm_split(MPI_COMM_WORLD, low, -rank, &half);
        check(half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size - 1 : size / 2 - 1, 9, &inter);
        MPI_Comm_dup(inter, &copy);
        MPI_Intercomm_merge(copy, low == order, &both);
        check_with_duplicates(both);
        MPI_Comm_free(&copy);
        MPI_Comm_free(&inter);
        check_with_duplicates(half);
    }
}

/* The even ranks make a communicator and use it while the odd ones wait in a call on the world. */
static void meanwhile(void)
{
    int one = 1, sum_of_all = 0, sum_of_even = 0;
    MPI_Group group;
    MPI_Comm even;

    check(MPI_COMM_WORLD);
    if (group_of(MPI_COMM_WORLD, SET_EVEN, &group) != MPI_UNDEFINED) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 6, &even);
        for (int turn = 0; turn < 3; turn++) {
            MPI_Allreduce(&one, &sum_of_even, 1, MPI_INT, MPI_SUM, even);
            CHECK(sum_of_even == (size + 1) / 2);
        }
        MPI_Comm_free(&even);
    }
    MPI_Allreduce(&one, &sum_of_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum_of_all == size);
    MPI_Group_free(&group);
}

static const struct scenario scenarios[] = {
    {"create", create},         {"create-group", create_group}, {"split", split},
    {"from-group", from_group}, {"split-type", split_type},     {"cart", cart},
    {"graph", graph},           {"dist-graph", dist_graph},     {"merge", merge},
    {"meanwhile", meanwhile},
};

int main(int argc, char **argv)
{
    return run_scenarios(scenarios, sizeof scenarios / sizeof scenarios[0], argc, argv,
                         MPI_THREAD_SINGLE);
}
