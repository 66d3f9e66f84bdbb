/* What an exchange goes around: the links that were out of order when its root began it. All of its
 * nodes go by the same, which Prepare says; a node that knows better objects, and the root begins anew
 * with what it knows by then. The exchange's tree leads over the other links.
 *
 * One that shrinks (spec.shrink), an exchange or a group, also does without the nodes that cannot be
 * reached, as long as they can be taken for down: no link of theirs is up. Of nodes side by side that went
 * down together nobody is left to say that; nor could anybody if they had only been cut off. They are taken
 * for down, too, if each of them had a link to a node that is left, and those are more than half of all. So
 * where nodes die and no cable breaks, nobody who lives is left out: he would be heard of over such a link. */
#include <stdlib.h>

#include "daemon/exchange/internal.h"

bool around_has_routes(const struct attempt *x)
{
    return x->around != NULL && x->spec.operation == OPERATION_EXCHANGE;
}

/* What cannot be reached from this node is gone. Returns 0, or -1 with *e. */
static int leave_out(struct damage *d, uint32_t here, struct error *e)
{
    uint32_t nodes = d->torus.nodes;
    uint8_t *parent = calloc(nodes, sizeof *parent);

    if (parent == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    int result = tree_find(d, here, parent, e);
    for (uint32_t rank = 0; result == 0 && rank < nodes; rank++)
        if (rank != here && parent[rank] == TREE_NONE)
            damage_add_node(d, rank);
    free(parent);
    return result;
}

struct left_out around_left_out(const struct attempt *x)
{
    if (!attempt_is_open_group(x))
        return (struct left_out){.down = x->spec.shrink};
    return (struct left_out){.nodes = x->around != NULL ? x->around->damage.gone : NULL};
}

struct left_out around_left_out_next(const struct job *j)
{
    if (!job_has_been_open(j))
        return (struct left_out){.down = j->spec.shrink};
    return (struct left_out){
        .nodes = j->last != NULL && j->last->around != NULL ? j->last->around->damage.gone : NULL};
}

uint32_t around_first_down(const struct exchanges *all, const bool *gone)
{
    const struct topology *topology = router_topology(all->set.router);

    for (uint32_t rank = 0; rank < router_torus(all->set.router)->nodes; rank++)
        if ((gone == NULL || !gone[rank]) && topology_node_down(topology, rank))
            return rank;
    return TORUS_NO_NODE;
}

int around_view(const struct exchanges *all, struct left_out out, struct damage *d, struct error *e)
{
    const struct torus *t = router_torus(all->set.router);
    const struct topology *topology = router_topology(all->set.router);

    if (damage_init(d, t, e) != 0)
        return -1;
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned dim = 0; dim < t->dims; dim++) {
            unsigned port = torus_port(dim, 1);
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE &&
                !topology_link_up(topology, rank, port))
                damage_add_link(d, rank, port);
        }
    for (uint32_t rank = 0; out.nodes != NULL && rank < t->nodes; rank++)
        if (out.nodes[rank])
            damage_add_node(d, rank);
    if (!out.down || leave_out(d, router_rank(all->set.router), e) == 0)
        return 0;
    damage_free(d);
    return -1;
}

bool around_are_down(const struct exchanges *all, const struct damage *d)
{
    const struct topology *topology = router_topology(all->set.router);
    uint32_t nodes = d->torus.nodes, gone = 0;
    bool certain = true, met = true;

    for (uint32_t rank = 0; rank < nodes; rank++) {
        bool up = false, left = false;
        gone += d->gone[rank];
        for (unsigned port = 0; d->gone[rank] && port < torus_ports(&d->torus); port++) {
            uint32_t peer = torus_neighbour(&d->torus, rank, port);
            up = up || topology_link_up(topology, rank, port);
            left = left || (peer != TORUS_NO_NODE && !d->gone[peer]);
        }
        certain = certain && !up;
        met = met && (!up || left);
    }
    return certain || (met && gone < nodes - gone);
}

/* Whether what is left may go on by itself. */
static int check_shrunk(const struct exchanges *all, const struct damage *d, struct error *e)
{
    struct damage whole;

    if (around_are_down(all, d))
        return 0;
    if (around_view(all, (struct left_out){.down = false}, &whole, e) != 0)
        return -1;
    (void)damage_is_connected(&whole, e);
    damage_free(&whole);
    return error_wrap(e, "more than nodes that are down cannot be reached");
}

int around_check(const struct exchanges *all, struct left_out out, const struct damage *d,
                 struct error *e)
{
    if (out.down)
        return check_shrunk(all, d, e);
    uint32_t down = around_first_down(all, out.nodes);

    if (down != TORUS_NO_NODE)
        return error_set(e, ERROR_LINK,
                         "the torus is not whole: node %u is down: none of its "
                         "links is up",
                         down);
    return damage_is_connected(d, e);
}

int around_check_now(const struct exchanges *all, struct left_out out, struct error *e)
{
    struct damage d;
    int result;

    if (around_view(all, out, &d, e) != 0)
        return -1;
    result = around_check(all, out, &d, e);
    damage_free(&d);
    return result;
}

void around_drop(struct attempt *x)
{
    struct around *a = x->around;

    if (a == NULL)
        return;
    if (a->detour != NULL) {
        planner_leave_detour(x->all->planner, a->detour);
        x->algorithm = NULL;
    }
    damage_free(&a->damage);
    free(a->parent);
    free(a);
    x->around = NULL;
}

void around_leave_routes(struct attempt *x)
{
    if (x->around == NULL || x->around->detour == NULL)
        return;
    planner_leave_detour(x->all->planner, x->around->detour);
    x->around->detour = NULL;
    x->algorithm = NULL;
}

/* Takes *d over, also on failure. */
static int take(struct attempt *x, struct damage *d, struct error *e)
{
    struct around *a = calloc(1, sizeof *a);

    if (a != NULL)
        a->parent = calloc(d->torus.nodes, sizeof *a->parent);
    if (a == NULL || a->parent == NULL || tree_find(d, x->root, a->parent, e) != 0) {
        if (a != NULL)
            free(a->parent);
        free(a);
        damage_free(d);
        return error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    }
    a->damage = *d;
    x->around = a;
    return 0;
}

int around_set(struct attempt *x, struct damage *d, struct error *e)
{
    bool same = x->around != NULL ? damage_equal(&x->around->damage, d) : damage_is_none(d);

    if (same) {
        damage_free(d);
        around_tree(x, rank_of(x), &x->tree);
        return 0;
    }
    around_drop(x);
    if (attempt_is_root(x) && x->spec.operation == OPERATION_EXCHANGE)
        x->algorithm = NULL; /* it was chosen for something else */
    if (damage_is_none(d))
        damage_free(d);
    else if (take(x, d, e) != 0)
        return -1;
    around_tree(x, rank_of(x), &x->tree);
    return 0;
}

void around_tree(const struct attempt *x, uint32_t rank, struct tree_node *out)
{
    if (x->around != NULL)
        tree_node_found(torus_of(x), x->around->parent, rank, out);
    else
        tree_node(torus_of(x), x->root, rank, out);
}

int around_branch(const struct attempt *x, uint32_t node)
{
    uint32_t here = rank_of(x);
    struct tree_node at;
    int port = -1;

    while (node != here) {
        if (node == x->root)
            return -1;
        around_tree(x, node, &at);
        if (at.parent < 0)
            return -1; /* it takes no part */
        node = torus_neighbour(torus_of(x), node, (unsigned)at.parent);
        port = (int)torus_port_opposite((unsigned)at.parent);
    }
    return port;
}

int around_parent(const struct damage *d, uint32_t root, uint32_t rank, int *port, struct error *e)
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

int around_agrees(const struct exchanges *all, struct left_out out, const struct damage *d,
                  struct error *e)
{
    char known[100], said[100];
    struct damage mine;

    if (around_view(all, out, &mine, e) != 0)
        return -1;
    bool same = damage_equal(&mine, d);
    (void)damage_format(&mine, known, sizeof known);
    (void)damage_format(d, said, sizeof said);
    damage_free(&mine);
    if (same)
        return 0;
    return error_set(e, ERROR_BUSY, "%s down: %s, says node %u; %s, says the root",
                     out.down ? "links and nodes that are" : "links that are",
                     known[0] != '\0' ? known : "none", router_rank(all->set.router),
                     said[0] != '\0' ? said : "none");
}

/* Whether there is a link at this port, between two nodes that take part. */
static bool is_between_left(const struct damage *d, uint32_t rank, unsigned port)
{
    uint32_t peer = torus_neighbour(&d->torus, rank, port);

    return peer != TORUS_NO_NODE && !d->gone[rank] && !d->gone[peer];
}

bool around_has_mended(const struct attempt *x)
{
    const struct topology *topology = router_topology(router_of(x));

    for (uint32_t rank = 0; x->around != NULL && rank < torus_of(x)->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(torus_of(x)); port++)
            if ((x->around->damage.dead[rank] & 1u << port) != 0 &&
                is_between_left(&x->around->damage, rank, port) &&
                topology_link_up(topology, rank, port))
                return true;
    return false;
}

bool around_is_gone(const struct attempt *x, uint32_t rank)
{
    return x->around != NULL && x->around->damage.gone[rank];
}

uint32_t around_nodes(const struct attempt *x)
{
    uint32_t nodes = torus_of(x)->nodes, left = 0;

    for (uint32_t rank = 0; rank < nodes; rank++)
        left += !around_is_gone(x, rank);
    return left;
}

uint64_t around_takes(const struct attempt *x, uint32_t rank)
{
    if (!kind_of(x)->has_blocks)
        return 0;
    if (x->spec.operation == OPERATION_BROADCAST)
        return rank != x->spec.sender;
    return around_nodes(x) - 1;
}

uint32_t around_ports(const struct attempt *x, uint32_t rank)
{
    return x->around != NULL ? x->around->damage.dead[rank] : 0;
}

bool around_fault(const struct attempt *x, struct error *e)
{
    const struct topology *topology = router_topology(router_of(x));
    char text[sizeof e->text];

    if (topology_whole(topology))
        return false;
    if (!topology_new_fault(topology, x->around != NULL ? x->around->damage.dead : NULL, text,
                            sizeof text))
        return false;
    (void)error_set(e, ERROR_LINK, "%s", text);
    return true;
}

bool around_prevents(const struct job *j, struct error *e)
{
    const struct topology *topology = router_topology(j->all->set.router);
    char text[sizeof e->text];

    if (topology_whole(topology))
        return false;
    if (around_may(&j->spec))
        return around_check_now(j->all, around_left_out_next(j), e) != 0;
    if (!topology_new_fault(topology, NULL, text, sizeof text))
        return false;
    (void)error_set(e, ERROR_LINK, "%s", text);
    return true;
}

/* --- in messages --- */

void around_pack_free(struct peer_prepare *prepare)
{
    free((uint32_t *)(uintptr_t)prepare->without); /* our own */
    free((uint32_t *)(uintptr_t)prepare->missing);
}

int around_pack(const struct attempt *x, struct peer_prepare *prepare)
{
    const struct torus *t = torus_of(x);
    uint32_t *without, *missing;

    if (x->around == NULL)
        return 0;
    const struct damage *d = &x->around->damage;
    prepare->without = without = calloc((size_t)t->nodes * t->dims, sizeof *without);
    prepare->missing = missing = calloc(t->nodes, sizeof *missing);
    if (without == NULL || missing == NULL) {
        around_pack_free(prepare);
        return -1;
    }
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        if (d->gone[rank])
            missing[prepare->n_missing++] = rank;
        for (unsigned dim = 0; dim < t->dims; dim++)
            if (is_between_left(d, rank, torus_port(dim, 1)) &&
                (d->dead[rank] & 1u << torus_port(dim, 1)) != 0)
                without[prepare->n_without++] = rank * t->dims + dim;
    }
    return 0;
}

static int unpack_missing(const struct peer_prepare *prepare, struct damage *d, struct error *e)
{
    for (size_t i = 0; i < prepare->n_missing; i++) {
        uint32_t rank = prepare->missing[i];
        if (rank >= d->torus.nodes || rank == prepare->root ||
            (i > 0 && rank <= prepare->missing[i - 1]))
            return error_set(e, ERROR_PROTOCOL,
                             "prepare without node %u, which does not exist, is the root or is out "
                             "of order in the list",
                             rank);
        damage_add_node(d, rank);
    }
    return 0;
}

static int unpack_links(const struct peer_prepare *prepare, struct damage *d, struct error *e)
{
    const struct torus *t = &d->torus;

    for (size_t i = 0; i < prepare->n_without; i++) {
        uint32_t rank = prepare->without[i] / t->dims;
        unsigned port = torus_port(prepare->without[i] % t->dims, 1);
        if (rank >= t->nodes || !is_between_left(d, rank, port) ||
            (i > 0 && prepare->without[i] <= prepare->without[i - 1]))
            return error_set(e, ERROR_PROTOCOL,
                             "prepare without link %u, which does not exist, is of a node that is "
                             "missing, or is out of order in the list",
                             prepare->without[i]);
        damage_add_link(d, rank, port);
    }
    return 0;
}

int around_unpack(const struct torus *t, const struct peer_prepare *prepare, struct damage *d,
                  struct error *e)
{
    if (damage_init(d, t, e) != 0)
        return -1;
    if (unpack_missing(prepare, d, e) == 0 && unpack_links(prepare, d, e) == 0)
        return 0;
    damage_free(d);
    return -1;
}
