#include "daemon/lib/net/framed.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "daemon/lib/net/unix_socket.h"

#define WAITING_MOST (2u * 1024u * 1024u) /* bytes that the peer has not read */

struct framed_write {
    uv_write_t request;
    uint8_t *frame;
    size_t size;
};

static void on_closed(uv_handle_t *handle)
{
    struct framed *f = handle->data;

    frame_stream_free(&f->in);
    f->closed(f);
}

bool framed_is_closing(const struct framed *f)
{
    return uv_is_closing((const uv_handle_t *)&f->pipe);
}

size_t framed_waiting(const struct framed *f)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&f->pipe);
}

void framed_end(struct framed *f, const char *why)
{
    if (framed_is_closing(f))
        return;
    if (why != NULL)
        (void)snprintf(f->why, sizeof f->why, "%.*s", (int)sizeof f->why - 1, why);
    if (f->ending != NULL)
        f->ending(f);
    uv_close((uv_handle_t *)&f->pipe, on_closed);
}

void framed_close(struct framed *f)
{
    framed_end(f, NULL);
}

static void free_frame(uint8_t *frame, size_t size)
{
    if (frame != NULL)
        sodium_memzero(frame, size); /* some have secrets */
    free(frame);
}

static void take(struct framed *f);

static void on_written(uv_write_t *request, int status)
{
    struct framed_write *w = request->data;
    struct framed *f = request->handle->data;

    free_frame(w->frame, w->size);
    free(w);
    if (status != 0)
        framed_end(f, uv_strerror(status));
    else if (f->wrote != NULL)
        f->wrote(f);
    if (f->held && !framed_is_closing(f))
        take(f);
}

void framed_write(struct framed *f, uint8_t *frame, size_t size)
{
    struct framed_write *w = calloc(1, sizeof *w);
    uv_buf_t buffer = uv_buf_init((char *)frame, (unsigned)size);

    if (w != NULL && frame != NULL && !framed_is_closing(f) &&
        (f->hold > 0 || framed_waiting(f) <= WAITING_MOST)) {
        *w = (struct framed_write){.request.data = w, .frame = frame, .size = size};
        if (uv_write(&w->request, (uv_stream_t *)&f->pipe, &buffer, 1, on_written) == 0)
            return;
    }
    free_frame(frame, size);
    free(w);
    framed_end(f, "out of memory");
}

void framed_send(struct framed *f, const ProtobufCMessage *message)
{
    size_t size = 0;
    uint8_t *frame = frame_pack(message, &size);

    framed_write(f, frame, size);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct framed *f = handle->data;
    size_t room = 0;
    uint8_t *at = frame_stream_room(&f->in, 4096, &room);

    (void)suggested;
    *buffer = uv_buf_init((char *)at, (unsigned)(at != NULL ? room : 0));
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct framed *f = stream->data;

    (void)buffer;
    if (length == UV_EOF && f->finished != NULL) {
        (void)uv_read_stop(stream);
        f->finished(f);
    } else if (length < 0) {
        framed_end(f, length == UV_EOF ? "it has closed the connection" : uv_strerror((int)length));
    } else if (!f->ignores) {
        frame_stream_added(&f->in, (size_t)length);
        take(f);
    }
}

/* Takes one message after the other, while the peer reads what is sent to it. */
static void take(struct framed *f)
{
    const uint8_t *head;
    size_t size;
    struct error e;
    int more = 0;

    while ((f->hold == 0 || framed_waiting(f) <= f->hold) &&
           (more = frame_stream_next(&f->in, f->most, &head, &size, &e)) > 0) {
        f->took(f, head, size);
        if (framed_is_closing(f) || f->ignores)
            return;
    }
    if (more < 0 && f->invalid != NULL) {
        f->invalid(f, &e);
    } else if (more < 0) {
        framed_end(f, e.text);
    } else if (f->hold > 0 && framed_waiting(f) > f->hold) {
        f->held = true;
        (void)uv_read_stop((uv_stream_t *)&f->pipe);
    } else if (f->held) {
        f->held = false;
        if (uv_read_start((uv_stream_t *)&f->pipe, on_room, on_read) != 0)
            framed_end(f, "out of memory");
    }
}

int framed_open(struct framed *f, uv_loop_t *loop, int fd)
{
    (void)uv_pipe_init(loop, &f->pipe, 0);
    f->pipe.data = f;
    if (uv_pipe_open(&f->pipe, fd) != 0)
        (void)close(fd);
    else if (uv_read_start((uv_stream_t *)&f->pipe, on_room, on_read) == 0)
        return 0;
    framed_end(f, "out of memory");
    return -1;
}

struct framed_server {
    struct framed_server_user user;
    uv_loop_t *loop;
    struct listener listener;
    struct reserve reserve;
    struct local_name name;
    struct framed_client *clients;
    unsigned count;
    bool closing, listener_closed;
};

static void release(struct framed_server *s)
{
    if (!s->closing || !s->listener_closed || s->clients != NULL)
        return;
    reserve_close(&s->reserve);
    if (s->user.closed != NULL)
        s->user.closed(s->user.context);
    free(s);
}

static void on_client_closed(struct framed *framed)
{
    struct framed_client *client = framed->context;
    struct framed_server *s = client->server;

    LL_DELETE(s->clients, client);
    s->count--;
    if (s->user.left != NULL)
        s->user.left(s->user.context, client);
    free(client);
    release(s);
}

static void on_took(struct framed *framed, const uint8_t *bytes, size_t size)
{
    struct framed_client *client = framed->context;
    const struct framed_server_user *user = &client->server->user;

    user->took(user->context, client, bytes, size);
}

static void on_accepted(void *context, int fd)
{
    struct framed_server *s = context;
    struct framed_client *client =
        s->closing || s->count >= s->user.clients ? NULL : calloc(1, sizeof *client);

    if (client == NULL) {
        (void)close(fd);
        return;
    }
    client->user = access_user(fd);
    client->server = s;
    client->framed.most = s->user.most;
    client->framed.took = on_took;
    client->framed.closed = on_client_closed;
    client->framed.context = client;
    LL_PREPEND(s->clients, client);
    s->count++;
    (void)framed_open(&client->framed, s->loop, fd);
}

static void on_listener_closed(void *context)
{
    struct framed_server *s = context;

    s->listener_closed = true;
    release(s);
}

struct framed_server *framed_server_open(uv_loop_t *loop, const char *path,
                                         const struct access_rules *rules,
                                         const struct framed_server_user *user, struct error *e)
{
    struct framed_server *s = calloc(1, sizeof *s);

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the socket %s", path);
        return NULL;
    }
    s->user = *user;
    s->loop = loop;
    s->listener = (struct listener){.reserve = &s->reserve,
                                    .accepted = on_accepted,
                                    .closed = on_listener_closed,
                                    .context = s};
    if (local_listen(&s->listener, loop, path, rules, &s->name, e) != 0) {
        free(s);
        return NULL;
    }
    reserve_fill(&s->reserve, 1);
    return s;
}

struct framed_client *framed_server_clients(const struct framed_server *s)
{
    return s->clients;
}

void framed_server_close(struct framed_server *s)
{
    s->closing = true;
    for (struct framed_client *c = s->clients; c != NULL; c = c->next)
        framed_close(&c->framed);
    local_remove(&s->name);
    listener_close(&s->listener);
}
