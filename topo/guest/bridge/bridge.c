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
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHANNELS 64u
#define WINDOW 65536u      /* bytes in transit on a channel, in each direction */
#define PIECE 8192u        /* of data in one message */
#define OUT_FULL 65536u    /* while so much is queued, nothing is read from clients */
#define HEADER 8u          /* kind, service, channel (2), length or credit (4); big-endian */
#define CONNECT_EVERY_MS 5 /* while the daemon does not run yet, or has no room */

enum kind { HELLO = 1, OPEN, DATA, CREDIT, END, CLOSE };
enum service { CONTROL, SHELL, SERVICES };

/*
 * free --OPEN--> open --CLOSE said or heard--> half closed --the other CLOSE--> free
 *
 * fd is -1 once this side has sent CLOSE. Nothing follows a CLOSE in its direction.
 */
struct channel {
    bool used;
    bool waiting; /* the daemon has no room for the connection yet; fd is -1 */
    bool said_close;
    bool heard_close;
    bool said_end;  /* the local reader has come to its end */
    bool heard_end; /* nothing will be added to `pending` */
    bool deaf;      /* nobody reads what is written to fd */
    bool shut;      /* the end has been passed on to fd */
    int fd;
    pid_t pid;       /* the shell's, while it runs */
    uint32_t credit; /* bytes that may still be sent */
    uint32_t begin, pending;
    uint8_t *ring; /* heard, and not yet written to fd */
};

static struct channel channels[CHANNELS];
static const char *paths[SERVICES];
static int listeners[SERVICES] = {-1, -1};
static int stream = -1;
static bool outside;
static uint8_t *out;
static size_t out_begin, out_end, out_room;
static volatile sig_atomic_t told_to_end;
static sigset_t undisturbed; /* the signals that are blocked while this program waits: none */

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)fputs("bridge: ", stderr);
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
    va_end(list);
}

static void remove_sockets(void)
{
    for (unsigned s = 0; outside && s < SERVICES; s++)
        if (listeners[s] >= 0)
            (void)unlink(paths[s]);
}

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)fputs("bridge: ", stderr);
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
    va_end(list);
    remove_sockets();
    exit(1);
}

/* --- what goes into the stream --- */

static void say(enum kind kind, unsigned service, unsigned channel, const uint8_t *data, uint32_t n)
{
    size_t size = HEADER + (kind == DATA ? n : 0);
    uint8_t *at;

    if (out_begin > 0 && out_end + size > out_room) {
        memmove(out, out + out_begin, out_end - out_begin);
        out_end -= out_begin;
        out_begin = 0;
    }
    if (out_end + size > out_room) {
        out_room = 2 * (out_end + size);
        out = realloc(out, out_room);
        if (out == NULL)
            die("no memory");
    }
    at = out + out_end;
    at[0] = (uint8_t)kind;
    at[1] = (uint8_t)service;
    at[2] = (uint8_t)(channel >> 8);
    at[3] = (uint8_t)channel;
    for (unsigned i = 0; i < 4; i++)
        at[4 + i] = (uint8_t)(n >> (24 - 8 * i));
    if (kind == DATA)
        memcpy(at + HEADER, data, n);
    out_end += size;
}

static void send_out(void)
{
    while (out_begin < out_end) {
        ssize_t n = write(stream, out + out_begin, out_end - out_begin);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) /* the reader will find that the stream has ended */
            return;
        out_begin += (size_t)n;
    }
    out_begin = out_end = 0;
}

/* --- channels --- */

static unsigned number(const struct channel *c)
{
    return (unsigned)(c - channels);
}

static void set_nonblocking(int fd)
{
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void begin_channel(struct channel *c, int fd)
{
    *c = (struct channel){.used = true, .fd = fd, .credit = WINDOW, .ring = malloc(WINDOW)};
    if (c->ring == NULL)
        die("no memory");
    if (fd >= 0)
        set_nonblocking(fd);
}

/* Closes the local side and says so; the number is free again when the other side has done both. */
static void close_channel(struct channel *c)
{
    if (!c->said_close) {
        say(CLOSE, 0, number(c), NULL, 0);
        c->said_close = true;
        c->waiting = false;
        if (c->fd >= 0)
            (void)close(c->fd);
        c->fd = -1;
        if (c->pid > 0 && !c->said_end) /* as when a terminal goes away */
            (void)kill(-c->pid, SIGHUP);
        c->pending = 0;
    }
    if (c->heard_close) {
        free(c->ring);
        *c = (struct channel){.fd = -1};
    }
}

static void settle(struct channel *c)
{
    if (!c->used || c->said_close)
        return;
    if (c->waiting && c->heard_close)
        close_channel(c);
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
        close_channel(c);
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
        say(CREDIT, 0, number(c), NULL, written);
}

static void read_local(struct channel *c)
{
    uint8_t piece[PIECE];

    while (c->credit > 0 && out_end - out_begin < OUT_FULL) {
        ssize_t n = recv(c->fd, piece, c->credit < PIECE ? c->credit : PIECE, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            if (n < 0) /* ECONNRESET: it left without having read all */
                c->deaf = true;
            c->said_end = true;
            say(END, 0, number(c), NULL, 0);
            return;
        }
        say(DATA, 0, number(c), piece, (uint32_t)n);
        c->credit -= (uint32_t)n;
    }
}

/* -1 where nobody can be reached; errno EAGAIN: not yet. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), why;

    if (fd < 0 || strlen(path) >= sizeof address.sun_path)
        die("%s: no socket, or a path of more than %zu bytes", path, sizeof address.sun_path - 1);
    (void)strcpy(address.sun_path, path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

/* Connects the channel whose connection the daemon had no room for; false: still none. */
static bool connect_waiting(struct channel *c)
{
    c->fd = connect_to(paths[CONTROL]);
    if (c->fd < 0 && errno == EAGAIN)
        return false;
    c->waiting = false;
    if (c->fd < 0) {
        close_channel(c);
        return true;
    }
    set_nonblocking(c->fd);
    write_pending(c);
    settle(c);
    return true;
}

/* The shell's standard input and output, for errors as well. */
static int start_shell(pid_t *pid)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    *pid = fork();
    if (*pid == 0) {
        (void)sigprocmask(SIG_SETMASK, &undisturbed, NULL);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)signal(SIGHUP, SIG_DFL);
        (void)setsid();
        for (int fd = 0; fd < 3; fd++)
            (void)dup2(pair[1], fd);
        (void)execl(paths[SHELL], paths[SHELL], (char *)NULL);
        complain("%s: %s", paths[SHELL], strerror(errno));
        _exit(127);
    }
    (void)close(pair[1]);
    if (*pid > 0)
        return pair[0];
    (void)close(pair[0]);
    return -1;
}

static void reap_shells(void)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (unsigned i = 0; i < CHANNELS; i++)
            if (channels[i].pid == pid)
                channels[i].pid = 0;
}

/* --- what comes out of the stream --- */

/* The socket only appears under its name once it accepts connections. */
static void listen_at(unsigned service)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s~", paths[service]);

    if (fd < 0 || n < 0 || (size_t)n >= sizeof address.sun_path)
        die("%s: no socket, or a path of more than %zu bytes", paths[service],
            sizeof address.sun_path - 2);
    (void)unlink(address.sun_path);
    (void)umask(0177);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0 ||
        rename(address.sun_path, paths[service]) != 0)
        die("%s: %s", paths[service], strerror(errno));
    set_nonblocking(fd);
    listeners[service] = fd;
}

static void on_open(struct channel *c, unsigned service)
{
    pid_t pid = 0;
    int fd, why;

    if (outside || c->used || service >= SERVICES)
        die("the other side opens channel %u, which it may not", number(c));
    fd = service == CONTROL ? connect_to(paths[CONTROL]) : start_shell(&pid);
    why = errno;
    begin_channel(c, fd);
    c->pid = pid;
    c->waiting = fd < 0 && service == CONTROL && why == EAGAIN;
    if (fd < 0 && !c->waiting)
        close_channel(c);
}

static void on_data(struct channel *c, const uint8_t *data, uint32_t n)
{
    uint32_t end = (c->begin + c->pending) % WINDOW;
    uint32_t first = n < WINDOW - end ? n : WINDOW - end;

    if (c->said_close)
        return;
    if (c->heard_end || n > WINDOW - c->pending)
        die("more data for channel %u than allowed", number(c));
    if (c->deaf) {
        say(CREDIT, 0, number(c), NULL, n);
        return;
    }
    memcpy(c->ring + end, data, first);
    memcpy(c->ring, data + first, n - first);
    c->pending += n;
    write_pending(c);
}

static void on_message(enum kind kind, unsigned service, unsigned at, const uint8_t *data,
                       uint32_t n)
{
    struct channel *c = at < CHANNELS ? &channels[at] : NULL;

    if (kind == HELLO && outside && listeners[CONTROL] < 0) {
        listen_at(SHELL);
        listen_at(CONTROL); /* the last one, for it is what others wait for */
        return;
    }
    if (kind == OPEN && c != NULL) {
        on_open(c, service);
        return;
    }
    if (c == NULL || !c->used || c->heard_close)
        die("message %u for channel %u, which is not open", (unsigned)kind, at);
    switch (kind) {
    case DATA:
        on_data(c, data, n);
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
            close_channel(c);
        break;
    case HELLO:
    case OPEN:
        die("message %u out of place", (unsigned)kind);
    }
    settle(c);
}

/* Returns false at the stream's end. */
static bool read_stream(void)
{
    static uint8_t in[4 * (HEADER + PIECE)];
    static size_t have;
    size_t used = 0;
    ssize_t n = read(stream, in + have, sizeof in - have);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    have += (size_t)n;
    while (have - used >= HEADER) {
        const uint8_t *at = in + used;
        uint32_t length =
            (uint32_t)at[4] << 24 | (uint32_t)at[5] << 16 | (uint32_t)at[6] << 8 | (uint32_t)at[7];
        size_t body = at[0] == DATA ? length : 0;
        if (at[0] < HELLO || at[0] > CLOSE || body > PIECE)
            die("the stream carries something else than messages of a bridge");
        if (have - used < HEADER + body)
            break;
        on_message(at[0], at[1], (unsigned)at[2] << 8 | at[3], at + HEADER, length);
        used += HEADER + body;
    }
    have -= used;
    memmove(in, in + used, have);
    return true;
}

/* --- all of it --- */

static struct channel *free_channel(void)
{
    for (unsigned i = 0; i < CHANNELS; i++)
        if (!channels[i].used)
            return &channels[i];
    return NULL;
}

static void accept_all(unsigned service)
{
    struct channel *c;
    int fd;

    while ((c = free_channel()) != NULL &&
           (fd = accept4(listeners[service], NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        begin_channel(c, fd);
        say(OPEN, service, number(c), NULL, 0);
    }
}

/* What to wait for on a channel's local side; its hang-up is always told, so nothing is waited for
   where that would be told again and again. */
static struct pollfd wanted(const struct channel *c)
{
    struct pollfd p = {.fd = -1};

    if (!c->used || c->fd < 0)
        return p;
    if (!c->said_end && !c->heard_close && c->credit > 0 && out_end - out_begin < OUT_FULL)
        p.events |= POLLIN;
    if (c->pending > 0)
        p.events |= POLLOUT;
    if (p.events != 0 || c->said_end)
        p.fd = c->fd;
    return p;
}

static void on_ready(struct channel *c, short events)
{
    if (!c->used || c->fd < 0)
        return;
    if (c->pending > 0 && (events & (POLLOUT | POLLHUP | POLLERR)) != 0)
        write_pending(c);
    if (!c->said_end && !c->heard_close && (events & (POLLIN | POLLHUP | POLLERR)) != 0)
        read_local(c);
    if (c->said_end && (events & (POLLHUP | POLLERR)) != 0)
        c->deaf = true; /* it has not only stopped sending: it is gone */
    settle(c);
}

static void on_signal(int signum)
{
    if (signum != SIGCHLD) /* which only interrupts ppoll() */
        told_to_end = 1;
}

static void run(void)
{
    struct pollfd p[1 + SERVICES + CHANNELS];

    while (!told_to_end) {
        const struct timespec soon = {.tv_nsec = CONNECT_EVERY_MS * 1000000L}, *patience = NULL;
        for (unsigned i = 0; i < CHANNELS; i++)
            if (channels[i].waiting && !connect_waiting(&channels[i]))
                patience = &soon;
        send_out();
        reap_shells();
        p[0] = (struct pollfd){.fd = stream, .events = POLLIN};
        if (out_begin < out_end)
            p[0].events |= POLLOUT;
        for (unsigned s = 0; s < SERVICES; s++)
            p[1 + s] =
                (struct pollfd){.fd = free_channel() != NULL ? listeners[s] : -1, .events = POLLIN};
        for (unsigned i = 0; i < CHANNELS; i++)
            p[1 + SERVICES + i] = wanted(&channels[i]);
        if (ppoll(p, sizeof p / sizeof p[0], patience, &undisturbed) < 0) {
            if (errno != EINTR)
                die("ppoll: %s", strerror(errno));
            continue;
        }
        for (unsigned i = 0; i < CHANNELS; i++)
            if (p[1 + SERVICES + i].revents != 0)
                on_ready(&channels[i], p[1 + SERVICES + i].revents);
        for (unsigned s = 0; s < SERVICES; s++)
            if (p[1 + s].revents != 0)
                accept_all(s);
        if ((p[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !read_stream())
            return;
        send_out();
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
    for (unsigned i = 0; i < CHANNELS; i++)
        channels[i].fd = -1;
    stream = outside ? atoi(argv[2]) : open(argv[2], O_RDWR | O_CLOEXEC);
    if (stream < 0 || fcntl(stream, F_GETFL) < 0)
        die("%s: %s", argv[2], strerror(errno));
    set_nonblocking(stream);
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
        int fd;
        while ((fd = connect_to(paths[CONTROL])) < 0)
            (void)poll(NULL, 0, CONNECT_EVERY_MS);
        (void)close(fd);
        say(HELLO, 0, 0, NULL, 0);
        send_out();
    }
    (void)sigprocmask(SIG_BLOCK, &signals, NULL); /* they are noticed in ppoll() only */
    run();
    remove_sockets();
    return 0;
}
