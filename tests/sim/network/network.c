/* Links. A connection has two ends; each end takes frames from its router as long as its socket
 * buffer has room, and puts pieces of them on the wire, one after the other at the wire's rate.
 * Pieces arrive in the order in which they were sent, whatever happens to the latency meanwhile.
 *
 * A wire that is cut has no carrier, which the routers at its ends are told as daemon/net does: the
 * state that there is when they look, and no change that is over by then.
 *
 * A connection that no fault has touched must not be closed by either of its routers: the wires
 * remember for how long a close is the consequence of a fault (excuse()). */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

#define SOCKET_BUFFER (128u * 1024u)
#define PIECE_MOST (64u * 1024u) /* with `chop`; otherwise a packet, or with `burst` as many as */
#define PACED_PART 1024u /* TCP hands over at once when it is paced: a millisecond's worth, */
#define PACED_LEAST 2u   /* but no fewer than these */
#define PACKET 1500u
#define NARROW_MOST 600u /* SIM_WIRE_NARROW: handshakes and heartbeats pass */
#define DIAL_TIMEOUT (7 * SECONDS)
#define RECEIVE_BUFFER (256u * 1024u) /* of the kernel, for a process that does not read */
#define EXCUSE_TIME (20 * SECONDS)    /* after a fault its consequences may still close links */
/* What a link must bear without being closed, less the time between two heartbeats and some for what
 * waits before them: that nothing passes, and that a process is stopped whose system answers. */
#define STALL_BORNE (ROUTER_SILENCE - ROUTER_HEARTBEAT - 100 * MILLISECONDS)
#define STOP_BORNE (ROUTER_STALL - ROUTER_HEARTBEAT - 500 * MILLISECONDS)

struct wire {
    enum sim_wire state;
    unsigned deaf; /* SIM_WIRE_DEAF: the end that hears nothing */
    uint64_t usual_latency, latency, rate;
    struct chance chance;
    uint64_t excused_until;
    unsigned liars; /* at its ends */
    uint64_t slow_until;
    uint64_t stalled,
        slowness;    /* for how long nothing has passed lately, added up; and with stops */
    uint32_t stalls; /* counts them */
};

struct connection_end {
    struct connection *connection;
    struct node *node;
    struct link *link; /* NULL: closed at this end */
    bool backlog;      /* the kernel has accepted it; the process is stopped and does not know */
    bool dirty;
    struct connection_end *next_dirty;
    struct outgoing_queue queue; /* the socket buffer */
    size_t queued;               /* bytes in it that have not left, */
    size_t first_done;           /* and bytes of its first frame that have */
    uint8_t *farewell;           /* what is queued, once the link is closed here */
    size_t farewell_done;
    uint64_t due;               /* when the wire, at its rate, has carried all that has left */
    struct piece *first, *last; /* on their way to this end, in order, */
    size_t coming;              /* the bytes of them, */
    unsigned held;              /* and how many have come but cannot be heard now */
    uint64_t sent;              /* bytes that have left here, */
    uint64_t taken, untaken;    /* that have come, and that were to come; to the system here */
    uint64_t acked;             /* of those sent, as far as this end knows */
    bool reset_held;
    bool sending;
    bool closing;  /* after what is queued */
    bool vanished; /* with its machine: says nothing, hears nothing */
};

struct connection {
    struct connection *next;
    struct wire *wire;
    bool excused; /* a fault has touched it: it may be closed */
    struct connection_end end[2];
};

struct piece {
    struct piece *next;
    size_t length; /* 0: nothing follows, the sender has closed it */
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

static unsigned index_of(const struct connection_end *end)
{
    return end == &end->connection->end[1];
}

/* --- faults and their consequences --- */

static void excuse(struct sim *sim, struct wire *w)
{
    sim_harmed(sim);
    w->excused_until = sim->now + EXCUSE_TIME;
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        c->excused |= c->wire == w;
}

/* Something holds up this wire for so long: nothing passes, or a process does not run. */
static void slow_down(struct sim *sim, struct wire *w, uint64_t time, bool passes)
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
        excuse(sim, w);
}

static void each_wire_of(struct node *node, void (*call)(struct sim *sim, struct wire *w))
{
    for (unsigned port = 0; port < torus_ports(&node->sim->torus); port++)
        if (torus_neighbour(&node->sim->torus, node->rank, port) != TORUS_NO_NODE)
            call(node->sim, wire_at(node->sim, node->rank, port));
}

void sim_set_lying(struct sim *sim, uint32_t rank, bool lies)
{
    struct node *node = &sim->node[rank];

    sim->lied = true;
    network_excuse_node(node); /* for a while after it has ended, too */
    for (unsigned port = 0; port < torus_ports(&sim->torus); port++)
        if (torus_neighbour(&sim->torus, rank, port) != TORUS_NO_NODE)
            wire_at(sim, rank, port)->liars += lies ? 1u : -1u;
}

bool sim_has_lied(const struct sim *sim)
{
    return sim->lied;
}

void network_excuse_node(struct node *node)
{
    each_wire_of(node, excuse);
}

/* A router closes a connection, with or without a reason for the other side. */
static void check_close(const struct connection_end *end, const struct outgoing *last)
{
    const struct node *node = end->node;
    const struct node *peer = other((struct connection_end *)end)->node;
    Peer__Head *head;

    if (end->connection->excused || node->leaving || !peer->alive || peer->leaving ||
        other((struct connection_end *)end)->link == NULL)
        return;
    head = last == NULL ? NULL
                        : peer__head__unpack(NULL, last->head_length - FRAME_PREFIX_SIZE,
                                             last->head + FRAME_PREFIX_SIZE);
    if (head != NULL && head->kind_case == PEER__HEAD__KIND_REFUSAL &&
        strstr(head->refusal->reason, "because it flaps") != NULL) { /* a fault of long ago */
        peer__head__free_unpacked(head, NULL);
        return;
    }
    sim_violated(node->sim, "honest links stay",
                 "node %u closes its link to node %u, which no fault has touched: %s", node->rank,
                 peer->rank,
                 head != NULL && head->kind_case == PEER__HEAD__KIND_REFUSAL ? head->refusal->reason
                                                                             : "no reason given");
}

/* --- on the wire --- */

/* Nothing comes through to this end. */
static bool is_cut_off(const struct connection_end *end)
{
    const struct wire *w = end->connection->wire;

    return w->state == SIM_WIRE_SILENT || w->state == SIM_WIRE_CUT ||
           (w->state == SIM_WIRE_DEAF && w->deaf == index_of(end));
}

/* What has not left of the frame that is to leave next. */
static size_t next_frame(const struct connection_end *end)
{
    const struct outgoing *frame = end->queue.first;

    return frame == NULL ? end->queued
                         : (size_t)frame->head_length + frame->body_length - end->first_done;
}

/* It is dropped on the way, and would be again. */
static bool is_too_large(const struct connection_end *end)
{
    return end->connection->wire->state == SIM_WIRE_NARROW && next_frame(end) > NARROW_MOST;
}

/* The wire can be dialled over. */
static bool lets_dials_pass(const struct wire *w)
{
    return w->state == SIM_WIRE_UP || w->state == SIM_WIRE_NARROW;
}

static bool cannot_hear(const struct connection_end *end)
{
    return !end->node->sim->ending && (is_cut_off(end) || end->node->frozen);
}

static void drop_coming(struct connection_end *end)
{
    struct piece *piece;

    while ((piece = end->first) != NULL) {
        end->first = piece->next;
        free(piece);
    }
    end->last = NULL;
    end->coming = 0;
}

static void lose_link(struct connection_end *end, const char *reason)
{
    struct link *link = end->link;

    end->link = NULL;
    forget_queue(end);
    forget_dirty(end);
    sim_enter(end->node);
    link_closed(link, reason);
    sim_leave();
    sim_settle(end->node);
}

static void on_reset(struct sim *sim, void *object, uint64_t number)
{
    struct connection_end *end = object;

    (void)sim, (void)number;
    if (cannot_hear(end)) {
        end->reset_held = true;
        return;
    }
    end->backlog = false;
    if (end->link != NULL && !end->vanished)
        lose_link(end, "connection reset");
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
            lose_link(to, "no memory"); /* as daemon/net does */
            return;
        }
        room = piece->length - done < room ? piece->length - done : room;
        memcpy(at, piece->bytes + done, room);
        done += room;
        link_received(to->link, room);
    }
    sim_leave();
}

static void transmit(struct connection_end *end);

/* `length` is 0 if it has come before, and could not be heard. */
static void on_arrived(struct sim *sim, void *object, uint64_t length)
{
    struct connection_end *to = object;
    struct piece *piece = to->first;

    (void)sim;
    to->untaken += length;
    if (!is_cut_off(to) && !to->vanished) {
        to->taken += to->untaken;
        to->untaken = 0;
    }
    if (cannot_hear(to)) {
        to->held++;
        return;
    }
    if (piece == NULL) /* dropped meanwhile */
        return;
    to->first = piece->next;
    if (to->first == NULL)
        to->last = NULL;
    to->coming -= piece->length;
    if (piece->length > 0)
        receive(to, piece);
    else if (to->link != NULL && !to->vanished)
        lose_link(to, "closed by the other side");
    free(piece);
    sim_settle(to->node);
    transmit(other(to)); /* if it waited for room */
}

static void send_piece(struct connection_end *from, struct piece *piece, uint64_t delay)
{
    struct connection_end *to = other(from);

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

/* What could not be heard at this end is heard now. */
static void hear_again(struct connection_end *end)
{
    struct sim *sim = end->node->sim;

    if (cannot_hear(end))
        return;
    for (; end->held > 0; end->held--)
        sim_schedule(sim, 0, "arrived", on_arrived, end, 0);
    if (end->reset_held)
        sim_schedule(sim, 0, "reset", on_reset, end, 0);
    end->reset_held = false;
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

/* Bytes that leave in one piece. */
static size_t piece_length(struct connection_end *end)
{
    const struct sim *sim = end->node->sim;
    struct wire *w = end->connection->wire;
    size_t length = PACKET;

    if (sim->set.burst > 0) {
        uint64_t paced = w->rate / PACED_PART;
        length = paced > PIECE_MOST             ? PIECE_MOST
                 : paced > PACED_LEAST * PACKET ? paced
                                                : PACED_LEAST * PACKET;
    }
    if (sim->set.chop)
        length = 1 + chance_below(&w->chance, chance_below(&w->chance, 8) == 0 ? 16 : PIECE_MOST);
    if (w->state == SIM_WIRE_NARROW && length > next_frame(end))
        length = next_frame(end);
    return length < end->queued ? length : end->queued;
}

static void transmit(struct connection_end *end)
{
    struct sim *sim = end->node->sim;
    struct connection *c = end->connection;
    struct connection_end *to = other(end);

    if (end->sending || end->vanished || to->vanished || is_cut_off(to) || is_too_large(end) ||
        (to->node->frozen && to->coming >= RECEIVE_BUFFER))
        return;
    if (end->queued == 0) {
        if (end->closing && end->link == NULL)
            send_piece(end, sim_alloc(sizeof(struct piece)), c->wire->latency);
        end->closing = false;
        return;
    }
    size_t length = piece_length(end);
    struct piece *piece = sim_alloc(sizeof *piece + length);
    piece->length = length;
    take_bytes(end, piece->bytes, length);
    uint64_t time = time_to_leave(end, length);
    end->sending = true;
    sim_schedule(sim, time, "sent", on_sent, end, 0);
    send_piece(end, piece, time + c->wire->latency);
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
    size_t wire = (size_t)(c->wire - sim->wire);

    return torus_port((unsigned)(wire % sim->torus.dims), index_of(end) == 0 ? 1 : -1);
}

/* All of it as if it were a head, which nobody reads here any more. */
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

/* What the setup makes of a frame leaves instead of it. */
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

/* --- carriers --- */

static void tell_carrier(struct node *node, unsigned port, bool gone)
{
    struct port_info info;

    node->no_carrier = (node->no_carrier & ~(1u << port)) | (uint32_t)gone << port;
    sim_enter(node);
    router_carrier(core_router(node->core), port, gone ? "no carrier" : NULL);
    sim_leave();
    router_port_info(core_router(node->core), port, &info);
    if (gone && (info.state == PORT_UP || info.state == PORT_HELLO))
        sim_violated(node->sim, "carrier", "node %u keeps a connection without a carrier",
                     node->rank);
}

static void tell_carriers(struct node *node)
{
    const struct sim *sim = node->sim;

    for (unsigned port = 0; port < torus_ports(&sim->torus); port++) {
        if (torus_neighbour(&sim->torus, node->rank, port) == TORUS_NO_NODE)
            continue;
        bool gone = wire_at((struct sim *)(uintptr_t)sim, node->rank, port)->state == SIM_WIRE_CUT;
        if (gone != ((node->no_carrier & 1u << port) != 0))
            tell_carrier(node, port, gone);
    }
}

/* It looks. */
static void on_carrier(struct sim *sim, void *object, uint64_t life)
{
    struct node *node = object;

    if (!node->alive || node->life != life || node->frozen || sim->ending)
        return;
    tell_carriers(node);
    sim_settle(node);
}

static void look_at_carrier(struct sim *sim, struct wire *w)
{
    size_t index = (size_t)(w - sim->wire);
    unsigned port = 2 * (unsigned)(index % sim->torus.dims);
    uint32_t rank = (uint32_t)(index / sim->torus.dims),
             peer = torus_neighbour(&sim->torus, rank, port);

    sim_schedule(sim, 0, "carrier", on_carrier, &sim->node[rank], sim->node[rank].life);
    sim_schedule(sim, 0, "carrier", on_carrier, &sim->node[peer], sim->node[peer].life);
}

void network_node_started(struct node *node)
{
    tell_carriers(node);
}

/* --- connecting --- */

/* The process at the listening end hears of the connection. */
static void accept_connection(struct connection_end *end)
{
    struct connection *c = end->connection;
    unsigned port =
        2 * (unsigned)((size_t)(c->wire - end->node->sim->wire) % end->node->sim->torus.dims) + 1;

    end->backlog = false;
    sim_enter(end->node);
    end->link = router_connected(core_router(end->node->core), port, false, end, "dialler");
    sim_leave();
    if (end->link == NULL) {
        drop_coming(end);
        sim_schedule(end->node->sim, c->wire->latency, "reset", on_reset, other(end), 0);
    }
}

static void dial_over(struct sim *sim, void *object, uint64_t number)
{
    struct node *node = object;
    unsigned port = (unsigned)(number & 0xff);
    struct wire *wire = wire_at(sim, node->rank, port);
    struct node *peer = &sim->node[torus_neighbour(&sim->torus, node->rank, port)];

    if (!node->alive || node->dials[port] != number >> 8)
        return;
    if (node->frozen) {
        sim_schedule(sim, node->frozen_until - sim->now, "dialled", dial_over, node, number);
        return;
    }
    if (!lets_dials_pass(wire) || !peer->alive) {
        sim_enter(node);
        router_dial_failed(core_router(node->core), port,
                           lets_dials_pass(wire) ? "connection refused" : "timed out");
        sim_leave();
        sim_settle(node);
        return;
    }
    struct connection *c = sim_alloc(sizeof *c);
    c->wire = wire;
    c->excused =
        sim->now < wire->excused_until || wire->liars > 0 || wire->state == SIM_WIRE_NARROW;
    c->next = sim->connections;
    sim->connections = c;
    c->end[0] = (struct connection_end){.connection = c, .node = node};
    c->end[1] = (struct connection_end){.connection = c, .node = peer, .backlog = true};
    if (!peer->frozen)
        accept_connection(&c->end[1]);
    sim_enter(node);
    c->end[0].link = router_connected(core_router(node->core), port, true, &c->end[0], "listener");
    sim_leave();
    if (c->end[0].link == NULL) {
        if (!c->excused)
            sim_fail(sim, "node %u does not want the connection that it dialled", node->rank);
        sim_schedule(sim, wire->latency, "reset", on_reset, &c->end[1], 0);
        sim_enter(node);
        router_dial_failed(core_router(node->core), port, "no room for another connection");
        sim_leave();
    }
    sim_settle(node);
    sim_settle(peer);
}

static void io_dial(void *context, unsigned port)
{
    struct node *node = context;
    struct sim *sim = node->sim;
    const struct wire *wire = wire_at(sim, node->rank, port);
    const struct node *peer = &sim->node[torus_neighbour(&sim->torus, node->rank, port)];
    bool answered = lets_dials_pass(wire) && (peer->alive || peer->death != SIM_POWER);

    sim_schedule(sim, answered ? 2 * wire->latency : DIAL_TIMEOUT, "dialled", dial_over, node,
                 (uint64_t)++node->dials[port] << 8 | port);
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
    forget_dirty(end);
    drop_coming(end);
    if (last == NULL || end->vanished) {
        forget_queue(end);
        if (last != NULL)
            outgoing_free(router_outgoing(core_router(((struct node *)context)->core)), last);
    } else { /* the kernel has it all; nothing of ours is held any longer */
        outgoing_push(&end->queue, last);
        end->queued += last->head_length;
        size_t length = end->queued;
        uint8_t *farewell = sim_alloc(length);
        take_bytes(end, farewell, length);
        end->farewell = farewell;
        end->queued = length;
    }
    end->closing = true;
    transmit(end);
}

/* What has come is acknowledged at once, if anything comes through to this end. */
static void io_stat(void *context, void *connection, struct connection_stat *stat)
{
    struct connection_end *end = connection, *to = other(end);
    /* Here it does not leave; a system would have sent it, again and again. */
    bool lost = end->queued > 0 && (is_cut_off(to) || to->vanished || is_too_large(end));

    (void)context;
    if (!is_cut_off(end))
        end->acked = to->taken;
    *stat = (struct connection_stat){.rtt_us = 1,
                                     .acked = end->acked,
                                     .in_flight = lost || end->sent > end->acked,
                                     .unacked = end->sent - end->acked + (lost ? end->queued : 0),
                                     .segment = PACKET,
                                     .mtu = PACKET};
}

void network_io(struct node *node, struct router_io *io)
{
    *io = (struct router_io){.context = node,
                             .now = io_now,
                             .random = io_random,
                             .dial = io_dial,
                             .wake = io_wake,
                             .close = io_close,
                             .stat = io_stat};
}

/* --- what the tests do to it --- */

void network_node_dies(struct node *node, enum sim_death death)
{
    struct sim *sim = node->sim;

    network_excuse_node(node);
    if (death == SIM_STOP)
        return; /* its router says good-bye */
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++) {
            struct connection_end *end = &c->end[i];
            if (end->node != node || end->vanished)
                continue;
            forget_queue(end);
            end->closing = end->backlog = false;
            end->vanished = true;
            if (death == SIM_CRASH)
                sim_schedule(sim, c->wire->latency, "reset", on_reset, other(end), 0);
        }
}

void network_node_back(struct node *node)
{
    struct sim *sim = node->sim;

    network_excuse_node(node);
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++)
            if (c->end[i].node == node && c->end[i].vanished && other(&c->end[i])->link != NULL)
                sim_schedule(sim, c->wire->latency, "reset", on_reset, other(&c->end[i]), 0);
}

void network_node_frozen(struct node *node, uint64_t time)
{
    struct sim *sim = node->sim;

    for (unsigned port = 0; port < torus_ports(&sim->torus); port++)
        if (torus_neighbour(&sim->torus, node->rank, port) != TORUS_NO_NODE)
            slow_down(sim, wire_at(sim, node->rank, port), time, true);
}

void network_node_thawed(struct node *node)
{
    for (struct connection *c = node->sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++) {
            struct connection_end *end = &c->end[i];
            if (end->node != node || end->vanished)
                continue;
            if (end->backlog && node->alive)
                accept_connection(end);
            hear_again(end);
        }
    if (node->alive)
        tell_carriers(node);
}

static void set_state(struct sim *sim, struct wire *w, enum sim_wire state)
{
    if ((w->state == SIM_WIRE_CUT) != (state == SIM_WIRE_CUT))
        look_at_carrier(sim, w);
    w->state = state;
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++) {
            struct connection_end *end = &c->end[i];
            if (c->wire != w)
                continue;
            hear_again(end);
            if (!end->vanished)
                transmit(end);
        }
}

/* Which of the two ends of a link is at this port: the second one listens. */
static unsigned end_at(unsigned port)
{
    return torus_port_direction(port) < 0;
}

void sim_set_wire(struct sim *sim, uint32_t rank, unsigned port, enum sim_wire state)
{
    struct wire *w = wire_at(sim, rank, port);

    excuse(sim, w);
    w->stalls++;
    w->deaf = end_at(port);
    set_state(sim, w, state);
}

static void stall_over(struct sim *sim, void *object, uint64_t number)
{
    struct wire *w = object;

    if (w->stalls == number && !sim->ending)
        set_state(sim, w, SIM_WIRE_UP);
}

void sim_stall(struct sim *sim, uint32_t rank, unsigned port, enum sim_wire how, uint64_t time)
{
    struct wire *w = wire_at(sim, rank, port);

    slow_down(sim, w, time, false);
    w->deaf = end_at(port);
    set_state(sim, w, how);
    sim_schedule(sim, time, "flows again", stall_over, w, ++w->stalls);
}

void sim_set_latency(struct sim *sim, uint32_t rank, unsigned port, uint64_t latency)
{
    struct wire *w = wire_at(sim, rank, port);

    slow_down(sim, w, latency, false);
    w->latency = latency > 0 ? latency : w->usual_latency;
}

void network_heal(struct sim *sim)
{
    for (size_t i = 0; i < (size_t)sim->torus.nodes * sim->torus.dims; i++) {
        struct wire *w = &sim->wire[i];
        w->stalls++;
        w->rate = sim->set.rate;
        w->latency = w->usual_latency;
        if (w->state != SIM_WIRE_UP) {
            excuse(sim, w);
            set_state(sim, w, SIM_WIRE_UP);
        }
    }
}

/* The end here is reset; whatever the other end sends from now on is lost, and it is not told. */
void sim_half_open(struct sim *sim, uint32_t rank, unsigned port)
{
    struct wire *w = wire_at(sim, rank, port);
    unsigned mine = end_at(port);

    excuse(sim, w);
    for (struct connection *c = sim->connections; c != NULL; c = c->next) {
        struct connection_end *end = &c->end[mine];
        if (c->wire != w || end->vanished || end->link == NULL || end->node->frozen)
            continue;
        lose_link(end, "connection timed out");
        end->vanished = true;
        return;
    }
}

void sim_alter(struct sim *sim)
{
    sim->flipped = true;
}

void sim_damage(struct sim *sim, unsigned count)
{
    for (size_t i = 0; i < (size_t)sim->torus.nodes * sim->torus.dims; i++)
        excuse(sim, &sim->wire[i]);
    sim->damage = count;
    sim->flipped = sim->flipped || count > 0;
}

void network_open(struct sim *sim)
{
    size_t wires = (size_t)sim->torus.nodes * sim->torus.dims;

    sim->wire = sim_alloc(wires * sizeof *sim->wire);
    for (size_t i = 0; i < wires; i++) {
        struct wire *w = &sim->wire[i];
        w->chance = chance_stream(sim->set.seed, SIM_STREAM_WIRES, i);
        w->rate = sim->set.rate;
        w->usual_latency = sim->set.latency;
        if (sim->set.chop && sim->set.latency > 0)
            w->usual_latency = sim->set.latency / 2 + chance_below(&w->chance, sim->set.latency);
        w->latency = w->usual_latency;
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

    while ((c = sim->connections) != NULL) {
        sim->connections = c->next;
        for (int i = 0; i < 2; i++) {
            forget_queue(&c->end[i]);
            drop_coming(&c->end[i]);
        }
        free(c);
    }
    free(sim->wire);
}
