/* Messages between two members of a group: they arrive whole and in order, beside other calls, whatever links go down;
 * and if members disagree, leave or die, all are told. */
#include "tests/sim/events.h"
#include "tests/sim/group_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(SIM_SHARE > 1 ? 12 : 40);

#define CALLS 30u

static const char *const tori[] = {"1x2", "2x2", "3x5", "3mx4", "7", "2x3x2", "5m", "4x4", "1x3"};

static struct sim *sim_of(uint64_t seed)
{
    return group_sim(tori[seed % (sizeof tori / sizeof tori[0])], seed);
}

/* Mostly messages, and other calls between them. */
static void draw(struct sim *sim, struct sim_call *call)
{
    static const uint64_t sizes[] = {0, 1, 100, 5000, 16384, 70000, 400000};

    for (uint32_t i = 0; i < CALLS; i++) {
        if (group_any(sim, 5) == 0)
            call[i] = sim_any_call(sim_chance(sim), sim_torus(sim));
        else
            call[i] = (struct sim_call){
                .operation = group_any(sim, 4) == 0 ? SIM_GATHERED : SIM_MESSAGES,
                .any = group_any(sim, 2) == 0,
                .size = sizes[group_any(sim, sizeof sizes / sizeof sizes[0])] + group_any(sim, 3),
                .root = group_any(sim, group_any(sim, 2) == 0 ? 2 : sim_torus(sim)->nodes)};
    }
}

static struct sim_programs *begin(struct sim *sim, const struct sim_call *call, uint32_t calls,
                                  uint64_t seed)
{
    const struct sim_programs_setup setup = {.name = "g",
                                             .call = call,
                                             .calls = calls,
                                             .seed = seed,
                                             .depth = 1 + (uint32_t)(seed % 7),
                                             .pause = seed % 3 * MILLISECONDS,
                                             .unchecked = seed % 5 == 0,
                                             .lazy = seed % 4 == 1,
                                             .stay = seed % 2 == 0};

    return sim_programs_new(sim, &setup);
}

static void check_all_done(struct sim *sim, struct sim_programs *programs)
{
    if (!sim_programs_run(programs, 120 * SECONDS) ||
        sim_programs_done(programs) != sim_torus(sim)->nodes)
        sim_violated(sim, "messages", "only %u of %u programs have made all calls: %s",
                     sim_programs_done(programs), sim_torus(sim)->nodes,
                     sim_program_error(programs, 0)->text);
}

SIM_SEED_TEST(seeds, sim_of(seed), messages_arrive_beside_other_calls)
{
    struct sim_call call[CALLS];

    draw(sim, call);
    struct sim_programs *programs = begin(sim, call, CALLS, seed);
    check_all_done(sim, programs);
    sim_programs_free(programs);
}

/* Cables are cut and mended while messages are on their way. */
SIM_SEED_TEST(seeds, sim_of(seed), messages_go_around_cut_cables)
{
    struct sim_call call[CALLS];

    draw(sim, call);
    struct sim_programs *programs = begin(sim, call, CALLS, seed);
    sim_pass(sim, (1 + seed % 25) * MILLISECONDS);
    for (unsigned i = 0; i < 3; i++) {
        const uint32_t node = group_any(sim, sim_torus(sim)->nodes);
        if (!group_cut(sim, node, group_any(sim, torus_ports(sim_torus(sim)))))
            break;
        sim_pass(sim, (2 + seed % 40) * MILLISECONDS);
        sim_heal(sim);
        sim_pass(sim, group_any(sim, 13000) * MILLISECONDS);
    }
    sim_heal(sim);
    if (sim_programs_failed(programs) == 0)
        check_all_done(sim, programs);
    else if (sim_program_error(programs, 0)->code != ERROR_LINK)
        sim_violated(sim, "messages", "%s", sim_program_error(programs, 0)->text);
    sim_programs_free(programs);
}

/* A node in the middle dies: all others are told which one. */
SIM_SEED_TEST(seeds / 3, group_sim(tori[2 + seed % 2], seed), a_dead_node_is_named)
{
    const uint32_t nodes = sim_torus(sim)->nodes, who = (uint32_t)(seed * 3 % nodes);
    struct sim_call call[CALLS];

    for (uint32_t i = 0; i < CALLS; i++)
        call[i] = (struct sim_call){.operation = SIM_MESSAGES, .size = 3000000, .root = i};
    const struct sim_programs_setup setup = {
        .name = "g", .call = call, .calls = CALLS, .seed = seed, .depth = 2, .stay = true};
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    sim_pass(sim, (5 + seed % 20) * MILLISECONDS);
    sim_kill(sim, who, seed % 4 == 1 ? SIM_CRASH : SIM_STOP);
    group_check_failed(sim, programs, nodes - 1, 10 * SECONDS, ERROR_LINK, "node");
    sim_restart(sim, who);
    sim_programs_free(programs);
    sim_run_until_whole(sim);
    group_check_reopens(sim, seed);
}

/* One member sends and receives another size, or with another tag, in vain. */
SIM_SEED_TEST(seeds, sim_of(seed), other_sizes_fail_it_for_all)
{
    const struct sim_call call[] = {{.operation = SIM_MESSAGES, .size = 5000},
                                    {.operation = SIM_MESSAGES, .size = 7}},
                          other = {.operation = SIM_MESSAGES, .size = 5001};
    const uint32_t nodes = sim_torus(sim)->nodes;
    const struct sim_programs_setup setup = {
        .name = "g", .call = call, .calls = 2, .seed = seed, .depth = 2, .stay = true};
    struct sim_programs *programs = sim_programs_new(sim, &setup);

    sim_program_mistake(programs, (uint32_t)(seed % nodes), &other);
    group_check_failed(sim, programs, nodes, 5 * SECONDS, ERROR_USAGE, " a message of 500");
    sim_programs_free(programs);
}

static bool one_waits(struct sim *sim, void *context)
{
    return sim_program_state(context, 0).calls == 1 &&
           sim_program_state(context, sim_torus(sim)->nodes - 1).open;
}

/* A member leaves instead of sending. */
SIM_SEED_TEST(seeds, sim_of(seed), a_member_that_has_left_is_named)
{
    const struct sim_call call = {.operation = SIM_MESSAGES, .size = seed % 2 * 5000};
    const uint32_t nodes = sim_torus(sim)->nodes, who = nodes - 1;
    const struct sim_programs_setup setup = {
        .name = "g", .call = &call, .calls = 1, .seed = seed, .depth = 1, .stay = true};
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    char words[60];

    sim_program_stop(programs, who);
    assert_true(sim_run(sim, 10 * SECONDS, one_waits, programs));
    sim_program_leave(programs, who);
    (void)snprintf(words, sizeof words, "member %u has left the group", who);
    group_check_failed(sim, programs, nodes - 1, 5 * SECONDS, ERROR_USAGE, words);
    sim_programs_free(programs);
}

static bool first_waits(struct sim *sim, void *context)
{
    bool open = sim_program_state(context, 0).calls == 1;

    for (uint32_t rank = 1; rank < sim_torus(sim)->nodes; rank++)
        open = open && sim_program_state(context, rank).open;
    return open;
}

/* All members but one leave, before or after it waits for a message from any of them. */
SIM_SEED_TEST(seeds, sim_of(seed), nobody_is_left_to_send)
{
    const struct sim_call call = {.operation = SIM_GATHERED};
    const uint32_t nodes = sim_torus(sim)->nodes;
    const struct sim_programs_setup setup = {
        .name = "g", .call = &call, .calls = 1, .seed = seed, .depth = 1, .stay = true};
    struct sim_programs *programs = sim_programs_new(sim, &setup);

    for (uint32_t rank = 1; rank < nodes; rank++)
        sim_program_stop(programs, rank);
    assert_true(sim_run(sim, 10 * SECONDS, first_waits, programs));
    for (uint32_t rank = 1; rank < nodes; rank++) {
        sim_program_leave(programs, rank);
        if (seed % 3 == 0)
            sim_pass(sim, 100 * MILLISECONDS);
        if (rank + 1 < nodes && sim_program_error(programs, 0)->code != ERROR_NONE)
            sim_violated(sim, "messages", "failed too early: %s",
                         sim_program_error(programs, 0)->text);
    }
    group_check_failed(sim, programs, 1, 5 * SECONDS, ERROR_USAGE,
                       "all other members have left the group, member 0 waits");
    sim_programs_free(programs);
}

/* A message from any member does not arrive. */
SIM_SEED_TEST(seeds, sim_of(seed), late_messages_from_any_fail)
{
    const struct sim_call call = {
        .operation = SIM_GATHERED, .size = 100, .timeout = 500 * MILLISECONDS};
    const uint32_t nodes = sim_torus(sim)->nodes;
    const struct sim_programs_setup setup = {
        .name = "g", .call = &call, .calls = 1, .seed = seed, .depth = 1, .stay = true};
    struct sim_programs *programs = sim_programs_new(sim, &setup);

    sim_program_stop(programs, nodes - 1);
    group_check_failed(sim, programs, nodes, 10 * SECONDS, ERROR_TIMEOUT,
                       "from any member with tag 1000 has not arrived in time");
    sim_programs_free(programs);
}

/* A member never receives: the others' messages to it are late. */
SIM_SEED_TEST(seeds, sim_of(seed), late_messages_fail)
{
    const struct sim_call call = {
        .operation = SIM_MESSAGES, .size = 100, .timeout = 500 * MILLISECONDS};
    const uint32_t nodes = sim_torus(sim)->nodes;
    const struct sim_programs_setup setup = {
        .name = "g", .call = &call, .calls = 1, .seed = seed, .depth = 1, .stay = true};
    struct sim_programs *programs = sim_programs_new(sim, &setup);

    sim_program_stop(programs, (uint32_t)(seed % nodes));
    group_check_failed(sim, programs, nodes, 10 * SECONDS, ERROR_TIMEOUT,
                       "has not arrived in time");
    sim_programs_free(programs);
}
