/* On links without latency, an exchange takes the time of the cost model: the blocks on the busiest channel, step by
 * step, at the links' rate. */
#include "tests/sim/checks.h"
#include "tests/support/cmocka.h"

#define RATE UINT64_C(125000000) /* 1 Gbit/s */

/* Virtual time divided by the model's transmission time. */
static double run(const char *dims, const char *algorithm, uint64_t block, uint64_t latency)
{
    const struct spec spec = GENERATED(.algorithm = algorithm, .block_bytes = block);
    struct sim *sim = SIM_WHOLE(.dims = dims, .seed = 1, .latency = latency, .rate = RATE,
                                .memory = UINT64_C(1) << 32);

    struct sim_request *r = sim_exchange(sim, 0, &spec);
    (void)sim_run_until_ended(r, 600 * SECONDS);
    check_success(r, &spec);
    double model = (double)r->result.transmission * (double)block / (double)RATE * 1e9;
    double ratio = (double)r->result.nanoseconds / model;
    print_message("%-6s %-6s blocks of %7llu: %4llu blocks in %2u startups, bound %4.1f; %9.3f ms, "
                  "%.3f of the model\n",
                  dims, algorithm, (unsigned long long)block,
                  (unsigned long long)r->result.transmission, r->result.startups, r->result.bound,
                  (double)r->result.nanoseconds / 1e6, ratio);
    sim_free(sim);
    return ratio;
}

/* Virtual time divided by the lower bound when streaming; with little memory, in rounds. A link with half the rate of
 * the others delays only blocks that cross it. */
static double stream(const char *dims, uint64_t block, uint64_t memory, bool slow_link)
{
    const struct spec spec = GENERATED(.algorithm = "stream", .block_bytes = block);
    struct sim *sim = SIM_WHOLE(.dims = dims, .seed = 1, .rate = RATE,
                                .memory = memory > 0 ? memory : UINT64_C(1) << 32);

    if (slow_link)
        sim_set_rate(sim, 1, 0, RATE / 2);
    struct sim_request *r = sim_exchange(sim, 0, &spec);
    (void)sim_run_until_ended(r, 600 * SECONDS);
    check_success(r, &spec);
    assert_true(check_agreement(r, &spec));
    assert_true(memory == 0 ? r->result.rounds == 1 : r->result.rounds > 4);
    double ratio =
        (double)r->result.nanoseconds / (r->result.bound * (double)block / (double)RATE * 1e9);
    print_message("%-6s stream blocks of %7llu: bound %5.2f blocks, %3llu rounds%s; %9.3f ms, %.3f "
                  "of the bound\n",
                  dims, (unsigned long long)block, r->result.bound,
                  (unsigned long long)r->result.rounds, slow_link ? ", a slow link" : "",
                  (double)r->result.nanoseconds / 1e6, ratio);
    sim_free(sim);
    return ratio;
}

static void check(double ratio, double least, double most)
{
    if (ratio < least || ratio > most)
        fail_msg("%.3f of the model's time, expected %.2f to %.2f", ratio, least, most);
}

TEST(transmission_takes_the_models_time)
{
    check(run("4x4", "at2", 65536, 0), 0.98, 1.15);
    check(run("4x8", "at2", 65536, 0), 0.98, 1.17); /* shorter rings wait for the longer ones */
    check(run("8x8", "at2", 65536, 0), 0.98, 1.15);
    check(run("1x6", "direct", 65536, 0), 0.80, 1.15);
    check(run("4x4", "direct", 65536, 0), 0.80, 1.30);
}

TEST(streaming_takes_little_more_than_the_bound)
{
    check(stream("4x4", 65536, 0, false), 0.99, 1.02);
    check(stream("5x7", 65536, 0, false), 0.99, 1.02);
    check(stream("8x8", 65536, 0, false), 0.99, 1.02);
    check(stream("3x4x5", 65536, 0, false), 0.99, 1.03);
    /* 1 MiB of memory, of which an exchange takes a quarter, a round a quarter of that. */
    check(stream("4x4", 65536, 1 << 20, false), 0.99, 1.10);
    check(stream("5x7", 65536, 1 << 20, false), 0.99, 1.12);
}

TEST(a_slow_link_holds_up_what_crosses_it)
{
    check(stream("4x4", 65536, 0, true), 1.98, 2.05); /* this link carries as much as any */
    check(stream("4x4", 65536, 1 << 20, true), 1.98, 2.10);
    check(stream("5x7", 65536, 1 << 20, true), 1.35, 1.50); /* other links are busier */
}

TEST(small_blocks_cost_startups)
{
    /* 6 steps, each at least a latency: the model's transmission is next to nothing. */
    assert_true(run("4x4", "at2", 1, 1 * MILLISECONDS) > 100);
}
