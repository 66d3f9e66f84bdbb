/* Requests for an exchange: the client gets Accepted, Progress now and then, then the result or
 * an error. */
#include <stdio.h>
#include <string.h>

#include "daemon/torusd/control/internal.h"

/* Tells the client the id of its exchange, unless the client knows it: each attempt has a new
 * id. */
static void say_accepted(struct control_client *client)
{
    const char *id = exchange_id(client->exchange);
    Control__Accepted accepted = CONTROL__ACCEPTED__INIT;

    if (strcmp(client->exchange_id, id) == 0)
        return;
    (void)snprintf(client->exchange_id, sizeof client->exchange_id, "%s", id);
    accepted.id = client->exchange_id;
    control_reply(client, CONTROL_REPLY(ACCEPTED, accepted, &accepted));
}

static void on_progress(uv_timer_t *timer)
{
    struct control_client *client = timer->data;
    struct exchange_progress now;
    const struct exchange_progress *from = &now;
    char missing[100];
    Control__Progress progress = CONTROL__PROGRESS__INIT, *to = &progress;

    say_accepted(client);
    exchange_progress(client->exchange, &now);
    CONTROL_PROGRESS(CONTROL_FILL)
    control_reply(client, CONTROL_REPLY(PROGRESS, progress, &progress));
}

static void on_ended(void *context, const struct exchange_result *result, const struct error *e)
{
    struct control_client *client = context;
    const char *id = exchange_id(client->exchange);

    (void)uv_timer_stop(&client->progress);
    if (result != NULL)
        control_reply_result(client, result);
    else
        control_reply_error(client, e, id);
    client->exchange = NULL;
}

void control_exchange(struct control_client *client, const Control__Request *request)
{
    const struct exchange_client me = {client, on_ended, client->user};
    struct spec spec;
    struct error e;

    client->exchange_id[0] = '\0';
    if (request->exchange->spec == NULL) {
        (void)error_set(&e, ERROR_PROTOCOL, "the request has no specification of the exchange");
    } else if (spec_unpack(&spec, request->exchange->spec, &e) == 0) {
        if (spec.operation == OPERATION_GROUP)
            (void)error_set(&e, ERROR_USAGE, "groups are opened by programs (libtorus)");
        else
            client->exchange = exchange_start(client->server->set.exchanges, &spec, &me, &e);
        spec_free(&spec);
    }
    if (client->exchange == NULL) {
        control_reply_error(client, &e, NULL);
        return;
    }
    say_accepted(client);
    if (client->exchange != NULL)
        (void)uv_timer_start(&client->progress, on_progress, PROGRESS_MS, PROGRESS_MS);
}

void control_exchange_stopped(struct control_client *client)
{
    struct error e;

    if (client->exchange == NULL || !exchange_is_undecided(client->exchange))
        return;
    (void)error_set(&e, ERROR_LINK,
                    "torusd at node %u, the root of the exchange, was stopped before it committed "
                    "anything: start the exchange again",
                    router_rank(client->server->set.router));
    control_reply_stopped(client, &e, exchange_id(client->exchange));
}

void control_exchange_abandon(struct control_client *client)
{
    if (client->exchange != NULL)
        exchange_abandon(client->exchange);
    client->exchange = NULL;
}
