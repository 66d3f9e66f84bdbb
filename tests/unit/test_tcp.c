/* The setup of the sockets of links: this program's connect(), listen() and accept4() replace those of the system, and
 * inspect the sockets. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/net/sockets.h"
#include "daemon/torusd/net/tcp.h"
#include "daemon/torusd/net/tcp_stat.h"
#include "daemon/torusd/router/observed.h"
#include "tests/support/cmocka.h"

struct options {
    bool seen;
    int nodelay, unsent, hops;
    char congestion[16];
};

static struct options connecting, listening, accepted;
static int bound;

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
    bound = fd;
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
    const double unknown[2] = {0};
    const struct tcp_setup setup = {
        &loop, &torus, endpoint, another_congestion(congestion, sizeof congestion), unknown, 7, 0};
    struct tcp *tcp = tcp_new(&setup, 0, &io, &e);
    assert_non_null(tcp);
    check(&listening, congestion);

    /* It dials itself. */
    for (unsigned port = 0; port < torus_ports(&torus); port++)
        if (torus_port_direction(&torus, port) > 0) {
            assert_int_equal(getsockname(bound, (struct sockaddr *)&here, &length), 0);
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

/* Queries to the kernel about a connection: whether the other system acknowledges sent bytes. */

#define BYTES 10000u
#define LOOKS 3000 /* 10 ms apart */

struct ends {
    int here, there;
    struct busy_rate rate;
    uint64_t now; /* a second passes between two looks */
};

static struct ends connect_ends(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct ends e = {.here = socket(AF_INET, SOCK_STREAM, 0)};

    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(e.here, (struct sockaddr *)&address, size), 0);
    e.there = accept(listener, NULL, NULL);
    assert_true(e.there >= 0);
    (void)close(listener);
    return e;
}

static void close_ends(const struct ends *e)
{
    (void)close(e->here);
    (void)close(e->there);
}

static struct connection_stat look(struct ends *e)
{
    struct connection_stat stat = {0};

    e->now += 1000000000;
    tcp_stat(e->here, &e->rate, e->now, &stat);
    return stat;
}

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    (void)nanosleep(&pause, NULL);
}

TEST(read_bytes_are_acknowledged)
{
    static const uint8_t bytes[BYTES];
    struct ends e = connect_ends();
    const uint64_t before = look(&e).acked;
    struct connection_stat stat = {0};

    assert_int_equal(send(e.here, bytes, BYTES, MSG_NOSIGNAL), BYTES);
    for (int i = 0; i < LOOKS && stat.acked < before + BYTES; i++) {
        pause_shortly();
        stat = look(&e);
    }
    assert_int_equal(stat.acked, before + BYTES);
    assert_int_equal(stat.unacked, 0);
    assert_false(stat.in_flight);
    assert_true(stat.segment > 0 && stat.mtu > stat.segment);
    assert_int_equal(stat.rate_bps, 0); /* nothing has waited for the network */
    close_ends(&e);
}

/* Bytes wait, and nothing is acknowledged, but the other system is there: it has reported that it has no room. */
TEST(a_full_receiver_is_not_taken_for_lost)
{
    static const uint8_t bytes[BYTES];
    struct ends e = connect_ends();
    struct connection_stat stat = {.in_flight = true};

    while (send(e.here, bytes, BYTES, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        ;
    assert_int_equal(errno, EAGAIN);
    for (int i = 0; i < LOOKS && stat.in_flight; i++) {
        pause_shortly();
        stat = look(&e);
    }
    assert_false(stat.in_flight);
    assert_true(stat.unacked > 0);
    assert_int_equal(stat.rate_bps, 0); /* data waits for the receiver */
    close_ends(&e);
}

TEST(no_connection_leaves_the_counters_alone)
{
    struct connection_stat stat = {.acked = 5, .in_flight = true};

    tcp_stat(-1, NULL, 0, &stat);
    assert_int_equal(stat.acked, 5);
    assert_true(stat.in_flight);
}

/* How fast the kernel may send on slow links, with sockets of the test on 127.0.0.1. */

#define MBIT 50.0
#define SEGMENT 1460 /* less the 12 bytes of timestamps */

struct pair {
    int dialled, accepted;
};

static struct pair connected(int family, int segment)
{
    struct sockaddr_storage address = {0};
    socklen_t length =
        family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int listener = socket(family, SOCK_STREAM, 0);
    struct pair p = {socket(family, SOCK_STREAM, 0), -1};

    address.ss_family = (sa_family_t)family;
    if (family == AF_INET6)
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    else
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0)
        skip(); /* a system without IPv6 */
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(setsockopt(p.dialled, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment), 0);
    assert_int_equal(connect(p.dialled, (struct sockaddr *)&address, length), 0);
    p.accepted = accept(listener, NULL, NULL);
    assert_true(p.accepted >= 0);
    close(listener);
    return p;
}

static void disconnect(struct pair p)
{
    close(p.dialled);
    close(p.accepted);
}

static uint32_t rate(int fd)
{
    uint32_t bytes_per_second = 0;
    socklen_t length = sizeof bytes_per_second;

    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, &length), 0);
    return bytes_per_second;
}

/* With a rate above that of the link's payload, a long transmission makes a queue. */
static void check_payload(int family, unsigned headers)
{
    struct pair p = connected(family, SEGMENT);
    struct pacing pacing = {.paced = true}; /* of a connection before */
    int segment = 0;
    socklen_t length = sizeof segment;

    assert_int_equal(getsockopt(p.dialled, IPPROTO_TCP, TCP_MAXSEG, &segment, &length), 0);
    assert_in_range(segment, SEGMENT - 12, SEGMENT);
    pacing_set_rate(&pacing, p.dialled, MBIT);
    pacing_before_write(&pacing, p.dialled, 1000, 1);
    assert_int_equal(rate(p.dialled), UINT32_MAX);
    pacing_before_write(&pacing, p.dialled, 64u << 10, 1);
    assert_in_range(rate(p.dialled),
                    (uint32_t)(MBIT * 1e6 / 8 * segment / (segment + (int)headers)) - 1,
                    (uint32_t)(MBIT * 1e6 / 8 * segment / (segment + (int)headers)) + 1);
    disconnect(p);
}

TEST(the_rate_is_that_of_the_payload)
{
    check_payload(AF_INET, 14 + 20 + 20 + 12);
}

TEST(headers_of_ipv6_are_longer)
{
    check_payload(AF_INET6, 14 + 40 + 20 + 12);
}

/* After a pause, the limiter of a link lets some bytes through at once. */
TEST(pacing_ends_when_the_link_has_carried_all)
{
    struct pair p = connected(AF_INET, SEGMENT);
    struct pacing pacing = {.paced = false};
    const uint64_t second = 1000;

    pacing_set_rate(&pacing, p.dialled, 8.0); /* up to 1000 bytes a millisecond */
    pacing_before_write(&pacing, p.dialled, 100000, second);
    assert_true(rate(p.dialled) < UINT32_MAX);
    pacing_before_write(&pacing, p.dialled, 1, second + 90);
    assert_true(rate(p.dialled) < UINT32_MAX);
    pacing_before_write(&pacing, p.dialled, 1, second + 120);
    assert_int_equal(rate(p.dialled), UINT32_MAX);
    disconnect(p);
}

/* A rate that changes while the connection is there counts at once, and so does its end. */
TEST(pacing_follows_the_rate_of_the_link)
{
    struct pair p = connected(AF_INET, SEGMENT);
    struct pacing pacing = {.paced = false};
    int unsent = 0;
    socklen_t length = sizeof unsent;

    pacing_set_rate(&pacing, p.dialled, 8.0);
    pacing_before_write(&pacing, p.dialled, 100000, 1);
    const uint32_t before = rate(p.dialled);
    pacing_set_rate(&pacing, p.dialled, 80.0);
    pacing_before_write(&pacing, p.dialled, 100000, 1);
    assert_in_range(rate(p.dialled), before * 10 - 10, before * 10 + 10);
    assert_int_equal(getsockopt(p.dialled, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, &length), 0);
    const int slow = unsent;
    pacing_set_rate(&pacing, p.dialled, 0);
    assert_int_equal(rate(p.dialled), UINT32_MAX);
    assert_int_equal(getsockopt(p.dialled, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, &length), 0);
    assert_true(unsent > slow);
    disconnect(p);
}
