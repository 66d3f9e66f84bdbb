/* How fast the kernel may send on slow links, with sockets of the test on 127.0.0.1. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/lib/net/sockets.h"
#include "tests/support/cmocka.h"

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
    pacing_start(&pacing, p.dialled, MBIT);
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
    struct pacing pacing;
    const uint64_t second = 1000;

    pacing_start(&pacing, p.dialled, 8.0); /* up to 1000 bytes a millisecond */
    pacing_before_write(&pacing, p.dialled, 100000, second);
    assert_true(rate(p.dialled) < UINT32_MAX);
    pacing_before_write(&pacing, p.dialled, 1, second + 90);
    assert_true(rate(p.dialled) < UINT32_MAX);
    pacing_before_write(&pacing, p.dialled, 1, second + 120);
    assert_int_equal(rate(p.dialled), UINT32_MAX);
    disconnect(p);
}
