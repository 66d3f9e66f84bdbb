#include "topo/guest/bridge/channels.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topo/guest/bridge/complain.h"
#include "topo/guest/bridge/sockets.h"
#include "topo/guest/bridge/stream.h"

static struct channel channels[CHANNELS];

void channels_init(void)
{
    for (unsigned i = 0; i < CHANNELS; i++)
        channels[i].fd = -1;
}

struct channel *channel_at(unsigned number)
{
    return &channels[number];
}

unsigned channel_number(const struct channel *c)
{
    return (unsigned)(c - channels);
}

struct channel *channel_free(void)
{
    for (unsigned i = 0; i < CHANNELS; i++)
        if (!channels[i].used)
            return &channels[i];
    return NULL;
}

void channel_begin(struct channel *c, int fd)
{
    *c = (struct channel){.used = true, .fd = fd, .credit = WINDOW, .ring = malloc(WINDOW)};
    if (c->ring == NULL)
        die("no memory");
    if (fd >= 0)
        socket_set_nonblocking(fd);
}

void channel_close(struct channel *c)
{
    if (!c->said_close) {
        stream_say(CLOSE, 0, channel_number(c), NULL, 0);
        c->said_close = true;
        c->waiting = false;
        if (c->fd >= 0)
            (void)close(c->fd);
        c->fd = -1;
        if (c->pid > 0 && !c->said_end) /* as a terminal that is closed does */
            (void)kill(-c->pid, SIGHUP);
        c->pending = 0;
    }
    if (c->heard_close) {
        free(c->ring);
        *c = (struct channel){.fd = -1};
    }
}

void channel_settle(struct channel *c)
{
    if (!c->used || c->said_close)
        return;
    if (c->waiting && c->heard_close)
        channel_close(c);
    if (c->fd < 0)
        return;
    if (c->deaf)
        c->pending = 0;
    if (c->heard_end && c->pending == 0 && !c->shut && !c->deaf) {
        c->shut = true;
        (void)shutdown(c->fd, SHUT_WR);
    }
    if (c->pending > 0)
        return;
    if (c->heard_close || (c->said_end && (c->deaf || c->shut)))
        channel_close(c);
}

static void write_pending(struct channel *c)
{
    uint32_t written = 0;

    if (c->waiting)
        return;
    while (c->pending > 0) {
        uint32_t piece = WINDOW - c->begin < c->pending ? WINDOW - c->begin : c->pending;
        ssize_t n = send(c->fd, c->ring + c->begin, piece, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            c->deaf = true;
        if (n < 0)
            break;
        c->begin = (c->begin + (uint32_t)n) % WINDOW;
        c->pending -= (uint32_t)n;
        written += (uint32_t)n;
    }
    if (c->deaf) {
        written += c->pending;
        c->pending = 0;
    }
    if (written > 0 && !c->heard_end && !c->heard_close)
        stream_say(CREDIT, 0, channel_number(c), NULL, written);
}

static void read_local(struct channel *c)
{
    uint8_t piece[PIECE];

    while (c->credit > 0 && stream_waiting() < OUT_FULL) {
        ssize_t n = recv(c->fd, piece, c->credit < PIECE ? c->credit : PIECE, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            if (n < 0) /* ECONNRESET: the client left without reading everything */
                c->deaf = true;
            c->said_end = true;
            stream_say(END, 0, channel_number(c), NULL, 0);
            return;
        }
        stream_say(DATA, 0, channel_number(c), piece, (uint32_t)n);
        c->credit -= (uint32_t)n;
    }
}

void channel_connected(struct channel *c, int fd)
{
    c->fd = fd;
    c->waiting = false;
    if (fd < 0) {
        channel_close(c);
        return;
    }
    socket_set_nonblocking(fd);
    write_pending(c);
    channel_settle(c);
}

void channel_deliver(struct channel *c, const uint8_t *data, uint32_t n)
{
    uint32_t end = (c->begin + c->pending) % WINDOW;
    uint32_t first = n < WINDOW - end ? n : WINDOW - end;

    if (c->said_close)
        return;
    if (c->heard_end || n > WINDOW - c->pending)
        die("more data for channel %u than allowed", channel_number(c));
    if (c->deaf) {
        stream_say(CREDIT, 0, channel_number(c), NULL, n);
        return;
    }
    memcpy(c->ring + end, data, first);
    memcpy(c->ring, data + first, n - first);
    c->pending += n;
    write_pending(c);
}

struct pollfd channel_wanted(const struct channel *c)
{
    struct pollfd p = {.fd = -1};

    if (!c->used || c->fd < 0)
        return p;
    if (!c->said_end && !c->heard_close && c->credit > 0 && stream_waiting() < OUT_FULL)
        p.events |= POLLIN;
    if (c->pending > 0)
        p.events |= POLLOUT;
    if (p.events != 0 || c->said_end)
        p.fd = c->fd;
    return p;
}

void channel_ready(struct channel *c, short events)
{
    if (!c->used || c->fd < 0)
        return;
    if (c->pending > 0 && (events & (POLLOUT | POLLHUP | POLLERR)) != 0)
        write_pending(c);
    if (!c->said_end && !c->heard_close && (events & (POLLIN | POLLHUP | POLLERR)) != 0)
        read_local(c);
    if (c->said_end && (events & (POLLHUP | POLLERR)) != 0)
        c->deaf = true; /* the client has not only stopped sending: it is gone */
    channel_settle(c);
}

void channels_forget_shell(pid_t pid)
{
    for (unsigned i = 0; i < CHANNELS; i++)
        if (channels[i].pid == pid)
            channels[i].pid = 0;
}
