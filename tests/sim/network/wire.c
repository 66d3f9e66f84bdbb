#include <stdlib.h>
#include <string.h>

#include "tests/sim/network/network.h"
#include "tests/sim/network/transmission.h"
#include "tests/sim/network/wire.h"

#define NARROW_MOST 600u /* SIM_WIRE_NARROW: handshakes and heartbeats pass */
#define EXCUSE_TIME                                                                                \
    (20 * SECONDS) /* after a fault: the time for which its consequences may close links */
/* How long a link must survive without traffic, or with a stopped process whose system answers. This is less than
 * the silence by the time between two heartbeats and by some time for bytes that are queued before them. */
#define STALL_BORNE (ROUTER_SILENCE - ROUTER_HEARTBEAT - 100 * MILLISECONDS)
#define STOP_BORNE (ROUTER_STALL - ROUTER_HEARTBEAT - 500 * MILLISECONDS)

struct connection_end *end_other(struct connection_end *end)
{
    struct connection *c = end->connection;
    return end == &c->end[0] ? &c->end[1] : &c->end[0];
}

/* Each node has a wire for each port that may dial: every second one in rings and lines. */
static unsigned ports_a_wire(const struct sim *sim)
{
    return torus_is_plain(&sim->torus) ? 2 : 1;
}

static unsigned wires_a_node(const struct sim *sim)
{
    return torus_ports(&sim->torus) / ports_a_wire(sim);
}

struct wire *wire_at(struct sim *sim, uint32_t rank, unsigned port)
{
    if (!torus_port_dials(&sim->torus, rank, port)) {
        rank = torus_neighbour(&sim->torus, rank, port);
        port = torus_port_opposite(&sim->torus, port);
    }
    return &sim->wire[rank * wires_a_node(sim) + port / ports_a_wire(sim)];
}

size_t wire_count(const struct sim *sim)
{
    return (size_t)sim->torus.nodes * wires_a_node(sim);
}

void wire_dialler(const struct sim *sim, const struct wire *w, uint32_t *rank, unsigned *port)
{
    size_t index = (size_t)(w - sim->wire);

    *rank = (uint32_t)(index / wires_a_node(sim));
    *port = (unsigned)(index % wires_a_node(sim)) * ports_a_wire(sim);
}

void end_forget_queue(struct connection_end *end)
{
    if (end->queue.first != NULL)
        outgoing_clear(router_outgoing(core_router(end->node->core)), &end->queue);
    free(end->farewell);
    end->farewell = NULL;
    end->queued = end->first_done = end->farewell_done = 0;
}

void end_forget_dirty(struct connection_end *end)
{
    for (struct connection_end **at = &end->node->dirty; *at != NULL; at = &(*at)->next_dirty)
        if (*at == end) {
            *at = end->next_dirty;
            break;
        }
    end->dirty = false;
}

unsigned end_index(const struct connection_end *end)
{
    return end == &end->connection->end[1];
}

void wire_excuse(struct sim *sim, struct wire *w)
{
    sim_harmed(sim);
    w->excused_until = sim->now + EXCUSE_TIME;
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        c->excused |= c->wire == w;
}

void wire_slow_down(struct sim *sim, struct wire *w, uint64_t time, bool passes)
{
    if (sim->now > w->slow_until + ROUTER_STALL)
        w->slowness = w->stalled = 0;
    sim->slowed = true;
    w->slowness += time;
    if (!passes)
        w->stalled += time;
    if (sim->now + time > w->slow_until)
        w->slow_until = sim->now + time;
    if (w->stalled > STALL_BORNE || w->slowness > STOP_BORNE)
        wire_excuse(sim, w);
}

static void wire_each_of(struct node *node, void (*call)(struct sim *sim, struct wire *w))
{
    for (unsigned port = 0; port < torus_ports(&node->sim->torus); port++)
        if (torus_neighbour(&node->sim->torus, node->rank, port) != TORUS_NO_NODE)
            call(node->sim, wire_at(node->sim, node->rank, port));
}

bool end_is_cut_off(const struct connection_end *end)
{
    const struct wire *w = end->connection->wire;

    return w->state == SIM_WIRE_SILENT || w->state == SIM_WIRE_CUT ||
           (w->state == SIM_WIRE_DEAF && w->deaf == end_index(end));
}

uint64_t end_without_room(const struct connection_end *end)
{
    const uint64_t since = end->no_room_since;

    return end->no_room + (since > 0 ? end->node->sim->now - since : 0);
}

size_t end_next_frame(const struct connection_end *end)
{
    const struct outgoing *frame = end->queue.first;

    return frame == NULL ? end->queued
                         : (size_t)frame->head_length + frame->body_length - end->first_done;
}

bool end_is_too_large(const struct connection_end *end)
{
    return end->connection->wire->state == SIM_WIRE_NARROW && end_next_frame(end) > NARROW_MOST;
}

bool wire_lets_dials_pass(const struct wire *w)
{
    return w->state == SIM_WIRE_UP || w->state == SIM_WIRE_NARROW;
}

void end_drop_coming(struct connection_end *end)
{
    struct piece *piece;

    while ((piece = end->first) != NULL) {
        end->first = piece->next;
        free(piece);
    }
    end->last = NULL;
    end->coming = 0;
}

void end_lose_link(struct connection_end *end, const char *reason)
{
    struct link *link = end->link;

    end->link = NULL;
    end_forget_queue(end);
    end_forget_dirty(end);
    sim_enter(end->node);
    link_closed(link, reason);
    sim_leave();
    sim_settle(end->node);
}

void network_excuse_node(struct node *node)
{
    wire_each_of(node, wire_excuse);
}

/* Sends frames from routers to their sockets, as they are or as a test has altered them. */

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
        while (end->link != NULL && end->queued < node->sim->set.unsent) {
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

#define PIECE_MOST (64u * 1024u) /* with `chop`; otherwise a packet, or with `burst` as many as */
#define CHOP_PART 200u           /* with `chop`: at most what passes in this part of a second, */
#define PACED_PART 1024u /* TCP hands over at once when it is paced: a millisecond's worth, */
#define PACED_LEAST 2u   /* but no fewer than these */
#define RECEIVE_BUFFER (256u * 1024u) /* of the kernel, for a process that does not read */

static bool cannot_hear(const struct connection_end *end)
{
    return !end->node->sim->ending && (end_is_cut_off(end) || end->node->frozen);
}

void transmission_on_reset(struct sim *sim, void *object, uint64_t number)
{
    struct connection_end *end = object;

    if (cannot_hear(end)) {
        end->reset_held = true;
        return;
    }
    end->backlog = false;
    if (end->link != NULL && !end->vanished)
        end_lose_link(end, "connection reset");
}

static void receive(struct connection_end *to, struct piece *piece)
{
    struct sim *sim = to->node->sim;
    size_t done = 0;

    if (sim->damage > 0 && to->link != NULL) {
        uint64_t bit = chance_below(&sim->chance, piece->length * 8);
        piece->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        sim->damage--;
    }
    sim_enter(to->node);
    while (done < piece->length && to->link != NULL) {
        size_t room;
        uint8_t *at = link_room(to->link, &room);
        if (at == NULL) {
            sim_leave();
            end_lose_link(to, "no memory"); /* the same as daemon/torusd/net */
            return;
        }
        room = piece->length - done < room ? piece->length - done : room;
        memcpy(at, piece->bytes + done, room);
        done += room;
        link_received(to->link, room);
    }
    sim_leave();
}

/* `length` is 0 for bytes that arrived before and could not be received. */
static void on_arrived(struct sim *sim, void *object, uint64_t length)
{
    struct connection_end *to = object;
    struct piece *piece = to->first;

    to->untaken += length;
    if (!end_is_cut_off(to) && !to->vanished) {
        to->taken += to->untaken;
        to->untaken = 0;
    }
    if (cannot_hear(to)) {
        to->held++;
        return;
    }
    if (piece == NULL) /* dropped in the meantime */
        return;
    to->first = piece->next;
    if (to->first == NULL)
        to->last = NULL;
    to->coming -= piece->length;
    if (piece->length > 0)
        receive(to, piece);
    else if (to->link != NULL && !to->vanished)
        end_lose_link(to, "closed by the other side");
    free(piece);
    sim_settle(to->node);
    transmit(end_other(to)); /* if it waited for room */
}

static void send_piece(struct connection_end *from, struct piece *piece, uint64_t delay)
{
    struct connection_end *to = end_other(from);

    piece->next = NULL;
    if (to->last != NULL)
        to->last->next = piece;
    else
        to->first = piece;
    to->last = piece;
    to->coming += piece->length;
    from->sent += piece->length;
    sim_schedule(from->node->sim, delay, "arrived", on_arrived, to, piece->length);
}

void transmission_hear_again(struct connection_end *end)
{
    struct sim *sim = end->node->sim;

    if (cannot_hear(end))
        return;
    for (; end->held > 0; end->held--)
        sim_schedule(sim, 0, "arrived", on_arrived, end, 0);
    if (end->reset_held)
        sim_schedule(sim, 0, "reset", transmission_on_reset, end, 0);
    end->reset_held = false;
}

void transmission_take_bytes(struct connection_end *end, uint8_t *out, size_t length)
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

/* The time until a piece has left: its time on the wire; with `burst`, the time until the limiter's debt is small
 * enough, whatever the size of the piece. */
static uint64_t time_to_leave(struct connection_end *end, size_t length)
{
    const struct sim *sim = end->node->sim;
    uint64_t rate = end->connection->wire->rate[end_index(end)], now = sim->now;

    if (rate == 0)
        return 0;
    uint64_t begin = end->due > now ? end->due : now, ahead = sim->set.burst * SECONDS / rate;
    end->due = begin + length * SECONDS / rate;
    if (sim->set.burst == 0)
        return end->due - now;
    return begin > now + ahead ? begin - ahead - now : 0;
}

static uint64_t most_in_a_piece(uint64_t rate)
{
    const uint64_t most = rate / CHOP_PART;

    return rate == 0 || most > PIECE_MOST ? PIECE_MOST
           : most > PACED_LEAST * PACKET  ? most
                                          : PACED_LEAST * PACKET;
}

/* The number of bytes that leave in one piece. */
static size_t piece_length(struct connection_end *end)
{
    const struct sim *sim = end->node->sim;
    struct wire *w = end->connection->wire;
    size_t length = PACKET;

    if (sim->set.burst > 0) {
        uint64_t paced = w->rate[end_index(end)] / PACED_PART;
        length = paced > PIECE_MOST             ? PIECE_MOST
                 : paced > PACED_LEAST * PACKET ? paced
                                                : PACED_LEAST * PACKET;
    }
    if (sim->set.chop)
        length = 1 + chance_below(&w->chance, chance_below(&w->chance, 8) == 0
                                                  ? 16
                                                  : most_in_a_piece(w->rate[end_index(end)]));
    if (w->state == SIM_WIRE_NARROW && length > end_next_frame(end))
        length = end_next_frame(end);
    return length < end->queued ? length : end->queued;
}

/* Whether the system at the other end has room for more bytes; notes since when it has none. */
static bool has_room(struct connection_end *end)
{
    const struct connection_end *to = end_other(end);
    const uint64_t now = end->node->sim->now;

    if (to->node->frozen && to->coming >= RECEIVE_BUFFER) {
        if (end->no_room_since == 0 && end->queued > 0)
            end->no_room_since = now;
        return false;
    }
    end->no_room = end_without_room(end);
    end->no_room_since = 0;
    return true;
}

void transmit(struct connection_end *end)
{
    struct sim *sim = end->node->sim;
    struct connection *c = end->connection;
    struct connection_end *to = end_other(end);

    if (end->sending || end->vanished || to->vanished || end_is_cut_off(to) ||
        end_is_too_large(end) || !has_room(end))
        return;
    if (end->queued == 0) {
        end->emptied++;
        if (end->closing && end->link == NULL)
            send_piece(end, sim_alloc(sizeof(struct piece)), c->wire->latency);
        end->closing = false;
        return;
    }
    size_t length = piece_length(end);
    struct piece *piece = sim_alloc(sizeof *piece + length);
    piece->length = length;
    transmission_take_bytes(end, piece->bytes, length);
    uint64_t time = time_to_leave(end, length);
    end->sending = true;
    sim_schedule(sim, time, "sent", on_sent, end, 0);
    send_piece(end, piece, time + c->wire->latency);
}

static void on_sent(struct sim *sim, void *object, uint64_t number)
{
    struct connection_end *end = object;

    end->sending = false;
    if (end->link != NULL && !end->dirty) {
        end->dirty = true;
        end->next_dirty = end->node->dirty;
        end->node->dirty = end;
    }
    sim_settle(end->node);
    transmit(end);
}
