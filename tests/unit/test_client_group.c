/* Groups of libtorus: opening, parts, and invalid calls. */
#include <pthread.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/unit/client_group_fixture.h"

/* ---- Opening --------------------------------------------------------------------------------- */

CLIENT_GROUP_TEST(test_open)
{
    struct torus_group *g = client_group_open(), *other, *again;

    assert_int_equal(torus_group_rank(g), 4);
    assert_int_equal(torus_group_size(g), CLIENT_GROUP_MEMBERS);
    assert_string_equal(torus_group_dims(g), "2x3m");
    assert_int_equal(torus_group_node(g, 5), 5);
    assert_int_equal(torus_group_node(g, 6), TORUS_RANK_NONE);
    FAILS(TORUS_ERROR_REFUSED, "\"default\" open", client_group_open_named(NULL, 0, &again));
    assert_null(again);
    OK(client_group_open_named("other", 0, &other));
    torus_group_close(other);
    torus_group_close(g);
    OK(client_group_open_named(NULL, 0, &again));
    torus_group_close(again);
    torus_group_close(NULL);
}

static void change_links(struct programs_fixture *f, void *argument)
{
    (void)argument;
    programs_links_changed(f->programs);
}

CLIENT_GROUP_TEST(test_changes_of_links)
{
    struct torus_group *g = client_group_open();
    uint32_t changes;

    OK(torus_group_changes(g, &changes, &client_group_error));
    assert_int_equal(changes, 0);
    for (unsigned i = 0; i < 2; i++)
        programs_do(&client_group_daemon, change_links, NULL);
    OK(torus_group_changes(g, &changes, &client_group_error));
    assert_int_equal(changes, 2);
    programs_do(&client_group_daemon, client_group_fail_all, "node 5 is down");
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_barrier(g, &client_group_error));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down",
          torus_group_changes(g, &changes, &client_group_error));
    torus_group_close(g);
}

CLIENT_GROUP_TEST(test_shrink)
{
    static const bool gone[CLIENT_GROUP_MEMBERS] = {[0] = true, [3] = true};
    static const uint32_t nodes[] = {1, 2, 4, 5};
    struct torus_group *g = client_group_open(), *left, *part, *again;
    size_t counts[4] = {1, 2, 3, 4};
    uint8_t in[40], out[40];
    uint8_t *kept = torus_memory_new(g, 100, &client_group_error);

    client_group_fill(kept, 100, 1);
    client_group_daemon.groups.gone = gone;
    torus_group_set_timeout(g, 60000);
    OK(torus_group_part(g, 1, &part, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "a part cannot be shrunk",
          torus_group_shrink(part, &left, &client_group_error));
    assert_null(left);
    OK(torus_group_shrink(g, &left, &client_group_error));
    assert_int_equal(torus_group_size(left), 4);
    assert_int_equal(torus_group_rank(left), 2);
    assert_string_equal(torus_group_dims(left), "2x3m");
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(torus_group_node(left, i), nodes[i]);
    assert_int_equal(torus_group_node(left, 4), TORUS_RANK_NONE);
    OK(torus_group_part(left, 3, &part, &client_group_error)); /* all of it */
    assert_int_equal(torus_group_size(part), 4);
    assert_int_equal(torus_group_node(part, 3), 5);
    FAILS(TORUS_ERROR_CANCELLED, "left", torus_barrier(g, &client_group_error));
    client_group_expect(kept, 100, 1);
    torus_memory_free(g, kept);
    torus_group_close(g);
    client_group_fill(out, sizeof out, 2);
    OK(torus_alltoall(part, out, in, 10, &client_group_error)); /* the stand-in returns it */
    client_group_expect(in, sizeof in, 2);
    OK(torus_reduce_scatter(left, out, in, counts, TORUS_UINT8, TORUS_MAX, &client_group_error));
    assert_memory_equal(in, out + 3, 3);
    FAILS(TORUS_ERROR_USAGE, "there is no member 4",
          torus_broadcast(left, in, 1, 4, &client_group_error));
    OK(torus_group_shrink(left, &again, &client_group_error)); /* and again */
    assert_int_equal(torus_group_size(again), 4);
    torus_group_close(again);
    torus_group_close(left);
    client_group_daemon.groups.gone = NULL;
    g = client_group_open();
    OK(torus_group_shrink(g, &left, &client_group_error)); /* nobody is down */
    assert_int_equal(torus_group_size(left), CLIENT_GROUP_MEMBERS);
    assert_int_equal(torus_group_node(left, 5), 5);
    torus_group_close(left);
    torus_group_close(g);
}

CLIENT_GROUP_TEST(test_names_and_options)
{
    char name[80];
    struct torus_group_options options;
    struct torus_group *g;

    memset(name, 'n', sizeof name);
    name[64] = '\0';
    FAILS(TORUS_ERROR_USAGE, "1 to 63 bytes", client_group_open_named(name, 0, &g));
    FAILS(TORUS_ERROR_USAGE, "1 to 63 bytes", client_group_open_named("", 0, &g));
    name[63] = '\0';
    OK(client_group_open_named(name, 0, &g));
    torus_group_close(g);
    memset(&options, 0, sizeof options);
    FAILS(TORUS_ERROR_USAGE, "torus_group_options_init",
          torus_group_open(&options, &g, &client_group_error));
    torus_group_options_init(&options);
    options.reserved[0] = 1;
    FAILS(TORUS_ERROR_USAGE, "reserved", torus_group_open(&options, &g, &client_group_error));
    torus_group_options_init(&options);
    options.shrink = options.wait = true;
    FAILS(TORUS_ERROR_USAGE, "shrink and wait",
          torus_group_open(&options, &g, &client_group_error));
}

CLIENT_GROUP_TEST(test_host_name_in_socket)
{
    char host[256] = "", from[400], to[500], *wanted = client_group_daemon.control;
    struct torus_group *g;

    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    (void)snprintf(to, sizeof to, "%s/%s-sock.programs", client_group_daemon.folder, host);
    assert_int_equal(symlink(client_group_daemon.path, to), 0);
    (void)snprintf(from, sizeof from, "%s/%%h-sock", client_group_daemon.folder);
    (void)setenv("TORUS_SOCKET", from, 1);
    OK(torus_group_open(NULL, &g, &client_group_error));
    torus_group_close(g);
    (void)unsetenv("TORUS_SOCKET");
    (void)unlink(to);
    assert_ptr_equal(wanted, client_group_daemon.control);
}

CLIENT_GROUP_TEST(test_no_daemon)
{
    struct torus_group_options options;
    struct torus_group *g;

    torus_group_options_init(&options);
    options.socket = "/nonexistent/sock";
    FAILS(TORUS_ERROR_NO_DAEMON, "/nonexistent/sock.programs",
          torus_group_open(&options, &g, &client_group_error));
}

static void hold_open(struct programs_fixture *f, void *argument)
{
    f->groups.holds_open = argument != NULL;
}

static void *open_in_thread(void *out)
{
    struct torus_group *g;

    if (client_group_open_named(NULL, 0, &g) == 0)
        torus_group_close(g);
    *(struct torus_error *)out = client_group_error;
    return NULL;
}

CLIENT_GROUP_TEST(test_opening_fails)
{
    struct torus_error said;
    pthread_t thread;

    programs_do(&client_group_daemon, hold_open, "");
    assert_int_equal(pthread_create(&thread, NULL, open_in_thread, &said), 0);
    programs_await_groups(&client_group_daemon, 1);
    programs_do(&client_group_daemon, client_group_fail_all, "node 3 has not opened it");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(said.code, TORUS_ERROR_TIMEOUT);
    assert_string_equal(said.text, "node 3 has not opened it");
    programs_do(&client_group_daemon, hold_open, NULL);
}

/* ---- Operations ------------------------------------------------------------------------------ */

CLIENT_GROUP_TEST(test_usage_of_scatter)
{
    struct torus_group *g = client_group_open();
    uint8_t buffer[600] = {0};

    FAILS(TORUS_ERROR_USAGE, "member 6",
          torus_scatter(g, buffer, buffer + 500, 1, 6, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "only the root of a scatter, here member 0,",
          torus_scatter(g, TORUS_IN_PLACE, buffer, 1, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "overlap",
          torus_scatter(g, buffer, buffer + 3, 4, 4, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "send area is NULL",
          torus_scatter(g, NULL, buffer, 4, 4, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "receive area is NULL",
          torus_scatter(g, NULL, NULL, 4, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "too many",
          torus_scatter(g, buffer, NULL, SIZE_MAX / 2, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "member 6",
          torus_scatterv(g, NULL, NULL, NULL, buffer, 1, 6, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "is NULL",
          torus_scatterv(g, buffer, NULL, NULL, buffer, 1, 4, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "this is member 4",
          torus_scatterv(g, TORUS_IN_PLACE, NULL, NULL, buffer, 1, 0, &client_group_error));
    assert_int_equal(client_group_daemon.groups.calls, 0);
    torus_group_close(g);
}

CLIENT_GROUP_TEST(test_usage_of_gather)
{
    struct torus_group *g = client_group_open();
    uint8_t buffer[600] = {0};

    FAILS(TORUS_ERROR_USAGE, "member 6",
          torus_gather(g, buffer, buffer + 500, 1, 6, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "here member 0, can use TORUS_IN_PLACE: this is member 4",
          torus_gather(g, TORUS_IN_PLACE, buffer, 1, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "overlap",
          torus_gather(g, buffer, buffer + 3, 4, 4, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "NULL", torus_gather(g, buffer, NULL, 4, 4, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "too many",
          torus_gather(g, buffer, NULL, SIZE_MAX / 2, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "member 6",
          torus_gatherv(g, buffer, 1, NULL, NULL, NULL, 6, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "this is member 4",
          torus_gatherv(g, TORUS_IN_PLACE, 1, NULL, NULL, NULL, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "is NULL",
          torus_gatherv(g, buffer, 1, buffer, NULL, NULL, 4, &client_group_error));
    assert_int_equal(client_group_daemon.groups.calls, 0);
    torus_group_close(g);
}

CLIENT_GROUP_TEST(test_usage)
{
    struct torus_group *g = client_group_open();
    uint8_t *memory = torus_memory_new(g, 4096, &client_group_error), buffer[1000] = {0};
    const size_t sizes[CLIENT_GROUP_MEMBERS] = {1, 1, 1, 1, 1, 1},
                 huge[CLIENT_GROUP_MEMBERS] = {SIZE_MAX, 1};
    const size_t end[CLIENT_GROUP_MEMBERS] = {0, 0, 0, 0, 0, SIZE_MAX};
    struct torus_call *call;

    FAILS(TORUS_ERROR_USAGE, "too many: at most 18446744073709551615 are possible",
          torus_alltoall(g, buffer, buffer, SIZE_MAX / 2, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "overlap",
          torus_alltoall(g, buffer, buffer + 5, 1, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "NULL", torus_alltoall(g, buffer, NULL, 1, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "NULL", torus_alltoall(g, NULL, NULL, 1, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "after the end of the memory",
          torus_alltoall(g, memory, buffer, 4096, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "after the end of the memory",
          torus_allgather(g, buffer, memory + 4000, 97, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "NULL",
          torus_alltoallv(g, buffer, sizes, NULL, buffer, sizes, sizes, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "together: at most 18446744073709551615 bytes are possible",
          torus_alltoallv(g, buffer, huge, sizes, buffer, sizes, sizes, &client_group_error));
    FAILS(TORUS_ERROR_USAGE,
          "at offset 18446744073709551615) is too large: at most 0 bytes are possible",
          torus_alltoallv(g, buffer, sizes, end, buffer, sizes, sizes, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "member 6", torus_broadcast(g, buffer, 1, 6, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "not a type",
          torus_allreduce(g, buffer, buffer + 500, 1, (enum torus_type)16, TORUS_SUM,
                          &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "not an operator",
          torus_allreduce(g, buffer, buffer + 500, 1, TORUS_INT8, (enum torus_operator)0,
                          &client_group_error));
    FAILS(
        TORUS_ERROR_USAGE, "operator or is not defined for elements of type float32",
        torus_allreduce(g, buffer, buffer + 500, 1, TORUS_FLOAT32, TORUS_OR, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "member 6",
          torus_reduce(g, buffer, buffer + 500, 1, TORUS_INT8, TORUS_SUM, 6, &client_group_error));
    FAILS(
        TORUS_ERROR_USAGE, "operator or is not defined for elements of type float32",
        torus_reduce(g, buffer, buffer + 500, 1, TORUS_FLOAT32, TORUS_OR, 0, &client_group_error));
    FAILS(
        TORUS_ERROR_USAGE, "here member 0, can use TORUS_IN_PLACE: this is member 4",
        torus_reduce(g, TORUS_IN_PLACE, buffer, 1, TORUS_INT8, TORUS_SUM, 0, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "overlap",
          torus_reduce(g, buffer, buffer + 3, 4, TORUS_INT8, TORUS_SUM, 4, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "NULL",
          torus_reduce(g, buffer, NULL, 4, TORUS_INT8, TORUS_SUM, 4, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "too many",
          torus_reduce(g, buffer, NULL, SIZE_MAX / 2, TORUS_INT64, TORUS_SUM, 0,
                       &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "NULL",
          torus_start_reduce_scatter(g, buffer, buffer, NULL, TORUS_INT8, TORUS_SUM, &call,
                                     &client_group_error));
    assert_null(call);
    OK(torus_barrier(g, &client_group_error)); /* none of them counted */
    assert_int_equal(client_group_daemon.groups.calls, 1);
    torus_group_close(g);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

CLIENT_GROUP_TEST(test_parts)
{
    struct torus_group *g = client_group_open(), *row, *column, *none;
    uint8_t from[300], to[300];
    struct torus_call *call;

    OK(torus_group_part(g, 1 << 1, &row, &client_group_error));
    OK(torus_group_part(g, 1 << 0, &column, &client_group_error));
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
    FAILS(TORUS_ERROR_USAGE, "0x4", torus_group_part(g, 4, &none, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "0x0", torus_group_part(g, 0, &none, &client_group_error));
    OK(torus_group_part(g, 3, &none, &client_group_error));
    assert_string_equal(torus_group_dims(none), "2x3m");
    assert_int_equal(torus_group_rank(none), 4);
    OK(torus_barrier(none, &client_group_error));
    torus_group_close(none);
    FAILS(TORUS_ERROR_USAGE, "part of a part",
          torus_group_part(row, 2, &none, &client_group_error));
    FAILS(TORUS_ERROR_REFUSED, "open already", torus_group_part(g, 2, &none, &client_group_error));
    client_group_fill(from, 300, 1);
    OK(torus_alltoall(row, from, to, 100, &client_group_error));
    client_group_expect(to, 300, 1);
    assert_int_equal(client_group_daemon.groups.last.part, 2);
    OK(torus_start_alltoall(column, from, to, 100, &call, &client_group_error));
    torus_group_close(row);
    OK(torus_call_wait(call, &client_group_error));
    programs_hold(&client_group_daemon, true);
    OK(torus_start_barrier(column, &call, &client_group_error));
    torus_group_close(column); /* with a call under way */
    programs_await_groups(&client_group_daemon, 0);
    programs_hold(&client_group_daemon, false);
    FAILS(TORUS_ERROR_CANCELLED, "part was closed", torus_barrier(g, &client_group_error));
    torus_group_close(g);
}

/* Groups of libtorus: operations in all kinds of memory, with and without waiting. */

/* ---- Operations ------------------------------------------------------------------------------ */

/* Blocks: their sizes and offsets; blocks may overlap. */
static const size_t sizes[CLIENT_GROUP_MEMBERS] = {10, 0, 5000, 1, 33, 7};
static const size_t near[CLIENT_GROUP_MEMBERS] = {5200, 1, 100, 99, 5100, 5300};
static const size_t to_far[CLIENT_GROUP_MEMBERS] = {50000, 0, 40000, 0, 100, 200};
static const size_t apart[CLIENT_GROUP_MEMBERS] = {9, 99, 100, 6000, 6100, 6200};

/* `from` and `to` have room for 64 KiB each, here and below. */
static void run_alltoall(struct torus_group *g, uint8_t *from, uint8_t *to)
{
    client_group_fill(from, 60000, 1);
    memset(to, 0, 60000);
    OK(torus_alltoall(g, from, to, 10000, &client_group_error));
    client_group_expect(to, 60000, 1);
    client_group_fill(to, 60000, 2);
    OK(torus_alltoall(g, TORUS_IN_PLACE, to, 10000, &client_group_error));
    client_group_expect(to, 60000, 2);

    client_group_fill(from, 10000, 3);
    memset(to, 0, 60000);
    OK(torus_alltoallv(g, from, sizes, apart, to, sizes, to_far, &client_group_error));
    for (unsigned i = 0; i < CLIENT_GROUP_MEMBERS; i++)
        assert_memory_equal(to + to_far[i], from + apart[i], sizes[i]);
    assert_int_equal(to[45000], 0); /* only blocks are written */
    client_group_fill(to, 60000, 4);
    OK(torus_alltoallv(g, TORUS_IN_PLACE, NULL, NULL, to, sizes, near, &client_group_error));
    client_group_expect(to, 60000, 4);
}

static void run_allgather(struct torus_group *g, uint8_t *from, uint8_t *to)
{
    client_group_fill(from, 3000, 5);
    OK(torus_allgather(g, from, to, 3000, &client_group_error));
    for (unsigned i = 0; i < CLIENT_GROUP_MEMBERS; i++)
        client_group_expect(to + 3000 * i, 3000, 5);
    memset(to, 0, 60000);
    client_group_fill(to + 4 * 100, 100, 6);
    OK(torus_allgather(g, TORUS_IN_PLACE, to, 100, &client_group_error));
    client_group_expect(to + 4 * 100, 100, 6);

    client_group_fill(from, 33, 7);
    memset(to, 0, 60000);
    OK(torus_allgatherv(g, from, to, sizes, near, &client_group_error));
    client_group_expect(to + near[4], 33, 7);
    client_group_expect(to + near[2], 33, 7);
    OK(torus_allgatherv(g, TORUS_IN_PLACE, to, sizes, near, &client_group_error));
    client_group_expect(to + near[4], 33, 7);
}

/* A description is of the next call only. */
CLIENT_GROUP_TEST(test_descriptions)
{
    struct torus_group *g = client_group_open();
    const size_t shape[] = {3, 4};
    struct data_kind expected;

    data_kind_set(&expected, "float64", shape, 2);
    torus_group_describe(g, "int8", NULL, 0);
    torus_group_describe(g, "float64", shape, 2);
    OK(torus_barrier(g, &client_group_error));
    assert_memory_equal(&client_group_daemon.groups.last.data, &expected, sizeof expected);
    OK(torus_barrier(g, &client_group_error));
    assert_false(data_kind_is_known(&client_group_daemon.groups.last.data));
    torus_group_describe(g, NULL, NULL, 0);
    OK(torus_barrier(g, &client_group_error));
    assert_false(data_kind_is_known(&client_group_daemon.groups.last.data));
    torus_group_close(g);
}

static void run_reductions(struct torus_group *g, uint8_t *from, uint8_t *to)
{
    client_group_fill(from, 8000, 9);
    OK(torus_allreduce(g, from, to, 1000, TORUS_FLOAT64, TORUS_SUM, &client_group_error));
    client_group_expect(to, 8000, 9);
    client_group_fill(to, 8000, 10);
    OK(torus_allreduce(g, TORUS_IN_PLACE, to, 2000, TORUS_INT32, TORUS_XOR, &client_group_error));
    client_group_expect(to, 8000, 10);

    client_group_fill(from, 8000, 13);
    OK(torus_reduce(g, from, to, 1000, TORUS_FLOAT64, TORUS_SUM, 4,
                    &client_group_error)); /* to this member */
    client_group_expect(to, 8000, 13);
    client_group_fill(to, 8000, 14);
    OK(torus_reduce(g, TORUS_IN_PLACE, to, 2000, TORUS_INT32, TORUS_XOR, 4, &client_group_error));
    client_group_expect(to, 8000, 14);
    OK(torus_reduce(g, from, to, 1000, TORUS_FLOAT64, TORUS_SUM, 0,
                    &client_group_error)); /* to another one */
    OK(torus_reduce(g, from, NULL, 1000, TORUS_FLOAT64, TORUS_SUM, 0, &client_group_error));
    OK(torus_reduce(g, from, from, 1000, TORUS_FLOAT64, TORUS_SUM, 0, &client_group_error));
    assert_int_equal(client_group_daemon.groups.last.receive.size, 0);
    client_group_expect(to, 8000, 14);
    client_group_expect(from, 8000, 13);

    client_group_fill(from, 20204, 11);
    memset(to, 0, 60000);
    OK(torus_reduce_scatter(g, from, to, sizes, TORUS_UINT32, TORUS_MAX, &client_group_error));
    assert_memory_equal(to, from + 4 * 5011, 4 * 33);
    assert_int_equal(to[4 * 33], 0);
    client_group_fill(to, 20204, 12);
    OK(torus_reduce_scatter(g, TORUS_IN_PLACE, to, sizes, TORUS_UINT32, TORUS_MAX,
                            &client_group_error));
    client_group_fill(from, 20204, 12);
    assert_memory_equal(to, from + 4 * 5011, 4 * 33);
}

/* This is member 4 of 6. */
static void run_gather(struct torus_group *g, uint8_t *from, uint8_t *to)
{
    client_group_fill(from, 1000, 15);
    memset(to, 0, 6000);
    OK(torus_gather(g, from, to, 1000, 4, &client_group_error)); /* to this member */
    for (unsigned i = 0; i < 6; i++)
        client_group_expect(to + 1000 * i, 1000, 15);
    client_group_fill(to + 4000, 1000, 16);
    OK(torus_gather(g, TORUS_IN_PLACE, to, 1000, 4, &client_group_error));
    client_group_expect(to + 4000, 1000, 16);
    OK(torus_gather(g, from, to, 1000, 0, &client_group_error)); /* to another one */
    OK(torus_gather(g, from, NULL, 1000, 0, &client_group_error));
    assert_int_equal(client_group_daemon.groups.last.receive.size, 0);
    client_group_expect(to + 4000, 1000, 16);
    client_group_expect(from, 1000, 15);
}

/* This is member 4 of 6. The stand-in carries out the others as the exchanges that they are: every member sends what this
 * one does. */
static void run_uneven_gather(struct torus_group *g, uint8_t *from, uint8_t *to)
{
    static const size_t bytes[] = {0, 30, 0, 0, 70, 0}, offset[] = {0, 5, 0, 0, 100, 0};

    client_group_fill(from, 70, 17);
    memset(to, 0, 200);
    OK(torus_gatherv(g, from, 70, to, bytes, offset, 4, &client_group_error));
    client_group_expect(to + 100, 70, 17);
    client_group_fill(to + 100, 70, 18);
    OK(torus_gatherv(g, TORUS_IN_PLACE, 0, to, bytes, offset, 4, &client_group_error));
    client_group_expect(to + 100, 70, 18);
    OK(torus_gatherv(g, from, 70, NULL, NULL, NULL, 0, &client_group_error));
    assert_int_equal(client_group_daemon.groups.last.receive.size, 0);
    client_group_expect(to + 100, 70, 18);
}

static void run_scatter(struct torus_group *g, uint8_t *from, uint8_t *to)
{
    static const size_t bytes[] = {0, 30, 0, 0, 70, 0}, offset[] = {0, 5, 0, 0, 100, 0};

    client_group_fill(from, 6000, 19);
    memset(to, 0, 6000);
    OK(torus_scatter(g, from, to, 1000, 4, &client_group_error)); /* from this member */
    assert_memory_equal(to, from + 4000, 1000);
    assert_int_equal(to[1000], 0);
    client_group_fill(to, 6000, 20);
    OK(torus_scatter(g, TORUS_IN_PLACE, to, 1000, 4, &client_group_error));
    client_group_expect(to, 6000, 20);
    OK(torus_scatter(g, NULL, to, 1000, 0, &client_group_error)); /* from another one */
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(to[i], 's');
    assert_int_equal(client_group_daemon.groups.last.send.size, 0);

    memset(to, 0, 6000);
    OK(torus_scatterv(g, from, bytes, offset, to, 70, 4, &client_group_error));
    assert_memory_equal(to, from + 100, 70);
    assert_int_equal(to[70], 0);
    client_group_fill(to, 200, 21);
    OK(torus_scatterv(g, TORUS_IN_PLACE, bytes, offset, to, 0, 4, &client_group_error));
    client_group_expect(to, 200, 21);
    OK(torus_scatterv(g, NULL, NULL, NULL, to, 70, 0, &client_group_error));
    assert_int_equal(client_group_daemon.groups.last.send.size, 0);
}

/* The stand-in sends 'm'. */
static void run_messages(struct torus_group *g, uint8_t *from, uint8_t *to)
{
    struct torus_call *sent, *got;

    OK(torus_start_send(g, from, 1000, 0, 7, &sent, &client_group_error));
    OK(torus_start_receive(g, to, 1000, 5, UINT32_MAX, &got, &client_group_error));
    OK(torus_call_wait(got, &client_group_error));
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(to[i], 'm');
    assert_int_equal(client_group_daemon.groups.last.root, 5);
    assert_int_equal(client_group_daemon.groups.last.size, UINT32_MAX);
    assert_int_equal(client_group_daemon.groups.last.receive.size, 1000);
    OK(torus_call_wait(sent, &client_group_error));
    OK(torus_send(g, NULL, 0, 1, 0, &client_group_error));
    assert_int_equal(client_group_daemon.groups.last.root, 1);
    OK(torus_receive(g, NULL, 0, 1, 0, &client_group_error));
}

static void run_operations(struct torus_group *g, uint8_t *from, uint8_t *to)
{
    run_alltoall(g, from, to);
    run_allgather(g, from, to);
    run_gather(g, from, to);
    run_uneven_gather(g, from, to);
    run_scatter(g, from, to);
    run_messages(g, from, to);

    OK(torus_broadcast(g, to, 1000, 0, &client_group_error));
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(to[i], 'b');
    client_group_fill(to, 1000, 8);
    OK(torus_broadcast(g, to, 1000, 4, &client_group_error));
    client_group_expect(to, 1000, 8);

    OK(torus_barrier(g, &client_group_error));

    run_reductions(g, from, to);

    OK(torus_alltoall(g, NULL, NULL, 0, &client_group_error));
    OK(torus_broadcast(g, NULL, 0, 1, &client_group_error));
}

CLIENT_GROUP_TEST(test_ordinary_memory)
{
    struct torus_group *g = client_group_open();
    uint8_t *from = malloc(65536), *to = malloc(65536);

    run_operations(g, from, to);
    torus_group_close(g);
    free(from);
    free(to);
}

CLIENT_GROUP_TEST(test_registered_memory)
{
    struct torus_group *g = client_group_open();
    uint8_t *memory = torus_memory_new(g, 200000, &client_group_error), *plain = malloc(65536);

    assert_non_null(memory);
    for (unsigned i = 0; i < 200000; i++)
        assert_int_equal(memory[i], 0);
    run_operations(g, memory + 1, memory + 65536);
    run_operations(g, plain, memory + 3);
    run_operations(g, memory + 100000, plain);
    /* Blocks arrive before others are sent: the daemon must not send received bytes. */
    OK(torus_alltoall(g, TORUS_IN_PLACE, memory, 100, &client_group_error));
    assert_ptr_not_equal(client_group_daemon.groups.last.send.memory,
                         client_group_daemon.groups.last.receive.memory);
    OK(torus_alltoall(g, memory, memory + 600, 100, &client_group_error));
    assert_ptr_equal(client_group_daemon.groups.last.send.memory,
                     client_group_daemon.groups.last.receive.memory);
    torus_memory_free(g, NULL);
    torus_memory_free(g, memory);
    FAILS(TORUS_ERROR_USAGE, "0 bytes cannot be allocated",
          torus_memory_new(g, 0, &client_group_error) != NULL ? 0 : -1);
    FAILS(TORUS_ERROR_MEMORY, "",
          torus_memory_new(g, SIZE_MAX / 4, &client_group_error) != NULL ? 0 : -1);
    FAILS(TORUS_ERROR_MEMORY, "too many: at most 9223372036854775807 are possible",
          torus_memory_new(g, SIZE_MAX, &client_group_error) != NULL ? 0 : -1);
    OK(torus_barrier(g, &client_group_error));
    torus_group_close(g);
    free(plain);
}

/* ---- Without waiting ------------------------------------------------------------------------- */

CLIENT_GROUP_TEST(test_any_order)
{
    struct torus_group *g = client_group_open();
    struct torus_call *call[16];
    uint8_t from[16][100], to[16][100];

    programs_hold(&client_group_daemon, true);
    for (unsigned i = 0; i < 16; i++) {
        client_group_fill(from[i], 96, i);
        OK(torus_start_alltoall(g, from[i], to[i], 16, &call[i], &client_group_error));
        memset(from[i], 0, 96); /* has been copied */
    }
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(torus_call_test(call[i], &client_group_error), 0);
    programs_hold(&client_group_daemon, false);
    for (unsigned i = 16; i-- > 0;)
        OK(torus_call_wait(call[i * 5 % 16], &client_group_error));
    for (unsigned i = 0; i < 16; i++)
        client_group_expect(to[i], 96, i);
    torus_group_close(g);
}

/* One call without a wait does not block later calls; too many at once do. */
CLIENT_GROUP_TEST(test_many_calls)
{
    struct torus_group *g = client_group_open();
    struct torus_call *first, *call[64], *more;
    double one = 1, result = 0;

    OK(torus_start_allreduce(g, &one, &result, 1, TORUS_FLOAT64, TORUS_SUM, &first,
                             &client_group_error));
    for (unsigned i = 0; i < 200; i++)
        OK(torus_barrier(g, &client_group_error));
    OK(torus_call_wait(first, &client_group_error));
    assert_true(result == 1);
    programs_hold(&client_group_daemon, true);
    for (unsigned i = 0; i < 64; i++)
        OK(torus_start_barrier(g, &call[i], &client_group_error));
    FAILS(TORUS_ERROR_BUSY, "64 calls", torus_start_barrier(g, &more, &client_group_error));
    programs_hold(&client_group_daemon, false);
    for (unsigned i = 0; i < 64; i++)
        OK(torus_call_wait(call[i], &client_group_error));
    OK(torus_barrier(g, &client_group_error));
    torus_group_close(g);
}

CLIENT_GROUP_TEST(test_descriptor)
{
    struct torus_group *g = client_group_open(), *row;
    struct torus_call *call[8];
    unsigned left = 8;
    int fd;

    OK(torus_group_part(g, 2, &row, &client_group_error));
    OK(torus_start_barrier(g, &call[0],
                           &client_group_error)); /* ends before anybody asks for the descriptor */
    fd = torus_group_fd(g);
    assert_int_equal(torus_group_fd(row), fd);
    for (unsigned i = 1; i < 8; i++)
        OK(torus_start_barrier(i % 2 != 0 ? g : row, &call[i], &client_group_error));
    while (left > 0) {
        assert_true(client_group_is_readable(fd, -1));
        for (unsigned i = 8; i-- > 0;)
            if (call[i] != NULL && torus_call_test(call[i], &client_group_error) == 1) {
                call[i] = NULL;
                left--;
            }
    }
    programs_hold(&client_group_daemon, true);
    OK(torus_start_barrier(g, &call[0], &client_group_error));
    while (client_group_is_readable(fd, 0)) /* earlier events */
        assert_int_equal(torus_call_test(call[0], &client_group_error), 0);
    programs_hold(&client_group_daemon, false);
    assert_true(client_group_is_readable(fd, -1));
    OK(torus_call_wait(call[0], &client_group_error));
    for (unsigned i = 0; i < 2000; i++) { /* always noticed */
        OK(torus_start_barrier(g, &call[0], &client_group_error));
        OK(torus_start_barrier(g, &call[1], &client_group_error));
        for (left = 2; left > 0;) {
            assert_true(client_group_is_readable(fd, -1));
            for (unsigned k = 0; k < 2; k++)
                if (call[k] != NULL && torus_call_test(call[k], &client_group_error) == 1) {
                    call[k] = NULL;
                    left--;
                }
        }
    }
    torus_group_close(g);
}

/* Returns the call if its end has woken the thread, and NULL after a minute. */
static void *pause_in_thread(void *call)
{
    return torus_call_pause(call, UINT64_C(60000000000)) ? call : NULL;
}

static void expect_woken(pthread_t thread, const void *call)
{
    void *woken_by;

    assert_int_equal(pthread_join(thread, &woken_by), 0);
    assert_ptr_equal(woken_by, call);
}

CLIENT_GROUP_TEST(test_pause)
{
    struct torus_group *g = client_group_open();
    struct torus_call *call[3];
    pthread_t thread[2];

    programs_hold(&client_group_daemon, true);
    for (unsigned i = 0; i < 3; i++)
        OK(torus_start_barrier(g, &call[i], &client_group_error));
    assert_false(torus_call_pause(call[0], 0));
    assert_false(torus_call_pause(call[1], 2000000));
    assert_int_equal(torus_call_test(call[1], &client_group_error), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, pause_in_thread, call[i]), 0);
    assert_int_equal(torus_call_test(call[2], &client_group_error), 0); /* while others wait */
    programs_hold(&client_group_daemon, false);
    for (unsigned i = 0; i < 2; i++)
        expect_woken(thread[i], call[i]);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(torus_call_test(call[i], &client_group_error), 1);
    OK(torus_call_wait(call[2], &client_group_error));
    /* A call that has ended stays ended, even after its slot was used again. */
    OK(torus_start_barrier(g, &call[0], &client_group_error));
    for (unsigned i = 0; i < 100; i++)
        OK(torus_barrier(g, &client_group_error));
    assert_true(torus_call_pause(call[0], 0));
    assert_true(torus_call_pause(call[0], UINT64_MAX));
    OK(torus_call_wait(call[0], &client_group_error));
    torus_group_close(g);
}

/* ---- Staging --------------------------------------------------------------------------------- */

/* Staging memory is used again, in any order of sizes and waits. */
CLIENT_GROUP_TEST(test_staging)
{
    struct torus_group *g = client_group_open();
    uint8_t *from = malloc(6 << 20), *to = malloc(6 << 20), *other = malloc(6 << 20);
    unsigned before;

    OK(torus_barrier(g, &client_group_error)); /* the daemon has closed its copies */
    before = programs_descriptors();
    client_group_fill(from, 6 << 20, 1);
    for (size_t block = 1; block <= 1 << 20; block = block * 3 + 1) {
        struct torus_call *a, *b;
        memset(to, 0, 6 * block);
        memset(other, 0, 6 * block);
        OK(torus_start_alltoall(g, from, to, block, &a, &client_group_error));
        OK(torus_start_alltoall(g, from, other, block, &b, &client_group_error));
        OK(torus_call_wait(block % 2 != 0 ? b : a, &client_group_error));
        OK(torus_call_wait(block % 2 != 0 ? a : b, &client_group_error));
        client_group_expect(to, 6 * block, 1);
        client_group_expect(other, 6 * block, 1);
    }
    assert_int_equal(programs_descriptors(), before);
    torus_group_close(g);
    free(from);
    free(to);
    free(other);
}

CLIENT_GROUP_TEST(test_no_descriptor_stays)
{
    struct torus_group *g = client_group_open();
    unsigned before;

    torus_group_close(g);
    programs_await_groups(&client_group_daemon, 0);
    before = programs_descriptors();
    for (unsigned i = 0; i < 50; i++) {
        g = client_group_open();
        OK(torus_barrier(g, &client_group_error));
        assert_non_null(torus_memory_new(g, 100, &client_group_error));
        (void)torus_group_fd(g);
        torus_group_close(g);
        programs_await_groups(&client_group_daemon, 0);
    }
    assert_int_equal(programs_descriptors(), before);
}
