/* Queues frames for sending at the port of their link. The frames that a neighbour causes in a queue are
 * bounded: while the queue is full, the router does not read from that neighbour. */
#include "daemon/torusd/router/router.h"

#include "daemon/torusd/router/filler.h"
#include "daemon/torusd/router/internal.h"

static void hold_reader(struct router *r, unsigned port)
{
    r->port[port].holds = true;
    r->reading->held_by |= 1u << port;
}

void send_release(struct router *r, unsigned port)
{
    r->port[port].holds = false;
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        struct link *link = r->port[i].link;
        if (link == NULL || (link->held_by & 1u << port) == 0)
            continue;
        link->held_by &= ~(1u << port);
        link->heard = true;
        link->last_frame = r->now;
        r->io.wake(r->io.context, link->connection);
    }
}

void router_send(struct router *r, unsigned port, const struct peer_message *message)
{
    struct outgoing *frame;

    if (r->port[port].link == NULL)
        return;
    frame = outgoing_make(&r->outgoing, message);
    if (frame == NULL) {
        /* A control frame must not get lost while its link stays up, because the peer would wait forever. */
        (void)error_set(&r->port[port].link->close_reason, ERROR_MEMORY,
                        "out of memory for a message");
        r->port[port].link->to_close = true; /* in the next tick: a caller may be using it */
        r->any_to_close = true;
        return;
    }
    /* This frame starts the peer; on a slow link it must not wait for the data behind it. */
    frame->immediate = message->kind == PEER_GO;
    outgoing_push(&r->port[port].control, frame);
    if (message->kind != PEER_HEARTBEAT && message->kind != PEER_LINK_STATE)
        filler_give_way(r, port);
    if (r->port[port].control.bytes > ROUTER_QUEUE_MOST && r->reading != NULL)
        hold_reader(r, port);
    r->io.wake(r->io.context, r->port[port].link->connection);
}

bool router_is_full(const struct router *r, unsigned port)
{
    return r->port[port].control.bytes > ROUTER_QUEUE_MOST;
}

void router_flood(struct router *r, int except, const struct peer_message *message)
{
    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        if ((int)i != except)
            router_send(r, i, message);
}

void router_relay(struct router *r, unsigned port, struct outgoing *frame)
{
    if (r->port[port].link == NULL) {
        outgoing_free(&r->outgoing, frame);
        return;
    }
    outgoing_push(&r->port[port].relay, frame);
    filler_give_way(r, port);
    r->io.wake(r->io.context, r->port[port].link->connection);
}

size_t router_relayed_bytes(const struct router *r, unsigned port)
{
    return r->port[port].relay.bytes;
}

void router_wake(struct router *r, unsigned port)
{
    if (r->port[port].link != NULL)
        r->io.wake(r->io.context, r->port[port].link->connection);
}
