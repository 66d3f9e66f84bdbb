/* Bits that flip in transit, as from a peer that breaks the protocol. An exchange may fail, and links may be closed;
 * but nothing hangs, no wrong data are delivered, and the torus works again. */
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/support/cmocka.h"

SEEDS(150 / SIM_SHARE);

/* A flipped bit in a length makes a decoder swallow the next frames: such a link is up, but useless until it is
 * closed. */
static void set_all_wires(struct sim *sim, enum sim_wire state)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(sim_torus(sim)); port += 2)
            sim_set_wire(sim, rank, port, state);
}

static void close_all_links(struct sim *sim)
{
    set_all_wires(sim, SIM_WIRE_CUT);
    sim_pass(sim, 1 * MILLISECONDS); /* no carrier, for long enough to be noticed */
    set_all_wires(sim, SIM_WIRE_UP);
    sim_pass(sim, 1 * SECONDS);
}

static void damage(uint64_t seed)
{
    const struct sim_setup setup = {.dims = seed % 2 == 0 ? "3x4" : "2x2",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 125000000,
                                    .memory = seed % 3 == 0 ? 64 * 1024 : 0,
                                    .chop = true};
    struct sim *sim = sim_new(&setup);
    struct chance *chance = sim_chance(sim);
    static const char *const algorithms[] = {"at2", "direct", "stream"};
    const struct spec spec = {.algorithm = algorithms[chance_below(chance, 3)],
                              .block_bytes = chance_below(chance, 3000),
                              .from = "",
                              .to = "",
                              .timeout_ns = 20 * SECONDS};

    sim_run_until_whole(sim);
    struct sim_request *r =
        sim_exchange(sim, (uint32_t)chance_below(chance, sim_torus(sim)->nodes), &spec);
    sim_pass(sim, chance_below(chance, 3 * MILLISECONDS));
    sim_damage(sim, 1 + (unsigned)chance_below(chance, 5));
    if (!sim_run_until_ended(r, 60 * SECONDS))
        fail_msg("seed %llu: does not end", (unsigned long long)seed);
    sim_damage(sim, 0);
    sim_pass(sim, 100 * MILLISECONDS);
    if (!sim_run(sim, 60 * SECONDS, sim_is_quiet, NULL))
        fail_msg("seed %llu: does not end everywhere", (unsigned long long)seed);
    close_all_links(sim);
    check_next_exchange(sim, r->root);
    sim_free(sim);
}

TEST(flipped_bits_cost_an_exchange_at_most)
{
    with_seeds(seeds, damage);
}

static uint32_t flipped, mended, resumed; /* in all seeds together */

/* Flips one bit when most bytes in transit belong to blocks. */
static void damage_blocks(uint64_t seed)
{
    static const struct spec specs[] = {
        {.algorithm = "auto", .block_bytes = 200000, .from = "", .to = ""},
        {.algorithm = "at2", .block_bytes = 20000, .from = "", .to = ""},
        {.algorithm = "stream", .block_bytes = 20000, .from = "", .to = "", .repeat = 3},
        {.algorithm = "auto", .from = "/random/100000", .to = "/a"},
        {.operation = OPERATION_ALLGATHER,
         .algorithm = "auto",
         .block_bytes = 50000,
         .from = "",
         .to = ""},
    };
    const struct sim_setup setup = {.dims = seed % 2 == 0 ? "3x4" : "2x3",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 12500000,
                                    .chop = true};
    struct spec spec = specs[seed % (sizeof specs / sizeof specs[0])];
    struct sim *sim = sim_new(&setup);

    spec.timeout_ns = 20 * SECONDS; /* for bits of a length, see above */

    sim_run_until_whole(sim);
    struct sim_request *r =
        sim_exchange(sim, (uint32_t)chance_below(sim_chance(sim), sim_torus(sim)->nodes), &spec);
    sim_pass(sim, 2 * MILLISECONDS + chance_below(sim_chance(sim), 8 * MILLISECONDS));
    sim_damage(sim, 1);
    if (!sim_run_until_ended(r, 60 * SECONDS))
        fail_msg("seed %llu: does not end", (unsigned long long)seed);
    flipped++;
    if (r->error.code == ERROR_NONE) {
        if (strcmp(spec.algorithm, "auto") == 0)
            spec.algorithm = r->result.algorithm;
        check_success(r, &spec);
        assert_true(check_agreement(r, &spec));
        mended += r->result.damages == 1;
        resumed += r->result.kept_bytes > 0;
    }
    sim_damage(sim, 0);
    sim_free(sim);
}

TEST(damaged_pieces_are_sent_again)
{
    flipped = mended = resumed = 0;
    with_seeds(seeds, damage_blocks);
    if (mended < flipped * 2 / 3 || resumed < flipped / 20)
        fail_msg("of %u: %u sent again, %u of them in part", flipped, mended, resumed);
}

static bool is_taken_back(struct sim *sim, void *context)
{
    const struct sim_request *r = context;
    struct exchange_progress progress;

    if (r->ended)
        return true;
    exchange_progress(r->exchange, &progress);
    return progress.state == EXCHANGE_WAITING;
}

/* A node dies, and a block is damaged before the root knows of the death. Returns whether the damage came first. */
static bool damage_and_death(uint64_t seed)
{
    const struct sim_setup setup = {
        .dims = "3x3", .seed = seed, .latency = 100 * MICROSECONDS, .rate = 12500000, .chop = true};
    const struct spec spec = {.algorithm = "auto",
                              .block_bytes = 200000,
                              .from = "",
                              .to = "",
                              .timeout_ns = 20 * SECONDS};
    struct sim *sim = sim_new(&setup);
    char first[EXCHANGE_ID_SIZE];

    sim_run_until_whole(sim);
    struct sim_request *r = sim_exchange(sim, 0, &spec);
    sim_pass(sim, 10 * MILLISECONDS);
    (void)strcpy(first, exchange_id(r->exchange));
    sim_kill(sim, 8, SIM_CRASH);
    sim_pass(sim, 35 * MILLISECONDS); /* of the 50 for which its links have to stay down */
    sim_damage(sim, 1);
    assert_true(sim_run(sim, 60 * SECONDS, is_taken_back, r));
    bool taken_back = !r->ended;
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    sim_damage(sim, 0);
    assert_int_not_equal(r->error.code, ERROR_NONE);
    sim_pass(sim, 1 * SECONDS);
    for (uint32_t rank = 0; taken_back && rank < 8; rank++) {
        struct exchange_info info;
        if (!sim_info(sim, rank, first, &info))
            fail_msg("seed %llu: node %u has not heard why there is no retry",
                     (unsigned long long)seed, rank);
        assert_int_equal(info.state, EXCHANGE_FAILED);
        assert_string_equal(info.reason, r->error.text);
    }
    sim_free(sim);
    return taken_back;
}

TEST(a_node_that_heard_of_a_retry_hears_why_there_is_none)
{
    unsigned taken_back = 0, runs = 20;

    for (uint64_t seed = first_seed; seed < first_seed + runs; seed++)
        taken_back += damage_and_death(seed);
    assert_in_range(taken_back, runs / 2, runs);
}

TEST(flipped_bits_do_not_keep_the_torus_from_coming_up)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        const struct sim_setup setup = {
            .dims = "3x4", .seed = seed, .latency = 100 * MICROSECONDS, .chop = true};
        struct sim *sim = sim_new(&setup);
        sim_damage(sim, 40);
        sim_pass(sim, 1 * SECONDS);
        sim_damage(sim, 0);
        close_all_links(sim);
        check_next_exchange(sim, 0);
        sim_free(sim);
    }
}
