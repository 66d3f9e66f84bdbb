/* Links of different rates in commands that need no daemon: figures, what is written, and refusals. */
#include <math.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/unit/run_cli.h"

static double number(const json_t *value, const char *key)
{
    const json_t *n = json_object_get(value, key);
    assert_true(json_is_number(n));
    return json_number_value(n);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 0.005 * b;
}

/* The table of client/doc/algorithms.md: for each link, the lower bound, the load of the routes that are found, and
 * that of the routes for equal links, over the bound for equal links. */
TEST(table_of_the_documents)
{
    static const struct {
        const char *dims, *links;
        double uniform, optimum, equal_ways;
    } rows[] = {
        {"4x4", "--rate 6:-1=0.5", 8, 1.067, 2},     {"4x4", "--rate 6:-1=0.4", 8, 1.081, 2.5},
        {"4x4", "--rate 6:-1=0.1", 8, 1.127, 10},    {"3x3", "--link-rate 0:+0=0.1", 3, 1.176, 10},
        {"4", "--link-rate 0:+0=0.1", 2, 1.818, 10}, {"4x4", "--link-rate '*:+0=0.5'", 8, 2, 2}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char found[128], named[160], simulated[160];
        (void)snprintf(found, sizeof found, "plan --dims %s %s", rows[i].dims, rows[i].links);
        (void)snprintf(named, sizeof named, "%s --algorithm stream", found);
        (void)snprintf(simulated, sizeof simulated, "simulate --dims %s %s", rows[i].dims,
                       rows[i].links);
        json_t *o = run_cli_json(found);
        if (!near(number(o, "bound"), rows[i].optimum * rows[i].uniform) ||
            number(o, "busiest") > 1.03 * number(o, "bound"))
            fail_msg("%s: %s", found, run_cli_output);
        double busiest = number(o, "busiest");
        assert_true(number(o, "streamed") <= 1.05 * busiest);
        json_decref(o);
        o = run_cli_json(named);
        if (!near(number(o, "busiest"), rows[i].equal_ways * rows[i].uniform) ||
            !near(number(o, "bound"), rows[i].optimum * rows[i].uniform))
            fail_msg("%s: %s", named, run_cli_output);
        json_decref(o);
        o = run_cli_json(simulated);
        assert_true(number(o, "block_times") >= busiest * 0.999 &&
                    number(o, "block_times") <= 1.05 * busiest);
        json_decref(o);
        o = run_cli_json(strcat(simulated, " --algorithm stream"));
        if (!near(number(o, "block_times"), rows[i].equal_ways * rows[i].uniform))
            fail_msg("%s: %s", simulated, run_cli_output);
        json_decref(o);
    }
}

/* Options and lines of a file say the same; options correct the file. */
TEST(written)
{
    char path[] = "/tmp/torusd-test-rates-XXXXXX", arguments[160];
    static const char text[] = "# cables\n\n6:-1=0.4,7:+1=0.9\n  link\t3:+0=0.2 # both ways\r\n";
    int fd = mkstemp(path);

    assert_true(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    close(fd);
    (void)snprintf(arguments, sizeof arguments, "plan --dims 4x4 --rates %s --rate 7:+1=1", path);
    json_t *a = run_cli_json(arguments);
    json_t *b = run_cli_json("plan --dims 4x4 --rate 6:-1=0.4 --link-rate 3:+0=0.2");
    assert_string_equal(json_string_value(json_object_get(a, "rates")),
                        "3:+0=0.2,6:-1=0.4,7:-0=0.2");
    assert_string_equal(json_string_value(json_object_get(a, "algorithm")), "detour");
    assert_string_equal(json_string_value(json_object_get(a, "bound_of")),
                        "all-port, at these rates");
    assert_null(json_object_get(a, "without"));
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
    unlink(path);
}

TEST(refused)
{
    static const char *const cases[][2] = {
        {"plan --dims 4x4 --rate 6:-1=0", "--rate: '6:-1=0': a rate is a part of"},
        {"plan --dims 4x4 --link-rate 6:-7=0.5",
         "--link-rate: '6:-7=0.5': node 6 of a torus of 4x4"},
        {"plan --dims 4x4 --rate 6", "--rate: '6' is not the rate of a link, such as 6:-1=0.4"},
        {"plan --rate 6:-1=0.4", "--rate needs --dims"},
        {"plan --dims 4x4 --rates /nowhere", "/nowhere"},
        {"bounds --network ring:4 --rate 1:+0=0.4", "--rate needs --dims"},
        {"bounds --dims 4 --rate 1:+1=0.4", "node 1 of a torus of 4 has no link"},
        {"simulate --banyan 8 --rate 1:+0=0.4", "--rate is for --dims"},
        {"simulate --dims 4x4 --algorithm balanced --rate 1:+0=0.4", "balanced is not an exchange"},
        {"predict --dims 4x4 --rate 1:+0=1.4", "'1:+0=1.4': a rate is a part of"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (run_cli(cases[i][0]) == 0 || strstr(run_cli_output, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], run_cli_output);
}

TEST(line_of_a_file)
{
    char path[] = "/tmp/torusd-test-rates-XXXXXX", arguments[160], wanted[160];
    static const char text[] = "6:-1=0.4\n# the next one is wrong\nlink 16:+0=0.5\n";
    int fd = mkstemp(path);

    assert_true(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    close(fd);
    (void)snprintf(arguments, sizeof arguments, "plan --dims 4x4 --rates %s", path);
    (void)snprintf(wanted, sizeof wanted,
                   "%s, line 3: '16:+0=0.5': a torus of 4x4 has the nodes 0 to 15", path);
    assert_true(run_cli(arguments) != 0);
    assert_non_null(strstr(run_cli_output, wanted));
    unlink(path);
}

/* The found routes are the fastest for long blocks; formulas are for equal links. */
TEST(predicted)
{
    json_t *o = run_cli_json("predict --dims 4x4 --rate 6:-1=0.1 --block-size 1MiB");
    const json_t *fastest = json_array_get(json_object_get(o, "times"), 0);
    const json_t *row;
    size_t i;

    assert_string_equal(json_string_value(json_object_get(fastest, "algorithm")), "detour");
    json_array_foreach(json_object_get(o, "algorithms"), i, row)
        assert_null(json_object_get(row, "formula_transmission"));
    assert_string_equal(json_string_value(json_object_get(o, "rates")), "6:-1=0.1");
    json_decref(o);
}

/* Trees whose channels carry what their rates allow. */
TEST(trees)
{
    json_t *o = run_cli_json("plan --dims 4x4 --rate 6:-1=0.4 --algorithm disjoint");

    assert_true(near(number(o, "bound"), 15 / 3.4));
    assert_true(near(number(o, "broadcast_bound"), 1 / 3.4));
    assert_true(number(o, "trees") > 4);
    assert_true(number(o, "busiest") <= 1.1 * number(o, "bound"));
    json_decref(o);
}

TEST(bounds)
{
    json_t *o = run_cli_json("bounds --dims 4x4 --rate 6:-1=0.1");
    const json_t *rated = json_object_get(o, "rated");

    assert_true(near(number(rated, "all_port"), 8 * 1.127));
    assert_true(near(number(rated, "allgather"), 15 / 3.1));
    assert_true(near(number(rated, "broadcast"), 1 / 3.1));
    assert_true(near(number(json_object_get(o, "bounds"), "all_port"), 8));
    json_decref(o);
    o = run_cli_json("bounds --dims 4x4");
    assert_null(json_object_get(o, "rated"));
    json_decref(o);
}

/* Pictures name slow channels, and pages mark them. */
TEST(drawn)
{
    assert_int_equal(run_cli("plan --dims 4x4 --rate 6:-1=0.4 --svg -"), 0);
    assert_non_null(strstr(run_cli_output, "<title>6 to 5, port -1: "));
    assert_non_null(strstr(run_cli_output, " at 0.4 of the rate of the others</title>"));
    assert_int_equal(run_cli("plan --dims 4x4 --rate 6:-1=0.4 --algorithm stream --load --svg -"),
                     0);
    assert_non_null(strstr(run_cli_output, ">8 at 0.4</text>"));
    assert_int_equal(
        run_cli("plan --dims 4x4 --rate 6:-1=0.4 --html - | grep -o '\"rates\":[^}]*'"), 0);
    assert_non_null(strstr(run_cli_output, "[[6,3,0.4]]"));
}
