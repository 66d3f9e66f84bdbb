/* torusctl simulate: its figures, its text and its refusals. */
#include "tests/support/cmocka.h"
#include "tests/unit/run_cli.h"

static double number(const json_t *o, const char *key)
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
    assert_true(number(value, "delivered") == 132);
    assert_true(number(value, "startups") == 5);
    assert_true(number(value, "transmission") == 17);
    assert_true(number(value, "formula_transmission") == 17);
    assert_true(number(value, "bound") == 17);
    assert_true(number(value, "efficiency") == 1);
    json_decref(value);
    value = run_cli_json("simulate --network complete:4xcomplete:3 --algorithm a1");
    assert_true(number(value, "startups") == 6 + 3 * 3);
    assert_true(number(value, "transmission") == 6 * 4 + 3 * 3);
    json_decref(value);
    value = run_cli_json("simulate --network 'star:5 x 4'");
    assert_true(number(value, "delivered") == 20 * 19);
    assert_true(number(value, "startups") == 16 + 3);
    assert_true(number(value, "transmission") == number(value, "formula_transmission"));
    json_decref(value);
    value = run_cli_json("simulate --network 'complete:3 x star:5' --algorithm a1");
    assert_true(number(value, "delivered") == 15 * 14);
    assert_true(number(value, "transmission") == number(value, "formula_transmission"));
    json_decref(value);
    value = run_cli_json("simulate --network ring:1");
    assert_true(number(value, "delivered") == 0);
    assert_true(json_is_null(json_object_get(value, "efficiency")));
    json_decref(value);
}

TEST(banyan)
{
    json_t *value = run_cli_json("simulate --banyan 8 --rows");
    const json_t *row = json_array_get(json_object_get(value, "rows"), 5);

    assert_string_equal(text_of(value, "simulated"), "banyan");
    assert_true(number(value, "stages") == 3);
    assert_true(number(value, "steps") == 10);
    assert_true(number(value, "delivered") == 64);
    assert_true(number(value, "conflicts") == 0);
    assert_true(json_is_true(json_object_get(value, "whole_stages")));
    assert_string_equal(text_of(row, "settings"), "xxx");
    assert_int_equal(json_array_size(json_object_get(row, "outputs")), 8);
    json_decref(value);
    value = run_cli_json("simulate --banyan 1 --square products");
    assert_true(number(value, "steps") == 1);
    assert_null(json_object_get(value, "rows"));
    json_decref(value);
    assert_int_equal(run_cli("simulate --banyan 8 --square shift"), 1);
    value = run_cli_json("simulate --omega 8 --rows --square shift");
    assert_string_equal(text_of(value, "simulated"), "omega");
    assert_true(number(value, "steps") == 10);
    assert_true(json_is_false(json_object_get(value, "whole_stages")));
    json_decref(value);
    value = run_cli_json("simulate --baseline 16");
    assert_string_equal(text_of(value, "simulated"), "baseline");
    assert_true(number(value, "delivered") == 256);
    assert_true(number(value, "steps") == 19);
    assert_true(json_is_true(json_object_get(value, "whole_stages")));
    json_decref(value);
    assert_int_equal(run_cli("simulate --baseline 8 --square shift"), 1);
    assert_non_null(strstr(run_cli_output, "conflict in row 0, stage 0"));
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
        assert_true(number(value, "segments") == known[i].segments);
        assert_true(number(value, "ticks") == known[i].ticks);
        assert_true(number(value, "bound_ticks") == known[i].bound);
        assert_true(number(value, "block_times") == known[i].ticks / known[i].segments);
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
        assert_true(number(value, "arrivals") == 25 * 24);
        assert_true(number(value, "busiest") == 6);
        assert_true(number(value, "delay_us") == known[i].delay);
        assert_true(number(value, "bound_us") == known[i].bound);
        assert_true(number(value, "excess_us") == known[i].excess);
        assert_true(number(value, "formula_us") == known[i].delay - known[i].excess);
        json_decref(value);
    }
    json_t *value = run_cli_json("simulate --dims 4x6m --algorithm balanced");
    assert_true(number(value, "arrivals") == 24 * 23);
    assert_true(json_is_null(json_object_get(value, "formula_us")));
    json_decref(value);
}

TEST(text)
{
    assert_int_equal(run_cli("simulate --banyan 4 --rows"), 0);
    assert_non_null(strstr(run_cli_output, "conflicts           0"));
    assert_non_null(strstr(run_cli_output, "outputs of inputs"));
    assert_int_equal(run_cli("simulate --dims 3x3m"), 0);
    assert_non_null(strstr(run_cli_output, "3x3m"));
    assert_int_equal(run_cli("simulate --help"), 0);
    assert_non_null(strstr(run_cli_output, "examples:"));
}

TEST(refusals)
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
