/* Products of rings, arrays and complete graphs: distances, statuses and bounds against plain
 * counts over the graph, and the one-port exchanges carried out block by block. On tori and meshes
 * these exchanges are a1 and a2. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "daemon/lib/schedule/product.h"
#include "tests/contract/contract.h"
#include "tests/contract/graphs.h"
#include "tests/support/cmocka.h"
#include "tests/support/permutation_graphs.h"

static const enum factor_kind graphs[] = {FACTOR_RING, FACTOR_ARRAY, FACTOR_COMPLETE};

static const char *const networks[] = {"ring:1",
                                       "array:1 x complete:1",
                                       "ring:12 x ring:9",
                                       "array:6 x array:5",
                                       "ring:4 x array:3 x complete:5",
                                       "complete:3 x complete:4 x complete:2",
                                       "complete:2^6",
                                       "ring:4^3",
                                       "array:3^4"};

/* Distances from `node` by breadth-first search. */
static void search(const struct product *p, uint32_t node, uint32_t *distance)
{
    uint32_t *queue = calloc(p->nodes, sizeof *queue);
    uint32_t end = 0;

    assert_non_null(queue);
    for (uint32_t i = 0; i < p->nodes; i++)
        distance[i] = UINT32_MAX;
    distance[node] = 0;
    queue[end++] = node;
    for (uint32_t begin = 0; begin < end; begin++) {
        for (uint32_t i = 0; i < p->nodes; i++) {
            if (distance[i] == UINT32_MAX && graph_adjacent(p, queue[begin], i)) {
                distance[i] = distance[queue[begin]] + 1;
                queue[end++] = i;
            }
        }
    }
    assert_int_equal(end, p->nodes);
    free(queue);
}

static void check_distances(const struct product *p)
{
    uint32_t *distance = calloc(p->nodes, sizeof *distance);
    uint64_t least = UINT64_MAX, most = 0, total = 0;
    uint32_t diameter = 0;

    assert_non_null(distance);
    for (uint32_t a = 0; a < p->nodes; a++) {
        uint64_t status = 0;
        search(p, a, distance);
        for (uint32_t b = 0; b < p->nodes; b++) {
            assert_int_equal(product_distance(p, a, b), distance[b]);
            status += distance[b];
            diameter = distance[b] > diameter ? distance[b] : diameter;
        }
        assert_int_equal(product_status(p, a), status);
        least = status < least ? status : least;
        most = status > most ? status : most;
        total += status;
    }
    assert_int_equal(product_diameter(p), diameter);
    assert_int_equal(product_least_status(p), least);
    assert_int_equal(product_most_status(p), most);
    assert_close(product_average_status(p), (double)total / p->nodes);
    if (p->nodes > 1)
        assert_close(product_average_distance(p), (double)total / p->nodes / (p->nodes - 1));
    free(distance);
}

/* An exchange carried out: blocks on every link in every step. */
struct traffic {
    const struct product *p;
    uint32_t steps;
    uint32_t *blocks; /* (step, node): blocks that it sends in the step */
    uint32_t *to;     /* (step, node): the node that it sends to */
    uint32_t *from;   /* (step, node): the node that it receives from; TORUS_NO_NODE: none */
};

static void send_block(struct traffic *t, uint32_t step, uint32_t from, uint32_t to)
{
    assert_true(step < t->steps);
    assert_true(graph_adjacent(t->p, from, to));
    uint32_t *out = &t->to[(size_t)step * t->p->nodes + from];
    uint32_t *in = &t->from[(size_t)step * t->p->nodes + to];

    assert_true(*out == TORUS_NO_NODE || *out == to);
    assert_true(*in == TORUS_NO_NODE || *in == from);
    *out = to;
    *in = from;
    t->blocks[(size_t)step * t->p->nodes + from]++;
}

static void check_exchange_by(const struct product *p, enum product_algorithm how)
{
    struct traffic t = {.p = p, .steps = (uint32_t)product_steps(p, how)};
    size_t places = (size_t)(t.steps + 1) * p->nodes;
    uint64_t transmission = 0;

    t.blocks = calloc(places, sizeof *t.blocks);
    t.to = malloc(places * sizeof *t.to);
    t.from = malloc(places * sizeof *t.from);
    assert_true(t.blocks && t.to && t.from);
    memset(t.to, 0xff, places * sizeof *t.to);
    memset(t.from, 0xff, places * sizeof *t.from);

    for (uint32_t s = 0; s < p->nodes; s++) {
        for (uint32_t d = 0; d < p->nodes; d++) {
            struct product_walk walks[PRODUCT_MAX_DIMS];
            unsigned count = product_route(p, how, s, d, walks);
            uint32_t here = s, next_step = 0, hops = 0;
            for (unsigned i = 0; i < count; i++) {
                assert_true(walks[i].walk.step >= next_step);
                next_step = walks[i].walk.step + walks[i].walk.hops;
                hops += walks[i].walk.hops;
                for (uint32_t step = walks[i].walk.step; step < next_step; step++) {
                    uint32_t next = graph_moved(p, here, walks[i].dim, walks[i].walk.stride);
                    send_block(&t, step, here, next);
                    here = next;
                }
            }
            assert_int_equal(here, d);
            assert_int_equal(hops, product_distance(p, s, d));
        }
    }
    for (uint32_t step = 0; step < t.steps; step++) {
        uint32_t most = 0;
        for (uint32_t node = 0; node < p->nodes; node++) {
            uint32_t blocks = t.blocks[(size_t)step * p->nodes + node];
            most = blocks > most ? blocks : most;
        }
        assert_true(most > 0);
        transmission += most;
    }
    assert_int_equal(transmission, product_blocks(p, how));
    assert_true((double)transmission >= product_bound_single_hops(p) - 1e-9);
    assert_true((double)transmission >= product_bound_all_port(p));
    free(t.blocks);
    free(t.to);
    free(t.from);
}

static void check_exchange(const struct product *p)
{
    check_exchange_by(p, PRODUCT_A1);
    check_exchange_by(p, PRODUCT_A2);
}

/* Theorem 3: optimal if every dimension is, which holds for rings and complete graphs. */
static void check_optimality(const struct product *p)
{
    for (unsigned i = 0; i < p->dims; i++)
        if (p->factor[i].kind == FACTOR_ARRAY && p->factor[i].nodes > 2)
            return;
    assert_close(product_bound_single_hops(p), (double)product_blocks(p, PRODUCT_A2));
}

TEST(single_dimensions)
{
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        for (uint32_t n = 1; n <= 24; n++) {
            struct product p = {.dims = 1, .factor = {{.kind = graphs[i], .nodes = n}}, .nodes = n};
            check_distances(&p);
            check_exchange(&p);
            check_optimality(&p);
        }
    }
}

TEST(products)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct product p = graph_parse(networks[i]);
        check_distances(&p);
        check_exchange(&p);
        check_optimality(&p);
    }
    for (uint32_t a = 1; a <= 5; a++) {
        for (uint32_t b = 1; b <= 5; b++) {
            for (size_t g = 0; g < 9; g++) {
                struct product p = {.dims = 2,
                                    .factor = {{.kind = graphs[g / 3], .nodes = a},
                                               {.kind = graphs[g % 3], .nodes = b}},
                                    .nodes = a * b};
                check_distances(&p);
                check_exchange(&p);
                check_optimality(&p);
            }
        }
    }
}

/* The best cut of one dimension into two halves, found by trying all sets of half of the nodes. */
TEST(cuts)
{
    for (size_t g = 0; g < sizeof graphs / sizeof graphs[0]; g++) {
        for (uint32_t n = 3; n <= 12; n++) {
            struct factor f = {.kind = graphs[g], .nodes = n};
            double best = 0;
            for (uint32_t set = 1; set < (1u << n) - 1; set++) {
                uint32_t inside = 0, links = 0;
                for (uint32_t a = 0; a < n; a++) {
                    inside += set >> a & 1;
                    for (uint32_t b = 0; b < n; b++)
                        links +=
                            (set >> a & 1) && !(set >> b & 1) && a != b && graph_linked(&f, a, b);
                }
                double load = (double)inside * (n - inside) / links;
                best = load > best ? load : best;
            }
            assert_close(factor_cut(&f), best);
        }
    }
}

/* Known closed forms: the average distance of hypercubes is (d/2) * 2^d/(2^d - 1), that of
 * generalized hypercubes as in section 3.1, and tori have the bound of torus.h. */
TEST(known_averages)
{
    for (uint32_t d = 1; d <= 20; d++) {
        char text[32];
        (void)snprintf(text, sizeof text, "complete:2^%u", d);
        struct product p = graph_parse(text);
        double n = p.nodes;
        assert_int_equal(p.nodes, 1u << d);
        assert_close(product_average_distance(&p), d / 2.0 * n / (n - 1));
        assert_int_equal(product_steps(&p, PRODUCT_A2), d);
        assert_int_equal(product_blocks(&p, PRODUCT_A2), d * (p.nodes / 2));
    }
    struct product p = graph_parse("complete:3 x complete:4 x complete:5");
    assert_close(product_average_distance(&p), (60. * 3 - 20 - 15 - 12) / 59);
    for (uint32_t a = 1; a <= 12; a++) {
        for (uint32_t b = 1; b <= 12; b++) {
            for (unsigned wrap = 0; wrap < 4; wrap++) {
                struct torus t = contract_rectangle(a, b);
                t.wrap[0] = (wrap & 1) != 0;
                t.wrap[1] = (wrap & 2) != 0;
                p = product_of_torus(&t);
                assert_close(product_bound_all_port(&p), torus_bound_all_port(&t));
                assert_close(product_bound_one_port(&p), torus_bound_one_port(&t));
                for (uint32_t i = 0; i < t.nodes; i++)
                    assert_int_equal(product_distance(&p, 0, i), torus_distance(&t, 0, i));
            }
        }
    }
}

TEST(texts)
{
    static const struct {
        const char *text, *formatted;
    } good[] = {{"ring:8", "ring:8"},
                {"ring:8xarray:4xcomplete:3", "ring:8 x array:4 x complete:3"},
                {" ring:8  x array:4 ", "ring:8 x array:4"},
                {"complete:2^3 x complete:2", "complete:2^4"},
                {"complete:2 x ring:2 x ring:2", "complete:2 x ring:2^2"},
                {"array:1048576", "array:1048576"},
                {"8x4m x complete:64", "ring:8 x array:4 x complete:64"},
                {"complete:2^20", "complete:2^20"},
                {"star:5 x tree:2^3^2", "star:5 x tree:2^3^2"}};
    static const struct {
        const char *text, *says;
    } bad[] = {{"", "expected a factor"},
               {"moebius:8", "\"moebius:8\""},
               {"ring", "\"ring\""},
               {"ring:", "expected a factor"},
               {"ring:0", "sizes start at 1"},
               {"complete:0", "sizes start at 1"},
               {"ring:99999999999999", "more than 1048576 nodes"},
               {"complete:1048577", "more than 1048576 nodes"},
               {"ring:8 y ring:8", "not \"y ring:8\""},
               {"ring:8 x", "expected a factor"},
               {"ring:8 ring:8", "expected x between sizes"},
               {"ring:2^0", "a number of dimensions"},
               {"ring:2^", "a number of dimensions"},
               {"ring:1^21", "more than 20 dimensions"},
               {"ring:1^4294967295", "more than 20 dimensions"},
               {"ring:1^20 x ring:1", "more than 20 dimensions"},
               {"star:40", "2 to 33 nodes"},
               {"tree:2^0", "at least one branch"},
               {"ring:1024^3", "more than 1048576 nodes"}};
    char text[PRODUCT_TEXT_SIZE];

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct product p = graph_parse(good[i].text);
        assert_string_equal(product_format(&p, text), good[i].formatted);
        struct product again = graph_parse(text);
        assert_int_equal(again.dims, p.dims);
        assert_int_equal(again.nodes, p.nodes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct product p;
        struct error e = {.code = ERROR_NONE};
        assert_fails(product_parse(&p, bad[i].text, &e), e, ERROR_USAGE, "");
        if (strstr(e.text, bad[i].says) == NULL)
            fail_msg("\"%s\": %s", bad[i].text, e.text);
    }
    assert_string_equal(factor_kind_name((enum factor_kind)9), "unknown");
}

/* a1 and a2 on products with stars, trees and other graphs: the messages of the paper's Fig. 3 and 4 in
 * the order of their lines, corollary 2, and the bounds. */

static const char *const graph_products[] = {
    "star:5",
    "star:4 x 5",
    "5 x star:4",
    "tree:2^2 x 3m",
    "4m x tree:2^1",
    "star:3 x complete:4",
    "tree:2^1 x star:4",
    "star:3 x 2m x tree:2^1",
    "complete:3 x tree:2^2",
    "4 x star:3 x 3",
};

#define NETWORKS (sizeof graph_products / sizeof graph_products[0])

static struct torus with_random_graph(void)
{
    static const uint32_t edge[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 0, 2, 4, 5, 5, 6, 6, 1};
    struct torus t = {.nodes = 1};
    struct error e;

    assert_int_equal(torus_append(&t, 3, true, NULL), 0);
    assert_int_equal(torus_append(&t, 0, false, graph_of_edges(edge, 9, &e)), 0);
    return t;
}

/* Section 4.1: products with Cayley graphs that are not cyclic, for which theorem 3 promises the bound. */
static struct torus with_permutations(enum permutation_graph graph, const char *other)
{
    struct torus t = contract_torus(other);

    assert_int_equal(torus_append(&t, 0, false, permutation_graph(graph)), 0);
    return t;
}

/* Steps of the exchange in one dimension, by the numbers of the paper's section 4 and of
 * test_graph.c. */
static uint32_t steps_of(const struct torus *t, unsigned dim)
{
    uint32_t n = t->size[dim];

    if (t->graph[dim] != NULL && t->graph[dim]->kind != GRAPH_KIND_COMPLETE)
        return graph_exchange(t->graph[dim], GRAPH_ONE_PORT)->steps;
    if (t->graph[dim] != NULL || t->wrap[dim] || n <= 2)
        return n - 1;
    return 2 * (n - 1) + (n % 2 == 0);
}

static uint64_t blocks_of(const struct torus *t, unsigned dim)
{
    uint64_t n = t->size[dim];

    if (t->graph[dim] != NULL)
        return steps_of(t, dim);
    return t->wrap[dim] ? n * n / 4 : (n * n - 1) / 2;
}

/* ---- A2 -------------------------------------------------------------------------------------- */

/* Fig. 4, for every pair of dimensions before it and itself: all blocks move within the last dimension,
 * then within the one before it, and so on; in each one a total exchange for every choice of the other
 * coordinates of source and destination. So the part of a route in a dimension must be the same
 * for all blocks with these two coordinates there. */
static void check_a2(const struct torus *t)
{
    const struct algorithm *a2 = algorithm_find("a2");
    struct schedule_report r = contract_verify(t, "a2");
    uint32_t begin[TORUS_MAX_DIMS], from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], startups = 0;
    uint64_t blocks = 0;

    for (unsigned i = t->dims; i-- > 0; startups += steps_of(t, i)) {
        begin[i] = startups;
        blocks += t->nodes / t->size[i] * blocks_of(t, i);
    }
    assert_int_equal(r.startups, startups);
    assert_int_equal(r.transmission, blocks); /* corollary 2 */
    assert_true((double)r.transmission >= r.bound);
    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t d = 0; d < t->nodes; d++) {
            struct leg legs[64], part[64];
            uint32_t count = s == d ? 0 : algorithm_route(a2, t, s, d, 0, legs), leg = 0;
            torus_coordinates(t, s, from);
            torus_coordinates(t, d, to);
            for (unsigned i = t->dims; i-- > 0;) {
                uint32_t at[TORUS_MAX_DIMS] = {0}, other[TORUS_MAX_DIMS] = {0};
                at[i] = from[i];
                other[i] = to[i];
                if (from[i] == to[i])
                    continue;
                uint32_t hops =
                    algorithm_route(a2, t, torus_rank(t, at), torus_rank(t, other), 0, part);
                assert_int_equal(hops, torus_dim_distance(t, i, from[i], to[i]));
                for (uint32_t k = 0; k < hops; k++, leg++) {
                    assert_int_equal(legs[leg].dim, i);
                    assert_int_equal(legs[leg].step, part[k].step);
                    assert_int_equal(legs[leg].direction, part[k].direction);
                    assert_in_range(legs[leg].step, begin[i], begin[i] + steps_of(t, i) - 1);
                }
            }
            assert_int_equal(leg, count);
        }
}

TEST(a2_is_the_papers)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = contract_torus(graph_products[i]);
        contract_check(&t, algorithm_find("a2"));
        contract_check_no_gaps(&t, "a2");
        check_a2(&t);
    }
    struct torus t = with_random_graph();
    contract_check(&t, algorithm_find("a2"));
    check_a2(&t);
}

TEST(a2_is_optimal_on_cayley_graphs)
{
    static const char *const others[] = {"1", "5", "complete:3"};
    static const uint32_t status[PERMUTATION_GRAPHS] = {62, 72, 60}, of_others[] = {0, 6, 2};

    for (unsigned graph = 0; graph < PERMUTATION_GRAPHS; graph++)
        for (unsigned i = 0; i < 3; i++) {
            struct torus t = with_permutations(graph, others[i]);
            struct schedule_report r = contract_verify(&t, "a2");
            contract_check(&t, algorithm_find("a2"));
            check_a2(&t);
            assert_true(r.transmission == r.bound);
            assert_int_equal(r.transmission, t.nodes / 24 * status[graph] + 24 * of_others[i]);
            assert_int_equal(r.critical_path, r.transmission);
        }
}

/* ---- A1 -------------------------------------------------------------------------------------- */

/* The steps of A1 in the first `dims` dimensions: lines 1 to 4 take a step for each hop of each message
 * in the last of them, lines 5 to 7 as many exchanges in the others as it has nodes. */
static uint32_t a1_steps(const struct torus *t, unsigned dims)
{
    uint32_t hops = 0, n = t->size[dims - 1];

    if (dims == 1)
        return steps_of(t, 0);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t k = 0; k < n; k++)
            hops += torus_dim_distance(t, dims - 1, j, k);
    return hops + n * a1_steps(t, dims - 1);
}

/* Fig. 3, improved: in B, u_0 sends to u_0, u_1 ... one message after another, then u_1 does. Then
 * exchange j within the copies of A moves the blocks that come from copy j. */
static void check_a1(const struct torus *t)
{
    const struct algorithm *a1 = algorithm_find("a1");
    unsigned b = t->dims - 1;
    uint32_t n = t->size[b], begin = 0, all = a1_steps(t, t->dims);
    uint32_t *of = calloc((size_t)n * n, sizeof *of), within = a1_steps(t, b);

    assert_non_null(of);
    assert_int_equal(contract_verify(t, "a1").startups, all);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t k = 0; k < n; k++) {
            of[j * n + k] = begin;
            begin += torus_dim_distance(t, b, j, k);
        }
    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t d = 0; d < t->nodes; d++) {
            struct leg legs[64];
            uint32_t count = s == d ? 0 : algorithm_route(a1, t, s, d, 0, legs), leg = 0;
            uint32_t j = s % n, k = d % n, hops = torus_dim_distance(t, b, j, k);
            for (; leg < count && legs[leg].dim == b; leg++)
                assert_int_equal(legs[leg].step, of[j * n + k] + leg);
            assert_int_equal(leg, hops);
            for (; leg < count; leg++) {
                assert_true(legs[leg].dim < b);
                assert_in_range(legs[leg].step, begin + j * within, begin + (j + 1) * within - 1);
            }
        }
    free(of);
}

TEST(a1_is_the_papers)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = contract_torus(graph_products[i]);
        contract_check(&t, algorithm_find("a1"));
        if (t.dims > 1)
            check_a1(&t);
    }
    struct torus t = with_random_graph();
    contract_check(&t, algorithm_find("a1"));
    check_a1(&t);
}

/* ---- Statuses and bounds --------------------------------------------------------------------- */

/* Theorem 1 and corollary 1, against the sums of all distances. */
TEST(statuses)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = contract_torus(graph_products[i]);
        struct product p = product_of_torus(&t);
        uint64_t all = 0, least = UINT64_MAX, most = 0;
        for (uint32_t a = 0; a < t.nodes; a++) {
            uint64_t status = 0;
            for (uint32_t b = 0; b < t.nodes; b++) {
                status += torus_distance(&t, a, b);
                assert_int_equal(product_distance(&p, a, b), torus_distance(&t, a, b));
            }
            assert_int_equal(product_status(&p, a), status);
            all += status;
            least = status < least ? status : least;
            most = status > most ? status : most;
        }
        double difference = product_average_status(&p) * t.nodes - (double)all;
        assert_true(difference < 1e-6 && difference > -1e-6);
        assert_int_equal(product_least_status(&p), least);
        assert_int_equal(product_most_status(&p), most);
        assert_int_equal(product_diameter(&p), torus_diameter(&t));
        assert_true(product_bound_all_port(&p) == torus_bound_all_port(&t));
    }
}

/* A star or a tree alone attains the bound: its middle relays, and nothing takes less. */
TEST(optimal)
{
    static const struct {
        const char *network;
        uint32_t blocks;
    } known[] = {
        {"star:3", 4}, {"star:5", 16}, {"star:9", 64}, {"tree:2^2", 24}, {"tree:3^2", 108}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct torus t = contract_torus(known[i].network);
        struct schedule_report r = contract_verify(&t, "a2");
        assert_int_equal(r.transmission, known[i].blocks);
        assert_true((double)r.transmission == r.bound);
    }
}

TEST(too_large)
{
    contract_refused("a1", "tree:2^8");
    contract_refused("a2", "tree:2^8");
    contract_refused("a3", "tree:2^8");
}
