/* Sends frames from routers to their sockets, as they are or as a test has altered them. */
#include "tests/sim/network/network.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/network/transmission.h"

#define SOCKET_BUFFER (128u * 1024u)

/* Counts a frame by its kind: the number of the head's only field, from its first bytes. */
static void count_frame(struct node *node, const struct outgoing *frame)
{
    const uint8_t *head = frame->head + FRAME_PREFIX_SIZE;
    unsigned key = head[0] < 0x80 ? head[0] : (head[0] & 0x7fu) | (unsigned)head[1] << 7;

    if (key >> 3 >= SIM_KINDS)
        return;
    node->sent[key >> 3]++;
    if (node->sim->set.on_frame != NULL)
        node->sim->set.on_frame(node->sim, node->rank, (Peer__Head__KindCase)(key >> 3));
}

static unsigned port_of(const struct connection_end *end)
{
    const struct connection *c = end->connection;
    const struct sim *sim = end->node->sim;
    uint32_t rank;
    unsigned port;

    wire_dialler(sim, c->wire, &rank, &port);
    return end_index(end) == 0 ? port : torus_port_opposite(&sim->torus, port);
}

/* The whole frame takes the place of the head, which no code reads here any more. */
static void push_bytes(struct connection_end *end, const uint8_t *bytes, size_t length)
{
    struct outgoing *frame = outgoing_new(router_outgoing(core_router(end->node->core)));

    if (frame == NULL)
        abort();
    frame->head = sim_alloc(length);
    memcpy(frame->head, bytes, length);
    frame->head_length = (uint32_t)length;
    end->queued += length;
    outgoing_push(&end->queue, frame);
}

/* Sends what sim_setup.on_bytes makes of a frame instead of the frame. */
static void push_altered(struct connection_end *end, struct outgoing *frame)
{
    struct sim *sim = end->node->sim;
    size_t length = (size_t)frame->head_length + frame->body_length, at = frame->head_length;
    uint8_t *bytes = sim_alloc(length);

    memcpy(bytes, frame->head, at);
    for (uint32_t i = 0; at < length; at += frame->body.item[i++].length)
        memcpy(bytes + at, frame->body.item[i].data, frame->body.item[i].length);
    outgoing_free(router_outgoing(core_router(end->node->core)), frame);
    unsigned times = sim->set.on_bytes(sim, end->node->rank, port_of(end), &bytes, &length);
    while (times-- > 0)
        push_bytes(end, bytes, length);
    free(bytes);
}

bool sim_say(struct sim *sim, uint32_t rank, unsigned port, const uint8_t *bytes, size_t length)
{
    struct node *node = &sim->node[rank];

    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++) {
            struct connection_end *end = &c->end[i];
            if (end->node != node || end->link == NULL || !node->alive || port_of(end) != port)
                continue;
            if (length > 0)
                push_bytes(end, bytes, length);
            transmit(end);
            return true;
        }
    return false;
}

void network_flush(struct node *node)
{
    struct connection_end *end;

    while ((end = node->dirty) != NULL) {
        node->dirty = end->next_dirty;
        end->dirty = false;
        while (end->link != NULL && end->queued < SOCKET_BUFFER) {
            sim_enter(node);
            struct outgoing *frame = link_next(end->link);
            sim_leave();
            if (frame == NULL)
                break;
            node->sim->frames++;
            count_frame(node, frame);
            if (node->sim->set.on_bytes != NULL) {
                push_altered(end, frame);
                continue;
            }
            end->queued += (size_t)frame->head_length + frame->body_length;
            outgoing_push(&end->queue, frame);
        }
        transmit(end);
    }
}
