/* Routes that avoid what is down: every segment of every block between nodes that are
 * up arrives once, on a path that passes no node twice and uses only links that are up. The busiest channel carries at
 * most 5 % more than the optimum of the linear program. All nodes find the same routes. */
#include "client/theory/simulate.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/passages.h"
#include "daemon/lib/schedule/reduction.h"
#include "daemon/lib/schedule/tree.h"
#include "tests/contract/contract.h"
#include "tests/contract/damaged_loads.h"
#include "tests/contract/rated_loads.h"
#include "tests/support/cmocka.h"

enum { LOADS = sizeof damaged_loads / sizeof damaged_loads[0] };

/* `without` and `rates` may be empty. NULL: the torus is in parts. */
static struct detour *find_rated(const char *dims, const char *without, const char *rates)
{
    struct torus t = contract_torus(dims);
    struct error e = {.code = ERROR_NONE};
    struct detour *detour = NULL;
    struct damage damage;

    if (without[0] != '\0')
        assert_success(damage_parse(&damage, &t, without, &e), e);
    else
        assert_success(damage_init(&damage, &t, &e), e);
    if (rates[0] != '\0')
        assert_success(damage_parse_rates(&damage, rates, false, &e), e);
    if (detour_new(&detour, &damage, &e) != 0)
        assert_int_equal(e.code, ERROR_LINK);
    damage_free(&damage);
    if (detour != NULL)
        detour_find_bound(detour);
    return detour;
}

static struct detour *find(const char *dims, const char *without)
{
    return find_rated(dims, without, "");
}

/* Follows one route, and counts the load of its channels. */
static void follow(const struct damage *d, const struct algorithm *a, uint32_t source, uint32_t to,
                   uint32_t segment, uint32_t *load)
{
    const struct torus *t = &d->torus;
    struct leg *leg = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *leg);
    bool *seen = calloc(t->nodes, sizeof *seen);
    uint32_t legs = algorithm_route(a, t, source, to, segment, leg), here = source;

    assert_in_range(legs, 1, algorithm_max_legs(a, t));
    for (uint32_t i = 0; i < legs; i++) {
        unsigned port = torus_port(t, leg[i].dim, leg[i].direction);
        assert_int_equal(leg[i].hops, 1);
        assert_int_equal(leg[i].step, i);
        assert_true(damage_has_link(d, here, port));
        seen[here] = true;
        load[(size_t)here * torus_ports(t) + port]++;
        here = torus_neighbour(t, here, port);
        assert_false(seen[here]);
        assert_false(d->gone[here]);
    }
    assert_int_equal(here, to);
    free(leg);
    free(seen);
}

/* Checks all routes. Returns the largest load in blocks. */
static double check(const struct detour *detour)
{
    const struct damage *d = detour_damage(detour);
    const struct algorithm *a = detour_algorithm(detour);
    uint32_t nodes = d->torus.nodes;
    double largest = 0;
    size_t channels = (size_t)nodes * torus_ports(&d->torus);
    uint32_t *load = calloc(channels, sizeof *load);

    for (uint32_t source = 0; source < nodes; source++)
        for (uint32_t to = 0; to < nodes; to++)
            for (uint32_t i = 0; i < a->segments; i++)
                if (source != to && !d->gone[source] && !d->gone[to])
                    follow(d, a, source, to, i, load);
                else
                    assert_int_equal(algorithm_route(a, &d->torus, source, to, i, NULL), 0);
    for (size_t i = 0; i < channels; i++) {
        const unsigned ports = torus_ports(&d->torus);
        const double its = (double)load[i] * DAMAGE_FULL_RATE /
                           damage_rate(d, (uint32_t)(i / ports), (unsigned)(i % ports));
        largest = its > largest ? its : largest;
    }
    free(load);
    assert_true(largest == detour_busiest(detour));
    return largest / a->segments;
}

TEST(loads_are_close_to_the_least)
{
    for (size_t i = 0; i < LOADS; i++) {
        const char *dims = damaged_loads[i].dims, *without = damaged_loads[i].without;
        double least = damaged_loads[i].least;
        struct detour *detour = find(dims, without);
        assert_true((detour == NULL) == (least <= 0));
        if (detour == NULL)
            continue;
        double load = check(detour), bound = detour_bound(detour);
        if (load > 1.05 * least)
            fail_msg("%s without %s: %.3f, the least is %.3f", dims, without, load, least);
        if (bound > least + 1e-3 || bound < 0.9 * least)
            fail_msg("%s without %s: bound %.3f, the least is %.3f", dims, without, bound, least);
        detour_free(detour);
    }
}

/* Links of different rates: the load is the time that a channel takes for it. The bound, which judges large networks, is
 * close to the least load. */
TEST(rated_loads_are_close_to_the_least)
{
    double worst = 0, lowest = 1;

    for (size_t i = 0; i < sizeof rated_loads / sizeof rated_loads[0]; i += one_in(3)) {
        const char *dims = rated_loads[i].dims, *without = rated_loads[i].without;
        const char *rates = rated_loads[i].rates;
        double least = rated_loads[i].least;
        struct detour *detour = find_rated(dims, without, rates);
        assert_non_null(detour);
        double load = check(detour), bound = detour_bound(detour);
        if (load > 1.05 * least || load < least - 1e-3)
            fail_msg("%s %s %s: %.3f, the least is %.3f", dims, without, rates, load, least);
        if (bound > least + 1e-3 || bound < 0.95 * least)
            fail_msg("%s %s %s: bound %.3f, the least is %.3f", dims, without, rates, bound, least);
        worst = load / least > worst ? load / least : worst;
        lowest = bound / least < lowest ? bound / least : lowest;
        detour_free(detour);
    }
    print_message("loads at most %.3f of the least, bounds at least %.3f\n", worst, lowest);
}

/* The table of the documents: the load of the busiest channel beside that with equal links, and beside that of the
 * routes for equal links. */
TEST(one_slow_link)
{
    static const struct {
        const char *dims, *rates;
        double optimum; /* over the bound with equal links */
    } cases[] = {{"4x4", "6:-1=0.5", 1.067},        {"4x4", "6:-1=0.4", 1.081},
                 {"4x4", "6:-1=0.1", 1.127},        {"3x3", "0:+0=0.1,3:-0=0.1", 1.176},
                 {"4", "0:+0=0.1,1:-0=0.1", 1.818}, {"4x4", "*:+0=0.5,*:-0=0.5", 2.0}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct detour *detour = find_rated(cases[i].dims, "", cases[i].rates);
        double uniform = torus_bound_all_port(&detour_damage(detour)->torus);
        double load = check(detour) / uniform, bound = detour_bound(detour) / uniform;
        assert_in_range((uint32_t)(1000 * bound + 0.5), (uint32_t)(995 * cases[i].optimum),
                        (uint32_t)(1000 * cases[i].optimum + 0.5));
        assert_true(load <= 1.03 * cases[i].optimum);
        detour_free(detour);
    }
}

/* All links of a network have different rates, and some are down as well. The network is too large for the linear
 * program. */
TEST(large_rated)
{
    static const char *const cases[][3] = {{"8x8", "", "9:+1=0.1,27:-0=0.02"},
                                           {"8x8", "0:+0", "*:+1=0.3"},
                                           {"8x8", "", "*:+0=0.5,*:-0=0.5"},
                                           {"8mx8m", "27:+0", "28:+1=0.1,5:-1=0.6"},
                                           {"4x4x4", "", "0:+0=0.1,16:-0=0.1,21:+2=0.37"},
                                           {"4x4x4", "7:+2", "*:+2=0.25"},
                                           {"12x12", "5,40", "17:+0=0.001"},
                                           {"16x16", "", "3:+0=0.1,200:-1=0.4"},
                                           {"40", "", "5:+0=0.5"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += one_in(2)) {
        struct detour *detour = find_rated(cases[i][0], cases[i][1], cases[i][2]);
        assert_non_null(detour);
        double load = check(detour), bound = detour_bound(detour);
        if (load > 1.05 * bound || load < bound)
            fail_msg("%s %s %s: %.3f, bound %.3f", cases[i][0], cases[i][1], cases[i][2], load,
                     bound);
        detour_free(detour);
    }
}

/* Full rates that are written down change nothing. */
TEST(full_rates)
{
    struct detour *plain = find_rated("4x5", "3:+0", "");
    struct detour *full = find_rated("4x5", "3:+0", "3:+0=0.2,*:+0=1");
    struct leg one[64], other[64];

    assert_true(damage_equal(detour_damage(plain), detour_damage(full)));
    for (uint32_t source = 0; source < 20; source++)
        for (uint32_t to = 0; to < 20; to++)
            for (uint32_t i = 0; i < detour_algorithm(plain)->segments; i++) {
                const struct torus *t = &detour_damage(plain)->torus;
                uint32_t legs = algorithm_route(detour_algorithm(plain), t, source, to, i, one);
                assert_int_equal(algorithm_route(detour_algorithm(full), t, source, to, i, other),
                                 legs);
                assert_memory_equal(one, other, legs * sizeof *one);
            }
    assert_true(detour_bound(plain) == detour_bound(full));
    detour_free(plain);
    detour_free(full);
}

/* Allgather: a tree of each node, of fewest hops, along which reductions go in reverse. */
TEST(gathers_along_trees)
{
    static const char *const cases[][2] = {
        {"3x3", "0:+0"}, {"4x4", "3:+0"},         {"4x4", "7"},      {"5x5", "1:+1,12"},
        {"4x8", "0:+1"}, {"5", "0:+0"},           {"4mx4m", "5:+0"}, {"2", "0:+0"},
        {"3x3x3", "13"}, {"6x6", "0:+0,20:+1,7"}, {"1x4", "0:+1"},   {"2x2", "1:-0"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct detour *detour = find(cases[i][0], cases[i][1]);
        const struct damage *d = detour_damage(detour);
        const struct algorithm *a = detour_gather(detour);
        const struct torus *t = &d->torus;
        uint32_t *load = calloc((size_t)t->nodes * torus_ports(t), sizeof *load);
        struct leg leg[64], before[64];
        for (uint32_t source = 0; source < t->nodes; source++) {
            uint8_t *parent = calloc(t->nodes, sizeof *parent);
            struct error e;
            assert_int_equal(tree_find(d, source, parent, &e), 0);
            for (uint32_t to = 0; to < t->nodes; to++) {
                if (source == to || d->gone[source] || d->gone[to]) {
                    assert_int_equal(algorithm_route(a, t, source, to, 0, leg), 0);
                    continue;
                }
                follow(d, a, source, to, 0, load);
                uint32_t legs = algorithm_route(a, t, source, to, 0, leg), fewest = 0,
                         here = source;
                for (uint32_t at = to; at != source; fewest++)
                    at = torus_neighbour(t, at, parent[at]);
                assert_int_equal(legs, fewest);
                /* the way to each node on it is the beginning of this way */
                for (uint32_t k = 0; k < legs; k++) {
                    assert_int_equal(algorithm_route(a, t, source, here, 0, before), k);
                    assert_memory_equal(before, leg, k * sizeof *leg);
                    here = torus_neighbour(t, here, torus_port(t, leg[k].dim, leg[k].direction));
                }
            }
            free(parent);
        }
        free(load);
        detour_free(detour);
    }
}

/* The linear program would take too long: its bound takes its place. */
TEST(large_tori)
{
    static const char *const cases[][2] = {{"8x8", "0:+0"},   {"8x8", "0:+0,9:+1,20:+0,33"},
                                           {"4x4x4", "7:+2"}, {"8mx8m", "27:+0"},
                                           {"12x12", "5,40"}, {"16x16", "3:+0"},
                                           {"40", "5:+0"},    {"2x2x2x2x2", "7,9"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct detour *detour = find(cases[i][0], cases[i][1]);
        assert_non_null(detour);
        double load = check(detour), bound = detour_bound(detour);
        if (load > 1.05 * bound)
            fail_msg("%s without %s: %.3f, bound %.3f", cases[i][0], cases[i][1], load, bound);
        detour_free(detour);
    }
}

/* Streaming takes hardly longer than the load of the busiest channel. */
TEST(streamed)
{
    static const char *const cases[][2] = {
        {"3x3", "0:+0"}, {"4x4", "3:+0"},       {"4x4", "7"},      {"5x5", "1:+1,12"},
        {"4x8", "0:+1"}, {"6x6", "0:+0,20:+1"}, {"4mx4m", "5:+0"}, {"3x3x3", "13"}};
    struct error e = {.code = ERROR_NONE};
    uint64_t ticks;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct detour *detour = find(cases[i][0], cases[i][1]);
        const struct algorithm *a = detour_algorithm(detour);
        assert_int_equal(simulate_stream(&detour_damage(detour)->torus, a, &ticks, &e), 0);
        assert_true((double)ticks >= detour_busiest(detour));
        if ((double)ticks > 1.05 * detour_busiest(detour))
            fail_msg("%s without %s: %ju ticks, load %.0f", cases[i][0], cases[i][1],
                     (uintmax_t)ticks, detour_busiest(detour));
        detour_free(detour);
    }
}

/* A slow channel takes as much longer for each segment. */
TEST(streamed_at_rates)
{
    static const char *const cases[][3] = {{"4x4", "", "6:-1=0.4"},
                                           {"4x4", "", "6:-1=0.1"},
                                           {"3x3", "", "0:+0=0.1,3:-0=0.1,4:+1=0.1,5:-1=0.1"},
                                           {"5x7", "", "*:+1=0.5,*:-1=0.5"},
                                           {"4x4", "3:+0", "6:-1=0.37"},
                                           {"4", "", "0:+0=0.1,1:-0=0.1"}};
    struct error e = {.code = ERROR_NONE};
    uint64_t ticks;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct detour *detour = find_rated(cases[i][0], cases[i][1], cases[i][2]);
        const struct torus *t = &detour_damage(detour)->torus;
        const struct algorithm *a = detour_algorithm(detour);
        assert_success(simulate_stream(t, a, &ticks, &e), e);
        if ((double)ticks + 1 < detour_busiest(detour) ||
            (double)ticks > 1.05 * detour_busiest(detour) + 4)
            fail_msg("%s %s %s: %ju ticks, load %.1f", cases[i][0], cases[i][1], cases[i][2],
                     (uintmax_t)ticks, detour_busiest(detour));
        detour_free(detour);
    }
}

/* Checks that what a node sends by a port is what the node at the other end expects there. */
static void check_passages(const struct detour *detour, const struct algorithm *a)
{
    const struct damage *d = detour_damage(detour);
    const struct torus *t = &d->torus;
    struct passages *all = calloc(t->nodes, sizeof *all);
    uint64_t delivered = 0, present = 0;
    uint32_t most = 0, most_transit;
    struct error e = {.code = ERROR_NONE};

    for (uint32_t node = 0; node < t->nodes; node++) {
        assert_int_equal(passages_build(&all[node], t, a, node, TORUS_NO_NODE, &e), 0);
        present += !d->gone[node];
        most = all[node].transit > most ? all[node].transit : most;
        for (uint32_t j = 0; j < all[node].count; j++)
            delivered += all[node].passage[j].out == PASSAGE_HERE;
    }
    assert_int_equal(delivered, present * (present - 1) * a->segments);
    assert_int_equal(passages_most_transit(t, a, TORUS_NO_NODE, &most_transit, &e), 0);
    assert_int_equal(most_transit, most);
    for (uint32_t node = 0; node < t->nodes; node++)
        for (unsigned port = 0; port < torus_ports(t); port++) {
            uint32_t there = torus_neighbour(t, node, port);
            if (there == TORUS_NO_NODE)
                continue;
            assert_int_equal(all[node].departures[port],
                             all[there].arrivals[torus_port_opposite(t, port)]);
            assert_true(all[node].departures[port] == 0 || damage_has_link(d, node, port));
        }
    for (uint32_t node = 0; node < t->nodes; node++)
        passages_free(&all[node]);
    free(all);
}

TEST(passages_meet)
{
    for (size_t i = 0; i < LOADS; i += 7) {
        struct detour *detour = find(damaged_loads[i].dims, damaged_loads[i].without);
        if (detour == NULL)
            continue;
        check_passages(detour, detour_algorithm(detour));
        check_passages(detour, detour_gather(detour));
        detour_free(detour);
    }
}

/* Vectors are combined along these trees in reverse, and along one of fewest hops: a node with a
 * child at a port is the parent of the node there, and every node that is up reaches the
 * owner. */
TEST(reductions_meet)
{
    static const char *const cases[][2] = {
        {"3x3", "0:+0"},       {"4x4", "7"},  {"5", "0:+0"},        {"4mx4m", "5:+0,10"},
        {"6x6", "0:+0,20:+1"}, {"2", "0:+0"}, {"3x3x3", "13,2:+0"}, {"2x3", "1,2"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct detour *detour = find(cases[i][0], cases[i][1]);
        const struct damage *d = detour_damage(detour);
        const struct torus *t = &d->torus;
        for (uint32_t root = 0; root <= t->nodes; root++) {
            bool single = root < t->nodes;
            struct reduction_trees *all = calloc(t->nodes, sizeof *all);
            if (single && d->gone[root]) {
                free(all);
                continue;
            }
            for (uint32_t node = 0; node < t->nodes; node++)
                assert_int_equal(
                    single ? reduction_build_around(&all[node], d, root, node, NULL)
                           : reduction_build(&all[node], t, detour_gather(detour), node, NULL),
                    0);
            for (uint32_t node = 0; node < t->nodes; node++) {
                assert_int_equal(all[node].count, single ? 1 : t->nodes);
                assert_int_equal(all[node].most_distance, all[0].most_distance);
                for (uint32_t k = 0; k < all[node].count; k++) {
                    const struct reduction_tree *tree = &all[node].tree[k];
                    bool none = d->gone[node] || d->gone[tree->owner] || tree->owner == node;
                    assert_int_equal(tree->parent == REDUCTION_NO_PORT, none);
                    for (uint32_t c = 0; c < tree->children; c++) {
                        const struct reduction_child *child = &all[node].child[tree->first + c];
                        uint32_t there = torus_neighbour(t, node, child->port);
                        assert_true(damage_has_link(d, node, child->port));
                        assert_int_equal(all[there].tree[k].parent,
                                         torus_port_opposite(t, child->port));
                        assert_int_equal(all[there].tree[k].place, child->place);
                    }
                    if (none)
                        continue;
                    uint32_t up = torus_neighbour(t, node, tree->parent);
                    assert_int_equal(all[up].tree[k].distance + 1, tree->distance);
                    assert_in_range(tree->distance, 1, all[0].most_distance);
                }
            }
            for (uint32_t node = 0; node < t->nodes; node++)
                reduction_free(&all[node]);
            free(all);
        }
        detour_free(detour);
    }
}

static uint64_t fingerprint(const struct detour *detour)
{
    const struct algorithm *a = detour_algorithm(detour);
    const struct torus *t = &detour_damage(detour)->torus;
    struct leg leg[64];
    uint64_t hash = UINT64_C(14695981039346656037);

    for (uint32_t block = 0; block < t->nodes * t->nodes * a->segments; block++) {
        uint32_t pair = block / a->segments;
        uint32_t legs =
            algorithm_route(a, t, pair / t->nodes, pair % t->nodes, block % a->segments, leg);
        hash = (hash ^ 255) * UINT64_C(1099511628211);
        for (uint32_t i = 0; i < legs; i++)
            hash = (hash ^ torus_port(t, leg[i].dim, leg[i].direction)) * UINT64_C(1099511628211);
    }
    return hash;
}

/* All builds find the same routes, which depend neither on floating point nor on addresses. Peers
 * must agree on the routes: if you change them, raise PROTOCOL_VERSION (proto/frame.h). */
TEST(routes_are_known)
{
    static const struct {
        const char *dims, *without;
        uint64_t fingerprint;
    } known[] = {{"3x3", "0:+0", UINT64_C(0x78dfd50e1f2c260f)},
                 {"4x4", "3:+0,7", UINT64_C(0x749ab8101a4b1a1)},
                 {"4x8", "0:+1,9:+0", UINT64_C(0xd92e676efc25088a)},
                 {"3mx3x3", "13", UINT64_C(0xbae8c05693d66fe0)}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct detour *detour = find(known[i].dims, known[i].without);
        uint64_t found = fingerprint(detour);
        if (found != known[i].fingerprint)
            fail_msg("%s without %s: 0x%jx", known[i].dims, known[i].without, (uintmax_t)found);
        detour_free(detour);
    }
}

TEST(nothing_out_of_order)
{
    struct torus t = contract_torus("5x5");
    struct detour *detour;
    struct damage damage;
    struct error e;

    assert_int_equal(damage_init(&damage, &t, &e), 0);
    assert_int_equal(detour_new(&detour, &damage, &e), 0);
    damage_free(&damage);
    detour_find_bound(detour);
    assert_true(check(detour) <= torus_bound_all_port(&t));
    assert_true(detour_bound(detour) <= torus_bound_all_port(&t));
    detour_free(detour);
}

TEST(refused)
{
    struct torus ring = contract_torus("4096"), other = contract_torus("4x5");
    struct damage damage;
    struct detour *detour;
    struct error e;

    assert_int_equal(damage_parse(&damage, &ring, "5:+0", &e), 0);
    assert_fails(detour_new(&detour, &damage, &e), e, ERROR_REFUSED, "");
    damage_free(&damage);
    detour = find("5x4", "5:+0");
    assert_fails(algorithm_accepts(detour_algorithm(detour), &other, &e), e, ERROR_REFUSED, "");
    detour_free(detour);
    assert_null(find("4", "0:+0,2:+0"));
    assert_null(find("3x3", "0,4:+0,4:-0,4:+1,4:-1"));
}
