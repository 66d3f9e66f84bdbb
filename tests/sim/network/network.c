#include <stdlib.h>
#include <string.h>

#include "tests/sim/network/network.h"
#include "tests/sim/network/transmission.h"
#include "tests/sim/network/wire.h"

static void carriers_tell(struct node *node);

static void dialling_accept(struct connection_end *end);

void network_open(struct sim *sim)
{
    size_t wires = wire_count(sim);

    sim->wire = sim_alloc(wires * sizeof *sim->wire);
    for (size_t i = 0; i < wires; i++) {
        struct wire *w = &sim->wire[i];
        w->chance = chance_stream(sim->set.seed, SIM_STREAM_WIRES, i);
        for (unsigned end = 0; end < 2; end++)
            w->usual_rate[end] = w->rate[end] = sim->set.rate;
        w->usual_latency = sim->set.latency;
        if (sim->set.chop && sim->set.latency > 0)
            w->usual_latency = sim->set.latency / 2 + chance_below(&w->chance, sim->set.latency);
        w->latency = w->usual_latency;
    }
}

/* All nodes are dead. They have released their frames, or sim_kill() has reported it. */
void network_free(struct sim *sim)
{
    struct connection *c;

    while ((c = sim->connections) != NULL) {
        sim->connections = c->next;
        for (int i = 0; i < 2; i++) {
            end_forget_queue(&c->end[i]);
            end_drop_coming(&c->end[i]);
        }
        free(c);
    }
    free(sim->wire);
}

void network_node_dies(struct node *node, enum sim_death death)
{
    struct sim *sim = node->sim;

    network_excuse_node(node);
    if (death == SIM_STOP)
        return; /* its router tells its neighbours */
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++) {
            struct connection_end *end = &c->end[i];
            if (end->node != node || end->vanished)
                continue;
            end_forget_queue(end);
            end->closing = end->backlog = false;
            end->vanished = true;
            if (death == SIM_CRASH)
                sim_schedule(sim, c->wire->latency, "reset", transmission_on_reset, end_other(end),
                             0);
        }
}

void network_node_back(struct node *node)
{
    struct sim *sim = node->sim;

    network_excuse_node(node);
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++)
            if (c->end[i].node == node && c->end[i].vanished && end_other(&c->end[i])->link != NULL)
                sim_schedule(sim, c->wire->latency, "reset", transmission_on_reset,
                             end_other(&c->end[i]), 0);
}

void network_node_frozen(struct node *node, uint64_t time)
{
    struct sim *sim = node->sim;

    for (unsigned port = 0; port < torus_ports(&sim->torus); port++)
        if (torus_neighbour(&sim->torus, node->rank, port) != TORUS_NO_NODE)
            wire_slow_down(sim, wire_at(sim, node->rank, port), time, true);
}

void network_node_thawed(struct node *node)
{
    for (struct connection *c = node->sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++) {
            struct connection_end *end = &c->end[i];
            if (end->node != node || end->vanished)
                continue;
            if (end->backlog && node->alive)
                dialling_accept(end);
            transmission_hear_again(end);
        }
    if (node->alive)
        carriers_tell(node);
}

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

/* Tells a node which carriers have changed. */
static void carriers_tell(struct node *node)
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
    carriers_tell(node);
    sim_settle(node);
}

/* Lets the nodes at both ends of a wire check their carriers. */
static void carriers_look(struct sim *sim, struct wire *w)
{
    uint32_t rank, peer;
    unsigned port;

    wire_dialler(sim, w, &rank, &port);
    peer = torus_neighbour(&sim->torus, rank, port);
    sim_schedule(sim, 0, "carrier", on_carrier, &sim->node[rank], sim->node[rank].life);
    sim_schedule(sim, 0, "carrier", on_carrier, &sim->node[peer], sim->node[peer].life);
}

void network_node_started(struct node *node)
{
    carriers_tell(node);
}

#define DIAL_TIMEOUT (7 * SECONDS)

/* Tells the process at the listening end of the connection. */
static void dialling_accept(struct connection_end *end)
{
    struct connection *c = end->connection;
    uint32_t rank;
    unsigned port;

    wire_dialler(end->node->sim, c->wire, &rank, &port);
    port = torus_port_opposite(&end->node->sim->torus, port);
    end->backlog = false;
    sim_enter(end->node);
    end->link = router_connected(core_router(end->node->core), port, false, end, "dialler");
    sim_leave();
    if (end->link == NULL) {
        end_drop_coming(end);
        sim_schedule(end->node->sim, c->wire->latency, "reset", transmission_on_reset,
                     end_other(end), 0);
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
    if (!wire_lets_dials_pass(wire) || !peer->alive) {
        sim_enter(node);
        router_dial_failed(core_router(node->core), port,
                           wire_lets_dials_pass(wire) ? "connection refused" : "timed out");
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
        dialling_accept(&c->end[1]);
    sim_enter(node);
    c->end[0].link = router_connected(core_router(node->core), port, true, &c->end[0], "listener");
    sim_leave();
    if (c->end[0].link == NULL) {
        if (!c->excused)
            sim_fail(sim, "node %u does not want the connection that it dialled", node->rank);
        sim_schedule(sim, wire->latency, "reset", transmission_on_reset, &c->end[1], 0);
        sim_enter(node);
        router_dial_failed(core_router(node->core), port, "no room for another connection");
        sim_leave();
    }
    sim_settle(node);
    sim_settle(peer);
}

/* Implements router_io.dial(). */
static void dialling_begin(void *context, unsigned port)
{
    struct node *node = context;
    struct sim *sim = node->sim;
    const struct wire *wire = wire_at(sim, node->rank, port);
    const struct node *peer = &sim->node[torus_neighbour(&sim->torus, node->rank, port)];
    bool answered = wire_lets_dials_pass(wire) && (peer->alive || peer->death != SIM_POWER);

    sim_schedule(sim, answered ? 2 * wire->latency : DIAL_TIMEOUT, "dialled", dial_over, node,
                 (uint64_t)++node->dials[port] << 8 | port);
}

/* Faults of links. */

void sim_set_lying(struct sim *sim, uint32_t rank, bool lies)
{
    struct node *node = &sim->node[rank];

    sim->lied = true;
    network_excuse_node(node); /* also for a while after it has ended */
    for (unsigned port = 0; port < torus_ports(&sim->torus); port++)
        if (torus_neighbour(&sim->torus, rank, port) != TORUS_NO_NODE)
            wire_at(sim, rank, port)->liars += lies ? 1u : -1u;
}

bool sim_has_lied(const struct sim *sim)
{
    return sim->lied;
}

static void set_state(struct sim *sim, struct wire *w, enum sim_wire state)
{
    if ((w->state == SIM_WIRE_CUT) != (state == SIM_WIRE_CUT))
        carriers_look(sim, w);
    w->state = state;
    for (struct connection *c = sim->connections; c != NULL; c = c->next)
        for (int i = 0; i < 2; i++) {
            struct connection_end *end = &c->end[i];
            if (c->wire != w)
                continue;
            transmission_hear_again(end);
            if (!end->vanished)
                transmit(end);
        }
}

/* Which of the two ends of a link is at this port: the second one listens. */
static unsigned end_at(const struct sim *sim, uint32_t rank, unsigned port)
{
    return !torus_port_dials(&sim->torus, rank, port);
}

void sim_set_wire(struct sim *sim, uint32_t rank, unsigned port, enum sim_wire state)
{
    struct wire *w = wire_at(sim, rank, port);

    wire_excuse(sim, w);
    w->stalls++;
    w->deaf = end_at(sim, rank, port);
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

    wire_slow_down(sim, w, time, false);
    w->deaf = end_at(sim, rank, port);
    set_state(sim, w, how);
    sim_schedule(sim, time, "flows again", stall_over, w, ++w->stalls);
}

void sim_set_latency(struct sim *sim, uint32_t rank, unsigned port, uint64_t latency)
{
    struct wire *w = wire_at(sim, rank, port);

    wire_slow_down(sim, w, latency, false);
    w->latency = latency > 0 ? latency : w->usual_latency;
}

void network_heal(struct sim *sim)
{
    for (size_t i = 0; i < wire_count(sim); i++) {
        struct wire *w = &sim->wire[i];
        w->stalls++;
        memcpy(w->rate, w->usual_rate, sizeof w->rate);
        w->latency = w->usual_latency;
        if (w->state != SIM_WIRE_UP) {
            wire_excuse(sim, w);
            set_state(sim, w, SIM_WIRE_UP);
        }
    }
}

/* Resets this end. The other end is not told, and what it sends from now on is lost. */
void sim_half_open(struct sim *sim, uint32_t rank, unsigned port)
{
    struct wire *w = wire_at(sim, rank, port);
    unsigned mine = end_at(sim, rank, port);

    wire_excuse(sim, w);
    for (struct connection *c = sim->connections; c != NULL; c = c->next) {
        struct connection_end *end = &c->end[mine];
        if (c->wire != w || end->vanished || end->link == NULL || end->node->frozen)
            continue;
        end_lose_link(end, "connection timed out");
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
    for (size_t i = 0; i < wire_count(sim); i++)
        wire_excuse(sim, &sim->wire[i]);
    sim->damage = count;
    sim->flipped = sim->flipped || count > 0;
}

void sim_set_rate(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate)
{
    struct wire *w = wire_at(sim, rank, port);

    w->rate[0] = w->rate[1] = rate;
    sim->rated = sim->slowed = true;
}

void sim_set_rate_from(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate)
{
    wire_at(sim, rank, port)->rate[end_at(sim, rank, port)] = rate;
    sim->rated = sim->slowed = true;
}

void sim_set_usual_rate(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate)
{
    wire_at(sim, rank, port)->usual_rate[end_at(sim, rank, port)] = rate;
    sim_set_rate_from(sim, rank, port, rate);
}

uint64_t sim_usual_rate(struct sim *sim, uint32_t rank, unsigned port)
{
    return wire_at(sim, rank, port)->usual_rate[end_at(sim, rank, port)];
}

/* Implements daemon/torusd/router/io.h. */

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
/* As the kernel counts it: bytes wait for the wire while the socket buffer has some, and the other system has room. */
static void measure_rate(struct connection_end *end)
{
    const uint64_t now = end->node->sim->now, no_room = end_without_room(end);

    if (end->waits.queued && end->waits.emptied == end->emptied && end->waits.no_room == no_room)
        end->waits.waited += now - end->waits.at;
    end->waits.at = now;
    end->waits.emptied = end->emptied;
    end->waits.no_room = no_room;
    end->waits.queued = end->queued > 0;
    busy_rate_look(&end->rate, now,
                   &(struct busy_look){.acked = end->acked,
                                       .waited = end->waits.waited / 1000,
                                       .queued = end->queued > 0});
}

static void io_stat(void *context, void *connection, struct connection_stat *stat)
{
    struct connection_end *end = connection, *to = end_other(end);
    /* In the simulator it does not leave; a real system would send it again and again. */
    const struct wire *wire = end->connection->wire;
    bool lost = end->queued > 0 && (end_is_cut_off(to) || to->vanished || end_is_too_large(end));

    if (!end_is_cut_off(end))
        end->acked = to->taken;
    measure_rate(end);
    *stat = (struct connection_stat){.rtt_us = 1,
                                     .min_rtt_us = (uint32_t)(wire->usual_latency / 1000),
                                     .tells_room = true,
                                     .no_room_us = end_without_room(end) / 1000,
                                     .rate_bps = end->rate.bps,
                                     .measured = end->rate.measured,
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
