#include "daemon/torusd/router/links/frames_in.h"

#include "daemon/torusd/router/flooding/faults.h"
#include "daemon/torusd/router/flooding/flood.h"
#include "daemon/torusd/router/links/admission.h"
#include "daemon/torusd/router/links/link.h"
#include "daemon/torusd/router/links/probe.h"
#include "daemon/torusd/router/ports/port.h"
#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/view.h"
#include "proto/text.h"

#define HEARTBEAT_MOST_MS 5000u

static void take_heartbeat(struct link *link, const struct peer_heartbeat *beat)
{
    if (beat->interval_ms > 0)
        link->interval =
            (beat->interval_ms < HEARTBEAT_MOST_MS ? beat->interval_ms : HEARTBEAT_MOST_MS) *
            MILLISECONDS;
    link_clock_take(&link->clock, beat, router_now(link->router));
}

static int on_probe(struct link *link, const struct peer_message *message, struct error *e)
{
    int result = probe_heard(link, message, e);

    if (result > 0)
        port_link_up(link);
    return result < 0 ? -1 : 0;
}

static int on_frame(void *context, const struct peer_message *message, const struct extents *body,
                    uint32_t body_length, struct error *e)
{
    struct link *link = context;
    struct router *r = link->router;
    int result = 0;

    link->last_frame = r->now;
    if (message->kind == PEER_REFUSAL) {
        char reason[256];
        return error_set(e, ERROR_LINK, "refused by %s: %s", link->address,
                         text_printable(reason, sizeof reason, message->refusal.reason));
    }
    if (!link->up)
        return on_probe(link, message, e);
    switch (message->kind) {
    case PEER_HELLO:
    case PEER_PROOF:
    case PEER_PROBE:
    case PEER_PROBE_ANSWERED:
        return error_set(e, ERROR_PROTOCOL, "%s said hello twice", link->address);
    default:
        break;
    }
    if (message->kind == PEER_LINK_STATE)
        result = flood_heard(r, link->port, &message->link_state, e);
    else if (message->kind == PEER_LINK_FAULT)
        result = faults_heard(r, link->port, &message->link_fault, e);
    else if (message->kind == PEER_HEARTBEAT)
        take_heartbeat(link, &message->heartbeat);
    else
        result = r->handler.frame(r->handler.context, link->port, message, body, body_length, e);
    if (result == 0 && link->to_close) {
        *e = link->close_reason;
        return -1;
    }
    return result;
}

uint8_t *link_room(struct link *link, size_t *size)
{
    if (link->stranger != NULL)
        return admission_room(link, size);
    if (link->slab != NULL && link->slab->references == 1)
        link->slab_used = link->slab->copied_out = 0; /* no references are left: start over */
    if (link->slab != NULL && SLAB_SIZE - link->slab_used < LINK_ROOM_LEAST) {
        slab_unref(link->slab);
        link->slab = NULL;
    }
    if (link->slab == NULL) {
        link->slab = slab_get(link->router->pool);
        link->slab_used = 0;
        if (link->slab == NULL)
            return NULL;
    }
    *size = SLAB_SIZE - link->slab_used;
    return link->slab->data + link->slab_used;
}

void link_received(struct link *link, size_t length)
{
    struct error e = {0};
    int result;

    link->rx_bytes += length;
    link->heard = link->quiet.heard = true;
    link->router->now = router_now(link->router);
    link->decoding = true;
    if (link->stranger != NULL) {
        result = admission_received(link, length, &e);
        if (result == 0 && link->to_close) {
            e = link->close_reason;
            result = -1;
        }
    } else {
        const uint8_t *data = link->slab->data + link->slab_used;
        link->slab_used += (uint32_t)length;
        link->router->reading = link;
        result = decoder_feed(&link->decoder, link->slab, data, length, on_frame, link, &e);
        flood_tell_handler(link->router);
        link->router->reading = NULL;
        if (result == 0 && link->to_close) {
            e = link->close_reason;
            result = -1;
        }
    }
    link->decoding = false;
    if (result != 0)
        link_give_up(link, &e, e.code == ERROR_PROTOCOL || e.code == ERROR_REFUSED);
}

bool link_held(const struct link *link)
{
    return link->held_by != 0;
}
