/* Products of rings, arrays and complete graphs: distances, statuses and bounds against plain
 * counts over the graph, and the one-port exchanges carried out block by block; then a2 and a1, which
 * are these on tori and meshes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/schedule/algorithms/registry.h"
#include "daemon/schedule/product.h"
#include "tests/contract/contract.h"

static const enum graph graphs[] = {GRAPH_RING, GRAPH_ARRAY, GRAPH_COMPLETE};

static const char *const networks[] = {"ring:1",
                                       "array:1 x complete:1",
                                       "ring:12 x ring:9",
                                       "array:6 x array:5",
                                       "ring:4 x array:3 x complete:5",
                                       "complete:3 x complete:4 x complete:2",
                                       "complete:2^6",
                                       "ring:4^3",
                                       "array:3^4"};

static void assert_close(double a, double b)
{
    assert_true(a - b < 1e-9 && b - a < 1e-9);
}

static struct product network(const char *text)
{
    struct product p;
    struct error e;
    if (product_parse(&p, text, &e) != 0)
        fail_msg("%s", e.text);
    return p;
}

static bool linked(const struct factor *f, uint32_t a, uint32_t b)
{
    switch (f->graph) {
    case GRAPH_RING:
        return (a + 1) % f->nodes == b || (b + 1) % f->nodes == a;
    case GRAPH_ARRAY:
        return a + 1 == b || b + 1 == a;
    case GRAPH_COMPLETE:
        return true;
    }
    return false;
}

/* Two nodes are adjacent if they differ in one coordinate and are adjacent there. */
static bool adjacent(const struct product *p, uint32_t a, uint32_t b)
{
    unsigned differing = 0;
    bool all = true;
    for (unsigned i = p->dims; i-- > 0;) {
        uint32_t n = p->factor[i].nodes;
        if (a % n != b % n) {
            differing++;
            all = all && linked(&p->factor[i], a % n, b % n);
        }
        a /= n;
        b /= n;
    }
    return differing == 1 && all;
}

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
            if (distance[i] == UINT32_MAX && adjacent(p, queue[begin], i)) {
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

/* The exchange as it is carried out: blocks on every link in every step. */
struct traffic {
    const struct product *p;
    uint32_t steps;
    uint32_t *blocks; /* (step, node): those that it sends in the step, */
    uint32_t *to;     /* to whom, */
    uint32_t *from;   /* and whom it takes from; TORUS_NO_NODE = nobody */
};

static uint32_t moved(const struct product *p, uint32_t node, unsigned dim, int32_t stride)
{
    uint32_t below = 1, n = p->factor[dim].nodes;
    for (unsigned i = dim + 1; i < p->dims; i++)
        below *= p->factor[i].nodes;
    uint32_t at = node / below % n;
    uint32_t next = (uint32_t)(((int64_t)at + n + stride) % n);
    return node - at * below + next * below;
}

static void send_block(struct traffic *t, uint32_t step, uint32_t from, uint32_t to)
{
    assert_true(step < t->steps);
    assert_true(adjacent(t->p, from, to));
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
                    uint32_t next = moved(p, here, walks[i].dim, walks[i].walk.stride);
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

/* Theorem 3: optimal if every dimension is, which rings and complete graphs are. */
static void check_optimality(const struct product *p)
{
    for (unsigned i = 0; i < p->dims; i++)
        if (p->factor[i].graph == GRAPH_ARRAY && p->factor[i].nodes > 2)
            return;
    assert_close(product_bound_single_hops(p), (double)product_blocks(p, PRODUCT_A2));
}

static void single_dimensions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        for (uint32_t n = 1; n <= 24; n++) {
            struct product p = {.dims = 1, .factor = {{graphs[i], n}}, .nodes = n};
            check_distances(&p);
            check_exchange(&p);
            check_optimality(&p);
        }
    }
}

static void products(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct product p = network(networks[i]);
        check_distances(&p);
        check_exchange(&p);
        check_optimality(&p);
    }
    for (uint32_t a = 1; a <= 5; a++) {
        for (uint32_t b = 1; b <= 5; b++) {
            for (size_t g = 0; g < 9; g++) {
                struct product p = {
                    .dims = 2, .factor = {{graphs[g / 3], a}, {graphs[g % 3], b}}, .nodes = a * b};
                check_distances(&p);
                check_exchange(&p);
                check_optimality(&p);
            }
        }
    }
}

/* The best cut of one dimension in two halves, by trying all sets of half of the nodes. */
static void cuts(void **state)
{
    (void)state;
    for (size_t g = 0; g < sizeof graphs / sizeof graphs[0]; g++) {
        for (uint32_t n = 3; n <= 12; n++) {
            struct factor f = {graphs[g], n};
            double best = 0;
            for (uint32_t set = 1; set < (1u << n) - 1; set++) {
                uint32_t inside = 0, links = 0;
                for (uint32_t a = 0; a < n; a++) {
                    inside += set >> a & 1;
                    for (uint32_t b = 0; b < n; b++)
                        links += (set >> a & 1) && !(set >> b & 1) && a != b && linked(&f, a, b);
                }
                double load = (double)inside * (n - inside) / links;
                best = load > best ? load : best;
            }
            assert_close(factor_cut(&f), best);
        }
    }
}

/* The closed forms that are known: hypercubes have average distance (d/2) * 2^d/(2^d - 1), and
 * generalized hypercubes what section 3.1 says; tori the bound of torus.h. */
static void known_averages(void **state)
{
    (void)state;
    for (uint32_t d = 1; d <= 20; d++) {
        char text[32];
        (void)snprintf(text, sizeof text, "complete:2^%u", d);
        struct product p = network(text);
        double n = p.nodes;
        assert_int_equal(p.nodes, 1u << d);
        assert_close(product_average_distance(&p), d / 2.0 * n / (n - 1));
        assert_int_equal(product_steps(&p, PRODUCT_A2), d);
        assert_int_equal(product_blocks(&p, PRODUCT_A2), d * (p.nodes / 2));
    }
    struct product p = network("complete:3 x complete:4 x complete:5");
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

static void texts(void **state)
{
    static const struct {
        const char *text, *formatted;
    } good[] = {{"ring:8", "ring:8"},
                {"ring:8xarray:4xcomplete:3", "ring:8 x array:4 x complete:3"},
                {" ring:8  x array:4 ", "ring:8 x array:4"},
                {"complete:2^3 x complete:2", "complete:2^4"},
                {"complete:2 x ring:2 x ring:2", "complete:2 x ring:2^2"},
                {"array:1048576", "array:1048576"}};
    static const struct {
        const char *text, *says;
    } bad[] = {{"", "ring:8 x array:4 x complete:3"},
               {"8x8", "\"8x8\""},
               {"star:8", "\"star:8\""},
               {"ring", "\"ring\""},
               {"ring:", "1 to 1048576 at \"ring:\""},
               {"ring:0", "1 to 1048576 at \"ring:0\""},
               {"ring:99999999999999", "1 to 1048576"},
               {"ring:8 y ring:8", "not \"y ring:8\""},
               {"ring:8 x", "expected ring:"},
               {"ring:8 ring:8", "expected x between dimensions"},
               {"ring:2^0", "after ^"},
               {"ring:2^", "after ^"},
               {"ring:2^21", "after ^"},
               {"ring:1^20 x ring:1", "more than 20 dimensions"},
               {"ring:1024^3", "more than 1048576 nodes"}};
    char text[PRODUCT_TEXT_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct product p = network(good[i].text);
        assert_string_equal(product_format(&p, text), good[i].formatted);
        struct product again = network(text);
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
    assert_string_equal(graph_name((enum graph)9), "unknown");
}

static void a2_every_rectangle(void **state)
{
    (void)state;
    contract_every_rectangle("a2", LARGEST * LARGEST);
}

static void a2_other_shapes(void **state)
{
    static const char *const shapes[] = {
        "1",     "2m",      "9m",      "4x4m",        "12mx12m",
        "5mx6",  "2x2x2",   "3x4x5",   "4mx3x5m",     "1x6x1x3",
        "6x6x6", "6mx6x6m", "4x4x4x4", "3mx3mx3mx3m", "2x2x2x2x2x2x2mx2"};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        contract_check(&t, algorithm_find("a2"));
    }
}

/* Corollary 2 with the ring's times, and theorem 3: startups sum of n_i - 1, blocks the average
 * status. */
static void a2_figures(void **state)
{
    static const char *const tori[] = {"2",       "5",       "12",          "4x4",     "8x8",
                                       "7x5",     "12x12",   "6x6x6",       "3x4x5",   "12x12x12",
                                       "4x4x4x4", "8x8x8x8", "2x2x2x2x2x2", "128x128", "1x7x1"};
    (void)state;
    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        struct product p = product_of_torus(&t);
        struct schedule_report r = contract_verify(&t, "a2");
        uint32_t startups = 0;
        uint64_t transmission = 0;
        for (unsigned j = 0; j < t.dims; j++) {
            startups += t.size[j] - 1;
            transmission += t.nodes / t.size[j] * (t.size[j] * t.size[j] / 4);
        }
        assert_int_equal(r.startups, startups);
        assert_int_equal(r.transmission, transmission);
        assert_int_equal(r.critical_path, transmission);
        assert_close(product_bound_single_hops(&p), (double)transmission);
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.minimal);
        if (t.nodes < 2048)
            contract_check_no_gaps(&t, "a2");
    }
}

static void a2_mesh_figures(void **state)
{
    static const char *const meshes[] = {"2m",    "3m",   "8m",     "9m",      "4mx4m",
                                         "5mx5m", "8mx3", "12mx12", "4mx4mx4m"};
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        struct torus t = contract_torus(meshes[i]);
        struct product p = product_of_torus(&t);
        struct schedule_report r = contract_verify(&t, "a2");
        assert_int_equal(r.startups, product_steps(&p, PRODUCT_A2));
        assert_int_equal(r.transmission, product_blocks(&p, PRODUCT_A2));
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.minimal);
        contract_check_no_gaps(&t, "a2");
    }
}

/* a2 is bound by all hops of all blocks, and says so; others of one port relay for nothing. */
static void bound_of_a2(void **state)
{
    static const char *const tori[] = {"8x8", "5x7", "4x4m", "3mx3m", "2x2x2", "1"};
    const struct algorithm *a2 = algorithm_find("a2"), *ar1 = algorithm_find("ar1");
    (void)state;
    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        struct product p = product_of_torus(&t);
        struct schedule_report r = contract_verify(&t, "a2");
        assert_close(r.bound, product_bound_single_hops(&p));
        assert_true((double)r.critical_path >= r.bound - 1e-9);
    }
    struct torus t = contract_torus("8x8");
    assert_close(algorithm_bound(a2, &t), 256); /* 2 * 8 * floor(8^2/4) */
    assert_string_equal(algorithm_bound_name(a2), "one-port, single hops");
    assert_string_equal(algorithm_bound_name(ar1), "one-port, cut-through");
    assert_string_equal(algorithm_bound_name(algorithm_find("at2")), "all-port");
    assert_string_equal(algorithm_bound_name(algorithm_find("yangwang")),
                        "all-to-all broadcast, all-port");
}

/* ---- A1 as the paper has it ------------------------------------------------------------------ */

/* A graph of two dimensions as A x B; a node is v * b + u. Fig. 3 with the improved lines 1 to 4,
 * carried out on sets of messages: holder[source * N + destination] is the node where a message is. */
struct literal {
    struct product p;
    uint32_t a, b;
    uint32_t *holder;
    uint32_t step;
};

/* Moves a message one hop along B from the node that holds it, towards u. */
static void move_along_b(struct literal *x, uint32_t message, uint32_t u)
{
    uint32_t at = x->holder[message], v = at / x->b, from = at % x->b;
    for (uint32_t next = 0; next < x->b; next++) {
        if (linked(&x->p.factor[1], from, next) && next != from &&
            factor_distance(&x->p.factor[1], next, u) + 1 ==
                factor_distance(&x->p.factor[1], from, u)) {
            x->holder[message] = v * x->b + next;
            return;
        }
    }
    fail_msg("no way from %u to %u", from, u);
}

/* Where the block of `walks` is before step `step`. */
static uint32_t place_before(const struct product *p, uint32_t source,
                             const struct product_walk *walks, unsigned count, uint32_t step)
{
    uint32_t here = source;
    for (unsigned i = 0; i < count; i++)
        for (uint32_t hop = 0; hop < walks[i].walk.hops; hop++)
            if (walks[i].walk.step + hop < step)
                here = moved(p, here, walks[i].dim, walks[i].walk.stride);
    return here;
}

/* Every message is where the literal execution has it. */
static void compare_places(const struct literal *x)
{
    uint32_t nodes = x->p.nodes;
    for (uint32_t s = 0; s < nodes; s++) {
        for (uint32_t d = 0; d < nodes; d++) {
            struct product_walk walks[PRODUCT_MAX_DIMS];
            unsigned count = product_route(&x->p, PRODUCT_A1, s, d, walks);
            assert_int_equal(place_before(&x->p, s, walks, count, x->step),
                             x->holder[s * nodes + d]);
        }
    }
}

static void check_literal_a1(const char *text)
{
    struct literal x = {.p = network(text)};
    uint32_t nodes = x.p.nodes;

    x.a = x.p.factor[0].nodes;
    x.b = x.p.factor[1].nodes;
    x.holder = calloc((size_t)nodes * nodes, sizeof *x.holder);
    assert_non_null(x.holder);
    for (uint32_t s = 0; s < nodes; s++)
        for (uint32_t d = 0; d < nodes; d++)
            x.holder[s * nodes + d] = s;
    compare_places(&x);
    for (uint32_t j = 0; j < x.b; j++) {
        for (uint32_t k = 0; k < x.b; k++) {
            /* transfer m_(v,u_j)(*,u_k) from (v,u_j) to (v,u_k), for all v */
            for (uint32_t hop = 0; hop < factor_distance(&x.p.factor[1], j, k); hop++) {
                for (uint32_t v = 0; v < x.a; v++)
                    for (uint32_t to = 0; to < x.a; to++)
                        move_along_b(&x, (v * x.b + j) * nodes + to * x.b + k, k);
                x.step++;
                if (x.p.factor[1].graph != GRAPH_RING || x.b % 2 != 0)
                    compare_places(&x); /* else there are two shortest ways */
            }
        }
    }
    compare_places(&x);
    for (uint32_t k = 0; k < x.b; k++) {
        /* in A_j total exchange of messages m_(*,u_k)(*,u_j), which reside in (*,u_j) */
        for (uint32_t s = 0; s < nodes; s++)
            for (uint32_t d = 0; d < nodes; d++)
                if (s % x.b == k)
                    x.holder[s * nodes + d] = d;
        x.step += factor_steps(&x.p.factor[0]);
        compare_places(&x);
    }
    assert_int_equal(x.step, product_steps(&x.p, PRODUCT_A1));
    free(x.holder);
}

static void a1_is_the_papers(void **state)
{
    static const char *const pairs[] = {"ring:4 x ring:3",         "ring:3 x ring:4",
                                        "array:3 x array:5",       "array:4 x ring:5",
                                        "complete:4 x complete:5", "ring:5 x array:4",
                                        "complete:3 x ring:6",     "array:2 x complete:2"};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        check_literal_a1(pairs[i]);
}

static void a1_every_shape(void **state)
{
    static const char *const shapes[] = {"1",      "2",     "9m",      "12",    "1x6x1x3", "4x4m",
                                         "5mx6",   "2x2x2", "3x4x2",   "4mx3m", "6x6",     "7mx5",
                                         "2mx2x3", "8x8",   "2x3x2x2", "16x3"};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        contract_check(&t, algorithm_find("a1"));
        contract_check_no_gaps(&t, "a1");
    }
}

/* n_1 blocks over every hop of every message in B, and then n_2 exchanges in A. */
static void a1_figures(void **state)
{
    static const struct {
        const char *torus;
        uint32_t startups;
        uint64_t transmission;
    } known[] = {{"8", 7, 16},
                 {"4x4", 4 * 4 + 4 * 3, 4 * 4 * 4 + 4 * 4},
                 {"8x8", 8 * 16 + 8 * 7, 8 * 8 * 16 + 8 * 16},
                 {"2x2", 2 + 2, 4 + 2},
                 {"2x2x2", 2 + 2 * (2 + 2), 8 + 2 * (4 + 2)},
                 {"5mx3m", 8 + 3 * 8, 5 * 8 + 3 * 12}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct torus t = contract_torus(known[i].torus);
        struct schedule_report r = contract_verify(&t, "a1");
        assert_int_equal(r.startups, known[i].startups);
        assert_int_equal(r.transmission, known[i].transmission);
        assert_true(r.one_port_kept);
        assert_true(r.minimal);
        assert_int_equal(r.contended_steps, 0);
    }
}

static void a1_refusals(void **state)
{
    struct torus longest = contract_torus("2x406"), ring = contract_torus("1048576");
    (void)state;
    assert_int_equal(algorithm_find("a1")->accepts(&longest, NULL), 0);
    assert_int_equal(algorithm_find("a1")->accepts(&ring, NULL), 0);
    contract_refused("a1", "2x407");
    contract_refused("a1", "1024x1024");
}

/* ---- The bound for arrays -------------------------------------------------------------------- */

/* The fewest nodes of a set that send a block on its way from `s`, to every node: a node that relays
 * or starts it counts if it is in the set, the one at the end does not. */
static void fewest_senders(const struct product *p, const bool *in_set, uint32_t s,
                           uint32_t *senders)
{
    bool changed = true;
    for (uint32_t i = 0; i < p->nodes; i++)
        senders[i] = i == s ? 0 : UINT32_MAX / 2;
    while (changed) {
        changed = false;
        for (uint32_t a = 0; a < p->nodes; a++) {
            for (uint32_t b = 0; b < p->nodes; b++) {
                if (adjacent(p, a, b) && senders[a] + in_set[a] < senders[b]) {
                    senders[b] = senders[a] + in_set[a];
                    changed = true;
                }
            }
        }
    }
}

/* What the nodes of a set have to send, on average. */
static double average_sent(const struct product *p, const bool *in_set)
{
    uint32_t *senders = calloc(p->nodes, sizeof *senders);
    uint64_t sum = 0, size = 0;

    assert_non_null(senders);
    for (uint32_t s = 0; s < p->nodes; s++) {
        size += in_set[s];
        fewest_senders(p, in_set, s, senders);
        for (uint32_t d = 0; d < p->nodes; d++)
            sum += senders[d];
    }
    free(senders);
    return (double)sum / (double)size;
}

/* The bound is what some set has to send: all nodes, the middle of a dimension, or all nodes but the
 * corners; and no more than a2 takes. */
static void bound_of_meshes(void **state)
{
    static const char *const meshes[] = {"array:2",           "array:3",
                                         "array:8",           "array:9",
                                         "array:2 x array:2", "array:2 x array:5",
                                         "array:3 x array:3", "array:3 x array:4",
                                         "array:4 x array:4", "array:4 x array:5",
                                         "array:5 x array:5", "array:9 x array:2",
                                         "ring:4 x array:5",  "complete:3 x array:4",
                                         "array:3^3",         "array:1 x array:4 x array:3",
                                         "ring:1 x array:6"};
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        struct product p = network(meshes[i]);
        bool *set = calloc(p.nodes, sizeof *set);
        unsigned arrays = 0, others = 0;
        assert_non_null(set);
        memset(set, true, p.nodes);
        double best = average_sent(&p, set);
        assert_close(best, product_average_status(&p));
        for (unsigned dim = 0; dim < p.dims; dim++) {
            uint32_t n = p.factor[dim].nodes, below = 1;
            arrays += n > 2 && p.factor[dim].graph == GRAPH_ARRAY;
            others += n > 1 && !(n > 2 && p.factor[dim].graph == GRAPH_ARRAY);
            for (unsigned j = dim + 1; j < p.dims; j++)
                below *= p.factor[j].nodes;
            for (uint32_t node = 0; node < p.nodes; node++)
                set[node] = node / below % n == n / 2;
            double sent = average_sent(&p, set);
            best = p.factor[dim].graph == GRAPH_ARRAY && sent > best ? sent : best;
        }
        if (arrays == 2 && others == 0) {
            for (uint32_t node = 0; node < p.nodes; node++)
                set[node] = product_status(&p, node) != product_most_status(&p);
            double sent = average_sent(&p, set);
            best = sent > best ? sent : best;
        }
        double all_port = product_bound_all_port(&p);
        assert_close(product_bound_single_hops(&p), best > all_port ? best : all_port);
        assert_true(best <= (double)product_blocks(&p, PRODUCT_A2) + 1e-9);
        free(set);
    }
}

/* On a single array no schedule takes less than a2. */
static void arrays_are_optimal(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 40; n++) {
        struct product p = {.dims = 1, .factor = {{GRAPH_ARRAY, n}}, .nodes = n};
        assert_int_equal(product_blocks(&p, PRODUCT_A2), (n * n - 1) / 2);
        assert_close(product_bound_single_hops(&p), (n * n - 1) / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_dimensions),
        cmocka_unit_test(products),
        cmocka_unit_test(cuts),
        cmocka_unit_test(known_averages),
        cmocka_unit_test(texts),
        cmocka_unit_test(a2_every_rectangle),
        cmocka_unit_test(a2_other_shapes),
        cmocka_unit_test(a2_figures),
        cmocka_unit_test(bound_of_a2),
        cmocka_unit_test(a2_mesh_figures),
        cmocka_unit_test(a1_is_the_papers),
        cmocka_unit_test(a1_every_shape),
        cmocka_unit_test(a1_figures),
        cmocka_unit_test(a1_refusals),
        cmocka_unit_test(bound_of_meshes),
        cmocka_unit_test(arrays_are_optimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
