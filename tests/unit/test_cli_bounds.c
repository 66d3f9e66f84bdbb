/* torusctl bounds: its figures, its text and its refusals. */
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/unit/json_expect.h"
#include "tests/unit/run_cli.h"

/* Runs torusctl, whose answer must have this: see json_expect(). */
static void answers(const char *command, const char *wanted)
{
    json_t *value = run_cli_json(command);

    json_expect(value, wanted);
    json_decref(value);
}

static double number(const json_t *value, const char *path)
{
    assert_true(json_is_number(json_at(value, path)));
    return json_number_value(json_at(value, path));
}

TEST(torus)
{
    answers("bounds --dims 8x8",
            "network=ring:8^2 node_count=64 diameter=8 average_distance=4.06349206 "
            "status.average=256 bounds.all_port=64 bounds.one_port=64 "
            "bounds.one_port_single_hops=256 broadcasts.one_to_all=8 broadcasts.all_to_all=16 "
            "a2.startups=14 a2.transmission=256 node=none");
}

TEST(product)
{
    answers("bounds --network 'ring:8 x array:4 x complete:3' --node 5",
            "dimensions=#3 dimensions.1.graph=array dimensions.1.average_status=5 "
            "dimensions.1.cut=4 status.least=352 status.most=400 node.rank=5 node.status=352 "
            "bounds.one_port_single_hops=376");
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
        double excess = number(value, "bounds.one_port_single_hops") - known[i].bound;
        if (excess > 1e-9 || excess < -1e-9)
            fail_msg("%s: %f more than %f", known[i].dims, excess, known[i].bound);
        assert_true(number(value, "a2.transmission") == known[i].a2);
        assert_true(number(value, "a1.transmission") == known[i].a1);
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
            number(value, "reductions.reduce_scatter"), number(value, "reductions.allreduce"),
            number(value, "reductions.two_phases"), number(value, "reductions.reduce")};
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

TEST(products)
{
    answers("simulate --network 'complete:4 x complete:3'",
            "simulated=product algorithm=a2 delivered=132 startups=5 transmission=17 "
            "formula_transmission=17 bound=17 efficiency=1");
    answers("simulate --network complete:4xcomplete:3 --algorithm a1",
            "startups=15 transmission=33"); /* 6 + 3 * 3, 6 * 4 + 3 * 3 */
    answers("simulate --network 'star:5 x 4'",
            "delivered=380 startups=19 transmission=84 formula_transmission=84");
    answers("simulate --network 'complete:3 x star:5' --algorithm a1",
            "delivered=210 transmission=106 formula_transmission=106");
    answers("simulate --network ring:1", "delivered=0 efficiency=null");
}

TEST(banyan)
{
    answers("simulate --banyan 8 --rows", "simulated=banyan stages=3 steps=10 delivered=64 "
                                          "conflicts=0 whole_stages=true rows.5.settings=xxx "
                                          "rows.5.outputs=#8");
    answers("simulate --banyan 1 --square products", "steps=1 rows=none");
    assert_int_equal(run_cli("simulate --banyan 8 --square shift"), 1);
    answers("simulate --omega 8 --rows --square shift",
            "simulated=omega steps=10 whole_stages=false");
    answers("simulate --baseline 16",
            "simulated=baseline delivered=256 steps=19 whole_stages=true");
    assert_int_equal(run_cli("simulate --baseline 8 --square shift"), 1);
    assert_contains(run_cli_output, "conflict in row 0, stage 0");
}

TEST(streaming)
{
    answers("simulate --dims 5x7", "simulated=schedule segments=4 mode=streaming switching=store "
                                   "queue=longest block_times=30 efficiency=1 time_us=337.92");
    answers("simulate --dims 8x8 --algorithm stream", "segments=4 block_times=64 bound_us=720.896");
    answers("simulate --dims 8x8 --algorithm direct --mode streaming",
            "segments=1 block_times=72 bound_us=720.896");
    answers("simulate --dims 4x4 --algorithm cccube-q5 --mode streaming",
            "segments=1 block_times=8 efficiency=1");
    answers("simulate --dims 1", "segments=4 block_times=0 time_us=0 efficiency=null messages=0");
}

/* Theorem 4 for 5x5, with messages of 4 us: 75 + 1 + 4 + 5 * 4 + 1 = 101 us. Theorem 1: 75 + 1 + 6 * 4. */
TEST(broadcasts)
{
    static const char *const known[][2] = {
        {"--switch input", "time_us=102 bound_us=100 excess_us=1 formula_us=101"},
        {"--switch input --queue longest", "time_us=101 bound_us=100 excess_us=0 formula_us=101"},
        {"--switch output", "time_us=102 bound_us=100 excess_us=1 formula_us=101"},
        {"--switch output --queue longest", "time_us=101 bound_us=100 excess_us=0 formula_us=101"},
        {"--switch input --ts 0", "time_us=27 bound_us=25 excess_us=1 formula_us=26"},
        {"--switch input --tp 0", "time_us=99 bound_us=99 excess_us=0 formula_us=99"}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char command[200] = "simulate --dims 5x5 --algorithm yangwang --mode streaming --ts 75 "
                            "--tp 1 --tw 0.004 --block-size 1000 --queue fifo ";
        char wanted[128] = "simulated=schedule messages=600 busiest=6 ";
        answers(strcat(command, known[i][0]), strcat(wanted, known[i][1]));
    }
    answers("simulate --dims 4x6m --algorithm balanced --mode streaming",
            "messages=552 formula_us=none");
}

/* With a barrier after each step: the cost model of the papers. at2 on 8x8: 6 startups and 64 blocks. */
TEST(steps)
{
    answers("simulate --dims 8x8 --algorithm at2 --barrier --ts 75 --tw 0.01 --block-size 100",
            "mode=stepped switching=cut-through ports=all barrier=true messages=896 time_us=514");
    answers("simulate --dims 8x8 --algorithm a2 --barrier --ts 10 --tw 1 --block-size 1",
            "ports=1 time_us=396 efficiency=0.671717172"); /* 14 * 10 + 256 */
    answers("simulate --dims 4x8 --algorithm a1 --tw 1 --block-size 1 --barrier", "time_us=544");
    answers("simulate --dims 4x8 --algorithm a1 --tw 1 --block-size 1", "ports=1 time_us=116");
}

/* Four messages that turn around a ring, each of which has the channel that the one behind it needs. */
TEST(deadlocks)
{
    char path[] = "/tmp/torusd-test-circle-XXXXXX", command[128];
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    assert_non_null(file);
    fputs("{\"schedule\":1,\"dims\":\"4\",\"period\":[1]}\n", file);
    for (int d = 1; d < 4; d++)
        fprintf(file, "{\"src\":0,\"dst\":%d,\"legs\":[[%d,0,1,%d]]}\n", d, 3 - d, d);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(command, sizeof command, "simulate --import %s --switching wormhole", path);
    assert_int_equal(run_cli(command), 1);
    assert_contains(run_cli_output, "deadlock, messages       4");
    assert_contains(run_cli_output, "each message waits for the next one");
    assert_contains(run_cli_output, "0 -> 3   port +0 of node 1");
    assert_contains(run_cli_output, "3 -> 2   port +0 of node 0");
    (void)snprintf(command, sizeof command, "simulate --import %s --switching cut-through", path);
    answers(command, "deadlock=none messages=12 waited=20 operation=exchange");
    unlink(path);
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
                   {"simulate --banyan 8 --radix 3", "--banyan: 8 is not a power of the radix"},
                   {"simulate --banyan 8 --radix 1", "--radix 1: give 2 or more"},
                   {"simulate --dims 4 --radix 3", "are for --banyan"},
                   {"simulate --banyan 4 --square cube", "'cube' is not a square"},
                   {"simulate --network ring:4 --algorithm at2", "give a1 or a2"},
                   {"simulate --network ring:2000", "at most 1024"},
                   {"simulate --network moebius:4", "\"moebius:4\""},
                   {"simulate --network tree:2^8", "too large for an exchange of its own"},
                   {"simulate --dims 4x4 --algorithm yangwang", "odd if they wrap"},
                   {"simulate --banyan 4 --tp 1", "are for --dims and --import"},
                   {"simulate --dims 5x5 --barrier", "streaming has no steps"},
                   {"simulate --dims 5x5 --buffer 8", "is for --switching wormhole"},
                   {"simulate --dims 5x5 --lanes 2", "is for --switching wormhole"},
                   {"simulate --dims 5x5 --lanes 0 --switching wormhole", "give 1 or 2"},
                   {"simulate --dims 5x5 --slots 1 --switching wormhole", "--slots is for"},
                   {"simulate --dims 5x5 --slots 1 --switch input", "--slots and --switch input"},
                   {"simulate --dims 8 --algorithm ar --switch input", "is for --mode streaming"},
                   {"simulate --dims 5x5 --ports none", "'none' is not a number of ports"},
                   {"simulate --dims 5x5 --ports 0", "'0' is not a number of ports"},
                   {"simulate --import /nowhere --algorithm ar", "give one or the other"},
                   {"simulate --dims 5x5 --algorithm yangwang --tp -1", "--tp"},
                   {"simulate --dims 5x5 --algorithm yangwang --tp 1000001", "than a second"},
                   {"simulate --dims 5x5 --algorithm yangwang --queue lifo", "fifo, longest, step"},
                   {"simulate --dims 5x5 --algorithm yangwang --switch all", "input, output"},
                   {"simulate --dims 5x5 --switching sideways", "store, cut-through, wormhole"},
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
