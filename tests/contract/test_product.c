/* Products of rings, arrays and complete graphs: distances, statuses and bounds against plain
 * counts over the graph, and the one-port exchanges carried out block by block. On tori and meshes
 * these exchanges are a1 and a2. */
#include "tests/contract/contract.h"
#include "tests/contract/graphs.h"
#include "tests/support/cmocka.h"

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
        assert_int_equal(product_parse(&p, bad[i].text, &e), -1);
        assert_int_equal(e.code, ERROR_USAGE);
        if (strstr(e.text, bad[i].says) == NULL)
            fail_msg("\"%s\": %s", bad[i].text, e.text);
    }
    assert_string_equal(factor_kind_name((enum factor_kind)9), "unknown");
}
