/* Schedules on networks with factors that are neither rings nor lines: every algorithm of the
 * registry that takes them, and the routes that are found for them. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/reduction.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

static const char *const networks[] = {
    "complete:2",
    "complete:4",
    "complete:5 x 3",
    "5 x complete:3",
    "complete:3^3",
    "star:5",
    "star:5 x 4",
    "4m x star:3 x 2",
    "tree:2^2",
    "tree:3^2 x 2m",
    "complete:4 x tree:2^1",
    "petersen",
    "petersen x 3",
    "random",
    "complete:8",
    "2m x complete:2 x 2",
};
#define NETWORKS (sizeof networks / sizeof networks[0])

static const struct graph *petersen(void)
{
    uint32_t edge[30], count = 0;
    struct error e;

    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t some[] = {i, (i + 1) % 5, i, i + 5, 5 + i, 5 + (i + 2) % 5};
        memcpy(&edge[count], some, sizeof some);
        count += 6;
    }
    return graph_of_edges(edge, 15, &e);
}

/* Every node has 4 links: node i to i + 1 and to another one, both ways. */
static const struct graph *four_regular(uint32_t nodes, unsigned seed)
{
    uint32_t edge[4 * 64], order[64];
    const struct graph *g = NULL;
    struct error e;

    while (g == NULL) {
        size_t count = 0;
        for (uint32_t i = 0; i < nodes; i++)
            order[i] = i;
        for (uint32_t i = nodes - 1; i > 0; i--) {
            uint32_t j = (uint32_t)rand_r(&seed) % (i + 1), kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
        for (uint32_t i = 0; i < nodes; i++) {
            const uint32_t some[] = {i, (i + 1) % nodes, order[i], order[(i + 1) % nodes]};
            memcpy(&edge[2 * count], some, sizeof some);
            count += 2;
        }
        g = graph_of_edges(edge, count, &e); /* refused if an edge is there twice */
    }
    return g;
}

static struct torus network(const char *text)
{
    struct torus t = {.nodes = 1};

    if (strcmp(text, "petersen") == 0 || strcmp(text, "petersen x 3") == 0) {
        assert_int_equal(torus_append(&t, 0, false, petersen()), 0);
        if (strstr(text, "x 3") != NULL)
            assert_int_equal(torus_append(&t, 3, true, NULL), 0);
        return t;
    }
    if (strcmp(text, "random") == 0) {
        assert_int_equal(torus_append(&t, 0, false, four_regular(24, 7)), 0);
        return t;
    }
    return contract_torus(text);
}

/* Allgathers go along trees, one from each node, which reductions use in reverse. */
static void check_gather(const struct torus *t, const struct algorithm *a)
{
    struct schedule_report r;
    struct error e;

    assert_success(schedule_verify(t, a, &r, &e), e);
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        struct reduction_trees trees;
        assert_success(reduction_build(&trees, t, a, rank, &e), e);
        for (uint32_t i = 0; i < trees.count; i++)
            assert_int_equal(trees.tree[i].distance, torus_distance(t, rank, trees.tree[i].owner));
        reduction_free(&trees);
    }
}

TEST(algorithms_of_the_registry)
{
    unsigned checked = 0;

    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = network(networks[i]);
        for (size_t k = 0; algorithm_at(k) != NULL; k++)
            if (algorithm_accepts(algorithm_at(k), &t, NULL) == 0) {
                if (algorithm_at(k)->operation == OPERATION_EXCHANGE)
                    contract_check(&t, algorithm_at(k));
                else
                    check_gather(&t, algorithm_at(k));
                checked++;
            }
    }
    /* tree, direct, trees, a1, a2 and a3 take all; cccube takes complete:2, and
     * with q2 and q4 "2m x complete:2 x 2". */
    assert_int_equal(checked, 6 * NETWORKS + 4);
}

TEST(found_routes)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = network(networks[i]);
        struct damage none;
        struct detour *routes;
        struct error e;
        assert_int_equal(damage_init(&none, &t, &e), 0);
        if (detour_new(&routes, &none, &e) != 0)
            fail_msg("%s: %s", networks[i], e.text);
        detour_find_bound(routes);
        contract_check(&t, detour_algorithm(routes));
        check_gather(&t, detour_gather(routes));
        double segments = detour_algorithm(routes)->segments;
        double load = detour_busiest(routes) / segments, bound = detour_bound(routes);
        print_message("%-22s load %7.3f, bound %7.3f, ratio %.3f\n", networks[i], load, bound,
                      load / bound);
        assert_true(load <= 1.05 * bound + 1 / segments);
        detour_free(routes);
        damage_free(&none);
    }
}

/* One, two and eight slow channels, and all channels of one port of all nodes: the bound is close to the optimum, and
 * nothing in the search needs a torus. */
TEST(found_routes_of_different_rates)
{
    unsigned seed = 5;

    for (size_t i = 0; i < NETWORKS; i++)
        for (unsigned slow = 0; slow < 4; slow += (unsigned)one_in(2)) {
            struct torus t = network(networks[i]);
            struct damage d;
            struct detour *routes;
            struct error e;
            assert_int_equal(damage_init(&d, &t, &e), 0);
            for (unsigned k = 0; k < (slow < 3 ? 1u << (slow + (slow == 2)) : t.nodes); k++) {
                uint32_t node = slow < 3 ? (uint32_t)rand_r(&seed) % t.nodes : k;
                unsigned port = slow < 3 ? (unsigned)rand_r(&seed) % torus_ports(&t) : 0;
                if (torus_neighbour(&t, node, port) != TORUS_NO_NODE)
                    assert_int_equal(
                        damage_set_rate(&d, node, port,
                                        (uint16_t)(slow < 3 ? 20 + rand_r(&seed) % 900 : 300), &e),
                        0);
            }
            assert_success(detour_new(&routes, &d, &e), e);
            detour_find_bound(routes);
            double load = detour_busiest(routes) / detour_algorithm(routes)->segments;
            if (load > 1.05 * detour_bound(routes) || load < (1 - 1e-12) * detour_bound(routes))
                fail_msg("%s, case %u: load %.3f, bound %.3f", networks[i], slow, load,
                         detour_bound(routes));
            contract_check(&t, detour_algorithm(routes));
            detour_free(routes);
            damage_free(&d);
        }
}

/* On complete graphs the exchange of one block a step has as many steps as other nodes (004, section
 * 4), and so has each dimension of their products. */
TEST(complete_graphs_meet_the_bound)
{
    for (uint32_t n = 2; n <= 9; n++) {
        char text[40];
        (void)snprintf(text, sizeof text, "complete:%u", n);
        struct torus t = contract_torus(text);
        struct schedule_report a2 = contract_verify(&t, "a2"),
                               direct = contract_verify(&t, "direct");
        assert_int_equal(a2.startups, n - 1);
        assert_int_equal(a2.transmission, n - 1);
        assert_int_equal(direct.startups, n - 1);
        assert_int_equal(direct.transmission, n - 1);
        (void)snprintf(text, sizeof text, "complete:%u x complete:3", n);
        t = contract_torus(text);
        a2 = contract_verify(&t, "a2");
        assert_int_equal(a2.startups, n - 1 + 2);
        assert_int_equal(a2.transmission, 3 * (n - 1) + 2 * n);
    }
}
