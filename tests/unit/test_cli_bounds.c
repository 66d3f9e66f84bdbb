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
    assert_contains(run_cli_output, "complete:2^4");
    assert_contains(run_cli_output, "bound, one-port, single hops  32");
    assert_int_equal(run_cli("bounds --help"), 0);
    assert_contains(run_cli_output, "examples:");
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
        assert_contains(run_cli_output, refused[i].says);
    }
}

/* torusctl simulate: its figures, its text and its refusals. */

static double simulated_number(const json_t *o, const char *key)
{
    assert_true(json_is_number(json_object_get(o, key)));
    return json_number_value(json_object_get(o, key));
}

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

TEST(products)
{
    json_t *value = run_cli_json("simulate --network 'complete:4 x complete:3'");

    assert_string_equal(text_of(value, "simulated"), "product");
    assert_string_equal(text_of(value, "algorithm"), "a2");
    assert_true(simulated_number(value, "delivered") == 132);
    assert_true(simulated_number(value, "startups") == 5);
    assert_true(simulated_number(value, "transmission") == 17);
    assert_true(simulated_number(value, "formula_transmission") == 17);
    assert_true(simulated_number(value, "bound") == 17);
    assert_true(simulated_number(value, "efficiency") == 1);
    json_decref(value);
    value = run_cli_json("simulate --network complete:4xcomplete:3 --algorithm a1");
    assert_true(simulated_number(value, "startups") == 6 + 3 * 3);
    assert_true(simulated_number(value, "transmission") == 6 * 4 + 3 * 3);
    json_decref(value);
    value = run_cli_json("simulate --network 'star:5 x 4'");
    assert_true(simulated_number(value, "delivered") == 20 * 19);
    assert_true(simulated_number(value, "startups") == 16 + 3);
    assert_true(simulated_number(value, "transmission") ==
                simulated_number(value, "formula_transmission"));
    json_decref(value);
    value = run_cli_json("simulate --network 'complete:3 x star:5' --algorithm a1");
    assert_true(simulated_number(value, "delivered") == 15 * 14);
    assert_true(simulated_number(value, "transmission") ==
                simulated_number(value, "formula_transmission"));
    json_decref(value);
    value = run_cli_json("simulate --network ring:1");
    assert_true(simulated_number(value, "delivered") == 0);
    assert_true(json_is_null(json_object_get(value, "efficiency")));
    json_decref(value);
}

TEST(banyan)
{
    json_t *value = run_cli_json("simulate --banyan 8 --rows");
    const json_t *row = json_array_get(json_object_get(value, "rows"), 5);

    assert_string_equal(text_of(value, "simulated"), "banyan");
    assert_true(simulated_number(value, "stages") == 3);
    assert_true(simulated_number(value, "steps") == 10);
    assert_true(simulated_number(value, "delivered") == 64);
    assert_true(simulated_number(value, "conflicts") == 0);
    assert_true(json_is_true(json_object_get(value, "whole_stages")));
    assert_string_equal(text_of(row, "settings"), "xxx");
    assert_int_equal(json_array_size(json_object_get(row, "outputs")), 8);
    json_decref(value);
    value = run_cli_json("simulate --banyan 1 --square products");
    assert_true(simulated_number(value, "steps") == 1);
    assert_null(json_object_get(value, "rows"));
    json_decref(value);
    assert_int_equal(run_cli("simulate --banyan 8 --square shift"), 1);
    value = run_cli_json("simulate --omega 8 --rows --square shift");
    assert_string_equal(text_of(value, "simulated"), "omega");
    assert_true(simulated_number(value, "steps") == 10);
    assert_true(json_is_false(json_object_get(value, "whole_stages")));
    json_decref(value);
    value = run_cli_json("simulate --baseline 16");
    assert_string_equal(text_of(value, "simulated"), "baseline");
    assert_true(simulated_number(value, "delivered") == 256);
    assert_true(simulated_number(value, "steps") == 19);
    assert_true(json_is_true(json_object_get(value, "whole_stages")));
    json_decref(value);
    assert_int_equal(run_cli("simulate --baseline 8 --square shift"), 1);
    assert_contains(run_cli_output, "conflict in row 0, stage 0");
}

TEST(streaming)
{
    static const struct {
        const char *arguments;
        double segments, ticks, bound;
    } known[] = {{"--dims 5x7", 4, 120, 120},
                 {"--dims 8x8 --algorithm stream", 4, 256, 256},
                 {"--dims 8x8 --algorithm direct", 1, 72, 64},
                 {"--dims 4x4 --algorithm cccube-q5", 1, 8, 8},
                 {"--dims 1", 4, 0, 0}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char arguments[96] = "simulate ";
        json_t *value = run_cli_json(strcat(arguments, known[i].arguments));
        assert_string_equal(text_of(value, "simulated"), "stream");
        assert_true(simulated_number(value, "segments") == known[i].segments);
        assert_true(simulated_number(value, "ticks") == known[i].ticks);
        assert_true(simulated_number(value, "bound_ticks") == known[i].bound);
        assert_true(simulated_number(value, "block_times") == known[i].ticks / known[i].segments);
        json_decref(value);
    }
}

/* Theorem 4 for 5x5, with messages of 4 us: 75 + 1 + 4 + 5 * 4 + 1 = 101 us. Theorem 1: 75 + 1 + 6 * 4. */
TEST(broadcasts)
{
    static const struct {
        const char *arguments;
        double delay, excess, bound;
    } known[] = {{"", 102, 1, 100},
                 {" --queue longest", 101, 0, 100},
                 {" --switch output", 102, 1, 100},
                 {" --queue longest --switch output", 101, 0, 100},
                 {" --queue fifo --ts 0", 27, 1, 25},
                 {" --tp 0", 75 + 6 * 4, 0, 75 + 6 * 4}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char arguments[128] =
            "simulate --dims 5x5 --algorithm yangwang --tw 0.004 --block-size 1000";
        json_t *value = run_cli_json(strcat(arguments, known[i].arguments));
        assert_string_equal(text_of(value, "simulated"), "broadcast");
        assert_true(simulated_number(value, "arrivals") == 25 * 24);
        assert_true(simulated_number(value, "busiest") == 6);
        assert_true(simulated_number(value, "delay_us") == known[i].delay);
        assert_true(simulated_number(value, "bound_us") == known[i].bound);
        assert_true(simulated_number(value, "excess_us") == known[i].excess);
        assert_true(simulated_number(value, "formula_us") == known[i].delay - known[i].excess);
        json_decref(value);
    }
    json_t *value = run_cli_json("simulate --dims 4x6m --algorithm balanced");
    assert_true(simulated_number(value, "arrivals") == 24 * 23);
    assert_true(json_is_null(json_object_get(value, "formula_us")));
    json_decref(value);
}

TEST(simulated_text)
{
    assert_int_equal(run_cli("simulate --banyan 4 --rows"), 0);
    assert_contains(run_cli_output, "conflicts           0");
    assert_contains(run_cli_output, "outputs of inputs");
    assert_int_equal(run_cli("simulate --dims 3x3m"), 0);
    assert_contains(run_cli_output, "3x3m");
    assert_int_equal(run_cli("simulate --help"), 0);
    assert_contains(run_cli_output, "examples:");
}

TEST(simulated_refusals)
{
    static const struct {
        const char *arguments, *says;
    } refused[] = {{"simulate", "nothing to simulate"},
                   {"simulate --dims 4 --banyan 4", "one thing at a time"},
                   {"simulate --omega 4 --baseline 4", "one thing at a time"},
                   {"simulate --dims 4 --rows", "are for --banyan"},
                   {"simulate --omega 4 --algorithm a1", "omit it with --omega"},
                   {"simulate --baseline 6", "--baseline: 6 is not a power of two"},
                   {"simulate --network ring:4 --square shift", "are for --banyan"},
                   {"simulate --banyan 4 --algorithm a1", "omit it with --banyan"},
                   {"simulate --banyan 6", "6 is not a power of two"},
                   {"simulate --banyan 0", "0 is not a power of two"},
                   {"simulate --banyan 2048", "1024"},
                   {"simulate --banyan 4 --square cube", "'cube' is not a square"},
                   {"simulate --network ring:4 --algorithm at2", "give a1 or a2"},
                   {"simulate --network ring:2000", "at most 1024"},
                   {"simulate --network moebius:4", "\"moebius:4\""},
                   {"simulate --network tree:2^8", "too large for an exchange of its own"},
                   {"simulate --dims 4x4 --algorithm yangwang", "odd if they wrap"},
                   {"simulate --dims 5x5 --algorithm disjoint", "does not send whole blocks"},
                   {"simulate --dims 5x5 --queue fifo", "stream is an exchange"},
                   {"simulate --banyan 4 --tp 1", "are for --dims with"},
                   {"simulate --dims 5x5 --algorithm yangwang --tp -1", "--tp"},
                   {"simulate --dims 5x5 --algorithm yangwang --tp 1000001", "than a second"},
                   {"simulate --dims 5x5 --algorithm yangwang --queue lifo", "fifo, longest"},
                   {"simulate --dims 5x5 --algorithm yangwang --switch all", "input, output"},
                   {"simulate --dims 5x5 --algorithm yangwang --block-size big", "--block-size"},
                   {"simulate --dims 4x4 --algorithm straem", "did you mean stream?"},
                   {"simulate --dims 4x4 --algorithm cccube-q9", "at most cccube-q8"},
                   {"simulate --dims 64x64 --algorithm tree", "too many to follow"},
                   {"simulate --dims 5y", "--dims"}};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(run_cli(refused[i].arguments), 2);
        if (strstr(run_cli_output, refused[i].says) == NULL)
            fail_msg("%s: %s", refused[i].arguments, run_cli_output);
    }
}
