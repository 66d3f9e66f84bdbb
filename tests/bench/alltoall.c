/* MPI_Alltoall, timed and verified: the program of scripts/bench's MPI systems.
 *
 *   alltoall SIZE [REPEATS]     measures once; rank 0 prints a JSON object
 *   alltoall --control SOCKET   each rank connects to that Unix socket, identifies itself, and then
 *                               executes the commands that it receives, the same on all ranks:
 *       run SIZE WARMUP REPEATS [VARIABLE VALUE]
 *       quit
 *
 * VARIABLE is a control variable of the library (MPI_T) that selects the algorithm; it is set
 * before the communicator for the measurement is created. A rank that waits for a command uses no
 * CPU time, so several libraries can be measured in turn.
 *
 * The time of a repeat is the longest of all ranks, each from its own start after a barrier to the
 * return of MPI_Alltoall. The contents differ between repeats and depend on source, destination and
 * position; every byte is compared, outside of the measured time.
 *
 * Errors of the library end the program (MPI_ERRORS_ARE_FATAL). The end is a barrier and _exit():
 * MPI_Finalize may wait for ever.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int rank, ranks;
static FILE *answers; /* where rank 0 writes its JSON objects */
static uint64_t exchanges;

static void give_up(const char *what)
{
    fprintf(stderr, "alltoall: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

/* ---- contents ---- */

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ (value >> 29);
}

static uint64_t block_seed(int source, int destination)
{
    return mix(exchanges * UINT64_C(0xd6e8feb86659fd93) + ((uint64_t)source << 32) +
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

/* ---- the library's control variables ---- */

static void set_variable(const char *name, int value)
{
    int index, count, verbosity, name_length = 0, desc_length = 0, binding, scope;
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_cvar_handle handle;

    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS)
        give_up("no such control variable");
    if (MPI_T_cvar_get_info(index, NULL, &name_length, &verbosity, &type, &values, NULL,
                            &desc_length, &binding, &scope) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        give_up("the control variable cannot be used");
    if ((type != MPI_INT && type != MPI_UNSIGNED) || count != 1)
        give_up("the control variable is no number");
    if (MPI_T_cvar_write(handle, &value) != MPI_SUCCESS)
        give_up("the control variable cannot be set");
    MPI_T_cvar_handle_free(&handle);
}

/* ---- measuring ---- */

static unsigned char *allocate(size_t size)
{
    void *memory =
        mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        give_up("no memory");
    return memory;
}

static double exchange(MPI_Comm comm, unsigned char *out, unsigned char *in, size_t size,
                       uint64_t *wrong)
{
    double begin, own, longest = 0;

    exchanges++;
    for (int other = 0; other < ranks; other++)
        fill(out + (size_t)other * size, size, block_seed(rank, other));
    MPI_Barrier(comm);
    begin = MPI_Wtime();
    MPI_Alltoall(out, (int)size, MPI_BYTE, in, (int)size, MPI_BYTE, comm);
    own = MPI_Wtime() - begin;
    for (int other = 0; other < ranks; other++)
        if (!holds(in + (size_t)other * size, size, block_seed(other, rank)))
            (*wrong)++;
    MPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
    return longest;
}

static void measure(size_t size, int warmup, int repeats, const char *variable, int value)
{
    unsigned char *out = allocate(size * (size_t)ranks), *in = allocate(size * (size_t)ranks);
    uint64_t wrong = 0, all_wrong = 0;
    MPI_Comm comm;

    if (variable)
        set_variable(variable, value);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < warmup; i++)
        exchange(comm, out, in, size, &wrong);
    if (rank == 0)
        fprintf(answers, "{\"size\":%zu,\"ranks\":%d,\"seconds\":[", size, ranks);
    for (int i = 0; i < repeats; i++) {
        double seconds = exchange(comm, out, in, size, &wrong);
        if (rank == 0)
            fprintf(answers, "%s%.9f", i ? "," : "", seconds);
    }
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, 0, comm);
    if (rank == 0) {
        fprintf(answers, "],\"wrong_blocks\":%" PRIu64 "}\n", all_wrong);
        fflush(answers);
    }
    MPI_Comm_free(&comm);
    munmap(out, size * (size_t)ranks);
    munmap(in, size * (size_t)ranks);
}

/* ---- being told what to do ---- */

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
        give_up("nobody at the control socket");
    return file;
}

static void obey(const char *path)
{
    char line[256], variable[128], host[64] = "";
    FILE *orders = connect_to(path);

    gethostname(host, sizeof(host) - 1);
    fprintf(answers, "{\"rank\":%d,\"ranks\":%d,\"host\":\"%s\"}\n", rank, ranks, host);
    fflush(answers);
    while (fgets(line, sizeof(line), orders)) {
        size_t size;
        int warmup, repeats, value, words;

        if (strcmp(line, "quit\n") == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            _exit(0);
        }
        words = sscanf(line, "run %zu %d %d %127s %d", &size, &warmup, &repeats, variable, &value);
        if ((words != 3 && words != 5) || size > INT32_MAX)
            give_up("an order that makes no sense");
        measure(size, warmup, repeats, words == 5 ? variable : NULL, value);
    }
    _exit(1); /* whoever gave the orders has gone */
}

int main(int argc, char **argv)
{
    int level;

    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level) != MPI_SUCCESS ||
        MPI_Init(&argc, &argv) != MPI_SUCCESS)
        return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 3 && strcmp(argv[1], "--control") == 0)
        obey(argv[2]);
    answers = stdout;
    if (argc != 2 && argc != 3)
        give_up("usage: alltoall SIZE [REPEATS] | --control SOCKET");
    measure(strtoul(argv[1], NULL, 10), 1, argc == 3 ? atoi(argv[2]) : 5, NULL, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
}
