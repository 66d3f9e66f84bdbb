/* Trees that share no channel, on any network: as many as units flow from their root to any other
 * node, by a count of flows of its own; and what they carry, beside the bound of every cut. */
#include <math.h>

#include "client/theory/least_cut.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/reduction.h"
#include "daemon/lib/schedule/verify.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

#define ENUMERATED 16u /* nodes of a network of which all cuts are looked at */

static const struct {
    const char *network, *without;
    uint32_t trees;
    bool meets; /* an allgather loads no channel above the bound of the cuts */
} cases[] = {
    {"complete:2", "", 1, true},
    {"complete:4", "", 3, true},
    {"complete:8", "", 7, true},
    {"complete:12", "", 11, true},
    {"5 x complete:3", "", 4, true},
    {"star:5", "", 1, true},
    {"star:5 x 4", "", 3, true},
    {"tree:2^2 x 2m", "", 2, true},
    {"petersen", "", 3, true},
    {"random", "", 4, true},
    {"bridge", "", 1, false},
    {"barbell", "", 2, false},
    {"2m^4", "", 4, true},
    {"2m^6", "", 6, true},
    {"2 x complete:3", "", 4, true},
    {"4x4", "", 4, true},
    {"2x2", "", 4, true},
    {"5", "", 2, true},
    {"2m^4", "0:+0", 3, true},
    {"2m^4", "0:+0,0:+1,0:+2", 1, true},
    {"2m^4", "0:+0,3:+1,9:+2,15", 2, true},
    {"4x4", "0:+0", 3, true},
    {"4x4", "0:+0,3:+1,7", 2, true},
    {"4x4", "5,10", 2, true},
    {"2x3", "0:+0", 3, true},
    {"8x8", "0:+0,9:+1,33", 3, true},
    {"complete:4", "0:0:1", 2, true},
    {"petersen", "3,0:0:1", 2, true},
    {"star:5 x 4", "0:0:4", 2, true},
};
#define CASES (sizeof cases / sizeof cases[0])

static const struct graph *graph_named(const char *name)
{
    static const uint32_t petersen[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 0, 5, 1, 6, 2,
                                        7, 3, 8, 4, 9, 5, 7, 7, 9, 9, 6, 6, 8, 8, 5},
                          bridge[] = {0, 1, 1, 2, 2, 0, 2, 3, 3, 4, 4, 5, 5, 3},
                          barbell[] = {0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3, 4, 5,
                                       4, 6, 4, 7, 5, 6, 5, 7, 6, 7, 0, 4, 1, 5};
    uint32_t edge[96], count = 0;
    struct error e;

    if (strcmp(name, "petersen") == 0)
        return graph_of_edges(petersen, 15, &e);
    if (strcmp(name, "bridge") == 0)
        return graph_of_edges(bridge, 7, &e);
    if (strcmp(name, "barbell") == 0)
        return graph_of_edges(barbell, 14, &e);
    if (strcmp(name, "random") != 0)
        return NULL;
    for (uint32_t i = 0; i < 24; i++) { /* two rings: by 1, and by 7 */
        const uint32_t some[] = {i, (i + 1) % 24, i, (i + 7) % 24};
        memcpy(&edge[count], some, sizeof some);
        count += 4;
    }
    return graph_of_edges(edge, 48, &e);
}

static struct torus network(const char *text)
{
    char first[16];
    size_t length = strcspn(text, " ");
    struct torus t = {.nodes = 1};

    (void)snprintf(first, sizeof first, "%.*s", (int)length, text);
    const struct graph *g = graph_named(first);
    if (g == NULL)
        return contract_torus(text);
    assert_int_equal(torus_append(&t, g->nodes, false, g), 0);
    if (text[length] != '\0') { /* " x 3" */
        uint32_t size = (uint32_t)(text[length + 3] - '0');
        assert_int_equal(torus_append(&t, size, text[length + 4] != 'm', NULL), 0);
    }
    return t;
}

static struct detour *find(const char *dims, const char *without)
{
    struct torus t = network(dims);
    struct detour *found;
    struct damage d;
    struct error e;

    if ((without[0] != '\0' ? damage_parse(&d, &t, without, &e) : damage_init(&d, &t, &e)) != 0 ||
        detour_new(&found, &d, &e) != 0)
        fail_msg("%s without %s: %s", dims, without, e.text);
    damage_free(&d);
    return found;
}

/* --- flows, counted on channels --- */

struct flow {
    const struct damage *damage;
    int8_t *used; /* by node * ports + port: 1 if a unit takes the channel */
    bool *seen;
};

/* Sends one more unit to the sink; a unit may go back against another one. */
static bool push(struct flow *f, uint32_t node, uint32_t sink)
{
    const struct torus *t = &f->damage->torus;
    unsigned ports = torus_ports(t);

    if (node == sink)
        return true;
    f->seen[node] = true;
    for (unsigned port = 0; port < ports; port++) {
        if (!damage_has_link(f->damage, node, port))
            continue;
        uint32_t there = torus_neighbour(t, node, port);
        int8_t *out = &f->used[node * ports + port];
        int8_t *back = &f->used[there * ports + torus_port_opposite(t, port)];
        if (f->seen[there] || (*out == 1 && *back == 0) || !push(f, there, sink))
            continue;
        *(*back == 1 ? back : out) = *back == 1 ? 0 : 1;
        return true;
    }
    return false;
}

static uint32_t flow_between(const struct damage *d, uint32_t from, uint32_t to)
{
    uint32_t nodes = d->torus.nodes, units = 0;
    struct flow f = {d, calloc((size_t)nodes * torus_ports(&d->torus), 1), calloc(nodes, 1)};

    assert_true(f.used != NULL && f.seen != NULL);
    while (push(&f, from, to)) {
        units++;
        memset(f.seen, 0, nodes);
    }
    free(f.used);
    free(f.seen);
    return units;
}

static uint32_t least_flow(const struct damage *d, uint32_t root)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        if (node == root || d->gone[node])
            continue;
        uint32_t units = flow_between(d, root, node);
        least = units < least ? units : least;
    }
    return least;
}

/* --- trees --- */

/* Checks that each tree of a source reaches every other node that is up once, by links that
 * are in order, and that no two trees use the same channel. Adds what the channels carry. */
static void check_source(const struct damage *d, const struct algorithm *a, uint32_t source,
                         uint32_t *load)
{
    const struct torus *t = &d->torus;
    unsigned ports = torus_ports(t);
    uint32_t *owner = calloc((size_t)t->nodes * ports, sizeof *owner);
    struct leg *legs = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *legs);

    for (uint32_t segment = 0; segment < a->segments; segment++) {
        uint32_t *into = calloc(t->nodes, sizeof *into); /* the channel + 1 into each node */
        for (uint32_t node = 0; node < t->nodes; node++) {
            uint32_t count = algorithm_route(a, t, source, node, segment, legs), here = source;
            if (node == source || d->gone[node] || d->gone[source]) {
                assert_int_equal(count, 0);
                continue;
            }
            assert_in_range(count, 1, algorithm_max_legs(a, t));
            for (uint32_t i = 0; i < count; i++) {
                unsigned port = torus_port(t, legs[i].dim, legs[i].direction);
                uint32_t channel = here * ports + port;
                assert_int_equal(legs[i].step, i);
                assert_int_equal(legs[i].hops, 1);
                assert_true(damage_has_link(d, here, port));
                assert_true(owner[channel] == 0 || owner[channel] == segment + 1);
                here = torus_neighbour(t, here, port);
                assert_true(here != source && !d->gone[here]);
                assert_true(into[here] == 0 || into[here] == channel + 1);
                load[channel] += into[here] == 0;
                owner[channel] = segment + 1;
                into[here] = channel + 1;
            }
            assert_int_equal(here, node);
        }
        free(into);
    }
    free(owner);
    free(legs);
}

/* The most blocks that an allgather brings through a channel between two parts of the nodes, by
 * every cut of the network. */
static double bound_of_all_cuts(const struct damage *d)
{
    const struct torus *t = &d->torus;
    double bound = 0;
    uint32_t gone = 0, nodes = t->nodes;

    for (uint32_t node = 0; node < nodes; node++)
        gone |= (uint32_t)d->gone[node] << node;
    for (uint32_t part = 1; part < 1u << nodes; part++) {
        uint32_t channels = 0;
        for (uint32_t node = 0; node < nodes; node++)
            for (unsigned port = 0; port < torus_ports(t) && (part >> node & 1) != 0; port++)
                channels += damage_has_link(d, node, port) &&
                            (part >> torus_neighbour(t, node, port) & 1) == 0;
        double blocks = __builtin_popcount(part & ~gone);
        if (channels > 0 && blocks / channels > bound)
            bound = blocks / channels;
    }
    return bound;
}

TEST(as_many_as_flow)
{
    for (size_t i = 0; i < CASES; i++) {
        struct detour *found = find(cases[i].network, cases[i].without);
        const struct damage *d = detour_damage(found);
        const struct algorithm *a = detour_disjoint(found);
        const struct torus *t = &d->torus;
        size_t channels = (size_t)t->nodes * torus_ports(t);
        uint32_t *load = calloc(channels, sizeof *load), most = 0;
        struct schedule_report r;
        struct error e;

        assert_int_equal(a->segments, cases[i].trees);
        for (uint32_t source = 0; source < t->nodes; source++) {
            if (!d->gone[source])
                assert_int_equal(least_flow(d, source), a->segments);
            check_source(d, a, source, load);
        }
        for (size_t k = 0; k < channels; k++)
            most = load[k] > most ? load[k] : most;
        free(load);
        assert_success(schedule_verify(t, a, &r, &e), e);
        assert_int_equal(r.busiest, most);
        double blocks = (double)most / a->segments, bound = algorithm_bound(a, t);
        assert_true(bound > 0 && bound <= blocks + 1e-9);
        if (cases[i].meets && blocks > bound + 1e-9)
            fail_msg("%s without %s: %g blocks, the bound is %g", cases[i].network,
                     cases[i].without, blocks, bound);
        if (t->nodes <= ENUMERATED) {
            double all = bound_of_all_cuts(d);
            assert_true(bound <= all + 1e-9 && all <= blocks + 1e-9);
            assert_true(!cases[i].meets || bound + 1e-9 > all);
        }
        detour_free(found);
    }
}

/* --- different rates --- */

#define STEP 50u /* all rates are multiples of it */

/* Sends one more unit of STEP to the sink; `flow`, by node * ports + port, is what channels carry. */
static bool push_rated(const struct damage *d, int32_t *flow, bool *seen, uint32_t node,
                       uint32_t sink)
{
    const struct torus *t = &d->torus;
    unsigned ports = torus_ports(t);

    if (node == sink)
        return true;
    seen[node] = true;
    for (unsigned port = 0; port < ports; port++) {
        if (!damage_has_link(d, node, port))
            continue;
        uint32_t there = torus_neighbour(t, node, port);
        int32_t *out = &flow[node * ports + port];
        int32_t *back = &flow[there * ports + torus_port_opposite(t, port)];
        if (seen[there] ||
            (*out - *back >= (int32_t)(damage_rate(d, node, port) / STEP) && *back <= 0) ||
            !push_rated(d, flow, seen, there, sink))
            continue;
        if (*back > 0)
            --*back;
        else
            ++*out;
        return true;
    }
    return false;
}

/* The least cut of a root, in channels of the full rate. */
static double least_rated_cut(const struct damage *d, uint32_t root)
{
    uint32_t nodes = d->torus.nodes, least = UINT32_MAX;

    for (uint32_t node = 0; node < nodes; node++) {
        int32_t *flow = calloc((size_t)nodes * torus_ports(&d->torus), sizeof *flow);
        bool *seen = calloc(nodes, sizeof *seen);
        uint32_t units = 0;
        assert_true(flow != NULL && seen != NULL);
        for (; node != root && !d->gone[node] && push_rated(d, flow, seen, root, node); units++)
            memset(seen, 0, nodes * sizeof *seen);
        free(flow);
        free(seen);
        if (node != root && !d->gone[node] && units < least)
            least = units;
    }
    return (double)least * STEP / DAMAGE_FULL_RATE;
}

/* The time of a broadcast along the trees of a source, in blocks: each reaches every node once, by links that are in order. */
static double time_of_source(const struct damage *d, const struct algorithm *a, uint32_t source)
{
    const struct torus *t = &d->torus;
    unsigned ports = torus_ports(t);
    uint32_t *load = calloc((size_t)t->nodes * ports, sizeof *load);
    struct leg *legs = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *legs);
    double time = 0;

    for (uint32_t segment = 0; segment < a->segments; segment++) {
        uint32_t *into = calloc(t->nodes, sizeof *into); /* the channel + 1 into each node */
        for (uint32_t node = 0; node < t->nodes; node++) {
            uint32_t count = algorithm_route(a, t, source, node, segment, legs), here = source;
            assert_int_equal(count == 0, node == source || d->gone[node]);
            for (uint32_t i = 0; i < count; i++) {
                unsigned port = torus_port(t, legs[i].dim, legs[i].direction);
                uint32_t channel = here * ports + port;
                assert_true(damage_has_link(d, here, port));
                here = torus_neighbour(t, here, port);
                assert_true(into[here] == 0 || into[here] == channel + 1);
                load[channel] += into[here] == 0;
                into[here] = channel + 1;
            }
            assert_true(count == 0 || here == node);
        }
        free(into);
    }
    for (uint32_t i = 0; i < t->nodes * ports; i++) {
        double its = (double)load[i] * DAMAGE_FULL_RATE / damage_rate(d, i / ports, i % ports);
        time = its / a->segments > time ? its / a->segments : time;
    }
    free(load);
    free(legs);
    return time;
}

/* Each root's trees take at most 5 % more than its least cut, and an allgather is not below its bound. */
static void check_rated(const char *dims, const struct damage *d)
{
    struct detour *found;
    struct schedule_report r;
    struct error e;
    double most = 0;

    assert_success(detour_new(&found, d, &e), e);
    const struct algorithm *a = detour_disjoint(found);
    assert_success(schedule_verify(&d->torus, a, &r, &e), e);
    assert_true(algorithm_bound(a, &d->torus) > 0 &&
                r.busiest / a->segments >= algorithm_bound(a, &d->torus) * (1 - 1e-9));
    for (uint32_t root = 0; root < d->torus.nodes; root++) {
        if (d->gone[root])
            continue;
        double bound = 1 / least_rated_cut(d, root), time = time_of_source(d, a, root);
        if (time > 1.05 * bound + 1e-9 || time < bound - 1e-9)
            fail_msg("%s, root %u: %u trees take %.4f, the least cut %.4f", dims, root, a->segments,
                     time, bound);
        most = bound > most ? bound : most;
    }
    assert_true(fabs(detour_broadcast_bound(found) - most) < 1e-9);
    detour_free(found);
}

TEST(rated)
{
    static const char *const slow[][3] = {{"4x4", "", "6:-1=0.4"},
                                          {"4x4", "", "6:-1=0.1"},
                                          {"3x3", "", "0:+0=0.1,3:-0=0.1,4:+1=0.1,5:-1=0.1"},
                                          {"5x7", "", "*:+1=0.5,*:-1=0.5"},
                                          {"4", "", "0:+0=0.1,1:-0=0.1"},
                                          {"5", "", "0:+0=0.05,1:-0=0.05"},
                                          {"4x4", "3:+0,7", "6:-1=0.35"},
                                          {"2", "", "0:+0=0.85,1:+0=0.15"},
                                          {"8x8", "", "9:+1=0.1,27:-0=0.05,33:+0=0.7"},
                                          {"4mx4m", "", "*:+0=0.3"},
                                          {"4x4x4", "", "0:+0=0.45"}};

    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++) {
        struct torus t = network(slow[i][0]);
        struct damage d;
        struct error e;
        assert_success(slow[i][1][0] != '\0' ? damage_parse(&d, &t, slow[i][1], &e)
                                             : damage_init(&d, &t, &e),
                       e);
        assert_success(damage_parse_rates(&d, slow[i][2], false, &e), e);
        check_rated(slow[i][0], &d);
        damage_free(&d);
    }
}

TEST(rated_at_random)
{
    static const char *const networks[] = {"4x4", "3x3", "5",     "2x3x2", "4mx3",
                                           "3x5", "2x2", "4mx4m", "6m",    "petersen"};
    unsigned seed = 3;

    for (size_t i = 0; i < 40; i++) {
        struct torus t = network(networks[i % 10]);
        struct damage d;
        struct error e;
        assert_int_equal(damage_init(&d, &t, &e), 0);
        for (unsigned slow = 1u << (i / 10); slow > 0; slow--) {
            uint32_t node = (uint32_t)rand_r(&seed) % t.nodes;
            unsigned port = (unsigned)rand_r(&seed) % torus_ports(&t);
            uint16_t rate = (uint16_t)(STEP * (1 + (unsigned)rand_r(&seed) % 19));
            if (torus_neighbour(&t, node, port) != TORUS_NO_NODE)
                assert_int_equal(damage_set_rate(&d, node, port, rate, &e), 0);
        }
        check_rated(networks[i % 10], &d);
        damage_free(&d);
    }
}

/* --- reductions --- */

/* A node with a child at a port is the parent of the node there, in every tree. */
static void check_reduction(const struct damage *d, const struct reduction_trees *all)
{
    const struct torus *t = &d->torus;

    for (uint32_t node = 0; node < t->nodes; node++)
        for (uint32_t k = 0; k < all[node].count; k++) {
            const struct reduction_tree *tree = &all[node].tree[k];
            bool none = d->gone[node] || d->gone[tree->owner] || tree->owner == node;
            assert_int_equal(tree->parent == REDUCTION_NO_PORT, none);
            for (uint32_t c = 0; c < tree->children; c++) {
                const struct reduction_child *child = &all[node].child[tree->first + c];
                uint32_t there = torus_neighbour(t, node, child->port);
                assert_true(damage_has_link(d, node, child->port));
                assert_int_equal(all[there].tree[k].parent, torus_port_opposite(t, child->port));
                assert_int_equal(all[there].tree[k].place, child->place);
            }
            if (!none)
                assert_int_equal(all[torus_neighbour(t, node, tree->parent)].tree[k].distance + 1,
                                 tree->distance);
        }
}

TEST(reductions_in_reverse)
{
    for (size_t i = 0; i < CASES; i++) {
        struct detour *found = find(cases[i].network, cases[i].without);
        const struct damage *d = detour_damage(found);
        const struct algorithm *a = detour_disjoint(found);
        uint32_t nodes = d->torus.nodes;
        struct reduction_trees *all = calloc(nodes, sizeof *all);
        for (unsigned rooted = 0; rooted < 2 && nodes <= 24; rooted++) {
            for (uint32_t node = 0; node < nodes; node++) {
                assert_int_equal(
                    rooted ? reduction_build_rooted(&all[node], &d->torus, a, 1, node, NULL)
                           : reduction_build(&all[node], &d->torus, a, node, NULL),
                    0);
                assert_int_equal(all[node].count, a->segments * (rooted ? 1 : nodes));
            }
            check_reduction(d, all);
            for (uint32_t node = 0; node < nodes; node++)
                reduction_free(&all[node]);
        }
        free(all);
        detour_free(found);
    }
}

/* Trees up and down load a link with what the allgather puts on its two channels. */
TEST(reductions_load_links_least)
{
    for (size_t i = 0; i < CASES; i++) {
        struct detour *found = find(cases[i].network, cases[i].without);
        const struct damage *d = detour_damage(found);
        const struct torus *t = &d->torus;
        const struct algorithm *both[] = {detour_gather(found), detour_disjoint(found)};
        double blocks[2];
        for (unsigned k = 0; k < 2; k++) {
            size_t channels = (size_t)t->nodes * torus_ports(t);
            uint32_t *load = calloc(channels, sizeof *load), most = 0;
            for (uint32_t source = 0; source < t->nodes; source++)
                check_source(d, both[k], source, load);
            for (uint32_t node = 0; node < t->nodes; node++)
                for (unsigned port = 0; port < torus_ports(t); port++) {
                    if (!damage_has_link(d, node, port))
                        continue;
                    uint32_t there = torus_neighbour(t, node, port);
                    uint32_t sum = load[node * torus_ports(t) + port] +
                                   load[there * torus_ports(t) + torus_port_opposite(t, port)];
                    most = sum > most ? sum : most;
                }
            blocks[k] = (double)most / both[k]->segments;
            free(load);
        }
        assert_ptr_equal(detour_reductions(found), both[blocks[1] < blocks[0] - 1e-9]);
        detour_free(found);
    }
}

/* --- the choice --- */

TEST(short_blocks_take_one_tree)
{
    const struct predict_costs costs = predict_default_costs(50, 1);
    struct error e;

    for (size_t i = 0; i < CASES; i++) {
        struct detour *found = find(cases[i].network, cases[i].without);
        const struct algorithm *gather = detour_gather(found), *disjoint = detour_disjoint(found);
        assert_ptr_equal(detour_gather_for(found, true, true, &costs, 1 << 22), gather);
        assert_int_equal(detour_count_trees(found, &e), 0);
        assert_ptr_equal(detour_gather_for(found, true, true, &costs, 1), gather);
        assert_ptr_equal(detour_gather_for(found, false, true, &costs, 1), gather);
        assert_ptr_equal(detour_gather_for(found, true, true, &costs, 1 << 22), disjoint);
        detour_free(found);
    }
}

TEST(large_networks_have_single_trees)
{
    struct detour *found = find("5x13", "0:+0");
    struct error e;

    assert_null(detour_disjoint(found));
    assert_ptr_equal(detour_reductions(found), detour_gather(found));
    assert_int_equal(detour_count_trees(found, &e), 0);
    assert_true(algorithm_bound(detour_gather(found), &detour_damage(found)->torus) >
                64.0 / 3 - 1e-9);
    detour_free(found);
    found = find("4x16", "0:+0");
    assert_int_equal(detour_disjoint(found)->segments, 3);
    detour_free(found);
}

/* The formula for products, which torusctl prints, gives as many trees as are found. */
TEST(least_cuts_of_products)
{
    static const char *const more[] = {
        "1",           "2",    "1x3m", "7m x complete:3", "bridge x 2m", "2x2x2", "star:3 x star:4",
        "barbell x 3", "4m^2", "6x5"};
    struct error e;

    for (size_t i = 0; i < CASES + sizeof more / sizeof more[0]; i++) {
        const char *name = i < CASES ? cases[i].network : more[i - CASES];
        if (i < CASES && cases[i].without[0] != '\0')
            continue;
        struct detour *found = find(name, "");
        struct product p = product_of_torus(&detour_damage(found)->torus);
        uint32_t links;
        assert_int_equal(least_cut(&p, &links, &e), 0);
        if (p.nodes == 1)
            assert_int_equal(links, 0);
        else if (links != detour_disjoint(found)->segments)
            fail_msg("%s: %u trees by the formula, %u found", name, links,
                     detour_disjoint(found)->segments);
        detour_free(found);
    }
}

/* disjoint: the trees of a source share no channel, and there are as many as allgather.c says. */

static const char *const all_shapes[] = {
    "1",
    "2",
    "2m",
    "3",
    "3m",
    "7",
    "8m",
    "1x2",
    "2x2",
    "2x2m",
    "2mx2m",
    "2x5",
    "2x5m",
    "2mx5",
    "2mx5m",
    "3x3",
    "3x3m",
    "4x4",
    "4x4m",
    "4mx4m",
    "5x7",
    "5mx7",
    "5x7m",
    "5mx7m",
    "2x12",
    "2x12m",
    "1x5x1",
    "2x2x2",
    "2x2x2m",
    "2mx2x3",
    "3x4x5",
    "3mx4x5",
    "3x4mx5",
    "3mx4mx5",
    "3x4x5m",
    "3mx4mx5m",
    "2x3x2m",
    "2x2x3x3",
    "2x2x2x2m",
    "2mx3x2mx2",
    "3x3x3m",
    "4x3mx3m",
    "3mx4x1",
    "2x2x2x2x2",
    "2mx2mx2mx2mx2m",
    "2x2x2x2x2x2",
    "3x2mx2x2x2mx2",
};

/* How many trees there are: see daemon/lib/schedule/algorithms/allgather.c. */
static uint32_t trees_on(const struct torus *t)
{
    unsigned dims = 0, wrap = 0;
    bool ring = false;

    for (unsigned i = 0; i < t->dims; i++) {
        dims += t->size[i] > 1;
        wrap += t->size[i] > 1 && t->wrap[i];
        ring = ring || (t->wrap[i] && t->size[i] > 2);
    }
    return wrap == dims ? 2 * dims : dims + ring;
}

/* Checks that each tree of a source reaches every other node once, and no two trees use the same
 * channel. Adds the load of the channels to `load`. */
static void check_disjoint_source(const struct torus *t, uint32_t source, uint32_t trees,
                                  uint32_t *load)
{
    const struct algorithm *a = algorithm_find("disjoint");
    unsigned ports = torus_ports(t);
    uint32_t *parent = calloc((size_t)t->nodes * a->segments, sizeof *parent);
    uint32_t *used = calloc((size_t)t->nodes * ports, sizeof *used);
    struct leg *legs = calloc(algorithm_max_legs(a, t), sizeof *legs);

    assert_true(parent && used && legs);
    for (uint32_t segment = 0; segment < a->segments; segment++) {
        for (uint32_t node = 0; node < t->nodes; node++) {
            if (node == source)
                continue;
            uint32_t here = source, count = algorithm_route(a, t, source, node, segment, legs);
            assert_in_range(count, 1, algorithm_max_legs(a, t));
            for (uint32_t i = 0; i < count; i++) {
                unsigned port = torus_port(t, legs[i].dim, legs[i].direction);
                uint32_t channel = here * ports + port, *tree = &used[channel];
                assert_int_equal(legs[i].step, i);
                assert_int_equal(legs[i].hops, 1);
                here = torus_neighbour(t, here, port);
                assert_true(here != TORUS_NO_NODE && here != source);
                if (*tree != 0 && *tree != segment % trees + 1)
                    fail_msg("%u: trees %u and %u of source %u both come to node %u by port %u",
                             t->nodes, *tree - 1, segment % trees, source, here, port);
                *tree = segment % trees + 1;
                uint32_t *from = &parent[segment * t->nodes + here];
                load[channel] += *from == 0;
                assert_true(*from == 0 || *from == channel + 1);
                *from = channel + 1;
            }
            assert_int_equal(here, node);
        }
        for (uint32_t node = 0; node < t->nodes; node++)
            assert_int_equal(parent[segment * t->nodes + node] != 0, node != source);
    }
    free(parent);
    free(used);
    free(legs);
}

TEST(disjoint_trees)
{
    for (size_t i = 0; i < sizeof all_shapes / sizeof all_shapes[0]; i++) {
        const struct algorithm *a = algorithm_find("disjoint");
        struct torus t = contract_torus(all_shapes[i]);
        uint32_t trees = trees_on(&t), most = 0, *load;
        load = calloc((size_t)t.nodes * torus_ports(&t), sizeof *load);
        assert_non_null(load);
        for (uint32_t source = 0; source < t.nodes; source++)
            check_disjoint_source(&t, source, trees, load);
        for (size_t channel = 0; channel < (size_t)t.nodes * torus_ports(&t); channel++)
            most = load[channel] > most ? load[channel] : most;
        free(load);
        if (t.nodes == 1)
            continue;
        /* No channel carries more of a source than the parts that share a tree. If the number of
         * trees divides the parts, that is the bound. */
        assert_true(most <= (t.nodes - 1) * ((a->segments + trees - 1) / trees));
        if (trees == torus_fewest_links(&t) && a->segments % trees == 0)
            assert_true(most * trees <= (t.nodes - 1) * a->segments);
        struct schedule_report r = contract_verify(&t, "disjoint");
        assert_int_equal(r.busiest, most);
        assert_int_equal(r.contended_steps, 0);
    }
}

/* There is a tree for each link of the node with the fewest, if there can be. */
TEST(as_many_trees_as_links)
{
    static const char *const shapes[] = {"2",       "5",    "2x2",     "4x5",      "3x4x5",
                                         "2x2x2x2", "2m",   "9m",      "2mx2m",    "3mx4mx5m",
                                         "3x4m",    "5mx3", "3x2mx2m", "4x3mx1x5m"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        assert_int_equal(trees_on(&t), torus_fewest_links(&t));
    }
}
