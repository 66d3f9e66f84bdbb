/* A schedule that a client gives to this node, part by part. */
#include <string.h>

#include "daemon/torusd/control/internal.h"

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

void control_schedule(struct control_client *client, const Control__Request *request)
{
    Control__Schedule message = CONTROL__SCHEDULE__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;
    struct error e;

    if (take_part(client, request->schedule, &message.offset, &e) != 0) {
        control_reply_error(client, &e, NULL);
        return;
    }
    reply.kind_case = CONTROL__REPLY__KIND_SCHEDULE;
    reply.schedule = &message;
    control_reply(client, &reply);
}
