/* Communicators whose nodes form no row, column or plane of the torus. any_nodes NAME... runs these tests in order. */
#include "scenario.h"

#define COMMS 12
#define TURNS 6

/* ---- Communicators --------------------------------------------------------------------------- */

/* Makes a communicator of the ranks in a set (bit r: rank r); MPI_COMM_NULL on others. */
static MPI_Comm of_ranks(unsigned set)
{
    int ranks[32], count = 0;
    MPI_Group all, group;
    MPI_Comm comm = MPI_COMM_NULL;

    for (int r = size; r-- > 0;) /* in the reverse order */
        if (set >> r & 1)
            ranks[count++] = r;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, count, ranks, &group);
    if (set >> rank & 1)
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 3, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    return comm;
}

/* All ranks but the last one. */
static MPI_Comm without_last(void)
{
    return of_ranks((1u << (size - 1)) - 1);
}

static void use_times(MPI_Comm comm, int times)
{
    for (int i = 0; i < times && comm != MPI_COMM_NULL; i++)
        use(comm);
}

static void free_comm(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL)
        MPI_Comm_free(comm);
}

/* ---- Scenarios ------------------------------------------------------------------------------- */

/* The world is used between. */
static void one(void)
{
    MPI_Comm comm = without_last();

    for (int i = 0; i < 40; i++) {
        use_times(comm, 1);
        use(MPI_COMM_WORLD);
    }
    free_comm(&comm);
}

/* Until the communicator has been in use for some time. */
static void long_use(void)
{
    MPI_Comm comm = without_last();
    const double begin = MPI_Wtime();
    int goes_on = comm != MPI_COMM_NULL;

    while (goes_on) {
        use(comm);
        goes_on = MPI_Wtime() < begin + 1.2;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, comm);
    }
    for (int i = 0; i < 200 && comm != MPI_COMM_NULL; i++)
        MPI_Barrier(comm);
    free_comm(&comm);
}

/* Returns a random set, which has rank `least`. With eight ranks, the first four and the last four are on the same nodes,
 * in the reverse order: the set has both ranks of each of its nodes. */
static unsigned any_set(unsigned *seed, int least)
{
    const int nodes = size == 8 ? 4 : size;
    unsigned set = (unsigned)rand_r(seed) % (1u << nodes) | 1u << least % nodes;

    for (int r = nodes; r < size; r++)
        set |= (set >> (size - 1 - r) & 1) << r;
    return set;
}

/* Random sets, some of which get no group because their ranks have enough of them. Half of the communicators are freed and
 * made once more, of other ranks. */
static void overlapping(void)
{
    MPI_Comm comms[COMMS];
    unsigned seed = 5; /* the same on all ranks */

    for (int i = 0; i < COMMS; i++)
        comms[i] = of_ranks(any_set(&seed, i));
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        for (int i = 0; i < COMMS; i++)
            use_times(comms[i], 1 + i % 2);
        for (int i = 1; i < COMMS && turn == TURNS; i += 2) {
            free_comm(&comms[i]);
            comms[i] = of_ranks(any_set(&seed, i));
        }
    }
    for (int i = 0; i < COMMS; i++)
        free_comm(&comms[i]);
}

/* Each communicator is freed at once after broadcasts, for which the root does not wait. */
static void freed_soon(void)
{
    for (int i = 0; i < 60; i++) {
        MPI_Comm comm = without_last();
        for (int k = 0; k < 4 && comm != MPI_COMM_NULL; k++) {
            int value = rank == size - 2 ? 10 * i + k : -1;
            MPI_Bcast(&value, 1, MPI_INT, 0, comm);
            CHECK(value == 10 * i + k);
        }
        free_comm(&comm);
    }
}

/* Nonblocking calls on two such communicators, begun in different orders, beside blocking ones. */
static void nonblocking(void)
{
    MPI_Comm comms[2] = {without_last(), of_ranks(1u << 0 | 1u << (size - 1))};

    for (int i = 0; i < 2; i++)
        use_times(comms[i], 4);
    for (int turn = 0; turn < 20; turn++) {
        MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                                   MPI_REQUEST_NULL};
        int sums[2] = {0, 0}, told[2] = {0, 0}, n, r;
        for (int k = 0; k < 2; k++) {
            int i = (k + rank) % 2;
            if (comms[i] == MPI_COMM_NULL)
                continue;
            MPI_Comm_rank(comms[i], &r);
            told[i] = r == 0 ? turn + i : -1;
            MPI_Iallreduce(&turn, &sums[i], 1, MPI_INT, MPI_SUM, comms[i], &requests[2 * i]);
            MPI_Ibcast(&told[i], 1, MPI_INT, 0, comms[i], &requests[2 * i + 1]);
        }
        use(MPI_COMM_WORLD);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2; i++)
            if (comms[i] != MPI_COMM_NULL) {
                MPI_Comm_size(comms[i], &n);
                CHECK(sums[i] == n * turn && told[i] == turn + i);
                use(comms[i]);
            }
    }
    for (int i = 0; i < 2; i++)
        free_comm(&comms[i]);
}

static const struct scenario scenarios[] = {
    {"one", one},
    {"long-use", long_use},
    {"overlapping", overlapping},
    {"freed-soon", freed_soon},
    {"nonblocking", nonblocking},
};

int main(int argc, char **argv)
{
    return run_scenarios(scenarios, sizeof scenarios / sizeof scenarios[0], argc, argv,
                         MPI_THREAD_SINGLE);
}
