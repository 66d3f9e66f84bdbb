#include "client/libtorus/requests/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/libtorus/common.h"
#include "proto/unpack.h"

/* ---- Opening and closing --------------------------------------------------------------------- */

int connection_open(struct connection *c, const char *path, struct torus_error *e)
{
    *c = (struct connection){.fd = -1};
    c->path = socket_path(path, "");
    if (c->path == NULL)
        return fail_memory(e);
    c->fd = socket_connect(c->path, SOCK_STREAM, e);
    return c->fd >= 0 ? 0 : -1;
}

int connection_reopen(struct connection *c, struct torus_error *e)
{
    c->fd = socket_connect(c->path, SOCK_STREAM, e);
    return c->fd >= 0 ? 0 : -1;
}

void connection_close(struct connection *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
    frame_stream_free(&c->in);
    frame_stream_free(&c->out);
}

void connection_free(struct connection *c)
{
    connection_close(c);
    free(c->path);
}

/* ---- Out ------------------------------------------------------------------------------------- */

int connection_queue(struct connection *c, const Control__Request *request, struct torus_error *e)
{
    return frame_stream_put(&c->out, &request->base) == 0 ? 0 : fail_memory(e);
}

bool connection_is_sending(const struct connection *c)
{
    return frame_stream_is_sending(&c->out);
}

int connection_flush(struct connection *c, struct torus_error *e)
{
    const int error = frame_stream_send(&c->out, c->fd, MSG_DONTWAIT);

    if (error == -EPIPE || error == -ECONNRESET)
        c->out.taken = c->out.length;
    else if (error != 0 && error != -EAGAIN)
        return fail(e, TORUS_ERROR_IO, "cannot send to the daemon at %s: %s", c->path,
                    strerror(-error));
    return 0;
}

/* ---- In -------------------------------------------------------------------------------------- */

int connection_read(struct connection *c, struct torus_error *e)
{
    const int n = frame_stream_receive(&c->in, c->fd, MSG_DONTWAIT);

    if (n == 1)
        return 1;
    if (n == -ENOMEM)
        return fail_memory(e);
    if (n == 0 || n == -ECONNRESET)
        return fail(e, TORUS_ERROR_LOST,
                    "the daemon at %s has closed the connection without a reply", c->path);
    if (n == -EAGAIN)
        return 0;
    return fail(e, TORUS_ERROR_IO, "cannot read from the daemon at %s: %s", c->path, strerror(-n));
}

int connection_next(struct connection *c, Control__Reply **reply, struct torus_error *e)
{
    struct error inner;
    const uint8_t *head;
    size_t length;
    int r = frame_stream_next(&c->in, FRAME_MAX_REPLY, &head, &length, &inner);

    if (r < 0)
        return fail(e, TORUS_ERROR_PROTOCOL, "the reply at %s is not from a torusd: %s", c->path,
                    inner.text);
    if (r == 0)
        return 0;
    *reply = unpack_bounded(&control__reply__descriptor, head, length, UNPACK_MOST);
    if (*reply == NULL)
        return fail(e, TORUS_ERROR_PROTOCOL, "the daemon at %s has sent a malformed reply",
                    c->path);
    return 1;
}
