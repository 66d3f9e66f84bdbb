/* Groups of programs on a torus with links that are down: while it is connected, every operation works, on the whole
 * group and on parts that are connected in themselves, whatever goes down or comes up before or after the last program
 * opens the group. */
#include "tests/sim/events.h"
#include "tests/sim/hole_fixture.h"
#include "tests/support/cmocka.h"

SEEDS(25 / SIM_SHARE);

static void links_down_before(uint64_t seed)
{
    struct damage d;
    struct sim *sim = holes_begin(seed, &d);
    struct sim_call call[CALLS_MOST];
    char around[100];
    struct sim_programs_setup setup = {.name = "g",
                                       .call = call,
                                       .calls = holes_draw_calls(sim, call),
                                       .seed = seed,
                                       .depth = 1 + group_any(sim, 8),
                                       .pause = group_any(sim, 2) * 5 * MILLISECONDS,
                                       .unchecked = group_any(sim, 4) == 0,
                                       .lazy = group_any(sim, 3) == 0};

    for (uint32_t left = 1 + group_any(sim, 4); left > 0; left--)
        holes_change(sim, &d, false);
    if (group_any(sim, 2) == 0) /* otherwise not all nodes know of it yet: it is retried */
        sim_pass(sim, 100 * MILLISECONDS);
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    assert_true(sim_run(sim, 60 * SECONDS, holes_group_is_open, NULL));
    assert_true(holes_are_said(sim, damage_describe_links(&d, around, sizeof around)));
    if (group_any(sim, 2) == 0)
        sim_heal(sim); /* it does not use them nevertheless */
    holes_must_succeed(sim, programs);
    for (uint32_t mask = 1; mask < (1u << sim_torus(sim)->dims) - 1; mask++)
        if (sim_programs_left_out(programs, mask) == holes_are_connected(&d, mask))
            sim_violated(sim, "parts", "part %u without %s", mask, around);
    sim_programs_free(programs);
    assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
    damage_free(&d);
    sim_free(sim);
}

TEST(links_that_are_down_are_avoided)
{
    with_seeds(2 * seeds, links_down_before);
}

/* Links change while some programs wait for the others to open the group. */
TEST(links_change_before_it_is_open)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 1000},
                                                {.operation = GROUP_ALLTOALL, .size = 30000},
                                                {.operation = GROUP_BARRIER}};
        struct damage d;
        struct sim *sim = holes_begin(seed, &d);
        const struct sim_programs_setup setup = {.name = "g",
                                                 .call = calls,
                                                 .calls = 3,
                                                 .seed = seed,
                                                 .depth = 2,
                                                 .pause = 1 * SECONDS,
                                                 .stay = true};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        struct error e = {.code = ERROR_NONE};
        for (uint32_t left = 1 + group_any(sim, 8); left > 0 && !holes_group_is_open(sim, NULL);
             left--) {
            holes_change(sim, &d, true);
            sim_pass(sim, group_any(sim, 150) * MILLISECONDS);
        }
        for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
            if (!sim_program_state(programs, rank).open &&
                sim_program_error(programs, rank)->code != ERROR_NONE)
                e = *sim_program_error(programs, rank);
        if (e.code != ERROR_NONE)
            sim_violated(sim, "opening", "%s", e.text);
        assert_true(sim_run(sim, 60 * SECONDS, holes_group_is_open, NULL) ||
                    sim_programs_failed(programs) > 0);
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

/* A link goes down just when the group opens: some programs have heard that all are there, others have not. */
TEST(a_link_goes_down_as_it_opens)
{
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 1000},
                                                {.operation = GROUP_BROADCAST, .size = 30000},
                                                {.operation = GROUP_BARRIER}};
        const struct sim_programs_setup setup = {
            .name = "g", .call = calls, .calls = 3, .seed = seed, .depth = 2};
        struct damage d;
        struct sim *sim = holes_begin(seed, &d);
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        sim_pass(sim, group_any(sim, 2000) * MICROSECONDS);
        holes_change(sim, &d, false);
        holes_must_succeed(sim, programs);
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

/* Two halves that are connected by one link: the early frames that pass it fit into the memory of a late node, both for
 * small calls and for calls that would be small on the whole torus. */
TEST(a_late_member_is_not_swamped)
{
    static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 800},
                                            {.operation = GROUP_ALLTOALL, .size = 7000},
                                            {.operation = GROUP_ALLTOALL, .size = 800},
                                            {.operation = GROUP_ALLTOALL, .size = 7000}};
    const struct sim_setup setup = {.dims = "6x6", .seed = 1, .latency = 50 * MICROSECONDS};

    for (uint32_t first = 0; first < 3; first++) {
        const struct sim_programs_setup all = {.name = "g",
                                               .call = &calls[first],
                                               .calls = first < 2 ? 2 : 1,
                                               .depth = 2,
                                               .stay = true};
        struct sim *sim = sim_new(&setup);
        struct group_info info[2];
        sim_run_until_whole(sim);
        for (uint32_t column = 0; column < 6; column++) {
            sim_set_wire(sim, column, 1, SIM_WIRE_CUT); /* -0: to the last row */
            if (column != 2)
                sim_set_wire(sim, 2 * 6 + column, 0, SIM_WIRE_CUT); /* +0 */
        }
        sim_pass(sim, 1 * SECONDS);
        struct sim_programs *programs = sim_programs_new(sim, &all);
        sim_program_stop(programs, 14);
        sim_pass(sim, 20 * SECONDS);
        assert_int_equal(sim_programs_failed(programs), 0);
        assert_int_equal(groups_list(sim_groups(sim, 14), info, 2), 1);
        assert_true(info[0].open && info[0].early <= UINT64_C(4) << 20);
        sim_program_go_on(programs, 14);
        assert_true(sim_run(sim, 60 * SECONDS, group_all_completed, programs));
        sim_programs_free(programs);
        sim_free(sim);
    }
}

/* Links go down one after the other while the group is open, and come up again: all calls complete, unless a part is no
 * longer connected. */
TEST(links_change_while_it_is_open)
{
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct damage d;
        struct sim *sim = holes_begin(seed, &d);
        struct sim_call call[CALLS_MOST];
        const struct sim_programs_setup setup = {.name = "g",
                                                 .call = call,
                                                 .calls = holes_draw_calls(sim, call),
                                                 .seed = seed,
                                                 .depth = 1 + group_any(sim, 8),
                                                 .pause = group_any(sim, 2) * 5 * MILLISECONDS,
                                                 .unchecked = group_any(sim, 4) == 0,
                                                 .lazy = group_any(sim, 3) == 0};
        const uint32_t nodes = sim_torus(sim)->nodes;
        struct holes_going holes_going = {.nodes = nodes};
        bool apart = false;

        holes_change(sim, &d, false);
        sim_pass(sim, 100 * MILLISECONDS);
        holes_going.programs = sim_programs_new(sim, &setup);
        assert_true(sim_run(sim, 60 * SECONDS, holes_group_is_open, NULL));
        for (uint32_t left = 1 + group_any(sim, 4); left > 0; left--) {
            (void)sim_run(sim, group_any(sim, 40) * MILLISECONDS, holes_all_are_told, &holes_going);
            holes_change(sim, &d, group_any(sim, 2) == 0);
            for (uint32_t mask = 1; mask < (1u << sim_torus(sim)->dims) - 1; mask++)
                apart = apart || !holes_are_connected(&d, mask);
        }
        if (!sim_run(sim, 600 * SECONDS, holes_all_are_told, &holes_going))
            sim_violated(sim, "ends", "%u programs have made all calls, %u have failed",
                         sim_programs_done(holes_going.programs),
                         sim_programs_failed(holes_going.programs));
        for (uint32_t rank = 0; rank < nodes; rank++) {
            const struct error *e = sim_program_error(holes_going.programs, rank);
            if (e->code != ERROR_NONE && !(apart && strstr(e->text, "is not connected") != NULL))
                sim_violated(sim, "calls", "node %u: %s", rank, e->text);
        }
        sim_programs_free(holes_going.programs);
        assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
        damage_free(&d);
        sim_free(sim);
    }
}
