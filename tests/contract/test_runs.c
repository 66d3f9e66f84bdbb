/* Schedules simulated on networks that are not tori: they cost what the formulas say, and schedules
 * that the model forbids are refused. */
#include "client/theory/multistage.h"
#include "client/theory/product_run.h"
#include "tests/support/cmocka.h"

static struct product network(const char *text)
{
    struct product p;
    assert_int_equal(product_parse(&p, text, NULL), 0);
    return p;
}

TEST(products)
{
    static const char *const networks[] = {"ring:1",
                                           "array:2",
                                           "complete:2^5",
                                           "complete:4 x complete:3",
                                           "array:9",
                                           "complete:7",
                                           "ring:6 x complete:4",
                                           "ring:5 x array:4 x complete:3",
                                           "ring:12",
                                           "ring:4^3",
                                           "array:4 x complete:1 x array:5"};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct product p = network(networks[i]);
        for (enum product_algorithm a = PRODUCT_A1; a <= PRODUCT_A2; a++) {
            struct product_report r;
            assert_int_equal(product_run(&p, a, product_route, &r, NULL), 0);
            assert_int_equal(r.steps, product_steps(&p, a));
            assert_int_equal(r.transmission, product_blocks(&p, a));
            assert_int_equal(r.blocks, p.nodes * (p.nodes - 1));
            double hops = product_average_status(&p) * p.nodes;
            assert_true((double)r.hops - hops < 1e-6 && hops - (double)r.hops < 1e-6);
        }
    }
}

/* ---- Schedules with one error: 1 -> 2 on a ring of 5 ----------------------------------------- */

static struct walk wrong;

static unsigned damaged_route(const struct product *p, enum product_algorithm a, uint32_t source,
                              uint32_t destination, struct product_walk *walks)
{
    unsigned count = product_route(p, a, source, destination, walks);
    if (source == 1 && destination == 2)
        walks[0].walk = wrong;
    return count;
}

TEST(damaged_products)
{
    static const struct {
        struct walk walk;
        const char *says;
    } damaged[] = {{{.step = 0, .hops = 0, .stride = 1}, "block 1 -> 2 ends at node 1"},
                   {{.step = 0, .hops = 2, .stride = 1}, "block 1 -> 2 ends at node 3"},
                   {{.step = 0, .hops = 1, .stride = -1}, "block 1 -> 2 ends at node 0"},
                   {{.step = 1, .hops = 1, .stride = 2}, "step 1: nodes 1 and 3 are not adjacent"},
                   {{.step = 2, .hops = 1, .stride = 1}, "step 2: node 1 sends to nodes 0 and 2"}};
    struct product p = network("ring:5");
    struct product_report r;
    struct error e;

    wrong = (struct walk){.step = 1, .hops = 1, .stride = 1}; /* later, but correct */
    assert_int_equal(product_run(&p, PRODUCT_A2, damaged_route, &r, &e), 0);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        wrong = damaged[i].walk;
        assert_fails(product_run(&p, PRODUCT_A2, damaged_route, &r, &e), e, ERROR_DAMAGED,
                     damaged[i].says);
    }
}

/* Both walks start in the same step: the second one before the first has ended. */
static unsigned hasty_route(const struct product *p, enum product_algorithm a, uint32_t source,
                            uint32_t destination, struct product_walk *walks)
{
    unsigned count = product_route(p, a, source, destination, walks);
    if (count == 2)
        walks[1].walk.step = walks[0].walk.step;
    return count;
}

/* All nodes send in step 0: several messages end at one node. */
static unsigned crowding_route(const struct product *p, enum product_algorithm a, uint32_t source,
                               uint32_t destination, struct product_walk *walks)
{
    if (destination == 0) {
        walks[0] =
            (struct product_walk){.walk = {.hops = 1, .stride = (int32_t)(p->nodes - source)}};
        return 1;
    }
    unsigned count = product_route(p, a, source, destination, walks);
    walks[0].walk.step += source * p->nodes + 1;
    return count;
}

TEST(broken_rules)
{
    struct product p = network("ring:4 x ring:4"), complete = network("complete:5");
    struct product large = network("ring:1025"), long_one = network("complete:2 x array:500");
    struct product_report r;
    struct error e;

    assert_fails(product_run(&p, PRODUCT_A2, hasty_route, &r, &e), e, ERROR_DAMAGED,
                 "comes after step");
    assert_fails(product_run(&complete, PRODUCT_A2, crowding_route, &r, &e), e, ERROR_DAMAGED,
                 "nodes 1 and 2");
    assert_fails(product_run(&large, PRODUCT_A2, product_route, &r, &e), e, ERROR_REFUSED, "");
    assert_fails(product_run(&long_one, PRODUCT_A1, product_route, &r, &e), e, ERROR_REFUSED, "");
}

/* ---- The banyan network ---------------------------------------------------------------------- */

/* A Latin square whose rows are not admissible. */
TEST(conflicts)
{
    const struct multistage eight = {MULTISTAGE_BANYAN, 2, 3}, two = {MULTISTAGE_BANYAN, 2, 1};
    struct banyan_report r;
    struct error e;

    assert_fails(banyan_run(&eight, BANYAN_SHIFT, &r, &e), e, ERROR_DAMAGED, "row 0, stage 0");
    assert_int_equal(banyan_run(&two, BANYAN_SHIFT, &r, &e), 0);
}
