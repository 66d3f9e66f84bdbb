/* torusctl predict: its figures, their origins, and its refusals. */
#include "tests/support/cmocka.h"
#include "tests/unit/json_expect.h"
#include "tests/unit/run_cli.h"

static char *const out = run_cli_output;

/* Runs it with these arguments; `out` is what it printed. Returns the exit code. */
static int predict(const char *arguments)
{
    char all[1024];
    (void)snprintf(all, sizeof all, "predict %s", arguments);
    return run_cli(all);
}

static json_t *value_of(const char *arguments)
{
    char all[1024];
    (void)snprintf(all, sizeof all, "predict %s", arguments);
    return run_cli_json(all);
}

/* The object in the list `key` for this algorithm, and for this block size if it is not 0. */
static const json_t *about(const json_t *value, const char *key, const char *algorithm,
                           json_int_t block)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(value, key), i, o)
    {
        if (strcmp(json_string_value(json_object_get(o, "algorithm")), algorithm) == 0 &&
            (block == 0 || json_integer_value(json_object_get(o, "block_size")) == block))
            return o;
    }
    fail_msg("nothing about %s", algorithm);
    return NULL;
}

static double number(const json_t *o, const char *key)
{
    assert_true(json_is_number(json_object_get(o, key)));
    return json_number_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* ---- Figures --------------------------------------------------------------------------------- */

TEST(enumerated)
{
    json_t *value = value_of("--dims 12x16 --algorithm at2-printed --block-size 1KiB");
    const json_t *time = about(value, "times", "at2-printed", 1024);

    json_expect(value, "algorithms=#1 algorithms.0.algorithm=at2-printed");
    json_expect(about(value, "algorithms", "at2-printed", 0),
                "runs_here=true from=enumeration transmission=424 formula_transmission=384 "
                "critical_path=384");
    json_expect(time, "from=enumeration startup_us=750");
    assert_true(number(time, "formula_time_us") < number(time, "time_us"));
    json_decref(value);
}

TEST(by_formula)
{
    json_t *value = value_of("--dims 16x16 --algorithm suh-yalamanchili --block-size 1");

    json_expect(about(value, "algorithms", "suh-yalamanchili", 0),
                "runs_here=false from=formula port_model=one-port startups=9 rearranged=2176 "
                "critical_path=none");
    json_expect(about(value, "times", "suh-yalamanchili", 1), "from=formula");
    json_decref(value);
}

/* All algorithms: those that refuse the torus are listed with the reason; times are by block size, fastest first. */
TEST(all_of_them)
{
    json_t *value = value_of("--dims 16x16 --block-size 4KiB,16");
    const json_t *times = json_object_get(value, "times");
    double size = 0, time = 0;
    size_t i;
    json_t *o;

    assert_non_null(strstr(text(about(value, "refused", "ar", 0), "reason"), "a ring"));
    (void)about(value, "algorithms", "at2", 0);
    assert_true(json_array_size(times) >= 10);
    json_array_foreach(times, i, o)
    {
        assert_true(number(o, "block_size") >= size);
        assert_true(number(o, "block_size") > size || number(o, "time_us") >= time);
        size = number(o, "block_size");
        time = number(o, "time_us");
    }
    /* The paper's claim of section 5, but only from blocks of 2 bytes on. */
    assert_true(number(about(value, "times", "at2", 16), "time_us") <
                number(about(value, "times", "suh-shin", 16), "time_us"));
    json_decref(value);
}

TEST(parameters)
{
    json_t *value = value_of("--dims 8 --algorithm=ar --block-size 10 --ts 1000 --tw 0.5 "
                             "--rho 3 --tp 2");

    json_expect(value, "parameters.tw=0.5");
    json_expect(about(value, "times", "ar", 10),
                "startup_us=4000 transmission_us=40 rearrangement_us=0 hop_us=14 time_us=4054");
    json_decref(value);
}

/* --q is a spelling of the name. */
TEST(any_number_of_packets)
{
    static const char *const q[] = {"1", "2", "5", "32", "best"};
    static char by_name[RUN_CLI_MOST];
    char text[128];

    for (size_t i = 0; i < sizeof q / sizeof q[0]; i++) {
        const char *named = strcmp(q[i], "best") == 0 ? "cccube-best" : "cccube-q";
        (void)snprintf(text, sizeof text, "--dims 8x8 --algorithm %s%s", named,
                       strcmp(q[i], "best") == 0 ? "" : q[i]);
        assert_int_equal(predict(i == 0 ? "--dims 8x8 --algorithm cccube" : text), 0);
        (void)strcpy(by_name, out);
        (void)snprintf(text, sizeof text, "--q %s --dims 8x8 --algorithm cccube", q[i]);
        assert_int_equal(predict(text), 0);
        assert_string_equal(out, by_name);
    }
}

/* The best of a family: for each block size the cheapest member, each listed once. */
TEST(best_of_a_family)
{
    static const struct {
        json_int_t size;
        const char *algorithm;
    } best[] = {{1, "cccube"}, {64, "cccube"}, {1024, "cccube-q4"}, {1048576, "cccube-q32"}};
    json_t *value = value_of("--dims 8x8 --algorithm cccube-best --block-size 1,64,1K,1M");

    assert_int_equal(json_array_size(json_object_get(value, "algorithms")), 3);
    assert_int_equal(json_array_size(json_object_get(value, "times")), 4);
    for (size_t i = 0; i < sizeof best / sizeof best[0]; i++) {
        const json_t *time = about(value, "times", best[i].algorithm, best[i].size);
        for (int q = 1; q <= 32; q++) {
            char arguments[96];
            (void)snprintf(arguments, sizeof arguments,
                           "--dims 8x8 --algorithm cccube-q%d --block-size %d --json", q,
                           (int)best[i].size);
            json_t *one = value_of(arguments);
            const json_t *row = json_array_get(json_object_get(one, "times"), 0);
            assert_true(number(row, "time_us") >= number(time, "time_us"));
            assert_true(number(row, "time_us") == number(row, "formula_time_us"));
            json_decref(one);
        }
    }
    json_decref(value);

    /* A torus too large to follow the routes. */
    value = value_of("--dims 256x256 --algorithm cccube-q100");
    assert_string_equal(text(about(value, "algorithms", "cccube-q100", 0), "from"), "formula");
    json_decref(value);
}

TEST(tables)
{
    assert_int_equal(predict("--dims 16x16"), 0);
    assert_contains(out, "counted by");
    assert_contains(out, "enumeration");
    assert_contains(out, "16 KiB");
    assert_contains(out, "1.8 ms");
    assert_int_equal(predict("--help"), 0);
    assert_contains(out, "rearranged*m*rho");
}

/* ---- Refusals -------------------------------------------------------------------------------- */

TEST(wrong_usage)
{
    static const struct {
        const char *arguments, *says;
    } wrong[] = {
        {"", "--dims is missing"},
        {"--dims 8x", "--dims: "},
        {"--dims 8x8 --algorithm at3", "did you mean at2?"},
        {"--dims 8x8 --algorithm zzzzz", "suh-shin"},
        {"--dims 8x8 --algorithm ar", "ar takes a ring"},
        {"--dims 8x8 --algorithm cccube-q33", "at most cccube-q32"},
        {"--dims 8x8 --algorithm cccube --q 33", "at most cccube-q32"},
        {"--dims 8x8 --algorithm cccube --q 0", "'0' is not a number of packets from 1 to"},
        {"--dims 8x8 --q 3", "requires --algorithm cccube"},
        {"--dims 8x8 --algorithm all --q 3", "requires --algorithm cccube"},
        {"--dims 8x8 --algorithm tseng --q 3", "requires --algorithm cccube"},
        {"--dims 8x8 --algorithm cccube-best --q 3", "give --algorithm cccube, or omit --q"},
        {"--dims 8x9 --algorithm cccube-best", "cccube takes"},
        {"--dims 8x12 --algorithm tseng", "2^d x 2^d"},
        {"--dims 251x257 --algorithm at2", "too many different routes"},
        {"--dims 8x8 --block-size 64,", "--block-size: '' is not a size"},
        {"--dims 8x8 --block-size -1", "negative"},
        {"--dims 8x8 --ts fast", "--ts: 'fast' is not a time"},
        {"--dims 8x8 --tw -1", "--tw"},
        {"--dims 8x8 --rho 1e99", "--rho"},
        {"--dims 8x8 --tp nan", "--tp"},
        {"--dims 8x8 --operation bcast", "neither exchange nor allgather"},
        {"--dims 8x8 --operation exchange --algorithm yangwang", "yangwang is for allgather"},
        {"--dims 8x8 9x9", "unexpected argument"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(predict(wrong[i].arguments), 2);
        assert_contains(out, wrong[i].says);
    }
    assert_int_equal(predict("--dims 8x8 --block-size "
                             "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,"
                             "27,28,29,30,31,32,33"),
                     2);
    assert_contains(out, "more than 32 sizes");
}
