/* On links without latency an exchange takes the time of the cost model: the blocks on the busiest
 * channel, step by step, at the links' rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/sim/checks.h"

#define RATE UINT64_C(125000000) /* 1 Gbit/s */

/* Virtual time over the model's transmission time. */
static double run(const char *dims, const char *algorithm, uint64_t block, uint64_t latency)
{
    const struct sim_setup setup = {
        .dims = dims, .seed = 1, .latency = latency, .rate = RATE, .memory = UINT64_C(1) << 32};
    const struct exchange_spec spec = {
        .algorithm = algorithm, .block_bytes = block, .from = "", .to = ""};
    struct sim *sim = sim_new(&setup);

    sim_run_until_whole(sim);
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

static void check(double ratio, double least, double most)
{
    if (ratio < least || ratio > most)
        fail_msg("%.3f of the model's time, expected %.2f to %.2f", ratio, least, most);
}

static void transmission_takes_the_models_time(void **state)
{
    (void)state;
    check(run("4x4", "at2", 65536, 0), 0.98, 1.15);
    check(run("4x8", "at2", 65536, 0), 0.98, 1.15);
    check(run("8x8", "at2", 65536, 0), 0.98, 1.15);
    check(run("1x6", "direct", 65536, 0), 0.80, 1.15);
    check(run("4x4", "direct", 65536, 0), 0.80, 1.30);
}

static void small_blocks_cost_startups(void **state)
{
    (void)state;
    /* 6 steps, each at least a latency: the model's transmission is next to nothing. */
    assert_true(run("4x4", "at2", 1, 1 * MILLISECONDS) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transmission_takes_the_models_time),
        cmocka_unit_test(small_blocks_cost_startups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
