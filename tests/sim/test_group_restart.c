/* Groups whose links go down: which calls are made again, and with which data; and a root that is cut off. */
#include "daemon/torusd/group/call.h"
#include "tests/sim/events.h"
#include "tests/sim/hole_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(25 / SIM_SHARE);

/* Calls in place: the results that some members have received have overwritten their data. */
TEST(large_vectors_in_place)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim_call call[3];
        struct damage d;
        struct sim *sim = holes_begin(seed, &d);
        for (unsigned i = 0; i < 3; i++)
            call[i] = (struct sim_call){.operation =
                                            group_any(sim, 2) == 0 ? GROUP_ALLREDUCE : GROUP_REDUCE,
                                        .root = group_any(sim, sim_torus(sim)->nodes),
                                        .type = REDUCTION_FLOAT64,
                                        .operator= REDUCTION_SUM,
                                        .size = 50000 + group_any(sim, 400000),
                                        .in_place = true};
        const struct sim_programs_setup setup = {
            .name = "g", .call = call, .calls = 3, .seed = seed, .depth = 1 + group_any(sim, 3)};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        assert_true(sim_run(sim, 60 * SECONDS, holes_group_is_open, NULL));
        for (unsigned left = 3; left > 0; left--) {
            sim_pass(sim, group_any(sim, 60) * MILLISECONDS);
            holes_change(sim, &d, true);
        }
        holes_must_succeed(sim, programs);
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

/* A call that was complete at a member runs there again. */
static bool some_make_again(struct sim *sim, void *context)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        const struct session *s = sim_groups(sim, rank)->sessions;
        for (const struct call *c = s != NULL ? s->part->calls : NULL; c != NULL; c = c->next)
            if (call_is_for_others(c) && call_is_under_way(c))
                return true;
    }
    return false;
}

/* A member makes a complete call again from data that it has kept: its program may have freed or overwritten the
 * memory. */
TEST(small_vectors_in_place)
{
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct sim_call call[CALLS_MOST];
        struct damage d;
        struct sim *sim = holes_begin(seed, &d);
        for (unsigned i = 0; i < CALLS_MOST; i++)
            call[i] = (struct sim_call){.operation = seed % 3 < group_any(sim, 3) ? GROUP_ALLREDUCE
                                                                                  : GROUP_REDUCE,
                                        .root = group_any(sim, sim_torus(sim)->nodes),
                                        .type = REDUCTION_FLOAT64,
                                        .operator= REDUCTION_SUM,
                                        .size = group_any(sim, 400),
                                        .in_place = true};
        const struct sim_programs_setup setup = {
            .name = "g", .call = call, .calls = CALLS_MOST, .seed = seed, .depth = 1};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        assert_true(sim_run(sim, 60 * SECONDS, holes_group_is_open, NULL));
        sim_pass(sim, group_any(sim, 20000) * MICROSECONDS);
        holes_change(sim, &d, false);
        if (sim_run(sim, 100 * MILLISECONDS, some_make_again, NULL))
            for (unsigned tries = 0; tries < 3; tries++)
                holes_change(sim, &d, false);
        holes_must_succeed(sim, programs);
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

/* All others have completed reduces, and have reused the memory, when links on the routes of their data go down. Only
 * then does the root make its calls. */
TEST(reduces_that_are_complete_but_at_their_root)
{
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct sim_call call[GROUP_UNPROVEN_MOST];
        struct damage d;
        struct sim *sim = holes_begin(seed, &d);
        const uint32_t root = group_any(sim, sim_torus(sim)->nodes);
        const struct sim_programs_setup setup = {.name = "g",
                                                 .call = call,
                                                 .calls = 1 + group_any(sim, GROUP_UNPROVEN_MOST),
                                                 .seed = seed,
                                                 .depth = GROUP_UNPROVEN_MOST,
                                                 .stay = true};
        for (unsigned i = 0; i < setup.calls; i++)
            call[i] = (struct sim_call){.operation = GROUP_REDUCE,
                                        .root = root,
                                        .type = REDUCTION_FLOAT64,
                                        .operator= REDUCTION_SUM,
                                        .size = 1 + group_any(sim, 1000),
                                        .in_place = group_any(sim, 2) == 0};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        sim_program_stop(programs, root);
        assert_true(sim_run(sim, 60 * SECONDS, holes_group_is_open, NULL));
        sim_pass(sim, 1 * SECONDS);
        for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
            assert_int_equal(sim_program_completed(programs, rank), rank == root ? 0 : setup.calls);
        for (unsigned left = 1 + group_any(sim, 4); left > 0; left--)
            holes_change(sim, &d, false);
        sim_pass(sim, group_any(sim, 2) * 500 * MILLISECONDS);
        sim_program_go_on(programs, root);
        if (!sim_run(sim, 60 * SECONDS, group_all_completed, programs))
            sim_violated(sim, "ends", "%u programs have made all calls",
                         sim_programs_done(programs));
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

static bool all_have_failed(struct sim *sim, void *context)
{
    const struct holes_going *g = context;

    return sim_programs_failed(g->programs) == g->nodes;
}

/* Sets all links of the group's root to `how`; SIM_WIRE_UP replaces their connections. */
static void cut_off_root(struct sim *sim, enum sim_wire how)
{
    const struct torus *t = sim_torus(sim);
    uint32_t root = 0;

    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (torus_neighbour(t, root, port) == TORUS_NO_NODE)
            continue;
        if (how != SIM_WIRE_UP)
            sim_set_wire(sim, root, port, how);
        else
            sim_half_open(sim, root, port); /* it connects again at once */
    }
}

/* A torus with few links per node, so that all links of a node are easily replaced at once. */
static struct sim *begin_few_links(uint64_t seed)
{
    static const char *const few[] = {"3m", "2m", "4m", "2mx2m", "3", "2mx3m"};
    const struct sim_setup setup = {.dims = few[seed % (sizeof few / sizeof few[0])],
                                    .seed = seed,
                                    .latency = (50 + seed % 2000) * MICROSECONDS,
                                    .rate = 125000000,
                                    .shared = seed % 2 == 1,
                                    .chop = true};
    struct sim *sim = sim_new(&setup);

    sim_run_until_whole(sim);
    return sim;
}

/* Starts programs on it that open a group and make some of their calls. */
static struct sim_programs *begin_calls(struct sim *sim, struct sim_call *call, uint64_t seed,
                                        uint64_t pause, bool stay)
{
    const struct sim_programs_setup setup = {.name = "g",
                                             .call = call,
                                             .calls = holes_draw_calls(sim, call),
                                             .seed = seed,
                                             .depth = 1 + group_any(sim, 8),
                                             .pause = pause,
                                             .stay = stay};
    struct sim_programs *programs = sim_programs_new(sim, &setup);

    assert_true(sim_run(sim, 60 * SECONDS, holes_group_is_open, NULL));
    sim_pass(sim, group_any(sim, 40) * MILLISECONDS);
    return programs;
}

/* For a moment, no link of the root is up: the group does not fail. */
TEST(links_of_the_root_are_replaced)
{
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct sim *sim = begin_few_links(seed);
        struct sim_call call[CALLS_MOST];
        struct sim_programs *programs =
            begin_calls(sim, call, seed, group_any(sim, 2) * 5 * MILLISECONDS, false);
        cut_off_root(sim, SIM_WIRE_UP);
        holes_must_succeed(sim, programs);
        sim_programs_free(programs);
        assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
        sim_free(sim);
    }
}

/* The root is cut off for so long that others may take it for dead without its knowledge: the group fails everywhere,
 * or goes on everywhere. */
TEST(the_root_is_cut_off)
{
    for (uint64_t seed = first_seed; seed < first_seed + 8 * seeds; seed++) {
        struct sim *sim = begin_few_links(seed);
        struct sim_call call[CALLS_MOST];
        struct holes_going holes_going = {begin_calls(sim, call, seed, 50 * MILLISECONDS, true),
                                          sim_torus(sim)->nodes};
        cut_off_root(sim, group_any(sim, 2) == 0 ? SIM_WIRE_CUT : SIM_WIRE_SILENT);
        if (group_any(sim, 2) == 0) /* one node hears of it only afterwards */
            sim_freeze(sim, 1 + group_any(sim, holes_going.nodes - 1),
                       group_any(sim, 400) * MILLISECONDS);
        sim_pass(sim, group_any(sim, group_any(sim, 2) == 0 ? 300000 : 3000000) * MICROSECONDS);
        sim_heal(sim);
        if (!sim_run(sim, 30 * SECONDS, holes_all_are_told, &holes_going))
            sim_violated(sim, "ends", "%u programs have made all calls, %u have failed",
                         sim_programs_done(holes_going.programs),
                         sim_programs_failed(holes_going.programs));
        if (sim_programs_failed(holes_going.programs) > 0 &&
            !sim_run(sim, 10 * SECONDS, all_have_failed, &holes_going))
            sim_violated(sim, "fails", "%u programs of %u have been told that it has failed",
                         sim_programs_failed(holes_going.programs), holes_going.nodes);
        for (uint32_t rank = 0; rank < holes_going.nodes; rank++) /* with the reason */
            if (strstr(sim_program_error(holes_going.programs, rank)->text, "have left") != NULL)
                sim_violated(sim, "tells", "node %u: %s", rank,
                             sim_program_error(holes_going.programs, rank)->text);
        sim_programs_free(holes_going.programs);
        assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
        sim_free(sim);
    }
}

static bool others_are_told(struct sim *sim, void *context)
{
    const struct holes_going *g = context;

    return sim_programs_done(g->programs) + sim_programs_failed(g->programs) >= g->nodes - 1;
}

/* Its node may just have told the root of the link, and wait for the root's answer. */
TEST(a_program_ends_as_a_link_goes_down)
{
    for (uint64_t seed = first_seed; seed < first_seed + 8 * seeds; seed++) {
        struct damage d;
        struct sim *sim = holes_begin(seed, &d);
        struct sim_call call[CALLS_MOST];
        struct holes_going holes_going = {begin_calls(sim, call, seed, 20 * MILLISECONDS, false),
                                          sim_torus(sim)->nodes};
        const uint32_t victim = group_any(sim, holes_going.nodes);

        holes_change(sim, &d, false);
        sim_pass(sim, group_any(sim, 150) * MILLISECONDS);
        if (group_any(sim, 2) == 0)
            sim_program_die(holes_going.programs, victim);
        else
            sim_program_leave(holes_going.programs, victim);
        if (!sim_run(sim, 30 * SECONDS, others_are_told, &holes_going))
            sim_violated(sim, "ends", "%u programs have made all calls, %u have failed",
                         sim_programs_done(holes_going.programs),
                         sim_programs_failed(holes_going.programs));
        sim_programs_free(holes_going.programs);
        assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
        damage_free(&d);
        sim_free(sim);
    }
}

static bool survivors_are_told(struct sim *sim, void *context)
{
    const struct sim_programs *programs = context;

    return sim_program_error(programs, 0)->code != ERROR_NONE &&
           sim_program_error(programs, 2)->code != ERROR_NONE;
}

/* A node has heard that its group is restarted, and is cut off when the root withdraws the restart; its neighbours
 * are restarted, and cannot tell it: it asks the root. */
TEST(the_last_word_goes_past_a_node)
{
    for (uint64_t seed = first_seed; seed < first_seed + 20 * seeds; seed++) {
        const struct sim_setup setup = {.dims = "4", .seed = seed, .latency = 20 * MICROSECONDS};
        struct sim *sim = sim_new(&setup);
        struct sim_call call[CALLS_MOST];
        struct sim_programs *programs;

        sim_run_until_whole(sim);
        programs = begin_calls(sim, call, seed, 20 * MILLISECONDS, true);
        sim_set_wire(sim, 2, 0, SIM_WIRE_CUT);
        sim_pass(sim, (55 + group_any(sim, 60)) * MILLISECONDS);
        sim_kill(sim, 1, SIM_POWER);
        sim_pass(sim, (50 + group_any(sim, 250)) * MILLISECONDS);
        sim_kill(sim, 3, SIM_CRASH);
        sim_pass(sim, group_any(sim, 60) * MILLISECONDS);
        sim_restart(sim, 3);
        sim_pass(sim, group_any(sim, 2000) * MILLISECONDS);
        sim_set_wire(sim, 1, 0,
                     SIM_WIRE_CUT); /* the root tells it when it comes up; it tells no other node */
        sim_restart(sim, 1);
        sim_pass(sim, 500 * MILLISECONDS);
        sim_heal(sim);
        if (!sim_run(sim, 60 * SECONDS, survivors_are_told, programs))
            sim_violated(sim, "ends", "%u programs have made all calls, %u have failed",
                         sim_programs_done(programs), sim_programs_failed(programs));
        sim_programs_free(programs);
        assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
        sim_free(sim);
    }
}
