/* Failures of groups: all programs get the same error. */
#include "daemon/lib/schedule/damage.h"
#include "tests/sim/events.h"
#include "tests/sim/group_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(SIM_SHARE > 1 ? 4 : 10);

static const char *const tori[] = {"1",   "1x2", "2x2",   "3x5", "4x4", "3mx4",
                                   "3x2", "8",   "2x3x2", "5m",  "4x4m"};

SIM_SEED_TEST(seeds, group_sim(tori[2 + seed % 7], seed), a_program_that_dies_fails_it_for_all)
{
    uint32_t nodes = sim_torus(sim)->nodes, who = (uint32_t)(seed * 7 % nodes);
    struct sim_programs *programs = group_start_steady(sim, seed);
    char words[40];
    sim_pass(sim, (10 + seed % 17) * MILLISECONDS);
    sim_program_die(programs, who);
    (void)snprintf(words, sizeof words, "the program at node %u has died", who);
    group_check_failed(sim, programs, nodes - 1, 1 * SECONDS, ERROR_CANCELLED, words);
    sim_programs_free(programs);
    group_check_reopens(sim, seed);
}

TEST(a_mistake_fails_it_for_all)
{
    static const struct sim_call mistakes[] = {
        {.operation = GROUP_ALLGATHER, .size = 100}, {.operation = GROUP_ALLTOALL, .size = 101},
        {.operation = GROUP_ALLTOALLV, .size = 333}, {.operation = GROUP_BARRIER},
        {.operation = GROUP_BROADCAST, .size = 3000, .root = 0},
        {
            .operation = GROUP_ALLREDUCE,
            .size = 10,
            .type = REDUCTION_FLOAT64,
            .operator= REDUCTION_MAX },
        };

    for (uint64_t seed = first_seed; seed < first_seed + 2 * seeds; seed++) {
        struct sim *sim = group_sim(tori[2 + seed % 7], seed);
        uint32_t nodes = sim_torus(sim)->nodes, who = (uint32_t)(seed * 5 % nodes);
        const struct sim_call *mistake = &mistakes[seed % (sizeof mistakes / sizeof *mistakes)];
        struct sim_programs *programs = group_start_steady(sim, seed);
        struct group_awaited a = {programs, nodes};
        while (sim_program_completed(programs, who) < seed % (GROUP_STEADY_CALLS - 1))
            sim_pass(sim, 1 * MILLISECONDS);
        sim_program_mistake(programs, who, mistake);
        (void)sim_run(sim, 3 * SECONDS, group_have_failed, &a);
        /* The wrong call may by chance be the right one. */
        if (sim_programs_done(programs) < nodes)
            group_check_failed(sim, programs, nodes, 1 * SECONDS, ERROR_USAGE, "ember");
        sim_programs_free(programs);
        group_check_reopens(sim, seed);
        sim_free(sim);
    }
}

/* A call with a timeout: all programs are told which member has not made it. */
TEST(a_member_that_has_not_called_is_named)
{
    static const enum group_operation late[] = {GROUP_ALLTOALL, GROUP_ALLREDUCE, GROUP_BARRIER,
                                                GROUP_ALLTOALLV};

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 4; seed++) {
        struct sim *sim = group_sim(tori[2 + seed % 7], seed);
        uint32_t nodes = sim_torus(sim)->nodes, who = (uint32_t)(seed * 3 % nodes);
        const struct sim_call call = {.operation = late[seed % 4],
                                      .size = seed % 3 == 0 ? 70000 : 70,
                                      .type = REDUCTION_INT16,
                                      .operator= REDUCTION_SUM,
                                      .timeout = 2 * SECONDS};
        const struct sim_programs_setup setup = {
            .name = "g", .call = &call, .calls = 1, .seed = seed, .depth = 1, .stay = true};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        char words[80];
        sim_program_stop(programs, who);
        (void)snprintf(words, sizeof words,
                       "has not ended within 2.000 s: node %u has not called it", who);
        group_check_failed(sim, programs, nodes, 5 * SECONDS, ERROR_TIMEOUT, words);
        sim_programs_free(programs);
        sim_free(sim);
    }
}

/* Programs in two parts of the torus, which cannot reach each other, are told that a link or node is down. */
static void check_apart(struct sim *sim, struct sim_programs *programs)
{
    struct group_awaited a = {programs, sim_torus(sim)->nodes};

    assert_true(sim_run(sim, 10 * SECONDS, group_have_failed, &a));
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        assert_int_equal(sim_program_error(programs, rank)->code, ERROR_LINK);
}

/* A node goes down, or a link without which the torus is in parts. See test_group_holes for other links. */
SIM_SEED_TEST(seeds, group_sim(tori[3 + seed % 8], seed), a_fault_fails_it_for_all)
{
    uint32_t nodes = sim_torus(sim)->nodes, who = (uint32_t)(seed * 3 % nodes);
    struct sim_programs *programs = group_start_steady(sim, seed);
    sim_pass(sim, (5 + seed % 20) * MILLISECONDS);
    if (seed % 2 == 0) {
        bool connected = group_cut(sim, who, (unsigned)(seed % torus_ports(sim_torus(sim))));
        if (!connected)
            check_apart(sim, programs);
        else if (!sim_run(sim, 60 * SECONDS, group_all_completed, programs))
            sim_violated(sim, "around", "%u of %u programs have made all calls",
                         sim_programs_done(programs), nodes);
        sim_heal(sim);
    } else {
        sim_kill(sim, who, seed % 4 == 1 ? SIM_CRASH : SIM_STOP);
        group_check_failed(sim, programs, nodes - 1, 10 * SECONDS, ERROR_LINK, "node");
        sim_restart(sim, who);
    }
    sim_programs_free(programs);
    sim_run_until_whole(sim);
    group_check_reopens(sim, seed);
}

/* Starts programs that all make these calls, except that one program makes another call first, and waits for the error
 * which says that the calls differ. */
static void check_mismatch(const char *dims, uint64_t seed, const struct sim_call *call,
                           uint32_t calls, uint32_t who, const struct sim_call *mistake)
{
    struct sim *sim = group_sim(dims, seed);
    const struct sim_programs_setup setup = {
        .name = "g", .call = call, .calls = calls, .seed = seed, .depth = calls, .stay = true};
    struct sim_programs *programs = sim_programs_new(sim, &setup);

    sim_program_mistake(programs, who, mistake);
    group_check_failed(sim, programs, sim_torus(sim)->nodes, 1 * SECONDS + 100 * MILLISECONDS,
                       ERROR_USAGE, "ember");
    sim_programs_free(programs);
    sim_free(sim);
}

/* Neither of the two calls sends data to the other member. */
TEST(members_that_wait_for_each_other_are_told)
{
    static const struct sim_call broadcast = {.operation = GROUP_BROADCAST, .size = 7, .root = 1},
                                 other = {.operation = GROUP_BROADCAST, .size = 7, .root = 0},
                                 empty = {.operation = GROUP_ALLTOALL},
                                 scatter = {.operation = GROUP_REDUCE_SCATTER,
                                            .size = 1,
                                            .type = REDUCTION_INT32,
                                            .operator= REDUCTION_SUM };
    static const struct sim_call here = {.operation = GROUP_REDUCE,
                                         .size = 1,
                                         .root = 0,
                                         .type = REDUCTION_INT32,
                                         .operator= REDUCTION_SUM },
                                         there = {.operation = GROUP_REDUCE,
                                                  .size = 1,
                                                  .root = 1,
                                                  .type = REDUCTION_INT32,
                                                  .operator= REDUCTION_SUM };

    for (uint64_t seed = first_seed; seed < first_seed + 3; seed++) {
        check_mismatch("2", seed, &here, 1, 1, &there);
        check_mismatch("2", seed, &there, 1, 1, &here); /* each member sends, and does not wait */
        check_mismatch("3", seed, &there, 1, 1, &broadcast);
        check_mismatch("2", seed, &broadcast, 1, 1, &other);
        check_mismatch("3", seed, &empty, 1, 2, &broadcast);
        check_mismatch("2x2", seed, &scatter, 1, 3, &broadcast);
    }
}

/* A member that is behind sends data of calls that have ended at a member that is ahead: no link is closed. */
TEST(a_mistake_behind_fails_it_for_all)
{
    static const struct sim_call mistake = {.operation = GROUP_BROADCAST, .size = 7, .root = 1};
    struct sim_call ahead[6];

    for (unsigned i = 0; i < 6; i++)
        ahead[i] = (struct sim_call){.operation = GROUP_BROADCAST, .size = 9};
    for (uint64_t seed = first_seed; seed < first_seed + 10; seed++)
        check_mismatch("2m", seed, ahead, 6, 1, &mistake);
}

struct progress {
    const struct sim_programs *programs;
    uint32_t calls;
};

static bool has_called(struct sim *sim, void *context)
{
    const struct progress *wanted = context;

    return sim_program_state(wanted->programs, 0).calls >= wanted->calls;
}

/* After eight broadcasts the group inserts a barrier. A member that makes another call in place of the ninth does not:
 * from then on its calls have different numbers, and must not be taken for the calls with these numbers. */
TEST(calls_that_have_moved_are_not_taken_for_others)
{
    static const struct sim_call mistake = {.operation = GROUP_ALLTOALL, .size = 1};
    struct sim_call call[30];

    for (unsigned i = 0; i < 30; i++)
        call[i] = (struct sim_call){.operation = GROUP_BROADCAST, .size = 1};
    for (uint32_t at = 1; at <= 20; at++)
        for (unsigned unchecked = 0; unchecked < 2; unchecked++) {
            struct sim *sim = group_sim("2m", first_seed + at);
            const struct sim_programs_setup setup = {.name = "g",
                                                     .call = call,
                                                     .calls = 30,
                                                     .seed = first_seed + at,
                                                     .depth = 20,
                                                     .unchecked = unchecked,
                                                     .stay = true};
            struct sim_programs *programs = sim_programs_new(sim, &setup);
            struct progress wanted = {programs, at};

            assert_true(sim_run(sim, 10 * SECONDS, has_called, &wanted));
            sim_program_mistake(programs, 0, &mistake);
            group_check_failed(sim, programs, 2, 2 * SECONDS, ERROR_USAGE, "ember");
            sim_programs_free(programs);
            sim_free(sim);
        }
}

/* A member has left; the others make a call that needs its data, and send it nothing. */
TEST(a_member_that_has_left_is_named)
{
    static const struct sim_call call[] = {{.operation = GROUP_BARRIER},
                                           {.operation = GROUP_REDUCE_SCATTER,
                                            .size = 9,
                                            .type = REDUCTION_INT32,
                                            .operator= REDUCTION_SUM },
                                            {.operation = GROUP_BROADCAST, .size = 7, .root = 1}};

    for (uint64_t seed = first_seed; seed < first_seed + 10; seed++) {
        struct sim *sim = group_sim(tori[2 + seed % 7], seed);
        uint32_t nodes = sim_torus(sim)->nodes, who = (uint32_t)(seed % nodes);
        const struct sim_programs_setup setup = {.name = "g",
                                                 .call = call,
                                                 .calls = 3,
                                                 .seed = seed,
                                                 .depth = 1 + seed % 2,
                                                 .pause = 5 * MILLISECONDS,
                                                 .stay = true};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        char words[40];
        while (sim_program_completed(programs, who) == 0)
            sim_pass(sim, 10 * MICROSECONDS);
        struct sim_program_state left = sim_program_state(programs, who);
        sim_program_leave(programs, who);
        (void)snprintf(words, sizeof words, "member %u has left the group", who);
        if (left.calls == 1)
            group_check_failed(sim, programs, nodes - 1, 1 * SECONDS + 100 * MILLISECONDS,
                               ERROR_USAGE, words);
        sim_programs_free(programs);
        sim_free(sim);
    }
}

/* The same in a part: the whole group goes on, because the member has left it regularly. */
TEST(a_member_that_has_left_a_part_is_named)
{
    static const char *const group_cut[] = {"1x2", "2x3", "2x2x2", "3x4m"};
    /* Some members wait for it, others send it early frames. */
    static const struct sim_call last[] = {{.operation = GROUP_BARRIER, .part = 2},
                                           {.operation = GROUP_BROADCAST, .part = 2, .size = 7},
                                           {.operation = GROUP_ALLTOALL, .part = 2, .size = 100},
                                           {
                                               .operation = GROUP_REDUCE_SCATTER,
                                               .part = 2,
                                               .size = 9,
                                               .type = REDUCTION_INT32,
                                               .operator= REDUCTION_SUM },
    };

    for (uint64_t seed = first_seed; seed < first_seed + 32; seed++) {
        struct sim *sim = group_sim(group_cut[seed / 4 % 4], seed);
        uint32_t nodes = sim_torus(sim)->nodes, who = nodes - 1;
        const struct sim_call call[] = {{.operation = GROUP_PART, .part = 2}, last[seed % 4]};
        const struct sim_programs_setup setup = {
            .name = "g", .call = call, .calls = 2, .seed = seed, .depth = 1, .stay = true};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        while (sim_program_state(programs, who).calls == 0)
            sim_pass(sim, 10 * MICROSECONDS);
        sim_program_stop(programs, who);
        while (sim_program_completed(programs, who) == 0)
            sim_pass(sim, 10 * MICROSECONDS);
        if (seed / 16 % 2 == 0)
            sim_pass(sim, 5 * MILLISECONDS);
        sim_program_leave(programs, who);
        group_check_failed(sim, programs, nodes - 1, 1 * SECONDS, ERROR_USAGE,
                           "has left the group");
        sim_programs_free(programs);
        sim_free(sim);
    }
}
