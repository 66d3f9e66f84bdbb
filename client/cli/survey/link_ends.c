#include "client/cli/survey/link_ends.h"

#define BYTES_OF_MBIT 125000.0
/* Slower rates are those of heartbeats, and say nothing about the links: a torus at rest is not full. */
#define FASTEST_FROM (10 * BYTES_OF_MBIT)

double link_ends_elapsed(const struct all_nodes *now, const struct all_nodes *before, uint32_t rank)
{
    if (before->state == NULL || !all_nodes_answered(now, rank) ||
        !all_nodes_answered(before, rank))
        return 0;
    const struct torus_status *s = now->state->nodes[rank]->status,
                              *old = before->state->nodes[rank]->status;
    if (s->pid != old->pid || s->uptime_ms <= old->uptime_ms)
        return 0;
    return (double)(s->uptime_ms - old->uptime_ms) / 1000;
}

static double rate_of(uint64_t now, uint64_t before, double elapsed)
{
    return now >= before ? (double)(now - before) / elapsed : -1;
}

static void set_rates(struct link_end *e, const struct torus_link *old, double elapsed)
{
    const struct torus_link *l = e->link;

    if (old == NULL || elapsed <= 0 || l->state != TORUS_LINK_UP || old->state != TORUS_LINK_UP ||
        l->connects != old->connects)
        return;
    e->sent = rate_of(l->tx_bytes, old->tx_bytes, elapsed);
    e->received = rate_of(l->rx_bytes, old->rx_bytes, elapsed);
    e->resent = rate_of(l->retransmits, old->retransmits, elapsed);
}

void link_ends_fill(struct link_end *ends, const struct all_nodes *now, uint32_t rank,
                    const struct link_end *before, double elapsed)
{
    const struct torus_links *links = now->state->nodes[rank]->links;
    const unsigned ports = torus_ports(&now->torus);

    for (unsigned port = 0; port < ports; port++)
        ends[port] = (struct link_end){.sent = -1, .received = -1, .resent = -1};
    for (size_t i = 0; links != NULL && i < links->count; i++) {
        const struct torus_link *l = links->link[i];
        if (l->port >= ports || torus_neighbour(&now->torus, rank, l->port) == TORUS_NO_NODE)
            continue; /* the node says what cannot be */
        ends[l->port].link = l;
        if (before != NULL)
            set_rates(&ends[l->port], before[l->port].link, elapsed);
    }
}

void link_capacity_update(struct link_capacity *c, const struct all_nodes *now,
                          const struct link_end *ends)
{
    const unsigned ports = torus_ports(&now->torus);
    double mbit = 0;

    for (uint32_t rank = 0; rank < now->torus.nodes; rank++) {
        const struct torus_status *s = now->state->nodes[rank]->status;
        if (s != NULL && s->link_mbit > mbit)
            mbit = s->link_mbit;
        for (unsigned port = 0; port < ports; port++) {
            const struct link_end *e = &ends[(size_t)rank * ports + port];
            const double rate = e->sent > e->received ? e->sent : e->received;
            c->fastest = rate > c->fastest ? rate : c->fastest;
        }
    }
    c->nominal = mbit > 0;
    c->value = c->nominal ? mbit * BYTES_OF_MBIT : c->fastest >= FASTEST_FROM ? c->fastest : 0;
}
