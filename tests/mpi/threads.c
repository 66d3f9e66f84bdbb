/* Communicators in several threads. threads NAME... runs these tests in order. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "scenario.h"

#define MOST 8

/* The work of a thread: that many turns of use() on a communicator. */
struct work {
    MPI_Comm comm;
    int turns;
    int delay_us; /* before the first turn */
};

static void *work(void *context)
{
    const struct work *w = context;

    if (w->delay_us > 0)
        usleep((useconds_t)w->delay_us);
    for (int i = 0; i < w->turns; i++)
        use(w->comm);
    return NULL;
}

static void work_all(struct work *works, int count)
{
    pthread_t threads[MOST];

    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, &works[i]);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Two communicators whose first calls come in different orders on different ranks. The delay makes that likely; the
 * results do not depend on the order. */
static void start_crossing(MPI_Comm *comms, int turns)
{
    struct work works[2];

    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        works[i] = (struct work){comms[i], turns, rank % 2 == i ? 0 : 20000};
    }
    work_all(works, 2);
}

static void crossing(void)
{
    MPI_Comm comms[2];

    start_crossing(comms, 100);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
}

/* One of the two communicators is freed after a few calls, and the other is used on. */
static void one_freed(void)
{
    MPI_Comm comms[2];

    start_crossing(comms, 1);
    MPI_Comm_free(&comms[0]);
    for (int i = 0; i < 100; i++)
        use(comms[1]);
    MPI_Comm_free(&comms[1]);
}

/* Like a library that starts on the world and works on a communicator of its own. */
static void world_once(void)
{
    int value = rank == 0 ? 5 : 0;
    MPI_Comm comm;

    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(value == 5);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 100; i++)
        use(comm);
    MPI_Comm_free(&comm);
}

/* One thread uses five communicators of the same ranks, one of them much more than the others. */
static void uneven(void)
{
    MPI_Comm comms[5];
    unsigned state = 7;

    for (int i = 0; i < 5; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < 400; i++) {
        state = state * 1103515245u + 12345u; /* the same on all ranks */
        use(comms[state >> 16 & 1 ? 3 : state >> 20 & 7 ? 4 : (int)(state >> 24) % 3]);
    }
    for (int i = 0; i < 5; i++)
        MPI_Comm_free(&comms[i]);
}

/* More threads than lanes, on the world, duplicates, rows and columns at the same time. On odd ranks the threads begin
 * in the opposite order. */
static void everywhere(void)
{
    MPI_Comm comms[MOST] = {MPI_COMM_WORLD};
    struct work works[MOST];

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[3]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2 % 2, rank, &comms[4]);
    MPI_Comm_dup(comms[4], &comms[5]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[6]);
    MPI_Comm_dup(comms[6], &comms[7]);
    for (int i = 0; i < MOST; i++)
        works[rank % 2 == 0 ? i : MOST - 1 - i] = (struct work){comms[i], 60, 0};
    work_all(works, MOST);
    for (int i = 1; i < MOST; i++)
        MPI_Comm_free(&comms[i]);
}

/* Threads that make, use and free communicators, each derived from a communicator of its own. */
static void *come_and_go(void *context)
{
    const struct work *w = context;

    for (int i = 0; i < w->turns; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(w->comm, &comm);
        for (int k = 0; k < 1 + i % 5; k++)
            use(comm);
        MPI_Comm_free(&comm);
        use(w->comm);
    }
    return NULL;
}

static void changing(void)
{
    struct work works[4];
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        works[i].turns = 25;
        MPI_Comm_dup(MPI_COMM_WORLD, &works[i].comm);
    }
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[(i + rank) % 4], NULL, come_and_go, &works[(i + rank) % 4]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        MPI_Comm_free(&works[i].comm);
}

/* Threads that switch between their communicators, so that these take the torus from each other again and again. */
struct bursts {
    MPI_Comm comms[3];
    unsigned state;
};

static void *burst(void *context)
{
    struct bursts *b = context;

    for (int i = 0; i < 12; i++) {
        b->state = b->state * 1103515245u + 12345u;
        for (unsigned k = b->state >> 16 & 15; k > 0; k--)
            use(b->comms[(b->state >> 24) % 3]);
    }
    return NULL;
}

static void in_bursts(void *(*body)(void *))
{
    struct bursts each[3];
    pthread_t threads[3];

    for (int i = 0; i < 3; i++) {
        each[i].state = (unsigned)i;
        for (int k = 0; k < 3; k++)
            MPI_Comm_split(MPI_COMM_WORLD, 0, k == 0 ? rank : -rank, &each[i].comms[k]);
    }
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, body, &each[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 9; i++)
        MPI_Comm_free(&each[i / 3].comms[i % 3]);
}

static void bursts(void)
{
    in_bursts(burst);
}

/* As bursts(), with short calls that stay with MPI: while some ranks go by what they remember of them, which the last rank
 * never does, threads take the torus from each other. */
static void *stay(void *context)
{
    struct bursts *b = context;
    MPI_Datatype pair;

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < 40; i++) {
        b->state = b->state * 1103515245u + 12345u;
        MPI_Comm comm = b->comms[(b->state >> 24) % 3];
        for (int k = 0; k < 1 + (int)(b->state >> 16 & 15); k++)
            use_shortly(comm, pair, i, k, k % size);
    }
    MPI_Type_free(&pair);
    return NULL;
}

/* Rank 0 makes in two threads the calls that other ranks make in one thread, in an order that depends on the turn. */
static void one_thread_elsewhere(void)
{
    MPI_Comm comms[2];
    struct work works[2];

    for (int i = 0; i < 2; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        works[i] = (struct work){comms[i], 80, 0};
    }
    if (rank == 0)
        work_all(works, 2);
    for (int i = 0; i < 80 && rank != 0; i++) {
        use(comms[(i >> 2) % 2]);
        use(comms[1 - (i >> 2) % 2]);
    }
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

/* Communicators of all ranks but one or two, with ranks in common, so that each needs a group of its own; two of them of
 * the same ranks. In each thread one of them, and duplicates of it that come and go. */
static void any_nodes(void)
{
    const int without[][2] = {
        {size - 1, -1}, {0, -1}, {size / 2, size / 2 - 1}, {size / 2, size / 2 - 1}};
    struct work works[4];
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        const bool in = rank != without[i][0] && rank != without[i][1];
        works[i].turns = 8;
        MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, -rank, &works[i].comm);
    }
    for (int i = 0; i < 4; i++)
        if (works[i].comm != MPI_COMM_NULL)
            pthread_create(&threads[i], NULL, come_and_go, &works[i]);
    for (int i = 0; i < 4; i++)
        if (works[i].comm != MPI_COMM_NULL)
            pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        if (works[i].comm != MPI_COMM_NULL)
            MPI_Comm_free(&works[i].comm);
}

static void stays(void)
{
    in_bursts(stay);
}

static const struct scenario scenarios[] = {
    {"crossing", crossing},
    {"one-freed", one_freed},
    {"world-once", world_once},
    {"uneven", uneven},
    {"bursts", bursts},
    {"everywhere", everywhere},
    {"changing", changing},
    {"staying", stays},
    {"one-thread-elsewhere", one_thread_elsewhere},
    {"any-nodes", any_nodes},
};

int main(int argc, char **argv)
{
    return run_scenarios(scenarios, sizeof scenarios / sizeof scenarios[0], argc, argv,
                         MPI_THREAD_MULTIPLE);
}
