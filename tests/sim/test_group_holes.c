/* Groups of programs on a torus with links that are down: while it is connected, every operation works, on the whole
 * group and on parts that are connected in themselves, whatever goes down or comes up before or after the last program
 * opens the group. */
#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/group/call.h"
#include "tests/sim/events.h"
#include "tests/sim/group_fixture.h"
#include "tests/support/cmocka.h"

#define CALLS_MOST 40u

/* For holes_all_are_told(). */
struct holes_going {
    struct sim_programs *programs;
    uint32_t nodes;
};

static const char *const tori[] = {"4x4", "3x3", "2x3",   "5", "4mx3", "2x2x2", "3x5",
                                   "1x4", "2x2", "3mx3m", "2", "7",    "2x4m"};

/* A simulator of one of several tori, with all links up, and an empty set of links that are down. */
static struct sim *holes_begin(uint64_t seed, struct damage *d)
{
    struct sim *sim = group_sim(tori[seed % (sizeof tori / sizeof tori[0])], seed);
    struct error e;

    assert_int_equal(damage_init(d, sim_torus(sim), &e), 0);
    return sim;
}

/* HOLES_TEST(COUNT, NAME) { ... }: a SEED_TEST() with both, `sim` and `d`. */
#define HOLES_TEST(count, name)                                                                    \
    static void name##_with_holes(struct sim *sim, struct damage *d, uint64_t seed);               \
    SEED_TEST(count, name)                                                                         \
    {                                                                                              \
        struct damage d;                                                                           \
        struct sim *sim = holes_begin(seed, &d);                                                   \
        name##_with_holes(sim, &d, seed);                                                          \
        damage_free(&d);                                                                           \
        sim_free(sim);                                                                             \
    }                                                                                              \
    static void name##_with_holes(struct sim *sim, struct damage *d, uint64_t seed)

/* Cuts a link, or restores one that is cut; never so that the torus is in parts. */
static void holes_change(struct sim *sim, struct damage *d, bool mend)
{
    const struct torus *t = sim_torus(sim);
    uint32_t rank = group_any(sim, t->nodes);
    unsigned port = group_any(sim, torus_ports(t));

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
    d->dead[there] &= ~(1u << torus_port_opposite(t, port));
}

/* Whether every node can reach all nodes that differ from it only in these dimensions, over links of these
 * dimensions. */
static bool holes_are_connected(const struct damage *d, uint32_t mask)
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
                if ((mask & 1u << torus_port_dim(t, port)) == 0 ||
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

/* All parts, and random operations on them and on the whole group. */
static uint32_t holes_draw_calls(struct sim *sim, struct sim_call *call)
{
    const struct torus *t = sim_torus(sim);
    uint32_t calls = 0, masks = 1;

    for (; masks < (1u << t->dims) - 1; masks++)
        call[calls++] = (struct sim_call){.operation = GROUP_PART, .part = masks};
    while (calls < CALLS_MOST) {
        struct sim_call *one = &call[calls++];
        *one = sim_any_call(sim_chance(sim), t);
        one->part = group_any(sim, masks);
        uint32_t size = 1;
        for (unsigned dim = 0; dim < t->dims; dim++)
            size *= one->part == 0 || (one->part & 1u << dim) != 0 ? t->size[dim] : 1;
        one->root %= size;
    }
    return calls;
}

/* It is a violation unless all calls of all programs are complete. */
static void holes_must_succeed(struct sim *sim, struct sim_programs *programs)
{
    if (!sim_programs_run(programs, 600 * SECONDS))
        sim_violated(sim, "ends", "the programs have not ended");
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_program_error(programs, rank)->code != ERROR_NONE)
            sim_violated(sim, "calls", "node %u: %s", rank,
                         sim_program_error(programs, rank)->text);
    assert_int_equal(sim_programs_done(programs), sim_torus(sim)->nodes);
}

/* Whether all nodes report that the group avoids `around`. */
static bool holes_are_said(struct sim *sim, const char *around)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info[2];
        if (groups_list(sim_groups(sim, rank), info, 2) != 1 || !info[0].open ||
            strcmp(info[0].avoids, around) != 0)
            return false;
    }
    return true;
}

/* For sim_run(): whether the group is open at all nodes. */
static bool holes_group_is_open(struct sim *sim, void *context)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        struct group_info info[2];
        if (groups_list(sim_groups(sim, rank), info, 2) != 1 || !info[0].open)
            return false;
    }
    return true;
}

/* For sim_run(): whether each program has made all calls, or been told that the group has failed. */
static bool holes_all_are_told(struct sim *sim, void *context)
{
    const struct holes_going *g = context;

    return sim_programs_done(g->programs) + sim_programs_failed(g->programs) == g->nodes;
}

SEEDS(25 / SIM_SHARE);

HOLES_TEST(2 * seeds, links_that_are_down_are_avoided)
{
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
        holes_change(sim, d, false);
    if (group_any(sim, 2) == 0) /* otherwise not all nodes know of it yet: it is retried */
        sim_pass(sim, 100 * MILLISECONDS);
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    assert_true(sim_run(sim, 60 * SECONDS, holes_group_is_open, NULL));
    assert_true(holes_are_said(sim, damage_describe_links(d, around, sizeof around)));
    if (group_any(sim, 2) == 0)
        sim_heal(sim); /* it does not use them nevertheless */
    holes_must_succeed(sim, programs);
    for (uint32_t mask = 1; mask < (1u << sim_torus(sim)->dims) - 1; mask++)
        if (sim_programs_left_out(programs, mask) == holes_are_connected(d, mask))
            sim_violated(sim, "parts", "part %u without %s", mask, around);
    sim_programs_free(programs);
    assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
}

/* Links change while some programs wait for the others to open the group. */
HOLES_TEST(seeds, links_change_before_it_is_open)
{
    static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 1000},
                                            {.operation = GROUP_ALLTOALL, .size = 30000},
                                            {.operation = GROUP_BARRIER}};
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
        holes_change(sim, d, true);
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
}

/* A link goes down just when the group opens: some programs have heard that all are there, others have not. */
HOLES_TEST(4 * seeds, a_link_goes_down_as_it_opens)
{
    static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 1000},
                                            {.operation = GROUP_BROADCAST, .size = 30000},
                                            {.operation = GROUP_BARRIER}};
    const struct sim_programs_setup setup = {
        .name = "g", .call = calls, .calls = 3, .seed = seed, .depth = 2};
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    sim_pass(sim, group_any(sim, 2000) * MICROSECONDS);
    holes_change(sim, d, false);
    holes_must_succeed(sim, programs);
    sim_programs_free(programs);
}

/* Two halves that are connected by one link: the early frames that pass it fit into the memory of a late node, both for
 * small calls and for calls that would be small on the whole torus. */
TEST(a_late_member_is_not_swamped)
{
    static const struct sim_call calls[] = {{.operation = GROUP_ALLTOALL, .size = 800},
                                            {.operation = GROUP_ALLTOALL, .size = 7000},
                                            {.operation = GROUP_ALLTOALL, .size = 800},
                                            {.operation = GROUP_ALLTOALL, .size = 7000}};

    for (uint32_t first = 0; first < 3; first += (uint32_t)one_in(2)) {
        const struct sim_programs_setup all = {.name = "g",
                                               .call = &calls[first],
                                               .calls = first < 2 ? 2 : 1,
                                               .depth = 2,
                                               .stay = true};
        struct sim *sim = SIM_WHOLE(.dims = "6x6", .seed = 1, .latency = 50 * MICROSECONDS);
        struct group_info info[2];
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

/* Links go down one after another while the group is open, and come up again: all calls complete, unless a part is no
 * longer connected. */
HOLES_TEST(4 * seeds, links_change_while_it_is_open)
{
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

    holes_change(sim, d, false);
    sim_pass(sim, 100 * MILLISECONDS);
    holes_going.programs = sim_programs_new(sim, &setup);
    assert_true(sim_run(sim, 60 * SECONDS, holes_group_is_open, NULL));
    for (uint32_t left = 1 + group_any(sim, 4); left > 0; left--) {
        (void)sim_run(sim, group_any(sim, 40) * MILLISECONDS, holes_all_are_told, &holes_going);
        holes_change(sim, d, group_any(sim, 2) == 0);
        for (uint32_t mask = 1; mask < (1u << sim_torus(sim)->dims) - 1; mask++)
            apart = apart || !holes_are_connected(d, mask);
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
}

/* Groups whose links go down: which calls are made again, and with which data; and a root that is cut off. */

/* Calls in place: the results that some members have received have overwritten their data. */
HOLES_TEST(seeds, large_vectors_in_place)
{
    struct sim_call call[3];
    for (unsigned i = 0; i < 3; i++)
        call[i] =
            (struct sim_call){.operation = group_any(sim, 2) == 0 ? GROUP_ALLREDUCE : GROUP_REDUCE,
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
        holes_change(sim, d, true);
    }
    holes_must_succeed(sim, programs);
    sim_programs_free(programs);
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
HOLES_TEST(4 * seeds, small_vectors_in_place)
{
    struct sim_call call[CALLS_MOST];
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
    holes_change(sim, d, false);
    if (sim_run(sim, 100 * MILLISECONDS, some_make_again, NULL))
        for (unsigned tries = 0; tries < 3; tries++)
            holes_change(sim, d, false);
    holes_must_succeed(sim, programs);
    sim_programs_free(programs);
}

/* All others have completed reduces, and have reused the memory, when links on the routes of their data go down. Only
 * then does the root make its calls. */
HOLES_TEST(4 * seeds, reduces_that_are_complete_but_at_their_root)
{
    struct sim_call call[GROUP_UNPROVEN_MOST];
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
        holes_change(sim, d, false);
    sim_pass(sim, group_any(sim, 2) * 500 * MILLISECONDS);
    sim_program_go_on(programs, root);
    if (!sim_run(sim, 60 * SECONDS, group_all_completed, programs))
        sim_violated(sim, "ends", "%u programs have made all calls", sim_programs_done(programs));
    sim_programs_free(programs);
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
    return SIM_WHOLE(.dims = few[seed % (sizeof few / sizeof few[0])], .seed = seed,
                     .latency = (50 + seed % 2000) * MICROSECONDS, .rate = 125000000,
                     .shared = seed % 2 == 1, .chop = true);
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
SIM_SEED_TEST(4 * seeds, begin_few_links(seed), links_of_the_root_are_replaced)
{
    struct sim_call call[CALLS_MOST];
    struct sim_programs *programs =
        begin_calls(sim, call, seed, group_any(sim, 2) * 5 * MILLISECONDS, false);
    cut_off_root(sim, SIM_WIRE_UP);
    holes_must_succeed(sim, programs);
    sim_programs_free(programs);
    assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
}

/* The root is cut off for so long that others may take it for dead without its knowledge: the group fails everywhere,
 * or goes on everywhere. */
SIM_SEED_TEST(8 * seeds, begin_few_links(seed), the_root_is_cut_off)
{
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
}

static bool others_are_told(struct sim *sim, void *context)
{
    const struct holes_going *g = context;

    return sim_programs_done(g->programs) + sim_programs_failed(g->programs) >= g->nodes - 1;
}

/* Its node may just have told the root of the link, and wait for the root's answer. */
HOLES_TEST(8 * seeds, a_program_ends_as_a_link_goes_down)
{
    struct sim_call call[CALLS_MOST];
    struct holes_going holes_going = {begin_calls(sim, call, seed, 20 * MILLISECONDS, false),
                                      sim_torus(sim)->nodes};
    const uint32_t victim = group_any(sim, holes_going.nodes);

    holes_change(sim, d, false);
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
}

static bool survivors_are_told(struct sim *sim, void *context)
{
    const struct sim_programs *programs = context;

    return sim_program_error(programs, 0)->code != ERROR_NONE &&
           sim_program_error(programs, 2)->code != ERROR_NONE;
}

/* A node has heard that its group is restarted, and is cut off when the root withdraws the restart; its neighbours
 * are restarted, and cannot tell it: it asks the root. */
SIM_SEED_TEST(20 * seeds, SIM_WHOLE(.dims = "4", .seed = seed, .latency = 20 * MICROSECONDS),
              the_last_word_goes_past_a_node)
{
    struct sim_call call[CALLS_MOST];
    struct sim_programs *programs;

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
}
