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
          torus_allreduce(g, buffer, buffer + 500, 1, (enum torus_type)15, TORUS_SUM,
                          &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "not an operator",
          torus_allreduce(g, buffer, buffer + 500, 1, TORUS_INT8, (enum torus_operator)0,
                          &client_group_error));
    FAILS(
        TORUS_ERROR_USAGE, "integers",
        torus_allreduce(g, buffer, buffer + 500, 1, TORUS_FLOAT32, TORUS_OR, &client_group_error));
    FAILS(TORUS_ERROR_USAGE, "member 6",
          torus_reduce(g, buffer, buffer + 500, 1, TORUS_INT8, TORUS_SUM, 6, &client_group_error));
    FAILS(
        TORUS_ERROR_USAGE, "integers",
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
