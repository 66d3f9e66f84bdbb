/* A program of a group, for tests: group_program SOCKET NAME COMMAND...
 *
 *     all SEED ROUNDS   every operation with sizes drawn from SEED, checked, from all kinds of memory.
 *                       ROUNDS 0: until one of the programs has received SIGTERM. Prints "open"
 *     loop BYTES COUNT  alltoall of blocks of so many bytes; COUNT 0: for ever. Prints "open" when the
 *                       group is, and at the end the median time of a call in microseconds
 *     barrier COUNT     the same with barriers
 *     shrink SEED ROUNDS COUNT
 *                       calls barriers until the group fails since a node is down, and goes on in the
 *                       group that torus_group_shrink() makes of it; COUNT times, then as `all` with
 *                       its ROUNDS. Prints "open", and each time "shrunk", and the nodes that are left
 *     survive SEED      as `all` with ROUNDS 0, but when a link or a node has gone down, goes on in the
 *                       group that torus_group_shrink() makes of this one. Prints "open", and each time
 *                       "shrunk", the nodes that are left, and "open" again
 *     open COUNT        opens COUNT groups, NAME and a number each, and never closes one
 *
 * Exits with 0, or with 1 and "code: text" of the error on standard output. */
#include <torus/group.h>

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct torus_error e;
static struct torus_group *group;
static uint32_t rank, size;
static uint64_t chance_state;
static bool survives; /* to `gone_down`, when the group has failed so that shrinking helps */
static jmp_buf gone_down;

static void give_up(void)
{
    if (survives && e.code == TORUS_ERROR_LINK)
        longjmp(gone_down, 1);
    (void)printf("%s: %s\n", torus_error_name(e.code), e.text);
    (void)fflush(stdout);
    _exit(1);
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            give_up();                                                                             \
    } while (0)

static void wrong(const char *what, size_t where)
{
    (void)printf("wrong: %s at node %u, byte %zu\n", what, (unsigned)rank, where);
    (void)fflush(stdout);
    _exit(1);
}

/* The same on all members. */
static uint64_t chance(uint64_t below)
{
    uint64_t z = chance_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static uint8_t byte_of(uint32_t from, uint32_t to, size_t at, unsigned round)
{
    return (uint8_t)(from * 31 + to * 17 + at * 7 + at / 253 + round * 3);
}

static void write_block(uint8_t *to, uint32_t source, uint32_t destination, size_t bytes,
                        unsigned round)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = byte_of(source, destination, i, round);
}

static void check_block(const char *what, const uint8_t *at, uint32_t source, uint32_t destination,
                        size_t bytes, unsigned round)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != byte_of(source, destination, i, round))
            wrong(what, i);
}

static size_t draw_size(void)
{
    static const size_t most[] = {2, 100, 5000, 100000};

    return chance(most[chance(4)]);
}

/* ---- Every operation ------------------------------------------------------------------------- */

#define ROOM ((size_t)2 << 20)

static void check_alltoall(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t block = draw_size() % (ROOM / size);
    uint8_t *out = in_place ? to : from;

    for (uint32_t i = 0; i < size; i++)
        write_block(out + i * block, rank, i, block, round);
    OK(torus_alltoall(group, in_place ? TORUS_IN_PLACE : from, to, block, &e));
    for (uint32_t i = 0; i < size; i++)
        check_block("alltoall", to + i * block, i, rank, block, round);
}

static void check_alltoallv(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t n[4 * size], out = 0, in = 0, limit = ROOM / size;

    for (uint32_t s = 0; s < size; s++)
        for (uint32_t d = 0; d < size; d++) {
            size_t bytes = draw_size() % limit;
            if (s == rank)
                n[d] = bytes;
            if (d == rank)
                n[2 * size + s] = bytes;
        }
    if (in_place)
        for (uint32_t i = 0; i < size; i++)
            n[i] = n[2 * size + i] = (i + rank) * 5 % limit;
    for (uint32_t i = size; i-- > 0;) { /* backwards, as offsets may be */
        n[size + i] = out;
        out += n[i];
        n[3 * size + i] = in;
        in += n[2 * size + i];
    }
    for (uint32_t i = 0; i < size; i++)
        write_block((in_place ? to : from) + n[size + i], rank, i, n[i], round);
    OK(torus_alltoallv(group, in_place ? TORUS_IN_PLACE : from, n, n + size, to, n + 2 * size,
                       n + 3 * size, &e));
    for (uint32_t i = 0; i < size; i++)
        check_block("alltoallv", to + n[3 * size + i], i, rank, n[2 * size + i], round);
}

static void check_allgather(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t block = draw_size() % (ROOM / size);

    write_block(in_place ? to + rank * block : from, rank, 0, block, round);
    OK(torus_allgather(group, in_place ? TORUS_IN_PLACE : from, to, block, &e));
    for (uint32_t i = 0; i < size; i++)
        check_block("allgather", to + i * block, i, 0, block, round);
}

static void check_allgatherv(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t n[2 * size], at = 0;

    for (uint32_t i = 0; i < size; i++) {
        n[i] = draw_size() % (ROOM / size);
        n[size + i] = at;
        at += n[i];
    }
    write_block(in_place ? to + n[size + rank] : from, rank, 0, n[rank], round);
    OK(torus_allgatherv(group, in_place ? TORUS_IN_PLACE : from, to, n, n + size, &e));
    for (uint32_t i = 0; i < size; i++)
        check_block("allgatherv", to + n[size + i], i, 0, n[i], round);
}

static void check_broadcast(uint8_t *to, unsigned round)
{
    uint32_t root = (uint32_t)chance(size);
    size_t bytes = draw_size();

    if (rank == root)
        write_block(to, root, 0, bytes, round);
    OK(torus_broadcast(group, to, bytes, root, &e));
    check_block("broadcast", to, root, 0, bytes, round);
}

static void check_allreduce(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t count = draw_size();
    int64_t *in = (int64_t *)(void *)(in_place ? to : from), *out = (int64_t *)(void *)to;

    for (size_t i = 0; i < count; i++)
        in[i] = (int64_t)(i * 3 + round) * (rank + 1);
    OK(torus_allreduce(group, in_place ? TORUS_IN_PLACE : from, to, count, TORUS_INT64, TORUS_SUM,
                       &e));
    for (size_t i = 0; i < count; i++)
        if (out[i] != (int64_t)(i * 3 + round) * size * (size + 1) / 2)
            wrong("allreduce", i * sizeof *out);
}

static void check_reduce(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t count = draw_size();
    uint32_t root = (uint32_t)chance(size);
    bool from_to = in_place && rank == root;
    int64_t *in = (int64_t *)(void *)(from_to ? to : from), *out = (int64_t *)(void *)to;

    for (size_t i = 0; i < count; i++)
        in[i] = (int64_t)(i * 7 + round) * (rank + 1);
    OK(torus_reduce(group, from_to ? TORUS_IN_PLACE : from, rank == root ? to : NULL, count,
                    TORUS_INT64, TORUS_SUM, root, &e));
    for (size_t i = 0; rank == root && i < count; i++)
        if (out[i] != (int64_t)(i * 7 + round) * size * (size + 1) / 2)
            wrong("reduce", i * sizeof *out);
}

static void check_reduce_scatter(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t n[size], count = 0, before = 0;
    uint32_t *in = (uint32_t *)(void *)(in_place ? to : from), *out = (uint32_t *)(void *)to;

    for (uint32_t i = 0; i < size; i++) {
        n[i] = draw_size() % (ROOM / 4 / size);
        count += n[i];
        before += i < rank ? n[i] : 0;
    }
    for (size_t i = 0; i < count; i++)
        in[i] = (uint32_t)(i * 5 + round + rank);
    OK(torus_reduce_scatter(group, in_place ? TORUS_IN_PLACE : from, to, n, TORUS_UINT32, TORUS_MAX,
                            &e));
    for (size_t i = 0; i < n[rank]; i++)
        if (out[i] != (uint32_t)((before + i) * 5 + round + size - 1))
            wrong("reduce_scatter", i * sizeof *out);
}

static volatile sig_atomic_t terminated;

static void on_sigterm(int signum)
{
    (void)signum;
    terminated = 1;
}

/* Whether one of the programs is to end: the same for all. */
static bool one_is_to_end(void)
{
    uint8_t here = (uint8_t)terminated, all = 0;

    OK(torus_allreduce(group, &here, &all, 1, TORUS_UINT8, TORUS_MAX, &e));
    return all != 0;
}

/* Several calls under way, which are waited for in another order. */
static void check_several(uint8_t *from, uint8_t *to, unsigned round)
{
    struct torus_call *call[5];
    size_t block = draw_size() % (ROOM / size), first = chance(5);
    uint64_t in[2] = {rank + 1, round}, out[2] = {0, 0}, all = 0;
    uint32_t root = (uint32_t)chance(size);
    uint8_t word = rank == root ? (uint8_t)round : 0;

    for (uint32_t i = 0; i < size; i++)
        write_block(from + i * block, rank, i, block, round);
    OK(torus_start_alltoall(group, from, to, block, &call[0], &e));
    OK(torus_start_allreduce(group, in, out, 2, TORUS_UINT64, TORUS_SUM, &call[1], &e));
    OK(torus_start_broadcast(group, &word, 1, root, &call[2], &e));
    OK(torus_start_barrier(group, &call[3], &e));
    OK(torus_start_reduce(group, in, &all, 1, TORUS_UINT64, TORUS_MAX, root, &call[4], &e));
    for (size_t i = 0; i < 5; i++)
        OK(torus_call_wait(call[(first + 3 * i) % 5], &e));
    for (uint32_t i = 0; i < size; i++)
        check_block("alltoall", to + i * block, i, rank, block, round);
    if (out[0] != (uint64_t)size * (size + 1) / 2 || out[1] != (uint64_t)size * round)
        wrong("allreduce", 0);
    if (word != (uint8_t)round)
        wrong("broadcast", 0);
    if (all != (rank == root ? size : 0))
        wrong("reduce", 0);
}

static struct torus_group *choice[3]; /* the whole, and its parts along the first two dimensions */
static unsigned choices = 1;
static bool has_shrunk; /* there are no parts then */

static void open_parts(void)
{
    choice[0] = group;
    if (has_shrunk || strchr(torus_group_dims(group), 'x') == NULL)
        return;
    for (choices = 1; choices < 3; choices++)
        if (torus_group_part(group, 1u << (choices - 1), &choice[choices], &e) != 0) {
            if (survives) /* of a group that has lost nodes or links, all members are refused */
                return;
            give_up();
        }
}

static void choose(uint64_t which)
{
    group = choice[which];
    rank = torus_group_rank(group);
    size = torus_group_size(group);
}

static void run_all(uint64_t seed, unsigned rounds)
{
    static uint8_t *plain[2]; /* allocated once: a program that survives runs this again */
    for (unsigned i = 0; i < 2; i++)
        plain[i] = plain[i] != NULL ? plain[i] : malloc(ROOM);
    uint8_t *shared[2] = {torus_memory_new(group, ROOM, &e), torus_memory_new(group, ROOM, &e)};

    if (shared[0] == NULL || shared[1] == NULL || plain[0] == NULL || plain[1] == NULL)
        give_up();
    chance_state = seed;
    if (rounds == 0)
        (void)signal(SIGTERM, on_sigterm);
    open_parts();
    (void)puts("open");
    (void)fflush(stdout);
    for (unsigned round = 0; rounds == 0 || round < rounds; round++) {
        choose(0);
        if (rounds == 0 && round % 8 == 7 && one_is_to_end())
            break;
        choose(chance(2) == 0 ? chance(choices) : 0);
        uint64_t what = chance(10), where = chance(4);
        uint8_t *from = (where & 1) != 0 ? plain[0] : shared[0];
        uint8_t *to = (where & 2) != 0 ? plain[1] : shared[1];
        bool in_place = chance(3) == 0;
        if (what == 0)
            check_alltoall(from, to, round, in_place);
        else if (what == 1)
            check_alltoallv(from, to, round, in_place);
        else if (what == 2)
            check_allgather(from, to, round, in_place);
        else if (what == 3)
            check_allgatherv(from, to, round, in_place);
        else if (what == 4)
            check_broadcast(to, round);
        else if (what == 5)
            check_allreduce(from, to, round, in_place);
        else if (what == 6)
            check_reduce_scatter(from, to, round, in_place);
        else if (what == 7)
            check_several(from, to, round);
        else if (what == 8)
            check_reduce(from, to, round, in_place);
        else
            OK(torus_barrier(group, &e));
    }
    choose(0);
}

/* ---- One operation --------------------------------------------------------------------------- */

static double now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void loop(bool barrier, size_t block, unsigned count)
{
    uint8_t *from = torus_memory_new(group, block * size + 1, &e);
    uint8_t *to = torus_memory_new(group, block * size + 1, &e);
    double *each = calloc(count + 1, sizeof *each);

    if (from == NULL || to == NULL)
        give_up();
    (void)puts("open");
    (void)fflush(stdout);
    for (unsigned i = 0; count == 0 || i < count; i++) {
        double start = now_us();
        if (barrier) {
            OK(torus_barrier(group, &e));
        } else {
            for (uint32_t d = 0; d < size; d++)
                write_block(from + d * block, rank, d, block, i);
            OK(torus_alltoall(group, from, to, block, &e));
            for (uint32_t s = 0; s < size; s++)
                check_block("alltoall", to + s * block, s, rank, block, i);
        }
        if (count > 0)
            each[i] = now_us() - start;
    }
    qsort(each, count, sizeof *each, by_size);
    (void)printf("%.1f\n", each[count / 2]);
    free(each);
}

/* Until it fails, with what only shrinking helps. */
static void wait_for_failure(void)
{
    while (torus_barrier(group, &e) == 0)
        ;
    if (e.code != TORUS_ERROR_LINK)
        give_up();
}

/* Of a group without some nodes. */
static void check_no_parts(void)
{
    struct torus_group *part;

    if (strchr(torus_group_dims(group), 'x') == NULL)
        return;
    if (torus_group_part(group, 1, &part, &e) == 0)
        wrong("part", 0);
    if (e.code != TORUS_ERROR_REFUSED || strstr(e.text, "members are missing") == NULL)
        give_up();
}

static void say_members(void)
{
    (void)printf("shrunk");
    for (uint32_t member = 0; member < size; member++)
        (void)printf(" %u", (unsigned)torus_group_node(group, member));
    (void)puts("");
    (void)fflush(stdout);
}

static void shrink(unsigned count)
{
    (void)puts("open");
    (void)fflush(stdout);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *old = torus_memory_new(group, 5000, &e);
        struct torus_group *failed = group;
        if (old == NULL)
            give_up();
        write_block(old, rank, rank, 5000, i);
        wait_for_failure();
        if (torus_group_shrink(failed, &group, &e) != 0)
            give_up();
        if (torus_barrier(failed, &e) == 0)
            wrong("barrier of a failed group", 0);
        check_block("memory of a failed group", old, rank, rank, 5000, i);
        torus_group_close(failed);
        rank = torus_group_rank(group);
        size = torus_group_size(group);
        check_no_parts();
        say_members();
    }
    has_shrunk = true;
}

static void survive(uint64_t seed)
{
    if (setjmp(gone_down) != 0) {
        struct torus_group *failed = choice[0];
        survives = false;
        OK(torus_group_shrink(failed, &group, &e));
        torus_group_close(failed); /* with its parts */
        rank = torus_group_rank(group);
        size = torus_group_size(group);
        say_members();
    }
    survives = true;
    choice[0] = group;
    run_all(seed, 0);
    survives = false;
}

static void open_many(struct torus_group_options *options, unsigned count)
{
    char name[64];

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%.40s-%u", options->name, i);
        struct torus_group_options o = *options;
        o.name = name;
        OK(torus_group_open(&o, &group, &e));
    }
}

int main(int argc, char **argv)
{
    struct torus_group_options options;

    if (argc < 5)
        return 2;
    torus_group_options_init(&options);
    options.socket = argv[1];
    options.name = argv[2];
    if (strcmp(argv[3], "open") == 0) {
        options.timeout_ms = 1000;
        open_many(&options, (unsigned)atoi(argv[4]));
        return 0;
    }
    OK(torus_group_open(&options, &group, &e));
    rank = torus_group_rank(group);
    size = torus_group_size(group);
    if (strcmp(argv[3], "shrink") == 0 && argc > 6) {
        shrink((unsigned)atoi(argv[6]));
        run_all((uint64_t)atoll(argv[4]), (unsigned)atoi(argv[5]));
    } else if (strcmp(argv[3], "all") == 0 && argc > 5)
        run_all((uint64_t)atoll(argv[4]), (unsigned)atoi(argv[5]));
    else if (strcmp(argv[3], "survive") == 0)
        survive((uint64_t)atoll(argv[4]));
    else if (strcmp(argv[3], "barrier") == 0)
        loop(true, 0, (unsigned)atoi(argv[4]));
    else if (argc > 5)
        loop(false, (size_t)atoll(argv[4]), (unsigned)atoi(argv[5]));
    torus_group_close(group);
    return 0;
}
