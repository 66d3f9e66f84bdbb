/* The links and nodes that an attempt avoids: links that were down when its root began it, and nodes that take no
 * part. All nodes avoid the links and nodes that Prepare lists. The attempt's tree uses the other links only. */
#include "daemon/torusd/exchange/record/avoided.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/tree.h"
#include "daemon/torusd/planning/planner.h"

bool avoided_has_routes(const struct attempt *x)
{
    return x->avoided != NULL &&
           (x->avoided->takes_found ||
            spec_finds_routes(&x->spec, torus_of(x), damage_is_none(&x->avoided->damage)));
}

const char *avoided_routes_name(const struct attempt *x)
{
    if (!damage_is_none(&x->avoided->damage))
        return DETOUR_NAME;
    return x->spec.operation == OPERATION_EXCHANGE ? FOUND_NAME : FOUND_GATHER_NAME;
}

bool spec_finds_routes(const struct spec *s, const struct torus *t, bool whole)
{
    if (torus_is_plain(t))
        return !whole && s->operation == OPERATION_EXCHANGE;
    const char *found = s->operation == OPERATION_EXCHANGE ? FOUND_NAME : FOUND_DISJOINT_NAME;
    if (!kind_of_spec(s)->has_blocks || spec_has_schedule(s))
        return false;
    if (strcmp(s->algorithm, found) == 0)
        return true;
    /* In an exchange that avoids nothing "auto" chooses. */
    return strcmp(s->algorithm, SPEC_AUTO) == 0 && (!whole || s->operation != OPERATION_EXCHANGE);
}

void avoided_drop(struct attempt *x)
{
    struct avoided *a = x->avoided;

    if (a == NULL)
        return;
    if (a->detour != NULL) {
        planner_put_detour(x->exchanges->planner, a->detour);
        x->algorithm = NULL;
    }
    damage_free(&a->damage);
    free(a->parent);
    free(a);
    x->avoided = NULL;
}

void avoided_leave_routes(struct attempt *x)
{
    if (x->avoided == NULL || x->avoided->detour == NULL)
        return;
    planner_put_detour(x->exchanges->planner, x->avoided->detour);
    x->avoided->detour = NULL;
    x->algorithm = NULL;
}

/* Finds the ports towards the root, by node. Without damage the tree is that of tree_node(). Returns 0, or -1 with
 * *e. */
static int find_parents(const struct damage *d, uint32_t root, uint8_t *parent, struct error *e)
{
    if (!damage_is_none(d))
        return tree_find(d, root, parent, e);
    for (uint32_t node = 0; node < d->torus.nodes; node++)
        parent[node] = node == root ? TREE_NONE : (uint8_t)tree_parent(&d->torus, root, node);
    return 0;
}

/* Stores what the attempt avoids, and finds its tree. Takes *d over, also on failure. */
static int store_avoided(struct attempt *x, struct damage *d, struct error *e)
{
    struct avoided *a = calloc(1, sizeof *a);

    if (a != NULL)
        a->parent = calloc(d->torus.nodes, sizeof *a->parent);
    if (a == NULL || a->parent == NULL || find_parents(d, x->root, a->parent, e) != 0) {
        if (a != NULL)
            free(a->parent);
        free(a);
        damage_free(d);
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    }
    a->damage = *d;
    x->avoided = a;
    return 0;
}

int avoided_set(struct attempt *x, struct damage *d, struct error *e)
{
    /* On other graphs than rings and lines routes are found, also when nothing is out of order. */
    bool needed = !damage_is_none(d) || !torus_is_plain(&d->torus);
    bool same = x->avoided != NULL ? damage_equal(&x->avoided->damage, d) : !needed;

    if (same) {
        damage_free(d);
        avoided_tree(x, rank_of(x), &x->tree);
        return 0;
    }
    avoided_drop(x);
    if (attempt_is_root(x) && kind_of(x)->has_blocks)
        x->algorithm = NULL; /* it was chosen for other links */
    if (!needed)
        damage_free(d);
    else if (store_avoided(x, d, e) != 0)
        return -1;
    avoided_tree(x, rank_of(x), &x->tree);
    return 0;
}

void avoided_tree(const struct attempt *x, uint32_t rank, struct tree_node *out)
{
    if (x->avoided != NULL)
        tree_node_found(torus_of(x), x->avoided->parent, rank, out);
    else
        tree_node(torus_of(x), x->root, rank, out);
}

int avoided_branch(const struct attempt *x, uint32_t node)
{
    uint32_t here = rank_of(x);
    struct tree_node at;
    int port = -1;

    while (node != here) {
        if (node == x->root)
            return -1;
        avoided_tree(x, node, &at);
        if (at.parent < 0)
            return -1; /* the node takes no part */
        node = torus_neighbour(torus_of(x), node, (unsigned)at.parent);
        port = (int)torus_port_opposite(torus_of(x), (unsigned)at.parent);
    }
    return port;
}

int avoided_parent(const struct damage *d, uint32_t root, uint32_t rank, int *port, struct error *e)
{
    struct tree_node here;

    if (damage_is_none(d)) {
        tree_node(&d->torus, root, rank, &here);
        *port = here.parent;
        return 0;
    }
    uint8_t *parent = calloc(d->torus.nodes, sizeof *parent);
    if (parent == NULL || tree_find(d, root, parent, e) != 0) {
        free(parent);
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    }
    *port = parent[rank] == TREE_NONE ? -1 : (int)parent[rank];
    free(parent);
    return 0;
}

bool avoided_joins_members(const struct damage *d, uint32_t rank, unsigned port)
{
    uint32_t peer = torus_neighbour(&d->torus, rank, port);

    return peer != TORUS_NO_NODE && !d->gone[rank] && !d->gone[peer];
}

bool avoided_are_restored(const struct attempt *x)
{
    const struct topology *topology = router_topology(router_of(x));

    for (uint32_t rank = 0; x->avoided != NULL && rank < torus_of(x)->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(torus_of(x)); port++)
            if ((x->avoided->damage.dead[rank] & 1u << port) != 0 &&
                avoided_joins_members(&x->avoided->damage, rank, port) &&
                topology_link_up(topology, rank, port))
                return true;
    return false;
}

bool avoided_is_left_out(const struct attempt *x, uint32_t rank)
{
    return x->avoided != NULL && x->avoided->damage.gone[rank];
}

uint32_t avoided_nodes(const struct attempt *x)
{
    uint32_t nodes = torus_of(x)->nodes, left = 0;

    for (uint32_t rank = 0; rank < nodes; rank++)
        left += !avoided_is_left_out(x, rank);
    return left;
}

uint64_t exchange_receives(const struct attempt *x, uint32_t rank)
{
    if (!kind_of(x)->has_blocks)
        return 0;
    if (x->spec.operation == OPERATION_BROADCAST)
        return rank != x->spec.sender;
    return avoided_nodes(x) - 1;
}

uint32_t avoided_ports(const struct attempt *x, uint32_t rank)
{
    return x->avoided != NULL ? x->avoided->damage.dead[rank] : 0;
}

bool avoided_fault(const struct attempt *x, struct error *e)
{
    const struct topology *topology = router_topology(router_of(x));

    if (topology_whole(topology))
        return false;
    return topology_new_fault(topology, x->avoided != NULL ? x->avoided->damage.dead : NULL, e);
}
