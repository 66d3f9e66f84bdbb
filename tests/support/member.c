/* A member of groups that a test controls: member SOCKET
 *
 * It executes the lines that it reads, and answers each with one line: "ok", "code: text" of the error, or
 * "wrong: ..." if received data are wrong.
 *
 *     open NAME [MS [MS [RANKS]]]   with a timeout, and one for memory of daemons; RANKS "0,2": the members
 *     timeout MS              for the calls that follow
 *     memory BYTES            registered memory for both buffers of the calls that follow
 *     alltoall BYTES [COUNT]  blocks of BYTES bytes; COUNT calls, 0: for ever
 *     alltoallv BYTES         the same, with all sizes equal
 *     allgather BYTES, broadcast BYTES ROOT, allreduce COUNT, reduce COUNT ROOT, barrier [COUNT]
 *     part MASK               calls that follow are on that part; 0: on the whole group
 *     close
 *
 * It ends at the end of its input, without closing the group. */
#include <torus/group.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct torus_error e;
static const char *socket_path;
static struct torus_group *whole, *group, *parts[8];
static uint32_t rank, size;
static uint8_t *from, *to; /* each of `room` bytes */
static size_t room;
static bool registered;
static const char *wrong_what;
static unsigned round_number;

/* A word of a block; it depends on the ranks in the torus. */
static uint64_t word_of(uint32_t source, uint32_t destination, size_t at)
{
    uint64_t z = ((uint64_t)source << 40) + ((uint64_t)destination << 20) + round_number;

    z = (z + at) * UINT64_C(0x9e3779b97f4a7c15);
    return z ^ z >> 29;
}

static void write_block(uint8_t *block, uint32_t source, uint32_t destination, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = word_of(source, destination, at);
        memcpy(block + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
}

static void check_block(const char *what, const uint8_t *block, uint32_t source,
                        uint32_t destination, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = word_of(source, destination, at);
        if (memcmp(block + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word) != 0)
            wrong_what = what;
    }
}

static uint32_t node(uint32_t member)
{
    return torus_group_node(group, member);
}

static void free_buffers(void)
{
    if (registered) {
        torus_memory_free(whole, from);
        torus_memory_free(whole, to);
    } else {
        free(from);
        free(to);
    }
    from = to = NULL;
    room = 0;
}

/* Makes the buffers at least this large. */
static int need(size_t bytes)
{
    if (bytes <= room && from != NULL)
        return 0;
    free_buffers();
    registered = false;
    from = malloc(bytes + 1);
    to = malloc(bytes + 1);
    room = bytes;
    return from != NULL && to != NULL ? 0 : -1;
}

static int do_memory(uint64_t bytes, uint64_t unused)
{
    free_buffers();
    from = torus_memory_new(whole, bytes, &e);
    to = from != NULL ? torus_memory_new(whole, bytes, &e) : NULL;
    registered = true;
    room = bytes;
    return to != NULL ? 0 : -1;
}

static int do_alltoall(uint64_t bytes, uint64_t count)
{
    if (need(bytes * size) != 0)
        return -1;
    for (uint64_t i = 0; count == 0 || i < count; i++) {
        round_number = (unsigned)i;
        for (uint32_t d = 0; d < size; d++)
            write_block(from + d * bytes, rank, node(d), bytes);
        if (torus_alltoall(group, from, to, bytes, &e) != 0)
            return -1;
        for (uint32_t s = 0; s < size; s++)
            check_block("alltoall", to + s * bytes, node(s), rank, bytes);
    }
    return 0;
}

static int do_alltoallv(uint64_t bytes, uint64_t unused)
{
    size_t *n = calloc(2 * size, sizeof *n);
    int result;

    if (n == NULL || need(bytes * size) != 0)
        return -1;
    for (uint32_t i = 0; i < size; i++) {
        n[i] = bytes;
        n[size + i] = i * bytes;
        write_block(from + n[size + i], rank, node(i), bytes);
    }
    result = torus_alltoallv(group, from, n, n + size, to, n, n + size, &e);
    for (uint32_t i = 0; result == 0 && i < size; i++)
        check_block("alltoallv", to + n[size + i], node(i), rank, bytes);
    free(n);
    return result;
}

static int do_allgather(uint64_t bytes, uint64_t unused)
{
    if (need(bytes * size) != 0)
        return -1;
    write_block(from, rank, 0, bytes);
    if (torus_allgather(group, from, to, bytes, &e) != 0)
        return -1;
    for (uint32_t i = 0; i < size; i++)
        check_block("allgather", to + i * bytes, node(i), 0, bytes);
    return 0;
}

static int do_broadcast(uint64_t bytes, uint64_t root)
{
    if (need(bytes) != 0)
        return -1;
    memset(to, 0, bytes);
    if (rank == node((uint32_t)root))
        write_block(to, rank, 0, bytes);
    if (torus_broadcast(group, to, bytes, (uint32_t)root, &e) != 0)
        return -1;
    check_block("broadcast", to, node((uint32_t)root), 0, bytes);
    return 0;
}

static int do_allreduce(uint64_t count, uint64_t unused)
{
    uint64_t *in, *out, ranks = 0;

    if (need(count * sizeof *in) != 0)
        return -1;
    in = (uint64_t *)(void *)from;
    out = (uint64_t *)(void *)to;
    for (uint32_t i = 0; i < size; i++)
        ranks += node(i) + 1;
    for (uint64_t i = 0; i < count; i++)
        in[i] = (i + 1) * (rank + 1);
    if (torus_allreduce(group, in, out, count, TORUS_UINT64, TORUS_SUM, &e) != 0)
        return -1;
    for (uint64_t i = 0; i < count; i++)
        if (out[i] != (i + 1) * ranks)
            wrong_what = "allreduce";
    return 0;
}

/* Overwrites the sent data, which the call no longer needs. */
static int do_reduce(uint64_t count, uint64_t root)
{
    uint64_t *in, *out, ranks = 0;

    if (need(count * sizeof *in) != 0)
        return -1;
    in = (uint64_t *)(void *)from;
    out = (uint64_t *)(void *)to;
    for (uint32_t i = 0; i < size; i++)
        ranks += node(i) + 1;
    for (uint64_t i = 0; i < count; i++)
        in[i] = (i + 1) * (rank + 1);
    if (torus_reduce(group, in, out, count, TORUS_UINT64, TORUS_SUM, (uint32_t)root, &e) != 0)
        return -1;
    memset(from, 0xee, count * sizeof *in);
    for (uint64_t i = 0; rank == node((uint32_t)root) && i < count; i++)
        if (out[i] != (i + 1) * ranks)
            wrong_what = "reduce";
    return 0;
}

static int do_barrier(uint64_t count, uint64_t unused)
{
    for (uint64_t i = 0; i < (count > 0 ? count : 1); i++)
        if (torus_barrier(group, &e) != 0)
            return -1;
    return 0;
}

static int do_timeout(uint64_t milliseconds, uint64_t unused)
{
    torus_group_set_timeout(group, (uint32_t)milliseconds);
    return 0;
}

static int do_part(uint64_t mask, uint64_t unused)
{
    if (mask > 0 && parts[mask % 8] == NULL &&
        torus_group_part(whole, (uint32_t)mask, &parts[mask % 8], &e) != 0)
        return -1;
    group = mask > 0 ? parts[mask % 8] : whole;
    size = torus_group_size(group);
    return 0;
}

static int do_close(uint64_t unused, uint64_t also_unused)
{
    free_buffers();
    torus_group_close(whole);
    memset(parts, 0, sizeof parts);
    whole = group = NULL;
    return 0;
}

/* Reads ranks like "0,2" into options->members, which has room for MEMBERS_MOST. "": all nodes are members. */
#define MEMBERS_MOST 64u

static void read_members(const char *text, uint32_t *members, struct torus_group_options *options)
{
    for (char *end; *text != '\0' && options->member_count < MEMBERS_MOST; text = end) {
        members[options->member_count++] = (uint32_t)strtoul(text, &end, 10);
        end += *end == ',';
    }
    if (options->member_count > 0)
        options->members = members;
}

static int open_group(const char *name, uint32_t timeout_ms, uint32_t memory_timeout_ms,
                      const char *list)
{
    struct torus_group_options options;
    uint32_t members[MEMBERS_MOST];

    torus_group_options_init(&options);
    options.socket = socket_path;
    options.name = name;
    options.timeout_ms = timeout_ms;
    options.memory_timeout_ms = memory_timeout_ms;
    read_members(list, members, &options);
    if (torus_group_open(&options, &whole, &e) != 0)
        return -1;
    group = whole;
    rank = torus_group_rank(whole);
    size = torus_group_size(whole);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(uint64_t first, uint64_t second);
    uint64_t second; /* if it is not given */
} commands[] = {
    {"alltoall", do_alltoall, 1},   {"alltoallv", do_alltoallv, 0}, {"allgather", do_allgather, 0},
    {"broadcast", do_broadcast, 0}, {"allreduce", do_allreduce, 0}, {"barrier", do_barrier, 0},
    {"reduce", do_reduce, 0},       {"timeout", do_timeout, 0},     {"memory", do_memory, 0},
    {"part", do_part, 0},           {"close", do_close, 0},
};

static int carry_out(const char *line)
{
    char command[20] = "", name[64] = "", members[128] = "";
    uint64_t first = 0, second;
    uint32_t timeout_ms = 0, memory_ms = 0;

    if (sscanf(line, "open %63s %" SCNu32 " %" SCNu32 " %127s", name, &timeout_ms, &memory_ms,
               members) >= 1)
        return open_group(name, timeout_ms, memory_ms, members);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        second = commands[i].second;
        if (sscanf(line, "%19s %" SCNu64 " %" SCNu64, command, &first, &second) >= 1 &&
            strcmp(command, commands[i].name) == 0)
            return group != NULL || whole != NULL ? commands[i].run(first, second) : -1;
    }
    (void)snprintf(e.text, sizeof e.text, "unknown command %s", line);
    return -1;
}

int main(int argc, char **argv)
{
    char line[256];

    if (argc != 2)
        return 2;
    socket_path = argv[1];
    while (fgets(line, sizeof line, stdin) != NULL) {
        int result;

        e = (struct torus_error){0};
        wrong_what = NULL;
        result = carry_out(line);
        if (wrong_what != NULL)
            (void)printf("wrong: %s at node %u\n", wrong_what, (unsigned)rank);
        else if (result == 0)
            (void)puts("ok");
        else
            (void)printf("%s: %s\n", torus_error_name(e.code), e.text);
        (void)fflush(stdout);
    }
    return 0;
}
