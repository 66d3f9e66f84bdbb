/* The requests, and those of them that need no file of their own. */
#include "daemon/torusd/control/internal.h"

/* --- schedules, which a client gives part by part --- */

void control_schedule_leave(struct control_client *client)
{
    if (client->schedule != NULL)
        schedules_leave(exchanges_schedules(client->server->set.exchanges), client->schedule);
    client->schedule = NULL;
}

static int take_part(struct control_client *client, const Control__ScheduleRequest *part,
                     uint32_t *have, struct error *e)
{
    struct schedules *all = exchanges_schedules(client->server->set.exchanges);
    struct schedule *s;

    if (!schedules_is_digest(part->digest))
        return error_set(e, ERROR_PROTOCOL,
                         "a part of a schedule without the schedule's digest: the client and this "
                         "torusd have different versions");
    if (part->total == 0 || part->total > IMPORTED_BYTES_MOST)
        return error_set(e, ERROR_REFUSED, "the schedule has %u bytes, but must have 1 to %u",
                         part->total, IMPORTED_BYTES_MOST);
    s = schedules_join(all, part->digest, client->user, e);
    if (s == NULL)
        return -1;
    control_schedule_leave(client); /* perhaps the same schedule, which schedules_join() keeps */
    client->schedule = s;
    return schedule_give(all, s, part->total, part->offset, part->part.data, part->part.len, have,
                         e);
}

static void on_schedule(struct control_client *client, const Control__Request *request)
{
    Control__Schedule message = CONTROL__SCHEDULE__INIT;
    struct error e;

    if (take_part(client, request->schedule, &message.offset, &e) != 0) {
        control_reply_error(client, &e, NULL);
        return;
    }
    control_reply(client, CONTROL_REPLY(SCHEDULE, schedule, &message));
}

/* --- all requests --- */

/* The exchange now ends, and its result is the answer, as it is of a copy that nodes put in place already. If none is under
 * way, this request has crossed the last reply. */
static void on_cancel(struct control_client *client, const Control__Request *request)
{
    const struct error cancelled = {.code = ERROR_CANCELLED, .text = "cancelled"};

    (void)request;
    if (client->exchange != NULL) {
        exchange_cancel(client->exchange);
    } else if (client->candidates != NULL) {
        control_candidates_forget(client);
        control_reply_error(client, &cancelled, NULL);
    } else if (client->copy != NULL) {
        control_copy_stop(client);
    } else if (client->surveys) {
        control_survey_forget(client);
        control_reply_error(client, &cancelled, NULL);
    }
}

static const struct {
    Control__Request__KindCase kind;
    enum access access; /* the least access that the request needs */
    void (*answer)(struct control_client *client, const Control__Request *request);
} requests[] = {
    {CONTROL__REQUEST__KIND_STATUS, ACCESS_READ, control_status},
    {CONTROL__REQUEST__KIND_LINKS, ACCESS_READ, control_links},
    {CONTROL__REQUEST__KIND_EXCHANGE, ACCESS_EXCHANGE, control_exchange},
    {CONTROL__REQUEST__KIND_CANDIDATES, ACCESS_READ, control_candidates},
    {CONTROL__REQUEST__KIND_CALIBRATION, ACCESS_READ, control_calibration},
    {CONTROL__REQUEST__KIND_CANCEL, ACCESS_READ, on_cancel},
    {CONTROL__REQUEST__KIND_SCHEDULE, ACCESS_EXCHANGE, on_schedule},
    {CONTROL__REQUEST__KIND_SURVEY, ACCESS_READ, control_survey},
    {CONTROL__REQUEST__KIND_WATCH_LINKS, ACCESS_READ, control_watch_links},
    {CONTROL__REQUEST__KIND_ROUTES_CONFIRMED, ACCESS_EXCHANGE, control_routes_confirmed},
    {CONTROL__REQUEST__KIND_COPY, ACCESS_EXCHANGE, control_copy},
};

void control_request(struct control_client *client, const Control__Request *request)
{
    const struct error busy = {.code = ERROR_PROTOCOL,
                               .text = "a connection takes one request at a time, and torusd has "
                                       "not answered the last one yet: wait for its reply"};

    if (client->state_only && request->kind_case != CONTROL__REQUEST__KIND_STATUS &&
        request->kind_case != CONTROL__REQUEST__KIND_LINKS) {
        control_client_no_slot(client);
        return;
    }
    if (request->kind_case != CONTROL__REQUEST__KIND_CANCEL &&
        (client->exchange != NULL || client->candidates != NULL || client->surveys ||
         client->copy != NULL ||
         (client->watch != NULL &&
          request->kind_case != CONTROL__REQUEST__KIND_ROUTES_CONFIRMED))) {
        control_reply_error(client, &busy, NULL);
        return;
    }
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        if (requests[i].kind == request->kind_case) {
            if (control_may(client, requests[i].access))
                requests[i].answer(client, request);
            return;
        }
}
