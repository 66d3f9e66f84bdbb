/* Requests for a copy of trees: the client gets CopyProgress now and then, then CopyResult or an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/control/internal.h"

static void on_progress(uv_timer_t *timer)
{
    struct control_client *client = timer->data;
    struct copy_progress now;
    Control__CopyProgress progress = CONTROL__COPY_PROGRESS__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    copy_progress(client->copy, &now);
    progress.phase = now.phase;
    progress.files = now.files;
    progress.bytes = now.bytes;
    progress.bytes_of = now.bytes_of;
    progress.waits_for = now.waits_for;
    reply.kind_case = CONTROL__REPLY__KIND_COPY_PROGRESS;
    reply.copy_progress = &progress;
    control_reply(client, &reply);
}

static void set_node(Control__CopyResult__Node *to, const struct copy_outcome *from)
{
    control__copy_result__node__init(to);
    to->rank = from->node;
    to->from = from->from;
    to->code = (uint32_t)from->error.code;
    if (from->error.code != ERROR_NONE)
        to->error = (char *)(uintptr_t)from->error.text;
    to->files = from->report.files;
    to->folders = from->report.folders;
    to->links = from->report.links;
    to->added = from->report.added;
    to->changed = from->report.changed;
    to->removed = from->report.removed;
    to->unchanged = from->report.unchanged;
    to->bytes = from->report.bytes;
    to->bytes_missing = from->report.bytes_missing;
    to->not_owned = from->report.not_owned;
    to->not_attributed = from->report.not_attributed;
    to->first.data = (uint8_t *)(uintptr_t)from->report.first;
    to->first.len = strlen(from->report.first);
    to->grown = from->report.grown;
    to->going.data = (uint8_t *)(uintptr_t)from->going;
    to->going.len = from->going_length;
}

static void reply_result(struct control_client *client, const struct copy_result *result)
{
    const size_t count = result->outcomes;
    Control__CopyResult__Node *node = calloc(count, sizeof *node),
                              **list = calloc(count, sizeof *list);
    Control__CopyResult message = CONTROL__COPY_RESULT__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    for (size_t i = 0; node != NULL && list != NULL && i < count; i++) {
        list[i] = &node[i];
        set_node(&node[i], &result->outcome[i]);
    }
    message.n_node = count;
    message.node = list;
    message.bytes_sent = result->bytes_sent;
    message.bytes_all = result->bytes_all;
    message.nanoseconds = result->nanoseconds;
    message.compare_nanoseconds = result->compare_nanoseconds;
    message.left_out = result->left_out;
    message.first_left_out.data = (uint8_t *)(uintptr_t)result->first_left_out;
    message.first_left_out.len = strlen(result->first_left_out);
    message.links_out = result->links_out;
    message.first_link_out.data = (uint8_t *)(uintptr_t)result->first_link_out;
    message.first_link_out.len = strlen(result->first_link_out);
    message.skipped = result->changed;
    message.first_skipped.data = (uint8_t *)(uintptr_t)result->first_changed;
    message.first_skipped.len = strlen(result->first_changed);
    message.id = (char *)(uintptr_t)result->id;
    message.attempts = result->attempts;
    message.n_absent = result->absents;
    message.absent = (uint32_t *)(uintptr_t)result->absent;
    if (result->by.algorithm[0] != '\0') {
        message.algorithm = (char *)(uintptr_t)result->by.algorithm;
        message.mode = (char *)(uintptr_t)mode_name(result->by.mode);
    }
    reply.kind_case = CONTROL__REPLY__KIND_COPY_RESULT;
    reply.copy_result = &message;
    if (node != NULL && list != NULL)
        control_reply(client, &reply);
    else
        control_reply_error(client,
                            &(struct error){.code = ERROR_MEMORY,
                                            .text =
                                                "the copy has ended, but there is no memory for "
                                                "its result"},
                            NULL);
    free(node);
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
    Control__Error error = CONTROL__ERROR__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;
    char text[160];

    if (client->copy == NULL)
        return;
    (void)snprintf(text, sizeof text,
                   "torusd at node %u, which was asked for the copy, was stopped: start the copy "
                   "again; only what is still missing is sent",
                   router_rank(client->server->set.router));
    error.code = ERROR_LINK;
    error.text = text;
    error.exchange = (char *)(uintptr_t) "";
    error.stopping = true;
    reply.kind_case = CONTROL__REPLY__KIND_ERROR;
    reply.error = &error;
    control_reply(client, &reply);
}
