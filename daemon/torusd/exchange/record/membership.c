/* Which nodes and links an attempt may use, as this node sees the torus: which nodes are left out, and whether
 * the remaining ones suffice. A node that sees something else than the root objects, and the root retries with
 * what it knows by then.
 *
 * An exchange or group that shrinks (spec.shrink) also does without nodes that cannot be reached, if these
 * count as down: none of their links is up. If adjacent nodes go down together, no node is left that could
 * report this, and they look the same as nodes that were only cut off. They count as down, too, if each of them
 * had a link to a remaining node, and the remaining nodes are more than half of all. So if nodes die and no
 * cable breaks, no live node is left out: its link to a remaining node would report it. */
#include "daemon/torusd/exchange/record/membership.h"

#include <stdlib.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/tree.h"
#include "daemon/torusd/exchange/record/avoided.h"
#include "daemon/torusd/exchange/record/predicates.h"

/* Adds all nodes that cannot be reached from this node to those that are gone. Returns 0, or -1 with *e. */
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

struct left_out membership_left_out(const struct attempt *x)
{
    if (!attempt_is_open_group(x))
        return (struct left_out){.down = x->spec.shrink};
    return (struct left_out){.nodes = x->avoided != NULL ? x->avoided->damage.gone : NULL};
}

struct left_out membership_left_out_next(const struct job *j)
{
    if (!job_has_been_open(j))
        return (struct left_out){.down = j->spec.shrink};
    return (struct left_out){.nodes = j->last != NULL && j->last->avoided != NULL
                                          ? j->last->avoided->damage.gone
                                          : NULL};
}

uint32_t membership_root(const struct exchanges *exchanges, const struct spec *spec)
{
    uint32_t root = MEMBERSHIP_ROOT;
    struct damage d;
    struct error e;

    if (!kind_of_spec(spec)->first_remaining_leads || !spec->shrink)
        return root;
    if (membership_view(exchanges, (struct left_out){.down = true}, &d, &e) != 0)
        return TORUS_NO_NODE;
    while (d.gone[root]) /* ends at the latest at this node */
        root++;
    damage_free(&d);
    return root;
}

uint32_t membership_first_down(const struct exchanges *exchanges, const bool *gone)
{
    const struct topology *topology = router_topology(exchanges->set.router);

    for (uint32_t rank = 0; rank < router_torus(exchanges->set.router)->nodes; rank++)
        if ((gone == NULL || !gone[rank]) && topology_node_down(topology, rank))
            return rank;
    return TORUS_NO_NODE;
}

int membership_view(const struct exchanges *exchanges, struct left_out out, struct damage *d,
                    struct error *e)
{
    const struct torus *t = router_torus(exchanges->set.router);
    const struct topology *topology = router_topology(exchanges->set.router);

    if (damage_init(d, t, e) != 0)
        return -1;
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_port_dials(t, rank, port) && !topology_link_up(topology, rank, port))
                damage_add_link(d, rank, port);
    for (uint32_t rank = 0; out.nodes != NULL && rank < t->nodes; rank++)
        if (out.nodes[rank])
            damage_add_node(d, rank);
    if (!out.down || leave_out(d, router_rank(exchanges->set.router), e) == 0)
        return 0;
    damage_free(d);
    return -1;
}

bool membership_are_down(const struct exchanges *exchanges, const struct damage *d)
{
    const struct topology *topology = router_topology(exchanges->set.router);
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

/* Checks that the remaining nodes may continue by themselves. Returns 0, or -1 with *e. */
static int check_shrunk(const struct exchanges *exchanges, const struct damage *d, struct error *e)
{
    struct damage whole;

    if (membership_are_down(exchanges, d))
        return 0;
    if (membership_view(exchanges, (struct left_out){.down = false}, &whole, e) != 0)
        return -1;
    (void)damage_is_connected(&whole, e);
    damage_free(&whole);
    return error_wrap(e, "some nodes that cannot be reached may be up");
}

int membership_check(const struct exchanges *exchanges, struct left_out out, const struct damage *d,
                     struct error *e)
{
    if (out.down)
        return check_shrunk(exchanges, d, e);
    uint32_t down = membership_first_down(exchanges, out.nodes);

    if (down != TORUS_NO_NODE) {
        (void)error_set(e, ERROR_LINK,
                        "the torus is not whole: node %u is down: none of its links is up", down);
        return error_blame_node(e, down);
    }
    return damage_is_connected(d, e);
}

int membership_check_now(const struct exchanges *exchanges, struct left_out out, struct error *e)
{
    struct damage d;
    int result;

    if (membership_view(exchanges, out, &d, e) != 0)
        return -1;
    result = membership_check(exchanges, out, &d, e);
    damage_free(&d);
    return result;
}

int membership_agrees(const struct exchanges *exchanges, struct left_out out,
                      const struct damage *d, struct error *e)
{
    char known[100], said[100];
    struct damage mine;

    if (membership_view(exchanges, out, &mine, e) != 0)
        return -1;
    bool same = damage_equal(&mine, d);
    (void)damage_format(&mine, known, sizeof known);
    (void)damage_format(d, said, sizeof said);
    damage_free(&mine);
    if (same)
        return 0;
    (void)error_set(e, ERROR_BUSY, "%s down: %s, as node %u knows; %s, as the root knows",
                    out.down ? "links and nodes that are" : "links that are",
                    known[0] != '\0' ? known : "none", router_rank(exchanges->set.router),
                    said[0] != '\0' ? said : "none");
    return error_blame_node(e, router_rank(exchanges->set.router));
}

bool membership_prevents_start(const struct job *j, struct error *e)
{
    const struct topology *topology = router_topology(j->exchanges->set.router);

    if (topology_whole(topology))
        return false;
    if (spec_avoids_links(&j->spec))
        return membership_check_now(j->exchanges, membership_left_out_next(j), e) != 0;
    return topology_new_fault(topology, NULL, e);
}
