#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/control/internal.h"

#define MAX_REQUEST 65536u
#define BACKLOG 16

struct reply_write {
    uv_write_t request;
    uint8_t *frame;
};

static void server_release(struct control_server *s)
{
    if (s->closing && s->listener_closed && s->clients == NULL)
        free(s);
}

static void on_client_closed(uv_handle_t *handle)
{
    struct control_client *client = handle->data;
    struct control_server *s = client->server;

    if (--client->handles > 0)
        return;
    for (struct control_client **at = &s->clients; *at != NULL; at = &(*at)->next)
        if (*at == client) {
            *at = client->next;
            break;
        }
    control_candidates_forget(client);
    frame_stream_free(&client->in);
    free(client);
    server_release(s);
}

static void close_client(struct control_client *client)
{
    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    control_exchange_abandon(client);
    uv_close((uv_handle_t *)&client->pipe, on_client_closed);
    uv_close((uv_handle_t *)&client->progress, on_client_closed);
}

static void on_reply_written(uv_write_t *request, int status)
{
    struct reply_write *w = request->data;
    struct control_client *client = request->handle->data;

    free(w->frame);
    free(w);
    if (status != 0 || (client->leaving && client->exchange == NULL))
        close_client(client);
}

void control_reply(struct control_client *client, const Control__Reply *reply)
{
    struct reply_write *w;
    size_t length = 0;

    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    w = calloc(1, sizeof *w);
    if (w != NULL)
        w->frame = frame_pack(&reply->base, &length);
    if (w != NULL && w->frame != NULL) {
        uv_buf_t buffer = uv_buf_init((char *)w->frame, (unsigned)length);
        w->request.data = w;
        if (uv_write(&w->request, (uv_stream_t *)&client->pipe, &buffer, 1, on_reply_written) == 0)
            return;
        free(w->frame);
    }
    free(w);
    close_client(client); /* better no answer than half of one */
}

void control_reply_error(struct control_client *client, const struct error *e, const char *id)
{
    Control__Error error = CONTROL__ERROR__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    error.code = (uint32_t)e->code;
    error.text = (char *)(uintptr_t)e->text;
    error.exchange = (char *)(uintptr_t)(id != NULL ? id : "");
    reply.kind_case = CONTROL__REPLY__KIND_ERROR;
    reply.error = &error;
    control_reply(client, &reply);
}

static void refuse_client(struct control_client *client, const struct error *e)
{
    log_warning("a control client was turned away: %s", e->text);
    control_reply_error(client, e, NULL);
    close_client(client);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct control_client *client = handle->data;
    size_t room = 0;
    uint8_t *at = frame_stream_room(&client->in, 1024, &room);

    (void)suggested;
    *buffer = uv_buf_init((char *)at, (unsigned)(at != NULL ? room : 0));
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct control_client *client = stream->data;
    const uint8_t *head;
    size_t size;
    struct error e;
    int more;

    (void)buffer;
    if (length == UV_EOF && client->exchange != NULL) {
        /* It may still want to know how its exchange ends; if not, the answer cannot be written. */
        client->leaving = true;
        (void)uv_read_stop(stream);
        exchange_cancel(client->exchange);
        return;
    }
    if (length < 0) {
        close_client(client);
        return;
    }
    frame_stream_added(&client->in, (size_t)length);
    while ((more = frame_stream_next(&client->in, MAX_REQUEST, &head, &size, &e)) > 0) {
        Control__Request *request = control__request__unpack(NULL, size, head);
        if (request == NULL || request->kind_case == CONTROL__REQUEST__KIND__NOT_SET) {
            if (request != NULL)
                control__request__free_unpacked(request, NULL);
            (void)error_set(&e, ERROR_PROTOCOL, "the request is none that this daemon knows");
            refuse_client(client, &e);
            return;
        }
        control_request(client, request);
        control__request__free_unpacked(request, NULL);
        if (uv_is_closing((uv_handle_t *)&client->pipe))
            return;
    }
    if (more < 0)
        refuse_client(client, &e);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct control_server *s = listener->data;
    struct control_client *client;

    if (status != 0 || (client = calloc(1, sizeof *client)) == NULL)
        return;
    client->server = s;
    client->handles = 2;
    (void)uv_pipe_init(s->set.loop, &client->pipe, 0);
    (void)uv_timer_init(s->set.loop, &client->progress);
    client->pipe.data = client->progress.data = client;
    client->next = s->clients;
    s->clients = client;
    if (uv_accept(listener, (uv_stream_t *)&client->pipe) != 0 ||
        uv_read_start((uv_stream_t *)&client->pipe, on_room, on_read) != 0)
        close_client(client);
}

/* Does anybody answer at this socket? */
static bool is_served(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool served;

    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    served = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        (void)close(fd);
    return served;
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct control_server *s = handle->data;

    s->listener_closed = true;
    server_release(s);
}

struct control_server *control_open(const struct control_setup *setup, struct error *e)
{
    struct control_server *s;
    struct stat st;

    if (strlen(setup->path) >= sizeof((struct sockaddr_un *)NULL)->sun_path) {
        (void)error_set(e, ERROR_USAGE, "control socket %s: a path of at most %zu bytes",
                        setup->path, sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
        return NULL;
    }
    if (lstat(setup->path, &st) == 0) {
        if (!S_ISSOCK(st.st_mode)) {
            (void)error_set(e, ERROR_REFUSED, "%s exists and is no socket", setup->path);
            return NULL;
        }
        if (is_served(setup->path)) {
            (void)error_set(e, ERROR_REFUSED,
                            "another daemon serves the control socket %s; give this one a "
                            "different --control",
                            setup->path);
            return NULL;
        }
        (void)unlink(setup->path); /* left behind by a crash */
    }
    s = calloc(1, sizeof *s);
    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory");
        return NULL;
    }
    s->set = *setup;
    s->started = uv_hrtime();
    (void)uv_pipe_init(setup->loop, &s->listener, 0);
    s->listener.data = s;
    mode_t before = umask(0117); /* the owner and its group */
    int result = uv_pipe_bind(&s->listener, setup->path);
    (void)umask(before);
    if (result == 0)
        result = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
    if (result != 0) {
        (void)error_set(e, ERROR_IO, "control socket %s: %s", setup->path, uv_strerror(result));
        control_close(s);
        return NULL;
    }
    return s;
}

void control_planned(struct control_server *s)
{
    for (struct control_client *c = s->clients; c != NULL; c = c->next)
        control_candidates_again(c);
}

void control_close(struct control_server *s)
{
    s->closing = true;
    for (struct control_client *c = s->clients; c != NULL; c = c->next)
        close_client(c);
    uv_close((uv_handle_t *)&s->listener, on_listener_closed);
}
