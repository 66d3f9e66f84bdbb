#include "daemon/lib/schedule/detour/overlay.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/grow.h"
#include "daemon/lib/schedule/detour/internal.h"
#include "proto/text.h"

#define NO_MEMBER UINT32_MAX

/* What overlay_find() knows while it looks for paths. */
struct search {
    struct overlay *o;
    const struct damage *d;
    uint32_t members;
    uint32_t *member;    /* by node; NO_MEMBER: it is none */
    uint32_t *neighbour; /* by channel of the torus; TORUS_NO_NODE: no link, or down */
    uint32_t *used;      /* by channel of the torus: how many paths its link is on */
    uint32_t *set;       /* by member: the least member that it can reach */
    uint32_t *degree;    /* by member: its links */
    uint8_t *joined;     /* by pair of members: whether they have a link */
    uint8_t *trace;      /* of the path that was found last */
    struct paths paths;
    size_t link_room, port_room;
    uint32_t ports; /* of all paths */
};

static int no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for a network of members");
}

static void search_free(struct search *s)
{
    free(s->member);
    free(s->neighbour);
    free(s->used);
    free(s->set);
    free(s->degree);
    free(s->joined);
    free(s->trace);
    paths_free(&s->paths);
}

static int search_init(struct search *s, const bool *is_member, struct error *e)
{
    const uint32_t nodes = s->d->torus.nodes;

    if (paths_init(&s->paths, s->d, e) != 0)
        return -1;
    s->member = calloc(nodes, sizeof *s->member);
    s->o->node = calloc(nodes, sizeof *s->o->node);
    s->neighbour = calloc(s->paths.channels + 1, sizeof *s->neighbour);
    s->used = calloc(s->paths.channels + 1, sizeof *s->used);
    s->trace = calloc(nodes, sizeof *s->trace);
    if (s->member == NULL || s->o->node == NULL || s->neighbour == NULL || s->used == NULL ||
        s->trace == NULL)
        return no_memory(e);
    for (uint32_t node = 0; node < nodes; node++) {
        s->member[node] = is_member[node] ? s->members : NO_MEMBER;
        if (is_member[node])
            s->o->node[s->members++] = node;
    }
    if (s->members > GRAPH_NODES_MOST)
        return error_set(e, ERROR_REFUSED,
                         "a group of %u of %u nodes is too large: at most %u are possible",
                         s->members, nodes, GRAPH_NODES_MOST);
    memcpy(s->neighbour, s->paths.neighbour, s->paths.channels * sizeof *s->neighbour);
    s->set = calloc(s->members, sizeof *s->set);
    s->degree = calloc(s->members, sizeof *s->degree);
    s->joined = calloc(s->members, s->members);
    if (s->set == NULL || s->degree == NULL || s->joined == NULL)
        return no_memory(e);
    for (uint32_t m = 0; m < s->members; m++)
        s->set[m] = m;
    return 0;
}

/* Allows paths to leave only this member and nodes that are no members, over links that are on no path, or with `shared`
 * over all links, at a higher cost the more paths they are on. */
static void prepare(struct search *s, uint32_t source, bool shared)
{
    for (size_t i = 0; i < s->paths.channels; i++) {
        const uint32_t node = (uint32_t)(i / s->paths.ports);
        const bool open =
            (s->member[node] == NO_MEMBER || node == source) && (shared || s->used[i] == 0);
        s->paths.neighbour[i] = open ? s->neighbour[i] : TORUS_NO_NODE;
        s->paths.cost[i] = 1 + (uint64_t)s->used[i] * s->paths.nodes;
    }
}

/* Whether a path between these members is wanted. */
static bool is_wanted(const struct search *s, uint32_t a, uint32_t b, bool shared)
{
    return b != NO_MEMBER && a != b && s->degree[a] < OVERLAY_LINKS_MOST &&
           s->degree[b] < OVERLAY_LINKS_MOST &&
           (shared ? s->set[a] != s->set[b] : s->joined[a * s->members + b] == 0);
}

static void unite(struct search *s, uint32_t a, uint32_t b)
{
    const uint32_t low = s->set[a] < s->set[b] ? s->set[a] : s->set[b];
    const uint32_t high = s->set[a] < s->set[b] ? s->set[b] : s->set[a];

    for (uint32_t m = 0; m < s->members; m++)
        if (s->set[m] == high)
            s->set[m] = low;
}

/* Adds a path of `hops` ports, s->trace, from member a to member b, as seen from the smaller one. */
static int add_path(struct search *s, uint32_t a, uint32_t b, uint32_t hops, struct error *e)
{
    const struct torus *t = &s->d->torus;
    struct overlay *o = s->o;
    uint32_t node = o->node[a];

    if (GROW(o->link, o->links, s->link_room) != 0)
        return no_memory(e);
    o->link[o->links++] = (struct overlay_link){
        .member = {a < b ? a : b, a < b ? b : a}, .first = s->ports, .hops = hops};
    for (uint32_t i = 0; i < hops; i++) {
        const unsigned port = s->trace[i], back = torus_port_opposite(t, port);
        const uint32_t there = torus_neighbour(t, node, port);
        if (GROW(o->port, s->ports, s->port_room) != 0)
            return no_memory(e);
        o->port[s->ports++] = (uint8_t)(a < b ? port : back);
        s->used[paths_channel(&s->paths, node, port)]++;
        s->used[paths_channel(&s->paths, there, back)]++;
        node = there;
    }
    for (uint32_t i = 0; a > b && i < hops / 2; i++) { /* the path was found from its other end */
        uint8_t *first = &o->port[s->ports - hops + i], *last = &o->port[s->ports - 1 - i];
        const uint8_t swapped = *first;
        *first = *last;
        *last = swapped;
    }
    s->joined[a * s->members + b] = s->joined[b * s->members + a] = 1;
    s->degree[a]++;
    s->degree[b]++;
    unite(s, a, b);
    return 0;
}

/* Adds the cheapest path that is wanted from member a. Returns 1; 0: there is none; or -1 with *e. */
static int add_cheapest(struct search *s, uint32_t a, bool shared, struct error *e)
{
    prepare(s, s->o->node[a], shared);
    paths_find(&s->paths, s->o->node[a], 0);
    for (uint32_t i = 0; i < s->paths.reached; i++) {
        const uint32_t node = s->paths.order[i], b = s->member[node];
        if (!is_wanted(s, a, b, shared))
            continue;
        return add_path(s, a, b, paths_trace(&s->paths, node, s->trace), e) == 0 ? 1 : -1;
    }
    return 0;
}

/* Adds paths from each member in turn, until no more are wanted. */
static int add_paths(struct search *s, bool shared, struct error *e)
{
    bool more = true;

    while (more) {
        more = false;
        for (uint32_t a = 0; a < s->members; a++) {
            const int added = add_cheapest(s, a, shared, e);
            if (added < 0)
                return -1;
            more = more || added > 0;
        }
    }
    return 0;
}

static int check_connected(const struct search *s, struct error *e)
{
    for (uint32_t m = 1; m < s->members; m++)
        if (s->set[m] != 0)
            return error_set(e, ERROR_LINK, "nodes %u and %u cannot reach each other",
                             s->o->node[0], s->o->node[m]);
    return 0;
}

/* --- the network --- */

static unsigned port_towards(const struct torus *t, uint32_t from, uint32_t to)
{
    unsigned port = 0;

    while (torus_neighbour(t, from, port) != to)
        port++;
    return port;
}

/* Makes the network of the paths that were found. */
static int make_network(struct overlay *o, uint32_t members, struct error *e)
{
    const struct graph *graph = NULL;
    uint32_t *edge;

    o->torus = (struct torus){.nodes = 1};
    if (members > 1) {
        edge = calloc(o->links, 2 * sizeof *edge);
        if (edge == NULL)
            return no_memory(e);
        for (uint32_t i = 0; i < o->links; i++)
            memcpy(&edge[2 * i], o->link[i].member, sizeof o->link[i].member);
        graph = graph_new(edge, o->links, e);
        free(edge);
        if (graph == NULL)
            return -1;
    }
    if (torus_append(&o->torus, 1, true, graph) != 0) {
        graph_drop(graph);
        return error_set(e, ERROR_REFUSED, "the members need more than %u links", TORUS_MAX_PORTS);
    }
    for (uint32_t i = 0; i < o->links; i++)
        for (unsigned end = 0; end < 2; end++)
            o->link[i].port[end] =
                port_towards(&o->torus, o->link[i].member[end], o->link[i].member[1 - end]);
    return damage_init(&o->damage, &o->torus, e);
}

/* The rate of a path from one of its ends: that of the slowest channel, divided among the paths on its link. */
static uint32_t path_rate(const struct search *s, const struct overlay_link *link, unsigned end)
{
    const struct torus *t = &s->d->torus;
    uint32_t least = UINT32_MAX, node = s->o->node[link->member[0]];

    for (uint32_t i = 0; i < link->hops; i++) {
        const unsigned port = s->o->port[link->first + i], back = torus_port_opposite(t, port);
        const uint32_t there = torus_neighbour(t, node, port);
        const uint32_t rate =
            end == 0 ? damage_rate(s->d, node, port) : damage_rate(s->d, there, back);
        const uint32_t part =
            rate * DAMAGE_FULL_RATE / s->used[paths_channel(&s->paths, node, port)];
        least = part < least ? part : least;
        node = there;
    }
    return least > 0 ? least : 1;
}

static int set_rates(struct search *s, struct error *e)
{
    struct overlay *o = s->o;
    const uint32_t channels = overlay_channels(o);
    uint32_t *rate = calloc(channels, sizeof *rate);
    uint16_t *relative = calloc(channels, sizeof *relative);

    for (uint32_t i = 0; rate != NULL && i < o->links; i++)
        for (unsigned end = 0; end < 2; end++)
            rate[o->link[i].member[end] * torus_ports(&o->torus) + o->link[i].port[end]] =
                path_rate(s, &o->link[i], end);
    if (rate == NULL || relative == NULL) {
        free(rate);
        free(relative);
        return no_memory(e);
    }
    if (damage_relative_rates(rate, channels, relative))
        o->damage.rate = relative;
    else
        free(relative);
    free(rate);
    return 0;
}

/* Sets o->passing. */
static void count_passing(struct search *s)
{
    struct overlay *o = s->o;

    memset(s->neighbour, 0, s->d->torus.nodes * sizeof *s->neighbour); /* now: channels by node */
    for (uint32_t i = 0; i < o->links; i++) {
        const struct overlay_link *link = &o->link[i];
        uint32_t node = o->node[link->member[0]];
        for (uint32_t hop = 0; hop + 1 < link->hops; hop++) {
            node = torus_neighbour(&s->d->torus, node, o->port[link->first + hop]);
            s->neighbour[node] += 2;
            if (s->neighbour[node] > o->passing)
                o->passing = s->neighbour[node];
        }
    }
}

int overlay_find(struct overlay *o, const struct damage *d, const bool *is_member, struct error *e)
{
    struct search s = {.o = o, .d = d};

    *o = (struct overlay){0};
    int result = search_init(&s, is_member, e);
    if (result == 0)
        result = add_paths(&s, false, e);
    if (result == 0)
        result = add_paths(&s, true, e);
    if (result == 0)
        result = check_connected(&s, e);
    if (result == 0)
        result = make_network(o, s.members, e);
    if (result == 0)
        result = set_rates(&s, e);
    if (result == 0)
        count_passing(&s);
    search_free(&s);
    if (result != 0)
        overlay_free(o);
    return result;
}

void overlay_free(struct overlay *o)
{
    damage_free(&o->damage);
    graph_drop(o->torus.graph[0]);
    free(o->node);
    free(o->link);
    free(o->port);
    *o = (struct overlay){0};
}

void overlay_hops(const struct overlay *o, const struct torus *t, uint32_t node,
                  struct overlay_hop *hop)
{
    const unsigned ports = torus_ports(&o->torus);

    for (uint32_t i = 0; i < overlay_channels(o); i++)
        hop[i] = (struct overlay_hop){-1, -1};
    for (uint32_t i = 0; i < o->links; i++) {
        const struct overlay_link *link = &o->link[i];
        struct overlay_hop *there = &hop[link->member[0] * ports + link->port[0]];
        struct overlay_hop *back = &hop[link->member[1] * ports + link->port[1]];
        uint32_t at = o->node[link->member[0]];
        for (uint32_t k = 0; k < link->hops; k++) {
            const unsigned port = o->port[link->first + k];
            if (at == node)
                there->out = back->in = (int8_t)port;
            at = torus_neighbour(t, at, port);
            if (at == node)
                there->in = back->out = (int8_t)torus_port_opposite(t, port);
        }
    }
}
