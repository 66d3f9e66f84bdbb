/* Happy path: readable -> accept4() until no connection waits -> accepted().
 *
 * Failure modes: if no descriptors are left, one of the reserve is released for the connection. If the
 * reserve is empty, too, the connection waits in the kernel's queue, and the listener tries again after
 * RETRY_MS; without that pause the waiting connection would wake up the loop all the time. */
#include "daemon/lib/net/sockets/listener.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"

#define BACKLOG 128 /* a dropped neighbour tries again after a second */
#define ACCEPTS_A_TURN 16
#define RETRY_MS 100

static void on_readable(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer)
{
    struct listener *l = timer->data;

    (void)uv_poll_start(&l->poll, UV_READABLE, on_readable);
}

void listener_pause(struct listener *l, uint64_t milliseconds)
{
    (void)uv_poll_stop(&l->poll);
    (void)uv_timer_start(&l->retry, on_retry, milliseconds, 0);
}

static void wait_for_room(struct listener *l, int error)
{
    if (!l->no_descriptors)
        log_warning("cannot accept connections: %s; trying again", strerror(error));
    l->no_descriptors = true;
    listener_pause(l, RETRY_MS);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;

    (void)status, (void)events; /* accept4() finds the error */
    for (int i = 0; i < ACCEPTS_A_TURN && !l->closing && uv_is_active((uv_handle_t *)poll); i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            l->no_descriptors = false;
            l->accepted(l->context, fd);
        } else if (errno == EAGAIN) {
            return;
        } else if (reserve_is_shortage(errno) && !reserve_release_one(l->reserve, errno)) {
            wait_for_room(l, errno);
            return;
        } /* otherwise the connection no longer exists */
    }
}

int listener_open(struct listener *l, uv_loop_t *loop, const struct sockaddr *address,
                  socklen_t length)
{
    int type = l->type != 0 ? l->type : SOCK_STREAM, on = 1;
    int fd = socket(address->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if ((address->sa_family != AF_UNIX &&
         setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) ||
        (l->prepare != NULL && l->prepare(l->context, fd, address->sa_family) != 0) ||
        bind(fd, address, length) != 0)
        goto fail;
    if (listen(fd, BACKLOG) != 0)
        goto fail;
    int result = uv_poll_init(loop, &l->poll, fd);
    if (result != 0) {
        errno = -result;
        goto fail;
    }
    (void)uv_timer_init(loop, &l->retry);
    l->poll.data = l->retry.data = l;
    l->fd = fd;
    l->handles = 2;
    l->closing = l->no_descriptors = false;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_readable);
    return 0;
fail:;
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

static void on_closed(uv_handle_t *handle)
{
    struct listener *l = handle->data;

    if (--l->handles > 0)
        return;
    l->closed(l->context);
}

void listener_close(struct listener *l)
{
    l->closing = true;
    (void)uv_poll_stop(&l->poll);
    (void)close(l->fd);
    uv_close((uv_handle_t *)&l->poll, on_closed);
    uv_close((uv_handle_t *)&l->retry, on_closed);
}
