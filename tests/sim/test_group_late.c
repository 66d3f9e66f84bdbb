/* Calls of groups that take long: which members they wait for, and which program is told that. */
#include "tests/sim/events.h"
#include "tests/sim/programs.h"
#include "tests/support/cmocka.h"

SEEDS(SIM_SHARE > 1 ? 10 : 40);

/* All tori except the first have rows. */
static const char *const tori[] = {"8", "2x2", "3x5", "4x4", "3mx4", "3x2", "2x3x2"};

#define TORI (sizeof tori / sizeof tori[0])

/* `rate`: bytes per second. */
static struct sim *begin_with(const char *dims, uint64_t seed, uint64_t rate)
{
    const struct sim_setup setup = {.dims = dims,
                                    .seed = seed,
                                    .latency = 50 * MICROSECONDS,
                                    .rate = rate,
                                    .shared = seed % 2 == 1,
                                    .chop = true};
    struct sim *sim = sim_new(&setup);

    sim_run_until_whole(sim);
    return sim;
}

static struct sim *begin(const char *dims, uint64_t seed)
{
    return begin_with(dims, seed, 125000000);
}

/* ---- Conditions ------------------------------------------------------------------------------ */

struct watched {
    struct sim_programs *programs;
    uint32_t who; /* makes its calls later than the others */
};

static bool all_completed(struct sim *sim, void *context)
{
    const struct watched *w = context;

    return sim_programs_done(w->programs) == sim_torus(sim)->nodes;
}

static bool has_called(struct sim *sim, void *context)
{
    const struct watched *w = context;

    return sim_program_state(w->programs, w->who).calls > 0;
}

static bool others_have_called(struct sim *sim, void *context)
{
    const struct watched *w = context;
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        count += rank != w->who && sim_program_state(w->programs, rank).calls > 0;
    return count == sim_torus(sim)->nodes - 1;
}

static void start(struct watched *w, struct sim *sim, uint64_t seed, const struct sim_call *call,
                  uint32_t calls)
{
    const struct sim_programs_setup setup = {
        .name = "g", .call = call, .calls = calls, .seed = seed, .depth = 1, .stay = true};

    w->programs = sim_programs_new(sim, &setup);
    w->who = (uint32_t)(seed * 3 % sim_torus(sim)->nodes);
}

static void end(struct watched *w, struct sim *sim)
{
    sim_program_go_on(w->programs, w->who);
    if (!sim_run(sim, 60 * SECONDS, all_completed, w))
        sim_violated(sim, "ends", "a call has not ended");
    sim_pass(sim, 10 * SECONDS);
    assert_int_equal(sim_programs_failed(w->programs), 0);
    sim_programs_free(w->programs);
    sim_free(sim);
}

/* ---- With a timeout -------------------------------------------------------------------------- */

/* The last member makes the call just before the timeout of others: the call ends while they find out whom it waits
 * for, and does not fail. */
TEST(a_call_that_ends_meanwhile_does_not_fail)
{
    const struct sim_call call = {.operation = GROUP_BARRIER, .timeout = 2 * SECONDS};

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = begin(tori[seed % TORI], seed);
        struct watched w;

        start(&w, sim, seed, &call, 1);
        sim_program_stop(w.programs, w.who);
        assert_true(sim_run(sim, 5 * SECONDS, others_have_called, &w));
        sim_pass(sim, 2 * SECONDS - (20 + seed % 10 * 20) * MICROSECONDS);
        end(&w, sim);
    }
}

/* All members make a call whose bytes take longer than its timeout: it gets two more seconds, and then fails. */
TEST(a_call_that_all_have_made_gets_time_to_end)
{
    const uint64_t rate = 1000000, sizes[] = {2000000, 8000000};

    for (unsigned i = 0; i < 2; i++) {
        const struct sim_call call = {
            .operation = GROUP_BROADCAST, .size = sizes[i], .timeout = 500 * MILLISECONDS};
        struct sim *sim = begin_with("2", 1, rate);
        struct watched w;

        start(&w, sim, 1, &call, 1);
        (void)sim_run(sim, 30 * SECONDS, all_completed, &w);
        assert_int_equal(sim_programs_done(w.programs), i == 0 ? 2 : 0);
        assert_int_equal(sim_programs_failed(w.programs), i == 0 ? 0 : 2);
        if (i == 1)
            assert_non_null(strstr(sim_program_error(w.programs, 0)->text, "all have called it"));
        sim_programs_free(w.programs);
        sim_free(sim);
    }
}

/* ---- Without a timeout ----------------------------------------------------------------------- */

/* The program that was told whom a call waits for; checks that it is only one, and was told only once. */
static uint32_t only_one_is_told(struct sim *sim, const struct watched *w, const char **whom)
{
    uint32_t told = TORUS_NO_NODE;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        const char *text;
        uint32_t times = sim_program_late(w->programs, rank, &text);
        if (times > 1 || (times == 1 && told != TORUS_NO_NODE))
            sim_violated(sim, "late", "node %u is told %u times, node %u as well", rank, times,
                         told);
        if (times == 1) {
            told = rank;
            *whom = text;
        }
    }
    if (told == TORUS_NO_NODE)
        sim_violated(sim, "late", "no program is told");
    return told;
}

static void check_told(struct sim *sim, const struct watched *w, bool in_row)
{
    const struct torus *t = sim_torus(sim);
    uint32_t here[TORUS_MAX_DIMS], there[TORUS_MAX_DIMS];
    const char *whom = "";
    char words[80];

    torus_coordinates(t, only_one_is_told(sim, w, &whom), here);
    torus_coordinates(t, w->who, there);
    for (unsigned d = 0; d + 1 < t->dims && in_row; d++)
        assert_int_equal(here[d], there[d]);
    (void)snprintf(words, sizeof words, "node %u has not called it", w->who);
    assert_string_equal(whom, words);
    assert_int_equal(sim_programs_failed(w->programs), 0);
}

/* One program is told, with or without a later timeout, and nothing fails. */
TEST(a_program_is_told_whom_its_call_waits_for)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        const struct sim_call call = {.operation = seed % 4 < 2 ? GROUP_BARRIER : GROUP_ALLTOALL,
                                      .size = seed % 8 == 7 ? 70000 : 70,
                                      .late = 2 * SECONDS,
                                      .timeout = seed % 3 == 0 ? 120 * SECONDS : 0};
        struct sim *sim = begin(tori[seed % TORI], seed);
        struct watched w;

        start(&w, sim, seed, &call, 1);
        sim_program_stop(w.programs, w.who);
        sim_pass(sim, 60 * SECONDS);
        check_told(sim, &w, false);
        end(&w, sim);
    }
}

/* A call of a row waits for its members: one of them is told. The other rows do not wait. */
TEST(a_member_is_told_whom_a_call_of_its_row_waits_for)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = begin(tori[1 + seed % (TORI - 1)], seed);
        const uint32_t row = 1u << (sim_torus(sim)->dims - 1);
        const struct sim_call calls[] = {{.operation = GROUP_PART, .part = row},
                                         {.operation = GROUP_ALLREDUCE,
                                          .part = row,
                                          .size = 5,
                                          .type = REDUCTION_INT16,
                                          .operator= REDUCTION_SUM,
                                          .late = 2 * SECONDS}};
        struct watched w;

        start(&w, sim, seed, calls, 2);
        assert_true(sim_run(sim, 5 * SECONDS, has_called, &w));
        sim_program_stop(w.programs, w.who);
        sim_pass(sim, 60 * SECONDS);
        check_told(sim, &w, true);
        end(&w, sim);
    }
}

/* A node that does not answer does not delay the census: its result is that not all nodes answer. */
TEST(a_node_that_stands_still_is_not_waited_for)
{
    const struct sim_call call = {.operation = GROUP_BARRIER, .late = 2 * SECONDS};

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = begin(tori[seed % TORI], seed);
        const char *whom = "";
        struct watched w;

        start(&w, sim, seed, &call, 1);
        sim_program_stop(w.programs, w.who);
        assert_true(sim_run(sim, 5 * SECONDS, others_have_called, &w));
        sim_pass(sim, 2 * SECONDS - 10 * MILLISECONDS);
        sim_freeze(sim, w.who, 1500 * MILLISECONDS);
        sim_pass(sim, 10 * SECONDS);
        (void)only_one_is_told(sim, &w, &whom);
        assert_true(strstr(whom, "not all nodes have answered") != NULL ||
                    strstr(whom, "has not called it") != NULL);
        end(&w, sim);
    }
}
