#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/detour/internal.h"
#include "daemon/lib/schedule/tree.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

#define NODES PACKING_NODES_MOST

static uint64_t bit(uint32_t node)
{
    return UINT64_C(1) << node;
}

static void take(struct network *n, uint32_t from, uint32_t to, uint32_t units)
{
    n->channels[from][to] -= units;
    if (n->channels[from][to] > 0)
        return;
    n->out[from] &= ~bit(to);
    n->in[to] &= ~bit(from);
}

static void give(struct network *n, uint32_t from, uint32_t to, uint32_t units)
{
    if (units == 0)
        return;
    n->channels[from][to] += units;
    n->out[from] |= bit(to);
    n->in[to] |= bit(from);
}

/* Finds a shortest path over the channels, and sets before[] for the nodes on it. Returns the set of
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

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Sends units along each channel from one node to another, and by each node between the two. *n
 * keeps what is left. Returns how many units, at most `most`. */
static uint32_t send_straight(struct network *n, uint32_t from, uint32_t to, uint32_t most)
{
    uint32_t flow = smaller(n->channels[from][to], most);

    if (flow > 0)
        take(n, from, to, flow);
    for (uint64_t both = n->out[from] & n->in[to]; both != 0 && flow < most; both &= both - 1) {
        uint32_t node = (uint32_t)__builtin_ctzll(both);
        uint32_t units =
            smaller(most - flow, smaller(n->channels[from][node], n->channels[node][to]));
        take(n, from, node, units);
        take(n, node, to, units);
        give(n, node, from, units);
        give(n, to, node, units);
        flow += units;
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

    for (*reached = 0; flow < most;) {
        uint32_t units = most - flow;
        *reached = search(n, from, to, before);
        if ((*reached & bit(to)) == 0)
            break;
        for (uint32_t at = to; at != from; at = before[at])
            units = smaller(units, n->channels[before[at]][at]);
        for (uint32_t at = to; at != from; at = before[at]) {
            take(n, before[at], at, units);
            give(n, at, before[at], units);
        }
        flow += units;
    }
    return flow;
}

/* As send(), over a copy. */
static uint32_t count_flow(const struct network *n, uint32_t from, uint32_t to, uint32_t most,
                           uint64_t *reached)
{
    struct network left = *n;

    return send(&left, from, to, most, reached);
}

static uint32_t count_in(const struct packing *p, uint32_t node)
{
    uint32_t count = 0;

    for (uint32_t from = 0; from < p->nodes; from++)
        count += p->all.channels[from][node];
    return count;
}

/* All blocks of the nodes on the inner side of a cut cross it, by channels that carry that many units. If all have the
 * same rate, those of the other side do so, too, by as many channels. */
static void note_cut(struct packing *p, uint32_t inside, uint32_t units)
{
    const uint32_t others = (uint32_t)__builtin_popcountll(p->present) - inside;
    const uint32_t blocks = p->unit == 1 && others > inside ? others : inside;
    const double load = units > 0 ? (double)blocks * p->unit / units : 0;

    p->bound = load > p->bound ? load : p->bound;
}

/* Finds the least cut of a root, and what the cuts on the way bound. Returns the part that lies behind it. */
static uint64_t find_cut(struct packing *p, uint32_t root)
{
    uint64_t reached, behind = 0;

    p->cut[root] = UINT32_MAX;
    for (uint64_t rest = p->present & ~bit(root); rest != 0; rest &= rest - 1) {
        uint32_t node = (uint32_t)__builtin_ctzll(rest);
        uint32_t flow = count_flow(&p->all, root, node, UINT32_MAX, &reached);
        note_cut(p, (uint32_t)__builtin_popcountll(reached & p->present), flow);
        if (flow < p->cut[root]) {
            p->cut[root] = flow;
            behind = p->present & ~reached;
        }
    }
    return behind;
}

/* Finds the least cuts of all roots. A cut of another root that the first root is behind is one of the flow between the
 * two; any other is also one of the first root, whose least cut is the same unless the other root is behind it. */
static void find_cuts(struct packing *p)
{
    uint32_t first = (uint32_t)__builtin_ctzll(p->present);
    uint32_t others = (uint32_t)__builtin_popcountll(p->present) - 1;
    const uint64_t behind = find_cut(p, first);
    uint64_t reached;

    for (uint64_t rest = p->present; rest != 0; rest &= rest - 1) {
        uint32_t node = (uint32_t)__builtin_ctzll(rest);
        note_cut(p, others, count_in(p, node));
        p->cut[node] = p->cut[first];
        if (node == first || p->unit == 1)
            continue;
        uint32_t flow = count_flow(&p->all, node, first, UINT32_MAX, &reached);
        note_cut(p, (uint32_t)__builtin_popcountll(reached & p->present), flow);
        if ((behind & bit(node)) != 0)
            (void)find_cut(p, node);
        else
            p->cut[node] = smaller(p->cut[first], flow);
    }
}

/* What a channel of this rate carries while `trees` segments leave a root over its least cut, and somewhat longer. */
static uint32_t room_of(const struct packing *p, uint32_t root, uint32_t trees, uint32_t rate)
{
    if (p->unit == 1)
        return 1;
    return (uint32_t)((uint64_t)rate * trees * (PACKING_LOSS + p->slack) /
                      ((uint64_t)p->cut[root] * PACKING_LOSS));
}

/* The channels that are in order, with the segments that they have room for; `root` NULL: with what they carry. Fills
 * room[], by node * ports + port, unless it is NULL. */
static void fill(struct network *n, const struct packing *p, const struct damage *d,
                 const uint32_t *root, uint32_t trees, uint32_t *room)
{
    const struct torus *t = &d->torus;

    *n = (struct network){0};
    for (uint32_t node = 0; node < t->nodes; node++)
        for (unsigned port = 0; port < torus_ports(t) && !d->gone[node]; port++) {
            if (!damage_has_link(d, node, port))
                continue;
            const uint32_t rate = p->unit > 1 ? damage_rate(d, node, port) : 1;
            const uint32_t units = root != NULL ? room_of(p, *root, trees, rate) : rate;
            give(n, node, torus_neighbour(t, node, port), units);
            if (room != NULL)
                room[node * torus_ports(t) + port] = units;
        }
}

/* Whether every root has that many trees within the time that room_of() allows. Roots with the same least cut have the
 * same network: if one of them has its trees, another one has them, too, unless a cut has the first one behind it. */
static bool are_enough(const struct packing *p, const struct damage *d, uint32_t trees,
                       struct network *n)
{
    uint64_t reached;

    for (uint64_t left = p->present; left != 0;) {
        const uint32_t root = (uint32_t)__builtin_ctzll(left);
        fill(n, p, d, &root, trees, NULL);
        for (uint64_t rest = p->present & ~bit(root); rest != 0; rest &= rest - 1) {
            uint32_t node = (uint32_t)__builtin_ctzll(rest);
            const bool same = p->cut[node] == p->cut[root] && (left & bit(node)) != 0;
            if (count_flow(n, root, node, trees, &reached) < trees ||
                (same && count_flow(n, node, root, trees, &reached) < trees))
                return false;
            left &= same ? ~bit(node) : UINT64_MAX;
        }
        left &= left - 1;
    }
    return true;
}

/* Fills *p with the channels of a damaged network of at most PACKING_NODES_MOST nodes, which must
 * not be in parts. */
static void fill_all(struct packing *p, const struct damage *d)
{
    *p = (struct packing){.nodes = d->torus.nodes, .unit = d->rate != NULL ? DAMAGE_FULL_RATE : 1};
    for (uint32_t node = 0; node < p->nodes; node++)
        p->present |= d->gone[node] ? 0 : bit(node);
    fill(&p->all, p, d, NULL, 0, NULL);
}

/* As fill_all(), and finds how many trees there are. `n` is for the work. */
static void packing_init(struct packing *p, const struct damage *d, struct network *n)
{
    fill_all(p, d);
    if (__builtin_popcountll(p->present) < 2)
        return;
    find_cuts(p);
    if (p->unit == 1) {
        p->trees = p->cut[__builtin_ctzll(p->present)];
        return;
    }
    for (p->slack = 1;; p->slack *= 2)
        for (p->trees = 1; p->trees <= PACKING_TREES_MOST; p->trees++)
            if (are_enough(p, d, p->trees, n))
                return;
}

/* A search for the trees of a root. */
struct growth {
    const struct damage *damage;
    uint32_t root;
    struct network left;
    uint32_t room
        [NODES *
         TORUS_MAX_PORTS]; /* by node * ports + port: segments that the channel still has room for */
};

/* Whether `need` units flow to the node over the channels that are left. */
static bool flows(const struct network *left, uint32_t root, uint32_t node, uint32_t need)
{
    uint64_t reached;

    return need == 0 || count_flow(left, root, node, need, &reached) == need;
}

/* The port of `node` to `parent` whose incoming channel has the most room. */
static uint8_t roomiest_port(const struct growth *g, uint32_t node, uint32_t parent)
{
    const struct torus *t = &g->damage->torus;
    uint8_t best = TREE_NONE;
    uint32_t most = 0;

    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (!damage_has_link(g->damage, node, port) || torus_neighbour(t, node, port) != parent)
            continue;
        const uint32_t room =
            g->room[parent * torus_ports(t) + torus_port_opposite(t, (unsigned)port)];
        if (room > most) {
            most = room;
            best = (uint8_t)port;
        }
    }
    return best;
}

/* The channel by which a tree enters a node. */
static uint32_t *room_into(struct growth *g, const uint8_t *towards, uint32_t node)
{
    const struct torus *t = &g->damage->torus;
    const uint32_t parent = torus_neighbour(t, node, towards[node]);

    return &g->room[parent * torus_ports(t) + torus_port_opposite(t, towards[node])];
}

/* Finds a tree, and takes its channels; the channels that are left allow `need` further trees.
 * Returns the hops of its longest path. */
static uint32_t grow(struct growth *g, uint32_t need, uint8_t *towards)
{
    uint32_t order[NODES], hops[NODES] = {0}, known = 0, longest = 0;
    uint64_t inside = bit(g->root);

    order[known++] = g->root;
    for (uint32_t i = 0; i < known; i++) {
        uint32_t node = order[i];
        for (uint64_t news = g->left.out[node] & ~inside; news != 0; news &= news - 1) {
            uint32_t there = (uint32_t)__builtin_ctzll(news);
            take(&g->left, node, there, 1);
            if (!flows(&g->left, g->root, there, need)) {
                give(&g->left, node, there, 1);
                continue;
            }
            inside |= bit(there);
            towards[there] = roomiest_port(g, there, node);
            --*room_into(g, towards, there);
            longest = hops[there] = hops[node] + 1;
            order[known++] = there;
        }
    }
    return longest;
}

/* Takes the channels of a tree once more, or gives them back. */
static void repeat(struct growth *g, const uint8_t *towards, bool back)
{
    const struct torus *t = &g->damage->torus;

    for (uint32_t node = 0; node < t->nodes; node++) {
        if (towards[node] == TREE_NONE)
            continue;
        const uint32_t parent = torus_neighbour(t, node, towards[node]);
        uint32_t *room = room_into(g, towards, node);
        if (back)
            give(&g->left, parent, node, 1);
        else
            take(&g->left, parent, node, 1);
        *room += back ? 1 : UINT32_MAX;
    }
}

/* Takes the same tree again if its channels have room, and what is left then allows `need` further trees. */
static bool take_again(struct growth *g, const uint8_t *towards, uint32_t need)
{
    const uint32_t nodes = g->damage->torus.nodes;

    for (uint32_t node = 0; node < nodes; node++)
        if (towards[node] != TREE_NONE && *room_into(g, towards, node) == 0)
            return false;
    repeat(g, towards, false);
    for (uint32_t node = 0; node < nodes; node++)
        if (towards[node] != TREE_NONE && !flows(&g->left, g->root, node, need)) {
            repeat(g, towards, true);
            return false;
        }
    return true;
}

/* Finds the trees of a root that is in order: `towards`, by tree * nodes + node, is the node's port towards the root,
 * TREE_NONE at the root and at nodes that are out of order. Returns the hops of the longest path to the root. */
static uint32_t packing_find(const struct packing *p, struct growth *g, uint32_t root,
                             uint8_t *towards)
{
    uint32_t longest = 0;

    watch_tell(-1);
    g->root = root;
    fill(&g->left, p, g->damage, &root, p->trees, g->room);
    for (uint32_t tree = 0; tree < p->trees; tree++) {
        uint8_t *its = towards + (size_t)tree * p->nodes;
        const uint32_t need = p->trees - 1 - tree;
        if (tree > 0 && p->unit > 1 && take_again(g, its - p->nodes, need)) {
            memcpy(its, its - p->nodes, p->nodes);
            continue;
        }
        uint32_t hops = grow(g, need, its);
        longest = hops > longest ? hops : longest;
    }
    return longest;
}

/* In channels of the full rate. */
static double least_cut(const struct packing *p)
{
    uint32_t least = UINT32_MAX;

    for (uint64_t rest = p->present; rest != 0; rest &= rest - 1)
        least = smaller(least, p->cut[__builtin_ctzll(rest)]);
    return p->trees > 0 ? (double)least / p->unit : 0;
}

static int no_memory(const struct torus *t, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the trees of %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

/* The node that can take in the least takes in the blocks of all others. */
static double bound_of_links(const struct damage *d)
{
    uint32_t present = 0, least = UINT32_MAX;

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        uint32_t rates = 0;
        if (d->gone[node])
            continue;
        present++;
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            if (damage_has_link(d, node, port))
                rates += damage_rate(d, torus_neighbour(&d->torus, node, port),
                                     torus_port_opposite(&d->torus, port));
        least = smaller(rates, least);
    }
    return present > 1 && least > 0 ? (present - 1.0) * DAMAGE_FULL_RATE / least : 0;
}

int disjoint_trees_find(struct disjoint_trees *f, const struct damage *d, struct error *e)
{
    struct packing *p;
    struct growth *g;

    *f = (struct disjoint_trees){.nodes = d->torus.nodes, .bound = bound_of_links(d)};
    if (f->nodes > PACKING_NODES_MOST)
        return 0;
    p = malloc(sizeof *p);
    g = malloc(sizeof *g);
    if (p == NULL || g == NULL) {
        free(p);
        free(g);
        return no_memory(&d->torus, e);
    }
    g->damage = d;
    packing_init(p, d, &g->left);
    f->trees = p->trees;
    f->bound = p->bound;
    f->least_cut = least_cut(p);
    const bool several = f->trees > 1 || (f->trees == 1 && d->rate != NULL);
    if (several)
        f->towards = malloc((size_t)f->nodes * f->trees * f->nodes);
    for (uint32_t source = 0; source < f->nodes && f->towards != NULL; source++) {
        uint8_t *towards = f->towards + (size_t)source * f->trees * f->nodes;
        for (size_t i = 0; i < (size_t)f->trees * f->nodes; i++)
            towards[i] = TREE_NONE;
        uint32_t hops = d->gone[source] ? 0 : packing_find(p, g, source, towards);
        f->longest = hops > f->longest ? hops : f->longest;
    }
    free(p);
    free(g);
    return !several || f->towards != NULL ? 0 : no_memory(&d->torus, e);
}

/* --- bounds without trees --- */

double detour_gather_bound(const struct damage *d)
{
    struct packing *p = d->torus.nodes <= PACKING_NODES_MOST ? malloc(sizeof *p) : NULL;
    double bound = bound_of_links(d);

    if (p != NULL) {
        fill_all(p, d);
        if (__builtin_popcountll(p->present) > 1)
            find_cuts(p);
        bound = p->bound > bound ? p->bound : bound;
    }
    free(p);
    return bound;
}

/* The cut around a node, over which all comes in or, for the root, goes out. */
static double cut_around(const struct damage *d, uint32_t node, bool out)
{
    const struct torus *t = &d->torus;
    uint64_t rates = 0;

    for (unsigned port = 0; port < torus_ports(t); port++)
        if (damage_has_link(d, node, port))
            rates +=
                out ? damage_rate(d, node, port)
                    : damage_rate(d, torus_neighbour(t, node, port), torus_port_opposite(t, port));
    return (double)rates / DAMAGE_FULL_RATE;
}

double detour_least_cut(const struct damage *d, uint32_t root)
{
    struct packing *p = d->torus.nodes <= PACKING_NODES_MOST ? malloc(sizeof *p) : NULL;
    double least = cut_around(d, root, true);

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        const double cut = cut_around(d, node, false);
        if (node != root && !d->gone[node] && cut < least)
            least = cut;
    }
    if (p != NULL) {
        fill_all(p, d);
        if (__builtin_popcountll(p->present) > 1) {
            (void)find_cut(p, root);
            least = (double)p->cut[root] / p->unit;
        }
    }
    free(p);
    return least;
}

void disjoint_trees_free(struct disjoint_trees *f)
{
    free(f->towards);
    *f = (struct disjoint_trees){0};
}

int trees_on_a_link(uint64_t *most, const struct damage *d, const uint8_t *towards, size_t trees,
                    struct error *e)
{
    const struct torus *t = &d->torus;
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
        const unsigned down = torus_port_opposite(t, towards[i]);
        const uint64_t both[] = {++load[node * ports + towards[i]] * LINK_LOAD_ONE *
                                     DAMAGE_FULL_RATE / damage_rate(d, node, towards[i]),
                                 ++load[up * ports + down] * LINK_LOAD_ONE * DAMAGE_FULL_RATE /
                                     damage_rate(d, up, down)};
        for (unsigned k = 0; k < 2; k++)
            *most = both[k] > *most ? both[k] : *most;
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
    uint64_t least = UINT64_MAX;
    uint8_t best = TREE_NONE;

    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (!damage_has_link(f->damage, node, port))
            continue;
        uint32_t there = torus_neighbour(t, node, port);
        const unsigned back = torus_port_opposite(t, port);
        const uint64_t load = (f->load[channel(f, there, back)] + UINT64_C(1)) * LINK_LOAD_ONE *
                              DAMAGE_FULL_RATE / damage_rate(f->damage, there, back);
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
