/* Links. A connection has two ends; each end takes frames from its router as long as its socket
 * buffer has room, and puts pieces of them on the wire, one after the other at the wire's rate. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

#define SOCKET_BUFFER (128u * 1024u)
#define PIECE_MOST (64u * 1024u) /* with `chop`; otherwise a packet, or with `burst` as many as */
#define PACED_PART 1024u /* TCP hands over at once when it is paced: a millisecond's worth, */
#define PACED_LEAST 2u   /* but no fewer than these */
#define PACKET 1500u
#define DIAL_TIMEOUT (7 * SECONDS)

struct wire {
    enum sim_wire state;
    uint64_t latency, rate;
    struct event *held; /* what has come to a silent wire */
    size_t held_count;
};

struct connection_end {
    struct connection *connection;
    struct node *node;
    struct link *link; /* NULL: closed at this end */
    bool dirty;
    struct connection_end *next_dirty;
    struct outgoing_queue queue; /* the socket buffer */
    size_t queued;               /* bytes in it that have not left, */
    size_t first_done;           /* and bytes of its first frame that have */
    uint8_t *farewell;           /* what is queued, once the link is closed here */
    size_t farewell_done;
    uint64_t due; /* when the wire, at its rate, has carried all that has left */
    bool sending;
    bool closing;  /* after what is queued */
    bool vanished; /* with its machine: says nothing, hears nothing */
};

struct connection {
    struct connection *next;
    struct wire *wire;
    struct connection_end end[2];
};

struct piece {
    struct connection_end *to;
    size_t length;
    uint8_t bytes[];
};

static struct connection_end *other(struct connection_end *end)
{
    struct connection *c = end->connection;
    return end == &c->end[0] ? &c->end[1] : &c->end[0];
}

static struct wire *wire_at(struct sim *sim, uint32_t rank, unsigned port)
{
    if (torus_port_direction(port) < 0)
        rank = torus_neighbour(&sim->torus, rank, port);
    return &sim->wire[rank * sim->torus.dims + torus_port_dim(port)];
}

static void forget_queue(struct connection_end *end)
{
    if (end->queue.first != NULL)
        outgoing_clear(router_outgoing(core_router(end->node->core)), &end->queue);
    free(end->farewell);
    end->farewell = NULL;
    end->queued = end->first_done = end->farewell_done = 0;
}

static void forget_dirty(struct connection_end *end)
{
    for (struct connection_end **at = &end->node->dirty; *at != NULL; at = &(*at)->next_dirty)
        if (*at == end) {
            *at = end->next_dirty;
            break;
        }
    end->dirty = false;
}

/* --- on the wire --- */

/* True if it has to wait until the wire works again. */
static bool hold(struct connection *c, const struct event *e)
{
    struct wire *w = c->wire;

    if (w->state != SIM_WIRE_SILENT)
        return false;
    w->held = realloc(w->held, (w->held_count + 1) * sizeof *w->held);
    if (w->held == NULL)
        abort();
    w->held[w->held_count++] = *e;
    return true;
}

static void on_closed(struct sim *sim, void *object, uint64_t reset)
{
    struct connection_end *end = object;
    struct link *link = end->link;
    const struct event this = {
        .what = "closed", .run = on_closed, .object = object, .number = reset};

    if (!sim->ending && hold(end->connection, &this))
        return;
    if (link == NULL || end->vanished)
        return;
    end->link = NULL;
    forget_queue(end);
    forget_dirty(end);
    link_closed(link, reset ? "connection reset" : "closed by the other side");
    sim_settle(end->node);
}

static void on_arrived(struct sim *sim, void *object, uint64_t number)
{
    struct piece *piece = object;
    struct connection_end *to = piece->to;
    const struct event this = {.what = "arrived", .run = on_arrived, .object = object};
    size_t done = 0;

    (void)number;
    if (!sim->ending && hold(to->connection, &this))
        return;
    if (sim->damage > 0 && to->link != NULL) {
        uint64_t bit = chance_below(&sim->chance, piece->length * 8);
        piece->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        sim->damage--;
    }
    while (done < piece->length && to->link != NULL) {
        size_t room;
        uint8_t *at = link_room(to->link, &room);
        if (at == NULL)
            abort();
        room = piece->length - done < room ? piece->length - done : room;
        memcpy(at, piece->bytes + done, room);
        done += room;
        link_received(to->link, room);
    }
    free(piece);
    sim_settle(to->node);
}

/* Copies bytes that leave, and gives back frames that have left. */
static void take_bytes(struct connection_end *end, uint8_t *out, size_t length)
{
    if (end->farewell != NULL) {
        memcpy(out, end->farewell + end->farewell_done, length);
        end->farewell_done += length;
        end->queued -= length;
        return;
    }
    while (length > 0) {
        struct outgoing *frame = end->queue.first;
        size_t skip = end->first_done, n;
        const uint8_t *from = frame->head;
        size_t have = frame->head_length;
        for (uint32_t i = 0; skip >= have; i++) {
            skip -= have;
            from = frame->body.item[i].data;
            have = frame->body.item[i].length;
        }
        n = have - skip < length ? have - skip : length;
        memcpy(out, from + skip, n);
        out += n;
        length -= n;
        end->queued -= n;
        end->first_done += n;
        if (end->first_done == (size_t)frame->head_length + frame->body_length) {
            end->first_done = 0;
            outgoing_free(router_outgoing(core_router(end->node->core)), outgoing_pop(&end->queue));
        }
    }
}

static void on_sent(struct sim *sim, void *object, uint64_t number);

/* How long a piece takes to leave: as long as the wire needs for it; or, with `burst`, until what
 * the limiter has let through too early is little enough, whatever the size of the piece. */
static uint64_t time_to_leave(struct connection_end *end, size_t length)
{
    const struct sim *sim = end->node->sim;
    uint64_t rate = end->connection->wire->rate, now = sim->now;

    if (rate == 0)
        return 0;
    uint64_t begin = end->due > now ? end->due : now, ahead = sim->set.burst * SECONDS / rate;
    end->due = begin + length * SECONDS / rate;
    if (sim->set.burst == 0)
        return end->due - now;
    return begin > now + ahead ? begin - ahead - now : 0;
}

static void transmit(struct connection_end *end)
{
    struct sim *sim = end->node->sim;
    struct connection *c = end->connection;
    size_t length = PACKET;

    if (end->sending || end->vanished || other(end)->vanished || c->wire->state == SIM_WIRE_SILENT)
        return;
    if (end->queued == 0) {
        if (end->closing && end->link == NULL)
            sim_schedule(sim, c->wire->latency, "closed", on_closed, other(end), 0);
        end->closing = false;
        return;
    }
    if (sim->set.burst > 0) {
        uint64_t paced = c->wire->rate / PACED_PART;
        length = paced > PIECE_MOST             ? PIECE_MOST
                 : paced > PACED_LEAST * PACKET ? paced
                                                : PACED_LEAST * PACKET;
    }
    if (sim->set.chop)
        length =
            1 + chance_below(&sim->chance, chance_below(&sim->chance, 8) == 0 ? 16 : PIECE_MOST);
    if (length > end->queued)
        length = end->queued;
    struct piece *piece = malloc(sizeof *piece + length);
    if (piece == NULL)
        abort();
    piece->to = other(end);
    piece->length = length;
    take_bytes(end, piece->bytes, length);
    uint64_t time = time_to_leave(end, length);
    end->sending = true;
    sim_schedule(sim, time, "sent", on_sent, end, 0);
    sim_schedule(sim, time + c->wire->latency, "arrived", on_arrived, piece, length);
}

static void on_sent(struct sim *sim, void *object, uint64_t number)
{
    struct connection_end *end = object;

    (void)sim, (void)number;
    end->sending = false;
    if (end->link != NULL && !end->dirty) {
        end->dirty = true;
        end->next_dirty = end->node->dirty;
        end->node->dirty = end;
    }
    sim_settle(end->node);
    transmit(end);
}

/* By its kind: the number of the head's one field, which its first bytes say. */
static void count_frame(struct node *node, const struct outgoing *frame)
{
    const uint8_t *head = frame->head + FRAME_PREFIX_SIZE;
    unsigned key = head[0] < 0x80 ? head[0] : (head[0] & 0x7fu) | (unsigned)head[1] << 7;

    if (key >> 3 < SIM_KINDS)
        node->sent[key >> 3]++;
}

void network_flush(struct node *node)
{
    struct connection_end *end;

    while ((end = node->dirty) != NULL) {
        node->dirty = end->next_dirty;
        end->dirty = false;
        while (end->link != NULL && end->queued < SOCKET_BUFFER) {
            struct outgoing *frame = link_next(end->link);
            if (frame == NULL)
                break;
            node->sim->frames++;
            count_frame(node, frame);
            end->queued += (size_t)frame->head_length + frame->body_length;
            outgoing_push(&end->queue, frame);
        }
        transmit(end);
    }
}

/* --- connecting --- */

static void dial_over(struct sim *sim, void *object, uint64_t number)
{
    struct node *node = object;
    unsigned port = (unsigned)(number & 0xff);
    uint32_t life = (uint32_t)(number >> 8);
    struct wire *wire = wire_at(sim, node->rank, port);
    struct node *peer = &sim->node[torus_neighbour(&sim->torus, node->rank, port)];

    if (!node->alive || node->life != life)
        return;
    if (wire->state != SIM_WIRE_UP || !peer->alive) {
        router_dial_failed(core_router(node->core), port,
                           wire->state == SIM_WIRE_UP ? "connection refused" : "timed out");
        sim_settle(node);
        return;
    }
    struct connection *c = calloc(1, sizeof *c);
    if (c == NULL)
        abort();
    c->wire = wire;
    c->next = sim->connections;
    sim->connections = c;
    c->end[0] = (struct connection_end){.connection = c, .node = node};
    c->end[1] = (struct connection_end){.connection = c, .node = peer};
    c->end[1].link =
        router_connected(core_router(peer->core), torus_port_opposite(port), false, &c->end[1], "dialler");
    c->end[0].link = router_connected(core_router(node->core), port, true, &c->end[0], "listener");
    if (c->end[0].link == NULL)
        sim_fail(sim, "node %u does not want the connection that it dialled", node->rank);
    if (c->end[1].link == NULL)
        sim_schedule(sim, wire->latency, "closed", on_closed, &c->end[0], 0);
    sim_settle(node);
    sim_settle(peer);
}

static void io_dial(void *context, unsigned port)
{
    struct node *node = context;
    struct sim *sim = node->sim;
    const struct wire *wire = wire_at(sim, node->rank, port);
    const struct node *peer = &sim->node[torus_neighbour(&sim->torus, node->rank, port)];
    bool answered = wire->state != SIM_WIRE_SILENT && (peer->alive || peer->death != SIM_POWER);

    sim_schedule(sim, answered ? 2 * wire->latency : DIAL_TIMEOUT, "dialled", dial_over, node,
                 (uint64_t)node->life << 8 | port);
}

/* --- the rest of daemon/router/io.h --- */

static uint64_t io_now(void *context)
{
    return ((struct node *)context)->sim->now;
}

static void io_random(void *context, void *buffer, size_t size)
{
    uint8_t *out = buffer;

    while (size-- > 0)
        *out++ = (uint8_t)chance_word(&((struct node *)context)->sim->chance);
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

    end->link = NULL;
    forget_dirty(end);
    if (last == NULL || end->vanished) {
        forget_queue(end);
        if (last != NULL)
            outgoing_free(router_outgoing(core_router(((struct node *)context)->core)), last);
    } else { /* the kernel has it all; nothing of ours is held any longer */
        outgoing_push(&end->queue, last);
        end->queued += last->head_length;
        size_t length = end->queued;
        uint8_t *farewell = malloc(length);
        if (farewell == NULL)
            abort();
        take_bytes(end, farewell, length);
        end->farewell = farewell;
        end->queued = length;
    }
    end->closing = true;
    transmit(end);
}

static void io_stat(void *context, void *connection, struct connection_stat *stat)
{
    (void)context, (void)connection;
    *stat = (struct connection_stat){.rtt_us = 1};
}

void network_io(struct node *node, struct router_io *io)
{
    *io = (struct router_io){node, io_now, io_random, io_dial, io_wake, io_close, io_stat};
}

/* --- faults --- */

void network_node_dies(struct node *node, enum sim_death death)
{
    struct sim *sim = node->sim;

    if (death == SIM_STOP)
        return; /* its router says good-bye */
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++) {
            struct connection_end *end = &c->end[i];
            if (end->node != node || end->vanished)
                continue;
            forget_queue(end);
            end->closing = false;
            end->vanished = true;
            if (death == SIM_CRASH)
                sim_schedule(sim, c->wire->latency, "closed", on_closed, other(end), 1);
        }
}

/* Its machine answers again: what is sent on connections of before is answered with a reset. */
void network_node_back(struct node *node)
{
    struct sim *sim = node->sim;

    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++)
            if (c->end[i].node == node && c->end[i].vanished && other(&c->end[i])->link != NULL)
                sim_schedule(sim, c->wire->latency, "closed", on_closed, other(&c->end[i]), 1);
}

void sim_set_wire(struct sim *sim, uint32_t rank, unsigned port, enum sim_wire state)
{
    struct wire *w = wire_at(sim, rank, port);

    w->state = state;
    for (size_t i = 0; state != SIM_WIRE_SILENT && i < w->held_count; i++)
        sim_schedule(sim, 0, w->held[i].what, w->held[i].run, w->held[i].object, w->held[i].number);
    if (state != SIM_WIRE_SILENT)
        w->held_count = 0;
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++) {
            if (c->wire != w || c->end[i].vanished)
                continue;
            if (state == SIM_WIRE_CUT)
                sim_schedule(sim, 0, "closed", on_closed, &c->end[i], 1);
            else if (state == SIM_WIRE_UP)
                transmit(&c->end[i]);
        }
}

void sim_damage(struct sim *sim, unsigned count)
{
    sim->damage = count;
}

void network_open(struct sim *sim)
{
    size_t wires = (size_t)sim->torus.nodes * sim->torus.dims;

    sim->wire = calloc(wires, sizeof *sim->wire);
    if (sim->wire == NULL)
        abort();
    for (size_t i = 0; i < wires; i++) {
        sim->wire[i].rate = sim->set.rate;
        sim->wire[i].latency =
            sim->set.chop && sim->set.latency > 0
                ? sim->set.latency / 2 + chance_below(&sim->chance, sim->set.latency)
                : sim->set.latency;
    }
}

void sim_set_rate(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate)
{
    wire_at(sim, rank, port)->rate = rate;
}

/* All nodes are dead. Whoever still held something has given it back, or sim_kill() has seen it. */
void network_free(struct sim *sim)
{
    struct connection *c;

    for (size_t i = 0; i < (size_t)sim->torus.nodes * sim->torus.dims; i++) {
        struct wire *w = &sim->wire[i];
        for (size_t k = 0; k < w->held_count; k++)
            w->held[k].run(sim, w->held[k].object, w->held[k].number);
        free(w->held);
    }
    while ((c = sim->connections) != NULL) {
        sim->connections = c->next;
        forget_queue(&c->end[0]);
        forget_queue(&c->end[1]);
        free(c);
    }
    free(sim->wire);
}
