/* Graphs and products with them: against adjacency that is written out here. */
#include <unistd.h>

#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "daemon/lib/schedule/graph/graph_group.h"
#include "daemon/lib/schedule/tree.h"
#include "tests/support/cmocka.h"
#include "tests/support/permutation_graphs.h"

#define MOST 256

/* The adjacency and distances of a network, by node. */
struct network {
    uint32_t nodes;
    bool link[MOST][MOST];
    uint32_t distance[MOST][MOST];
};

static void join(struct network *n, uint32_t a, uint32_t b)
{
    n->link[a][b] = n->link[b][a] = true;
}

/* Floyd and Warshall. */
static void find_distances(struct network *n)
{
    for (uint32_t a = 0; a < n->nodes; a++)
        for (uint32_t b = 0; b < n->nodes; b++)
            n->distance[a][b] = a == b ? 0 : n->link[a][b] ? 1 : 1000;
    for (uint32_t via = 0; via < n->nodes; via++)
        for (uint32_t a = 0; a < n->nodes; a++)
            for (uint32_t b = 0; b < n->nodes; b++)
                if (n->distance[a][via] + n->distance[via][b] < n->distance[a][b])
                    n->distance[a][b] = n->distance[a][via] + n->distance[via][b];
}

static struct torus parse(const char *text)
{
    struct torus t;
    struct error e;
    assert_success(torus_parse(&t, text, &e), e);
    return t;
}

/* Each link of the network is one port at each end, which are each other's opposite, one of which
 * dials; each name leads back to its port. */
static void check_ports(const struct torus *t, const struct network *n)
{
    for (uint32_t node = 0; node < t->nodes; node++) {
        uint32_t found = 0, expected = 0;
        for (uint32_t other = 0; other < t->nodes; other++)
            expected += n->link[node][other];
        for (unsigned port = 0; port < torus_ports(t); port++) {
            uint32_t there = torus_neighbour(t, node, port);
            unsigned back = torus_port_opposite(t, port);
            char name[TORUS_PORT_NAME_SIZE];
            assert_int_equal(torus_port(t, torus_port_dim(t, port), torus_port_direction(t, port)),
                             port);
            if (there == TORUS_NO_NODE) {
                assert_false(torus_port_dials(t, node, port));
                continue;
            }
            found++;
            assert_true(n->link[node][there]);
            assert_int_equal(torus_neighbour(t, there, back), node);
            assert_int_equal(torus_port_opposite(t, back), port);
            assert_true(torus_port_dials(t, node, port) != torus_port_dials(t, there, back));
            assert_int_equal(torus_port_parse(t, node, torus_port_name(t, node, port, name)), port);
        }
        assert_int_equal(found, expected);
    }
}

/* The first node of one dimension whose farthest node is as near as possible. */
static void check_centre(const struct torus *t, const struct network *n)
{
    uint32_t centre = 0, least = UINT32_MAX;

    for (uint32_t a = 0; t->dims == 1 && t->graph[0] != NULL && a < t->nodes; a++) {
        uint32_t farthest = 0;
        for (uint32_t b = 0; b < t->nodes; b++)
            farthest = n->distance[a][b] > farthest ? n->distance[a][b] : farthest;
        if (farthest < least) {
            least = farthest;
            centre = a;
        }
    }
    if (least == UINT32_MAX)
        return;
    assert_int_equal(torus_centre(t, 0), centre);
    assert_int_equal(t->graph[0]->radius, least);
}

static void check_distances(const struct torus *t, struct network *n)
{
    uint32_t farthest = 0;

    find_distances(n);
    for (uint32_t a = 0; a < t->nodes; a++)
        for (uint32_t b = 0; b < t->nodes; b++) {
            assert_int_equal(torus_distance(t, a, b), n->distance[a][b]);
            farthest = n->distance[a][b] > farthest ? n->distance[a][b] : farthest;
        }
    assert_int_equal(torus_diameter(t), farthest);
    check_centre(t, n);
}

/* Moving all nodes by the period along any dimension maps each port to the same port. */
static void check_moves(const struct torus *t)
{
    uint32_t period[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];

    torus_full_period(t, period);
    for (uint32_t node = 0; node < t->nodes; node++)
        for (unsigned dim = 0; dim < t->dims; dim++)
            for (unsigned port = 0; port < torus_ports(t); port++) {
                uint32_t there = torus_neighbour(t, node, port);
                torus_coordinates(t, node, at);
                at[dim] = (at[dim] + period[dim]) % t->size[dim];
                if (there == TORUS_NO_NODE) {
                    assert_int_equal(torus_neighbour(t, torus_rank(t, at), port), TORUS_NO_NODE);
                    continue;
                }
                torus_coordinates(t, there, to);
                to[dim] = (to[dim] + period[dim]) % t->size[dim];
                assert_int_equal(torus_neighbour(t, torus_rank(t, at), port), torus_rank(t, to));
            }
}

/* From each root, the parents of all nodes lead to it by shortest paths, and children know them. */
static void check_trees(const struct torus *t)
{
    for (uint32_t root = 0; root < t->nodes; root++) {
        uint32_t children = 0;
        for (uint32_t node = 0; node < t->nodes; node++) {
            struct tree_node here;
            tree_node(t, root, node, &here);
            children += here.children;
            for (unsigned i = 0; i < here.children; i++) {
                struct tree_node child;
                tree_node(t, root, torus_neighbour(t, node, here.child[i]), &child);
                assert_int_equal(child.parent, torus_port_opposite(t, here.child[i]));
            }
            if (node == root) {
                assert_int_equal(here.parent, -1);
                continue;
            }
            uint32_t above = torus_neighbour(t, node, (unsigned)here.parent);
            assert_int_equal(torus_distance(t, root, above) + 1, torus_distance(t, root, node));
        }
        assert_int_equal(children, t->nodes - 1);
    }
}

static void check(const struct torus *t, struct network *n)
{
    assert_int_equal(t->nodes, n->nodes);
    check_ports(t, n);
    check_distances(t, n);
    check_moves(t);
    check_trees(t);
}

/* The product of a network with `n` nodes and another factor: copies that are joined along it. */
static void times(struct network *n, const struct network *factor)
{
    struct network *product = calloc(1, sizeof *product);

    assert_non_null(product);
    product->nodes = n->nodes * factor->nodes;
    assert_true(product->nodes <= MOST);
    for (uint32_t a = 0; a < product->nodes; a++)
        for (uint32_t b = 0; b < product->nodes; b++) {
            uint32_t a0 = a / factor->nodes, b0 = b / factor->nodes;
            uint32_t a1 = a % factor->nodes, b1 = b % factor->nodes;
            if ((a0 == b0 && factor->link[a1][b1]) || (a1 == b1 && n->link[a0][b0]))
                join(product, a, b);
        }
    *n = *product;
    free(product);
}

/* The network is overwritten by the fourth that is made after it. */
static struct network *new_network(uint32_t nodes)
{
    static struct network made[4];
    static unsigned count;
    struct network *n = &made[count++ % 4];

    *n = (struct network){.nodes = nodes};
    return n;
}

static struct network *complete(uint32_t nodes)
{
    struct network *n = new_network(nodes);

    for (uint32_t a = 0; a < nodes; a++)
        for (uint32_t b = 0; b < a; b++)
            join(n, a, b);
    return n;
}

static struct network *star(uint32_t nodes)
{
    struct network *n = new_network(nodes);

    for (uint32_t a = 1; a < nodes; a++)
        join(n, 0, a);
    return n;
}

static struct network *path(uint32_t nodes, bool ring)
{
    struct network *n = new_network(nodes);

    for (uint32_t a = 0; a + 1 < nodes; a++)
        join(n, a, a + 1);
    if (ring)
        join(n, nodes - 1, 0);
    return n;
}

static struct network *binary_tree(uint32_t nodes)
{
    struct network *n = new_network(nodes);

    for (uint32_t a = 1; a < nodes; a++)
        join(n, a, (a - 1) / 2);
    return n;
}

static struct network *petersen(void)
{
    struct network *n = new_network(10);

    for (uint32_t i = 0; i < 5; i++) {
        join(n, i, (i + 1) % 5);
        join(n, i, i + 5);
        join(n, 5 + i, 5 + (i + 2) % 5);
    }
    return n;
}

/* Writes the edges of a network to a file, whose path it returns. */
static const char *write_edges(const struct network *n)
{
    const char *path = file_of("", 0);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    (void)fprintf(file, "# edges\n\n");
    for (uint32_t a = 0; a < n->nodes; a++)
        for (uint32_t b = a + 1; b < n->nodes; b++)
            if (n->link[a][b])
                (void)fprintf(file, "%u\t%u # %u\r\n", b, a, a);
    assert_int_equal(fclose(file), 0);
    return path;
}

TEST(named_graphs)
{
    for (uint32_t nodes = 2; nodes <= 33; nodes++) {
        char text[20];
        (void)snprintf(text, sizeof text, "complete:%u", nodes);
        struct torus t = parse(text);
        assert_int_equal(torus_ports(&t), nodes - 1);
        check(&t, complete(nodes));
        (void)snprintf(text, sizeof text, "star:%u", nodes);
        t = parse(text);
        assert_int_equal(torus_ports(&t), nodes - 1);
        check(&t, star(nodes));
    }
    struct torus t = parse("tree:2^3");
    assert_int_equal(torus_ports(&t), 3);
    check(&t, binary_tree(15));
}

TEST(products)
{
    struct network *n = path(5, true);

    times(n, complete(3));
    struct torus t = parse("5 x complete:3");
    check(&t, n);
    times(n, path(2, false));
    times(n, star(4));
    t = parse("5xcomplete:3x2mxstar:4");
    check(&t, n);
    assert_int_equal(torus_ports(&t), 2 + 2 + 2 + 3);
    char text[TORUS_TEXT_SIZE];
    assert_string_equal(torus_format(&t, text), "5 x complete:3 x 2m x star:4");
    struct torus again = parse(text);
    assert_true(torus_equal(&t, &again));
}

TEST(hypercube_is_a_power)
{
    struct torus t = parse("2m^5"), same = parse("2mx2mx2mx2mx2m"), line = parse("2 x line:2");

    assert_true(torus_equal(&t, &same));
    assert_true(torus_is_plain(&t));
    struct torus other = parse("ring:2x2m");
    assert_true(torus_equal(&line, &other));
}

TEST(names_of_ports)
{
    struct torus t = parse("complete:4 x 3");
    char name[TORUS_PORT_NAME_SIZE];
    uint32_t at[] = {2, 1}, node = torus_rank(&t, at);
    int port = torus_port_parse(&t, node, "0:3");
    assert_true(port >= 0);
    at[0] = 3;
    assert_int_equal(torus_neighbour(&t, node, (unsigned)port), torus_rank(&t, at));
    assert_true(torus_port_dials(&t, node, (unsigned)port));
    assert_false(torus_port_dials(&t, node, (unsigned)torus_port_parse(&t, node, "0:1")));
    assert_string_equal(torus_port_name(&t, node, (unsigned)torus_port_parse(&t, node, "+1"), name),
                        "+1");
    static const char *const bad[] = {"0:2", "0:4", "1:0", "+0", "-0", "0:", "0", "0:?", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(torus_port_parse(&t, node, bad[i]), -1);
}

TEST(graph_from_a_file)
{
    struct network *n = petersen();
    const char *file = write_edges(n);
    char text[64], format[TORUS_TEXT_SIZE];

    (void)snprintf(text, sizeof text, "graph:%s", file);
    struct torus t = parse(text);
    check(&t, n);
    assert_true(torus_ports(&t) <= 4); /* at most one more than the links of a node */
    assert_memory_equal(torus_format(&t, format), "graph:10:", 9);
    struct torus again = parse(format);
    assert_true(torus_equal(&t, &again));
    (void)snprintf(text, sizeof text, "graph:%s x 3", file);
    t = parse(text);
    times(n, path(3, true));
    check(&t, n);
}

static const struct graph *of_network(const struct network *n)
{
    uint32_t edge[2 * 64 * 64];
    size_t count = 0;
    struct error e;

    for (uint32_t a = 0; a < n->nodes; a++)
        for (uint32_t b = a + 1; b < n->nodes; b++)
            if (n->link[a][b]) {
                edge[2 * count] = b;
                edge[2 * count++ + 1] = a;
            }
    const struct graph *g = graph_of_edges(edge, count, &e);
    if (g == NULL)
        fail_msg("%s", e.text);
    assert_ptr_equal(graph_of_edges(edge, count, &e), g);
    return g;
}

/* Random graphs of all densities are coloured with at most one colour more than a node has links. */
TEST(random_graphs)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        uint32_t nodes = 2 + seed % 30, most = 0;
        struct network *n = path(nodes, false);
        unsigned state_of_chance = seed;
        for (uint32_t a = 0; a < nodes; a++)
            for (uint32_t b = 0; b < a; b++)
                if ((unsigned)rand_r(&state_of_chance) % 100 < seed / 2)
                    join(n, a, b);
        for (uint32_t a = 0; a < nodes; a++) {
            uint32_t links = 0;
            for (uint32_t b = 0; b < nodes; b++)
                links += n->link[a][b];
            most = links > most ? links : most;
        }
        struct torus t = {.nodes = 1};
        const struct graph *g = of_network(n);
        assert_true(g->directions <= most + 1);
        assert_int_equal(torus_append(&t, 0, false, g), 0);
        check(&t, n);
    }
}

TEST(bad_edges_are_refused)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "at least one edge"},
        {"# nothing\n", "at least one edge"},
        {"0 0\n", "from a node to itself"},
        {"0 1\n1 0\n", "is there twice"},
        {"0 1\n2 3\n", "no edges connect node 0 with node 2"},
        {"0 2\n", "node 1 of 0 to 2 has no edge"},
        {"0 1\n1 x\n", "line 2"},
        {"0 1 2\n", "more behind them"},
        {"0\n", "line 1"},
        {"-1 0\n", "line 1"},
        {"0 1024\n", "at most 1024 nodes"},
        {"0 99999999999999999999\n", "at most 1024 nodes"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *path = text_file(bad[i].text);
        struct error e;

        assert_null(graph_read(path, &e));
        assert_int_equal(e.code, ERROR_USAGE);
        assert_contains(e.text, path);
        assert_contains(e.text, bad[i].says);
    }
}

/* What a cut or the sum of distances proves: by hand. */
TEST(bounds)
{
    struct torus t = parse("complete:4");

    assert_true(torus_bound_all_port(&t) == 1);
    t = parse("star:5"); /* 4 blocks to and from each leaf */
    assert_true(torus_bound_all_port(&t) == 4);
    t = parse("5 x complete:3"); /* the ring: 3 lines of 6 blocks over 2 links */
    assert_true(torus_bound_all_port(&t) == 9);
    t = parse("tree:2^3"); /* 7 x 8 blocks over a link of the root */
    assert_true(torus_bound_all_port(&t) == 56);
    assert_true(torus_bound_broadcast(&t) == 14);
    assert_true(torus_bound_reduce(&t) == 1);
}

/* The complete exchange within one graph: every block arrives on a shortest path, no node has two
 * sends or two receives in a step (no channel two blocks), and how many steps it takes. */

/* Node i is linked to i + a and i + b, modulo n. */
static const struct graph *circulant(uint32_t n, uint32_t a, uint32_t b)
{
    struct network *made = new_network(n);

    for (uint32_t i = 0; i < n; i++) {
        join(made, i, (i + a) % n);
        join(made, i, (i + b) % n);
    }
    return of_network(made);
}

static const struct graph *line(uint32_t n)
{
    return of_network(path(n, false));
}

/* A cycle of all nodes, and `count` other edges. */
static const struct graph *random_graph(uint32_t nodes, uint32_t count, unsigned seed)
{
    struct network *n = path(nodes, true);

    while (count > 0) {
        uint32_t a = (uint32_t)rand_r(&seed) % nodes, b = (uint32_t)rand_r(&seed) % nodes;
        if (a == b || n->link[a][b])
            continue;
        join(n, a, b);
        count--;
    }
    return of_network(n);
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
static uint32_t check_exchange(const struct graph *g, enum graph_ports ports)
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
    uint32_t busiest = check_exchange(g, GRAPH_ONE_PORT),
             steps = graph_exchange(g, GRAPH_ONE_PORT)->steps;
    double average = (double)graph_hops(g) / g->nodes;

    assert_int_equal(steps, busiest);
    assert_true(steps >= graph_relayed_most(g) + g->nodes - 1);
    assert_true(steps + 1e-9 >= average);
    check_exchange(g, GRAPH_ALL_PORTS);
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
    check_both(of_network(petersen()));
    assert_int_equal(graph_exchange(of_network(petersen()), GRAPH_ONE_PORT)->steps, 15);
}

/* Checks that the moves are automorphisms, that the move of node s takes node 0 to it, and that one after another they
 * are moves again. */
static void check_group(const struct graph *g, const uint16_t *moves)
{
    uint32_t n = g->nodes;

    for (uint32_t s = 0; s < n; s++) {
        const uint16_t *move = moves + (size_t)s * n;
        assert_int_equal(move[0], s);
        for (uint32_t a = 0; a < n; a++) {
            for (uint32_t b = 0; b < n; b++) {
                assert_int_equal(graph_distance(g, move[a], move[b]) == 1,
                                 graph_distance(g, a, b) == 1);
                assert_int_equal(move[moves[(size_t)a * n + b]], moves[(size_t)move[a] * n + b]);
            }
        }
    }
}

/* Section 4.1: with one port, the route of a block is that of a block of node 0, moved to its source, in the same steps.
 * In each step all nodes send, so that no exchange takes less. */
static void check_moved_paths(const struct graph *g, const uint16_t *moves)
{
    const struct graph_exchange *x = graph_exchange(g, GRAPH_ONE_PORT);
    uint32_t n = g->nodes;

    assert_int_equal(x->steps, graph_status(g, 0));
    for (uint32_t s = 0; s < n; s++) {
        const uint16_t *move = moves + (size_t)s * n;
        for (uint32_t d = 0; d < n; d++) {
            const struct graph_hop *first = graph_exchange_path(x, 0, d);
            const struct graph_hop *moved = graph_exchange_path(x, s, move[d]);
            for (uint32_t i = 0, at = 0, there = s; i < graph_distance(g, 0, d); i++) {
                assert_int_equal(moved[i].step, first[i].step);
                at = graph_neighbour(g, at, first[i].direction);
                there = graph_neighbour(g, there, moved[i].direction);
                assert_int_equal(there, move[at]);
            }
        }
    }
}

static void check_cayley(const struct graph *g)
{
    uint16_t *moves;

    assert_int_equal(graph_group(g, &moves), 1);
    check_group(g, moves);
    check_both(g);
    check_moved_paths(g, moves);
    free(moves);
}

/* The products of some rings as one graph: node i in the order of a torus. */
static const struct graph *torus_graph(const char *text)
{
    struct torus t = parse(text);
    struct network *n = new_network(t.nodes);

    for (uint32_t node = 0; node < t.nodes; node++)
        for (unsigned port = 0; port < torus_ports(&t); port++)
            if (torus_neighbour(&t, node, port) != TORUS_NO_NODE)
                join(n, node, torus_neighbour(&t, node, port));
    return of_network(n);
}

/* The group of 12 even permutations of four places, by two rotations of three places: no generator is its own
 * inverse. Its nodes are those of the star graph without the odd ones. */
static const struct graph *rotations(void)
{
    struct network *n = new_network(12);
    uint32_t even[PERMUTATIONS], count = 0;

    for (uint32_t node = 0; node < PERMUTATIONS; node++) {
        uint8_t at[PLACES];
        uint32_t inversions = 0;
        permutation(node, at);
        for (uint32_t i = 0; i < PLACES; i++)
            for (uint32_t j = 0; j < i; j++)
                inversions += at[j] > at[i];
        even[node] = inversions % 2 == 0 ? count++ : UINT32_MAX;
    }
    for (uint32_t node = 0; node < PERMUTATIONS; node++) {
        uint8_t at[PLACES];
        permutation(node, at);
        uint8_t first[] = {at[1], at[2], at[0], at[3]}, second[] = {at[0], at[2], at[3], at[1]};
        if (even[node] == UINT32_MAX)
            continue;
        join(n, even[node], even[permutation_number(first)]);
        join(n, even[node], even[permutation_number(second)]);
    }
    return of_network(n);
}

TEST(cayley_graphs_are_optimal)
{
    static const uint32_t steps[PERMUTATION_GRAPHS] = {62, 72, 60};
    static const char *const tori[] = {"2mx2mx2m", "3x5", "4x4x4", "2mx7", "5x6", "2mx2mx2mx2mx2m"};

    for (unsigned i = 0; i < PERMUTATION_GRAPHS; i++) {
        const struct graph *g = permutation_graph(i);
        assert_false(g->moves);
        check_cayley(g);
        assert_int_equal(graph_exchange(g, GRAPH_ONE_PORT)->steps, steps[i]);
    }
    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++)
        check_cayley(torus_graph(tori[i]));
    check_cayley(rotations());
}

TEST(other_graphs_have_no_group)
{
    uint16_t *moves = NULL;
    struct error e;

    assert_int_equal(graph_group(of_network(petersen()), &moves), 0);
    assert_int_equal(graph_group(line(5), &moves), 0);
    assert_int_equal(graph_group(graph_star(4, &e), &moves), 0);
    assert_int_equal(graph_group(random_graph(20, 10, 1), &moves), 0);
    assert_null(moves);
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
