#include "daemon/lib/cabling/network.h"

#include <stdlib.h>

/* Segments while they are found: each interface leads to another one of its segment, the last one to itself. */
static uint32_t segment_of(uint32_t *parent, uint32_t number)
{
    while (parent[number] != number) {
        parent[number] = parent[parent[number]];
        number = parent[number];
    }
    return number;
}

static bool hears(const struct wiring *w, uint32_t here, uint32_t there)
{
    const struct cabling_interface *i = wiring_interface(w, here);

    for (uint32_t k = 0; k < i->heard_count; k++)
        if (wiring_number(w, i->heard[k]) == there)
            return true;
    return false;
}

static void join_segments(const struct wiring *w, uint32_t *parent)
{
    for (uint32_t n = 0; n < w->interfaces; n++)
        parent[n] = n;
    for (uint32_t n = 0; n < w->interfaces; n++) {
        const struct cabling_interface *i = wiring_interface(w, n);
        for (uint32_t k = 0; k < i->heard_count && !i->excluded; k++) {
            uint32_t there = wiring_number(w, i->heard[k]);
            if (!wiring_interface(w, there)->excluded)
                parent[segment_of(parent, there)] = segment_of(parent, n);
        }
    }
}

static void add_cable(struct wiring *w, uint32_t a, uint32_t b)
{
    bool a_hears = hears(w, a, b), b_hears = hears(w, b, a);
    struct cabling_cable *c = &w->cable[w->cables];
    bool turn = a_hears && !b_hears; /* the first end of a one-way cable is the one that is heard */

    c->end[0] = w->end[turn ? b : a];
    c->end[1] = w->end[turn ? a : b];
    c->state = a_hears && b_hears ? CABLING_CABLE_KEPT : CABLING_CABLE_ONE_WAY;
    w->cable_at[a] = w->cable_at[b] = w->cables++;
}

/* The interfaces of a segment, which lead from the first to the next ones. */
struct segment {
    uint32_t members, first; /* CABLING_NONE: none yet */
    uint32_t host[2];
    bool more_hosts; /* than two */
};

static void add_member(const struct wiring *w, struct segment *s, uint32_t number)
{
    const uint32_t host = w->end[number].host;

    if (s->members++ == 0)
        *s = (struct segment){1, number, {host, CABLING_NONE}, false};
    else if (s->host[1] == CABLING_NONE && host != s->host[0])
        s->host[1] = host;
    else if (host != s->host[0] && host != s->host[1])
        s->more_hosts = true;
}

/* How well a cable between two interfaces of a segment represents all of them: better if it works both ways, and if the
 * cluster file names it. 0: neither hears the other. */
static unsigned rate(const struct wiring *w, uint32_t a, uint32_t b)
{
    const unsigned heard = hears(w, a, b) + 2u * hears(w, b, a);
    const unsigned named =
        (wiring_interface(w, a)->port >= 0) + (unsigned)(wiring_interface(w, b)->port >= 0);

    return heard == 0 ? 0 : (heard == 3 ? 4 : 1) + named;
}

/* Two hosts hear each other over several interfaces, which are functions of one port at either end: takes one cable. */
static void find_one_cable(struct wiring *w, uint32_t *parent, const struct segment *s)
{
    const uint32_t segment = segment_of(parent, s->first);
    const uint32_t *first = w->first;
    uint32_t from = CABLING_NONE, to = CABLING_NONE;
    unsigned best = 0;

    for (uint32_t a = first[s->host[0]]; a < first[s->host[0] + 1]; a++)
        for (uint32_t b = first[s->host[1]]; b < first[s->host[1] + 1]; b++) {
            if (segment_of(parent, a) != segment || segment_of(parent, b) != segment ||
                rate(w, a, b) <= best)
                continue;
            best = rate(w, a, b);
            from = a;
            to = b;
        }
    for (unsigned i = 0; i < 2; i++)
        for (uint32_t n = first[s->host[i]]; n < first[s->host[i] + 1]; n++) {
            if (segment_of(parent, n) != segment || n == from || n == to)
                continue;
            w->shared[n] = best == 0;
            w->instead[n] = best == 0 ? CABLING_NONE : i == 0 ? from : to;
        }
    if (best > 0)
        add_cable(w, from, to);
}

static void find_cables(struct wiring *w, uint32_t *parent, struct segment *segment)
{
    for (uint32_t n = 0; n < w->interfaces; n++) {
        w->instead[n] = CABLING_NONE;
        add_member(w, &segment[segment_of(parent, n)], n);
    }
    for (uint32_t n = 0; n < w->interfaces; n++) {
        const struct segment *s = &segment[segment_of(parent, n)];
        const bool is_port = s->members > 2 && !s->more_hosts && s->host[1] != CABLING_NONE;
        w->shared[n] |= s->members > 2 && !is_port;
        if (is_port && n == s->first)
            find_one_cable(w, parent, s);
        else if (s->members == 2 && n != s->first)
            add_cable(w, s->first, n);
    }
}

static void number_interfaces(struct wiring *w)
{
    uint32_t number = 0;

    for (uint32_t h = 0; h < w->input->hosts; h++) {
        w->first[h] = number;
        for (uint32_t i = 0; i < w->input->host[h].interfaces; i++) {
            w->cable_at[number] = CABLING_NONE;
            w->end[number++] = (struct cabling_end){h, i};
        }
    }
    w->first[w->input->hosts] = number;
}

int wiring_make(struct wiring *w, const struct cabling_input *input, struct error *e)
{
    struct segment *segment;
    uint32_t *parent;
    size_t room;
    int result = 0;

    *w = (struct wiring){.input = input};
    for (uint32_t h = 0; h < input->hosts; h++)
        w->interfaces += input->host[h].interfaces;
    room = (size_t)w->interfaces + 1;
    w->first = calloc((size_t)input->hosts + 1, sizeof *w->first);
    w->end = calloc(room, sizeof *w->end);
    w->cable_at = calloc(room, sizeof *w->cable_at);
    w->shared = calloc(room, sizeof *w->shared);
    w->instead = calloc(room, sizeof *w->instead);
    w->cable = calloc(room, sizeof *w->cable);
    parent = calloc(room, sizeof *parent);
    segment = calloc(room, sizeof *segment);
    if (w->first == NULL || w->end == NULL || w->cable_at == NULL || w->shared == NULL ||
        w->instead == NULL || w->cable == NULL || parent == NULL || segment == NULL) {
        wiring_free(w);
        result = error_set(e, ERROR_MEMORY, "no memory for %zu interfaces", room);
    } else {
        number_interfaces(w);
        join_segments(w, parent);
        find_cables(w, parent, segment);
    }
    free(parent);
    free(segment);
    return result;
}

void wiring_free(struct wiring *w)
{
    free(w->first);
    free(w->end);
    free(w->cable_at);
    free(w->shared);
    free(w->instead);
    free(w->cable);
}

static int start(struct network *n, uint32_t nodes, struct error *e)
{
    *n = (struct network){.nodes = nodes};
    n->first = calloc((size_t)nodes + 1, sizeof *n->first);
    n->degree = calloc((size_t)nodes + 1, sizeof *n->degree);
    n->count = calloc((size_t)nodes * nodes + 1, sizeof *n->count);
    if (n->first != NULL && n->degree != NULL && n->count != NULL)
        return 0;
    network_free(n);
    return error_set(e, ERROR_MEMORY, "no memory for a network of %u nodes", nodes);
}

static void add(struct network *n, uint32_t a, uint32_t b)
{
    if (a == b || network_links(n, a, b) == UINT8_MAX)
        return;
    n->count[(size_t)a * n->nodes + b]++;
    n->count[(size_t)b * n->nodes + a]++;
    n->degree[a]++;
    n->degree[b]++;
    n->links++;
}

static int finish(struct network *n, struct error *e)
{
    uint32_t used = 0;

    n->neighbour = calloc(2 * (size_t)n->links + 1, sizeof *n->neighbour);
    if (n->neighbour == NULL) {
        network_free(n);
        return error_set(e, ERROR_MEMORY, "no memory for a network of %u nodes", n->nodes);
    }
    for (uint32_t a = 0; a < n->nodes; a++) {
        n->first[a] = used;
        for (uint32_t b = 0; b < n->nodes && n->degree[a] > 0; b++)
            if (network_links(n, a, b) > 0)
                n->neighbour[used++] = b;
    }
    n->first[n->nodes] = used;
    return 0;
}

int network_of_torus(struct network *n, const struct torus *t, uint32_t nodes, struct error *e)
{
    if (start(n, nodes > t->nodes ? nodes : t->nodes, e) != 0)
        return -1;
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_port_dials(t, rank, port))
                add(n, rank, torus_neighbour(t, rank, port));
    return finish(n, e);
}

int network_of_cables(struct network *n, const struct wiring *w, uint32_t nodes, struct error *e)
{
    if (start(n, nodes > w->input->hosts ? nodes : w->input->hosts, e) != 0)
        return -1;
    for (uint32_t i = 0; i < w->cables; i++)
        add(n, w->cable[i].end[0].host, w->cable[i].end[1].host);
    return finish(n, e);
}

void network_free(struct network *n)
{
    free(n->first);
    free(n->neighbour);
    free(n->degree);
    free(n->count);
}

static uint32_t reach(const struct network *n, uint32_t from, uint32_t *queue, bool *seen)
{
    uint32_t reached = 0;

    queue[reached++] = from;
    seen[from] = true;
    for (uint32_t i = 0; i < reached; i++)
        for (uint32_t k = n->first[queue[i]]; k < n->first[queue[i] + 1]; k++)
            if (!seen[n->neighbour[k]]) {
                seen[n->neighbour[k]] = true;
                queue[reached++] = n->neighbour[k];
            }
    return reached;
}

bool network_connected(const struct network *n)
{
    uint32_t queue[CABLING_HOSTS_MOST + 1], linked = 0, from = 0;
    bool seen[CABLING_HOSTS_MOST + 1] = {false};

    for (uint32_t a = n->nodes; a-- > 0;)
        if (n->degree[a] > 0) {
            linked++;
            from = a;
        }
    return linked == 0 || reach(n, from, queue, seen) == linked;
}
