/* Groups of libtorus: a program, and a daemon whose groups are a stand-in that gives back what is
 * sent. */
#include <torus/group.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/programs_fixture.h"

#define MEMBERS 6u

static struct programs_fixture daemon_;
static struct torus_error e;

static int begin(void **state)
{
    (void)state;
    programs_start(&daemon_, "2x3m", 4);
    return 0;
}

static int end(void **state)
{
    (void)state;
    programs_stop(&daemon_);
    return 0;
}

static int open_named(const char *name, uint32_t timeout_ms, struct torus_group **g)
{
    struct torus_group_options options;

    torus_group_options_init(&options);
    options.socket = daemon_.control;
    options.name = name;
    options.timeout_ms = timeout_ms;
    return torus_group_open(&options, g, &e);
}

static struct torus_group *open_group(void)
{
    struct torus_group *g;

    if (open_named(NULL, 0, &g) != 0)
        fail_msg("%s", e.text);
    return g;
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            fail_msg("%s: %s", #call, e.text);                                                     \
    } while (0)

#define FAILS(wanted, said, call)                                                                  \
    do {                                                                                           \
        e = (struct torus_error){0};                                                               \
        assert_int_equal((call), -1);                                                              \
        assert_int_equal(e.code, (wanted));                                                        \
        if (strstr(e.text, (said)) == NULL)                                                        \
            fail_msg("\"%s\" does not say \"%s\"", e.text, (said));                                \
    } while (0)

static void fill(void *at, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)at)[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static void expect(const void *at, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const uint8_t *)at)[i] != (uint8_t)(i * 7 + i / 251 + seed))
            fail_msg("byte %zu is %u", i, ((const uint8_t *)at)[i]);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void test_open(void **state)
{
    struct torus_group *g = open_group(), *other, *again;

    (void)state;
    assert_int_equal(torus_group_rank(g), 4);
    assert_int_equal(torus_group_size(g), MEMBERS);
    assert_string_equal(torus_group_dims(g), "2x3m");
    assert_int_equal(torus_group_node(g, 5), 5);
    assert_int_equal(torus_group_node(g, 6), TORUS_RANK_NONE);
    FAILS(TORUS_ERROR_REFUSED, "\"default\" open", open_named(NULL, 0, &again));
    assert_null(again);
    OK(open_named("other", 0, &other));
    torus_group_close(other);
    torus_group_close(g);
    OK(open_named(NULL, 0, &again));
    torus_group_close(again);
    torus_group_close(NULL);
}

static void test_shrink(void **state)
{
    static const bool gone[MEMBERS] = {[0] = true, [3] = true};
    static const uint32_t nodes[] = {1, 2, 4, 5};
    struct torus_group *g = open_group(), *left, *part, *again;
    size_t counts[4] = {1, 2, 3, 4};
    uint8_t in[40], out[40];
    uint8_t *kept = torus_memory_new(g, 100, &e);

    (void)state;
    fill(kept, 100, 1);
    daemon_.groups.gone = gone;
    torus_group_set_timeout(g, 60000);
    OK(torus_group_part(g, 1, &part, &e));
    FAILS(TORUS_ERROR_USAGE, "a part cannot be shrunk", torus_group_shrink(part, &left, &e));
    assert_null(left);
    OK(torus_group_shrink(g, &left, &e));
    assert_int_equal(torus_group_size(left), 4);
    assert_int_equal(torus_group_rank(left), 2);
    assert_string_equal(torus_group_dims(left), "2x3m");
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(torus_group_node(left, i), nodes[i]);
    assert_int_equal(torus_group_node(left, 4), TORUS_RANK_NONE);
    OK(torus_group_part(left, 3, &part, &e)); /* all of it */
    assert_int_equal(torus_group_size(part), 4);
    assert_int_equal(torus_group_node(part, 3), 5);
    FAILS(TORUS_ERROR_CANCELLED, "left", torus_barrier(g, &e));
    expect(kept, 100, 1);
    torus_memory_free(g, kept);
    torus_group_close(g);
    fill(out, sizeof out, 2);
    OK(torus_alltoall(part, out, in, 10, &e)); /* the stand-in gives it back */
    expect(in, sizeof in, 2);
    OK(torus_reduce_scatter(left, out, in, counts, TORUS_UINT8, TORUS_MAX, &e));
    assert_memory_equal(in, out + 3, 3);
    FAILS(TORUS_ERROR_USAGE, "there is no member 4", torus_broadcast(left, in, 1, 4, &e));
    OK(torus_group_shrink(left, &again, &e)); /* and again */
    assert_int_equal(torus_group_size(again), 4);
    torus_group_close(again);
    torus_group_close(left);
    daemon_.groups.gone = NULL;
    g = open_group();
    OK(torus_group_shrink(g, &left, &e)); /* nobody is down */
    assert_int_equal(torus_group_size(left), MEMBERS);
    assert_int_equal(torus_group_node(left, 5), 5);
    torus_group_close(left);
    torus_group_close(g);
}

static void test_names_and_options(void **state)
{
    char name[80];
    struct torus_group_options options;
    struct torus_group *g;

    (void)state;
    memset(name, 'n', sizeof name);
    name[64] = '\0';
    FAILS(TORUS_ERROR_USAGE, "1 to 63 bytes", open_named(name, 0, &g));
    FAILS(TORUS_ERROR_USAGE, "1 to 63 bytes", open_named("", 0, &g));
    name[63] = '\0';
    OK(open_named(name, 0, &g));
    torus_group_close(g);
    memset(&options, 0, sizeof options);
    FAILS(TORUS_ERROR_USAGE, "torus_group_options_init", torus_group_open(&options, &g, &e));
    torus_group_options_init(&options);
    options.reserved[0] = 1;
    FAILS(TORUS_ERROR_USAGE, "reserved", torus_group_open(&options, &g, &e));
    torus_group_options_init(&options);
    options.shrink = options.wait = true;
    FAILS(TORUS_ERROR_USAGE, "shrink and wait", torus_group_open(&options, &g, &e));
}

static void test_host_name_in_socket(void **state)
{
    char host[256] = "", from[400], to[500], *wanted = daemon_.control;
    struct torus_group *g;

    (void)state;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    (void)snprintf(to, sizeof to, "%s/%s-sock.programs", daemon_.folder, host);
    assert_int_equal(symlink(daemon_.path, to), 0);
    (void)snprintf(from, sizeof from, "%s/%%h-sock", daemon_.folder);
    (void)setenv("TORUS_SOCKET", from, 1);
    OK(torus_group_open(NULL, &g, &e));
    torus_group_close(g);
    (void)unsetenv("TORUS_SOCKET");
    (void)unlink(to);
    assert_ptr_equal(wanted, daemon_.control);
}

static void test_no_daemon(void **state)
{
    struct torus_group_options options;
    struct torus_group *g;

    (void)state;
    torus_group_options_init(&options);
    options.socket = "/nonexistent/sock";
    FAILS(TORUS_ERROR_NO_DAEMON, "/nonexistent/sock.programs", torus_group_open(&options, &g, &e));
}

static void hold_open(struct programs_fixture *f, void *argument)
{
    f->groups.holds_open = argument != NULL;
}

static void fail_groups(struct programs_fixture *f, void *argument)
{
    standin_fail(&f->groups, ERROR_TIMEOUT, argument);
}

static void *open_in_thread(void *out)
{
    struct torus_group *g;

    if (open_named(NULL, 0, &g) == 0)
        torus_group_close(g);
    *(struct torus_error *)out = e;
    return NULL;
}

static void test_opening_fails(void **state)
{
    struct torus_error said;
    pthread_t thread;

    (void)state;
    programs_do(&daemon_, hold_open, "");
    assert_int_equal(pthread_create(&thread, NULL, open_in_thread, &said), 0);
    programs_await_groups(&daemon_, 1);
    programs_do(&daemon_, fail_groups, "node 3 has not opened it");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(said.code, TORUS_ERROR_TIMEOUT);
    assert_string_equal(said.text, "node 3 has not opened it");
    programs_do(&daemon_, hold_open, NULL);
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* `from` and `to` have room for 64 KiB each. */
static void run_operations(struct torus_group *g, uint8_t *from, uint8_t *to)
{
    const size_t sizes[MEMBERS] = {10, 0, 5000, 1, 33, 7};
    const size_t near[MEMBERS] = {5200, 1, 100, 99, 5100, 5300};
    const size_t to_far[MEMBERS] = {50000, 0, 40000, 0, 100, 200};
    const size_t apart[MEMBERS] = {9, 99, 100, 6000, 6100, 6200};

    fill(from, 60000, 1);
    memset(to, 0, 60000);
    OK(torus_alltoall(g, from, to, 10000, &e));
    expect(to, 60000, 1);
    fill(to, 60000, 2);
    OK(torus_alltoall(g, TORUS_IN_PLACE, to, 10000, &e));
    expect(to, 60000, 2);

    fill(from, 10000, 3);
    memset(to, 0, 60000);
    OK(torus_alltoallv(g, from, sizes, apart, to, sizes, to_far, &e));
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_memory_equal(to + to_far[i], from + apart[i], sizes[i]);
    assert_int_equal(to[45000], 0); /* only blocks are written */
    fill(to, 60000, 4);
    OK(torus_alltoallv(g, TORUS_IN_PLACE, NULL, NULL, to, sizes, near, &e));
    expect(to, 60000, 4);

    fill(from, 3000, 5);
    OK(torus_allgather(g, from, to, 3000, &e));
    for (unsigned i = 0; i < MEMBERS; i++)
        expect(to + 3000 * i, 3000, 5);
    memset(to, 0, 60000);
    fill(to + 4 * 100, 100, 6);
    OK(torus_allgather(g, TORUS_IN_PLACE, to, 100, &e));
    expect(to + 4 * 100, 100, 6);

    fill(from, 33, 7);
    memset(to, 0, 60000);
    OK(torus_allgatherv(g, from, to, sizes, near, &e));
    expect(to + near[4], 33, 7);
    expect(to + near[2], 33, 7);
    OK(torus_allgatherv(g, TORUS_IN_PLACE, to, sizes, near, &e));
    expect(to + near[4], 33, 7);

    OK(torus_broadcast(g, to, 1000, 0, &e));
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(to[i], 'b');
    fill(to, 1000, 8);
    OK(torus_broadcast(g, to, 1000, 4, &e));
    expect(to, 1000, 8);

    OK(torus_barrier(g, &e));

    fill(from, 8000, 9);
    OK(torus_allreduce(g, from, to, 1000, TORUS_FLOAT64, TORUS_SUM, &e));
    expect(to, 8000, 9);
    fill(to, 8000, 10);
    OK(torus_allreduce(g, TORUS_IN_PLACE, to, 2000, TORUS_INT32, TORUS_XOR, &e));
    expect(to, 8000, 10);

    fill(from, 8000, 13);
    OK(torus_reduce(g, from, to, 1000, TORUS_FLOAT64, TORUS_SUM, 4, &e)); /* to this member */
    expect(to, 8000, 13);
    fill(to, 8000, 14);
    OK(torus_reduce(g, TORUS_IN_PLACE, to, 2000, TORUS_INT32, TORUS_XOR, 4, &e));
    expect(to, 8000, 14);
    OK(torus_reduce(g, from, to, 1000, TORUS_FLOAT64, TORUS_SUM, 0, &e)); /* to another one */
    OK(torus_reduce(g, from, NULL, 1000, TORUS_FLOAT64, TORUS_SUM, 0, &e));
    OK(torus_reduce(g, from, from, 1000, TORUS_FLOAT64, TORUS_SUM, 0, &e));
    assert_int_equal(daemon_.groups.last.receive.size, 0);
    expect(to, 8000, 14);
    expect(from, 8000, 13);

    fill(from, 20204, 11);
    memset(to, 0, 60000);
    OK(torus_reduce_scatter(g, from, to, sizes, TORUS_UINT32, TORUS_MAX, &e));
    assert_memory_equal(to, from + 4 * 5011, 4 * 33);
    assert_int_equal(to[4 * 33], 0);
    fill(to, 20204, 12);
    OK(torus_reduce_scatter(g, TORUS_IN_PLACE, to, sizes, TORUS_UINT32, TORUS_MAX, &e));
    fill(from, 20204, 12);
    assert_memory_equal(to, from + 4 * 5011, 4 * 33);

    OK(torus_alltoall(g, NULL, NULL, 0, &e));
    OK(torus_broadcast(g, NULL, 0, 1, &e));
}

static void test_ordinary_memory(void **state)
{
    struct torus_group *g = open_group();
    uint8_t *from = malloc(65536), *to = malloc(65536);

    (void)state;
    run_operations(g, from, to);
    torus_group_close(g);
    free(from);
    free(to);
}

static void test_registered_memory(void **state)
{
    struct torus_group *g = open_group();
    uint8_t *memory = torus_memory_new(g, 200000, &e), *plain = malloc(65536);

    (void)state;
    assert_non_null(memory);
    for (unsigned i = 0; i < 200000; i++)
        assert_int_equal(memory[i], 0);
    run_operations(g, memory + 1, memory + 65536);
    run_operations(g, plain, memory + 3);
    run_operations(g, memory + 100000, plain);
    /* Blocks arrive while others are still to be sent: the daemon must not send from there. */
    OK(torus_alltoall(g, TORUS_IN_PLACE, memory, 100, &e));
    assert_ptr_not_equal(daemon_.groups.last.send.memory, daemon_.groups.last.receive.memory);
    OK(torus_alltoall(g, memory, memory + 600, 100, &e));
    assert_ptr_equal(daemon_.groups.last.send.memory, daemon_.groups.last.receive.memory);
    torus_memory_free(g, NULL);
    torus_memory_free(g, memory);
    FAILS(TORUS_ERROR_USAGE, "no bytes", torus_memory_new(g, 0, &e) != NULL ? 0 : -1);
    FAILS(TORUS_ERROR_MEMORY, "", torus_memory_new(g, SIZE_MAX / 4, &e) != NULL ? 0 : -1);
    FAILS(TORUS_ERROR_MEMORY, "too many: at most 9223372036854775807 are possible",
          torus_memory_new(g, SIZE_MAX, &e) != NULL ? 0 : -1);
    OK(torus_barrier(g, &e));
    torus_group_close(g);
    free(plain);
}

static void test_usage(void **state)
{
    struct torus_group *g = open_group();
    uint8_t *memory = torus_memory_new(g, 4096, &e), buffer[1000] = {0};
    const size_t sizes[MEMBERS] = {1, 1, 1, 1, 1, 1}, huge[MEMBERS] = {SIZE_MAX, 1};
    const size_t end[MEMBERS] = {0, 0, 0, 0, 0, SIZE_MAX};
    struct torus_call *call;

    (void)state;
    FAILS(TORUS_ERROR_USAGE, "too many: at most 18446744073709551615 are possible",
          torus_alltoall(g, buffer, buffer, SIZE_MAX / 2, &e));
    FAILS(TORUS_ERROR_USAGE, "overlap", torus_alltoall(g, buffer, buffer + 5, 1, &e));
    FAILS(TORUS_ERROR_USAGE, "NULL", torus_alltoall(g, NULL, buffer, 1, &e));
    FAILS(TORUS_ERROR_USAGE, "NULL", torus_alltoall(g, buffer, NULL, 1, &e));
    FAILS(TORUS_ERROR_USAGE, "behind the end", torus_alltoall(g, memory, buffer, 4096, &e));
    FAILS(TORUS_ERROR_USAGE, "behind the end", torus_allgather(g, buffer, memory + 4000, 97, &e));
    FAILS(TORUS_ERROR_USAGE, "NULL",
          torus_alltoallv(g, buffer, sizes, NULL, buffer, sizes, sizes, &e));
    FAILS(TORUS_ERROR_USAGE, "together: at most 18446744073709551615 are possible",
          torus_alltoallv(g, buffer, huge, sizes, buffer, sizes, sizes, &e));
    FAILS(TORUS_ERROR_USAGE,
          "of 1 byte at offset 18446744073709551615, is too large: at most 0 can be there",
          torus_alltoallv(g, buffer, sizes, end, buffer, sizes, sizes, &e));
    FAILS(TORUS_ERROR_USAGE, "member 6", torus_broadcast(g, buffer, 1, 6, &e));
    FAILS(TORUS_ERROR_USAGE, "not a type",
          torus_allreduce(g, buffer, buffer + 500, 1, (enum torus_type)11, TORUS_SUM, &e));
    FAILS(TORUS_ERROR_USAGE, "not an operator",
          torus_allreduce(g, buffer, buffer + 500, 1, TORUS_INT8, (enum torus_operator)0, &e));
    FAILS(TORUS_ERROR_USAGE, "integers",
          torus_allreduce(g, buffer, buffer + 500, 1, TORUS_FLOAT32, TORUS_OR, &e));
    FAILS(TORUS_ERROR_USAGE, "member 6",
          torus_reduce(g, buffer, buffer + 500, 1, TORUS_INT8, TORUS_SUM, 6, &e));
    FAILS(TORUS_ERROR_USAGE, "integers",
          torus_reduce(g, buffer, buffer + 500, 1, TORUS_FLOAT32, TORUS_OR, 0, &e));
    FAILS(TORUS_ERROR_USAGE, "for the root of a reduce, member 0, only: this is member 4",
          torus_reduce(g, TORUS_IN_PLACE, buffer, 1, TORUS_INT8, TORUS_SUM, 0, &e));
    FAILS(TORUS_ERROR_USAGE, "overlap",
          torus_reduce(g, buffer, buffer + 3, 4, TORUS_INT8, TORUS_SUM, 4, &e));
    FAILS(TORUS_ERROR_USAGE, "NULL",
          torus_reduce(g, buffer, NULL, 4, TORUS_INT8, TORUS_SUM, 4, &e));
    FAILS(TORUS_ERROR_USAGE, "too many",
          torus_reduce(g, buffer, NULL, SIZE_MAX / 2, TORUS_INT64, TORUS_SUM, 0, &e));
    FAILS(TORUS_ERROR_USAGE, "NULL",
          torus_start_reduce_scatter(g, buffer, buffer, NULL, TORUS_INT8, TORUS_SUM, &call, &e));
    assert_null(call);
    OK(torus_barrier(g, &e)); /* none of them counted */
    assert_int_equal(daemon_.groups.calls, 1);
    torus_group_close(g);
}

/* ---- Without waiting ------------------------------------------------------------------------- */

static void test_any_order(void **state)
{
    struct torus_group *g = open_group();
    struct torus_call *call[16];
    uint8_t from[16][100], to[16][100];

    (void)state;
    programs_hold(&daemon_, true);
    for (unsigned i = 0; i < 16; i++) {
        fill(from[i], 96, i);
        OK(torus_start_alltoall(g, from[i], to[i], 16, &call[i], &e));
        memset(from[i], 0, 96); /* has been copied */
    }
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(torus_call_test(call[i], &e), 0);
    programs_hold(&daemon_, false);
    for (unsigned i = 16; i-- > 0;)
        OK(torus_call_wait(call[i * 5 % 16], &e));
    for (unsigned i = 0; i < 16; i++)
        expect(to[i], 96, i);
    torus_group_close(g);
}

/* One call that nobody waits for does not stop later ones; too many at once do. */
static void test_many_calls(void **state)
{
    struct torus_group *g = open_group();
    struct torus_call *first, *call[64], *more;
    double one = 1, result = 0;

    (void)state;
    OK(torus_start_allreduce(g, &one, &result, 1, TORUS_FLOAT64, TORUS_SUM, &first, &e));
    for (unsigned i = 0; i < 200; i++)
        OK(torus_barrier(g, &e));
    OK(torus_call_wait(first, &e));
    assert_true(result == 1);
    programs_hold(&daemon_, true);
    for (unsigned i = 0; i < 64; i++)
        OK(torus_start_barrier(g, &call[i], &e));
    FAILS(TORUS_ERROR_BUSY, "64 calls", torus_start_barrier(g, &more, &e));
    programs_hold(&daemon_, false);
    for (unsigned i = 0; i < 64; i++)
        OK(torus_call_wait(call[i], &e));
    OK(torus_barrier(g, &e));
    torus_group_close(g);
}

static bool readable(int fd, int milliseconds)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, milliseconds) > 0;
}

static void test_descriptor(void **state)
{
    struct torus_group *g = open_group(), *row;
    struct torus_call *call[8];
    unsigned left = 8;
    int fd;

    (void)state;
    OK(torus_group_part(g, 2, &row, &e));
    OK(torus_start_barrier(g, &call[0], &e)); /* ends before anybody asks for the descriptor */
    fd = torus_group_fd(g);
    assert_int_equal(torus_group_fd(row), fd);
    for (unsigned i = 1; i < 8; i++)
        OK(torus_start_barrier(i % 2 != 0 ? g : row, &call[i], &e));
    while (left > 0) {
        assert_true(readable(fd, -1));
        for (unsigned i = 8; i-- > 0;)
            if (call[i] != NULL && torus_call_test(call[i], &e) == 1) {
                call[i] = NULL;
                left--;
            }
    }
    programs_hold(&daemon_, true);
    OK(torus_start_barrier(g, &call[0], &e));
    while (readable(fd, 0)) /* what has been said before */
        assert_int_equal(torus_call_test(call[0], &e), 0);
    programs_hold(&daemon_, false);
    assert_true(readable(fd, -1));
    OK(torus_call_wait(call[0], &e));
    for (unsigned i = 0; i < 2000; i++) { /* always noticed */
        OK(torus_start_barrier(g, &call[0], &e));
        OK(torus_start_barrier(g, &call[1], &e));
        for (left = 2; left > 0;) {
            assert_true(readable(fd, -1));
            for (unsigned k = 0; k < 2; k++)
                if (call[k] != NULL && torus_call_test(call[k], &e) == 1) {
                    call[k] = NULL;
                    left--;
                }
        }
    }
    torus_group_close(g);
}

static void *pause_in_thread(void *call)
{
    while (!torus_call_pause(call, UINT64_MAX))
        ;
    return NULL;
}

static void test_pause(void **state)
{
    struct torus_group *g = open_group();
    struct torus_call *call[3];
    pthread_t thread[2];

    (void)state;
    programs_hold(&daemon_, true);
    for (unsigned i = 0; i < 3; i++)
        OK(torus_start_barrier(g, &call[i], &e));
    assert_false(torus_call_pause(call[0], 0));
    assert_false(torus_call_pause(call[1], 2000000));
    assert_int_equal(torus_call_test(call[1], &e), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, pause_in_thread, call[i]), 0);
    assert_int_equal(torus_call_test(call[2], &e), 0); /* while others wait */
    programs_hold(&daemon_, false);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(torus_call_test(call[i], &e), 1);
    OK(torus_call_wait(call[2], &e));
    /* A call that has ended has, also when its slot has been used again. */
    OK(torus_start_barrier(g, &call[0], &e));
    for (unsigned i = 0; i < 100; i++)
        OK(torus_barrier(g, &e));
    assert_true(torus_call_pause(call[0], 0));
    OK(torus_call_wait(call[0], &e));
    torus_group_close(g);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static void test_parts(void **state)
{
    struct torus_group *g = open_group(), *row, *column, *none;
    uint8_t from[300], to[300];
    struct torus_call *call;

    (void)state;
    OK(torus_group_part(g, 1 << 1, &row, &e));
    OK(torus_group_part(g, 1 << 0, &column, &e));
    assert_string_equal(torus_group_dims(row), "3m");
    assert_string_equal(torus_group_dims(column), "2");
    assert_int_equal(torus_group_size(row), 3);
    assert_int_equal(torus_group_size(column), 2);
    assert_int_equal(torus_group_rank(row), 1);
    assert_int_equal(torus_group_rank(column), 1);
    assert_int_equal(torus_group_node(row, 0), 3);
    assert_int_equal(torus_group_node(row, 2), 5);
    assert_int_equal(torus_group_node(row, 3), TORUS_RANK_NONE);
    assert_int_equal(torus_group_node(column, 0), 1);
    assert_int_equal(torus_group_node(column, 1), 4);
    FAILS(TORUS_ERROR_USAGE, "0x4", torus_group_part(g, 4, &none, &e));
    FAILS(TORUS_ERROR_USAGE, "0x0", torus_group_part(g, 0, &none, &e));
    OK(torus_group_part(g, 3, &none, &e));
    assert_string_equal(torus_group_dims(none), "2x3m");
    assert_int_equal(torus_group_rank(none), 4);
    OK(torus_barrier(none, &e));
    torus_group_close(none);
    FAILS(TORUS_ERROR_USAGE, "part of a part", torus_group_part(row, 2, &none, &e));
    FAILS(TORUS_ERROR_REFUSED, "open already", torus_group_part(g, 2, &none, &e));
    fill(from, 300, 1);
    OK(torus_alltoall(row, from, to, 100, &e));
    expect(to, 300, 1);
    assert_int_equal(daemon_.groups.last.part, 2);
    OK(torus_start_alltoall(column, from, to, 100, &call, &e));
    torus_group_close(row);
    OK(torus_call_wait(call, &e));
    programs_hold(&daemon_, true);
    OK(torus_start_barrier(column, &call, &e));
    torus_group_close(column); /* with a call under way */
    programs_await_groups(&daemon_, 0);
    programs_hold(&daemon_, false);
    FAILS(TORUS_ERROR_CANCELLED, "part was closed", torus_barrier(g, &e));
    torus_group_close(g);
}

/* ---- Failure --------------------------------------------------------------------------------- */

static void test_group_fails(void **state)
{
    struct torus_group *g = open_group(), *again, *part;
    struct torus_call *call[3];
    uint8_t buffer[100];
    int fd = torus_group_fd(g);

    (void)state;
    programs_hold(&daemon_, true);
    for (unsigned i = 0; i < 3; i++)
        OK(torus_start_broadcast(g, buffer, 100, 4, &call[i], &e));
    programs_do(&daemon_, fail_groups, "node 5 is down");
    assert_true(readable(fd, -1));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_call_wait(call[1], &e));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_call_test(call[0], &e));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_call_wait(call[2], &e));
    programs_await_groups(&daemon_, 0);
    for (unsigned i = 0; i < 100; i++)
        FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_barrier(g, &e));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_group_part(g, 1, &part, &e));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_memory_new(g, 1, &e) != NULL ? 0 : -1);
    programs_hold(&daemon_, false);
    OK(open_named(NULL, 0, &again)); /* the name is free */
    OK(torus_barrier(again, &e));
    torus_group_close(again);
    torus_group_close(g);
}

static void close_all(struct programs_fixture *f, void *argument)
{
    static const struct access_rules everybody;
    const struct programs_setup setup = {&f->loop, f->control, &f->groups, &everybody, f->shares};

    (void)argument;
    programs_close(f->programs);
    f->programs = programs_open(&setup, NULL);
}

static void test_daemon_goes(void **state)
{
    struct torus_group *g = open_group(), *again;
    struct torus_call *call[2];
    int fd = torus_group_fd(g);

    (void)state;
    programs_hold(&daemon_, true);
    OK(torus_start_barrier(g, &call[0], &e));
    OK(torus_start_barrier(g, &call[1], &e));
    programs_do(&daemon_, close_all, NULL);
    assert_true(readable(fd, -1));
    FAILS(TORUS_ERROR_LOST, "has gone away", torus_call_wait(call[1], &e));
    FAILS(TORUS_ERROR_LOST, "has gone away", torus_call_test(call[0], &e));
    FAILS(TORUS_ERROR_LOST, "has gone away", torus_barrier(g, &e));
    FAILS(TORUS_ERROR_LOST, "has gone away", torus_memory_new(g, 1, &e) != NULL ? 0 : -1);
    torus_group_close(g);
    programs_hold(&daemon_, false);
    OK(open_named(NULL, 0, &again));
    OK(torus_barrier(again, &e));
    torus_group_close(again);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int signal)
{
    (void)signal;
    if (++alarms == 1000) { /* twenty seconds: it would wait for ever */
        static const char text[] = "the daemon is gone, and its program still waits\n";
        ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
        (void)n;
        _exit(1);
    }
}

/* Programs with a timer: the wait goes on after each signal, and still ends. */
static void test_daemon_goes_under_signals(void **state)
{
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    const struct sigaction count = {.sa_handler = count_alarm};
    struct torus_group *g = open_group();
    struct sigaction before;
    struct torus_call *call;

    (void)state;
    programs_hold(&daemon_, true);
    OK(torus_start_barrier(g, &call, &e));
    programs_do(&daemon_, close_all, NULL);
    alarms = 0;
    assert_int_equal(sigaction(SIGALRM, &count, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    FAILS(TORUS_ERROR_LOST, "has gone away", torus_call_wait(call, &e));
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    torus_group_close(g);
}

static void test_calls_given_up(void **state)
{
    struct torus_group *g = open_group();
    struct torus_call *call;
    uint8_t from[600] = {0}, to[600];

    (void)state;
    programs_hold(&daemon_, true);
    OK(torus_start_alltoall(g, from, to, 100, &call, &e));
    torus_group_close(g);
    programs_await_groups(&daemon_, 0);
    assert_int_equal(daemon_.groups.closed, 1);
}

/* A program that is killed is noticed; one that leaves is not. */
static void test_death(void **state)
{
    int status;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct torus_group *g;
            if (open_named("mortal", 0, &g) != 0 || torus_barrier(g, &e) != 0)
                _exit(1);
            if (i == 1)
                (void)kill(getpid(), SIGKILL);
            torus_group_close(g);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(i == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status));
        programs_await_groups(&daemon_, 0);
        assert_int_equal(daemon_.groups.closed, 1);
        assert_int_equal(daemon_.groups.abandoned, i);
    }
    assert_non_null(strstr(daemon_.groups.why.text, "program of node 4 has died"));
}

/* A child that has been forked has the socket, too, and lives on. */
static void test_death_of_a_parent(void **state)
{
    int status, ends[2];
    char byte;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        struct torus_group *g;
        (void)close(ends[1]);
        if (open_named("parent", 0, &g) != 0 || torus_barrier(g, &e) != 0)
            _exit(1);
        if (fork() == 0)
            _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1); /* until the test ends */
        _exit(2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 2);
    programs_await_groups(&daemon_, 0);
    assert_int_equal(daemon_.groups.abandoned, 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* A child that has been forked can do what it likes with its copy of a group: its parent's stays. */
static void test_children(void **state)
{
    struct torus_group *g = open_group();
    uint8_t *memory = torus_memory_new(g, 6 * 100, &e), from[6 * 100];
    struct torus_call *call;
    int status;

    (void)state;
    fill(from, sizeof from, 1);
    OK(torus_start_alltoall(g, from, memory, 100, &call, &e));
    pid_t child = fork();
    if (child == 0) {
        bool refused = torus_barrier(g, &e) != 0 && e.code == TORUS_ERROR_USAGE &&
                       torus_memory_new(g, 100, &e) == NULL && e.code == TORUS_ERROR_USAGE;
        torus_memory_free(g, memory);
        torus_group_close(g);
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(torus_call_wait(call, &e));
    expect(memory, sizeof from, 1);
    fill(memory, sizeof from, 2);
    OK(torus_alltoall(g, memory, from, 100, &e));
    expect(from, sizeof from, 2);
    torus_memory_free(g, memory);
    torus_group_close(g);
    programs_await_groups(&daemon_, 0);
    assert_int_equal(daemon_.groups.abandoned, 0);
}

/* ---- Staging --------------------------------------------------------------------------------- */

/* Room is used again, whatever the order of sizes and of waiting. */
static void test_staging(void **state)
{
    struct torus_group *g = open_group();
    uint8_t *from = malloc(6 << 20), *to = malloc(6 << 20), *other = malloc(6 << 20);
    unsigned before;

    (void)state;
    OK(torus_barrier(g, &e)); /* the daemon has closed what it has handed over */
    before = programs_descriptors();
    fill(from, 6 << 20, 1);
    for (size_t block = 1; block <= 1 << 20; block = block * 3 + 1) {
        struct torus_call *a, *b;
        memset(to, 0, 6 * block);
        memset(other, 0, 6 * block);
        OK(torus_start_alltoall(g, from, to, block, &a, &e));
        OK(torus_start_alltoall(g, from, other, block, &b, &e));
        OK(torus_call_wait(block % 2 != 0 ? b : a, &e));
        OK(torus_call_wait(block % 2 != 0 ? a : b, &e));
        expect(to, 6 * block, 1);
        expect(other, 6 * block, 1);
    }
    assert_int_equal(programs_descriptors(), before);
    torus_group_close(g);
    free(from);
    free(to);
    free(other);
}

static void test_no_descriptor_stays(void **state)
{
    struct torus_group *g = open_group();
    unsigned before;

    (void)state;
    torus_group_close(g);
    programs_await_groups(&daemon_, 0);
    before = programs_descriptors();
    for (unsigned i = 0; i < 50; i++) {
        g = open_group();
        OK(torus_barrier(g, &e));
        assert_non_null(torus_memory_new(g, 100, &e));
        (void)torus_group_fd(g);
        torus_group_close(g);
        programs_await_groups(&daemon_, 0);
    }
    assert_int_equal(programs_descriptors(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_open),
        TEST(test_shrink),
        TEST(test_names_and_options),
        TEST(test_host_name_in_socket),
        TEST(test_no_daemon),
        TEST(test_opening_fails),
        TEST(test_ordinary_memory),
        TEST(test_registered_memory),
        TEST(test_usage),
        TEST(test_any_order),
        TEST(test_many_calls),
        TEST(test_descriptor),
        TEST(test_pause),
        TEST(test_parts),
        TEST(test_group_fails),
        TEST(test_daemon_goes),
        TEST(test_daemon_goes_under_signals),
        TEST(test_calls_given_up),
        TEST(test_death),
        TEST(test_death_of_a_parent),
        TEST(test_children),
        TEST(test_staging),
        TEST(test_no_descriptor_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
