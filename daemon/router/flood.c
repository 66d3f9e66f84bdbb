/* Link states: every node's entry reaches every other over all links; what is news is passed on to
 * all ports but the one that it came from. Entries gather for a moment, so that a torus that comes
 * up at once is not flooded with one frame for each change. */
#include "daemon/router/internal.h"

#include <stdlib.h>
#include <string.h>

#define GATHER (3 * MILLISECONDS)
#define ENTRIES_A_FRAME 256u

static void mark(struct router *r, int except, uint32_t rank)
{
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        struct port *port = &r->port[i];
        if ((int)i == except || port->link == NULL)
            continue;
        port->dirty[rank / 8] |= (uint8_t)(1u << rank % 8);
        port->any_dirty = true;
        if (r->flood_at == ROUTER_NEVER)
            r->flood_at = router_now(r) + GATHER;
    }
}

void flood_self_changed(struct router *r)
{
    mark(r, -1, r->rank);
    r->handler.topology(r->handler.context);
}

void flood_everything(struct router *r, unsigned port)
{
    for (uint32_t rank = 0; rank < r->torus->nodes; rank++)
        if (r->topology.entry[rank].version != 0)
            r->port[port].dirty[rank / 8] |= (uint8_t)(1u << rank % 8);
    r->port[port].any_dirty = true;
    if (r->flood_at == ROUTER_NEVER)
        r->flood_at = router_now(r) + GATHER;
}

static void send_entries(struct router *r, unsigned port, Peer__LinkState__Entry *entry, size_t n)
{
    Peer__LinkState__Entry *pointer[ENTRIES_A_FRAME];
    Peer__LinkState state = PEER__LINK_STATE__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        pointer[i] = &entry[i];
    state.n_entry = n;
    state.entry = pointer;
    head.kind_case = PEER__HEAD__KIND_LINK_STATE;
    head.link_state = &state;
    router_send(r, port, &head);
}

void flood_flush(struct router *r)
{
    Peer__LinkState__Entry entry[ENTRIES_A_FRAME];

    r->flood_at = ROUTER_NEVER;
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        struct port *port = &r->port[i];
        size_t n = 0;
        if (!port->any_dirty)
            continue;
        for (uint32_t rank = 0; rank < r->torus->nodes; rank++) {
            const struct topology_entry *known = &r->topology.entry[rank];
            if ((port->dirty[rank / 8] & 1u << rank % 8) == 0)
                continue;
            peer__link_state__entry__init(&entry[n]);
            entry[n].rank = rank;
            entry[n].version = known->version;
            entry[n].up = known->up;
            entry[n].boot = known->boot;
            if (++n == ENTRIES_A_FRAME) {
                send_entries(r, i, entry, n);
                n = 0;
            }
        }
        send_entries(r, i, entry, n);
        memset(port->dirty, 0, (r->torus->nodes + 7) / 8);
        port->any_dirty = false;
    }
}

int flood_heard(struct router *r, unsigned port, const Peer__LinkState *state, struct error *e)
{
    bool changed = false;

    for (size_t i = 0; i < state->n_entry; i++) {
        const Peer__LinkState__Entry *entry = state->entry[i];
        if (entry->rank >= r->torus->nodes || entry->version == UINT32_MAX)
            return error_set(e, ERROR_PROTOCOL, "link state of node %u, which cannot be",
                             entry->rank);
        switch (topology_hear(&r->topology, entry->rank, entry->version, entry->up, entry->boot)) {
        case TOPOLOGY_OLD:
            break;
        case TOPOLOGY_NEW:
            mark(r, (int)port, entry->rank);
            changed = true;
            break;
        case TOPOLOGY_OUTDATED_SELF:
            mark(r, -1, r->rank);
            break;
        }
    }
    if (changed)
        r->handler.topology(r->handler.context);
    return 0;
}
