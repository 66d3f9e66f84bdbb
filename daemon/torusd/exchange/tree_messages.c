/* Messages up and down the tree of an attempt. In each wave a node hears from its children, and does its own
 * part, before it tells its parent; the root's answer then goes down to all nodes. */
#include "daemon/torusd/exchange/tree_messages.h"

#include <stdlib.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/membership.h"

static uint32_t children_mask(const struct attempt *x)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < x->tree.children; i++)
        mask |= 1u << x->tree.child[i];
    return mask;
}

void tree_messages_begin_wave(struct attempt *x)
{
    x->awaited = children_mask(x) | OWN_PART;
}

bool tree_messages_is_child(const struct attempt *x, unsigned port)
{
    return (children_mask(x) & 1u << port) != 0;
}

int tree_messages_child_part(struct attempt *x, unsigned port, struct error *e)
{
    if ((x->awaited & 1u << port) == 0)
        return error_set(e, ERROR_PROTOCOL, "exchange %s: unexpected message from this node",
                         x->id.text);
    x->awaited &= ~(1u << port);
    return 0;
}

/* Sends nothing over a link that was down, because it may lead to a node that has forgotten the attempt. */
static void tree_messages_send(struct attempt *x, unsigned port, const struct peer_message *message)
{
    if ((x->fault.lost & 1u << port) == 0)
        router_send(router_of(x), port, message);
}

void tree_messages_to_parent(struct attempt *x, const struct peer_message *message)
{
    tree_messages_send(x, (unsigned)x->tree.parent, message);
}

void tree_messages_to_children(struct attempt *x, const struct peer_message *message)
{
    for (unsigned i = 0; i < x->tree.children; i++)
        tree_messages_send(x, x->tree.child[i], message);
}

/* A cache of trees. Questions and answers go along these trees, and a neighbour may ask as fast as its link
 * permits, so a tree is found only once for each state of the links. */
struct kept_tree {
    bool found;
    uint32_t rank;
    uint64_t changes; /* number of changes of the topology when the tree was found */
    uint8_t *parent;  /* NULL: the tree of the whole torus */
};

struct kept_trees {
    struct kept_tree tree[64]; /* indexed by rank modulo 64 */
};

struct kept_trees *tree_messages_trees_new(void)
{
    return calloc(1, sizeof(struct kept_trees));
}

void tree_messages_trees_free(struct kept_trees *trees)
{
    for (size_t i = 0; trees != NULL && i < sizeof trees->tree / sizeof trees->tree[0]; i++)
        free(trees->tree[i].parent);
    free(trees);
}

static uint8_t *find_parents(const struct exchanges *exchanges, uint32_t rank)
{
    const struct torus *t = router_torus(exchanges->set.router);
    uint8_t *parent = NULL;
    struct damage d;

    if (topology_whole(router_topology(exchanges->set.router)) ||
        membership_view(exchanges, (struct left_out){.down = false}, &d, NULL) != 0)
        return NULL;
    parent = calloc(t->nodes, sizeof *parent);
    if (parent != NULL && tree_find(&d, rank, parent, NULL) != 0) {
        free(parent);
        parent = NULL;
    }
    damage_free(&d);
    return parent;
}

const uint8_t *tree_messages_parents(const struct exchanges *exchanges, uint32_t rank)
{
    uint64_t changes = router_topology(exchanges->set.router)->changes;
    size_t slots = sizeof exchanges->trees->tree / sizeof exchanges->trees->tree[0];
    struct kept_tree *kept = &exchanges->trees->tree[rank % slots];

    if (!kept->found || kept->rank != rank || kept->changes != changes) {
        free(kept->parent);
        *kept = (struct kept_tree){true, rank, changes, find_parents(exchanges, rank)};
    }
    return kept->parent;
}

int tree_messages_port(const struct exchanges *exchanges, uint32_t rank)
{
    const struct torus *t = router_torus(exchanges->set.router);
    const uint8_t *parent = tree_messages_parents(exchanges, rank);
    struct tree_node here;

    if (parent != NULL)
        tree_node_found(t, parent, router_rank(exchanges->set.router), &here);
    else
        tree_node(t, rank, router_rank(exchanges->set.router), &here);
    return here.parent;
}

void tree_messages_towards(struct exchanges *exchanges, uint32_t rank,
                           const struct peer_message *message)
{
    int port = tree_messages_port(exchanges, rank);

    if (port >= 0)
        router_send(exchanges->set.router, (unsigned)port, message);
}
