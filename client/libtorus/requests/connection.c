#include "client/libtorus/requests/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/libtorus/common.h"
#include "proto/unpack.h"

#define READ_SIZE 65536

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
    size_t length, room;
    uint8_t *frame = frame_pack(&request->base, &length);
    uint8_t *at = frame != NULL ? frame_stream_room(&c->out, length, &room) : NULL;

    if (at != NULL) {
        memcpy(at, frame, length);
        frame_stream_added(&c->out, length);
    }
    free(frame);
    return at != NULL ? 0 : fail_memory(e);
}

bool connection_is_sending(const struct connection *c)
{
    return c->out.taken < c->out.length;
}

int connection_flush(struct connection *c, struct torus_error *e)
{
    while (connection_is_sending(c)) {
        ssize_t n = send(c->fd, c->out.data + c->out.taken, c->out.length - c->out.taken,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0)
            c->out.taken += (size_t)n;
        else if (errno == EAGAIN)
            return 0;
        else if (errno == EPIPE || errno == ECONNRESET)
            c->out.taken = c->out.length;
        else if (errno != EINTR)
            return fail(e, TORUS_ERROR_IO, "cannot send to the daemon at %s: %s", c->path,
                        strerror(errno));
    }
    return 0;
}

/* ---- In -------------------------------------------------------------------------------------- */

int connection_read(struct connection *c, struct torus_error *e)
{
    size_t room;
    uint8_t *buffer = frame_stream_room(&c->in, READ_SIZE, &room);
    ssize_t n;

    if (buffer == NULL)
        return fail_memory(e);
    do
        n = recv(c->fd, buffer, room, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        frame_stream_added(&c->in, (size_t)n);
        return 1;
    }
    if (n == 0 || errno == ECONNRESET)
        return fail(e, TORUS_ERROR_LOST,
                    "the daemon at %s has closed the connection without a reply", c->path);
    if (errno == EAGAIN)
        return 0;
    return fail(e, TORUS_ERROR_IO, "cannot read from the daemon at %s: %s", c->path,
                strerror(errno));
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
