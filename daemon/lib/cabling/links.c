#include "daemon/lib/cabling/links.h"

#include <stdlib.h>

/* The interface that should have a port, or CABLING_NONE. */
static uint32_t hinted(const struct wiring *w, uint32_t host, uint32_t rank, unsigned port)
{
    const struct cabling_host *h = &w->input->host[host];

    if (w->input->wanted == NULL || h->rank != rank)
        return CABLING_NONE;
    for (uint32_t i = 0; i < h->interfaces; i++)
        if (h->interface[i].port == (int)port)
            return i;
    return CABLING_NONE;
}

static void list_links(struct links *l, const struct torus *t, const uint32_t *host_at)
{
    uint32_t hosts = l->wiring->input->hosts;

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        l->missing_hosts += host_at[rank] >= hosts;
        for (unsigned port = 0; port < torus_ports(t); port++) {
            if (!torus_port_dials(t, rank, port))
                continue;
            struct wanted_link *k = &l->link[l->links++];
            k->rank[0] = rank;
            k->rank[1] = torus_neighbour(t, rank, port);
            k->port[0] = port;
            k->port[1] = torus_port_opposite(t, port);
            k->cable = CABLING_NONE;
            for (unsigned i = 0; i < 2; i++) {
                uint32_t host = host_at[k->rank[i]];
                k->end[i].host = host < hosts ? host : CABLING_NONE;
                k->end[i].interface =
                    host < hosts ? hinted(l->wiring, host, k->rank[i], k->port[i]) : CABLING_NONE;
            }
        }
    }
}

/* Finds a cable for a link among those of its first host. */
static void match(struct links *l, struct wanted_link *k, bool *used)
{
    const struct wiring *w = l->wiring;
    uint32_t host = k->end[0].host;

    if (k->cable != CABLING_NONE || host == CABLING_NONE || k->end[1].host == CABLING_NONE)
        return;
    for (uint32_t n = w->first[host]; n < w->first[host + 1]; n++) {
        uint32_t cable = w->cable_at[n];
        if (cable == CABLING_NONE || used[cable])
            continue;
        const struct cabling_end *end = w->cable[cable].end;
        for (unsigned turn = 0; turn < 2; turn++)
            if (links_end_fits(k->end[0], end[turn]) && links_end_fits(k->end[1], end[1 - turn])) {
                k->cable = cable;
                k->end[0] = end[turn];
                k->end[1] = end[1 - turn];
                used[cable] = true;
                return;
            }
    }
}

static unsigned known_ends(const struct wanted_link *k)
{
    unsigned first = k->end[0].interface != CABLING_NONE;

    return first + (k->end[1].interface != CABLING_NONE);
}

int links_make(struct links *l, const struct wiring *w, const struct torus *t,
               const uint32_t *host_at, struct error *e)
{
    size_t most = (size_t)t->nodes * torus_ports(t) + 1;
    bool *used = calloc((size_t)w->cables + 1, sizeof *used);

    *l = (struct links){.wiring = w};
    l->link = calloc(most, sizeof *l->link);
    l->missing = calloc(most, sizeof *l->missing);
    l->extra = calloc((size_t)w->cables + 1, sizeof *l->extra);
    if (used == NULL || l->link == NULL || l->missing == NULL || l->extra == NULL) {
        free(used);
        links_free(l);
        return error_set(e, ERROR_MEMORY, "no memory for %zu links", most);
    }
    list_links(l, t, host_at);
    for (unsigned known = 3; known-- > 0;) /* first the links whose interfaces are given */
        for (uint32_t i = 0; i < l->links; i++)
            if (known_ends(&l->link[i]) == known)
                match(l, &l->link[i], used);
    for (uint32_t i = 0; i < l->links; i++)
        if (l->link[i].cable == CABLING_NONE && l->link[i].end[0].host != CABLING_NONE &&
            l->link[i].end[1].host != CABLING_NONE)
            l->missing[l->missings++] = i;
    for (uint32_t i = 0; i < w->cables; i++)
        if (!used[i])
            l->extra[l->extras++] = i;
    free(used);
    return 0;
}

void links_free(struct links *l)
{
    free(l->link);
    free(l->missing);
    free(l->extra);
}
