/* What goes up and down the tree of an exchange: in each wave a node hears from its children, and
 * from itself, before it tells its parent; what the root then decides goes down to all. */
#include <stdlib.h>

#include "daemon/exchange/internal.h"

static uint32_t children_mask(const struct exchange *x)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < x->tree.children; i++)
        mask |= 1u << x->tree.child[i];
    return mask;
}

void wave_begin(struct exchange *x)
{
    x->owed = children_mask(x) | OWN_PART;
}

bool wave_is_child(const struct exchange *x, unsigned port)
{
    return (children_mask(x) & 1u << port) != 0;
}

/* A child's part of the current wave has come. */
int wave_child_part(struct exchange *x, unsigned port, struct error *e)
{
    if ((x->owed & 1u << port) == 0)
        return error_set(e, ERROR_PROTOCOL,
                         "exchange %s: a message that is not expected from this node", x->id);
    x->owed &= ~(1u << port);
    return 0;
}

/* A link that has been down may lead to a node that has forgotten the exchange. */
void wave_send(struct exchange *x, unsigned port, const Peer__Head *head)
{
    if ((x->fault.lost & 1u << port) == 0)
        router_send(router_of(x), port, head);
}

void wave_to_parent(struct exchange *x, const Peer__Head *head)
{
    wave_send(x, (unsigned)x->tree.parent, head);
}

void wave_to_children(struct exchange *x, const Peer__Head *head)
{
    for (unsigned i = 0; i < x->tree.children; i++)
        wave_send(x, x->tree.child[i], head);
}

uint8_t *wave_parents(const struct exchanges *all, uint32_t rank)
{
    const struct torus *t = router_torus(all->set.router);
    uint8_t *parent = NULL;
    struct damage d;

    if (topology_whole(router_topology(all->set.router)) || around_view(all, false, &d, NULL) != 0)
        return NULL;
    parent = calloc(t->nodes, sizeof *parent);
    if (parent != NULL && tree_find(&d, rank, parent, NULL) != 0) {
        free(parent);
        parent = NULL;
    }
    damage_free(&d);
    return parent;
}

int wave_port(const struct exchanges *all, uint32_t rank)
{
    const struct torus *t = router_torus(all->set.router);
    uint8_t *parent = wave_parents(all, rank);
    struct tree_node here;

    if (parent != NULL)
        tree_node_found(t, parent, router_rank(all->set.router), &here);
    else
        tree_node(t, rank, router_rank(all->set.router), &here);
    free(parent);
    return here.parent;
}

void wave_towards(struct exchanges *all, uint32_t rank, const Peer__Head *head)
{
    int port = wave_port(all, rank);

    if (port >= 0)
        router_send(all->set.router, (unsigned)port, head);
}
