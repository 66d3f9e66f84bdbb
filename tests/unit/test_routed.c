/* When connections to a host are spread over all paths, and when the kernel is asked for connections. */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/torus-routed/kernel/kernel.h"
#include "daemon/torus-routed/report.h"
#include "daemon/torus-routed/spreading.h"
#include "tests/support/cmocka.h"
#include "tests/unit/programs_fixture.h"
#include "tests/unit/test_client_fake.h"

#define NODES 4u
#define MUCH (10 * SPREADING_BYTES)

/* What the kernel tells. */
static struct {
    uint64_t
        connection[4]; /* bytes that each has sent to node 2, since it exists; 0: there is none */
    uint64_t sent[TORUS_MAX_PORTS];
    unsigned lists;
    bool fails;
} kernel;
static struct host_entry entry[NODES];
static const struct host_addresses hosts = {.count = NODES, .host = entry};
static struct spreading spreading;

int __wrap_connections_list(int family,
                            void (*on_connection)(void *, const struct ip *, uint64_t, uint64_t),
                            void *context);
int __wrap_connections_list(int family,
                            void (*on_connection)(void *, const struct ip *, uint64_t, uint64_t),
                            void *context)
{
    assert_int_equal(family, AF_INET);
    kernel.lists++;
    if (kernel.fails)
        return -1;
    for (unsigned i = 0; i < 4; i++)
        if (kernel.connection[i] > 0)
            on_connection(context, &entry[2].ip[0], i + 1, kernel.connection[i]);
    return 0;
}

/* Half a second in which that many connections send that much each. */
static void pass(unsigned connections, uint64_t each)
{
    for (unsigned i = 0; i < 4; i++) {
        kernel.connection[i] = i < connections ? kernel.connection[i] + each : 0;
        kernel.sent[i % 2] += i < connections ? each : 0;
    }
}

static bool look(void)
{
    return spreading_look(&spreading, &hosts, kernel.sent);
}

static int set_up(void **state)
{
    memset(&kernel, 0, sizeof kernel);
    for (uint32_t i = 0; i < NODES; i++) {
        entry[i].ip[0].family = AF_INET;
        entry[i].ip[0].v4.s_addr = i + 1;
    }
    return spreading_init(&spreading, NODES);
}

static int tear_down(void **state)
{
    spreading_free(&spreading);
    return 0;
}

/* Sends much over two connections until they are spread. */
static void spread(void)
{
    for (unsigned i = 0; i < 2; i++) {
        assert_false(spreading.spread[2]);
        pass(2, MUCH);
        assert_int_equal(look(), i == 1);
    }
    assert_true(spreading.spread[2]);
}

TEST_WITH(set_up, tear_down, several_are_spread_and_one_is_not)
{
    for (unsigned i = 0; i < 5; i++) {
        pass(1, MUCH);
        assert_false(look());
    }
    pass(2, MUCH);
    assert_true(look());
    assert_true(spreading.spread[2]);
    assert_false(spreading.spread[0] || spreading.spread[1] || spreading.spread[3]);
}

TEST_WITH(set_up, tear_down, they_are_spread_until_they_have_been_calm)
{
    spread();
    for (unsigned i = 1; i < SPREADING_LOOKS; i++) {
        pass(1, MUCH);
        assert_false(look());
    }
    pass(1, MUCH);
    assert_true(look());
    assert_false(spreading.spread[2]);
}

/* The table of all connections is long to search. */
TEST_WITH(set_up, tear_down, connections_are_not_listed_while_cables_are_idle)
{
    spread();
    kernel.lists = 0;
    for (unsigned i = 0; i < 5; i++) {
        pass(2, SPREADING_BYTES - 1);
        assert_false(look());
    }
    assert_int_equal(kernel.lists, 0);
    /* Bytes sent meanwhile do not count as bytes sent since the last look. */
    spreading.spread[2] = false;
    kernel.connection[0] += MUCH;
    kernel.connection[1] += MUCH;
    kernel.sent[0] += 2 * SPREADING_BYTES;
    assert_false(look());
    assert_int_equal(kernel.lists, 1);
}

/* An interface that is deleted and made again counts from 0. */
TEST_WITH(set_up, tear_down, counters_that_begin_again_are_no_traffic)
{
    spread();
    kernel.sent[1] = 0;
    pass(2, MUCH);
    assert_false(look());
    assert_true(spreading.spread[2]);
}

TEST_WITH(set_up, tear_down, without_counters_connections_are_listed_each_time)
{
    for (unsigned i = 0; i < 2; i++) {
        pass(2, MUCH);
        assert_int_equal(spreading_look(&spreading, &hosts, NULL), i == 1);
    }
    assert_int_equal(kernel.lists, 2);
    assert_true(spreading.spread[2]);
}

TEST_WITH(set_up, tear_down, connections_that_the_kernel_does_not_list_are_spread)
{
    kernel.fails = true;
    pass(2, MUCH);
    assert_true(look());
    for (uint32_t node = 0; node < NODES; node++)
        assert_true(spreading.spread[node]);
    /* It has not told anything else while nothing is sent. */
    for (unsigned i = 0; i < 2 * SPREADING_LOOKS; i++)
        assert_false(look());
    kernel.fails = false;
    pass(1, MUCH);
    assert_true(look());
    assert_false(spreading.spread[2]);
}

/* The socket that 'torusctl routes' asks, with clients that never read. */

#define IDLE 40
#define SIZE (1u << 20) /* more than the kernel takes from a writer at once */

static uv_loop_t loop;

static json_t *make(void *context)
{
    char *text = malloc(SIZE + 1);
    json_t *value;

    assert_non_null(text);
    memset(text, 'x', SIZE);
    text[SIZE] = '\0';
    value = json_pack("{s:s}", "text", text);
    free(text);
    return value;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)strcpy(address.sun_path, path);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    return fd;
}

TEST(clients_that_do_not_read_keep_nobody_out)
{
    char folder[] = "/tmp/torus-report-XXXXXX", path[64], part[65536];
    struct report_server server = {.loop = &loop, .path = path, .make = make};
    int idle[IDLE], reader;
    size_t length = 0;
    struct error e;
    ssize_t n;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s", folder);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(report_serve(&server, &e), 0);
    for (unsigned i = 0; i < IDLE; i++)
        idle[i] = connect_to(path);
    reader = connect_to(path);
    while ((n = recv(reader, part, sizeof part, 0)) != 0) {
        length += n > 0 ? (size_t)n : 0;
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    assert_true(length > SIZE);
    for (unsigned i = 0; i < IDLE; i++)
        assert_int_equal(close(idle[i]), 0);
    assert_int_equal(close(reader), 0);
    report_stop(&server);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(rmdir(folder), 0);
}
