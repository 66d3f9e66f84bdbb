#include "tests/sim/network/network.h"

#include <stdlib.h>

#include "tests/sim/network/carriers.h"
#include "tests/sim/network/dialling.h"
#include "tests/sim/network/transmission.h"

void network_open(struct sim *sim)
{
    size_t wires = wire_count(sim);

    sim->wire = sim_alloc(wires * sizeof *sim->wire);
    for (size_t i = 0; i < wires; i++) {
        struct wire *w = &sim->wire[i];
        w->chance = chance_stream(sim->set.seed, SIM_STREAM_WIRES, i);
        w->rate[0] = w->rate[1] = sim->set.rate;
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
