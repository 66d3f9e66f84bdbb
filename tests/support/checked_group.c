#include "checked_group.h"

#include <stdio.h>
#include <unistd.h>

struct checked_group self;
bool checked_survives;
jmp_buf checked_gone_down;

static uint64_t chance_state;

void checked_give_up(void)
{
    if (checked_survives && self.error.code == TORUS_ERROR_LINK)
        longjmp(checked_gone_down, 1);
    (void)printf("%s: %s\n", torus_error_name(self.error.code), self.error.text);
    (void)fflush(stdout);
    _exit(1);
}

void checked_wrong(const char *what, size_t where)
{
    (void)printf("wrong: %s at node %u, byte %zu\n", what, (unsigned)self.rank, where);
    (void)fflush(stdout);
    _exit(1);
}

uint64_t checked_chance(uint64_t below)
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

void checked_write_block(uint8_t *to, uint32_t source, uint32_t destination, size_t bytes,
                         unsigned round)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = byte_of(source, destination, i, round);
}

void checked_block(const char *what, const uint8_t *at, uint32_t source, uint32_t destination,
                   size_t bytes, unsigned round)
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

static void check_barrier(uint8_t *from, uint8_t *to, unsigned round, bool in_place)
{
    OK(torus_barrier(self.group, &self.error));
}

typedef void operation(uint8_t *from, uint8_t *to, unsigned round, bool in_place);

void checked_operation(uint8_t *const plain[2], uint8_t *const shared[2], unsigned round)
{
    static operation *const operations[] = {
        check_alltoall,  check_alltoallv, check_allgather,      check_allgatherv,
        check_broadcast, check_allreduce, check_reduce_scatter, check_several,
        check_reduce,    check_barrier,   check_gather,
    };
    uint64_t what = checked_chance(sizeof operations / sizeof operations[0]);
    uint64_t where = checked_chance(4);
    uint8_t *from = (where & 1) != 0 ? plain[0] : shared[0];
    uint8_t *to = (where & 2) != 0 ? plain[1] : shared[1];

    operations[what](from, to, round, checked_chance(3) == 0);
}

void checked_choose(struct torus_group *group)
{
    self.group = group;
    self.rank = torus_group_rank(group);
    self.size = torus_group_size(group);
}

void checked_seed(uint64_t seed)
{
    chance_state = seed;
}
