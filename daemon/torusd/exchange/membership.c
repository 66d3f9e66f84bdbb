/* Which nodes and links an attempt may use, as this node sees the torus: which nodes are left out, and whether
 * the remaining ones suffice. A node that sees something else than the root objects, and the root retries with
 * what it knows by then.
 *
 * An exchange or group that shrinks (spec.shrink) also does without nodes that cannot be reached, if these
 * count as down: none of their links is up. If adjacent nodes go down together, no node is left that could
 * report this, and they look the same as nodes that were only cut off. They count as down, too, if each of them
 * had a link to a remaining node, and the remaining nodes are more than half of all. So if nodes die and no
 * cable breaks, no live node is left out: its link to a remaining node would report it. */
#include "daemon/torusd/exchange/membership.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/job.h"

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

struct left_out membership_left_out_of(const struct spec *spec)
{
    const bool some = spec_has_members(spec);

    return (struct left_out){.down = spec->shrink || some, .members = some ? spec : NULL};
}

struct left_out membership_left_out(const struct attempt *x)
{
    if (!attempt_is_open_group(x) || spec_has_members(&x->spec))
        return membership_left_out_of(&x->spec);
    return (struct left_out){.nodes = x->avoided != NULL ? x->avoided->damage.gone : NULL};
}

struct left_out membership_left_out_next(const struct job *j)
{
    if (!job_has_been_open(j) || spec_has_members(&j->spec))
        return membership_left_out_of(&j->spec);
    return (struct left_out){.nodes = j->last != NULL && j->last->avoided != NULL
                                          ? j->last->avoided->damage.gone
                                          : NULL};
}

uint32_t membership_root(const struct exchanges *exchanges, const struct spec *spec)
{
    uint32_t root = spec_first_member(spec->members);
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

/* Whether all nodes that are up take part, or those that are listed. */
static bool must_take_part(struct left_out out, uint32_t rank)
{
    if (out.members != NULL)
        return spec_is_member(out.members, rank);
    return !out.down && (out.nodes == NULL || !out.nodes[rank]);
}

uint32_t membership_first_down(const struct exchanges *exchanges, struct left_out out)
{
    const struct topology *topology = router_topology(exchanges->set.router);

    for (uint32_t rank = 0; rank < router_torus(exchanges->set.router)->nodes; rank++)
        if (must_take_part(out, rank) && topology_node_down(topology, rank))
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

int membership_add_rates(const struct exchanges *exchanges, struct damage *d, struct error *e)
{
    const unsigned ports = torus_ports(&d->torus);
    const size_t channels = (size_t)d->torus.nodes * ports;

    for (size_t i = 0; exchanges->rates.used != NULL && i < channels; i++) {
        const uint32_t rank = (uint32_t)(i / ports);
        const unsigned port = (unsigned)(i % ports);
        if (exchanges->rates.used[i] == DAMAGE_FULL_RATE || !damage_has_link(d, rank, port))
            continue;
        if (damage_set_rate(d, rank, port, exchanges->rates.used[i], e) != 0)
            return -1;
    }
    d->full_kbit = d->rate != NULL ? exchanges->rates.full_kbit : 0;
    return 0;
}

/* Whether all nodes that this view leaves out count as down. */
static bool membership_are_down(const struct exchanges *exchanges, const struct damage *d)
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

/* Checks that no member is left out. Returns 0, or -1 with *e. */
static int check_members(const struct left_out *out, const struct damage *d, struct error *e)
{
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++) {
        if (!d->gone[rank] || !spec_is_member(out->members, rank))
            continue;
        (void)error_set(e, ERROR_LINK,
                        "the members cannot reach each other: no path over links that are up "
                        "leads to node %u",
                        rank);
        return error_blame_node(e, rank);
    }
    return 0;
}

int membership_check(const struct exchanges *exchanges, struct left_out out, const struct damage *d,
                     struct error *e)
{
    uint32_t down = membership_first_down(exchanges, out);

    if (down == TORUS_NO_NODE && out.members != NULL)
        return check_members(&out, d, e);
    if (out.down && out.members == NULL)
        return check_shrunk(exchanges, d, e);

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

/* The root's rates count; others may know other ones. */
static int copy_rates(struct damage *mine, const struct damage *d, struct error *e)
{
    for (uint32_t rank = 0; d->rate != NULL && rank < d->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            if (torus_neighbour(&d->torus, rank, port) != TORUS_NO_NODE &&
                damage_set_rate(mine, rank, port, damage_rate(d, rank, port), e) != 0)
                return -1;
    return 0;
}

int membership_agrees(const struct exchanges *exchanges, struct left_out out,
                      const struct damage *d, struct error *e)
{
    char known[100], said[100];
    struct damage mine;

    if (membership_view(exchanges, out, &mine, e) != 0)
        return -1;
    if (copy_rates(&mine, d, e) != 0) {
        damage_free(&mine);
        return -1;
    }
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

/* --- avoided links and nodes ---
 *
 * The links and nodes that an attempt avoids: links that were down when its root began it, and nodes that take no
 * part. All nodes avoid the links and nodes that Prepare lists. The attempt's tree uses the other links only. */

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
    const char *found = s->operation == OPERATION_EXCHANGE ? FOUND_NAME : FOUND_DISJOINT_NAME;

    if (torus_is_plain(t)) /* allgathers and broadcasts find routes for different rates only */
        return !whole && (s->operation == OPERATION_EXCHANGE || spec_uses_rates(s));
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

/* Sets *out to a node's part of the attempt's tree. */
static void avoided_tree(const struct attempt *x, uint32_t rank, struct tree_node *out)
{
    if (x->avoided != NULL)
        tree_node_found(torus_of(x), x->avoided->parent, rank, out);
    else
        tree_node(torus_of(x), x->root, rank, out);
}

int avoided_set(struct attempt *x, struct damage *d, struct error *e)
{
    /* On other graphs than rings and lines routes are found, also when nothing is down. */
    bool needed = !damage_is_none(d) || !torus_is_plain(&d->torus);
    bool same = x->avoided != NULL ? damage_equal(&x->avoided->damage, d) : !needed;

    if (same) {
        if (x->avoided != NULL)
            x->avoided->damage.full_kbit = d->full_kbit;
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

/* Whether the next attempt would use this link if it is up. A group of some nodes then takes other nodes in again. */
static bool would_be_used(const struct attempt *x, uint32_t rank, unsigned port)
{
    const struct damage *d = &x->avoided->damage;

    if (spec_has_members(&x->spec))
        return !d->gone[rank] || !d->gone[torus_neighbour(&d->torus, rank, port)];
    return avoided_joins_members(d, rank, port);
}

bool avoided_are_restored(const struct attempt *x)
{
    const struct topology *topology = router_topology(router_of(x));

    for (uint32_t rank = 0; x->avoided != NULL && rank < torus_of(x)->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(torus_of(x)); port++)
            if ((x->avoided->damage.dead[rank] & 1u << port) != 0 &&
                topology_link_up(topology, rank, port) && would_be_used(x, rank, port))
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

/* --- absent nodes ---
 *
 * Nodes that no link leads to, and since when: which nodes count as dead, and which nodes are not waited for. */

/* A node counts as dead when none of its links has been up for this time. A lost connection is replaced within
 * that time (BACKOFF_FIRST of the router, and the handshake), and a node may have only one link. */
#define GONE_TIME (150 * MILLISECONDS)

/* Sets *since to `now` when the condition becomes true, and to ROUTER_NEVER when it is false. */
static void note_since(uint64_t *since, bool is_so, uint64_t now)
{
    if (!is_so)
        *since = ROUTER_NEVER;
    else if (*since == ROUTER_NEVER)
        *since = now;
}

/* Without memory, all times stay as they were. */
static void note_unreachable(struct exchanges *exchanges, uint64_t now)
{
    uint32_t nodes = router_torus(exchanges->set.router)->nodes;
    bool whole = topology_whole(router_topology(exchanges->set.router));
    struct damage d;

    if (!whole && membership_view(exchanges, (struct left_out){.down = true}, &d, NULL) != 0)
        return;
    for (uint32_t rank = 0; rank < nodes; rank++)
        note_since(&exchanges->absent[rank].unreachable_since, !whole && d.gone[rank], now);
    exchanges->may_be_cut_off = !whole && !membership_are_down(exchanges, &d);
    if (!whole)
        damage_free(&d);
}

void absent_note(struct exchanges *exchanges)
{
    const struct topology *topology = router_topology(exchanges->set.router);
    uint64_t now = router_now(exchanges->set.router);

    for (uint32_t rank = 0; rank < topology->torus->nodes; rank++)
        note_since(&exchanges->absent[rank].down_since, topology_node_down(topology, rank), now);
    note_unreachable(exchanges, now);
}

int absent_init(struct exchanges *exchanges)
{
    exchanges->absent =
        calloc(router_torus(exchanges->set.router)->nodes, sizeof *exchanges->absent);
    if (exchanges->absent == NULL)
        return -1;
    absent_note(exchanges); /* nodes that are absent now have been so since the start */
    return 0;
}

bool absent_is_unreachable(const struct exchanges *exchanges, uint32_t rank)
{
    return exchanges->absent[rank].unreachable_since != ROUTER_NEVER;
}

bool absent_is_down(const struct exchanges *exchanges, uint32_t rank)
{
    return exchanges->absent[rank].down_since != ROUTER_NEVER ||
           (!exchanges->may_be_cut_off && absent_is_unreachable(exchanges, rank));
}

uint64_t absent_dead_at(const struct exchanges *exchanges, uint32_t rank)
{
    uint64_t since = exchanges->absent[rank].down_since;

    return since != ROUTER_NEVER ? since + GONE_TIME : ROUTER_NEVER;
}

uint64_t absent_given_up_at(const struct exchanges *exchanges, uint32_t rank)
{
    if (!absent_is_unreachable(exchanges, rank))
        return ROUTER_NEVER;
    return exchanges->absent[rank].unreachable_since +
           (absent_is_down(exchanges, rank) ? GONE_TIME : absent_report_time(exchanges));
}

uint64_t absent_report_time(const struct exchanges *exchanges)
{
    return router_heartbeat(exchanges->set.router) + 1 * SECONDS;
}
