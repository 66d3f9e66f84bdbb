#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/detour/internal.h"
#include "daemon/lib/schedule/tree.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

#define NODES PACKING_NODES_MOST

/* Channels that are left, or what is left of them beside a flow. */
struct network {
    uint8_t channels[NODES][NODES];
    uint64_t out[NODES], in[NODES];
};

static uint64_t bit(uint32_t node)
{
    return UINT64_C(1) << node;
}

static void take(struct network *n, uint32_t from, uint32_t to)
{
    if (--n->channels[from][to] > 0)
        return;
    n->out[from] &= ~bit(to);
    n->in[to] &= ~bit(from);
}

static void give(struct network *n, uint32_t from, uint32_t to)
{
    n->channels[from][to]++;
    n->out[from] |= bit(to);
    n->in[to] |= bit(from);
}

/* Finds a shortest way over the channels, and sets before[] for the nodes on it. Returns the set of
 * nodes that were reached, up to `to`. */
static uint64_t search(const struct network *n, uint32_t from, uint32_t to, uint8_t *before)
{
    uint64_t seen = bit(from), frontier = seen;

    while (frontier != 0 && (seen & bit(to)) == 0) {
        uint64_t next = 0;
        for (; frontier != 0; frontier &= frontier - 1) {
            uint32_t node = (uint32_t)__builtin_ctzll(frontier);
            uint64_t found = n->out[node] & ~seen;
            seen |= found;
            next |= found;
            for (; found != 0; found &= found - 1)
                before[__builtin_ctzll(found)] = (uint8_t)node;
        }
        frontier = next;
    }
    return seen;
}

/* Sends a unit along each channel from one node to another, and by each node between the two. *n
 * keeps what is left. Returns how many units, at most `most`. */
static uint32_t send_straight(struct network *n, uint32_t from, uint32_t to, uint32_t most)
{
    uint32_t flow = 0;

    for (; flow < most && n->channels[from][to] > 0; flow++)
        take(n, from, to);
    for (uint64_t both = n->out[from] & n->in[to]; both != 0 && flow < most; both &= both - 1) {
        uint32_t node = (uint32_t)__builtin_ctzll(both);
        take(n, from, node);
        take(n, node, to);
        give(n, node, from);
        give(n, to, node);
        flow++;
    }
    return flow;
}

/* Returns the units that flow from one node to another, at most `most`. *n keeps what is left;
 * *reached are the nodes that a further unit could reach. */
static uint32_t send(struct network *n, uint32_t from, uint32_t to, uint32_t most,
                     uint64_t *reached)
{
    uint8_t before[NODES] = {0};
    uint32_t flow = send_straight(n, from, to, most);

    for (*reached = 0; flow < most; flow++) {
        *reached = search(n, from, to, before);
        if ((*reached & bit(to)) == 0)
            break;
        for (uint32_t at = to; at != from; at = before[at]) {
            take(n, before[at], at);
            give(n, at, before[at]);
        }
    }
    return flow;
}

static void copy_channels(struct network *n, const struct packing *p)
{
    memcpy(n->channels, p->channels, sizeof n->channels);
    memcpy(n->out, p->out, sizeof n->out);
    memcpy(n->in, p->in, sizeof n->in);
}

static uint32_t count_in(const struct packing *p, uint32_t node)
{
    uint32_t count = 0;

    for (uint32_t from = 0; from < p->nodes; from++)
        count += p->channels[from][node];
    return count;
}

/* All blocks of the nodes on one side of a cut cross it, by as many channels each way. */
static void note_cut(struct packing *p, uint32_t inside, uint32_t channels)
{
    uint32_t larger = inside > p->present - inside ? inside : p->present - inside;

    if (channels > 0 && (double)larger / channels > p->bound)
        p->bound = (double)larger / channels;
}

/* Finds the least cut, and what the cuts on the way bound. */
static void find_cuts(struct packing *p, uint64_t present)
{
    uint32_t root = (uint32_t)__builtin_ctzll(present);
    struct network left;
    uint64_t reached;

    p->trees = UINT32_MAX;
    for (uint64_t rest = present; rest != 0; rest &= rest - 1) {
        uint32_t node = (uint32_t)__builtin_ctzll(rest);
        note_cut(p, 1, count_in(p, node));
        if (node == root)
            continue;
        copy_channels(&left, p);
        uint32_t flow = send(&left, root, node, UINT32_MAX, &reached);
        note_cut(p, (uint32_t)__builtin_popcountll(reached & present), flow);
        p->trees = flow < p->trees ? flow : p->trees;
    }
}

/* Fills *p with the channels of a damaged network of at most PACKING_NODES_MOST nodes, which must
 * not be in parts, and finds how many trees there are. */
static void packing_init(struct packing *p, const struct damage *d)
{
    const struct torus *t = &d->torus;
    uint64_t present = 0;

    *p = (struct packing){.nodes = t->nodes};
    for (uint32_t node = 0; node < t->nodes; node++) {
        if (d->gone[node])
            continue;
        present |= bit(node);
        p->present++;
        for (unsigned port = 0; port < torus_ports(t); port++) {
            if (!damage_has_link(d, node, port))
                continue;
            uint32_t there = torus_neighbour(t, node, port);
            p->channels[node][there]++;
            p->out[node] |= bit(there);
            p->in[there] |= bit(node);
        }
    }
    if (p->present > 1)
        find_cuts(p, present);
}

/* Whether `need` units flow to the node over the channels that are left. */
static bool flows(const struct network *left, uint32_t root, uint32_t node, uint32_t need)
{
    struct network n = *left;
    uint64_t reached;

    return need == 0 || send(&n, root, node, need, &reached) == need;
}

/* A port of `node` to `parent` whose incoming channel no tree uses yet; `used` are the ports of the
 * node whose channel one uses. */
static uint8_t free_port(const struct damage *d, uint32_t node, uint32_t parent, uint32_t *used)
{
    for (unsigned port = 0; port < torus_ports(&d->torus); port++)
        if (damage_has_link(d, node, port) && (*used & 1u << port) == 0 &&
            torus_neighbour(&d->torus, node, port) == parent) {
            *used |= 1u << port;
            return (uint8_t)port;
        }
    return TREE_NONE;
}

/* Finds a tree, and takes its channels; the channels that are left allow `need` further trees.
 * Returns the hops of its longest way. */
static uint32_t grow(struct network *left, const struct damage *d, uint32_t root, uint32_t need,
                     uint32_t *used, uint8_t *towards)
{
    uint32_t order[NODES], hops[NODES] = {0}, known = 0, longest = 0;
    uint64_t inside = bit(root);

    order[known++] = root;
    for (uint32_t i = 0; i < known; i++) {
        uint32_t node = order[i];
        for (uint64_t news = left->out[node] & ~inside; news != 0; news &= news - 1) {
            uint32_t there = (uint32_t)__builtin_ctzll(news);
            take(left, node, there);
            if (!flows(left, root, there, need)) {
                give(left, node, there);
                continue;
            }
            inside |= bit(there);
            towards[there] = free_port(d, there, node, &used[there]);
            longest = hops[there] = hops[node] + 1;
            order[known++] = there;
        }
    }
    return longest;
}

uint32_t packing_find(const struct packing *p, const struct damage *d, uint32_t root,
                      uint8_t *towards)
{
    uint32_t used[NODES] = {0}, longest = 0;
    struct network left;

    watch_tell(-1);
    copy_channels(&left, p);
    memset(towards, TREE_NONE, (size_t)p->trees * p->nodes);
    for (uint32_t tree = 0; tree < p->trees; tree++) {
        uint32_t hops =
            grow(&left, d, root, p->trees - 1 - tree, used, towards + (size_t)tree * p->nodes);
        longest = hops > longest ? hops : longest;
    }
    return longest;
}

static int no_memory(const struct torus *t, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the trees of %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

/* The node with the fewest links takes in the blocks of all others. */
static double bound_of_links(const struct damage *d)
{
    uint32_t present = 0, fewest = UINT32_MAX;

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        uint32_t links = 0;
        if (d->gone[node])
            continue;
        present++;
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            links += damage_has_link(d, node, port);
        fewest = links < fewest ? links : fewest;
    }
    return present > 1 && fewest > 0 ? (present - 1.0) / fewest : 0;
}

int disjoint_trees_find(struct disjoint_trees *f, const struct damage *d, struct error *e)
{
    struct packing *p;

    *f = (struct disjoint_trees){.nodes = d->torus.nodes, .bound = bound_of_links(d)};
    if (f->nodes > PACKING_NODES_MOST)
        return 0;
    p = malloc(sizeof *p);
    if (p == NULL)
        return no_memory(&d->torus, e);
    packing_init(p, d);
    f->trees = p->trees;
    f->bound = p->bound;
    if (f->trees > 1)
        f->towards = malloc((size_t)f->nodes * f->trees * f->nodes);
    for (uint32_t source = 0; source < f->nodes && f->towards != NULL; source++) {
        uint8_t *towards = f->towards + (size_t)source * f->trees * f->nodes;
        for (size_t i = 0; i < (size_t)f->trees * f->nodes; i++)
            towards[i] = TREE_NONE;
        uint32_t hops = d->gone[source] ? 0 : packing_find(p, d, source, towards);
        f->longest = hops > f->longest ? hops : f->longest;
    }
    free(p);
    return f->trees <= 1 || f->towards != NULL ? 0 : no_memory(&d->torus, e);
}

void disjoint_trees_free(struct disjoint_trees *f)
{
    free(f->towards);
    *f = (struct disjoint_trees){0};
}

int trees_on_a_link(uint32_t *most, const struct torus *t, const uint8_t *towards, size_t trees,
                    struct error *e)
{
    unsigned ports = torus_ports(t);
    uint32_t *load = calloc((size_t)t->nodes * ports + 1, sizeof *load);

    *most = 0;
    if (load == NULL)
        return no_memory(t, e);
    for (size_t i = 0; i < trees * t->nodes; i++) {
        uint32_t node = (uint32_t)(i % t->nodes);
        if (towards[i] == TREE_NONE)
            continue;
        uint32_t up = torus_neighbour(t, node, towards[i]);
        /* A tree goes up one channel of a link, and down the other. */
        uint32_t *end[] = {&load[node * ports + towards[i]],
                           &load[up * ports + torus_port_opposite(t, towards[i])]};
        for (unsigned k = 0; k < 2; k++)
            if (++*end[k] > *most)
                *most = *end[k];
    }
    free(load);
    return 0;
}

/* The state of the search for trees. */
struct finder {
    const struct damage *damage;
    uint32_t *load;     /* trees that use a channel, by node * ports + port */
    uint32_t *order;    /* nodes of the tree, by rising hops */
    uint32_t *distance; /* by node: hops; UINT32_MAX: not reached */
};

static size_t channel(const struct finder *f, uint32_t node, unsigned port)
{
    return (size_t)node * torus_ports(&f->damage->torus) + port;
}

/* Fills f->order and f->distance for a source. Returns how many nodes it reaches, itself
 * included. */
static uint32_t reach(struct finder *f, uint32_t source)
{
    const struct torus *t = &f->damage->torus;
    uint32_t known = 0;

    for (uint32_t node = 0; node < t->nodes; node++)
        f->distance[node] = UINT32_MAX;
    f->distance[source] = 0;
    f->order[known++] = source;
    for (uint32_t i = 0; i < known; i++)
        for (unsigned port = 0; port < torus_ports(t); port++) {
            uint32_t there = torus_neighbour(t, f->order[i], port);
            if (!damage_has_link(f->damage, f->order[i], port) || f->distance[there] != UINT32_MAX)
                continue;
            f->distance[there] = f->distance[f->order[i]] + 1;
            f->order[known++] = there;
        }
    return known;
}

/* The node's port through which the tree reaches it. */
static uint8_t choose(const struct finder *f, uint32_t node)
{
    const struct torus *t = &f->damage->torus;
    uint32_t least = UINT32_MAX;
    uint8_t best = TREE_NONE;

    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (!damage_has_link(f->damage, node, port))
            continue;
        uint32_t there = torus_neighbour(t, node, port);
        uint32_t load = f->load[channel(f, there, torus_port_opposite(t, port))];
        if (f->distance[there] + 1 == f->distance[node] && load < least) {
            least = load;
            best = (uint8_t)port;
        }
    }
    return best;
}

/* Adds the tree of a source. */
static void grow_cuts(struct spread *s, struct finder *f, uint32_t source)
{
    const struct torus *t = &f->damage->torus;
    uint8_t *towards = s->towards + (size_t)source * t->nodes;
    uint32_t known = reach(f, source);

    for (uint32_t i = 1; i < known; i++) {
        uint32_t node = f->order[i];
        unsigned port = towards[node] = choose(f, node);
        f->load[channel(f, torus_neighbour(t, node, port), torus_port_opposite(t, port))]++;
        if (f->distance[node] > s->longest)
            s->longest = f->distance[node];
    }
}

int spread_find(struct spread *s, const struct damage *d, struct error *e)
{
    const struct torus *t = &d->torus;
    struct finder f = {.damage = d,
                       .load = calloc((size_t)t->nodes * torus_ports(t) + 1, sizeof *f.load),
                       .order = calloc(t->nodes, sizeof *f.order),
                       .distance = calloc(t->nodes, sizeof *f.distance)};
    size_t places = (size_t)t->nodes * t->nodes;

    *s = (struct spread){.nodes = t->nodes, .towards = malloc(places)};
    bool enough = f.load != NULL && f.order != NULL && f.distance != NULL && s->towards != NULL;
    for (size_t i = 0; enough && i < places; i++)
        s->towards[i] = TREE_NONE;
    for (uint32_t source = 0; enough && source < t->nodes; source++)
        if (!d->gone[source])
            grow_cuts(s, &f, source);
    free(f.load);
    free(f.order);
    free(f.distance);
    if (enough)
        return 0;
    spread_free(s);
    return error_set(e, ERROR_MEMORY, "out of memory for the trees of %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

void spread_free(struct spread *s)
{
    free(s->towards);
    *s = (struct spread){0};
}

uint32_t spread_route_along(const uint8_t *towards, const struct torus *t, uint32_t source,
                            uint32_t destination, struct leg *legs)
{
    uint32_t hops = 0, here = destination;

    if (source == destination || towards[destination] == TREE_NONE)
        return 0;
    for (; here != source; hops++) { /* the last one first */
        unsigned out = torus_port_opposite(t, towards[here]);
        legs[hops] = (struct leg){.hops = 1,
                                  .dim = (uint8_t)torus_port_dim(t, out),
                                  .direction = (int8_t)torus_port_direction(t, out)};
        here = torus_neighbour(t, here, towards[here]);
    }
    for (uint32_t i = 0; i < hops / 2; i++) {
        struct leg leg = legs[i];
        legs[i] = legs[hops - 1 - i];
        legs[hops - 1 - i] = leg;
    }
    for (uint32_t i = 0; i < hops; i++)
        legs[i].step = i;
    return hops;
}

uint32_t spread_route(const struct spread *s, const struct torus *t, uint32_t source,
                      uint32_t destination, struct leg *legs)
{
    return spread_route_along(s->towards + (size_t)source * s->nodes, t, source, destination, legs);
}
