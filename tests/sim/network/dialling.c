#include "tests/sim/network/dialling.h"

#include "tests/sim/network/transmission.h"

#define DIAL_TIMEOUT (7 * SECONDS)

void dialling_accept(struct connection_end *end)
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

void dialling_begin(void *context, unsigned port)
{
    struct node *node = context;
    struct sim *sim = node->sim;
    const struct wire *wire = wire_at(sim, node->rank, port);
    const struct node *peer = &sim->node[torus_neighbour(&sim->torus, node->rank, port)];
    bool answered = wire_lets_dials_pass(wire) && (peer->alive || peer->death != SIM_POWER);

    sim_schedule(sim, answered ? 2 * wire->latency : DIAL_TIMEOUT, "dialled", dial_over, node,
                 (uint64_t)++node->dials[port] << 8 | port);
}
