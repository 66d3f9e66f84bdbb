/* Queries to the kernel about a connection: whether the other system acknowledges sent bytes. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/torusd/net/tcp_stat.h"
#include "tests/support/cmocka.h"

#define BYTES 10000u
#define LOOKS 3000 /* 10 ms apart */

struct ends {
    int here, there;
    struct tcp_rate rate;
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
