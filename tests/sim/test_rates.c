/* Links of different rates: exchanges use them by what they carry, whether somebody has said that or it was observed. */
#include <inttypes.h>

#include "daemon/torusd/core/core.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "tests/sim/internal.h"
#include "tests/sim/lies.h"
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
    sim_pass(sim, PLAN_RATES_HOLD);
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

/* One that carries nearly nothing, too: few bytes arrive between two beats. */
TEST(a_very_slow_link_is_observed)
{
    const struct spec spec = {.algorithm = "auto", .block_bytes = BLOCK, .from = "", .to = ""};
    struct sim *sim = start("3x3", UINT64_C(1) << 32);
    bool slow = true;

    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, RATE / 100);
    (void)sim_exchange(sim, 0, &spec);
    assert_true(sim_run(sim, 10 * SECONDS, is_slow, &slow));
    sim_free(sim);
}

#define LONG_RATE (RATE / 5)
#define LONG_BLOCK 5000000u /* takes 30 s at the bound of 3 blocks */

/* A link becomes slow in the middle of an exchange of many rounds, which continues on a new plan. The time for what is left
 * counts, with that until the slow link is noticed and has carried what was given to it; the optimum is that of the linear
 * program. */
TEST(an_exchange_continues_on_a_new_plan)
{
    const struct spec spec = {.algorithm = "auto", .block_bytes = LONG_BLOCK, .from = "", .to = ""};
    struct sim *sim = SIM_WHOLE(.dims = "3x3", .seed = 1, .latency = 100 * 1000, .rate = LONG_RATE,
                                .unsent = 16384, .memory = UINT64_C(1) << 20);
    const double optimum = 60.0 / 17 * LONG_BLOCK / LONG_RATE / 2;
    struct sim_request *r = sim_exchange(sim, 0, &spec);

    sim_pass(sim, 15 * SECONDS);
    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, LONG_RATE / 10);
    const uint64_t begun = sim_now(sim);
    (void)sim_run_until_ended(r, WAIT);
    succeeds(r);
    assert_true(r->result.rounds > 60);
    const double left = (double)(sim_now(sim) - begun) / 1e9;
    print_message("what was left took %.2f s; the optimum is %.2f s\n", left, optimum);
    assert_true(left < 1.25 * optimum);
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

/* --- a node that lies about rates --- */

#define LIAR 4u
#define LIES_TIME (25 * SECONDS)
#define RATES 8u /* of a node: two for each of four ports */

/* What the liar states of each of its links, and perhaps of those of others: one number after another. */
struct lie_of_rates {
    uint32_t number[4];
    unsigned numbers;
    bool of_others;
    unsigned told;
};

static const struct lie_of_rates lies_of_rates[] = {
    {{0}, 1, false, 0},
    {{20000, 2000}, 2, false, 0},
    {{20000, 2000, UINT32_MAX, 1}, 4, true, 0},
};

static unsigned state_false_rates(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                                  size_t *length)
{
    struct lie_of_rates *lie = sim_context(sim);
    size_t body;
    Peer__Head *head = rank == LIAR ? lie_read(*bytes, *length, &body) : NULL;

    if (head == NULL)
        return 1;
    for (size_t i = 0; head->kind_case == PEER__HEAD__KIND_LINK_STATE && lie->numbers > 0 &&
                       i < head->link_state->n_entry;
         i++) {
        Peer__LinkState__Entry *entry = head->link_state->entry[i];
        if (entry->rank != LIAR && !lie->of_others)
            continue;
        entry->version += entry->rank != LIAR;
        free(entry->rates);
        entry->n_rates = RATES;
        entry->rates = malloc(RATES * sizeof *entry->rates);
        for (size_t k = 0; k < RATES; k++)
            entry->rates[k] = lie->number[lie->told % lie->numbers];
    }
    if (head->kind_case == PEER__HEAD__KIND_LINK_STATE && lie->numbers > 0) {
        const size_t rest = *length - body;
        uint8_t *old = *bytes;
        *bytes = lie_frame(head, old + body, rest, length);
        free(old);
        lie->told++;
    }
    peer__head__free_unpacked(head, NULL);
    return 1;
}

/* Makes the liar say everything that it knows once more, again and again. */
static void say_again(struct sim *sim, void *context)
{
    struct lie_of_rates *lie = context;

    if (lie->numbers == 0 || !sim_alive(sim, LIAR))
        return;
    for (unsigned port = 0; port < 4; port++)
        flood_mark_all_unsent(sim_router(sim, LIAR), port);
    sim_settle(&sim->node[LIAR]);
    sim_at(sim, sim_now(sim) + 100 * MILLISECONDS, say_again, lie);
}

/* What node 0 makes its plans from is what honest nodes have said. */
static bool knows_the_truth(struct sim *sim, void *context)
{
    const struct torus *t = sim_torus(sim);

    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (router_channel_rate(sim_router(sim, 0), rank, port) != RATE * 8 / 1000)
                return false;
    return sim_exchanges(sim, 0)->rates.used == NULL;
}

/* Exchanges with such a node are done, others do not plan for each of its words, and nothing is left when it is gone. */
static void lie_of(const struct lie_of_rates *what)
{
    struct lie_of_rates lie = *what, nothing = {.numbers = 0};
    const struct sim_setup setup = {.dims = "3x3",
                                    .seed = 1,
                                    .latency = 100 * 1000,
                                    .rate = RATE,
                                    .on_bytes = state_false_rates,
                                    .context = &lie};
    struct sim *sim = sim_new(&setup);
    uint64_t most = PLAN_RATES_AT_ONCE + LIES_TIME / PLAN_RATES_HOLD + 1, exchanges = 0;

    lie.numbers = 0;
    sim_run_until_whole(sim);
    sim_pass(sim, 1 * SECONDS);
    lie.numbers = what->numbers;
    sim_set_lying(sim, LIAR, true);
    const uint64_t end = sim_now(sim) + LIES_TIME;
    say_again(sim, &lie);
    while (sim_now(sim) < end) {
        (void)exchange_of(sim, "auto", 1000);
        exchanges++;
        sim_pass(sim, 4 * SECONDS);
    }
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (rank != LIAR && sim_exchanges(sim, rank)->rates.changes > most)
            sim_violated(sim, "plans do not follow a liar", "%" PRIu64 " changes at node %u",
                         sim_exchanges(sim, rank)->rates.changes, rank);
    assert_true(exchanges > 3 && lie.told > 500);
    lie = nothing;
    sim_set_lying(sim, LIAR, false);
    sim_kill(sim, LIAR, SIM_CRASH);
    sim_restart(sim, LIAR);
    sim_run_until_whole(sim);
    assert_true(sim_run(sim, 2 * PLAN_RATES_HOLD, knows_the_truth, NULL));
    sim_free(sim);
}

TEST(a_node_that_lies_about_rates)
{
    for (size_t i = 0; i < sizeof lies_of_rates / sizeof *lies_of_rates; i += SIM_SHARE)
        lie_of(&lies_of_rates[i]);
}
