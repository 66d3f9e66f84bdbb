/* Nonblocking collective operations. nonblocking NAME... runs these tests in order. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "scenario.h"

/* Lets the ranks agree on a lane for the nonblocking calls of a communicator. */
static void prepare(MPI_Comm comm)
{
    MPI_Request request;

    for (int i = 0; i < 20; i++) {
        MPI_Ibarrier(comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(comm);
    }
}

/* ---- The same calls by the torus and by MPI -------------------------------------------------- */

#define MOST 130    /* calls of each under way */
#define SPACE 80000 /* bytes of a buffer */

enum {
    IBARRIER,
    IBCAST,
    IALLREDUCE,
    IREDUCE,
    IALLGATHER,
    IALLGATHERV,
    IALLTOALL,
    IALLTOALLV,
    IALLTOALLW,
    IGATHER,
    IGATHERV,
    ISCATTER,
    ISCATTERV,
    IREDUCE_SCATTER,
    IREDUCE_SCATTER_BLOCK,
    OPERATIONS
};

struct pair {
    int operation, root, count;
    bool in_place, derived;
    char *send, *receive[2];
    int *counts, *displacements;
    int *offsets; /* in bytes */
    MPI_Datatype *types[2];
    MPI_Datatype others[2]; /* take the places of types that have been freed */
    bool complete[2];
};

static struct pair pairs[MOST];
static unsigned shared_seed = 5, own_seed;

/* A random number below `below`, the same on all ranks. */
static int any(int below)
{
    return rand_r(&shared_seed) / 7 % below;
}

/* Sizes up to 7500 bytes a rank. */
static void choose_pair(struct pair *p)
{
    p->operation = any(OPERATIONS);
    p->root = any(size);
    p->count = any(4) == 0 ? any(3) : any(3) == 0 ? any(1875) : any(200);
    p->in_place = any(4) == 0;
    p->derived = any(4) == 0;
    p->complete[0] = p->complete[1] = false;
    p->counts = malloc(3 * (size_t)size * sizeof(int));
    p->displacements = p->counts + size;
    p->offsets = p->displacements + size;
    for (int w = 0; w < 2; w++)
        p->types[w] = malloc((size_t)size * sizeof(MPI_Datatype));
    for (int i = 0, at = 0; i < size; i++) {
        p->counts[i] = p->operation == IALLTOALLV || p->operation == IALLTOALLW
                           ? (p->count + i + rank) / 3 % 500
                           : p->count * (i % 3) / 2;
        p->displacements[i] = at;
        p->offsets[i] = at * (p->derived ? 8 : 4);
        at += p->counts[i] + 3;
    }
    p->send = malloc(SPACE);
    for (int i = 0; i < SPACE / 4; i++)
        ((int *)p->send)[i] = rand_r(&own_seed) % 1000;
    for (int w = 0; w < 2; w++) {
        p->receive[w] = malloc(SPACE);
        memcpy(p->receive[w], p->send, SPACE);
    }
}

/* Every second number. */
static MPI_Datatype new_type(bool derived)
{
    MPI_Datatype type, wide;

    if (derived) {
        MPI_Type_vector(1, 1, 2, MPI_INT, &type);
        MPI_Type_create_resized(type, 0, 8, &wide);
        MPI_Type_free(&type);
    } else {
        MPI_Type_dup(MPI_INT, &wide);
    }
    MPI_Type_commit(&wide);
    return wide;
}

/* Frees the type of a call that is under way. Another type may then get its handle. */
static void free_type(struct pair *p, int which, MPI_Datatype type)
{
    MPI_Type_free(&type);
    MPI_Type_contiguous(1, MPI_CHAR, &p->others[which]);
    MPI_Type_commit(&p->others[which]);
}

static void begin_alltoallw(struct pair *p, int which, MPI_Datatype type, MPI_Comm comm,
                            MPI_Request *request)
{
    for (int i = 0; i < size; i++)
        p->types[which][i] = type;
    MPI_Ialltoallw(p->send, p->counts, p->offsets, p->types[which], p->receive[which], p->counts,
                   p->offsets, p->types[which], comm, request);
}

static void begin_with(struct pair *p, int which, MPI_Datatype type, MPI_Comm comm,
                       MPI_Request *request)
{
    const bool is_root = rank == p->root;
    char *in = p->receive[which];
    const void *out = p->in_place ? MPI_IN_PLACE : p->send, *at_root = is_root ? out : p->send;
    int mine = p->counts[rank], n = p->count;

    switch (p->operation) {
    case IBARRIER:
        MPI_Ibarrier(comm, request);
        break;
    case IBCAST:
        MPI_Ibcast(in, n, type, p->root, comm, request);
        break;
    case IALLREDUCE:
        MPI_Iallreduce(out, in, n, MPI_INT, MPI_SUM, comm, request);
        break;
    case IREDUCE:
        MPI_Ireduce(at_root, in, n, MPI_INT, MPI_MAX, p->root, comm, request);
        break;
    case IALLGATHER:
        MPI_Iallgather(out, n, type, in, n, type, comm, request);
        break;
    case IALLGATHERV:
        MPI_Iallgatherv(out, mine, type, in, p->counts, p->displacements, type, comm, request);
        break;
    case IALLTOALL:
        MPI_Ialltoall(out, n, type, in, n, type, comm, request);
        break;
    case IALLTOALLV: /* all blocks of a pair of ranks have the same size */
        MPI_Ialltoallv(p->send, p->counts, p->displacements, type, in, p->counts, p->displacements,
                       type, comm, request);
        break;
    case IALLTOALLW:
        begin_alltoallw(p, which, type, comm, request);
        break;
    case IGATHER:
        MPI_Igather(at_root, n, type, in, n, type, p->root, comm, request);
        break;
    case IGATHERV:
        MPI_Igatherv(at_root, mine, type, in, p->counts, p->displacements, type, p->root, comm,
                     request);
        break;
    case ISCATTER:
        MPI_Iscatter(p->send, n, type, is_root && p->in_place ? MPI_IN_PLACE : in, n, type, p->root,
                     comm, request);
        break;
    case ISCATTERV:
        MPI_Iscatterv(p->send, p->counts, p->displacements, type,
                      is_root && p->in_place ? MPI_IN_PLACE : in, mine, type, p->root, comm,
                      request);
        break;
    case IREDUCE_SCATTER:
        MPI_Ireduce_scatter(p->send, in, p->counts, MPI_INT, MPI_SUM, comm, request);
        break;
    default:
        MPI_Ireduce_scatter_block(p->send, in, n, MPI_INT, MPI_BXOR, comm, request);
    }
}

static void begin(struct pair *p, int which, MPI_Comm comm, MPI_Request *request)
{
    MPI_Datatype type = new_type(p->derived);

    begin_with(p, which, type, comm, request);
    free_type(p, which, type);
}

static void end(struct pair *p, int which)
{
    CHECK(!p->complete[which]);
    MPI_Type_free(&p->others[which]);
    p->complete[which] = true;
    if (!p->complete[0] || !p->complete[1])
        return;
    if (memcmp(p->receive[0], p->receive[1], SPACE) != 0)
        say("operation %d, count %d, root %d, in place %d, derived %d", p->operation, p->count,
            p->root, p->in_place, p->derived);
    CHECK(memcmp(p->receive[0], p->receive[1], SPACE) == 0);
    free(p->counts);
    free(p->types[0]);
    free(p->types[1]);
    free(p->send);
    free(p->receive[0]);
    free(p->receive[1]);
}

/* Completes requests until all are complete, by all functions in turn, which differ between ranks. */
static void complete(MPI_Request *requests, int count)
{
    static MPI_Status statuses[2 * MOST];
    static int indices[2 * MOST];
    int left = count, index, flag, done = 0;

    while (left > 0) {
        const int how = rand_r(&own_seed) / 7 % 9;
        flag = done = 0;
        index = rand_r(&own_seed) / 7 % count;
        if (how == 0) {
            MPI_Waitany(count, requests, &indices[0], &statuses[0]);
            done = 1;
        } else if (how == 1) {
            MPI_Testany(count, requests, &indices[0], &done, &statuses[0]);
        } else if (how == 2) {
            MPI_Waitsome(count, requests, &done, indices, statuses);
            CHECK(done > 0);
        } else if (how == 3) {
            MPI_Testsome(count, requests, &done, indices, statuses);
        } else if (how == 4 && requests[index] != MPI_REQUEST_NULL) {
            MPI_Wait(&requests[index], MPI_STATUS_IGNORE);
            indices[done++] = index;
        } else if (how == 5 && requests[index] != MPI_REQUEST_NULL) {
            MPI_Request_get_status(requests[index], &flag, MPI_STATUS_IGNORE);
            CHECK(requests[index] != MPI_REQUEST_NULL);
            MPI_Test(&requests[index], &done, MPI_STATUS_IGNORE);
            CHECK(done || !flag);
            indices[0] = index;
        } else if (how > 5 && left < count / 2) {
            bool was_null[2 * MOST];
            for (int i = 0; i < count; i++)
                was_null[i] = requests[i] == MPI_REQUEST_NULL;
            if (how == 6)
                for (flag = 0; !flag;)
                    MPI_Testall(count, requests, &flag, statuses);
            else
                MPI_Waitall(count, requests, how == 7 ? statuses : MPI_STATUSES_IGNORE);
            for (int i = 0; i < count; i++)
                if (!was_null[i])
                    indices[done++] = i;
            CHECK(done == left);
        }
        for (int i = 0; i < done; i++) {
            CHECK(requests[indices[i]] == MPI_REQUEST_NULL);
            end(&pairs[indices[i] / 2], indices[i] % 2);
        }
        left -= done;
    }
}

static void mix_on(MPI_Comm by_torus, int turns)
{
    static MPI_Request requests[2 * MOST];
    MPI_Comm by_mpi; /* without blocking calls it gets no lane */

    own_seed = 77u + (unsigned)rank;
    MPI_Comm_dup(by_torus, &by_mpi);
    for (int turn = 0; turn < turns; turn++) {
        const int count = turn == 0 ? MOST : 1 + any(12);
        for (int i = 0; i < count; i++) {
            choose_pair(&pairs[i]);
            begin(&pairs[i], 0, by_torus, &requests[2 * i]);
            begin(&pairs[i], 1, by_mpi, &requests[2 * i + 1]);
            if (turn % 2 == 1 && any(4) == 0)
                use(by_torus);
        }
        complete(requests, 2 * count);
    }
    MPI_Comm_free(&by_mpi);
}

static void mixed(void)
{
    prepare(MPI_COMM_WORLD);
    mix_on(MPI_COMM_WORLD, 40);
}

/* ---- Communicators --------------------------------------------------------------------------- */

static void row(void)
{
    MPI_Comm its_row;

    prepare(MPI_COMM_WORLD); /* only a communicator of all nodes can open the lane */
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &its_row);
    prepare(its_row);
    MPI_Comm_size(its_row, &size);
    MPI_Comm_rank(its_row, &rank);
    mix_on(its_row, 20);
    MPI_Comm_free(&its_row);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* A communicator is freed while its calls are under way, and another one gets its lane. */
static void freed(void)
{
    for (int turn = 0; turn < 3; turn++) {
        MPI_Request requests[30];
        int sums[30];
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        prepare(comm);
        for (int i = 0; i < 30; i++)
            MPI_Iallreduce(&rank, &sums[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
        MPI_Comm_free(&comm);
        use(MPI_COMM_WORLD);
        MPI_Waitall(30, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 30; i++)
            CHECK(sums[i] == size * (size - 1) / 2);
    }
}

/* Calls on two communicators, nonblocking and blocking, in an order that differs between ranks. */
static void orders(void)
{
    MPI_Comm comms[2] = {MPI_COMM_WORLD};
    MPI_Request requests[2];
    int values[2], sum;

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 2; k++) {
            const int which = (k + rank) % 2;
            values[which] = rank == i % size ? i + which : -1;
            MPI_Ibcast(&values[which], 1, MPI_INT, i % size, comms[which], &requests[which]);
            if (which == 0 && i % 3 == 0)
                MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[0]);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(values[0] == i && values[1] == i + 1);
        MPI_Barrier(comms[i % 2]);
    }
    MPI_Comm_free(&comms[1]);
}

/* Rank 0 begins calls, and makes others wait for messages that it sends only then. */
static void independent(void)
{
    enum { CALLS = 100 };
    MPI_Request requests[CALLS];
    int values[CALLS], message = 0;

    prepare(MPI_COMM_WORLD);
    if (rank != 0)
        MPI_Recv(&message, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < CALLS; i++) {
        values[i] = rank == 0 ? i : -1;
        MPI_Ibcast(&values[i], 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 1; i < size && rank == 0; i++)
        MPI_Send(&message, 1, MPI_INT, i, 3, MPI_COMM_WORLD);
    for (int i = CALLS - 1; i >= 0; i--)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < CALLS; i++)
        CHECK(values[i] == i);
}

/* ---- Failure --------------------------------------------------------------------------------- */

static int handled_code;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    handled_code = *code;
}

static void check_error(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;

    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    CHECK(class > MPI_ERR_LASTCODE);
    say("%s: %s", what, text);
}

/* Calls are under way that rank 0 has not made when the torus fails. It makes them afterwards. */
static void until_error(void)
{
    MPI_Request requests[6], receive;
    MPI_Errhandler errhandler;
    MPI_Status statuses[6];
    int sums[6], message = 0, code;

    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    prepare(MPI_COMM_WORLD);
    MPI_Irecv(&message, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &receive);
    for (int i = 0; i < 5 && rank != 0; i++)
        MPI_Iallreduce(&rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    say("running");
    do
        code = MPI_Allreduce(&rank, &sums[5], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    while (code == MPI_SUCCESS);
    for (int i = 0; i < 5 && rank == 0; i++) {
        code = MPI_Iallreduce(&rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
        if (code == MPI_SUCCESS) /* the group for these calls has failed a little later */
            code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        CHECK(code != MPI_SUCCESS && requests[i] == MPI_REQUEST_NULL);
    }
    if (rank != 0) {
        handled_code = MPI_SUCCESS;
        code = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK(requests[0] == MPI_REQUEST_NULL && handled_code == code);
        requests[0] = receive;
        MPI_Send(&message, 1, MPI_INT, rank, 4, MPI_COMM_WORLD);
        CHECK(MPI_Waitall(5, requests, statuses) == MPI_ERR_IN_STATUS);
        CHECK(handled_code == MPI_ERR_IN_STATUS && statuses[0].MPI_ERROR == MPI_SUCCESS);
        for (int i = 1; i < 5; i++)
            CHECK(statuses[i].MPI_ERROR == code && requests[i] == MPI_REQUEST_NULL);
    }
    check_error(code, "error");
    MPI_Errhandler_free(&errhandler);
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct work {
    MPI_Comm comm;
    int turns;
};

static void *work(void *context)
{
    const struct work *w = context;
    unsigned seed = 9u + (unsigned)rank;

    for (int turn = 0; turn < w->turns; turn++) {
        MPI_Request requests[8];
        int sums[8], n, flag, index;

        MPI_Comm_size(w->comm, &n);
        for (int i = 0; i < 8; i++)
            MPI_Iallreduce(&n, &sums[i], 1, MPI_INT, MPI_SUM, w->comm, &requests[i]);
        if (turn % 3 == 0)
            use(w->comm);
        if (rand_r(&seed) % 2 == 0)
            for (int i = 0; i < 8; i++)
                MPI_Waitany(8, requests, &index, MPI_STATUS_IGNORE);
        else
            for (flag = 0; !flag;)
                MPI_Testall(8, requests, &flag, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 8; i++)
            CHECK(sums[i] == n * n);
    }
    return NULL;
}

/* Threads with communicators of their own. On odd ranks they begin in the opposite order. */
static void threads(void)
{
    enum { COMMS = 5 };
    MPI_Comm comms[COMMS] = {MPI_COMM_WORLD};
    struct work works[COMMS];
    pthread_t all[COMMS];

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[3]);
    MPI_Comm_dup(comms[2], &comms[4]);
    for (int i = 0; i < COMMS; i++) {
        const int k = rank % 2 == 0 ? i : COMMS - 1 - i;
        works[k] = (struct work){comms[k], 40};
        pthread_create(&all[k], NULL, work, &works[k]);
    }
    for (int i = 0; i < COMMS; i++)
        pthread_join(all[i], NULL);
    for (int i = 1; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
}

/* A thread completes the requests that another one has begun. */
static void *wait_for_all(void *requests)
{
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    return NULL;
}

static void handed_over(void)
{
    for (int turn = 0; turn < 50; turn++) {
        MPI_Request requests[8];
        int sums[8];
        pthread_t other;

        for (int i = 0; i < 8; i++)
            MPI_Iallreduce(&rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
        pthread_create(&other, NULL, wait_for_all, requests);
        wait_for_all(requests + 4);
        pthread_join(other, NULL);
        for (int i = 0; i < 8; i++)
            CHECK(sums[i] == size * (size - 1) / 2);
    }
}

#define BEGUN 200 /* more than the torus can carry out at the same time */

/* Rank 0 waits in other functions of MPI before it completes its calls; the other ranks complete theirs before they let it
 * go on. Their calls need all calls of rank 0, which has begun them. */
static void many(void)
{
    static const int usual = 30; /* calls until nonblocking ones have a group */
    int sums[BEGUN], sum, word = 0;
    MPI_Request requests[BEGUN];
    MPI_Comm other;

    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int turn = 0; turn < usual + 2; turn++) {
        const int begun = turn < usual ? 1 : BEGUN;
        for (int i = 0; i < begun; i++)
            MPI_Iallreduce(&rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
        if (rank > 0)
            MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
        if (turn % 2 == 0)
            MPI_Barrier(other);
        else if (rank == 0)
            MPI_Recv(&word, 1, MPI_INT, 1, 5, other, MPI_STATUS_IGNORE);
        else if (rank == 1)
            MPI_Send(&word, 1, MPI_INT, 0, 5, other);
        if (rank == 0)
            MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < begun; i++)
            CHECK(sums[i] == size * (size - 1) / 2);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&other);
}

static atomic_bool has_ended;

/* Requests of MPI, whose handles may be those that requests of the torus had a moment ago. */
static void *exchange_alone(void *unused)
{
    (void)unused;
    while (!atomic_load(&has_ended)) {
        MPI_Request requests[4];
        int in[2] = {0, 0}, out[2] = {1, 2};
        for (int i = 0; i < 2; i++) {
            MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[2 * i]);
            MPI_Isend(&out[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[2 * i + 1]);
        }
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        CHECK(in[0] == 1 && in[1] == 2);
    }
    return NULL;
}

static void reused_handles(void)
{
    pthread_t other;

    pthread_create(&other, NULL, exchange_alone, NULL);
    for (int turn = 0; turn < 60; turn++) {
        MPI_Request requests[4];
        int sums[4];
        for (int i = 0; i < 4; i++)
            MPI_Iallreduce(&rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 4; i++)
            CHECK(sums[i] == size * (size - 1) / 2);
    }
    atomic_store(&has_ended, true);
    pthread_join(other, NULL);
}

static const struct scenario scenarios[] = {
    {"mixed", mixed},
    {"reused-handles", reused_handles},
    {"many", many},
    {"row", row},
    {"freed", freed},
    {"orders", orders},
    {"independent", independent},
    {"until-error", until_error},
    {"threads", threads},
    {"handed-over", handed_over},
};

int main(int argc, char **argv)
{
    const char *const first = argc > 1 ? argv[1] : "";
    const bool threaded = strcmp(first, "threads") == 0 || strcmp(first, "handed-over") == 0 ||
                          strcmp(first, "reused-handles") == 0;

    return run_scenarios(scenarios, sizeof scenarios / sizeof scenarios[0], argc, argv,
                         threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
}
