/* Times and verifies the collective operations of a library. scripts/bench runs this program on every node.
 *
 *   collective OPERATION SIZE [REPEATS]   measures once; rank 0 prints a JSON object
 *   collective --control SOCKET   each rank connects to that Unix socket, identifies itself, and then
 *                                 executes the commands that it receives, the same on all ranks:
 *       run OPERATION SIZE WARMUP REPEATS PAUSE BATCH MEMORY [VARIABLE VALUE]
 *       quit
 *
 * OPERATION is alltoall, allgather, broadcast (from rank 0), allreduce (sums of doubles) or barrier. SIZE
 * is in bytes: of a block, of the data, of the vector; 0 for a barrier. MEMORY is registered or ordinary,
 * which makes no difference to MPI. VARIABLE is a control variable of an MPI library (MPI_T) that selects the
 * algorithm; it is set before the communicator for the measurement is created. A rank that waits for a
 * command uses no CPU time, so several libraries can be measured in turn.
 *
 * With BATCH 0, the time of a repeat is the longest of all ranks, each from its own start after a pause
 * of PAUSE microseconds and a barrier to the return of the call. The contents differ between repeats and
 * depend on source, destination and position; every byte is compared, outside of the measured time.
 *
 * With another BATCH, BATCH calls follow each other without a pause. A time is that of a batch divided by
 * BATCH, the longest of all ranks. The data of the last call are verified.
 */
#include "collective.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;
static FILE *answers;   /* where rank 0 writes its JSON objects */
static uint64_t number; /* seed of the contents */

void give_up(const char *what)
{
    fprintf(stderr, "collective: rank %d: %s\n", rank, what);
    library_abort();
}

/* ---- contents ---- */

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ (value >> 29);
}

static uint64_t block_seed(int source, int destination)
{
    return mix(number * UINT64_C(0xd6e8feb86659fd93) + ((uint64_t)source << 32) +
               (uint64_t)destination);
}

static void fill(unsigned char *block, size_t size, uint64_t seed)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = mix(seed + at);
        memcpy(block + at, &word, size - at < 8 ? size - at : 8);
    }
}

static bool holds(const unsigned char *block, size_t size, uint64_t seed)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = mix(seed + at);
        if (memcmp(block + at, &word, size - at < 8 ? size - at : 8) != 0)
            return false;
    }
    return true;
}

/* ---- the operations ---- */

/* The memory areas of a measurement. */
struct areas {
    size_t size;
    unsigned char *send, *receive;
};

struct measured_operation {
    const char *name;
    bool send_blocks, receive_blocks; /* a block for each rank; otherwise one for all ranks */
    void (*fill)(const struct areas *a);
    void (*call)(const struct areas *a);
    uint64_t (*wrong)(const struct areas *a); /* blocks or elements */
};

static void fill_alltoall(const struct areas *a)
{
    for (int other = 0; other < ranks; other++)
        fill(a->send + (size_t)other * a->size, a->size, block_seed(rank, other));
}

static void call_alltoall(const struct areas *a)
{
    library_alltoall(a->send, a->receive, a->size);
}

static uint64_t wrong_alltoall(const struct areas *a)
{
    uint64_t wrong = 0;

    for (int other = 0; other < ranks; other++)
        wrong += !holds(a->receive + (size_t)other * a->size, a->size, block_seed(other, rank));
    return wrong;
}

static void fill_allgather(const struct areas *a)
{
    fill(a->send, a->size, block_seed(rank, 0));
}

static void call_allgather(const struct areas *a)
{
    library_allgather(a->send, a->receive, a->size);
}

static uint64_t wrong_allgather(const struct areas *a)
{
    uint64_t wrong = 0;

    for (int other = 0; other < ranks; other++)
        wrong += !holds(a->receive + (size_t)other * a->size, a->size, block_seed(other, 0));
    return wrong;
}

static void fill_broadcast(const struct areas *a)
{
    if (rank == 0)
        fill(a->receive, a->size, block_seed(0, 0));
}

static void call_broadcast(const struct areas *a)
{
    library_broadcast(a->receive, a->size);
}

static uint64_t wrong_broadcast(const struct areas *a)
{
    return !holds(a->receive, a->size, block_seed(0, 0));
}

/* A value that depends on the element and the rank, so small that sums are exact in any order. */
static double element(size_t index)
{
    return (double)(mix(block_seed(0, 0) + index) & 0xffff);
}

static double share(int of)
{
    return (double)(block_seed(of, 1) & 0xffffff);
}

static void fill_allreduce(const struct areas *a)
{
    double *vector = (double *)(void *)a->send, own = share(rank);

    for (size_t i = 0; i < a->size / sizeof(double); i++)
        vector[i] = element(i) + own;
}

static void call_allreduce(const struct areas *a)
{
    library_allreduce((double *)(void *)a->send, (double *)(void *)a->receive,
                      a->size / sizeof(double));
}

static uint64_t wrong_allreduce(const struct areas *a)
{
    const double *vector = (double *)(void *)a->receive;
    uint64_t wrong = 0;
    double shares = 0;

    for (int other = 0; other < ranks; other++)
        shares += share(other);
    for (size_t i = 0; i < a->size / sizeof(double); i++)
        wrong += vector[i] != element(i) * ranks + shares;
    return wrong;
}

static void fill_nothing(const struct areas *a)
{
    (void)a;
}

static void call_barrier(const struct areas *a)
{
    (void)a;
    library_barrier();
}

static uint64_t nothing_wrong(const struct areas *a)
{
    (void)a;
    return 0;
}

static const struct measured_operation operations[] = {
    {"alltoall", true, true, fill_alltoall, call_alltoall, wrong_alltoall},
    {"allgather", false, true, fill_allgather, call_allgather, wrong_allgather},
    {"broadcast", false, false, fill_broadcast, call_broadcast, wrong_broadcast},
    {"allreduce", false, false, fill_allreduce, call_allreduce, wrong_allreduce},
    {"barrier", false, false, fill_nothing, call_barrier, nothing_wrong},
};

static const struct measured_operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    give_up("unknown operation");
}

/* ---- measuring ---- */

/* The parameters of one command. */
struct order {
    const struct measured_operation *operation;
    size_t size;
    int warmup, repeats;
    long pause; /* microseconds */
    int batch;
    bool registered;
    const char *variable; /* or NULL */
    int value;
};

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A pause and a barrier on all ranks. */
static void meet(const struct order *o)
{
    struct timespec rest = {o->pause / 1000000, o->pause % 1000000 * 1000};

    while (o->pause > 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR)
        ;
    library_barrier();
}

/* Checks the received data, after a barrier: ranks share processors, and a rank that checks would slow down
 * ranks whose time still counts. */
static uint64_t wrong_contents(const struct order *o, const struct areas *a)
{
    library_barrier();
    return o->operation->wrong(a);
}

static void start_contents(const struct order *o, const struct areas *a)
{
    number++;
    o->operation->fill(a);
    meet(o);
}

/* Times each call by itself. Uncounted repeats have negative numbers. */
static uint64_t time_calls(const struct order *o, const struct areas *a, double *seconds)
{
    uint64_t wrong = 0;

    for (int i = -o->warmup; i < o->repeats; i++) {
        double begin, own;
        start_contents(o, a);
        begin = now();
        o->operation->call(a);
        own = now() - begin;
        wrong += wrong_contents(o, a);
        if (i >= 0)
            seconds[i] = own;
    }
    return wrong;
}

static uint64_t time_batches(const struct order *o, const struct areas *a, double *seconds)
{
    double begin;

    start_contents(o, a);
    begin = now();
    for (int i = -o->warmup; i < o->repeats; i++) {
        double end;
        for (int k = 0; k < o->batch; k++)
            o->operation->call(a);
        end = now();
        if (i >= 0)
            seconds[i] = (end - begin) / o->batch;
        begin = end;
    }
    return wrong_contents(o, a);
}

static void report(const struct order *o, const double *seconds, uint64_t wrong)
{
    fprintf(answers, "{\"size\":%zu,\"ranks\":%d,\"seconds\":[", o->size, ranks);
    for (int i = 0; i < o->repeats; i++)
        fprintf(answers, "%s%.9f", i ? "," : "", seconds[i]);
    fprintf(answers, "],\"wrong_blocks\":%" PRIu64 "}\n", wrong);
    fflush(answers);
}

static void measure(const struct order *o)
{
    size_t send = (o->operation->send_blocks ? (size_t)ranks : 1) * o->size;
    size_t receive = (o->operation->receive_blocks ? (size_t)ranks : 1) * o->size;
    double *seconds = calloc((size_t)o->repeats, sizeof *seconds);
    struct areas a = {.size = o->size};
    uint64_t wrong;

    if (seconds == NULL)
        give_up("out of memory");
    library_prepare(o->variable, o->value);
    if (o->size > 0) {
        a.send = library_new(send, o->registered);
        a.receive = library_new(receive, o->registered);
        memset(a.receive, 0xff, receive); /* otherwise the first call would wait for its pages */
    }
    wrong = o->batch > 0 ? time_batches(o, &a, seconds) : time_calls(o, &a, seconds);
    library_largest(seconds, (size_t)o->repeats);
    library_sum(&wrong);
    if (rank == 0)
        report(o, seconds, wrong);
    if (o->size > 0) {
        library_free(a.send, send, o->registered);
        library_free(a.receive, receive, o->registered);
    }
    library_finish();
    free(seconds);
}

/* ---- commands ---- */

static FILE *connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FILE *file;

    if (strlen(path) >= sizeof(address.sun_path))
        give_up("the socket's path is too long");
    memcpy(address.sun_path, path, strlen(path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        !(file = fdopen(fd, "r")) || !(answers = fdopen(dup(fd), "w")))
        give_up("cannot connect to the control socket");
    return file;
}

static void run(const char *line)
{
    char operation[16], memory[16], variable[128];
    struct order o = {0};
    int words = sscanf(line, "run %15s %zu %d %d %ld %d %15s %127s %d", operation, &o.size,
                       &o.warmup, &o.repeats, &o.pause, &o.batch, memory, variable, &o.value);

    if ((words != 7 && words != 9) || o.size > INT32_MAX || o.warmup < 0 || o.repeats < 1)
        give_up("a command that it does not understand");
    o.operation = find_operation(operation);
    o.registered = strcmp(memory, "registered") == 0;
    o.variable = words == 9 ? variable : NULL;
    measure(&o);
}

static void obey(const char *path)
{
    char line[256], host[64] = "";
    FILE *orders = connect_to(path);

    gethostname(host, sizeof(host) - 1);
    fprintf(answers, "{\"rank\":%d,\"ranks\":%d,\"host\":\"%s\"}\n", rank, ranks, host);
    fflush(answers);
    while (fgets(line, sizeof(line), orders)) {
        if (strcmp(line, "quit\n") == 0)
            library_end();
        run(line);
    }
    _exit(1); /* the sender of the commands has ended */
}

int main(int argc, char **argv)
{
    struct order o = {.warmup = 1, .repeats = 5};

    library_start(&argc, &argv, &rank, &ranks);
    if (argc == 3 && strcmp(argv[1], "--control") == 0)
        obey(argv[2]);
    answers = stdout;
    if (argc != 3 && argc != 4)
        give_up("usage: collective OPERATION SIZE [REPEATS] | --control SOCKET");
    o.operation = find_operation(argv[1]);
    o.size = strtoul(argv[2], NULL, 10);
    if (argc == 4)
        o.repeats = atoi(argv[3]);
    if (o.repeats < 1 || o.size > INT32_MAX)
        give_up("SIZE or REPEATS is out of range");
    measure(&o);
    library_end();
}
