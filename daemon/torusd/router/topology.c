#include "daemon/torusd/router/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int topology_init(struct topology *p, const struct torus *torus, uint32_t self, uint64_t boot)
{
    *p = (struct topology){.torus = torus, .self = self};
    p->entry = calloc(torus->nodes, sizeof *p->entry);
    p->via = calloc(torus->nodes, sizeof *p->via);
    if (p->entry == NULL || p->via == NULL)
        goto fail;
    for (uint32_t rank = 0; rank < torus->nodes; rank++)
        p->entry[rank].hops = torus->nodes;
    p->entry[self] =
        (struct topology_entry){.version = 1, .boot = boot, .forwards = TOPOLOGY_FORWARDS_NOT};
    for (unsigned port = 0; port < torus_ports(torus); port++) {
        if (torus_neighbour(torus, self, port) == TORUS_NO_NODE)
            continue;
        p->claimed[port] = calloc(torus->nodes, sizeof *p->claimed[port]);
        if (p->claimed[port] == NULL)
            goto fail;
        for (uint32_t rank = 0; rank < torus->nodes; rank++)
            p->claimed[port][rank].hops = torus->nodes;
    }
    return 0;
fail:
    topology_free(p);
    return -1;
}

void topology_free(struct topology *p)
{
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
        free(p->claimed[port]);
        free(p->claimed_rates[port]);
    }
    free(p->rates);
    free(p->via);
    free(p->entry);
    *p = (struct topology){0};
}

void topology_set_minor(struct topology *p, uint32_t minor)
{
    p->entry[p->self].minor = minor;
}

uint32_t topology_least_minor(const struct topology *p)
{
    uint32_t least = p->entry[p->self].minor;

    for (uint32_t rank = 0; rank < p->torus->nodes; rank++)
        if (p->entry[rank].hops < p->torus->nodes && p->entry[rank].minor < least)
            least = p->entry[rank].minor;
    return least;
}

bool topology_set_routes(struct topology *p, uint64_t confirmed, enum topology_forwards forwards,
                         uint32_t quiet)
{
    struct topology_entry *me = &p->entry[p->self];

    if (me->confirmed == confirmed && me->forwards == forwards && me->quiet == quiet)
        return false;
    if (me->version < UINT32_MAX)
        me->version++;
    me->confirmed = confirmed;
    me->forwards = forwards;
    me->quiet = quiet;
    return true;
}

/* --- rates --- */

size_t topology_rates_count(const struct topology *p)
{
    return (size_t)2 * torus_ports(p->torus);
}

static bool are_same_rates(const struct topology *p, const uint32_t *a, const uint32_t *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return memcmp(a, b, topology_rates_count(p) * sizeof *a) == 0;
}

/* Copies the rates of the entry of `rank` to *store, which is made when the first rates are stated: most clusters have
 * none, and then they take no memory. Without memory the rates are not known. */
static void store_rates(const struct topology *p, uint32_t **store, uint32_t rank,
                        struct topology_entry *entry)
{
    const size_t count = topology_rates_count(p);

    if (entry->rates == NULL)
        return;
    if (*store == NULL)
        *store = calloc(p->torus->nodes * count, sizeof **store);
    if (*store != NULL)
        memcpy(*store + rank * count, entry->rates, count * sizeof **store);
    entry->rates = *store != NULL ? *store + rank * count : NULL;
}

bool topology_set_rates(struct topology *p, const uint32_t *rates)
{
    struct topology_entry *me = &p->entry[p->self];

    if (are_same_rates(p, me->rates, rates))
        return false;
    me->rates = rates;
    store_rates(p, &p->rates, p->self, me);
    if (me->version < UINT32_MAX)
        me->version++;
    p->rate_changes++;
    return true;
}

/* Returns what a node states of one of its ports; 0: nothing. */
static uint32_t stated_rate(const struct topology *p, uint32_t rank, unsigned port, bool receives)
{
    const uint32_t *rates = p->entry[rank].rates;

    return rates != NULL ? rates[2 * port + receives] : 0;
}

uint32_t topology_channel_rate(const struct topology *p, uint32_t rank, unsigned port)
{
    const uint32_t peer = torus_neighbour(p->torus, rank, port);

    if (peer == TORUS_NO_NODE)
        return 0;
    const uint32_t sends = stated_rate(p, rank, port, false);
    const uint32_t takes = stated_rate(p, peer, torus_port_opposite(p->torus, port), true);
    return takes == 0 || (sends > 0 && sends < takes) ? sends : takes;
}

void topology_set_self(struct topology *p, unsigned port, bool up)
{
    struct topology_entry *me = &p->entry[p->self];
    uint32_t bits = up ? me->up | 1u << port : me->up & ~(1u << port);

    if (bits != me->up && me->version < UINT32_MAX)
        me->version++;
    p->changes += bits != me->up;
    me->up = bits;
}

/* Whether claim `a` about a node is more credible than claim `b`. If two machines have one rank, their claims may have
 * equal versions: then the boot number decides and not the hops, so that all nodes believe the same machine, and the
 * other one hears of it. */
static bool is_more_credible(const struct topology_entry *a, const struct topology_entry *b)
{
    if (a->version != b->version)
        return a->version > b->version;
    return a->boot != b->boot ? a->boot > b->boot : a->hops < b->hops;
}

static enum topology_news choose_claim(struct topology *p, uint32_t rank)
{
    struct topology_entry *now = &p->entry[rank], before = *now;
    const struct topology_entry *best = NULL;
    unsigned believed = p->via[rank];

    for (unsigned port = 0; port < torus_ports(p->torus); port++) {
        const struct topology_entry *claim = p->claimed[port];
        if (claim == NULL || claim[rank].hops >= p->torus->nodes - 1)
            continue; /* no path has one hop more */
        if (best == NULL || is_more_credible(&claim[rank], best) ||
            (port == believed && !is_more_credible(best, &claim[rank]))) {
            best = &claim[rank];
            p->via[rank] = (uint8_t)port;
        }
    }
    bool same_rates = true;
    if (best != NULL) {
        same_rates = are_same_rates(p, before.rates, best->rates);
        *now = *best;
        store_rates(p, &p->rates, rank, now);
    }
    now->hops = best != NULL ? best->hops + 1 : p->torus->nodes;
    p->changes += now->up != before.up;
    p->rate_changes += !same_rates;
    if (now->up != before.up || now->boot != before.boot || now->minor != before.minor)
        return TOPOLOGY_NEW;
    return now->hops != before.hops || now->version != before.version ||
                   now->confirmed != before.confirmed || now->forwards != before.forwards ||
                   now->quiet != before.quiet || !same_rates
               ? TOPOLOGY_REPEAT
               : TOPOLOGY_SAME;
}

/* Overrules a claim about this node itself, unless the neighbour keeps it as the last one about a node that it cannot
 * reach, and does not believe it. */
static enum topology_news overrule_claim(const struct topology *p,
                                         const struct topology_entry *claim)
{
    struct topology_entry *me = &p->entry[p->self];

    if (claim->hops >= p->torus->nodes || claim->version < me->version ||
        me->version == UINT32_MAX ||
        (claim->version == me->version && claim->up == me->up && claim->boot == me->boot &&
         claim->minor == me->minor))
        return TOPOLOGY_SAME;
    me->version = claim->version < UINT32_MAX ? claim->version + 1 : UINT32_MAX;
    return TOPOLOGY_REPEAT;
}

enum topology_news topology_take_claim(struct topology *p, unsigned port, uint32_t rank,
                                       const struct topology_entry *claim)
{
    if (rank == p->self)
        return overrule_claim(p, claim);
    p->claimed[port][rank] = *claim;
    store_rates(p, &p->claimed_rates[port], rank, &p->claimed[port][rank]);
    return choose_claim(p, rank);
}

enum topology_news topology_drop_claim(struct topology *p, unsigned port, uint32_t rank)
{
    const struct topology_entry nothing = {.hops = p->torus->nodes};

    return topology_take_claim(p, port, rank, &nothing);
}

static bool states_up(const struct topology *p, uint32_t rank, unsigned port)
{
    return (p->entry[rank].up & 1u << port) != 0;
}

bool topology_link_up(const struct topology *p, uint32_t rank, unsigned port)
{
    uint32_t peer = torus_neighbour(p->torus, rank, port);

    return peer != TORUS_NO_NODE && states_up(p, rank, port) &&
           states_up(p, peer, torus_port_opposite(p->torus, port));
}

bool topology_link_quiet(const struct topology *p, uint32_t rank, unsigned port)
{
    uint32_t peer = torus_neighbour(p->torus, rank, port);

    return peer != TORUS_NO_NODE &&
           ((p->entry[rank].quiet & 1u << port) != 0 ||
            (p->entry[peer].quiet & 1u << torus_port_opposite(p->torus, port)) != 0);
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
        if (states_up(p, peer, torus_port_opposite(p->torus, port)))
            return false;
    }
    return has_links;
}

bool topology_whole(const struct topology *p)
{
    for (uint32_t rank = 0; rank < p->torus->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(p->torus); port++)
            if (torus_neighbour(p->torus, rank, port) != TORUS_NO_NODE && !states_up(p, rank, port))
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

/* Whether all links of the node are known to be down. */
static bool knows_all_down(const struct topology *p, const uint32_t *known, uint32_t rank)
{
    for (unsigned port = 0; port < torus_ports(p->torus); port++)
        if (torus_neighbour(p->torus, rank, port) != TORUS_NO_NODE &&
            (known == NULL || (known[rank] & 1u << port) == 0))
            return false;
    return true;
}

static bool find_fault(const struct topology *p, const uint32_t *known, unsigned index,
                       struct error *e)
{
    unsigned found = 0;

    for (uint32_t rank = 0; rank < p->torus->nodes; rank++) {
        if (topology_node_down(p, rank)) {
            if (!knows_all_down(p, known, rank) && found++ == index) {
                (void)error_set(e, ERROR_LINK, "node %u is down: none of its links is up", rank);
                (void)error_blame_node(e, rank);
                return true;
            }
            continue;
        }
        for (unsigned port = 0; port < torus_ports(p->torus); port++) {
            uint32_t peer = torus_neighbour(p->torus, rank, port);
            /* Each link is visited at the end that dials. */
            if (!torus_port_dials(p->torus, rank, port) || topology_link_up(p, rank, port) ||
                topology_node_down(p, peer) || (known != NULL && (known[rank] & 1u << port) != 0))
                continue;
            if (found++ == index) {
                char name[TORUS_PORT_NAME_SIZE];
                (void)error_set(e, ERROR_LINK, "link %u:%s to node %u is down", rank,
                                torus_port_name(p->torus, rank, port, name), peer);
                (void)error_blame_link(e, rank, port);
                return true;
            }
        }
    }
    return false;
}

bool topology_fault(const struct topology *p, unsigned index, struct error *e)
{
    return find_fault(p, NULL, index, e);
}

bool topology_new_fault(const struct topology *p, const uint32_t *known, struct error *e)
{
    return find_fault(p, known, 0, e);
}
