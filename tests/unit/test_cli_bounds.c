/* torusctl bounds: its figures, its text and its refusals. */
#include "tests/support/cmocka.h"
#include "tests/unit/run_cli.h"

static double number(const json_t *value, const char *section, const char *key)
{
    const json_t *o = section != NULL ? json_object_get(value, section) : value;
    const json_t *n = json_object_get(o, key);
    assert_true(json_is_number(n));
    return json_number_value(n);
}

TEST(torus)
{
    json_t *value = run_cli_json("bounds --dims 8x8");

    assert_string_equal(json_string_value(json_object_get(value, "network")), "ring:8^2");
    assert_true(number(value, NULL, "node_count") == 64);
    assert_true(number(value, NULL, "diameter") == 8);
    double excess = 63 * number(value, NULL, "average_distance") - 256;
    assert_true(excess < 1e-9 && excess > -1e-9);
    assert_true(number(value, "status", "average") == 256);
    assert_true(number(value, "bounds", "all_port") == 64);
    assert_true(number(value, "bounds", "one_port") == 64);
    assert_true(number(value, "bounds", "one_port_single_hops") == 256);
    assert_true(number(value, "broadcasts", "one_to_all") == 8);
    assert_true(number(value, "broadcasts", "all_to_all") == 16);
    assert_true(number(value, "a2", "startups") == 14);
    assert_true(number(value, "a2", "transmission") == 256);
    assert_null(json_object_get(value, "node"));
    json_decref(value);
}

TEST(product)
{
    json_t *value = run_cli_json("bounds --network 'ring:8 x array:4 x complete:3' --node 5");
    const json_t *dimensions = json_object_get(value, "dimensions");
    const json_t *array = json_array_get(dimensions, 1);

    assert_int_equal(json_array_size(dimensions), 3);
    assert_string_equal(json_string_value(json_object_get(array, "graph")), "array");
    assert_true(number(array, NULL, "average_status") == 5);
    assert_true(number(array, NULL, "cut") == 4);
    assert_true(number(value, "status", "least") == 352);
    assert_true(number(value, "status", "most") == 400);
    assert_true(number(value, "node", "rank") == 5);
    assert_true(number(value, "node", "status") == 352);
    assert_true(number(value, "bounds", "one_port_single_hops") == 376);
    json_decref(value);
}

TEST(mesh)
{
    json_t *a = run_cli_json("bounds --dims 4mx5"),
           *b = run_cli_json("bounds --network array:4xring:5");

    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
}

/* The blocks that the middle of an array must send, and all nodes of a mesh except its corners; and a1. */
TEST(arrays)
{
    static const struct {
        const char *dims;
        double bound, a2, a1;
    } known[] = {{"8m", 31, 31, 31},
                 {"9m", 40, 40, 40},
                 {"3mx2m", 9, 11, 3 * 2 + 2 * 4},
                 {"3mx3m", 18, 24, 3 * 8 + 3 * 4},
                 {"8mx8m", 20864 / 60.0, 496, 8 * 168 + 8 * 31},
                 {"8mx8", 296, 376, 8 * 128 + 8 * 31},
                 {"8x8", 256, 256, 1152}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char arguments[64] = "bounds --dims ";
        json_t *value = run_cli_json(strcat(arguments, known[i].dims));
        double excess = number(value, "bounds", "one_port_single_hops") - known[i].bound;
        if (excess > 1e-9 || excess < -1e-9)
            fail_msg("%s: %f more than %f", known[i].dims, excess, known[i].bound);
        assert_true(number(value, "a2", "transmission") == known[i].a2);
        assert_true(number(value, "a1", "transmission") == known[i].a1);
        json_decref(value);
    }
}

/* In times of a whole vector; counted link by link on the smaller tori. */
TEST(reductions)
{
    static const struct {
        const char *network;
        double reduce_scatter, allreduce;
        unsigned fewest; /* links of a node */
    } known[] = {{"--dims 1", 0, 0, 0},
                 {"--dims 2m", 1 / 2.0, 1, 1},
                 {"--dims 2", 1 / 4.0, 1 / 2.0, 2}, /* two links */
                 {"--dims 8", 7 / 16.0, 7 / 8.0, 2},
                 {"--dims 4x4", 15 / 64.0, 15 / 32.0, 4},
                 {"--dims 5x7", 34 / 140.0, 34 / 70.0, 4},
                 {"--dims 1x5x1", 4 / 10.0, 4 / 5.0, 2},
                 {"--dims 2x3x4", 23 / 144.0, 23 / 72.0, 6},
                 {"--dims 6m", 5 / 6.0, 1, 1},             /* up and down at the same time */
                 {"--dims 3mx3m", 8 / 18.0, 16 / 24.0, 2}, /* 12 links */
                 {"--dims 4mx4m", 15 / 32.0, 30 / 48.0, 2},
                 {"--dims 2mx2m", 3 / 8.0, 3 / 4.0, 2},
                 {"--dims 5mx4", 19 / 60.0, 38 / 72.0, 3}, /* 20 + 16 links */
                 {"--dims 2x9m", 17 / 54.0, 34 / 68.0, 3},
                 {"--network complete:5", 4 / 20.0, 8 / 20.0, 4},
                 {"--network complete:2^4", 15 / 64.0, 15 / 32.0, 4},
                 {"--network complete:4xarray:3", 11 / 48.0, 22 / 52.0, 4}}; /* 18 + 8 links */

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char arguments[64] = "bounds ";
        json_t *value = run_cli_json(strcat(arguments, known[i].network));
        const double got[] = {
            number(value, "reductions", "reduce_scatter"), number(value, "reductions", "allreduce"),
            number(value, "reductions", "two_phases"), number(value, "reductions", "reduce")};
        const double expected[] = {known[i].reduce_scatter, known[i].allreduce,
                                   2 * known[i].reduce_scatter,
                                   known[i].fewest > 0 ? 1.0 / known[i].fewest : 0};
        for (int j = 0; j < 4; j++)
            if (got[j] - expected[j] > 1e-9 || expected[j] - got[j] > 1e-9)
                fail_msg("%s: %f, not %f", known[i].network, got[j], expected[j]);
        json_decref(value);
    }
}

TEST(text)
{
    assert_int_equal(run_cli("bounds --network 'complete:2^4'"), 0);
    assert_non_null(strstr(run_cli_output, "complete:2^4"));
    assert_non_null(strstr(run_cli_output, "bound, one-port, single hops  32"));
    assert_int_equal(run_cli("bounds --help"), 0);
    assert_non_null(strstr(run_cli_output, "examples:"));
}

TEST(refusals)
{
    static const struct {
        const char *arguments, *says;
    } refused[] = {{"bounds", "--network 'ring:8 x complete:3'"},
                   {"bounds --dims 4 --network ring:4", "give one or the other"},
                   {"bounds --network moebius:3", "\"moebius:3\""},
                   {"bounds --network 'ring:1024^3'", "more than 1048576 nodes"},
                   {"bounds --dims 8y", "--dims"},
                   {"bounds --dims 4x4 --node 16", "from 0 to 15"}};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(run_cli(refused[i].arguments), 2);
        assert_non_null(strstr(run_cli_output, refused[i].says));
    }
}
