#include "client/libtorus/connection.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/libtorus/fail.h"

#define CONNECT_SECONDS 5     /* that a daemon with a full queue may take */
#define DEFAULT_TIMEOUT 10000 /* ms, for what a daemon answers at once */
#define TICK 200              /* ms */
#define READ_SIZE 65536

int64_t clock_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const char *torus_client_version(void)
{
    return TORUSD_VERSION;
}

const char *torus_client_socket(void)
{
    const char *path = getenv("TORUS_SOCKET");
    return path != NULL && path[0] != '\0' ? path : TORUS_CLIENT_SOCKET;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static int no_daemon(const char *path, int cause, struct torus_client_error *e)
{
    switch (cause) {
    case ENOENT:
    case ENOTDIR:
        return fail(e, TORUS_ERROR_NO_DAEMON, "no daemon at %s: there is no such socket", path);
    case ECONNREFUSED:
        return fail(e, TORUS_ERROR_NO_DAEMON,
                    "no daemon at %s: the socket is there, but nobody listens", path);
    case EACCES:
    case EPERM:
        return fail(e, TORUS_ERROR_NO_DAEMON,
                    "no access to the daemon at %s: this user may not open the socket", path);
    case EAGAIN:
        return fail(e, TORUS_ERROR_NO_DAEMON, "the daemon at %s does not take connections", path);
    default:
        return fail(e, TORUS_ERROR_NO_DAEMON, "no daemon at %s: %s", path, strerror(cause));
    }
}

static int connect_to(struct torus_client *c, struct torus_client_error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = CONNECT_SECONDS};
    int r;

    if (strlen(c->path) >= sizeof address.sun_path)
        return fail(e, TORUS_ERROR_USAGE, "socket path of %zu bytes, at most %zu are possible: %s",
                    strlen(c->path), sizeof address.sun_path - 1, c->path);
    memcpy(address.sun_path, c->path, strlen(c->path));

    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    c->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->fd < 0 || c->cancel_fd < 0)
        return fail(e, TORUS_ERROR_IO, "cannot create a socket: %s", strerror(errno));
    /* On a Unix socket the send timeout is also the one of connect(). */
    (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    do
        r = connect(c->fd, (const struct sockaddr *)&address, sizeof address);
    while (r != 0 && errno == EINTR);
    if (r != 0)
        return no_daemon(c->path, errno, e);
    return 0;
}

struct torus_client *torus_client_open(const char *path, struct torus_client_error *error)
{
    struct torus_client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        fail(error, TORUS_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    c->fd = c->cancel_fd = -1;
    c->timeout_ms = DEFAULT_TIMEOUT;
    c->path = strdup(path != NULL ? path : torus_client_socket());
    if (c->path == NULL)
        fail(error, TORUS_ERROR_MEMORY, "out of memory");
    if (c->path == NULL || connect_to(c, error) != 0) {
        torus_client_close(c);
        return NULL;
    }
    return c;
}

void connection_drop(struct torus_client *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
    frame_stream_free(&c->stream);
}

void torus_client_close(struct torus_client *client)
{
    if (client == NULL)
        return;
    connection_drop(client);
    if (client->cancel_fd >= 0)
        (void)close(client->cancel_fd);
    free(client->path);
    free(client);
}

void torus_client_cancel(struct torus_client *client)
{
    int saved = errno;
    uint64_t one = 1;
    /* It can fail only if the counter is full, and then it is readable all the same. */
    ssize_t n = write(client->cancel_fd, &one, sizeof one);
    (void)n;
    errno = saved;
}

void torus_client_set_timeout(struct torus_client *client, unsigned milliseconds)
{
    client->timeout_ms = milliseconds;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static int lost(const struct torus_client *c, struct torus_client_error *e)
{
    return fail(e, TORUS_ERROR_LOST, "the daemon at %s has closed the connection without an answer",
                c->path);
}

/* Milliseconds that poll() may take, -1 for ever; 0 once the deadline has passed. */
static int poll_time(const struct wait *w)
{
    int64_t left = -1;
    if (w->deadline_ms >= 0) {
        left = w->deadline_ms - clock_ms();
        if (left < 0)
            left = 0;
    }
    if (w->tick != NULL && (left < 0 || left > TICK))
        left = TICK;
    return left > INT_MAX ? INT_MAX : (int)left;
}

/* Waits until the socket is ready for `events`, is closed, or has failed. */
static int wait_ready(struct torus_client *c, short events, const struct wait *w,
                      struct torus_client_error *e)
{
    for (;;) {
        struct pollfd fds[2] = {
            {.fd = c->fd, .events = events},
            {.fd = w->deaf ? -1 : c->cancel_fd, .events = POLLIN},
        };
        int n = poll(fds, 2, poll_time(w));
        if (n < 0 && errno != EINTR)
            return fail(e, TORUS_ERROR_IO, "poll: %s", strerror(errno));
        if (n > 0 && fds[1].revents != 0)
            return fail(e, TORUS_ERROR_CANCELLED, "cancelled");
        if (n > 0)
            return 0;
        if (w->deadline_ms >= 0 && clock_ms() >= w->deadline_ms)
            return fail(e, TORUS_ERROR_TIMEOUT, "the daemon at %s does not answer", c->path);
        if (w->tick != NULL && w->tick(w->data) != 0)
            return fail(e, TORUS_ERROR_CANCELLED, "cancelled");
    }
}

/* ---- Frames ---------------------------------------------------------------------------------- */

int connection_send(struct torus_client *c, const Control__Request *request, const struct wait *w,
                    struct torus_client_error *e)
{
    size_t length, sent = 0;
    uint8_t *frame;
    int r = 0;

    if (c->fd < 0)
        return fail(e, TORUS_ERROR_LOST,
                    "the connection to the daemon was closed after an earlier failure; open "
                    "another");
    if (c->stream.length != c->stream.taken)
        return fail(e, TORUS_ERROR_PROTOCOL, "the daemon at %s has answered what nobody had asked",
                    c->path);
    frame = frame_pack(&request->base, &length);
    if (frame == NULL)
        return fail(e, TORUS_ERROR_MEMORY, "out of memory");
    while (r == 0 && sent < length) {
        ssize_t n;
        r = wait_ready(c, POLLOUT, w, e);
        if (r != 0)
            break;
        n = send(c->fd, frame + sent, length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0)
            sent += (size_t)n;
        else if (errno == EPIPE || errno == ECONNRESET)
            break; /* what it has said before is still to be read */
        else if (errno != EAGAIN && errno != EINTR)
            r = fail(e, TORUS_ERROR_IO, "cannot send to the daemon at %s: %s", c->path,
                     strerror(errno));
    }
    free(frame);
    return r;
}

/* Takes in what has come. */
static int read_some(struct torus_client *c, struct torus_client_error *e)
{
    size_t room;
    uint8_t *buffer = frame_stream_room(&c->stream, READ_SIZE, &room);
    ssize_t n;

    if (buffer == NULL)
        return fail(e, TORUS_ERROR_MEMORY, "out of memory");
    n = recv(c->fd, buffer, room, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return lost(c, e);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return fail(e, TORUS_ERROR_IO, "cannot read from the daemon at %s: %s", c->path,
                    strerror(errno));
    if (n > 0)
        frame_stream_added(&c->stream, (size_t)n);
    return 0;
}

/* Memory for one unpacked answer. Tiny submessages take up far more of it than they do on the wire.
 */
#define UNPACK_MOST ((size_t)64 * 1024 * 1024)

static void *unpack_alloc(void *left, size_t size)
{
    size_t *budget = left;
    void *p = size <= *budget ? malloc(size) : NULL;
    if (p != NULL)
        *budget -= size;
    return p;
}

static void unpack_free(void *left, void *p)
{
    (void)left;
    free(p);
}

/* What it returns can be freed without an allocator of its own. */
static Control__Reply *unpack(const uint8_t *head, size_t length)
{
    size_t left = UNPACK_MOST;
    ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &left};
    return control__reply__unpack(&allocator, length, head);
}

int connection_receive(struct torus_client *c, const struct wait *w, Control__Reply **reply,
                       struct torus_client_error *e)
{
    struct error inner;
    const uint8_t *head;
    size_t length;
    int r;

    while ((r = frame_stream_next(&c->stream, FRAME_MAX_REPLY, &head, &length, &inner)) == 0) {
        if (wait_ready(c, POLLIN, w, e) != 0 || read_some(c, e) != 0)
            return -1;
    }
    if (r < 0)
        return fail(e, TORUS_ERROR_PROTOCOL, "the answer at %s does not come from a torusd: %s",
                    c->path, inner.text);
    *reply = unpack(head, length);
    if (*reply == NULL)
        return fail(e, TORUS_ERROR_PROTOCOL,
                    "the daemon at %s has sent an answer that cannot be read", c->path);
    return 0;
}
