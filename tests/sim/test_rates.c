/* Links of different rates: exchanges use them by what they carry, whether somebody has said that or it was observed. */
#include "daemon/torusd/core/core.h"
#include "tests/sim/internal.h"
#include "tests/support/cmocka.h"

#define RATE UINT64_C(2500000) /* 20 Mbit/s */
#define BLOCK 65536u
#define SLOW_NODE 6u
#define SLOW_PORT 3u /* -1 */
#define WAIT (600 * SECONDS)

static struct sim *start(const char *dims, uint64_t memory)
{
    const struct sim_setup setup = {
        .dims = dims, .seed = 1, .latency = 100 * 1000, .rate = RATE, .memory = memory};
    struct sim *sim = sim_new(&setup);

    sim_run_until_whole(sim);
    sim_pass(sim, 1 * SECONDS);
    return sim;
}

/* The exchange has succeeded; its blocks are verified where they arrive. */
static void succeeds(struct sim_request *r)
{
    if (!r->ended || r->error.code != ERROR_NONE)
        sim_violated(r->sim, "success", "%s: %s", r->id, r->ended ? r->error.text : "not ended");
}

static struct sim_request *exchange_of(struct sim *sim, const char *algorithm, uint64_t block)
{
    const struct spec spec = {.algorithm = algorithm, .block_bytes = block, .from = "", .to = ""};
    struct sim_request *r = sim_exchange(sim, 0, &spec);

    (void)sim_run_until_ended(r, WAIT);
    succeeds(r);
    return r;
}

static double seconds(const struct sim_request *r)
{
    return (double)r->result.nanoseconds / 1e9;
}

/* The user says that a link is slow: what it really carries, and what its node sends. */
static void configure(struct sim *sim, uint64_t rate)
{
    const double mbit = (double)rate * 8 / 1e6;

    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, rate);
    router_set_nominal(sim_router(sim, SLOW_NODE), SLOW_PORT,
                       (struct nominal_rate){mbit, (double)RATE * 8 / 1e6});
    sim_settle(&sim->node[SLOW_NODE]);
    sim_pass(sim, 1 * SECONDS);
}

/* One direction of one of 64 channels at a tenth costs an eighth, not nine tenths; and nothing once it is well. */
TEST(a_slow_link_slows_an_exchange_little)
{
    struct sim *sim = start("4x4", UINT64_C(1) << 32);
    const double whole = seconds(exchange_of(sim, "auto", BLOCK));

    configure(sim, RATE / 10);
    const struct sim_request *slow = exchange_of(sim, "auto", BLOCK);
    print_message("%.3f s with all links alike, %.3f s with one at a tenth (%s)\n", whole,
                  seconds(slow), slow->algorithm);
    assert_true(seconds(slow) < 1.4 * whole);
    assert_true(seconds(exchange_of(sim, "stream", BLOCK)) < 1.4 * whole);
    assert_true(seconds(exchange_of(sim, "direct", BLOCK)) > 3 * whole); /* as printed */
    configure(sim, RATE);
    assert_true(seconds(exchange_of(sim, "auto", BLOCK)) < 1.05 * whole);
    sim_free(sim);
}

static bool is_slow(struct sim *sim, void *context)
{
    const bool *slow = context;
    const uint32_t kbit = router_channel_rate(sim_router(sim, 0), SLOW_NODE, SLOW_PORT);

    return (kbit < RATE * 8 / 1000) == *slow;
}

/* Nobody says that the link is slow: it is observed, and found to be well again though plans avoid it. */
TEST(a_slow_link_is_observed)
{
    struct sim *sim = start("4x4", UINT64_C(1) << 32);
    const double whole = seconds(exchange_of(sim, "auto", BLOCK));
    bool slow = true;

    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, RATE / 10);
    const double first = seconds(exchange_of(sim, "auto", BLOCK));
    assert_true(first > 3 * whole);
    (void)exchange_of(sim, "auto", BLOCK);
    assert_true(is_slow(sim, &slow));
    sim_pass(sim, 1 * SECONDS);
    assert_true(seconds(exchange_of(sim, "auto", BLOCK)) < 1.4 * whole);
    sim_pass(sim, 60 * SECONDS);
    assert_true(is_slow(sim, &slow)); /* it is not forgotten */
    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, RATE);
    slow = false;
    assert_true(sim_run(sim, 10 * SECONDS, is_slow, &slow));
    sim_pass(sim, 1 * SECONDS);
    assert_true(seconds(exchange_of(sim, "auto", BLOCK)) < 1.05 * whole);
    sim_free(sim);
}

/* A link becomes slow in the middle of an exchange of many rounds, which continues on a new plan. */
TEST(an_exchange_continues_on_a_new_plan)
{
    const struct spec spec = {.algorithm = "auto", .block_bytes = 24 * BLOCK, .from = "", .to = ""};
    struct sim *sim = start("3x3", UINT64_C(1) << 20);
    const struct sim_request *whole = exchange_of(sim, "auto", 24 * BLOCK);
    struct sim_request *r = sim_exchange(sim, 0, &spec);

    assert_true(whole->result.rounds > 8);
    sim_pass(sim, whole->result.nanoseconds / 4);
    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, RATE / 10);
    const uint64_t begun = sim_now(sim);
    (void)sim_run_until_ended(r, WAIT);
    succeeds(r);
    const double left = (double)(sim_now(sim) - begun) / 1e9, alone = 0.75 * seconds(whole);
    print_message("%.2f s would have been left, and took %.2f s\n", alone, left);
    assert_true(left < 3 * alone); /* without a new plan: 10 times */
    sim_free(sim);
}

/* Rates that change at random: no exchange fails, and plans do not flap. */
SEED_TEST(20, random_rates)
{
    struct sim *sim = start(seed % 2 == 0 ? "3x3" : "4m", UINT64_C(1) << 24);
    const uint32_t nodes = sim_torus(sim)->nodes;

    for (unsigned change = 0; change < 15; change++) {
        const uint32_t node = sim_any(sim, nodes);
        const unsigned port = sim_any(sim, torus_ports(sim_torus(sim)));
        if (torus_neighbour(sim_torus(sim), node, port) == TORUS_NO_NODE)
            continue;
        sim_set_rate_from(sim, node, port, RATE / (1 + sim_any(sim, 20)));
        sim_pass(sim, sim_any(sim, 3000) * MILLISECONDS);
        (void)exchange_of(sim, "auto", 1 + sim_any(sim, BLOCK));
    }
    sim_free(sim);
}
