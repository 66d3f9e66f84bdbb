/* One client: reads its requests one after the other, and writes the replies. A client that sends anything
 * else gets an error, and is closed. While a client does not read its replies, its requests are not read. A
 * client that shuts down its sending side is closed after the last answer; a client that disconnects is
 * closed at once. */
#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/control/internal.h"
#include "proto/unpack.h"

#define MAX_REQUEST 65536u
#define UNPACKED_MOST (64u * MAX_REQUEST)
#define REPLIES_MOST (256u * 1024u) /* bytes that wait for a client to read them */
#define REFUSAL_MS 1000

struct reply_write {
    uv_write_t request;
    uint8_t *frame;
};

static void on_handle_closed(uv_handle_t *handle)
{
    struct control_client *client = handle->data;

    if (--client->handles > 0)
        return;
    frame_stream_free(&client->in);
    client->hooks->closed(client);
}

void control_client_close(struct control_client *client)
{
    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    client->hooks->gone(client);
    uv_close((uv_handle_t *)&client->pipe, on_handle_closed);
    uv_close((uv_handle_t *)&client->progress, on_handle_closed);
}

/* Whether too many replies wait for the client to read them. */
static bool is_behind(const struct control_client *client)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&client->pipe) > REPLIES_MOST;
}

static void answer_requests(struct control_client *client);

static void on_reply_written(uv_write_t *request, int status)
{
    struct reply_write *w = request->data;
    struct control_client *client = request->handle->data;

    free(w->frame);
    free(w);
    if (status != 0 || (client->leaving && client->exchange == NULL))
        control_client_close(client);
    else if (client->held && !is_behind(client))
        answer_requests(client);
}

void control_reply(struct control_client *client, const Control__Reply *reply)
{
    struct reply_write *w;
    size_t length = 0;

    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    if ((reply->kind_case == CONTROL__REPLY__KIND_PROGRESS ||
         reply->kind_case == CONTROL__REPLY__KIND_COPY_PROGRESS) &&
        is_behind(client))
        return; /* the next progress message says more */
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
    control_client_close(client); /* no answer is better than half of one */
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
    log_warning("a control client was rejected: %s", e->text);
    control_reply_error(client, e, NULL);
    control_client_close(client);
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

    (void)buffer;
    if (length == UV_EOF && client->exchange != NULL) {
        /* The client may still wait for the result of its exchange. If it has disconnected, writing the
         * answer fails. */
        client->leaving = true;
        (void)uv_read_stop(stream);
        client->hooks->leaves(client);
        return;
    }
    if (length < 0) {
        control_client_close(client);
        return;
    }
    if (client->refused)
        return;
    frame_stream_added(&client->in, (size_t)length);
    answer_requests(client);
}

static int check_request(const Control__Request *request, struct error *e)
{
    if (request != NULL && request->version != 0 &&
        (request->version < CONTROL_OLDEST || request->version > CONTROL_VERSION))
        return error_set(e, ERROR_PROTOCOL,
                         "the client speaks control protocol %u, and torusd " TORUSD_VERSION
                         " speaks %u: install both from the same release of torusd",
                         request->version, CONTROL_VERSION);
    if (request == NULL)
        return error_set(e, ERROR_PROTOCOL, "the bytes are not a request");
    if (request->kind_case == CONTROL__REQUEST__KIND__NOT_SET && request->base.n_unknown_fields > 0)
        return error_set(
            e, ERROR_PROTOCOL,
            "unknown request %u: the client is of a newer release than torusd " TORUSD_VERSION
            ", which answers its other requests: install the newer one and restart torusd",
            request->base.unknown_fields[0].tag);
    if (request->kind_case == CONTROL__REQUEST__KIND__NOT_SET)
        return error_set(e, ERROR_PROTOCOL, "the request is empty");
    return 0;
}

/* Answers one request after the other, while the client reads its replies. */
static void answer_requests(struct control_client *client)
{
    const uint8_t *head;
    size_t size;
    struct error e;
    int more = 0;

    while (!is_behind(client) &&
           (more = frame_stream_next(&client->in, MAX_REQUEST, &head, &size, &e)) > 0) {
        Control__Request *request =
            unpack_bounded(&control__request__descriptor, head, size, UNPACKED_MOST);
        if (check_request(request, &e) != 0) {
            if (request != NULL)
                unpack_free(request);
            refuse_client(client, &e);
            return;
        }
        client->hooks->request(client, request);
        unpack_free(request);
        if (uv_is_closing((uv_handle_t *)&client->pipe) || client->refused)
            return;
    }
    if (more < 0) {
        refuse_client(client, &e);
    } else if (is_behind(client)) {
        client->held = true;
        (void)uv_read_stop((uv_stream_t *)&client->pipe);
    } else if (client->held) {
        client->held = false;
        if (uv_read_start((uv_stream_t *)&client->pipe, on_room, on_read) != 0)
            control_client_close(client);
    }
}

static void on_refusal_over(uv_timer_t *timer)
{
    struct control_client *client = timer->data;

    if (client->refused)
        control_client_close(client);
    else
        refuse_client(client, &client->no_place);
}

void control_client_begin(struct control_client *client)
{
    if (client->state_only &&
        uv_timer_start(&client->progress, on_refusal_over, REFUSAL_MS, 0) != 0)
        control_client_close(client);
    else if (uv_read_start((uv_stream_t *)&client->pipe, on_room, on_read) != 0)
        control_client_close(client);
}

void control_client_no_place(struct control_client *client)
{
    log_warning("a control client was rejected: %s", client->no_place.text);
    client->refused = true;
    control_reply_error(client, &client->no_place, NULL);
}

/* If the client is still sending, closing at once could destroy the reply before the client reads it. */
void control_client_refuse(struct control_client *client, const struct error *e, bool slowly)
{
    if (!slowly || uv_timer_start(&client->progress, on_refusal_over, REFUSAL_MS, 0) != 0) {
        refuse_client(client, e);
        return;
    }
    log_warning("a control client was rejected: %s", e->text);
    client->refused = true;
    control_reply_error(client, e, NULL);
    if (!uv_is_closing((uv_handle_t *)&client->pipe))
        control_client_begin(client);
}

bool control_may(struct control_client *client, enum access needed)
{
    struct error e;

    if (access_check(client->server->set.access, client->access, needed, &e) == 0)
        return true;
    control_reply_error(client, &e, NULL);
    return false;
}
