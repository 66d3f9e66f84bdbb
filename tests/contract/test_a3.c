/* a3: corollary 3's time on every torus and mesh that it takes, and its optimality. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <stdlib.h>

static struct torus cube(unsigned dims, uint32_t size, bool wrap)
{
    struct torus t = {.dims = dims, .nodes = 1};
    for (unsigned i = 0; i < dims; i++) {
        t.size[i] = size;
        t.wrap[i] = wrap;
        t.nodes *= size;
    }
    return t;
}

TEST(delivered)
{
    static const struct {
        unsigned dims;
        uint32_t largest;
    } sizes[] = {{1, 16}, {2, 12}, {4, 3}, {8, 2}};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t n = 1; n <= sizes[i].largest; n++) {
            for (int wrap = 0; wrap < 2; wrap++) {
                struct torus t = cube(sizes[i].dims, n, wrap);
                contract_check(&t, algorithm_find("a3"));
            }
        }
    }
    struct torus t = contract_torus("4x4x4x4");
    contract_check(&t, algorithm_find("a3"));
    contract_every_rectangle("a3", LARGEST);
}

/* Theorem 4, corollary 3: the time of N/n exchanges of one dimension, without contention, and every
 * route a shortest path. */
static void check_figures(const struct torus *t)
{
    struct schedule_report r = contract_verify(t, "a3");
    assert_int_equal(r.startups, a3_startups(t));
    assert_int_equal(r.transmission, a3_transmission(t));
    assert_true(t->size[0] == 1 || r.critical_path <= r.transmission);
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    /* Theorem 5: optimal if the exchange in one dimension is. */
    if (!t->wrap[0] || t->size[0] % 2 != 0 || t->size[0] % 4 == 0)
        assert_true((double)r.transmission == r.bound);
    else
        assert_true((double)r.transmission == r.bound + 0.5 * (t->nodes / t->size[0]));
}

TEST(figures)
{
    for (unsigned dims = 1; dims <= 8; dims *= 2) {
        for (uint32_t n = 2; n <= 16; n++) {
            for (int wrap = 0; wrap < 2; wrap++) {
                if (dims == 8 && n > 2)
                    continue; /* node numbers have 32 bits */
                struct torus t = cube(dims, n, wrap);
                if (dims <= 2 || t.nodes <= 256 || (wrap && dims == 4 && n <= 8)) {
                    check_figures(&t);
                    if (t.nodes <= 256)
                        contract_check_no_gaps(&t, "a3");
                }
            }
        }
    }
}

TEST(named_figures)
{
    static const struct {
        const char *torus;
        uint32_t startups;
        uint64_t transmission;
    } figures_of[] = {{"2x2", 2, 2},          {"4x4", 8, 8},     {"8x8", 32, 64},
                      {"16x16", 128, 512},    {"6x6", 18, 30},   {"5x5", 10, 15},
                      {"7x7", 21, 42},        {"3x3", 3, 3},     {"4x4x4x4", 128, 128},
                      {"8mx8m", 56, 128},     {"5mx5m", 20, 30}, {"3mx3mx3mx3m", 54, 54},
                      {"8x8x8x8", 2048, 4096}};

    for (size_t i = 0; i < sizeof figures_of / sizeof figures_of[0]; i++) {
        struct torus t = contract_torus(figures_of[i].torus);
        struct schedule_report r = contract_verify(&t, "a3");
        assert_int_equal(r.startups, figures_of[i].startups);
        assert_int_equal(r.transmission, figures_of[i].transmission);
    }
}

/* ---- The paper's rule, written out independently --------------------------------------------- */

/* The operator (+) of section 5: addition modulo n, with results from 1 to n. */
static uint32_t plus(uint32_t a, uint32_t b, uint32_t n)
{
    return (a + b - 1) % n + 1;
}

/* The rounds, counted from 1, in which a block moves within its copy of B and within one of A. */
struct rounds {
    uint32_t b, a; /* 0: never */
};

/* Fig. 6 and (7), of an n x n network, nodes (i, j) from 1 to n. */
static void literal_rounds(uint32_t n, struct rounds *of)
{
#define ROUNDS(i, j, k, l) of[((((i)-1) * n + (j)-1) * n + (k)-1) * n + (l)-1]
    for (uint32_t i = 1; i <= n; i++) {
        for (uint32_t j = 1; j <= n; j++) {
            for (uint32_t v = 1; v <= n; v++)
                if (v != i) /* first round in A_j: messages for the other nodes of A_j */
                    ROUNDS(i, j, v, j) = (struct rounds){.a = 1};
            for (uint32_t r = 1; r < n; r++) {
                /* r-th round in B_i: (i, j) sends to (i, j+1), (i, j+2), ... the messages for
                 * v_(i+1), v_(i+2), ..., rotated to the left r - 1 times. They are passed on in A
                 * in round r + 1. */
                for (uint32_t l = 1; l < n; l++) {
                    uint32_t rotated = (l - 1 + r - 1) % (n - 1) + 1;
                    ROUNDS(i, j, plus(i, rotated, n), plus(j, l, n)) =
                        (struct rounds){.b = r, .a = r + 1};
                }
            }
            for (uint32_t u = 1; u <= n; u++)
                if (u != j) /* last round in B_i: the remaining messages */
                    ROUNDS(i, j, i, u) = (struct rounds){.b = n};
        }
    }
#undef ROUNDS
}

/* Checks that every block moves in the rounds that the paper gives it, and in no others. */
static void check_rounds(const struct torus *t)
{
    const struct algorithm *a3 = algorithm_find("a3");
    uint32_t n = t->size[0], steps = a3_startups(t) / n;
    struct rounds *of = calloc((size_t)t->nodes * t->nodes, sizeof *of);

    assert_non_null(of);
    literal_rounds(n, of);
    for (uint32_t s = 0; s < t->nodes; s++) {
        for (uint32_t d = 0; d < t->nodes; d++) {
            struct leg legs[64];
            uint32_t count = s == d ? 0 : algorithm_route(a3, t, s, d, 0, legs);
            const struct rounds *r = &of[s * t->nodes + d];
            bool moved[2] = {false, false};
            for (uint32_t i = 0; i < count; i++) {
                assert_int_equal(legs[i].step / steps + 1, legs[i].dim == 0 ? r->a : r->b);
                moved[legs[i].dim] = true;
            }
            assert_int_equal(moved[0], r->a != 0);
            assert_int_equal(moved[1], r->b != 0);
        }
    }
    free(of);
}

TEST(rounds_of_the_paper)
{
    for (uint32_t n = 2; n <= 9; n++) {
        for (int wrap = 0; wrap < 2; wrap++) {
            struct torus t = cube(2, n, wrap);
            check_rounds(&t);
        }
        char text[16];
        (void)snprintf(text, sizeof text, "complete:%u^2", n);
        struct torus t = contract_torus(text);
        check_rounds(&t);
    }
}

/* Section 1: only neighbours exchange messages, and a message takes one time unit on a link. So
 * every leg must be one hop, and a step takes as many units as the most blocks on any channel. The
 * sum must be theorem 5's bound, on rings with n^2/8 rounded up. */
static void check_units(const struct torus *t)
{
    const struct algorithm *a3 = algorithm_find("a3");
    uint32_t steps = a3_startups(t), ports = torus_ports(t);
    uint32_t *load = calloc((size_t)steps * t->nodes * ports, sizeof *load);
    uint64_t units = 0;

    assert_non_null(load);
    for (uint32_t s = 0; s < t->nodes; s++) {
        for (uint32_t d = 0; d < t->nodes; d++) {
            struct leg legs[64];
            uint32_t count = s == d ? 0 : algorithm_route(a3, t, s, d, 0, legs), here = s;
            for (uint32_t i = 0; i < count; i++) {
                unsigned port = torus_port(t, legs[i].dim, legs[i].direction);
                assert_int_equal(legs[i].hops, 1);
                assert_true(i == 0 || legs[i].step > legs[i - 1].step);
                load[((size_t)legs[i].step * t->nodes + here) * ports + port]++;
                here = torus_neighbour(t, here, port);
            }
            assert_int_equal(here, d);
        }
    }
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t most = 0; /* units of this step */
        for (uint32_t i = 0; i < t->nodes * ports; i++) {
            uint32_t on_channel = load[(size_t)step * t->nodes * ports + i];
            most = on_channel > most ? on_channel : most;
        }
        assert_true(most > 0);
        units += most;
    }
    uint64_t n = t->size[0], cut = (n / 2) * ((n + 1) / 2);
    assert_int_equal(units, t->nodes / n * (t->wrap[0] ? (cut + 1) / 2 : cut));
    free(load);
}

TEST(units_of_the_paper)
{
    for (int wrap = 0; wrap < 2; wrap++) {
        for (uint32_t n = 2; n <= 50; n++) {
            struct torus line = cube(1, n, wrap), square = cube(2, n, wrap);
            check_units(&line);
            if (n <= 13)
                check_units(&square);
        }
        struct torus four = cube(4, 3, wrap);
        check_units(&four);
    }
}

TEST(refusals)
{
    static const char *const refused[] = {"4x8",
                                          "4x4m",
                                          "4x4x4",
                                          "1x8",
                                          "2x2m",
                                          "2 x complete:2",
                                          "complete:3 x 3",
                                          "complete:3 x complete:3 x complete:3",
                                          "complete:3 x complete:4",
                                          "complete:3 x star:3"};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        contract_refused("a3", refused[i]);
}
