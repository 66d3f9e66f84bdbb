/* A calibration reaches every node, the newer one wins, and a node that was down is told later; "auto" chooses
 * by it. */
#include <math.h>

#include "daemon/torusd/exchange/choose_routes.h"
#include "tests/sim/checks.h"
#include "tests/sim/internal.h"
#include "tests/support/cmocka.h"

static const struct predict_costs first = {20e-6, 8e-6, 6e6, 0, 0},
                                  second = {10e-6, 60e-6, 1e9, 0, 0};

static struct sim *start(const char *dims)
{
    return SIM_WHOLE(.dims = dims, .seed = 7, .latency = 100 * MICROSECONDS, .rate = 125000000);
}

static void calibrate(struct sim *sim, uint32_t rank, const struct predict_costs *costs)
{
    struct error e;

    assert_int_equal(exchanges_calibrate(sim_exchanges(sim, rank), costs, 1000 + rank, &e), 0);
    sim_settle(&sim->node[rank]);
}

static bool knows(struct sim *sim, uint32_t rank, const struct predict_costs *costs)
{
    const struct calibration *c = exchanges_calibration(sim_exchanges(sim, rank));

    return c->measured_at != 0 && memcmp(&c->costs, costs, sizeof *costs) == 0;
}

static void check_all_know(struct sim *sim, const struct predict_costs *costs)
{
    sim_pass(sim, 1 * SECONDS);
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        assert_true(knows(sim, rank, costs));
}

SIM_TEST(start("4x4"), all_nodes_hear_of_it_and_the_newer_wins)
{
    uint64_t before = sim_frames(sim);
    calibrate(sim, 5, &first);
    check_all_know(sim, &first);
    /* The calibration is flooded, and not echoed for ever: it crosses each link at most once in each direction, besides
 * heartbeats. */
    assert_true(sim_frames(sim) - before <= 64 + 64 * (SECONDS / ROUTER_HEARTBEAT + 1));
    calibrate(sim, 10, &second);
    check_all_know(sim, &second);
    calibrate(sim, 0, NULL);
    sim_pass(sim, 1 * SECONDS);
    for (uint32_t rank = 0; rank < 16; rank++)
        assert_int_equal(exchanges_calibration(sim_exchanges(sim, rank))->measured_at, 0);
}

SIM_TEST(start("3x3"), two_at_once_become_one)
{
    calibrate(sim, 0, &first);
    calibrate(sim, 8, &second);   /* has not heard of the other: the same version */
    check_all_know(sim, &second); /* measured later */
}

SIM_TEST(start("3x3"), a_late_node_is_told)
{
    sim_kill(sim, 4, SIM_CRASH);
    sim_pass(sim, 1 * SECONDS);
    calibrate(sim, 0, &first);
    sim_pass(sim, 1 * SECONDS);
    sim_restart(sim, 4);
    assert_int_equal(exchanges_calibration(sim_exchanges(sim, 4))->version, 0);
    sim_run_until_whole(sim);
    check_all_know(sim, &first);
    /* And the older calibration that it sends has not replaced the newer one. */
    calibrate(sim, 4, &second);
    check_all_know(sim, &second);
}

SIM_TEST(start("2x2"), nonsense_is_refused)
{
    const struct predict_costs wrong[] = {
        {-1e-6, 1e-6, 1e6, 0, 0},       {1e-6, -1e-6, 1e6, 0, 0},           {1e-6, 1e-6, 0, 0, 0},
        {(double)NAN, 1e-6, 1e6, 0, 0}, {1e-6, 1e-6, -1e6, 0, 0},           {1e9, 1e-6, 1e6, 0, 0},
        {1e-6, 1e-6, 1e30, 0, 0},       {1e-6, (double)INFINITY, 1e6, 0, 0}};
    struct error e;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_fails(exchanges_calibrate(sim_exchanges(sim, 0), &wrong[i], 1, &e), e, ERROR_USAGE,
                     "");
    }
    assert_int_equal(exchanges_calibration(sim_exchanges(sim, 0))->version, 0);
}

struct candidates {
    struct candidate list[CHOOSE_MOST];
    unsigned count;
    uint64_t block_bytes;
};

static bool are_counted(struct sim *sim, void *context)
{
    struct candidates *c = context;
    const struct block_sizes sizes = {c->block_bytes, c->block_bytes};
    struct error e;

    return choose_candidates(sim_exchanges(sim, 0), &sizes, MODE_OF_ALGORITHM, c->list, &c->count,
                             NULL, &e) == 1;
}

/* The candidates of node 0, once it has counted them. */
static void get_candidates(struct sim *sim, uint64_t block_bytes, struct candidates *c)
{
    c->block_bytes = block_bytes;
    assert_true(sim_run(sim, 1 * SECONDS, are_counted, c));
}

static const char *chosen(struct sim *sim, uint64_t block_bytes)
{
    struct candidates c;

    get_candidates(sim, block_bytes, &c);
    assert_true(c.count > 1);
    for (unsigned i = 1; i < c.count; i++)
        assert_true(c.list[i - 1].seconds <= c.list[i].seconds);
    return c.list[0].algorithm->name;
}

SIM_TEST(start("4x4"), auto_takes_the_one_for_the_size)
{
    calibrate(sim, 0, &second); /* messages are expensive */
    assert_string_equal(chosen(sim, 1), "tree");
    assert_string_equal(chosen(sim, 1 << 20), "stream");
    const struct spec small = GENERATED(.algorithm = SPEC_AUTO, .block_bytes = 1);
    struct sim_request *r = sim_exchange(sim, 0, &small);
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    assert_int_equal(r->error.code, ERROR_NONE);
    assert_string_equal(r->result.algorithm, "tree");
}

/* Nodes report the sizes of their files before an algorithm is chosen. */
SIM_TEST(start("4x4"), auto_takes_files_by_their_sizes)
{
    static const struct {
        const char *from;
        uint64_t block_bytes;
    } sources[] = {{"/same/1", 1}, {"/same/1000", 1000}, {"/same/200000", 200000}};
    calibrate(sim, 0, &second);
    assert_string_not_equal(chosen(sim, 1), chosen(sim, 200000));
    for (uint32_t i = 0; i < 3; i++) {
        const char *to[] = {"/a", "/b", "/c"};
        const struct spec folders = {.algorithm = SPEC_AUTO, .from = sources[i].from, .to = to[i]};
        struct sim_request *r = sim_exchange(sim, 3 * i, &folders);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        assert_int_equal(r->error.code, ERROR_NONE);
        assert_string_equal(r->result.algorithm, chosen(sim, sources[i].block_bytes));
    }
}

static double candidate_seconds(struct sim *sim, const char *name, uint64_t block_bytes)
{
    struct candidates c;

    get_candidates(sim, block_bytes, &c);
    for (unsigned i = 0; i < c.count; i++)
        if (strcmp(c.list[i].algorithm->name, name) == 0)
            return c.list[i].seconds;
    fail_msg("%s is not a candidate", name);
    return 0;
}

/* A session: its median, and the time that each exchange took beyond it, in seconds. */
static void run_session(struct sim *sim, const char *algorithm, uint64_t block_bytes,
                        double *median, double *pause)
{
    enum { REPEAT = 41 };
    const struct spec spec =
        GENERATED(.algorithm = algorithm, .block_bytes = block_bytes, .repeat = REPEAT);
    struct sim_request *r = sim_exchange(sim, 0, &spec);

    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    assert_int_equal(r->error.code, ERROR_NONE);
    *median = sim_median_seconds(r);
    *pause = (double)r->result.all_ns / 1e9 / REPEAT - *median;
}

/* A session's median corrects the predictions for blocks of its size, and to a lesser degree for sizes between it and
 * the next measured size. One exchange alone corrects nothing. */
SIM_TEST(start("4x4"), auto_learns_from_sessions)
{
    struct spec spec = GENERATED(.algorithm = "at2", .block_bytes = 4096, .repeat = 1);
    double model = candidate_seconds(sim, "at2", 4096), far = candidate_seconds(sim, "at2", 1);
    double other = candidate_seconds(sim, "stream", 4096);

    struct sim_request *r = sim_exchange(sim, 0, &spec);
    (void)sim_run_until_ended(r, 60 * SECONDS);
    assert_true(candidate_seconds(sim, "at2", 4096) == model);
    spec.repeat = 7;
    r = sim_exchange(sim, 0, &spec);
    (void)sim_run_until_ended(r, 60 * SECONDS);
    assert_int_equal(r->result.repeat, 7);
    double seen = (double)r->result.each[6] / 1e9; /* in virtual time, all take the same time */
    assert_true(fabs(model / seen - 1) > 0.01);
    assert_true(fabs(candidate_seconds(sim, "at2", 4096) / seen - 1) < 0.01);
    assert_true(fabs(candidate_seconds(sim, "at2", 6000) / model - 1) > 0.01);
    assert_true(candidate_seconds(sim, "at2", 1) == far);
    /* For another algorithm, it only shows that it is not faster than the model, either. */
    double factor = fmax(1, candidate_seconds(sim, "at2", 4096) / model);
    assert_true(fabs(candidate_seconds(sim, "stream", 4096) / other - factor) < 1e-6);
}

/* An algorithm that was measured to be slower than predicted is not replaced by every algorithm that was only
 * predicted. */
TEST(auto_does_not_prefer_what_it_has_not_measured)
{
    static const uint64_t sizes[] = {64, 1024, 4096};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct sim *sim =
            SIM_WHOLE(.dims = "4x4", .seed = 7, .latency = 500 * MICROSECONDS, .rate = 2500000);
        double median, pause;
        const char *name = chosen(sim, sizes[i]);
        double predicted = candidate_seconds(sim, name, sizes[i]);
        run_session(sim, name, sizes[i], &median, &pause);
        assert_true(candidate_seconds(sim, name, sizes[i]) > 1.05 * predicted);
        assert_string_equal(chosen(sim, sizes[i]), name);
        sim_free(sim);
    }
}

/* On this torus, at2 and at2-printed are one schedule; cccube is nearer to pair. */
SIM_TEST(SIM_WHOLE(.dims = "8x8", .seed = 7, .latency = 500 * MICROSECONDS, .rate = 2500000),
         auto_judges_by_what_is_most_alike)
{
    double twin, cccube, median, pause;

    double at2 = candidate_seconds(sim, "at2", 1024), pair = candidate_seconds(sim, "pair", 1024);
    twin = candidate_seconds(sim, "at2-printed", 1024);
    cccube = candidate_seconds(sim, "cccube", 1024);
    run_session(sim, "at2", 1024, &median, &pause);
    run_session(sim, "pair", 1024, &median, &pause);
    double by_at2 = candidate_seconds(sim, "at2", 1024) / at2;
    double by_pair = candidate_seconds(sim, "pair", 1024) / pair;
    assert_true(by_at2 > 1.01 && fabs(by_at2 / by_pair - 1) > 0.01);
    assert_true(fabs(candidate_seconds(sim, "at2-printed", 1024) / twin / by_at2 - 1) < 1e-6);
    assert_true(fabs(candidate_seconds(sim, "cccube", 1024) / cccube / fmax(1, by_pair) - 1) <
                1e-6);
}

/* A limiter lets packets of an exchange through early, and then holds back the next exchange: early arrival is not all
 * that counts. */
SIM_TEST(SIM_WHOLE(.dims = "4x4", .seed = 7, .latency = 20 * MICROSECONDS, .rate = 2500000,
                   .burst = 4000),
         auto_counts_what_links_owe)
{
    double median, pause, least;

    run_session(sim, "pair", 64, &median, &least);
    assert_true(fabs(candidate_seconds(sim, "pair", 64) / median - 1) < 0.01);
    run_session(sim, "tree", 64, &median, &pause);
    assert_true(pause > 5 * least && pause > median / 4);
    double counted = candidate_seconds(sim, "tree", 64);
    assert_true(counted > 1.04 * median);
    assert_true(fabs(counted / hypot(median, pause - least) - 1) < 0.01);
}

/* Corrections from small blocks for larger ones: a part of the time that they took beyond the model grows with the
 * size, and a part does not; time that they were faster does not grow. */
TEST(auto_concludes_from_smaller_blocks)
{
    const struct sim_setup slow = {
        .dims = "4x4", .seed = 7, .latency = 500 * MICROSECONDS, .rate = 2500000};
    const struct sim_setup fast = {.dims = "4x4", .seed = 7, .latency = 1, .rate = 0};

    for (int faster = 0; faster < 2; faster++) {
        struct sim *sim = sim_new(faster ? &fast : &slow);
        double median, pause;
        sim_run_until_whole(sim);
        double small = candidate_seconds(sim, "pair", 1024);
        double large = candidate_seconds(sim, "pair", 8192);
        run_session(sim, "pair", 1024, &median, &pause);
        double by_ratio = large * median / small, by_difference = large + median - small;
        double now = candidate_seconds(sim, "pair", 8192);
        if (faster) {
            assert_true(median < 0.9 * small);
            assert_true(fabs(now / by_difference - 1) < 0.001);
        } else {
            assert_true(by_ratio > 1.1 * by_difference);
            assert_true(fabs(now / sqrt(by_ratio * by_difference) - 1) < 0.001);
        }
        sim_free(sim);
    }
}
