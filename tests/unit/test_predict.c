/* Counts of schedules, and the costs that explain measurements. */
#include <math.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/predict.h"
#include "tests/support/cmocka.h"

#define MOST 16

static struct predict_counts count(const char *dims, const char *name)
{
    const struct algorithm *a = algorithm_find(name);
    struct predict_counts counts;
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, dims, &e), 0);
    assert_non_null(a);
    assert_int_equal(predict_count(&t, a, a->streaming, &counts, &e), 0);
    return counts;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b) + 1e-15;
}

TEST(counts_are_those_of_the_schedules)
{
    /* tree: 2 (N - 1) messages in all, up and down the longest path. */
    struct predict_counts c = count("4x4", "tree");
    assert_true(near(c.messages, 2.0 * 15 / 16));
    assert_true(near(c.steps, 8));
    c = count("8x8", "tree");
    assert_true(near(c.messages, 2.0 * 63 / 64));
    assert_true(near(c.steps, 16));
    /* pair: half a ring's size of rounds for each ring, one message in each. */
    c = count("4x4", "pair");
    assert_true(near(c.messages, 4));
    assert_true(near(c.steps, 4));
    assert_true(near(c.blocks, 32));
    c = count("8x8", "pair");
    assert_true(near(c.messages, 8));
    c = count("4x4", "pair-s4");
    assert_true(near(c.messages, 16));
    assert_true(near(c.blocks, 8));
    /* stream: the diameter, and the lower bound. */
    c = count("8x8", "stream");
    assert_true(c.streaming);
    assert_true(near(c.steps, 8));
    assert_true(near(c.blocks, 64));
    c = count("5x7", "stream");
    assert_true(near(c.steps, 5));
    assert_true(near(c.blocks, 30));
}

static struct predict_counts count_found(const char *dims)
{
    struct predict_counts counts;
    struct detour *found;
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, dims, &e), 0);
    assert_int_equal(detour_new_whole(&found, &t, &e), 0);
    const struct algorithm *a = detour_algorithm(found);
    assert_true(predict_is_quick(&t, a));
    assert_int_equal(predict_count(&t, a, true, &counts, &e), 0);
    assert_int_equal(counts.segments, a->segments);
    assert_true(near(counts.busiest, detour_busiest(found) / a->segments));
    assert_int_equal(torus_parse(&t, "4x4", &e), 0);
    assert_int_equal(predict_count(&t, a, true, &counts, &e), -1); /* of another network */
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_int_equal(torus_parse(&t, dims, &e), 0);
    assert_int_equal(predict_count(&t, a, true, &counts, &e), 0);
    detour_free(found);
    return counts;
}

TEST(found_routes_have_their_own_counts)
{
    /* One hop to each of the others. */
    struct predict_counts c = count_found("complete:4");
    assert_true(c.streaming && near(c.steps, 1) && near(c.messages, 3) && near(c.blocks, 1));
    /* Through the middle: each leaf gets 4 blocks by its only link, which the two channels carry. */
    c = count_found("star:5");
    assert_true(near(c.steps, 2) && near(c.blocks, 4));
    assert_true(near(c.messages, 8.0 / 5 * 1.9));
    /* Each half of the path has 4 * 4 pairs, all of which cross the link in the middle. */
    c = count_found("tree:1^7");
    assert_true(near(c.steps, 7) && near(c.blocks, 16));
}

TEST(only_exchanges_are_counted)
{
    struct predict_counts counts;
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, "4x4", &e), 0);
    assert_fails(predict_count(&t, algorithm_find("balanced"), false, &counts, &e), e, ERROR_USAGE,
                 "");
    assert_int_equal(predict_count(&t, algorithm_find("ar"), false, &counts, &e), -1);
    assert_int_equal(predict_count_gather(&t, algorithm_find("direct"), false, true, &counts, &e),
                     -1);
    assert_int_equal(e.code, ERROR_USAGE);
}

static struct predict_counts count_gather(const char *dims, const char *name, bool one,
                                          bool streaming)
{
    struct torus t;
    struct predict_counts counts;
    struct error e;

    assert_int_equal(torus_parse(&t, dims, &e), 0);
    assert_int_equal(predict_count_gather(&t, algorithm_find(name), one, streaming, &counts, &e),
                     0);
    return counts;
}

TEST(allgathers_and_broadcasts)
{
    struct predict_counts c;

    /* 4 blocks on the busiest channel, and one more if steps wait for each other. */
    c = count_gather("4x4", "balanced", false, true);
    assert_true(c.streaming && near(c.blocks, 4) && near(c.steps, 4) && near(c.relays, 0));
    c = count_gather("4x4", "balanced", false, false);
    assert_true(!c.streaming && near(c.blocks, 5) && near(c.steps, 4));
    assert_true(near(c.messages, 3 * 4 + 1)); /* the last one to the opposite node */
    c = count_gather("4x4", "disjoint", false, true);
    assert_true(near(c.blocks, 15.0 / 4) && near(c.steps, 7));
    /* One block: whole, hop by hop or as it comes; in parts, by each of the root's links. */
    c = count_gather("4x4", "balanced", true, true);
    assert_true(near(c.blocks, 1) && near(c.relays, 3));
    c = count_gather("4x4", "balanced", true, false);
    assert_true(near(c.blocks, 4) && near(c.relays, 0));
    c = count_gather("4x4", "disjoint", true, true);
    assert_true(near(c.blocks, 0.25) && near(c.relays, 6));
    c = count_gather("3mx3m", "disjoint", true, true);
    assert_true(near(c.blocks, 0.5));
    c = count_gather("1", "disjoint", true, true);
    assert_true(near(c.blocks, 0) && near(c.steps, 0) && near(c.relays, 0));
}

/* Short trees for small blocks, and all links for large ones. */
TEST(large_blocks_are_split)
{
    static const double mbit[] = {20, 50, 1000};

    for (size_t i = 0; i < sizeof mbit / sizeof *mbit; i++)
        for (int one = 0; one < 2; one++) {
            struct predict_counts whole = count_gather("4x4", "balanced", one, true),
                                  split = count_gather("4x4", "disjoint", one, true),
                                  steps = count_gather("4x4", "balanced", one, false);
            struct predict_costs costs = predict_default_costs(mbit[i], 4);
            assert_true(predict_seconds(&whole, &costs, 16) < predict_seconds(&split, &costs, 16));
            assert_true(predict_seconds(&split, &costs, 1 << 20) <
                        predict_seconds(&whole, &costs, 1 << 20));
            assert_true(predict_seconds(&whole, &costs, 1 << 20) <
                        predict_seconds(&steps, &costs, 1 << 20));
        }
}

/* The burst of links makes whole trees, with fewer messages, better for blocks of a few KiB, but not for blocks
 * longer than the burst. On 4x4 at 50 Mbit/s and 4x8 at 20, 16 nodes a processor, broadcasts of 4 KiB took 0.2 and 0.5
 * ms on whole trees, 0.8 and 1.6 on split ones; of 64 KiB 10 and 26, and 1.1 and 6.5. */
TEST(a_burst_carries_short_broadcasts)
{
    const char *const dims[] = {"4x4", "4x8"};
    const double mbit[] = {50, 20};

    for (size_t i = 0; i < sizeof mbit / sizeof *mbit; i++) {
        struct predict_counts whole = count_gather(dims[i], "balanced", true, true),
                              split = count_gather(dims[i], "disjoint", true, true);
        struct predict_costs costs = predict_default_costs(mbit[i], 8 << i);
        costs.burst = 16 * 1024;
        assert_true(predict_unmeasured_seconds(&whole, &costs, 4096) <
                    predict_unmeasured_seconds(&split, &costs, 4096));
        assert_true(predict_unmeasured_seconds(&split, &costs, 65536) <
                    predict_unmeasured_seconds(&whole, &costs, 65536));
        /* Never less than without bytes, nor more than without a burst. */
        double bare = predict_unmeasured_seconds(&whole, &costs, 0);
        for (uint64_t bytes = 1; bytes < 1 << 20; bytes *= 2) {
            double seconds = predict_unmeasured_seconds(&whole, &costs, bytes);
            assert_true(seconds >= bare && seconds <= predict_seconds(&whole, &costs, bytes));
        }
        /* Without a burst it is the same. */
        costs.burst = 0;
        assert_true(near(predict_unmeasured_seconds(&whole, &costs, 4096),
                         predict_seconds(&whole, &costs, 4096)));
    }
}

/* Exchanges of short blocks are as fast on one tree as its few messages, while no channel carries more than its limiter
 * makes good in the meantime. On 4x4 at 50 Mbit/s, 8 nodes a processor, programs' calls with 24 bytes a block on the
 * links took 0.89 ms on the tree, back to back, and 1.3 in pairs; of 264, 1.7 in pairs and 2.0 by dimensions. */
TEST(a_burst_carries_short_exchanges)
{
    struct predict_costs costs = predict_default_costs(50, 8);
    struct predict_counts tree = count("4x4", "tree"), pair = count("4x4", "pair"),
                          stream = count("4x4", "stream");

    assert_true(tree.busiest < tree.blocks); /* its levels are on different channels */
    assert_true(near(tree.busiest, 8 * 8));  /* half of the nodes are behind the root's port +0 */
    assert_true(predict_seconds(&pair, &costs, 16) < predict_seconds(&tree, &costs, 16));
    costs.burst = 65536;
    assert_true(predict_unmeasured_seconds(&tree, &costs, 16) <
                predict_unmeasured_seconds(&pair, &costs, 16));
    assert_true(predict_unmeasured_seconds(&pair, &costs, 256) <
                predict_unmeasured_seconds(&tree, &costs, 256));
    assert_true(predict_unmeasured_seconds(&stream, &costs, 65536) <
                predict_unmeasured_seconds(&pair, &costs, 65536));
}

static size_t several(const char *dims, struct predict_counts *counts)
{
    static const char *const names[] = {"tree", "pair", "pair-s4", "dim", "stream", "direct"};
    size_t n = 0;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        counts[n++] = count(dims, names[i]);
    return n;
}

TEST(the_fit_recovers_the_costs)
{
    const struct predict_costs known[] = {{40e-6, 10e-6, 1e9, 0, 0},
                                          {0, 70e-6, 1e9, 0, 0},
                                          {1e-3, 0, 1e9, 0, 0},
                                          {1e-6, 1e-3, 1e9, 0, 0}};
    struct predict_counts counts[MOST];
    double seconds[MOST];

    size_t n = several("4x4", counts);
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        struct predict_costs fitted = {.bytes_per_second = 7};
        for (size_t i = 0; i < n; i++)
            seconds[i] = predict_seconds(&counts[i], &known[k], 0);
        predict_fit(counts, seconds, n, &fitted);
        assert_true(fabs(fitted.step - known[k].step) < 1e-9);
        assert_true(fabs(fitted.message - known[k].message) < 1e-9);
        assert_true(near(fitted.bytes_per_second, 7));
    }
}

TEST(the_fit_is_never_negative)
{
    struct predict_counts counts[MOST];
    double seconds[MOST];
    uint64_t chance = 1;

    size_t n = several("4x4", counts);
    for (unsigned k = 0; k < 10000; k++) {
        struct predict_costs fitted = {0};
        for (size_t i = 0; i < n; i++) {
            chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407;
            seconds[i] = 1e-9 * (double)(1 + (chance >> 34));
        }
        predict_fit(counts, seconds, 1 + k % n, &fitted);
        assert_true(fitted.step >= 0 && fitted.message >= 0);
        assert_true(isfinite(fitted.step) && isfinite(fitted.message));
        assert_true(fitted.step + fitted.message > 0);
    }
}

TEST(the_rate_is_what_explains_a_large_exchange)
{
    const struct predict_costs costs = {40e-6, 10e-6, 6e6, 0, 0};
    struct predict_counts counts[MOST];

    size_t n = several("8x8", counts);
    for (size_t i = 0; i < n; i++) {
        double seconds = predict_seconds(&counts[i], &costs, 1 << 20);
        assert_true(near(predict_rate(&counts[i], &costs, 1 << 20, seconds), 6e6));
        /* Faster than the other costs alone allow: still a rate. */
        double rate = predict_rate(&counts[i], &costs, 1, 1e-9);
        assert_true(isfinite(rate) && rate > 0);
    }
}

TEST(the_default_costs_choose_sensibly)
{
    struct predict_costs costs = predict_default_costs(50, 1);
    struct predict_counts tree = count("4x4", "tree"), pair = count("4x4", "pair"),
                          stream = count("4x4", "stream");

    assert_true(predict_seconds(&pair, &costs, 1) < predict_seconds(&stream, &costs, 1));
    assert_true(predict_seconds(&stream, &costs, 1 << 20) <
                predict_seconds(&pair, &costs, 1 << 20));
    assert_true(predict_seconds(&pair, &costs, 1024) < predict_seconds(&tree, &costs, 1024));
    costs = predict_default_costs(0, 1);
    assert_true(costs.bytes_per_second > 0);
}

/* Each further hop of a message takes as long as what a relay waits for, or as long as the message if
 * that is shorter. */
TEST(relays_wait_for_frames)
{
    /* Only bytes cost time; steps wait 4 % longer. */
    const struct predict_costs at_once = {0, 0, 1e6, 0, 0}, frames = {0, 0, 1e6, 1400, 0};
    struct predict_counts at2 = count("8x8", "at2"), pair = count("8x8", "pair");

    assert_true(near(pair.hops, 0));
    assert_true(at2.hops > 0 && near(at2.steps, 6));
    /* Messages of 64 / 6 blocks on average. */
    double more = predict_seconds(&at2, &frames, 64) - predict_seconds(&at2, &at_once, 64);
    assert_true(near(more, 1.04 * at2.hops * 64 * 64 / 6e6));
    more = predict_seconds(&at2, &frames, 4096) - predict_seconds(&at2, &at_once, 4096);
    assert_true(near(more, 1.04 * at2.hops * 1400 / 1e6));
    assert_true(near(predict_seconds(&pair, &frames, 64), predict_seconds(&pair, &at_once, 64)));
    /* Costs that explain a measurement explain it with hops, too. */
    assert_true(near(predict_rate(&at2, &frames, 4096, predict_seconds(&at2, &frames, 4096)), 1e6));
}

/* If links pass a frame at once, or are unknown, hops cost nothing. */
TEST(only_cables_make_relays_wait)
{
    assert_int_equal(predict_frame(2.5, 32, 0), 1400);
    assert_int_equal(predict_frame(2.5, 32, 64 * 1024), 0);
    assert_int_equal(predict_frame(0, 32, 0), 0);
    assert_int_equal(predict_default_costs(2.5, 32).frame, 0);
}

/* Many steps with few messages, or few steps with many messages: on shared processors the former is faster. */
TEST(shared_processors_make_messages_dear)
{
    struct predict_costs own = predict_default_costs(10, 1), shared = predict_default_costs(10, 32);
    struct predict_counts tree = count("8x8", "tree"), at2 = count("8x8", "at2");

    assert_true(predict_seconds(&at2, &own, 1) < predict_seconds(&tree, &own, 1));
    assert_true(predict_seconds(&tree, &shared, 1) < predict_seconds(&at2, &shared, 1));
    assert_true(predict_seconds(&at2, &shared, 1 << 16) < predict_seconds(&tree, &shared, 1 << 16));
}

static bool joins_gather(const char *dims, const char *name, struct predict_costs costs,
                         uint64_t bytes)
{
    struct predict_counts counts;
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, dims, &e), 0);
    assert_int_equal(predict_count_gather(&t, algorithm_find(name), false, true, &counts, &e), 0);
    return predict_joins_gather(&t, &counts, &costs, bytes);
}

/* On shared processors, a message costs more than a hop. As measured: joined blocks take 0.35 to 0.5 of the time of
 * streaming ones up to 256 bytes, 0.8 with 1 KiB on 4x4 at 50 Mbit/s and with 512 bytes on 4x8 at 20, and twice the
 * time with 1 KiB there. */
TEST(blocks_of_short_allgathers_are_joined)
{
    struct predict_costs costs = predict_default_costs(50, 8);

    costs.burst = 16000;
    assert_true(joins_gather("4x4", "saadschultz", costs, 1));
    assert_true(joins_gather("4x4", "saadschultz", costs, 264));
    assert_false(joins_gather("4x4", "balanced", costs, 2056));
    costs = predict_default_costs(20, 16);
    costs.burst = 16000;
    assert_true(joins_gather("4x8", "saadschultz", costs, 136));
    assert_false(joins_gather("4x8", "balanced", costs, 1032));
    /* As calibrated on 8x8 at 10 Mbit/s, where 1 KiB took 65 ms joined and 38 streaming. */
    costs = (struct predict_costs){
        .step = 120e-6, .message = 728e-6, .bytes_per_second = 1.198e6, .burst = 16000};
    assert_true(joins_gather("8x8", "saadschultz", costs, 72));
    assert_false(joins_gather("8x8", "balanced", costs, 1032));
    /* And on 4x4 at 50, where it took 2.9 ms back to back, and 1.9. */
    costs = (struct predict_costs){
        .step = 37e-6, .message = 154e-6, .bytes_per_second = 5.996e6, .burst = 20000};
    assert_true(joins_gather("4x4", "saadschultz", costs, 264));
    assert_false(joins_gather("4x4", "saadschultz", costs, 1032));
    assert_false(joins_gather("4x4", "saadschultz", predict_default_costs(10000, 1), 8));
}

static uint64_t long_reduction(const char *dims, struct predict_costs costs)
{
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, dims, &e), 0);
    return predict_long_reduction(&t, &costs);
}

/* Short vectors are combined on one tree, whose few messages count; long ones on the trees of all
 * nodes, which share the channels. */
TEST(long_vectors_take_the_trees_of_all_nodes)
{
    const struct predict_costs own = predict_default_costs(1000, 1);
    struct predict_costs dear = own, cable = own;

    assert_true(long_reduction("4x4", own) > 16 * 1024);
    assert_true(long_reduction("4x4", own) < 1024 * 1024);
    /* Where 50 Mbit/s and 0.2 ms a message were measured, all trees took 7.5 ms for 4 KiB and 10 ms
     * for 16 KiB, one tree 2.2 and 3.0 ms; for 1 MiB all trees took 96 ms, half of what one takes. */
    dear = (struct predict_costs){.step = 20e-6, .message = 200e-6, .bytes_per_second = 5.9e6};
    assert_in_range(long_reduction("4x4", dear), 32 * 1024, 512 * 1024);
    dear.message = 2 * dear.message;
    assert_true(long_reduction("4x4", dear) > 32 * 1024);
    /* One tree takes longer because a chunk must arrive before it is passed on. */
    cable.frame = 1400;
    assert_true(long_reduction("8x8", cable) < long_reduction("8x8", own));
    assert_true(long_reduction("1x4m", own) == UINT64_MAX);
    assert_true(long_reduction("1x2", own) == UINT64_MAX);
    cable.bytes_per_second = 0;
    assert_true(long_reduction("8x8", cable) == UINT64_MAX);
}
