/* Groups of programs on a torus of which links are down: while it is connected every operation works on
 * what is left, on the whole and on parts that are connected in themselves, whatever goes down or comes
 * up before the last program opens the group or afterwards.
 *
 *     test_sim_group_holes [FIRST_SEED COUNT]     more seeds than ctest runs */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/group/record/call.h"
#include "daemon/schedule/damage.h"
#include "tests/sim/events.h"
#include "tests/sim/programs.h"

#define CALLS_MOST 40u

static uint64_t first_seed, seeds = 25 / SIM_SHARE;

static const char *const tori[] = {"4x4", "3x3", "2x3",   "5", "4mx3", "2x2x2", "3x5",
                                   "1x4", "2x2", "3mx3m", "2", "7",    "2x4m"};

static uint32_t any(struct sim *sim, uint32_t below)
{
    return (uint32_t)chance_below(sim_chance(sim), below);
}

static struct sim *begin(uint64_t seed, struct damage *d)
{
    const struct sim_setup setup = {.dims = tori[seed % (sizeof tori / sizeof tori[0])],
                                    .seed = seed,
                                    .latency = 50 * MICROSECONDS,
                                    .rate = 125000000,
                                    .shared = seed % 2 == 1,
                                    .chop = true};
    struct sim *sim = sim_new(&setup);
    struct error e;

    sim_run_until_whole(sim);
    assert_int_equal(damage_init(d, sim_torus(sim), &e), 0);
    return sim;
}

/* Cuts a link, or mends one that is cut; never so that the torus would be in parts. */
static void change(struct sim *sim, struct damage *d, bool mend)
{
    const struct torus *t = sim_torus(sim);
    uint32_t rank = any(sim, t->nodes);
    unsigned port = any(sim, torus_ports(t));

    if (torus_neighbour(t, rank, port) == TORUS_NO_NODE)
        return;
    uint32_t there = torus_neighbour(t, rank, port);
    if (damage_has_link(d, rank, port)) {
        damage_add_link(d, rank, port);
        if (damage_is_connected(d, NULL) == 0) {
            sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
            return;
        }
    } else if (mend) {
        sim_set_wire(sim, rank, port, SIM_WIRE_UP);
    } else {
        return;
    }
    d->dead[rank] &= ~(1u << port);
    d->dead[there] &= ~(1u << torus_port_opposite(port));
}

/* Whether from every node all others that differ from it in these dimensions only can be reached by
 * links of these dimensions. */
static bool is_connected(const struct damage *d, uint32_t mask)
{
    const struct torus *t = &d->torus;
    uint32_t wanted = 1, order[64];

    for (unsigned dim = 0; dim < t->dims; dim++)
        wanted *= (mask & 1u << dim) != 0 ? t->size[dim] : 1;
    for (uint32_t node = 0; node < t->nodes; node++) {
        uint64_t seen = UINT64_C(1) << node;
        uint32_t known = 0;
        order[known++] = node;
        for (uint32_t i = 0; i < known; i++)
            for (unsigned port = 0; port < torus_ports(t); port++) {
                uint32_t there = torus_neighbour(t, order[i], port);
                if ((mask & 1u << torus_port_dim(port)) == 0 ||
                    !damage_has_link(d, order[i], port) || (seen & UINT64_C(1) << there) != 0)
                    continue;
                seen |= UINT64_C(1) << there;
                order[known++] = there;
            }
        if (known < wanted)
            return false;
    }
    return true;
}

/* All parts, and anything on them and on the whole. */
static uint32_t draw_calls(struct sim *sim, struct sim_call *call)
{
    const struct torus *t = sim_torus(sim);
    uint32_t calls = 0, masks = 1;

    for (; masks < (1u << t->dims) - 1; masks++)
        call[calls++] = (struct sim_call){.operation = GROUP_PART, .part = masks};
    while (calls < CALLS_MOST) {
        struct sim_call *one = &call[calls++];
        *one = sim_any_call(sim_chance(sim), t);
        one->part = any(sim, masks);
        uint32_t size = 1;
        for (unsigned dim = 0; dim < t->dims; dim++)
            size *= one->part == 0 || (one->part & 1u << dim) != 0 ? t->size[dim] : 1;
        one->root %= size;
    }
    return calls;
}

static void must_succeed(struct sim *sim, struct sim_programs *programs)
{
    if (!sim_programs_run(programs, 600 * SECONDS))
        sim_violated(sim, "ends", "the programs have not ended");
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_program_error(programs, rank)->code != ERROR_NONE)
            sim_violated(sim, "calls", "node %u: %s", rank,
                         sim_program_error(programs, rank)->text);
    assert_int_equal(sim_programs_done(programs), sim_torus(sim)->nodes);
}

/* As all nodes say what the group goes around. */
static bool says(struct sim *sim, const char *around)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info[2];
        if (groups_list(sim_groups(sim, rank), info, 2) != 1 || !info[0].open ||
            strcmp(info[0].around, around) != 0)
            return false;
    }
    return true;
}

static bool have_all(struct sim *sim, void *context)
{
    return sim_programs_done(context) == sim_torus(sim)->nodes;
}

static bool is_open(struct sim *sim, void *context)
{
    (void)context;
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info[2];
        if (groups_list(sim_groups(sim, rank), info, 2) != 1 || !info[0].open)
            return false;
    }
    return true;
}

static void links_down_before(uint64_t seed)
{
    struct damage d;
    struct sim *sim = begin(seed, &d);
    struct sim_call call[CALLS_MOST];
    char around[100];
    struct sim_programs_setup setup = {.name = "g",
                                       .call = call,
                                       .calls = draw_calls(sim, call),
                                       .seed = seed,
                                       .depth = 1 + any(sim, 8),
                                       .pause = any(sim, 2) * 5 * MILLISECONDS,
                                       .unchecked = any(sim, 4) == 0,
                                       .lazy = any(sim, 3) == 0};

    for (uint32_t left = 1 + any(sim, 4); left > 0; left--)
        change(sim, &d, false);
    if (any(sim, 2) == 0) /* else not all know of it yet: it is opened anew */
        sim_pass(sim, 100 * MILLISECONDS);
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    assert_true(sim_run(sim, 60 * SECONDS, is_open, NULL));
    assert_true(says(sim, damage_describe_links(&d, around, sizeof around)));
    if (any(sim, 2) == 0)
        sim_heal(sim); /* it does not use them all the same */
    must_succeed(sim, programs);
    for (uint32_t mask = 1; mask < (1u << sim_torus(sim)->dims) - 1; mask++)
        if (sim_programs_left_out(programs, mask) == is_connected(&d, mask))
            sim_violated(sim, "parts", "part %u without %s", mask, around);
    sim_programs_free(programs);
    assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
    damage_free(&d);
    sim_free(sim);
}

static void around_what_is_down(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 2 * seeds; seed++)
        links_down_before(seed);
}

/* While some programs wait for the others to open it. */
static void links_change_before_it_is_open(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 1000},
                                                {.operation = GROUP_ALLTOALL, .size = 30000},
                                                {.operation = GROUP_BARRIER}};
        struct damage d;
        struct sim *sim = begin(seed, &d);
        const struct sim_programs_setup setup = {.name = "g",
                                                 .call = calls,
                                                 .calls = 3,
                                                 .seed = seed,
                                                 .depth = 2,
                                                 .pause = 1 * SECONDS,
                                                 .stay = true};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        struct error e = {.code = ERROR_NONE};
        for (uint32_t left = 1 + any(sim, 8); left > 0 && !is_open(sim, NULL); left--) {
            change(sim, &d, true);
            sim_pass(sim, any(sim, 150) * MILLISECONDS);
        }
        for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
            if (!sim_program_state(programs, rank).open &&
                sim_program_error(programs, rank)->code != ERROR_NONE)
                e = *sim_program_error(programs, rank);
        if (e.code != ERROR_NONE)
            sim_violated(sim, "opening", "%s", e.text);
        assert_true(sim_run(sim, 60 * SECONDS, is_open, NULL) || sim_programs_failed(programs) > 0);
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

/* Just when it opens: some have heard that all are there, others have not. */
static void a_link_goes_down_as_it_opens(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 1000},
                                                {.operation = GROUP_BROADCAST, .size = 30000},
                                                {.operation = GROUP_BARRIER}};
        const struct sim_programs_setup setup = {
            .name = "g", .call = calls, .calls = 3, .seed = seed, .depth = 2};
        struct damage d;
        struct sim *sim = begin(seed, &d);
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        sim_pass(sim, any(sim, 2000) * MICROSECONDS);
        change(sim, &d, false);
        must_succeed(sim, programs);
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

/* Two halves that hang together by one link: all that passes it and that its node has not called yet fits
 * in there, both of small calls and of those that would be small on the whole torus. */
static void who_is_late_is_not_swamped(void **state)
{
    static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 800},
                                            {.operation = GROUP_ALLTOALL, .size = 7000},
                                            {.operation = GROUP_ALLTOALL, .size = 800},
                                            {.operation = GROUP_ALLTOALL, .size = 7000}};
    const struct sim_setup setup = {.dims = "6x6", .seed = 1, .latency = 50 * MICROSECONDS};

    (void)state;
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
        assert_true(info[0].open && info[0].parked <= UINT64_C(4) << 20);
        sim_program_go_on(programs, 14);
        assert_true(sim_run(sim, 60 * SECONDS, have_all, programs));
        sim_programs_free(programs);
        sim_free(sim);
    }
}

struct going {
    struct sim_programs *programs;
    uint32_t nodes;
};

/* Each program has made all calls, or been told that the group has failed. */
static bool all_are_told(struct sim *sim, void *context)
{
    const struct going *g = context;

    (void)sim;
    return sim_programs_done(g->programs) + sim_programs_failed(g->programs) == g->nodes;
}

static bool all_have_failed(struct sim *sim, void *context)
{
    const struct going *g = context;

    (void)sim;
    return sim_programs_failed(g->programs) == g->nodes;
}

/* Links go down, one after the other, while it is open, and come up again: all calls are completed, unless a
 * part falls into pieces. */
static void links_change_while_it_is_open(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct damage d;
        struct sim *sim = begin(seed, &d);
        struct sim_call call[CALLS_MOST];
        const struct sim_programs_setup setup = {.name = "g",
                                                 .call = call,
                                                 .calls = draw_calls(sim, call),
                                                 .seed = seed,
                                                 .depth = 1 + any(sim, 8),
                                                 .pause = any(sim, 2) * 5 * MILLISECONDS,
                                                 .unchecked = any(sim, 4) == 0,
                                                 .lazy = any(sim, 3) == 0};
        const uint32_t nodes = sim_torus(sim)->nodes;
        struct going going = {.nodes = nodes};
        bool apart = false;

        change(sim, &d, false);
        sim_pass(sim, 100 * MILLISECONDS);
        going.programs = sim_programs_new(sim, &setup);
        assert_true(sim_run(sim, 60 * SECONDS, is_open, NULL));
        for (uint32_t left = 1 + any(sim, 4); left > 0; left--) {
            (void)sim_run(sim, any(sim, 40) * MILLISECONDS, all_are_told, &going);
            change(sim, &d, any(sim, 2) == 0);
            for (uint32_t mask = 1; mask < (1u << sim_torus(sim)->dims) - 1; mask++)
                apart = apart || !is_connected(&d, mask);
        }
        if (!sim_run(sim, 600 * SECONDS, all_are_told, &going))
            sim_violated(sim, "ends", "%u programs have made all calls, %u have failed",
                         sim_programs_done(going.programs), sim_programs_failed(going.programs));
        for (uint32_t rank = 0; rank < nodes; rank++) {
            const struct error *e = sim_program_error(going.programs, rank);
            if (e->code != ERROR_NONE && !(apart && strstr(e->text, "falls into pieces") != NULL))
                sim_violated(sim, "calls", "node %u: %s", rank, e->text);
        }
        sim_programs_free(going.programs);
        assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
        damage_free(&d);
        sim_free(sim);
    }
}

/* Results that some have got have taken the place of what they were made from. */
static void large_vectors_in_place(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim_call call[3];
        struct damage d;
        struct sim *sim = begin(seed, &d);
        for (unsigned i = 0; i < 3; i++)
            call[i] =
                (struct sim_call){.operation = any(sim, 2) == 0 ? GROUP_ALLREDUCE : GROUP_REDUCE,
                                  .root = any(sim, sim_torus(sim)->nodes),
                                  .type = REDUCTION_FLOAT64,
                                  .operator= REDUCTION_SUM,
                                  .size = 50000 + any(sim, 400000),
                                  .in_place = true};
        const struct sim_programs_setup setup = {
            .name = "g", .call = call, .calls = 3, .seed = seed, .depth = 1 + any(sim, 3)};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        assert_true(sim_run(sim, 60 * SECONDS, is_open, NULL));
        for (unsigned left = 3; left > 0; left--) {
            sim_pass(sim, any(sim, 60) * MILLISECONDS);
            change(sim, &d, true);
        }
        must_succeed(sim, programs);
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

/* A call that was complete at a member is under way there. */
static bool some_make_again(struct sim *sim, void *context)
{
    (void)context;
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        const struct session *s = sim_groups(sim, rank)->sessions;
        for (const struct call *c = s != NULL ? s->part->calls : NULL; c != NULL; c = c->next)
            if (call_is_for_others(c) && c->state == CALL_RUNNING)
                return true;
    }
    return false;
}

/* A member that is through with a call makes it again from what it has kept: its program may have freed or
 * used the memory. */
static void small_vectors_in_place(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct sim_call call[CALLS_MOST];
        struct damage d;
        struct sim *sim = begin(seed, &d);
        for (unsigned i = 0; i < CALLS_MOST; i++)
            call[i] = (struct sim_call){.operation =
                                            seed % 3 < any(sim, 3) ? GROUP_ALLREDUCE : GROUP_REDUCE,
                                        .root = any(sim, sim_torus(sim)->nodes),
                                        .type = REDUCTION_FLOAT64,
                                        .operator= REDUCTION_SUM,
                                        .size = any(sim, 400),
                                        .in_place = true};
        const struct sim_programs_setup setup = {
            .name = "g", .call = call, .calls = CALLS_MOST, .seed = seed, .depth = 1};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        assert_true(sim_run(sim, 60 * SECONDS, is_open, NULL));
        sim_pass(sim, any(sim, 20000) * MICROSECONDS);
        change(sim, &d, false);
        if (sim_run(sim, 100 * MILLISECONDS, some_make_again, NULL))
            for (unsigned tries = 0; tries < 3; tries++)
                change(sim, &d, false);
        must_succeed(sim, programs);
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

/* All others are through with reduces, and have used the memory again, when links go down that what they sent
 * had to take; only then comes the root. */
static void reduces_that_are_complete_but_at_their_root(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct sim_call call[GROUP_UNPROVEN_MOST];
        struct damage d;
        struct sim *sim = begin(seed, &d);
        const uint32_t root = any(sim, sim_torus(sim)->nodes);
        const struct sim_programs_setup setup = {.name = "g",
                                                 .call = call,
                                                 .calls = 1 + any(sim, GROUP_UNPROVEN_MOST),
                                                 .seed = seed,
                                                 .depth = GROUP_UNPROVEN_MOST,
                                                 .stay = true};
        for (unsigned i = 0; i < setup.calls; i++)
            call[i] = (struct sim_call){.operation = GROUP_REDUCE,
                                        .root = root,
                                        .type = REDUCTION_FLOAT64,
                                        .operator= REDUCTION_SUM,
                                        .size = 1 + any(sim, 1000),
                                        .in_place = any(sim, 2) == 0};
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        sim_program_stop(programs, root);
        assert_true(sim_run(sim, 60 * SECONDS, is_open, NULL));
        sim_pass(sim, 1 * SECONDS);
        for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
            assert_int_equal(sim_program_completed(programs, rank), rank == root ? 0 : setup.calls);
        for (unsigned left = 1 + any(sim, 4); left > 0; left--)
            change(sim, &d, false);
        sim_pass(sim, any(sim, 2) * 500 * MILLISECONDS);
        sim_program_go_on(programs, root);
        if (!sim_run(sim, 60 * SECONDS, have_all, programs))
            sim_violated(sim, "ends", "%u programs have made all calls",
                         sim_programs_done(programs));
        sim_programs_free(programs);
        damage_free(&d);
        sim_free(sim);
    }
}

/* All links of the node that has prepared the group; `how`: SIM_WIRE_UP replaces their connections. */
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
            sim_half_open(sim, root, port); /* it connects anew at once */
    }
}

/* Of few links: those of a node are easily all replaced at once. */
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

/* Programs that have opened a group there, and made some of their calls. */
static struct sim_programs *begin_calls(struct sim *sim, struct sim_call *call, uint64_t seed,
                                        uint64_t pause, bool stay)
{
    const struct sim_programs_setup setup = {.name = "g",
                                             .call = call,
                                             .calls = draw_calls(sim, call),
                                             .seed = seed,
                                             .depth = 1 + any(sim, 8),
                                             .pause = pause,
                                             .stay = stay};
    struct sim_programs *programs = sim_programs_new(sim, &setup);

    assert_true(sim_run(sim, 60 * SECONDS, is_open, NULL));
    sim_pass(sim, any(sim, 40) * MILLISECONDS);
    return programs;
}

/* For a moment none of its links is up: that is not the end of a group. */
static void links_of_the_root_are_replaced(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 4 * seeds; seed++) {
        struct sim *sim = begin_few_links(seed);
        struct sim_call call[CALLS_MOST];
        struct sim_programs *programs =
            begin_calls(sim, call, seed, any(sim, 2) * 5 * MILLISECONDS, false);
        cut_off_root(sim, SIM_WIRE_UP);
        must_succeed(sim, programs);
        sim_programs_free(programs);
        assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
        sim_free(sim);
    }
}

/* For so long that others may take it for dead, and it may not know: it fails everywhere, or goes on
 * everywhere. */
static void the_root_is_cut_off(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 8 * seeds; seed++) {
        struct sim *sim = begin_few_links(seed);
        struct sim_call call[CALLS_MOST];
        struct going going = {begin_calls(sim, call, seed, 50 * MILLISECONDS, true),
                              sim_torus(sim)->nodes};
        cut_off_root(sim, any(sim, 2) == 0 ? SIM_WIRE_CUT : SIM_WIRE_SILENT);
        if (any(sim, 2) == 0) /* one hears only afterwards */
            sim_freeze(sim, 1 + any(sim, going.nodes - 1), any(sim, 400) * MILLISECONDS);
        sim_pass(sim, any(sim, any(sim, 2) == 0 ? 300000 : 3000000) * MICROSECONDS);
        sim_heal(sim);
        if (!sim_run(sim, 30 * SECONDS, all_are_told, &going))
            sim_violated(sim, "ends", "%u programs have made all calls, %u have failed",
                         sim_programs_done(going.programs), sim_programs_failed(going.programs));
        if (sim_programs_failed(going.programs) > 0 &&
            !sim_run(sim, 10 * SECONDS, all_have_failed, &going))
            sim_violated(sim, "fails", "%u programs of %u have been told that it has failed",
                         sim_programs_failed(going.programs), going.nodes);
        for (uint32_t rank = 0; rank < going.nodes; rank++) /* not what came of that */
            if (strstr(sim_program_error(going.programs, rank)->text, "have left") != NULL)
                sim_violated(sim, "tells", "node %u: %s", rank,
                             sim_program_error(going.programs, rank)->text);
        sim_programs_free(going.programs);
        assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
        sim_free(sim);
    }
}

static bool others_are_told(struct sim *sim, void *context)
{
    const struct going *g = context;

    (void)sim;
    return sim_programs_done(g->programs) + sim_programs_failed(g->programs) >= g->nodes - 1;
}

/* Its node may just have told the root of the link, and wait for what the root says to that. */
static void a_program_ends_as_a_link_goes_down(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 8 * seeds; seed++) {
        struct damage d;
        struct sim *sim = begin(seed, &d);
        struct sim_call call[CALLS_MOST];
        struct going going = {begin_calls(sim, call, seed, 20 * MILLISECONDS, false),
                              sim_torus(sim)->nodes};
        const uint32_t victim = any(sim, going.nodes);

        change(sim, &d, false);
        sim_pass(sim, any(sim, 150) * MILLISECONDS);
        if (any(sim, 2) == 0)
            sim_program_die(going.programs, victim);
        else
            sim_program_leave(going.programs, victim);
        if (!sim_run(sim, 30 * SECONDS, others_are_told, &going))
            sim_violated(sim, "ends", "%u programs have made all calls, %u have failed",
                         sim_programs_done(going.programs), sim_programs_failed(going.programs));
        sim_programs_free(going.programs);
        assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
        damage_free(&d);
        sim_free(sim);
    }
}

static bool survivors_are_told(struct sim *sim, void *context)
{
    const struct sim_programs *programs = context;

    (void)sim;
    return sim_program_error(programs, 0)->code != ERROR_NONE &&
           sim_program_error(programs, 2)->code != ERROR_NONE;
}

/* A node has heard that its group begins anew, and is cut off when the root gives that up; its neighbours are
 * restarted, and have nothing to tell it: it asks the root. */
static void the_last_word_goes_past_a_node(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + 20 * seeds; seed++) {
        const struct sim_setup setup = {.dims = "4", .seed = seed, .latency = 20 * MICROSECONDS};
        struct sim *sim = sim_new(&setup);
        struct sim_call call[CALLS_MOST];
        struct sim_programs *programs;

        sim_run_until_whole(sim);
        programs = begin_calls(sim, call, seed, 20 * MILLISECONDS, true);
        sim_set_wire(sim, 2, 0, SIM_WIRE_CUT);
        sim_pass(sim, (55 + any(sim, 60)) * MILLISECONDS);
        sim_kill(sim, 1, SIM_POWER);
        sim_pass(sim, (50 + any(sim, 250)) * MILLISECONDS);
        sim_kill(sim, 3, SIM_CRASH);
        sim_pass(sim, any(sim, 60) * MILLISECONDS);
        sim_restart(sim, 3);
        sim_pass(sim, any(sim, 2000) * MILLISECONDS);
        sim_set_wire(sim, 1, 0,
                     SIM_WIRE_CUT); /* the root tells it when it comes up, and it tells nobody */
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(around_what_is_down),
        cmocka_unit_test(links_change_before_it_is_open),
        cmocka_unit_test(a_link_goes_down_as_it_opens),
        cmocka_unit_test(who_is_late_is_not_swamped),
        cmocka_unit_test(links_change_while_it_is_open),
        cmocka_unit_test(large_vectors_in_place),
        cmocka_unit_test(small_vectors_in_place),
        cmocka_unit_test(reduces_that_are_complete_but_at_their_root),
        cmocka_unit_test(links_of_the_root_are_replaced),
        cmocka_unit_test(the_root_is_cut_off),
        cmocka_unit_test(a_program_ends_as_a_link_goes_down),
        cmocka_unit_test(the_last_word_goes_past_a_node),
    };

    if (argc > 2) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = strtoull(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
