#include "tests/sim/network/carriers.h"

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

void carriers_tell(struct node *node)
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

void carriers_look(struct sim *sim, struct wire *w)
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
