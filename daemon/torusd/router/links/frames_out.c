#include "daemon/torusd/router/links/frames_out.h"

#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/send.h"

struct outgoing *link_next(struct link *link)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];
    struct outgoing *frame = outgoing_pop(&link->handshake_frames);

    if (frame == NULL && link->up) {
        frame = outgoing_pop(&port->control);
        if (port->holds && port->control.bytes <= ROUTER_QUEUE_MOST / 2)
            send_release(r, link->port);
        if (frame == NULL)
            frame = outgoing_pop(&port->relay);
        if (frame == NULL)
            frame = r->handler.next(r->handler.context, link->port);
    }
    if (frame != NULL) {
        link->taken_at = r->now;
        link->tx_bytes += frame->head_length + frame->body_length;
    }
    return frame;
}
