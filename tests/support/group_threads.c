/* Several threads of one program use libtorus, each its own groups, for tests with the thread sanitizer:
 *
 *     group_threads SOCKET THREADS ROUNDS
 *     group_threads race
 *
 * Each thread opens a group of all nodes, and makes collective calls, calls that it does not wait for, messages, calls in a
 * part, and memory. Another thread pauses in the calls of all of them, as libtorus permits. Between the rounds, each
 * thread forks a child, which may not use the groups, and opens its group anew. Prints "THREADS threads: right", or exits with 1.
 *
 * `race` only shows that the sanitizer works: two threads write to the same variable. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <torus/group.h>
#include <unistd.h>

#define THREADS_MOST 8u
#define STARTED 6u
#define BLOCK 3000u
#define LARGE 200000u /* elements: a call with waves */
#define REPEAT 4u

/* What a thread shares with the one that pauses in its calls. */
struct worker {
    pthread_t thread;
    unsigned number, rounds;
    const char *socket;
    pthread_mutex_t mutex;
    const struct torus_call *paused; /* NULL: no call */
    struct torus_group *group;
    uint32_t rank, size;
};

static struct worker worker[THREADS_MOST];
static atomic_bool over;
static unsigned workers;

static void give_up(const struct worker *w, const char *what, const struct torus_error *e)
{
    (void)fprintf(stderr, "thread %u: %s: %s\n", w->number, what, e != NULL ? e->text : "wrong");
    _exit(1);
}

#define OK(what, call)                                                                             \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            give_up(w, what, &e);                                                                  \
    } while (0)

static void open_group(struct worker *w)
{
    struct torus_group_options options;
    struct torus_error e;
    char name[32];

    (void)snprintf(name, sizeof name, "thread %u", w->number);
    torus_group_options_init(&options);
    options.socket = w->socket;
    options.name = name;
    OK("open", torus_group_open(&options, &w->group, &e));
    w->rank = torus_group_rank(w->group);
    w->size = torus_group_size(w->group);
}

/* Lets the other thread pause in this call; NULL: in none. */
static void show(struct worker *w, const struct torus_call *call)
{
    (void)pthread_mutex_lock(&w->mutex);
    w->paused = call;
    (void)pthread_mutex_unlock(&w->mutex);
}

static uint8_t byte_of(unsigned thread, uint32_t from, uint32_t to)
{
    return (uint8_t)(thread * 50 + from * 7 + to);
}

static void exchange(struct worker *w, bool shared)
{
    struct torus_error e;
    const size_t bytes = (size_t)w->size * BLOCK;
    uint8_t *send = shared ? torus_memory_new(w->group, bytes, &e) : malloc(bytes);
    uint8_t *receive = malloc(bytes);
    struct torus_call *call;

    if (send == NULL || receive == NULL)
        give_up(w, "memory", NULL);
    for (uint32_t to = 0; to < w->size; to++)
        memset(send + (size_t)to * BLOCK, byte_of(w->number, w->rank, to), BLOCK);
    OK("alltoall", torus_start_alltoall(w->group, send, receive, BLOCK, &call, &e));
    show(w, call);
    while (!torus_call_pause(call, 100000))
        ;
    show(w, NULL);
    OK("alltoall", torus_call_wait(call, &e));
    for (uint32_t from = 0; from < w->size; from++)
        if (receive[from * BLOCK] != byte_of(w->number, from, w->rank) ||
            receive[(from + 1) * BLOCK - 1] != byte_of(w->number, from, w->rank))
            give_up(w, "alltoall", NULL);
    free(receive);
    if (shared)
        torus_memory_free(w->group, send);
    else
        free(send);
}

static void reduce(struct worker *w, struct torus_group *group, size_t count)
{
    struct torus_error e;
    int64_t *vector = malloc(count * sizeof *vector);
    const uint32_t size = torus_group_size(group);

    for (size_t i = 0; i < count; i++)
        vector[i] = (int64_t)i + w->number;
    OK("allreduce",
       torus_allreduce(group, TORUS_IN_PLACE, vector, count, TORUS_INT64, TORUS_SUM, &e));
    for (size_t i = 0; i < count; i++)
        if (vector[i] != ((int64_t)i + w->number) * size)
            give_up(w, "allreduce", NULL);
    free(vector);
}

/* Starts several calls, and ends them by testing, last first. */
static void start_many(struct worker *w)
{
    struct torus_call *call[STARTED];
    uint64_t value[STARTED];
    struct torus_error e;

    for (unsigned i = 0; i < STARTED; i++) {
        value[i] = w->rank == i % w->size ? 1000 * w->number + i : 0;
        OK("broadcast",
           torus_start_broadcast(w->group, &value[i], sizeof value[i], i % w->size, &call[i], &e));
    }
    for (unsigned i = STARTED; i-- > 0;) {
        int result;
        while ((result = torus_call_test(call[i], &e)) == 0)
            (void)torus_call_pause(call[i], 1000000);
        if (result < 0)
            give_up(w, "broadcast", &e);
        if (value[i] != 1000 * w->number + i)
            give_up(w, "broadcast", NULL);
    }
}

/* Each member sends the next one a message, and receives one from the member before it. */
static void pass_on(struct worker *w)
{
    const uint32_t next = (w->rank + 1) % w->size, before = (w->rank + w->size - 1) % w->size;
    uint8_t mine[BLOCK], other[BLOCK] = {0};
    struct torus_call *call;
    struct torus_error e;

    if (w->size == 1)
        return;
    memset(mine, byte_of(w->number, w->rank, next), sizeof mine);
    OK("send", torus_start_send(w->group, mine, sizeof mine, next, w->number, &call, &e));
    OK("receive", torus_receive(w->group, other, sizeof other, before, w->number, &e));
    OK("send", torus_call_wait(call, &e));
    if (other[0] != byte_of(w->number, before, w->rank) || other[BLOCK - 1] != other[0])
        give_up(w, "message", NULL);
}

/* A child may not use the group; that it closes its copy disturbs nobody. */
static void fork_child(struct worker *w)
{
    struct torus_error e;
    const pid_t child = fork();
    int status;

    if (child == 0) {
        const bool refused = torus_barrier(w->group, &e) != 0 && e.code == TORUS_ERROR_USAGE;
        torus_group_close(w->group);
        _exit(refused ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        give_up(w, "a child could use the group", NULL);
}

static void *work(void *context)
{
    struct worker *w = context;
    struct torus_group *row;
    struct torus_error e;

    open_group(w);
    for (unsigned round = 0; round < w->rounds; round++) {
        OK("part", torus_group_part(w->group, 1, &row, &e));
        for (unsigned i = 0; i < REPEAT; i++) {
            uint32_t changes;
            exchange(w, i % 2 == 0);
            reduce(w, w->group, 1 + i);
            reduce(w, row, 100);
            start_many(w);
            pass_on(w);
            OK("changes", torus_group_changes(w->group, &changes, &e));
        }
        reduce(w, w->group, LARGE);
        if ((round + w->number) % 2 == 0)
            fork_child(w);
        OK("barrier", torus_barrier(w->group, &e));
        torus_group_close(w->group);
        open_group(w);
    }
    torus_group_close(w->group);
    return NULL;
}

/* Pauses in the calls of all threads until they are over. */
static void *pause_everywhere(void *context)
{
    (void)context;
    while (!over)
        for (unsigned i = 0; i < workers; i++) {
            (void)pthread_mutex_lock(&worker[i].mutex);
            if (worker[i].paused != NULL)
                (void)torus_call_pause(worker[i].paused, 10000);
            (void)pthread_mutex_unlock(&worker[i].mutex);
            (void)usleep(100);
        }
    return NULL;
}

static unsigned written;

static void *write_it(void *context)
{
    (void)context;
    for (unsigned i = 0; i < 1000; i++)
        written += i;
    return NULL;
}

/* Writes to a variable from two threads at the same time. */
static int race(void)
{
    pthread_t other;

    if (pthread_create(&other, NULL, write_it, NULL) != 0)
        return 1;
    (void)write_it(NULL);
    (void)pthread_join(other, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t pauses;

    if (argc == 2 && strcmp(argv[1], "race") == 0)
        return race();
    if (argc != 4 || (workers = (unsigned)atoi(argv[2])) == 0 || workers > THREADS_MOST)
        return 2;
    for (unsigned i = 0; i < workers; i++) {
        worker[i] =
            (struct worker){.number = i, .rounds = (unsigned)atoi(argv[3]), .socket = argv[1]};
        (void)pthread_mutex_init(&worker[i].mutex, NULL);
    }
    if (pthread_create(&pauses, NULL, pause_everywhere, NULL) != 0)
        return 1;
    for (unsigned i = 0; i < workers; i++)
        if (pthread_create(&worker[i].thread, NULL, work, &worker[i]) != 0)
            return 1;
    for (unsigned i = 0; i < workers; i++)
        (void)pthread_join(worker[i].thread, NULL);
    over = true;
    (void)pthread_join(pauses, NULL);
    (void)printf("%u threads: right\n", workers);
    return 0;
}
