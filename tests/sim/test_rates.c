/* Links of different rates: exchanges, groups and copies use them by what they carry, whether somebody has said that or it
 * was observed. */
#include <inttypes.h>
#include <math.h>

#include "daemon/torusd/core/core.h"
#include "daemon/torusd/exchange/plan_rates.h"
#include "tests/sim/copy_fixture.h"
#include "tests/sim/group_fixture.h"
#include "tests/sim/internal.h"
#include "tests/support/cmocka.h"

#define RATE UINT64_C(2500000) /* 20 Mbit/s */
#define BLOCK 65536u
#define SLOW_NODE 6u
#define SLOW_PORT 3u /* -1 */
#define SLOW_CHANNEL "6:-1"
#define WAIT (600 * SECONDS)
#define CUT 3.1 /* channels of the full rate into node 5, if that from node 6 has a tenth of it */

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

static struct sim_request *run_of(struct sim *sim, const struct spec *spec)
{
    struct sim_request *r = sim_exchange(sim, 0, spec);

    (void)sim_run_until_ended(r, WAIT);
    succeeds(r);
    return r;
}

static struct sim_request *exchange_of(struct sim *sim, const char *algorithm, uint64_t block)
{
    const struct spec spec = {.algorithm = algorithm, .block_bytes = block, .from = "", .to = ""};

    return run_of(sim, &spec);
}

static double seconds(const struct sim_request *r)
{
    return (double)r->result.nanoseconds / 1e9;
}

/* The user says that a link is slow: what it really carries, and what its node sends. */
static void configure_at(struct sim *sim, uint32_t node, unsigned port, uint64_t rate)
{
    const double mbit = (double)rate * 8 / 1e6;

    if (rate == RATE)
        sim_pass(sim, PLAN_RATES_HOLD); /* a link that has just changed is not believed at once */
    sim_set_rate_from(sim, node, port, rate);
    router_set_nominal(sim_router(sim, node), port,
                       (struct nominal_rate){mbit, (double)RATE * 8 / 1e6});
    sim_settle(&sim->node[node]);
    sim_pass(sim, 1 * SECONDS);
}

static void configure(struct sim *sim, uint64_t rate)
{
    configure_at(sim, SLOW_NODE, SLOW_PORT, rate);
}

/* The result names the rate of the slow channel, the bound at this rate, and the bound with equal links, in blocks. */
static void tells(const struct sim_request *r, const char *rates, double bound, double equal_bound)
{
    const struct link_rates *links = &r->result.links;

    assert_string_equal(links->rates, rates);
    assert_true(fabs(links->bound - bound) <= 0.001 * bound);
    assert_true(fabs(links->equal_bound - equal_bound) <= 1e-9);
    assert_true(links->bound == r->result.bound && links->full_bps == 8 * RATE);
}

static void tells_nothing(const struct sim_request *r)
{
    assert_string_equal(r->result.links.rates, "");
    assert_true(r->result.links.full_bps == 0 && r->result.links.equal_bound == 0);
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
    tells(slow, SLOW_CHANNEL "=0.1", 8 * 1.1268, 8);
    assert_true(seconds(exchange_of(sim, "stream", BLOCK)) < 1.4 * whole);
    const struct sim_request *direct = exchange_of(sim, "direct", BLOCK);
    assert_true(seconds(direct) > 3 * whole); /* as printed */
    tells_nothing(direct);
    sim_pass(sim, PLAN_RATES_HOLD);
    configure(sim, RATE);
    const struct sim_request *again = exchange_of(sim, "auto", BLOCK);
    assert_true(seconds(again) < 1.05 * whole);
    tells_nothing(again);
    sim_free(sim);
}

/* Tiny blocks keep an algorithm that combines them, at every node; the root decides, and lists no rates. */
TEST(tiny_blocks_are_combined_beside_a_slow_link)
{
    struct sim *sim = start("4x4", UINT64_C(1) << 32);

    configure(sim, RATE / 2);
    const struct sim_request *tiny = exchange_of(sim, "auto", 1);
    assert_string_equal(tiny->algorithm, "pair");
    tells_nothing(tiny);
    assert_string_equal(exchange_of(sim, "auto", BLOCK)->algorithm, DETOUR_NAME);
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
    const struct sim_request *slow_one = exchange_of(sim, "auto", BLOCK);
    assert_true(seconds(slow_one) < 1.4 * whole);
    assert_true(strncmp(slow_one->result.links.rates, SLOW_CHANNEL "=0.", 7) == 0);
    assert_true(slow_one->result.links.bound > 8 && slow_one->result.links.equal_bound == 8);
    sim_pass(sim, 60 * SECONDS);
    assert_true(is_slow(sim, &slow)); /* it is not forgotten */
    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, RATE);
    slow = false;
    assert_true(sim_run(sim, 10 * SECONDS, is_slow, &slow));
    sim_pass(sim, 1 * SECONDS);
    assert_true(seconds(exchange_of(sim, "auto", BLOCK)) < 1.05 * whole);
    sim_free(sim);
}

/* A link that carries nearly nothing is observed, too: few bytes arrive between two beats. */
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

/* A link becomes slow in the middle of an exchange, which continues on a new plan. What counts is the time for what is
 * left, and the time until the slow link is noticed and has carried what it was given; the optimum is that of the linear
 * program. */
static void slowed_in_the_middle(const char *algorithm, uint64_t memory, uint64_t least_rounds)
{
    const struct spec spec = {
        .algorithm = algorithm, .block_bytes = LONG_BLOCK, .from = "", .to = ""};
    struct sim *sim = SIM_WHOLE(.dims = "3x3", .seed = 1, .latency = 100 * 1000, .rate = LONG_RATE,
                                .unsent = 16384, .memory = memory);
    const double optimum = 60.0 / 17 * LONG_BLOCK / LONG_RATE / 2;

    sim_pass(sim, 1 * SECONDS);
    struct sim_request *r = sim_exchange(sim, 0, &spec);
    sim_pass(sim, 15 * SECONDS);
    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, LONG_RATE / 10);
    const uint64_t begun = sim_now(sim);
    (void)sim_run_until_ended(r, WAIT);
    succeeds(r);
    const double left = (double)(sim_now(sim) - begun) / 1e9;
    print_message("%s: what was left took %.2f s; the optimum is %.2f s (%" PRIu64 " rounds)\n",
                  algorithm, left, optimum, r->result.rounds);
    assert_true(r->result.rounds >= least_rounds && r->result.replans >= 1);
    assert_true(left < 1.25 * optimum);
    sim_free(sim);
}

TEST(an_exchange_of_many_rounds_continues_on_a_new_plan)
{
    slowed_in_the_middle("auto", UINT64_C(1) << 20, 60);
    slowed_in_the_middle("stream", UINT64_C(1) << 20, 60);
}

/* Rounds for that do not make an exchange slower: repetitions have none. */
TEST(an_exchange_that_lasts_is_as_fast_as_a_repetition)
{
    static const char *const dims[] = {"3x3", "4m"};

    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        struct sim *sim = start(dims[i], UINT64_C(1) << 32);
        const struct spec spec =
            GENERATED(.algorithm = "auto", .block_bytes = 4 << 20, .repeat = 2);
        const struct sim_request *once = exchange_of(sim, "auto", 4 << 20);
        const struct sim_request *twice = run_of(sim, &spec);
        print_message("%s: %.3f s in %" PRIu64 " rounds, %.3f s in one\n", dims[i], seconds(once),
                      once->result.rounds, seconds(twice));
        assert_true(once->result.rounds > 1 && twice->result.rounds == 1);
        assert_true(seconds(once) < 1.01 * seconds(twice));
        sim_free(sim);
    }
}

/* In steps it does so at the end of a round. */
TEST(an_exchange_in_steps_continues_on_a_new_plan)
{
    const struct spec spec =
        GENERATED(.algorithm = "auto", .mode = MODE_STEPPED, .block_bytes = LONG_BLOCK);
    struct sim *sim = start("3x3", UINT64_C(1) << 22);
    const double whole = seconds(run_of(sim, &spec));
    struct sim_request *r = sim_exchange(sim, 0, &spec);

    sim_pass(sim, (uint64_t)(whole / 2 * 1e9));
    configure(sim, RATE / 10);
    (void)sim_run_until_ended(r, WAIT);
    succeeds(r);
    assert_true(check_agreement(r, &spec));
    const double slow = seconds(run_of(sim, &spec));
    print_message(
        "%.2f s with all links alike, %.2f s with a slow one, %.2f s if it becomes slow in the "
        "middle (%s, %" PRIu64 " bytes kept)\n",
        whole, slow, seconds(r), r->algorithm, r->result.kept_bytes);
    assert_true(seconds(r) < 1.05 * (whole + slow) / 2 + 1);
    assert_true(r->result.kept_bytes > 9 * 8 * LONG_BLOCK / 3);
    sim_free(sim);
}

/* Memory holds all blocks at once, but an exchange that lasts has rounds nevertheless. */
TEST(an_exchange_with_much_memory_continues_on_a_new_plan)
{
    slowed_in_the_middle("auto", UINT64_C(1) << 32, 2);
}

/* --- repetitions --- */

#define REPEAT 70u

static bool have_passed(struct sim *sim, void *context)
{
    const struct sim_request *r = context;
    struct exchange_progress progress;

    (void)sim;
    if (r->ended)
        return true;
    exchange_progress(r->exchange, &progress);
    return progress.repetition >= r->result.repeat;
}

/* Runs until so many repetitions of the request are complete. */
static void until_passed(struct sim_request *r, uint32_t repetitions)
{
    r->result.repeat = repetitions;
    assert_true(sim_run(r->sim, WAIT, have_passed, r));
    assert_false(r->ended);
}

static double slowest(const struct sim_request *r, uint32_t begin, uint32_t end)
{
    double most = 0;

    for (uint32_t i = begin; i < end; i++)
        most = (double)r->result.each[i] / 1e9 > most ? (double)r->result.each[i] / 1e9 : most;
    return most;
}

/* A link becomes slow while repetitions run, and well again: the ones after that run on the new plan at all nodes. */
static void repetitions_of(const struct spec *spec)
{
    struct sim *sim = start("3x3", UINT64_C(1) << 32);
    struct sim_request *r = sim_exchange(sim, 0, spec);

    until_passed(r, 10);
    configure(sim, RATE / 10);
    until_passed(r, 20);
    configure(sim, RATE);
    (void)sim_run_until_ended(r, WAIT);
    succeeds(r);
    assert_true(check_agreement(r, spec));
    assert_int_equal(r->result.repeat, REPEAT);
    assert_int_equal(r->result.replans, 2);
    const double whole = slowest(r, 0, 10), slow = slowest(r, 11, 20);
    print_message("%s: %.3f s, %.3f s with a slow link, then %.3f s\n", r->algorithm, whole, slow,
                  slowest(r, REPEAT - 10, REPEAT));
    assert_true(slow < 2 * whole); /* ten times as long on the old plan */
    assert_true(slowest(r, REPEAT - 10, REPEAT) < 1.01 * whole);
    sim_free(sim);
}

TEST(repetitions_use_the_rates_of_their_time)
{
    static const struct spec specs[] = {
        GENERATED(.algorithm = "auto", .block_bytes = 4 * BLOCK, .repeat = REPEAT),
        GENERATED(.algorithm = "auto", .mode = MODE_STEPPED, .block_bytes = 4 * BLOCK,
                  .repeat = REPEAT),
        GENERATED(.algorithm = "auto", .operation = OPERATION_ALLGATHER, .block_bytes = 6 * BLOCK,
                  .repeat = REPEAT),
        GENERATED(.algorithm = "auto", .operation = OPERATION_BROADCAST, .block_bytes = 48 * BLOCK,
                  .repeat = REPEAT),
    };

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i += one_in(4))
        repetitions_of(&specs[i]);
}

/* Nobody says that the link is slow, or well again: both are observed. */
TEST(repetitions_use_the_rates_that_are_observed)
{
    const struct spec spec =
        GENERATED(.algorithm = "auto", .block_bytes = 4 * BLOCK, .repeat = 120);
    struct sim *sim = start("3x3", UINT64_C(1) << 32);
    struct sim_request *r = sim_exchange(sim, 0, &spec);

    until_passed(r, 10);
    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, RATE / 10);
    until_passed(r, 40);
    sim_set_rate_from(sim, SLOW_NODE, SLOW_PORT, RATE);
    (void)sim_run_until_ended(r, WAIT);
    succeeds(r);
    const double whole = slowest(r, 0, 10), slow = slowest(r, 15, 40);
    print_message("%.3f s, %.3f s with a slow link, then %.3f s\n", whole, slow,
                  slowest(r, 110, 120));
    assert_true(slow <
                2.5 * whole); /* what is observed at first may be less than the link carries */
    assert_true(slowest(r, 110, 120) < 1.05 * whole);
    sim_free(sim);
}

/* Rates change while tiny blocks keep their algorithm: the plan is made again for each change, not for each repetition. */
TEST(repetitions_do_not_plan_again_and_again)
{
    const struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 1, .repeat = 2000);
    struct sim *sim = start("3x3", UINT64_C(1) << 32);
    struct sim_request *r = sim_exchange(sim, 0, &spec);

    until_passed(r, 10);
    configure(sim, RATE / 2);
    (void)sim_run_until_ended(r, WAIT);
    succeeds(r);
    assert_string_equal(r->algorithm, "dim");
    assert_int_equal(sim_exchanges(sim, 0)->rates.changes, 1);
    assert_int_equal(r->result.replans, 1);
    sim_free(sim);
}

/* Allgathers and broadcasts that torusctl asks for. */
TEST(allgathers_and_broadcasts_use_a_slow_link_by_its_rate)
{
    static const enum schedule_operation operations[] = {OPERATION_ALLGATHER, OPERATION_BROADCAST};
    struct sim *sim = start("4x4", UINT64_C(1) << 32);

    for (unsigned i = 0; i < 2; i++) {
        const struct spec spec = {.operation = operations[i],
                                  .algorithm = "auto",
                                  .block_bytes = i == 0 ? 4 * BLOCK : 64 * BLOCK,
                                  .from = "",
                                  .to = ""};
        const double bound = (double)spec.block_bytes * (i == 0 ? 15 : 1) / CUT / RATE;
        const struct sim_request *whole = run_of(sim, &spec);
        configure(sim, RATE / 10);
        const struct sim_request *slow = run_of(sim, &spec);
        print_message("%.3f s, %.3f s with a slow link, bound %.3f s (%s)\n", seconds(whole),
                      seconds(slow), bound, slow->algorithm);
        assert_true(seconds(slow) < 1.10 * bound);
        tells(slow, SLOW_CHANNEL "=0.1", (i == 0 ? 15 : 1) / CUT, (i == 0 ? 15 : 1) / 4.0);
        configure(sim, RATE);
        assert_true(seconds(run_of(sim, &spec)) < 1.01 * seconds(whole));
        sim_pass(sim, PLAN_RATES_HOLD);
    }
    sim_free(sim);
}

/* --- groups --- */

/* Programs that make these calls, two at a time. */
static struct sim_programs *programs_of(struct sim *sim, const struct sim_call *call,
                                        uint32_t calls)
{
    const struct sim_programs_setup setup = {
        .name = "g", .call = call, .calls = calls, .seed = 1, .depth = 2, .timeout = 5 * SECONDS};

    return sim_programs_new(sim, &setup);
}

/* Runs until all programs have completed that many calls, and returns the seconds that it took. */
struct completed {
    const struct sim_programs *programs;
    uint32_t calls;
};

static bool have_completed(struct sim *sim, void *context)
{
    const struct completed *c = context;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_program_completed(c->programs, rank) < c->calls)
            return false;
    return true;
}

static double until_completed(struct sim *sim, const struct sim_programs *p, uint32_t calls)
{
    struct completed c = {p, calls};
    const uint64_t begun = sim_now(sim);

    if (!sim_run(sim, WAIT, have_completed, &c))
        sim_violated(sim, "success", "not all of %u calls: %s", calls,
                     sim_program_error(p, 0)->text);
    return (double)(sim_now(sim) - begun) / 1e9;
}

#define CALLS 6u

/* The seconds of a call among others of the same kind. The first ones wait for the plan; the last ones keep the links
 * busy. */
static double call_of(struct sim *sim, struct sim_call call)
{
    struct sim_call list[CALLS + 4];

    for (unsigned i = 0; i < CALLS + 4; i++)
        list[i] = call;
    struct sim_programs *p = programs_of(sim, list, CALLS + 4);
    (void)until_completed(sim, p, 2);
    const double seconds = until_completed(sim, p, CALLS + 2) / CALLS;
    sim_programs_free(p);
    sim_pass(sim, 1 * SECONDS);
    return seconds;
}

#define SUM .type = REDUCTION_UINT64, .operator= REDUCTION_SUM

static const struct kind {
    const char *name;
    struct sim_call call;
    double bytes; /* that cross the least cut; 0: no bound is known */
} kinds[] = {
    {"broadcast", {.operation = GROUP_BROADCAST, .size = 1 << 20}, 1 << 20},
    {"its own", {.operation = GROUP_BROADCAST, .root = SLOW_NODE, .size = 1 << 20}, 1 << 20},
    {"small", {.operation = GROUP_BROADCAST, .root = 5, .size = 4096}, 0},
    {"allgather", {.operation = GROUP_ALLGATHER, .size = BLOCK}, 15 * BLOCK},
    {"alltoall", {.operation = GROUP_ALLTOALL, .size = BLOCK}, 0},
    {"reduce", {.operation = GROUP_REDUCE, SUM, .size = 1 << 17}, 0},
    {"reduce_scatter", {.operation = GROUP_REDUCE_SCATTER, SUM, .size = 1 << 13}, 0},
    {"allreduce", {.operation = GROUP_ALLREDUCE, SUM, .size = 1 << 17}, 0},
    {"short allreduce", {.operation = GROUP_ALLREDUCE, SUM, .size = 64}, 0},
};
#define KINDS (sizeof kinds / sizeof kinds[0])
#define MORE 1.4

/* One direction of one link at a tenth: every call takes little more than its bound; and as long as before once the link is
 * well. */
TEST(groups_use_a_slow_link_by_its_rate)
{
    struct sim *sim = start("4x4", UINT64_C(1) << 32);
    double whole[KINDS];

    for (size_t i = 0; i < KINDS; i += one_in(2))
        whole[i] = call_of(sim, kinds[i].call);
    configure(sim, RATE / 10);
    for (size_t i = 0; i < KINDS; i += one_in(2)) {
        const double slow = call_of(sim, kinds[i].call), bound = kinds[i].bytes / CUT / RATE;
        print_message("%s: %.4f s with all links alike, %.4f s with one at a tenth, bound %.4f s\n",
                      kinds[i].name, whole[i], slow, bound);
        assert_true(slow < MORE * whole[i]);
        assert_true(bound == 0 || slow < 1.10 * bound);
    }
    configure(sim, RATE);
    for (size_t i = 0; i < KINDS; i += 4)
        assert_true(call_of(sim, kinds[i].call) < 1.01 * whole[i]);
    sim_free(sim);
}

/* In a ring of four a broadcast has two trees; with one link at a tenth, one of them carries nearly all. */
TEST(a_part_uses_its_slow_link_by_its_rate)
{
    struct sim *sim = start("4x4", UINT64_C(1) << 32);
    const struct sim_call part = {.operation = GROUP_PART, .part = 2};
    const struct sim_call call = {
        .operation = GROUP_BROADCAST, .part = 2, .root = 0, .size = 1 << 20};
    struct sim_call list[CALLS + 2] = {part};

    for (unsigned i = 1; i < CALLS + 2; i++)
        list[i] = call;
    configure(sim, RATE / 10);
    struct sim_programs *p = programs_of(sim, list, CALLS + 2);
    (void)until_completed(sim, p, 2);
    const double slow = until_completed(sim, p, CALLS + 2) / CALLS,
                 bound = (double)call.size / 1.1 / RATE;
    print_message("a row: %.3f s, bound %.3f s\n", slow, bound);
    assert_true(slow < 1.10 * bound);
    sim_programs_free(p);
    sim_free(sim);
}

/* The id of the attempt of the only group of a node. */
static void group_attempt(struct sim *sim, char id[static 48])
{
    struct group_info info;

    assert_int_equal(groups_list(sim_groups(sim, 0), &info, 1), 1);
    (void)snprintf(id, 48, "%s", info.id);
}

/* A link becomes slow while a group runs, and well again: no call fails, each new plan is used at once, and between two
 * changes the plan stays. */
TEST(a_group_continues_on_a_new_plan)
{
    const struct sim_call call = {.operation = GROUP_BROADCAST, .size = 1 << 20};
    struct sim *sim = start("4x4", UINT64_C(1) << 32);
    const uint32_t calls = 120 / (uint32_t)one_in(3);
    struct sim_call list[400];
    char before[48], after[48];

    for (unsigned i = 0; i < 400; i++)
        list[i] = call;
    struct sim_programs *p = programs_of(sim, list, 400);
    (void)until_completed(sim, p, 5);
    const double whole = until_completed(sim, p, 15) / 10;
    configure(sim, RATE / 10);
    uint32_t done = sim_program_completed(p, 0);
    const double slow = until_completed(sim, p, done + 10) / 10;
    print_message("%.3f s, then %.3f s with a slow link\n", whole, slow);
    assert_true(slow < 1.10 * 4 / CUT * whole);
    group_attempt(sim, before);
    done = sim_program_completed(p, 0);
    assert_true(until_completed(sim, p, done + calls) > 0.12 * calls); /* seconds */
    group_attempt(sim, after);
    assert_string_equal(before, after);
    configure(sim, RATE);
    done = sim_program_completed(p, 0);
    assert_true(until_completed(sim, p, done + 10) / 10 < 1.01 * whole);
    sim_programs_free(p);
    sim_free(sim);
}

static void restart_with(struct sim *sim, uint32_t rank, unsigned minor)
{
    sim_set_minors_back(sim, rank, PROTOCOL_MINOR - minor);
    sim_kill(sim, rank, SIM_CRASH);
    sim_restart(sim, rank);
}

/* A node does not know rates: the group treats all links as alike, and works. */
TEST(an_older_member_knows_no_rates)
{
    const struct sim_call call = {.operation = GROUP_BROADCAST, .size = 1 << 18};
    struct sim *sim = start("4x4", UINT64_C(1) << 32);
    const double whole = call_of(sim, call);

    for (uint32_t rank = 0; rank < 16; rank++)
        restart_with(sim, rank, rank == 9 ? RATES_MINOR - 1 : RATES_MINOR);
    sim_run_until_whole(sim);
    configure(sim, RATE / 10);
    assert_true(call_of(sim, call) > 2 * whole);
    restart_with(sim, 9, RATES_MINOR);
    sim_run_until_whole(sim);
    sim_pass(sim, 1 * SECONDS);
    assert_true(call_of(sim, call) < MORE * whole);
    sim_free(sim);
}

/* --- copies --- */

#define COPIED (24u << 20)

static double copy_to(struct sim *sim, const char *target, uint64_t slow_after, uint64_t rate)
{
    struct copy_request r = copy_default(0);

    r.target = (char *)(uintptr_t)target;
    struct sim_copy *c = sim_copy_start(sim, 0, &r);
    if (slow_after > 0) {
        assert_true(copy_reaches(c, COPY_MOVING, slow_after));
        configure(sim, rate);
    }
    sim_copy_run(c, WAIT);
    sim_copy_must_succeed(c);
    return (double)(c->ended_at - c->asked_at) / 1e9;
}

/* A copy takes little more than its bound; if a link becomes slow in its middle, it continues on a new plan. */
TEST(copies_use_a_slow_link_by_its_rate)
{
    struct sim *sim = start("4x4", UINT64_C(1) << 32);

    copy_tree(sim, 0, "/from", COPIED);
    const double whole = copy_to(sim, "/whole", 0, 0);
    const double middle = copy_to(sim, "/middle", COPIED / 2, RATE / 10);
    const double slow = copy_to(sim, "/slow", 0, 0), bound = COPIED / CUT / RATE;
    print_message(
        "%.3f s with all links alike, %.3f s with a slow one (bound %.3f s), %.3f s if it "
        "becomes slow in the middle\n",
        whole, slow, bound, middle);
    assert_true(slow < 1.10 * bound);
    /* and the moment in which the slow link carries what it was given before */
    assert_true(middle < 1.10 * (whole + slow) / 2 + 1);
    copy_end(sim);
}

/* --- everything at random --- */

/* Rates that change at random while programs call whatever there is, on the whole and on rows: no group fails. Programs
 * check what they receive. */
SEED_TEST(6, groups_survive_random_rates)
{
    struct sim *sim = start(seed % 2 == 0 ? "3x3" : "2x4m", UINT64_C(1) << 26);
    const struct torus *t = sim_torus(sim);
    struct sim_call call[60] = {{.operation = GROUP_PART, .part = 1}};

    for (unsigned i = 1; i < 60; i++) {
        call[i] = sim_any_call(sim_chance(sim), t);
        call[i].part = sim_any(sim, 2);
    }
    struct sim_programs *p = programs_of(sim, call, 60);
    for (unsigned change = 0; change < 12; change++) {
        const uint32_t node = sim_any(sim, t->nodes);
        const unsigned port = sim_any(sim, torus_ports(t));
        if (torus_neighbour(t, node, port) != TORUS_NO_NODE)
            configure_at(sim, node, port, RATE / (1 + sim_any(sim, 20)));
        sim_pass(sim, sim_any(sim, 3000) * MILLISECONDS);
    }
    (void)until_completed(sim, p, 60);
    sim_programs_free(p);
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
