/* The complete exchange within one graph: every block arrives on a shortest path, no node has two
 * sends or two receives in a step (no channel two blocks), and how many steps it takes. */
#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "tests/support/cmocka.h"

static const struct graph *of_edges(const uint32_t *edge, size_t count)
{
    struct error e;
    const struct graph *g = graph_of_edges(edge, count, &e);

    if (g == NULL)
        fail_msg("%s", e.text);
    return g;
}

/* Node i is linked to i + a and i + b, modulo n. */
static const struct graph *circulant(uint32_t n, uint32_t a, uint32_t b)
{
    uint32_t edge[4 * 64];

    for (uint32_t i = 0; i < n; i++) {
        edge[4 * i] = edge[4 * i + 2] = i;
        edge[4 * i + 1] = (i + a) % n;
        edge[4 * i + 3] = (i + b) % n;
    }
    return of_edges(edge, 2 * (size_t)n);
}

static const struct graph *line(uint32_t n)
{
    uint32_t edge[2 * 64];

    for (uint32_t i = 1; i < n; i++) {
        edge[2 * i - 2] = i - 1;
        edge[2 * i - 1] = i;
    }
    return of_edges(edge, n - 1);
}

static const struct graph *petersen(void)
{
    uint32_t edge[30], count = 0;

    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t some[] = {i, (i + 1) % 5, i, i + 5, 5 + i, 5 + (i + 2) % 5};
        memcpy(&edge[count], some, sizeof some);
        count += 6;
    }
    return of_edges(edge, 15);
}

/* A cycle of all nodes, and `count` other edges. */
static const struct graph *random_graph(uint32_t n, uint32_t count, unsigned seed)
{
    uint32_t edge[4 * 64], links = n;

    for (uint32_t i = 0; i < n; i++) {
        edge[2 * i] = i;
        edge[2 * i + 1] = (i + 1) % n;
    }
    while (links < n + count) {
        uint32_t a = (uint32_t)rand_r(&seed) % n, b = (uint32_t)rand_r(&seed) % n;
        bool known = a == b;
        for (uint32_t i = 0; i < links; i++)
            known = known || (edge[2 * i] == a && edge[2 * i + 1] == b) ||
                    (edge[2 * i] == b && edge[2 * i + 1] == a);
        if (known)
            continue;
        edge[2 * links] = a;
        edge[2 * links++ + 1] = b;
    }
    return of_edges(edge, links);
}

/* What every node, or channel, does in each step of an exchange. */
struct record {
    const struct graph *g;
    uint32_t *sends, *receives, *crossed; /* by step and node or channel */
    uint32_t *sent, *received;            /* by node, in all steps */
};

static void follow(const struct graph_exchange *x, uint32_t from, uint32_t to, struct record *r)
{
    const struct graph_hop *hop = graph_exchange_path(x, from, to);
    const struct graph *g = x->graph;
    uint32_t node = from;

    for (uint32_t i = 0; i < graph_distance(g, from, to); i++) {
        assert_true(hop[i].step < x->steps);
        assert_true(i == 0 || hop[i].step > hop[i - 1].step);
        assert_true(hop[i].direction < g->directions);
        r->crossed[((size_t)hop[i].step * g->nodes + node) * g->directions + hop[i].direction]++;
        r->sends[(size_t)hop[i].step * g->nodes + node]++;
        r->sent[node]++;
        node = graph_neighbour(g, node, hop[i].direction);
        assert_int_not_equal(node, GRAPH_NO_NODE);
        r->receives[(size_t)hop[i].step * g->nodes + node]++;
        r->received[node]++;
    }
    assert_int_equal(node, to);
}

/* Checks an exchange. Returns the most blocks that any node sends, or receives. */
static uint32_t check(const struct graph *g, enum graph_ports ports)
{
    const struct graph_exchange *x = graph_exchange(g, ports);
    uint32_t busiest = 0;

    assert_non_null(x);
    assert_ptr_equal(graph_exchange(g, ports), x);
    size_t places = (size_t)x->steps * g->nodes;
    struct record r = {.g = g,
                       .sends = calloc(places, sizeof *r.sends),
                       .receives = calloc(places, sizeof *r.receives),
                       .crossed = calloc(places * g->directions, sizeof *r.crossed),
                       .sent = calloc(g->nodes, sizeof *r.sent),
                       .received = calloc(g->nodes, sizeof *r.received)};
    assert_true(r.sends && r.receives && r.crossed && r.sent && r.received);
    for (uint32_t from = 0; from < g->nodes; from++)
        for (uint32_t to = 0; to < g->nodes; to++)
            follow(x, from, to, &r);
    for (size_t i = 0; i < places; i++)
        assert_true(ports != GRAPH_ONE_PORT || (r.sends[i] <= 1 && r.receives[i] <= 1));
    for (size_t i = 0; i < places * g->directions; i++)
        assert_true(r.crossed[i] <= 1);
    for (uint32_t node = 0; node < g->nodes; node++) {
        busiest = r.sent[node] > busiest ? r.sent[node] : busiest;
        busiest = r.received[node] > busiest ? r.received[node] : busiest;
        assert_int_equal(x->hops_before[node + 1] - x->hops_before[node], graph_status(g, node));
    }
    free(r.sends);
    free(r.receives);
    free(r.crossed);
    free(r.sent);
    free(r.received);
    return busiest;
}

/* Checks both exchanges, and shows how far they are from the bounds. One port: no steps but those
 * that the busiest node needs. */
static void check_both(const struct graph *g)
{
    uint32_t busiest = check(g, GRAPH_ONE_PORT), steps = graph_exchange(g, GRAPH_ONE_PORT)->steps;
    double average = (double)graph_hops(g) / g->nodes;

    assert_int_equal(steps, busiest);
    assert_true(steps >= graph_relayed_most(g) + g->nodes - 1);
    assert_true(steps + 1e-9 >= average);
    check(g, GRAPH_ALL_PORTS);
    uint32_t all = graph_exchange(g, GRAPH_ALL_PORTS)->steps;
    assert_true(all + 1e-9 >= g->least_load);
    assert_true(all <= 1.7 * g->least_load + 2);
    print_message("%-27s one port %4u steps, average status %7.2f; all ports %4u, bound %7.2f\n",
                  g->text, steps, average, all, g->least_load);
}

/* In trees the paths leave no choice: as many steps as the busiest node has blocks to send. */
TEST(trees_are_optimal)
{
    struct error e;

    for (uint32_t n = 3; n <= 33; n += 3) {
        const struct graph *star = graph_star(n, &e);
        check_both(star);
        assert_int_equal(graph_exchange(star, GRAPH_ONE_PORT)->steps, (n - 1) * (n - 1));
    }
    for (uint32_t branches = 1; branches <= 4; branches++)
        for (uint32_t depth = 1; depth <= 3; depth++) {
            const struct graph *tree = graph_tree(branches, depth, &e);
            check_both(tree);
            assert_int_equal(graph_exchange(tree, GRAPH_ONE_PORT)->steps,
                             graph_relayed_most(tree) + tree->nodes - 1);
        }
    for (uint32_t n = 3; n <= 20; n++) {
        check_both(line(n));
        assert_int_equal(graph_exchange(line(n), GRAPH_ONE_PORT)->steps, (n * n - 1) / 2);
        assert_int_equal(graph_exchange(line(n), GRAPH_ALL_PORTS)->steps, n * n / 4);
    }
}

/* Section 4.1 of the paper: Cayley graphs attain the average status. */
TEST(moving_graphs_are_optimal)
{
    struct error e;

    for (uint32_t n = 2; n <= 33; n++) {
        const struct graph *g = graph_complete(n, &e);
        check_both(g);
        assert_int_equal(graph_exchange(g, GRAPH_ONE_PORT)->steps, n - 1);
        assert_int_equal(graph_exchange(g, GRAPH_ALL_PORTS)->steps, 1);
    }
    for (uint32_t n = 7; n <= 40; n += 3) {
        const struct graph *g = circulant(n, 1, 3);
        assert_true(g->moves);
        check_both(g);
        assert_int_equal(graph_exchange(g, GRAPH_ONE_PORT)->steps, graph_status(g, 0));
    }
    check_both(petersen());
    assert_int_equal(graph_exchange(petersen(), GRAPH_ONE_PORT)->steps, 15);
}

TEST(other_graphs)
{
    for (unsigned seed = 1; seed <= 12; seed++) {
        const struct graph *g = random_graph(8 + 3 * seed, 3 + seed * 2, seed);
        check_both(g);
        assert_true(graph_exchange(g, GRAPH_ONE_PORT)->steps * (double)g->nodes <
                    2.5 * (double)graph_hops(g));
    }
}

TEST(too_many_hops)
{
    struct error e;
    const struct graph *small = graph_tree(2, 6, &e), *large = graph_tree(2, 8, &e);

    assert_non_null(graph_exchange(small, GRAPH_ONE_PORT));
    assert_true(graph_hops(large) > GRAPH_EXCHANGE_HOPS_MOST);
    assert_null(graph_exchange(large, GRAPH_ONE_PORT));
    assert_null(graph_exchange(large, GRAPH_ALL_PORTS));
}
