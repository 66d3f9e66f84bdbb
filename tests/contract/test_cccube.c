/* cccube: the paper's iterations and messages, and what the embedding makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/schedule/cccube.h"
#include "tests/contract/contract.h"

static const struct {
    const char *name;
    uint32_t degree;
} degrees[] = {{"cccube", 1}, {"cccube-q2", 2}, {"cccube-q4", 4}, {"cccube-q8", 8}};

static const char *const shapes[] = {"1",      "2",       "2m",        "8",          "16m",
                                     "1x4",    "2x2",     "4x4",       "4x8m",       "4mx4m",
                                     "8x8",    "8mx8m",   "2x2x2",     "4x2x8",      "4mx4mx4m",
                                     "1x4x1m", "4x4x4x4", "2x2x2x2x2", "2mx2mx2mx2m"};

static void delivered(void **state)
{
    (void)state;
    for (size_t q = 0; q < sizeof degrees / sizeof degrees[0]; q++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            struct torus t = contract_torus(shapes[i]);
            contract_check(&t, algorithm_find(degrees[q].name));
        }
    }
    /* 1, 2, 4, 8 and 16 rows and columns */
    contract_every_rectangle("cccube", 25);
}

/* Section 4: in every iteration a node sends one message of 2^(d-1) blocks; pipelined, Q packets of
 * 2^(d-1)/Q. */
static void messages(void **state)
{
    (void)state;
    for (size_t q = 0; q < sizeof degrees / sizeof degrees[0]; q++) {
        const struct algorithm *a = algorithm_find(degrees[q].name);
        struct torus t = contract_torus("8x4m");
        enum { BITS = 5, STEPS = BITS + 8 };
        uint32_t blocks[STEPS][TORUS_MAX_PORTS][3] = {{{0}}};
        uint32_t size = 1u << (BITS - 1), sent = 0;

        /* All messages that leave node 5, its own blocks and others'. */
        for (uint32_t s = 0; s < t.nodes; s++) {
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[BITS];
                uint32_t count = s == d ? 0 : a->route(&t, s, d, 0, legs), here = s;
                for (uint32_t i = 0; i < count; i++) {
                    unsigned port = torus_port(legs[i].dim, legs[i].direction);
                    assert_in_range(legs[i].hops, 1, 2);
                    if (here == 5)
                        blocks[legs[i].step][port][legs[i].hops]++;
                    here = torus_walk(&t, here, legs[i].dim, legs[i].direction, legs[i].hops);
                }
            }
        }
        for (uint32_t step = 0; step < STEPS; step++) {
            for (unsigned port = 0; port < TORUS_MAX_PORTS; port++) {
                for (unsigned hops = 0; hops < 3; hops++) {
                    uint32_t b = blocks[step][port][hops];
                    assert_int_equal(b % (size / degrees[q].degree), 0);
                    sent += b;
                }
            }
        }
        assert_int_equal(sent, BITS * size);
    }
}

/* d + Q - 1 steps; blocks as the embedding's comment has them. */
static void figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        for (size_t q = 0; q < sizeof degrees / sizeof degrees[0]; q++) {
            struct schedule_report r = contract_verify(&t, degrees[q].name);
            assert_int_equal(r.startups, cccube_startups(&t, degrees[q].degree));
            contract_check_no_gaps(&t, degrees[q].name);
            if (degrees[q].degree == 1)
                assert_int_equal(r.transmission, cccube_transmission(&t));
            else
                assert_true(r.transmission <= cccube_transmission(&t));
        }
    }
}

static void named_figures(void **state)
{
    static const struct {
        const char *torus, *algorithm;
        uint32_t startups;
        uint64_t transmission;
        uint32_t contended;
        bool minimal;
    } known[] = {
        {"4x4", "cccube", 4, 32, 0, true},         {"4x4", "cccube-q2", 5, 20, 0, true},
        {"4x4", "cccube-q4", 7, 14, 0, true},      {"4x4", "cccube-q8", 11, 11, 0, true},
        {"8x8", "cccube", 6, 320, 4, false},       {"8x8", "cccube-q2", 7, 192, 5, false},
        {"8x8", "cccube-q4", 9, 128, 7, false},    {"8x8", "cccube-q8", 13, 116, 11, false},
        {"4mx4m", "cccube", 4, 48, 2, false},      {"8mx8m", "cccube", 6, 448, 4, false},
        {"2mx2mx2mx2m", "cccube", 4, 32, 0, true}, {"4x4x4x4", "cccube", 8, 1024, 0, true},
        {"4x4x4x4", "cccube-q8", 15, 240, 0, true}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct torus t = contract_torus(known[i].torus);
        struct schedule_report r = contract_verify(&t, known[i].algorithm);
        assert_int_equal(r.startups, known[i].startups);
        assert_int_equal(r.transmission, known[i].transmission);
        assert_int_equal(r.contended_steps, known[i].contended);
        assert_int_equal(r.minimal, known[i].minimal);
    }
}

static void refusals(void **state)
{
    (void)state;
    for (size_t q = 0; q < sizeof degrees / sizeof degrees[0]; q++) {
        contract_refused(degrees[q].name, "5x5");
        contract_refused(degrees[q].name, "4x6");
        contract_refused(degrees[q].name, "3");
        contract_refused(degrees[q].name, "131072m");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delivered),     cmocka_unit_test(messages), cmocka_unit_test(figures),
        cmocka_unit_test(named_figures), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
