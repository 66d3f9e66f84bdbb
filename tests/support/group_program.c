/* A program of a group, for tests: group_program SOCKET NAME COMMAND... With NAME:RANK,RANK... the group is one of these
 * nodes.
 *
 *     all SEED ROUNDS   every operation with sizes drawn from SEED, checked, from all kinds of memory.
 *                       With ROUNDS 0, until one of the programs receives SIGTERM. Prints "open"
 *     loop BYTES COUNT  alltoall of blocks of BYTES bytes; COUNT 0: for ever. Prints "open" when the
 *                       group is open, and at the end the median time of a call in microseconds
 *     barrier COUNT     the same with barriers
 *     shrink SEED ROUNDS COUNT
 *                       calls barriers until the group fails because a node is down, and goes on in the
 *                       group that torus_group_shrink() makes; COUNT times, then continues as `all` with
 *                       ROUNDS. Prints "open", and each time "shrunk" and the nodes that are left
 *     survive SEED      as `all` with ROUNDS 0, but when a link or a node goes down, goes on in the
 *                       group that torus_group_shrink() makes. Prints "open", and each time "shrunk", the
 *                       nodes that are left, and "open" again
 *     open COUNT        opens COUNT groups, NAME and a number each, and never closes one
 *
 * Exits with 0, or with 1 and "code: text" of the error on standard output. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <torus/group.h>
#include <unistd.h>

/* The size in bytes of each area that operations read or write. */
#define CHECKED_ROOM ((size_t)2 << 20)

struct checked_group {
    struct torus_group *group;
    uint32_t rank, size;
    struct torus_error error; /* the error of the last call that failed */
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            checked_give_up();                                                                     \
    } while (0)

static struct checked_group self;

/* If set, checked_give_up() jumps to checked_gone_down when the group fails because a link or a node is down. */
static bool checked_survives;

static jmp_buf checked_gone_down;

static uint64_t chance_state;

/* Prints self.error as "code: text", and ends the program with status 1. */
static void checked_give_up(void)
{
    if (checked_survives && self.error.code == TORUS_ERROR_LINK)
        longjmp(checked_gone_down, 1);
    (void)printf("%s: %s\n", torus_error_name(self.error.code), self.error.text);
    (void)fflush(stdout);
    _exit(1);
}

/* Prints which data are wrong, and at which byte, and ends the program with status 1. */
static void checked_wrong(const char *what, size_t where)
{
    (void)printf("wrong: %s at node %u, byte %zu\n", what, (unsigned)self.rank, where);
    (void)fflush(stdout);
    _exit(1);
}

static uint64_t checked_chance(uint64_t below)
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

/* The block that one member sends to another in a round: writes it, or checks it and ends the program if it is
 * wrong. */
static void checked_write_block(uint8_t *to, uint32_t source, uint32_t destination, size_t bytes,
                                unsigned round)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = byte_of(source, destination, i, round);
}

static void checked_block(const char *what, const uint8_t *at, uint32_t source,
                          uint32_t destination, size_t bytes, unsigned round)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != byte_of(source, destination, i, round))
            checked_wrong(what, i);
}

static size_t draw_size(void)
{
    static const size_t most[] = {2, 100, 5000, 100000};

    return checked_chance(most[checked_chance(4)]);
}

static void check_alltoall(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t block = draw_size() % (CHECKED_ROOM / self.size);
    uint8_t *out = in_place ? to : from;

    for (uint32_t i = 0; i < self.size; i++)
        checked_write_block(out + i * block, self.rank, i, block, round);
    OK(torus_alltoall(self.group, in_place ? TORUS_IN_PLACE : from, to, block, &self.error));
    for (uint32_t i = 0; i < self.size; i++)
        checked_block("alltoall", to + i * block, i, self.rank, block, round);
}

static void check_alltoallv(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t n[4 * self.size], out = 0, in = 0, limit = CHECKED_ROOM / self.size;

    for (uint32_t s = 0; s < self.size; s++)
        for (uint32_t d = 0; d < self.size; d++) {
            size_t bytes = draw_size() % limit;
            if (s == self.rank)
                n[d] = bytes;
            if (d == self.rank)
                n[2 * self.size + s] = bytes;
        }
    if (in_place)
        for (uint32_t i = 0; i < self.size; i++)
            n[i] = n[2 * self.size + i] = (i + self.rank) * 5 % limit;
    for (uint32_t i = self.size; i-- > 0;) { /* offsets may fall */
        n[self.size + i] = out;
        out += n[i];
        n[3 * self.size + i] = in;
        in += n[2 * self.size + i];
    }
    for (uint32_t i = 0; i < self.size; i++)
        checked_write_block((in_place ? to : from) + n[self.size + i], self.rank, i, n[i], round);
    OK(torus_alltoallv(self.group, in_place ? TORUS_IN_PLACE : from, n, n + self.size, to,
                       n + 2 * self.size, n + 3 * self.size, &self.error));
    for (uint32_t i = 0; i < self.size; i++)
        checked_block("alltoallv", to + n[3 * self.size + i], i, self.rank, n[2 * self.size + i],
                      round);
}

static void check_allgather(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t block = draw_size() % (CHECKED_ROOM / self.size);

    checked_write_block(in_place ? to + self.rank * block : from, self.rank, 0, block, round);
    OK(torus_allgather(self.group, in_place ? TORUS_IN_PLACE : from, to, block, &self.error));
    for (uint32_t i = 0; i < self.size; i++)
        checked_block("allgather", to + i * block, i, 0, block, round);
}

static void check_allgatherv(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t n[2 * self.size], at = 0;

    for (uint32_t i = 0; i < self.size; i++) {
        n[i] = draw_size() % (CHECKED_ROOM / self.size);
        n[self.size + i] = at;
        at += n[i];
    }
    checked_write_block(in_place ? to + n[self.size + self.rank] : from, self.rank, 0, n[self.rank],
                        round);
    OK(torus_allgatherv(self.group, in_place ? TORUS_IN_PLACE : from, to, n, n + self.size,
                        &self.error));
    for (uint32_t i = 0; i < self.size; i++)
        checked_block("allgatherv", to + n[self.size + i], i, 0, n[i], round);
}

static void check_broadcast(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    uint32_t root = (uint32_t)checked_chance(self.size);
    size_t bytes = draw_size();

    if (self.rank == root)
        checked_write_block(to, root, 0, bytes, round);
    OK(torus_broadcast(self.group, to, bytes, root, &self.error));
    checked_block("broadcast", to, root, 0, bytes, round);
}

static void check_allreduce(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t count = draw_size();
    int64_t *in = (int64_t *)(void *)(in_place ? to : from), *out = (int64_t *)(void *)to;

    for (size_t i = 0; i < count; i++)
        in[i] = (int64_t)(i * 3 + round) * (self.rank + 1);
    OK(torus_allreduce(self.group, in_place ? TORUS_IN_PLACE : from, to, count, TORUS_INT64,
                       TORUS_SUM, &self.error));
    for (size_t i = 0; i < count; i++)
        if (out[i] != (int64_t)(i * 3 + round) * self.size * (self.size + 1) / 2)
            checked_wrong("allreduce", i * sizeof *out);
}

static void check_reduce_scatter(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t n[self.size], count = 0, before = 0;
    uint32_t *in = (uint32_t *)(void *)(in_place ? to : from), *out = (uint32_t *)(void *)to;

    for (uint32_t i = 0; i < self.size; i++) {
        n[i] = draw_size() % (CHECKED_ROOM / 4 / self.size);
        count += n[i];
        before += i < self.rank ? n[i] : 0;
    }
    for (size_t i = 0; i < count; i++)
        in[i] = (uint32_t)(i * 5 + round + self.rank);
    OK(torus_reduce_scatter(self.group, in_place ? TORUS_IN_PLACE : from, to, n, TORUS_UINT32,
                            TORUS_MAX, &self.error));
    for (size_t i = 0; i < n[self.rank]; i++)
        if (out[i] != (uint32_t)((before + i) * 5 + round + self.size - 1))
            checked_wrong("reduce_scatter", i * sizeof *out);
}

/* Several calls at the same time; waits for them in another order. */
static void check_several(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    struct torus_call *call[5];
    size_t block = draw_size() % (CHECKED_ROOM / self.size), first = checked_chance(5);
    uint64_t in[2] = {self.rank + 1, round}, out[2] = {0, 0}, all = 0;
    uint32_t root = (uint32_t)checked_chance(self.size);
    uint8_t word = self.rank == root ? (uint8_t)round : 0;

    for (uint32_t i = 0; i < self.size; i++)
        checked_write_block(from + i * block, self.rank, i, block, round);
    OK(torus_start_alltoall(self.group, from, to, block, &call[0], &self.error));
    OK(torus_start_allreduce(self.group, in, out, 2, TORUS_UINT64, TORUS_SUM, &call[1],
                             &self.error));
    OK(torus_start_broadcast(self.group, &word, 1, root, &call[2], &self.error));
    OK(torus_start_barrier(self.group, &call[3], &self.error));
    OK(torus_start_reduce(self.group, in, &all, 1, TORUS_UINT64, TORUS_MAX, root, &call[4],
                          &self.error));
    for (size_t i = 0; i < 5; i++)
        OK(torus_call_wait(call[(first + 3 * i) % 5], &self.error));
    for (uint32_t i = 0; i < self.size; i++)
        checked_block("alltoall", to + i * block, i, self.rank, block, round);
    if (out[0] != (uint64_t)self.size * (self.size + 1) / 2 ||
        out[1] != (uint64_t)self.size * round)
        checked_wrong("allreduce", 0);
    if (word != (uint8_t)round)
        checked_wrong("broadcast", 0);
    if (all != (self.rank == root ? self.size : 0))
        checked_wrong("reduce", 0);
}

static void check_reduce(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    size_t count = draw_size();
    uint32_t root = (uint32_t)checked_chance(self.size);
    bool from_to = in_place && self.rank == root;
    int64_t *in = (int64_t *)(void *)(from_to ? to : from), *out = (int64_t *)(void *)to;

    for (size_t i = 0; i < count; i++)
        in[i] = (int64_t)(i * 7 + round) * (self.rank + 1);
    OK(torus_reduce(self.group, from_to ? TORUS_IN_PLACE : from, self.rank == root ? to : NULL,
                    count, TORUS_INT64, TORUS_SUM, root, &self.error));
    for (size_t i = 0; self.rank == root && i < count; i++)
        if (out[i] != (int64_t)(i * 7 + round) * self.size * (self.size + 1) / 2)
            checked_wrong("reduce", i * sizeof *out);
}

static void check_gather(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    const size_t block = draw_size() % (CHECKED_ROOM / self.size);
    const uint32_t root = (uint32_t)checked_chance(self.size);
    const bool from_to = in_place && self.rank == root;

    checked_write_block(from_to ? to + self.rank * block : from, self.rank, 0, block, round);
    OK(torus_gather(self.group, from_to ? TORUS_IN_PLACE : from, self.rank == root ? to : NULL,
                    block, root, &self.error));
    for (uint32_t i = 0; self.rank == root && i < self.size; i++)
        checked_block("gather", to + i * block, i, 0, block, round);
}

static void check_scatter(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    const size_t block = draw_size() % (CHECKED_ROOM / self.size);
    const uint32_t root = (uint32_t)checked_chance(self.size);
    const bool is_root = self.rank == root;
    uint8_t *at = in_place ? to : from;

    for (uint32_t i = 0; is_root && i < self.size; i++)
        checked_write_block(at + i * block, root, i, block, round);
    OK(torus_scatter(self.group,
                     !is_root   ? NULL
                     : in_place ? TORUS_IN_PLACE
                                : from,
                     to, block, root, &self.error));
    checked_block("scatter", is_root && in_place ? to + root * block : to, root, self.rank, block,
                  round);
}

/* The blocks of one member, or from all members to it, with holes between them. */
static void check_rooted(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    const uint32_t root = (uint32_t)checked_chance(self.size);
    const bool is_root = self.rank == root;
    const size_t most = draw_size() % (CHECKED_ROOM / self.size / 2);
    size_t size[self.size], at[self.size];

    for (uint32_t i = 0; i < self.size; i++) {
        size[i] = most * (i + 1) / self.size;
        at[i] = i * (most + 3);
    }
    checked_write_block(is_root && in_place ? to + at[root] : from, self.rank, 0, size[self.rank],
                        round);
    OK(torus_gatherv(self.group, is_root && in_place ? TORUS_IN_PLACE : from, size[self.rank],
                     is_root ? to : NULL, size, at, root, &self.error));
    for (uint32_t i = 0; is_root && i < self.size; i++)
        checked_block("gatherv", to + at[i], i, 0, size[i], round);
    for (uint32_t i = 0; is_root && i < self.size; i++)
        checked_write_block((in_place ? to : from) + at[i], root, i, size[i], round + 1);
    OK(torus_scatterv(self.group,
                      !is_root   ? NULL
                      : in_place ? TORUS_IN_PLACE
                                 : from,
                      size, at, to, size[self.rank], root, &self.error));
    checked_block("scatterv", is_root && in_place ? to + at[root] : to, root, self.rank,
                  size[self.rank], round + 1);
}

/* Each member sends to one as many members behind it, and some members start to send before they receive. */
static void check_messages(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    const size_t bytes = draw_size() % (CHECKED_ROOM / 2);
    const uint32_t distance = self.size > 1 ? 1 + (uint32_t)checked_chance(self.size - 1) : 0;
    const uint32_t next = (self.rank + distance) % self.size;
    const uint32_t before = (self.rank + self.size - distance) % self.size;
    struct torus_call *sent, *second, *got;

    if (self.size == 1)
        return;
    checked_write_block(from, self.rank, next, bytes, round);
    checked_write_block(from + bytes, self.rank, next, bytes, round + 1);
    OK(torus_start_send(self.group, from, bytes, next, round, &sent, &self.error));
    if (in_place) { /* the other tag first */
        OK(torus_start_receive(self.group, to + bytes, bytes, before, round + 1, &got,
                               &self.error));
        OK(torus_start_send(self.group, from + bytes, bytes, next, round + 1, &second,
                            &self.error));
        OK(torus_call_wait(got, &self.error));
        checked_block("message", to + bytes, before, self.rank, bytes, round + 1);
        OK(torus_call_wait(second, &self.error));
    }
    OK(torus_receive(self.group, to, bytes, before, round, &self.error));
    checked_block("message", to, before, self.rank, bytes, round);
    OK(torus_call_wait(sent, &self.error));
}

/* All members send to one, which receives from any of them. */
static void check_any(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    const uint32_t root = (uint32_t)checked_chance(self.size), others = self.size - 1;
    const size_t bytes = draw_size() % (CHECKED_ROOM / self.size);
    struct torus_call *call[self.size];
    uint32_t sender[self.size];

    if (self.rank != root) {
        checked_write_block(from, self.rank, root, bytes, round);
        OK(torus_send(self.group, from, bytes, root, round, &self.error));
        return;
    }
    for (uint32_t i = 0; i < others; i++) {
        OK(torus_start_receive_any(self.group, to + i * bytes, bytes, round, &sender[i], &call[i],
                                   &self.error));
        if (!in_place)
            OK(torus_call_wait(call[i], &self.error));
    }
    for (uint32_t i = 0; in_place && i < others; i++)
        OK(torus_call_wait(call[i], &self.error));
    for (uint32_t i = 0; i < others; i++)
        checked_block("message from any member", to + i * bytes, sender[i], root, bytes, round);
    for (uint32_t i = 0; i < others; i++)
        for (uint32_t j = 0; j < i; j++)
            if (sender[i] == sender[j])
                checked_wrong("message that has been received twice", i);
}

static void check_barrier(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    OK(torus_barrier(self.group, &self.error));
}

typedef void operation(uint8_t *from, uint8_t *to, unsigned round, bool in_place);

/* Calls a random operation with random blocks and areas, and checks its results. Each area has CHECKED_ROOM
 * bytes. */
static void checked_operation(uint8_t *const plain[2], uint8_t *const shared[2], unsigned round)
{
    static operation *const operations[] = {
        check_alltoall,  check_alltoallv,      check_allgather, check_allgatherv, check_broadcast,
        check_allreduce, check_reduce_scatter, check_several,   check_reduce,     check_barrier,
        check_gather,    check_messages,       check_scatter,   check_rooted,     check_any,
    };
    uint64_t what = checked_chance(sizeof operations / sizeof operations[0]);
    uint64_t where = checked_chance(4);
    uint8_t *from = (where & 1) != 0 ? plain[0] : shared[0];
    uint8_t *to = (where & 2) != 0 ? plain[1] : shared[1];

    operations[what](from, to, round, checked_chance(3) == 0);
}

/* Uses this group, or this part of a group, from now on. */
static void checked_choose(struct torus_group *group)
{
    self.group = group;
    self.rank = torus_group_rank(group);
    self.size = torus_group_size(group);
}

/* A random number below `below`, the same on all members with the same seed. */
static void checked_seed(uint64_t seed)
{
    chance_state = seed;
}

/* ---- Every operation ------------------------------------------------------------------------- */

static volatile sig_atomic_t terminated;

static void on_sigterm(int signum)
{
    terminated = 1;
}

/* Whether one of the programs is to end: the same for all. */
static bool one_is_to_end(void)
{
    uint8_t here = (uint8_t)terminated, all = 0;

    OK(torus_allreduce(self.group, &here, &all, 1, TORUS_UINT8, TORUS_MAX, &self.error));
    return all != 0;
}

static struct torus_group *choice[3]; /* the whole, and its parts along the first two dimensions */
static unsigned choices = 1;
static bool has_shrunk; /* or has some nodes as members: there are no parts then */

static void open_parts(void)
{
    choice[0] = self.group;
    if (has_shrunk || strchr(torus_group_dims(self.group), 'x') == NULL)
        return;
    for (choices = 1; choices < 3; choices++)
        if (torus_group_part(self.group, 1u << (choices - 1), &choice[choices], &self.error) != 0) {
            if (checked_survives) /* of a group that has lost nodes or links, all members are refused */
                return;
            checked_give_up();
        }
}

static void run_all(uint64_t seed, unsigned rounds)
{
    static uint8_t *plain[2]; /* allocated once: a program that survives runs this again */
    for (unsigned i = 0; i < 2; i++)
        plain[i] = plain[i] != NULL ? plain[i] : malloc(CHECKED_ROOM);
    uint8_t *shared[2] = {torus_memory_new(self.group, CHECKED_ROOM, &self.error),
                          torus_memory_new(self.group, CHECKED_ROOM, &self.error)};

    if (shared[0] == NULL || shared[1] == NULL || plain[0] == NULL || plain[1] == NULL)
        checked_give_up();
    checked_seed(seed);
    if (rounds == 0)
        (void)signal(SIGTERM, on_sigterm);
    open_parts();
    (void)puts("open");
    (void)fflush(stdout);
    for (unsigned round = 0; rounds == 0 || round < rounds; round++) {
        checked_choose(choice[0]);
        if (rounds == 0 && round % 8 == 7 && one_is_to_end())
            break;
        checked_choose(choice[checked_chance(2) == 0 ? checked_chance(choices) : 0]);
        checked_operation(plain, shared, round);
    }
    checked_choose(choice[0]);
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
    uint8_t *from = torus_memory_new(self.group, block * self.size + 1, &self.error);
    uint8_t *to = torus_memory_new(self.group, block * self.size + 1, &self.error);
    double *each = calloc(count + 1, sizeof *each);

    if (from == NULL || to == NULL)
        checked_give_up();
    (void)puts("open");
    (void)fflush(stdout);
    for (unsigned i = 0; count == 0 || i < count; i++) {
        double start = now_us();
        if (barrier) {
            OK(torus_barrier(self.group, &self.error));
        } else {
            for (uint32_t d = 0; d < self.size; d++)
                checked_write_block(from + d * block, self.rank, d, block, i);
            OK(torus_alltoall(self.group, from, to, block, &self.error));
            for (uint32_t s = 0; s < self.size; s++)
                checked_block("alltoall", to + s * block, s, self.rank, block, i);
        }
        if (count > 0)
            each[i] = now_us() - start;
    }
    qsort(each, count, sizeof *each, by_size);
    (void)printf("%.1f\n", each[count / 2]);
    free(each);
}

/* ---- Groups that fail -------------------------------------------------------------------------- */

/* Returns when the group has failed in such a way that shrinking helps. */
static void wait_for_failure(void)
{
    while (torus_barrier(self.group, &self.error) == 0)
        ;
    if (self.error.code != TORUS_ERROR_LINK)
        checked_give_up();
}

/* A group that has left out nodes refuses to be divided into parts. */
static void check_no_parts(void)
{
    struct torus_group *part;

    if (strchr(torus_group_dims(self.group), 'x') == NULL)
        return;
    if (torus_group_part(self.group, 1, &part, &self.error) == 0)
        checked_wrong("part", 0);
    if (self.error.code != TORUS_ERROR_REFUSED)
        checked_give_up();
}

static void say_members(void)
{
    (void)printf("shrunk");
    for (uint32_t member = 0; member < self.size; member++)
        (void)printf(" %u", (unsigned)torus_group_node(self.group, member));
    (void)puts("");
    (void)fflush(stdout);
}

static void shrink(unsigned count)
{
    (void)puts("open");
    (void)fflush(stdout);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *old = torus_memory_new(self.group, 5000, &self.error);
        struct torus_group *failed = self.group;
        if (old == NULL)
            checked_give_up();
        checked_write_block(old, self.rank, self.rank, 5000, i);
        wait_for_failure();
        if (torus_group_shrink(failed, &self.group, &self.error) != 0)
            checked_give_up();
        if (torus_barrier(failed, &self.error) == 0)
            checked_wrong("barrier of a failed group", 0);
        checked_block("memory of a failed group", old, self.rank, self.rank, 5000, i);
        torus_group_close(failed);
        checked_choose(self.group);
        check_no_parts();
        say_members();
    }
    has_shrunk = true;
}

static void survive(uint64_t seed)
{
    if (setjmp(checked_gone_down) != 0) {
        struct torus_group *failed = choice[0];
        checked_survives = false;
        OK(torus_group_shrink(failed, &self.group, &self.error));
        torus_group_close(failed); /* with its parts */
        checked_choose(self.group);
        say_members();
    }
    checked_survives = true;
    choice[0] = self.group;
    run_all(seed, 0);
    checked_survives = false;
}

static void open_many(struct torus_group_options *options, unsigned count)
{
    char name[64];

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%.40s-%u", options->name, i);
        struct torus_group_options o = *options;
        o.name = name;
        OK(torus_group_open(&o, &self.group, &self.error));
    }
}

/* Takes the members behind the name. */
static void read_members(char *name, struct torus_group_options *options)
{
    static uint32_t members[64];
    char *at = strchr(name, ':');

    if (at == NULL)
        return;
    *at = '\0';
    while (options->member_count < 64 && at != NULL) {
        members[options->member_count++] = (uint32_t)atoi(at + 1);
        at = strchr(at + 1, ',');
    }
    options->members = members;
    has_shrunk = true; /* it has no parts either */
}

int main(int argc, char **argv)
{
    struct torus_group_options options;

    if (argc < 5)
        return 2;
    torus_group_options_init(&options);
    options.socket = argv[1];
    options.name = argv[2];
    read_members(argv[2], &options);
    if (strcmp(argv[3], "open") == 0) {
        options.timeout_ms = 1000;
        open_many(&options, (unsigned)atoi(argv[4]));
        return 0;
    }
    OK(torus_group_open(&options, &self.group, &self.error));
    checked_choose(self.group);
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
    torus_group_close(self.group);
    return 0;
}
