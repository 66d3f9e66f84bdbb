#include "daemon/lib/schedule/detour/packing.h"

#include <string.h>

#include "daemon/lib/schedule/tree.h"
#include "daemon/lib/schedule/watch.h"

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

void packing_init(struct packing *p, const struct damage *d)
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
