/* Faults of links. */
#include "tests/sim/network/network.h"

#include "tests/sim/network/carriers.h"
#include "tests/sim/network/transmission.h"

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
        w->rate[0] = w->rate[1] = sim->set.rate;
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
}

void sim_set_rate_from(struct sim *sim, uint32_t rank, unsigned port, uint64_t rate)
{
    wire_at(sim, rank, port)->rate[end_at(sim, rank, port)] = rate;
}
