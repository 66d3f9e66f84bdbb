/*
 * Carries connections to Unix sockets over one byte stream, such as a virtual machine's serial
 * port.
 *
 *   bridge outside FD CONTROL SHELL     listens on two socket paths; the stream is descriptor FD
 *   bridge inside DEVICE CONTROL SHELL  in the virtual machine: connects to the daemon at CONTROL,
 *                                       and runs the program SHELL once for each connection
 *
 * Happy path: the inside sends HELLO as soon as the daemon accepts connections; only then does the
 * outside listen. Each connection becomes a channel (OPEN) that carries data in both directions
 * (DATA). The end of each direction is signalled separately (END); after both, both sides send
 * CLOSE.
 *
 * Failures: a client that is killed is distinguished from one that only stops sending, and its
 * connection to the daemon is closed immediately (CLOSE), so that the daemon cancels its requests.
 * A client that does not read does not block others: at most WINDOW bytes of a channel are in
 * transit until the other side has delivered them (CREDIT). When the stream ends, the outside
 * removes its sockets and exits, and each client sees its connection closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "topo/guest/bridge/channels.h"
#include "topo/guest/bridge/complain.h"
#include "topo/guest/bridge/shells.h"
#include "topo/guest/bridge/sockets.h"
#include "topo/guest/bridge/stream.h"

#define CONNECT_EVERY_MS 5 /* retry while the daemon does not run yet, or its queue is full */

static const char *paths[SERVICES];
static int listeners[SERVICES] = {-1, -1};
static int stream = -1;
static bool outside;
static volatile sig_atomic_t told_to_end;
static sigset_t undisturbed; /* the signal mask while this program waits: nothing is blocked */

/* Tries again to connect a channel for which the daemon's queue was full. Returns false if it still is. */
static bool connect_waiting(struct channel *c)
{
    int fd = socket_connect(paths[CONTROL]);

    if (fd < 0 && errno == EAGAIN)
        return false;
    channel_connected(c, fd);
    return true;
}

static void on_open(struct channel *c, unsigned service)
{
    pid_t pid = 0;
    int fd, why;

    if (outside || c->used || service >= SERVICES)
        die("the other side must not open channel %u", channel_number(c));
    fd = service == CONTROL ? socket_connect(paths[CONTROL]) : shell_start(paths[SHELL], &pid);
    why = errno;
    channel_begin(c, fd);
    c->pid = pid;
    c->waiting = fd < 0 && service == CONTROL && why == EAGAIN;
    if (fd < 0 && !c->waiting)
        channel_close(c);
}

static void on_message(enum kind kind, unsigned service, unsigned at, const uint8_t *data,
                       uint32_t n)
{
    struct channel *c = at < CHANNELS ? channel_at(at) : NULL;

    if (kind == HELLO && outside && listeners[CONTROL] < 0) {
        listeners[SHELL] = socket_listen(paths[SHELL]);
        /* The control socket comes last, because clients wait for it. */
        listeners[CONTROL] = socket_listen(paths[CONTROL]);
        return;
    }
    if (kind == OPEN && c != NULL) {
        on_open(c, service);
        return;
    }
    if (c == NULL || !c->used || c->heard_close)
        die("message of kind %u for channel %u, which is not open", (unsigned)kind, at);
    switch (kind) {
    case DATA:
        channel_deliver(c, data, n);
        break;
    case CREDIT:
        if (n > WINDOW - c->credit)
            die("more credit for channel %u than was used", at);
        c->credit += n;
        break;
    case END:
        c->heard_end = true;
        break;
    case CLOSE:
        c->heard_close = true;
        if (c->said_close)
            channel_close(c);
        break;
    case HELLO:
    case OPEN:
        die("unexpected message of kind %u", (unsigned)kind);
    }
    channel_settle(c);
}

static void accept_all(unsigned service)
{
    struct channel *c;
    int fd;

    while ((c = channel_free()) != NULL &&
           (fd = accept4(listeners[service], NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        channel_begin(c, fd);
        stream_say(OPEN, service, channel_number(c), NULL, 0);
    }
}

static void on_signal(int signum)
{
    if (signum != SIGCHLD) /* SIGCHLD only interrupts ppoll() */
        told_to_end = 1;
}

static void run(void)
{
    struct pollfd p[1 + SERVICES + CHANNELS];
    pid_t ended;

    while (!told_to_end) {
        const struct timespec soon = {.tv_nsec = CONNECT_EVERY_MS * 1000000L}, *patience = NULL;
        for (unsigned i = 0; i < CHANNELS; i++)
            if (channel_at(i)->waiting && !connect_waiting(channel_at(i)))
                patience = &soon;
        stream_write(stream);
        while ((ended = shell_reap()) > 0)
            channels_forget_shell(ended);
        p[0] = (struct pollfd){.fd = stream, .events = POLLIN};
        if (stream_waiting() > 0)
            p[0].events |= POLLOUT;
        for (unsigned s = 0; s < SERVICES; s++)
            p[1 + s] =
                (struct pollfd){.fd = channel_free() != NULL ? listeners[s] : -1, .events = POLLIN};
        for (unsigned i = 0; i < CHANNELS; i++)
            p[1 + SERVICES + i] = channel_wanted(channel_at(i));
        if (ppoll(p, sizeof p / sizeof p[0], patience, &undisturbed) < 0) {
            if (errno != EINTR)
                die("ppoll: %s", strerror(errno));
            continue;
        }
        for (unsigned i = 0; i < CHANNELS; i++)
            if (p[1 + SERVICES + i].revents != 0)
                channel_ready(channel_at(i), p[1 + SERVICES + i].revents);
        for (unsigned s = 0; s < SERVICES; s++)
            if (p[1 + s].revents != 0)
                accept_all(s);
        if ((p[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !stream_read(stream, on_message))
            return;
        stream_write(stream);
    }
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t signals;

    if (argc != 5 || (strcmp(argv[1], "outside") != 0 && strcmp(argv[1], "inside") != 0)) {
        (void)fputs("usage: bridge outside FD CONTROL SHELL | bridge inside DEVICE CONTROL SHELL\n",
                    stderr);
        return 2;
    }
    outside = strcmp(argv[1], "outside") == 0;
    paths[CONTROL] = argv[3];
    paths[SHELL] = argv[4];
    channels_init();
    stream = outside ? atoi(argv[2]) : open(argv[2], O_RDWR | O_CLOEXEC);
    if (stream < 0 || fcntl(stream, F_GETFL) < 0)
        die("%s: %s", argv[2], strerror(errno));
    socket_set_nonblocking(stream);
    (void)sigemptyset(&undisturbed);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGCHLD);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGCHLD, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    if (!outside) {
        int fd = -1;
        while (!told_to_end && (fd = socket_connect(paths[CONTROL])) < 0)
            (void)poll(NULL, 0, CONNECT_EVERY_MS);
        if (told_to_end)
            return 0;
        (void)close(fd);
        stream_say(HELLO, 0, 0, NULL, 0);
        stream_write(stream);
    }
    (void)sigprocmask(SIG_BLOCK, &signals, NULL); /* they arrive in ppoll() only */
    run();
    return 0;
}
