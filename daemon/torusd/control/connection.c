/* One client: reads its requests one after the other, and writes the replies. A client that sends anything
 * else gets an error, and is closed. While a client does not read its replies, its requests are not read. A
 * client that shuts down its sending side is closed after the last answer; a client that disconnects is
 * closed at once. */
#include <stddef.h>
#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/control/internal.h"
#include "proto/unpack.h"

#define MAX_REQUEST 65536u
#define UNPACKED_MOST (64u * MAX_REQUEST)
#define REPLIES_MOST (256u * 1024u) /* bytes that wait for a client to read them */
#define REFUSAL_MS 1000

static void count_down(struct control_client *client)
{
    if (--client->handles == 0)
        client->hooks->closed(client);
}

static void on_timer_closed(uv_handle_t *handle)
{
    count_down(handle->data);
}

static void on_closed(struct framed *framed)
{
    count_down(framed->context);
}

static void on_ending(struct framed *framed)
{
    struct control_client *client = framed->context;

    client->hooks->gone(client);
    uv_close((uv_handle_t *)&client->progress, on_timer_closed);
}

void control_client_close(struct control_client *client)
{
    framed_close(&client->framed);
}

static void on_wrote(struct framed *framed)
{
    struct control_client *client = framed->context;

    if (client->leaving && client->exchange == NULL)
        control_client_close(client);
}

void control_reply(struct control_client *client, const Control__Reply *reply)
{
    if (framed_is_closing(&client->framed))
        return;
    if ((reply->kind_case == CONTROL__REPLY__KIND_PROGRESS ||
         reply->kind_case == CONTROL__REPLY__KIND_COPY_PROGRESS) &&
        framed_waiting(&client->framed) > REPLIES_MOST)
        return;                                 /* the next progress message says more */
    framed_send(&client->framed, &reply->base); /* no answer is better than half of one */
}

static void reply_failure(struct control_client *client, const struct error *e, const char *id,
                          bool stopping)
{
    Control__Error error = CONTROL__ERROR__INIT;

    error.code = (uint32_t)e->code;
    error.text = (char *)(uintptr_t)e->text;
    error.exchange = (char *)(uintptr_t)(id != NULL ? id : "");
    error.stopping = stopping;
    control_reply(client, CONTROL_REPLY(ERROR, error, &error));
}

void control_reply_error(struct control_client *client, const struct error *e, const char *id)
{
    reply_failure(client, e, id, false);
}

void control_reply_stopped(struct control_client *client, const struct error *e, const char *id)
{
    reply_failure(client, e, id, true);
}

void *control_list(size_t count, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    const size_t pointers = (count * sizeof(void *) + align - 1) / align * align;
    void **list = calloc(1, pointers + count * size + 1);

    for (size_t i = 0; list != NULL && i < count; i++)
        list[i] = (char *)list + pointers + i * size;
    return list;
}

static void refuse_client(struct control_client *client, const struct error *e)
{
    log_warning("a control client was rejected: %s", e->text);
    control_reply_error(client, e, NULL);
    control_client_close(client);
}

/* The client may still wait for the result of its exchange. If it has disconnected, writing the answer fails. */
static void on_finished(struct framed *framed)
{
    struct control_client *client = framed->context;

    if (client->exchange == NULL) {
        control_client_close(client);
        return;
    }
    client->leaving = true;
    client->hooks->leaves(client);
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

static void on_request(struct framed *framed, const uint8_t *head, size_t size)
{
    struct control_client *client = framed->context;
    Control__Request *request =
        unpack_bounded(&control__request__descriptor, head, size, UNPACKED_MOST);
    struct error e;

    if (check_request(request, &e) == 0)
        client->hooks->request(client, request);
    else
        refuse_client(client, &e);
    unpack_free(request);
}

static void on_invalid(struct framed *framed, const struct error *e)
{
    refuse_client(framed->context, e);
}

int control_client_open(struct control_client *client, int fd)
{
    client->handles = 2;
    (void)uv_timer_init(client->server->set.loop, &client->progress);
    client->progress.data = client;
    client->framed = (struct framed){.most = MAX_REQUEST,
                                     .hold = REPLIES_MOST,
                                     .took = on_request,
                                     .closed = on_closed,
                                     .invalid = on_invalid,
                                     .finished = on_finished,
                                     .wrote = on_wrote,
                                     .ending = on_ending,
                                     .context = client};
    return framed_open(&client->framed, client->server->set.loop, fd);
}

static void on_refusal_over(uv_timer_t *timer)
{
    struct control_client *client = timer->data;

    if (client->framed.ignores)
        control_client_close(client);
    else
        refuse_client(client, &client->no_slot);
}

void control_client_hurry(struct control_client *client)
{
    if (uv_timer_start(&client->progress, on_refusal_over, REFUSAL_MS, 0) != 0)
        control_client_close(client);
}

void control_client_no_slot(struct control_client *client)
{
    log_warning("a control client was rejected: %s", client->no_slot.text);
    client->framed.ignores = true;
    control_reply_error(client, &client->no_slot, NULL);
}

/* If the client is still sending, closing at once could destroy the reply before the client reads it. */
void control_client_refuse(struct control_client *client, const struct error *e, bool slowly)
{
    if (!slowly || uv_timer_start(&client->progress, on_refusal_over, REFUSAL_MS, 0) != 0) {
        refuse_client(client, e);
        return;
    }
    log_warning("a control client was rejected: %s", e->text);
    client->framed.ignores = true;
    control_reply_error(client, e, NULL);
}

bool control_may(struct control_client *client, enum access needed)
{
    struct error e;

    if (access_check(client->server->set.access, client->access, needed, &e) == 0)
        return true;
    control_reply_error(client, &e, NULL);
    return false;
}
