#include "daemon/router/topology.h"

#include <stdio.h>
#include <stdlib.h>

int topology_init(struct topology *p, const struct torus *torus, uint32_t self, uint64_t boot)
{
    p->torus = torus;
    p->self = self;
    p->entry = calloc(torus->nodes, sizeof *p->entry);
    if (p->entry == NULL)
        return -1;
    p->entry[self] = (struct topology_entry){.version = 1, .boot = boot};
    return 0;
}

void topology_free(struct topology *p)
{
    free(p->entry);
    p->entry = NULL;
}

void topology_set_self(struct topology *p, unsigned port, bool up)
{
    struct topology_entry *me = &p->entry[p->self];
    uint32_t bits = up ? me->up | 1u << port : me->up & ~(1u << port);

    if (bits != me->up) {
        me->up = bits;
        me->version++;
    }
}

enum topology_news topology_hear(struct topology *p, uint32_t rank, uint32_t version, uint32_t up,
                                 uint64_t boot)
{
    struct topology_entry *known = &p->entry[rank];

    if (rank == p->self) {
        if (version < known->version || (version == known->version && boot == known->boot))
            return TOPOLOGY_OLD;
        known->version = version + 1;
        return TOPOLOGY_OUTDATED_SELF;
    }
    /* The same version from another start: take it once, the node itself will settle it. */
    if (version < known->version || (version == known->version && boot == known->boot) ||
        (version == known->version && boot < known->boot))
        return TOPOLOGY_OLD;
    *known = (struct topology_entry){version, up, boot};
    return TOPOLOGY_NEW;
}

static bool says_up(const struct topology *p, uint32_t rank, unsigned port)
{
    return (p->entry[rank].up & 1u << port) != 0;
}

bool topology_link_up(const struct topology *p, uint32_t rank, unsigned port)
{
    uint32_t peer = torus_neighbour(p->torus, rank, port);

    return peer != TORUS_NO_NODE && says_up(p, rank, port) &&
           says_up(p, peer, torus_port_opposite(port));
}

bool topology_node_down(const struct topology *p, uint32_t rank)
{
    bool has_links = false;

    if (rank == p->self)
        return false;
    for (unsigned port = 0; port < torus_ports(p->torus); port++) {
        uint32_t peer = torus_neighbour(p->torus, rank, port);
        if (peer == TORUS_NO_NODE)
            continue;
        has_links = true;
        if (says_up(p, peer, torus_port_opposite(port)))
            return false;
    }
    return has_links;
}

bool topology_whole(const struct topology *p)
{
    for (uint32_t rank = 0; rank < p->torus->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(p->torus); port++)
            if (torus_neighbour(p->torus, rank, port) != TORUS_NO_NODE && !says_up(p, rank, port))
                return false;
    return true;
}

uint32_t topology_first_down(const struct topology *p)
{
    for (uint32_t rank = 0; rank < p->torus->nodes; rank++)
        if (topology_node_down(p, rank))
            return rank;
    return TORUS_NO_NODE;
}

bool topology_fault(const struct topology *p, unsigned index, char *text, size_t size)
{
    unsigned found = 0;

    for (uint32_t rank = 0; rank < p->torus->nodes; rank++) {
        if (topology_node_down(p, rank)) {
            if (found++ == index) {
                (void)snprintf(text, size, "node %u is down: none of its links is up", rank);
                return true;
            }
            continue;
        }
        for (unsigned dim = 0; dim < p->torus->dims; dim++) { /* each link at its + end */
            unsigned port = torus_port(dim, 1);
            uint32_t peer = torus_neighbour(p->torus, rank, port);
            if (peer == TORUS_NO_NODE || topology_link_up(p, rank, port) ||
                topology_node_down(p, peer))
                continue;
            if (found++ == index) {
                char name[TORUS_PORT_NAME_SIZE];
                (void)snprintf(text, size, "link %u:%s to node %u is down", rank,
                               torus_port_name(port, name), peer);
                return true;
            }
        }
    }
    return false;
}
