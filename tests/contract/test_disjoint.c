/* disjoint: the trees of a source share no channel, and there are as many as allgather.c says. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

static const char *const all_shapes[] = {
    "1",
    "2",
    "2m",
    "3",
    "3m",
    "7",
    "8m",
    "1x2",
    "2x2",
    "2x2m",
    "2mx2m",
    "2x5",
    "2x5m",
    "2mx5",
    "2mx5m",
    "3x3",
    "3x3m",
    "4x4",
    "4x4m",
    "4mx4m",
    "5x7",
    "5mx7",
    "5x7m",
    "5mx7m",
    "2x12",
    "2x12m",
    "1x5x1",
    "2x2x2",
    "2x2x2m",
    "2mx2x3",
    "3x4x5",
    "3mx4x5",
    "3x4mx5",
    "3mx4mx5",
    "3x4x5m",
    "3mx4mx5m",
    "2x3x2m",
    "2x2x3x3",
    "2x2x2x2m",
    "2mx3x2mx2",
    "3x3x3m",
    "4x3mx3m",
    "3mx4x1",
    "2x2x2x2x2",
    "2mx2mx2mx2mx2m",
    "2x2x2x2x2x2",
    "3x2mx2x2x2mx2",
};

/* The number of trees, as the head of allgather.c says. */
static uint32_t trees_on(const struct torus *t)
{
    unsigned dims = 0, wrap = 0;
    bool ring = false;

    for (unsigned i = 0; i < t->dims; i++) {
        dims += t->size[i] > 1;
        wrap += t->size[i] > 1 && t->wrap[i];
        ring = ring || (t->wrap[i] && t->size[i] > 2);
    }
    return wrap == dims ? 2 * dims : dims + ring;
}

/* Checks that each tree of a source reaches every other node once, and no two trees use the same
 * channel. Adds the load of the channels to `load`. */
static void check_source(const struct torus *t, uint32_t source, uint32_t trees, uint32_t *load)
{
    const struct algorithm *a = algorithm_find("disjoint");
    unsigned ports = torus_ports(t);
    uint32_t *parent = calloc((size_t)t->nodes * a->segments, sizeof *parent);
    uint32_t *used = calloc((size_t)t->nodes * ports, sizeof *used);
    struct leg *legs = calloc(algorithm_max_legs(a, t), sizeof *legs);

    assert_true(parent && used && legs);
    for (uint32_t segment = 0; segment < a->segments; segment++) {
        for (uint32_t node = 0; node < t->nodes; node++) {
            if (node == source)
                continue;
            uint32_t here = source, count = algorithm_route(a, t, source, node, segment, legs);
            assert_in_range(count, 1, algorithm_max_legs(a, t));
            for (uint32_t i = 0; i < count; i++) {
                unsigned port = torus_port(t, legs[i].dim, legs[i].direction);
                uint32_t channel = here * ports + port, *tree = &used[channel];
                assert_int_equal(legs[i].step, i);
                assert_int_equal(legs[i].hops, 1);
                here = torus_neighbour(t, here, port);
                assert_true(here != TORUS_NO_NODE && here != source);
                if (*tree != 0 && *tree != segment % trees + 1)
                    fail_msg("%u: trees %u and %u of source %u both come to node %u by port %u",
                             t->nodes, *tree - 1, segment % trees, source, here, port);
                *tree = segment % trees + 1;
                uint32_t *from = &parent[segment * t->nodes + here];
                load[channel] += *from == 0;
                assert_true(*from == 0 || *from == channel + 1);
                *from = channel + 1;
            }
            assert_int_equal(here, node);
        }
        for (uint32_t node = 0; node < t->nodes; node++)
            assert_int_equal(parent[segment * t->nodes + node] != 0, node != source);
    }
    free(parent);
    free(used);
    free(legs);
}

TEST(disjoint_trees)
{
    for (size_t i = 0; i < sizeof all_shapes / sizeof all_shapes[0]; i++) {
        const struct algorithm *a = algorithm_find("disjoint");
        struct torus t = contract_torus(all_shapes[i]);
        uint32_t trees = trees_on(&t), most = 0, *load;
        load = calloc((size_t)t.nodes * torus_ports(&t), sizeof *load);
        assert_non_null(load);
        for (uint32_t source = 0; source < t.nodes; source++)
            check_source(&t, source, trees, load);
        for (size_t channel = 0; channel < (size_t)t.nodes * torus_ports(&t); channel++)
            most = load[channel] > most ? load[channel] : most;
        free(load);
        if (t.nodes == 1)
            continue;
        /* No channel carries more of a source than the parts that share a tree. If the number of
         * trees divides the parts, that is the bound. */
        assert_true(most <= (t.nodes - 1) * ((a->segments + trees - 1) / trees));
        if (trees == torus_fewest_links(&t) && a->segments % trees == 0)
            assert_true(most * trees <= (t.nodes - 1) * a->segments);
        struct schedule_report r = contract_verify(&t, "disjoint");
        assert_int_equal(r.busiest, most);
        assert_int_equal(r.contended_steps, 0);
    }
}

/* There is a tree for each link of the node with the fewest, if there can be. */
TEST(as_many_trees_as_links)
{
    static const char *const shapes[] = {"2",       "5",    "2x2",     "4x5",      "3x4x5",
                                         "2x2x2x2", "2m",   "9m",      "2mx2m",    "3mx4mx5m",
                                         "3x4m",    "5mx3", "3x2mx2m", "4x3mx1x5m"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        assert_int_equal(trees_on(&t), torus_fewest_links(&t));
    }
}
