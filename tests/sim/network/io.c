/* Implements daemon/torusd/router/io.h. */
#include "tests/sim/network/network.h"

#include <string.h>

#include "tests/sim/network/dialling.h"
#include "tests/sim/network/transmission.h"

/* Closes a connection of a router, with or without a reason for the other side. */
static void check_close(const struct connection_end *end, const struct outgoing *last)
{
    const struct node *node = end->node;
    const struct node *peer = end_other((struct connection_end *)end)->node;
    Peer__Head *head;

    if (end->connection->excused || node->leaving || !peer->alive || peer->leaving ||
        end_other((struct connection_end *)end)->link == NULL)
        return;
    head = last == NULL ? NULL
                        : peer__head__unpack(NULL, last->head_length - FRAME_PREFIX_SIZE,
                                             last->head + FRAME_PREFIX_SIZE);
    if (head != NULL && head->kind_case == PEER__HEAD__KIND_REFUSAL &&
        strstr(head->refusal->reason, "because it flaps") != NULL) { /* an old fault */
        peer__head__free_unpacked(head, NULL);
        return;
    }
    sim_violated(node->sim, "honest links stay",
                 "node %u closes its link to node %u, which no fault has touched: %s", node->rank,
                 peer->rank,
                 head != NULL && head->kind_case == PEER__HEAD__KIND_REFUSAL ? head->refusal->reason
                                                                             : "no reason given");
}

static uint64_t io_now(void *context)
{
    return ((struct node *)context)->sim->now;
}

static void io_random(void *context, void *buffer, size_t size)
{
    uint8_t *out = buffer;

    while (size-- > 0)
        *out++ = (uint8_t)chance_word(&((struct node *)context)->chance);
}

static void io_wake(void *context, void *connection)
{
    struct node *node = context;
    struct connection_end *end = connection;

    if (end->dirty)
        return;
    end->dirty = true;
    end->next_dirty = node->dirty;
    node->dirty = end;
}

static void io_close(void *context, void *connection, struct outgoing *last)
{
    struct connection_end *end = connection;

    check_close(end, last);
    end->link = NULL;
    end_forget_dirty(end);
    end_drop_coming(end);
    if (last == NULL || end->vanished) {
        end_forget_queue(end);
        if (last != NULL)
            outgoing_free(router_outgoing(core_router(((struct node *)context)->core)), last);
    } else { /* the kernel has everything; the router's buffers are released */
        outgoing_push(&end->queue, last);
        end->queued += last->head_length;
        size_t length = end->queued;
        uint8_t *farewell = sim_alloc(length);
        transmission_take_bytes(end, farewell, length);
        end->farewell = farewell;
        end->queued = length;
    }
    end->closing = true;
    transmit(end);
}

/* Received bytes are acknowledged at once, if the wire carries anything to this end. */
static void io_stat(void *context, void *connection, struct connection_stat *stat)
{
    struct connection_end *end = connection, *to = end_other(end);
    /* In the simulator it does not leave; a real system would send it again and again. */
    const struct wire *wire = end->connection->wire;
    bool lost = end->queued > 0 && (end_is_cut_off(to) || to->vanished || end_is_too_large(end));

    if (!end_is_cut_off(end))
        end->acked = to->taken;
    *stat = (struct connection_stat){.rtt_us = 1,
                                     .min_rtt_us = (uint32_t)(wire->usual_latency / 1000),
                                     .tells_room = true,
                                     .no_room_us = end_without_room(end) / 1000,
                                     .acked = end->acked,
                                     .in_flight = lost || end->sent > end->acked,
                                     .unacked = end->sent - end->acked + end->queued,
                                     .segment = PACKET,
                                     .mtu = PACKET};
}

void network_io(struct node *node, struct router_io *io)
{
    *io = (struct router_io){.context = node,
                             .now = io_now,
                             .random = io_random,
                             .dial = dialling_begin,
                             .wake = io_wake,
                             .close = io_close,
                             .stat = io_stat};
}
