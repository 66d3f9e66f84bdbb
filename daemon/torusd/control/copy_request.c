/* Requests for a copy of trees: the client gets CopyProgress now and then, then CopyResult or an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/control/internal.h"

static void on_progress(uv_timer_t *timer)
{
    struct control_client *client = timer->data;
    struct copy_progress now;
    const struct copy_progress *from = &now;
    Control__CopyProgress progress = CONTROL__COPY_PROGRESS__INIT, *to = &progress;

    copy_progress(client->copy, &now);
    CONTROL_COPY_PROGRESS(CONTROL_FILL)
    control_reply(client, CONTROL_REPLY(COPY_PROGRESS, copy_progress, &progress));
}

/* A path, as bytes of any kind. */
static ProtobufCBinaryData path_bytes(const char *path)
{
    return (ProtobufCBinaryData){strlen(path), (uint8_t *)(uintptr_t)path};
}

static void set_node(Control__CopyResult__Node *to, const struct copy_outcome *from)
{
    control__copy_result__node__init(to);
    CONTROL_COPY_NODE(CONTROL_FILL)
    to->first = path_bytes(from->report.first);
    to->going = (ProtobufCBinaryData){from->going_length, (uint8_t *)(uintptr_t)from->going};
}

static void reply_result(struct control_client *client, const struct copy_result *from)
{
    const size_t count = from->outcomes;
    Control__CopyResult__Node **list = control_list(count, sizeof **list);
    Control__CopyResult message = CONTROL__COPY_RESULT__INIT, *to = &message;
    Control__LinkRates link_rates;

    for (size_t i = 0; list != NULL && i < count; i++)
        set_node(list[i], &from->outcome[i]);
    CONTROL_COPY_RESULT(CONTROL_FILL)
    to->link_rates = control_link_rates(&link_rates, &from->links);
    to->n_node = count;
    to->node = list;
    to->first_left_out = path_bytes(from->first_left_out);
    to->first_link_out = path_bytes(from->first_link_out);
    to->first_skipped = path_bytes(from->first_changed);
    to->n_absent = from->absents;
    to->absent = (uint32_t *)(uintptr_t)from->absent;
    if (list != NULL)
        control_reply(client, CONTROL_REPLY(COPY_RESULT, copy_result, &message));
    else
        control_reply_error(client,
                            &(struct error){.code = ERROR_MEMORY,
                                            .text =
                                                "the copy has ended, but there is no memory for "
                                                "its result"},
                            NULL);
    free((void *)list);
}

static void on_ended(void *context, const struct copy_result *result, const struct error *e)
{
    struct control_client *client = context;

    (void)uv_timer_stop(&client->progress);
    client->copy = NULL;
    if (result != NULL)
        reply_result(client, result);
    else
        control_reply_error(client, e, NULL);
}

void control_copy(struct control_client *client, const Control__Request *request)
{
    const struct copy_client me = {client, on_ended};
    struct copy_request copy;
    struct error e;

    if (copy_request_take(&copy, request->copy, &e) == 0) {
        copy.user = client->user;
        client->copy = copy_start(client->server->set.copies, &copy, &me, &e);
        copy_request_free(&copy);
    }
    if (client->copy == NULL)
        control_reply_error(client, &e, NULL);
    else
        (void)uv_timer_start(&client->progress, on_progress, PROGRESS_MS, PROGRESS_MS);
}

void control_copy_stop(struct control_client *client)
{
    struct error cancelled;

    if (!copy_stop(client->copy, &cancelled))
        return;
    (void)uv_timer_stop(&client->progress);
    client->copy = NULL;
    control_reply_error(client, &cancelled, NULL);
}

void control_copy_abandon(struct control_client *client)
{
    if (client->copy == NULL)
        return;
    (void)uv_timer_stop(&client->progress);
    copy_cancel(client->copy);
    client->copy = NULL;
}

void control_copy_stopped(struct control_client *client)
{
    struct error e;

    if (client->copy == NULL)
        return;
    (void)error_set(&e, ERROR_LINK,
                    "torusd at node %u, which was asked for the copy, was stopped: start the copy "
                    "again; only what is still missing is sent",
                    router_rank(client->server->set.router));
    control_reply_stopped(client, &e, NULL);
}
