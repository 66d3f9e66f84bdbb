#include "tests/sim/network/wire.h"

#include <stdlib.h>

#define NARROW_MOST 600u           /* SIM_WIRE_NARROW: handshakes and heartbeats pass */
#define EXCUSE_TIME (20 * SECONDS) /* after a fault: its consequences may close links so long */
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
