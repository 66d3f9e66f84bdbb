#include "client/libtorus/requests/client_watch.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/libtorus/common/clock.h"

int64_t client_clock_after(int64_t ms)
{
    int64_t now = clock_ms();
    return ms < NEVER - now ? now + ms : NEVER;
}

int client_watch_always(struct torus_client *c, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Watches the connection only while an operation is under way. Otherwise a daemon that closes the connection would
 * keep the descriptor readable. */
static void watch_connection(struct torus_client *c)
{
    struct epoll_event event = {.events = 0};
    int fd = c->connection.fd;

    if (fd >= 0 && c->phase != PHASE_IDLE)
        event.events = EPOLLIN | (connection_is_sending(&c->connection) ? EPOLLOUT : 0u);
    if (event.events == c->watched)
        return;
    (void)epoll_ctl(c->epoll_fd,
                    c->watched == 0     ? EPOLL_CTL_ADD
                    : event.events == 0 ? EPOLL_CTL_DEL
                                        : EPOLL_CTL_MOD,
                    fd, &event);
    c->watched = event.events;
}

void client_limit(struct torus_client *c, int64_t ms)
{
    c->limit_ms = ms;
    c->deadline_ms = ms > 0 ? client_clock_after(ms) : NEVER;
}

/* Removes the descriptor from epoll first: closing it does not remove it if a forked child has a copy. */
void client_disconnect(struct torus_client *c)
{
    if (c->watched != 0)
        (void)epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->connection.fd, NULL);
    c->watched = 0;
    connection_close(&c->connection);
}

static void watch_clock(struct torus_client *c)
{
    int64_t next = c->deadline_ms < c->tick_ms ? c->deadline_ms : c->tick_ms;
    next = c->retry_ms < next ? c->retry_ms : next;
    struct itimerspec at = {0};

    if (c->phase != PHASE_IDLE && next != NEVER) {
        at.it_value.tv_sec = (time_t)(next / 1000);
        at.it_value.tv_nsec = (long)(next % 1000) * 1000000;
    }
    (void)timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void client_watch(struct torus_client *c)
{
    watch_connection(c);
    watch_clock(c);
}

bool client_drain(int fd)
{
    uint64_t count;
    return read(fd, &count, sizeof count) == (ssize_t)sizeof count;
}
