/* The setup of the sockets of links: this program's connect(), listen() and accept4() replace those of the system, and
 * inspect the sockets. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/torusd/net/tcp.h"
#include "tests/support/cmocka.h"

struct options {
    bool seen;
    int nodelay, unsent, hops;
    char congestion[16];
};

static struct options connecting, listening, accepted;
static int listener;

static struct options options_of(int fd)
{
    struct options o = {.seen = true};
    socklen_t size = sizeof o.nodelay, unsent = sizeof o.unsent, name = sizeof o.congestion,
              hops = sizeof o.hops;

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &o.nodelay, &size), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &o.unsent, &unsent), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o.congestion, &name), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_IP, IP_TTL, &o.hops, &hops), 0);
    return o;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    connecting = options_of(fd);
    return (int)syscall(SYS_connect, fd, address, length);
}

int listen(int fd, int backlog)
{
    listening = options_of(fd);
    listener = fd;
    return (int)syscall(SYS_listen, fd, backlog);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    int result = (int)syscall(SYS_accept4, fd, address, length, flags);

    if (result >= 0)
        accepted = options_of(result);
    return result;
}

/* An algorithm other than the default, if the system has one. */
static const char *another_congestion(char *name, size_t size)
{
    char available[256], system[16] = "", *rest = available, *word;
    socklen_t length = sizeof system;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_allowed_congestion_control", "r");

    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, system, &length), 0);
    assert_int_equal(close(fd), 0);
    (void)snprintf(name, size, "%s", system);
    if (file == NULL)
        return name;
    if (fgets(available, sizeof available, file) != NULL)
        while ((word = strsep(&rest, " \n")) != NULL)
            if (*word != '\0' && strcmp(word, system) != 0)
                (void)snprintf(name, size, "%s", word);
    assert_int_equal(fclose(file), 0);
    return name;
}

static void check(const struct options *o, const char *congestion)
{
    assert_true(o->seen);
    assert_int_equal(o->nodelay, 1);
    assert_int_equal(o->unsent, 64 * 1024);
    assert_string_equal(o->congestion, congestion);
    assert_int_equal(o->hops, 7);
}

/* Set later, BBR's timer would stay. */
TEST(sockets_are_set_up_before_they_connect_or_listen)
{
    struct endpoint endpoint[TORUS_MAX_PORTS] = {0};
    struct sockaddr_in here;
    socklen_t length = sizeof here;
    struct router_io io;
    struct torus torus;
    struct error e;
    char congestion[16];
    uv_loop_t loop;

    assert_int_equal(torus_parse(&torus, "3", &e), 0);
    assert_int_equal(endpoint_parse("127.0.0.1:1", &endpoint[0], &e), 0);
    endpoint[0].port = 0; /* any */
    endpoint[1] = endpoint[0];
    assert_int_equal(uv_loop_init(&loop), 0);
    const struct tcp_setup setup = {
        &loop, &torus, endpoint, another_congestion(congestion, sizeof congestion), 0, 7};
    struct tcp *tcp = tcp_new(&setup, 0, &io, &e);
    assert_non_null(tcp);
    check(&listening, congestion);

    /* It dials itself. */
    for (unsigned port = 0; port < torus_ports(&torus); port++)
        if (torus_port_direction(&torus, port) > 0) {
            assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &length), 0);
            endpoint[port].port = ntohs(here.sin_port);
            io.dial(io.context, port);
        }
    check(&connecting, congestion);
    while (!accepted.seen)
        (void)uv_run(&loop, UV_RUN_ONCE);
    check(&accepted, congestion);

    tcp_close(tcp);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}
