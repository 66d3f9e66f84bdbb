/* The socket that 'torusctl routes' asks, with clients that never read. */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/torus-routed/report.h"
#include "tests/support/cmocka.h"

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
