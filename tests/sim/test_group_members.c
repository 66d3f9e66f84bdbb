/* Groups of some nodes: every operation gives what a plain computation gives, whichever nodes are members and whatever
 * goes down, as long as the members can reach each other. Other nodes have no program, and pass data on. */
#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/group/call.h"
#include "daemon/torusd/planning/spec.h"
#include "proto/frame.h"
#include "tests/sim/events.h"
#include "tests/sim/group_fixture.h"
#include "tests/support/cmocka.h"

#define CALLS_MOST 24u

static const char *const tori[] = {"4x4", "3x3",    "2x3",        "5",       "4mx3",  "2x2x2",
                                   "3x5", "1x4",    "2x2",        "8m",      "3mx3m", "2x4m",
                                   "3x4", "star:6", "complete:5", "tree:2^2"};

struct some {
    bool is_member[64];
    uint32_t count;
    char text[256];
};

/* Draws at least `least` members, and at least one node that is none. */
static struct some draw_members(struct sim *sim, uint32_t least)
{
    const uint32_t nodes = sim_torus(sim)->nodes;
    struct some some = {.count = 0};
    struct error e;

    while (some.count < least || some.count == 0 || some.count == nodes) {
        const uint32_t of_four = 1 + group_any(sim, 3);
        some.count = 0;
        for (uint32_t node = 0; node < nodes; node++) {
            some.is_member[node] = group_any(sim, 4) < of_four;
            some.count += some.is_member[node];
        }
    }
    assert_int_equal(spec_members_write(some.is_member, nodes, some.text, sizeof some.text, &e), 0);
    return some;
}

static void draw_calls(struct sim *sim, const struct some *some, struct sim_call *call)
{
    for (uint32_t i = 0; i < CALLS_MOST; i++) {
        call[i] = sim_any_call(sim_chance(sim), sim_torus(sim));
        call[i].root %= some->count;
        if (some->count > 1 && group_any(sim, 4) == 0)
            call[i] = (struct sim_call){
                .operation = SIM_MESSAGES, .size = group_any(sim, 60000), .root = call[i].root};
    }
}

static struct sim_programs *start(struct sim *sim, const char *name, const struct some *some,
                                  const struct sim_call *call, uint64_t seed)
{
    const struct sim_programs_setup setup = {.name = name,
                                             .call = call,
                                             .calls = CALLS_MOST,
                                             .seed = seed,
                                             .depth = 1 + (uint32_t)(seed % 3),
                                             .pause = 3 * MILLISECONDS,
                                             .members = some->text};

    return sim_programs_new(sim, &setup);
}

static void must_succeed(struct sim *sim, struct sim_programs *programs, const struct some *some)
{
    if (!sim_programs_run(programs, 600 * SECONDS))
        sim_violated(sim, "ends", "the programs of %s have not ended", some->text);
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_program_error(programs, rank)->code != ERROR_NONE)
            sim_violated(sim, "calls", "node %u of %s: %s", rank, some->text,
                         sim_program_error(programs, rank)->text);
    assert_int_equal(sim_programs_done(programs), some->count);
}

SEED_TEST(48, members_call_every_operation)
{
    struct sim *sim = group_sim(tori[seed % (sizeof tori / sizeof tori[0])], seed);
    const struct some some = draw_members(sim, 1);
    struct sim_call call[CALLS_MOST];

    draw_calls(sim, &some, call);
    struct sim_programs *programs = start(sim, "some", &some, call, seed);
    must_succeed(sim, programs, &some);
    sim_programs_free(programs);
    sim_free(sim);
}

SEED_TEST(8, members_have_several_groups_at_the_same_time)
{
    static const char *const names[] = {"a", "b", "c", "all"};
    struct sim *sim = group_sim(tori[seed % (sizeof tori / sizeof tori[0])], seed);
    struct some some[4];
    struct sim_call call[4][CALLS_MOST];
    struct sim_programs *programs[4];

    for (unsigned i = 0; i < 4; i++) {
        some[i] = draw_members(sim, 1);
        if (i == 3)
            some[i] = (struct some){.count = sim_torus(sim)->nodes};
        draw_calls(sim, &some[i], call[i]);
        programs[i] = start(sim, names[i], &some[i], call[i], seed + i);
    }
    for (unsigned i = 0; i < 4; i++)
        must_succeed(sim, programs[i], &some[i]);
    for (unsigned i = 0; i < 4; i++)
        sim_programs_free(programs[i]);
    sim_free(sim);
}

/* Two groups of one name that have no node in common. */
SEED_TEST(4, members_of_two_groups_may_use_one_name)
{
    struct sim *sim = group_sim("4x4", seed);
    const struct some left = {.count = 8, .text = "0-1,4-5,8-9,12-13"};
    const struct some right = {.count = 8, .text = "2-3,6-7,10-11,14-15"};
    struct sim_call call[2][CALLS_MOST];

    draw_calls(sim, &left, call[0]);
    draw_calls(sim, &right, call[1]);
    struct sim_programs *a = start(sim, "g", &left, call[0], seed);
    struct sim_programs *b = start(sim, "g", &right, call[1], seed + 1);
    must_succeed(sim, a, &left);
    must_succeed(sim, b, &right);
    sim_programs_free(a);
    sim_programs_free(b);
    sim_free(sim);
}

/* All data crosses few nodes that are no members: their memory suffices, or the group would fail. */
SEED_TEST(3, members_send_much_over_few_nodes)
{
    static const struct {
        const char *dims;
        struct some some;
    } crowded[] = {{"star:6", {.count = 5, .text = "1-5"}},
                   {"5m", {.count = 4, .text = "0-1,3-4"}},
                   {"3x3", {.count = 5, .text = "0,2,4,6,8"}}};
    const unsigned which = (unsigned)(seed % 3);
    const struct some *some = &crowded[which].some;
    struct sim *sim = group_sim(crowded[which].dims, seed);
    struct sim_call call[CALLS_MOST];

    for (uint32_t i = 0; i < CALLS_MOST; i++) {
        call[i] = sim_any_call(sim_chance(sim), sim_torus(sim));
        call[i].root %= some->count;
        const bool counts = call[i].operation == GROUP_REDUCE ||
                            call[i].operation == GROUP_ALLREDUCE ||
                            call[i].operation == GROUP_REDUCE_SCATTER;
        call[i].size = (i % 3 == 0 ? 1000000u : 60000u) / (counts ? 4 : 1);
    }
    struct sim_programs *programs = start(sim, "some", some, call, seed);
    must_succeed(sim, programs, some);
    sim_programs_free(programs);
    sim_free(sim);
}

/* --- what goes down --- */

/* Whether the members reach each other without these links and nodes. */
static bool are_connected(const struct damage *d, const struct some *some)
{
    const uint32_t nodes = d->torus.nodes;
    bool seen[64] = {false};
    uint32_t order[64], known = 0, reached = 0;

    while (!some->is_member[known])
        known++;
    order[0] = known;
    seen[known] = true;
    known = 1;
    for (uint32_t i = 0; i < known; i++) {
        reached += some->is_member[order[i]];
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            if (!damage_has_link(d, order[i], port))
                continue;
            const uint32_t there = torus_neighbour(&d->torus, order[i], port);
            if (there < nodes && !seen[there])
                order[known++] = there;
            seen[there] = true;
        }
    }
    return reached == some->count;
}

/* Cuts some links, but never so that members cannot reach each other. */
static void cut_some(struct sim *sim, struct damage *d, const struct some *some, unsigned tries)
{
    const struct torus *t = sim_torus(sim);

    for (unsigned i = 0; i < tries; i++) {
        const uint32_t rank = group_any(sim, t->nodes);
        const unsigned port = group_any(sim, torus_ports(t));
        struct damage after;
        if (!damage_has_link(d, rank, port))
            continue;
        assert_int_equal(damage_copy(&after, d, NULL), 0);
        damage_add_link(&after, rank, port);
        if (are_connected(&after, some)) {
            sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
            damage_add_link(d, rank, port);
        }
        damage_free(&after);
    }
}

/* Links go down before the group is opened, and while it makes calls. */
SEED_TEST(20, members_continue_without_links)
{
    struct sim *sim = group_sim(tori[seed % (sizeof tori / sizeof tori[0])], seed);
    const struct some some = draw_members(sim, 2);
    struct sim_call call[CALLS_MOST];
    struct damage d;

    assert_int_equal(damage_init(&d, sim_torus(sim), NULL), 0);
    draw_calls(sim, &some, call);
    if (seed % 2 == 0) {
        cut_some(sim, &d, &some, 4);
        sim_pass(sim, 3 * SECONDS);
    }
    struct sim_programs *programs = start(sim, "some", &some, call, seed);
    for (unsigned i = 0; i < 3; i++) {
        sim_pass(sim, (1 + group_any(sim, 30)) * MILLISECONDS);
        cut_some(sim, &d, &some, 1);
    }
    must_succeed(sim, programs, &some);
    sim_programs_free(programs);
    damage_free(&d);
    sim_free(sim);
}

/* Other nodes die, and some come up again, while the members can reach each other. */
SEED_TEST(24, members_continue_without_other_nodes)
{
    struct sim *sim = group_sim(tori[seed % (sizeof tori / sizeof tori[0])], seed);
    const struct torus *t = sim_torus(sim);
    const struct some some = draw_members(sim, 2);
    struct sim_call call[CALLS_MOST];
    struct damage d;

    assert_int_equal(damage_init(&d, t, NULL), 0);
    draw_calls(sim, &some, call);
    struct sim_programs *programs = start(sim, "some", &some, call, seed);
    for (unsigned i = 0; i < 3; i++) {
        const uint32_t rank = group_any(sim, t->nodes);
        struct damage after;
        sim_pass(sim, (1 + group_any(sim, 30)) * MILLISECONDS);
        assert_int_equal(damage_copy(&after, &d, NULL), 0);
        damage_add_node(&after, rank);
        if (!some.is_member[rank] && !d.gone[rank] && are_connected(&after, &some)) {
            sim_kill(sim, rank, SIM_CRASH);
            damage_add_node(&d, rank);
            if (seed % 2 == 0) {
                sim_pass(sim, group_any(sim, 15000) * MILLISECONDS);
                sim_restart(sim, rank);
            }
        }
        damage_free(&after);
    }
    must_succeed(sim, programs, &some);
    sim_programs_free(programs);
    damage_free(&d);
    sim_free(sim);
}

/* --- what fails the group --- */

/* All members are told the same error within `most`. */
static void must_fail(struct sim *sim, struct sim_programs *programs, const struct some *some,
                      enum error_code code, const char *words)
{
    uint32_t alive = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        alive += some->is_member[rank] && sim_alive(sim, rank);
    group_check_failed(sim, programs, alive, 60 * SECONDS, code, words);
}

SEED_TEST(12, members_fail_with_a_member)
{
    struct sim *sim = group_sim("4x4", seed);
    const struct some some = draw_members(sim, 3);
    struct sim_call call[CALLS_MOST];
    uint32_t dying = group_any(sim, 16);
    char words[40];

    while (!some.is_member[dying])
        dying = (dying + 1) % 16;
    draw_calls(sim, &some, call);
    const struct sim_programs_setup setup = {.name = "some",
                                             .call = call,
                                             .calls = CALLS_MOST,
                                             .seed = seed,
                                             .depth = 1,
                                             .pause = 3 * MILLISECONDS,
                                             .members = some.text,
                                             .stay = true};
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    sim_pass(sim, 30 * MILLISECONDS);
    sim_kill(sim, dying, SIM_CRASH);
    (void)snprintf(words, sizeof words, "node %u", dying);
    must_fail(sim, programs, &some, ERROR_LINK, words);
    sim_programs_free(programs);
    sim_free(sim);
}

/* --- in the middle of each operation --- */

#define MANY_CALLS 10u

enum fault { MEMBER_DIES, RELAY_DIES, CABLE_IS_CUT, LINK_IS_SLOW, FAULTS };

/* Every second node of 4x4: no two members are neighbours, and every path crosses a node that is none. */
static const struct some alternate = {.is_member = {[0] = true,
                                                    [2] = true,
                                                    [5] = true,
                                                    [7] = true,
                                                    [8] = true,
                                                    [10] = true,
                                                    [13] = true,
                                                    [15] = true},
                                      .count = 8,
                                      .text = "0,2,5,7-8,10,13,15"};

static struct sim_programs *start_many(struct sim *sim, const struct sim_call *call, bool stay,
                                       uint64_t seed)
{
    const struct sim_programs_setup setup = {.name = "some",
                                             .call = call,
                                             .calls = MANY_CALLS,
                                             .seed = seed,
                                             .depth = 1,
                                             .members = alternate.text,
                                             .stay = stay};

    return sim_programs_new(sim, &setup);
}

static bool has_completed(const struct sim_programs *programs, uint32_t calls)
{
    bool all = true;

    for (uint32_t rank = 0; rank < 16; rank++) {
        assert_string_equal(sim_program_error(programs, rank)->text, "");
        all = all && (!alternate.is_member[rank] || sim_program_completed(programs, rank) >= calls);
    }
    return all;
}

/* Waits until all members have made two calls, and then for up to as long as the second one took. */
static void await_the_middle(struct sim *sim, const struct sim_programs *programs)
{
    uint64_t first = sim_now(sim);

    for (uint32_t calls = 1; calls <= 2; calls++) {
        if (calls == 2)
            first = sim_now(sim);
        while (!has_completed(programs, calls))
            sim_pass(sim, 20 * MICROSECONDS);
    }
    sim_pass(sim,
             group_any(sim, (uint32_t)((sim_now(sim) - first) / MICROSECONDS) + 1) * MICROSECONDS);
    assert_false(has_completed(programs, MANY_CALLS));
}

static void do_fault(struct sim *sim, enum fault fault, uint32_t who, unsigned port)
{
    if (fault == CABLE_IS_CUT)
        sim_set_wire(sim, who, port, SIM_WIRE_CUT);
    else if (fault == LINK_IS_SLOW)
        sim_set_rate(sim, who, port, 2500000);
    else
        sim_kill(sim, who, SIM_CRASH);
}

static void check_operation(enum group_operation operation, enum fault fault, uint64_t seed)
{
    struct sim *sim = group_sim("4x4", seed);
    const uint32_t many = operation == GROUP_BARRIER ? 0 : seed % 2 == 0 ? 40000 : 3000;
    struct sim_call call[MANY_CALLS];
    uint32_t who = group_any(sim, 16);
    char words[40];

    for (uint32_t i = 0; i < MANY_CALLS; i++)
        call[i] = (struct sim_call){.operation = operation,
                                    .size = many,
                                    .root = group_any(sim, alternate.count),
                                    .type = REDUCTION_FLOAT32,
                                    .operator= REDUCTION_AVG };
    while (fault < CABLE_IS_CUT && alternate.is_member[who] != (fault == MEMBER_DIES))
        who = (who + 1) % 16;
    struct sim_programs *programs = start_many(sim, call, fault == MEMBER_DIES, seed);
    await_the_middle(sim, programs);
    do_fault(sim, fault, who, group_any(sim, 4));
    if (fault == MEMBER_DIES) {
        (void)snprintf(words, sizeof words, "node %u", who);
        must_fail(sim, programs, &alternate, ERROR_LINK, words);
    } else {
        must_succeed(sim, programs, &alternate);
    }
    sim_programs_free(programs);
    sim_free(sim);
}

/* A member dies, a node dies that only passes data on, a cable is cut, or a link becomes slow, in the middle of each
 * operation. */
SEED_TEST(8, members_meet_faults_in_every_operation)
{
    for (uint32_t operation = 1; operation < GROUP_OPERATIONS; operation++)
        if (operation != GROUP_PART && group_operation_exists(operation) &&
            (SIM_SHARE == 1 || (operation + seed) % 8 == 0))
            check_operation((enum group_operation)operation, (enum fault)(seed / 2 % FAULTS), seed);
}

/* Members 0 and 2 of a line have only node 1 between them. Each says what it knows. */
SIM_SEED_TEST(4, group_sim("4m", seed), members_fail_when_nothing_connects_them)
{
    const struct some some = {.is_member = {true, false, true, false}, .count = 2, .text = "0,2"};
    struct sim_call call[CALLS_MOST];
    struct sim_programs *programs;
    struct group_awaited a;

    draw_calls(sim, &some, call);
    programs = start(sim, "some", &some, call, seed);
    sim_pass(sim, 10 * MILLISECONDS);
    sim_kill(sim, 1, SIM_CRASH);
    a = (struct group_awaited){programs, 2};
    if (!sim_run(sim, 60 * SECONDS, group_have_failed, &a))
        sim_violated(sim, "failure", "the programs have not been told");
    for (uint32_t rank = 0; rank < 4; rank += 2)
        assert_int_equal(sim_program_error(programs, rank)->code, ERROR_LINK);
    assert_contains(sim_program_error(programs, 0)->text,
                    "no path over links that are up leads to node 2");
    sim_programs_free(programs);
}

/* Two members give different lists; each node that waits for the other is told, with both lists. */
SIM_SEED_TEST(8, group_sim("4x4", seed), members_must_give_the_same_list)
{
    static const char *const lists[16] = {[0] = "0,5", [5] = "0,5-6"};
    const struct sim_programs_setup setup = {.name = "g",
                                             .seed = seed,
                                             .depth = 1,
                                             .pause = 20 * MILLISECONDS,
                                             .members = "0,5",
                                             .lists = lists};
    const struct some some = {.is_member = {[0] = true, [5] = true}, .count = 2, .text = "0,5"};
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    struct group_awaited a = {programs, some.count};

    if (!sim_run(sim, 10 * SECONDS, group_have_failed, &a))
        sim_violated(sim, "lists", "the programs have not been told");
    for (uint32_t rank = 0; rank < 16; rank += 5) {
        if (!some.is_member[rank])
            continue;
        const struct error *e = sim_program_error(programs, rank);
        assert_int_equal(e->code, ERROR_USAGE);
        assert_contains(e->text, "node 5 opens group \"g\" of 0,5-6, node 0 of 0,5");
    }
    sim_programs_free(programs);
}

/* A program makes another call than the others, which are told who. */
SIM_SEED_TEST(8, group_sim("4x4", seed), members_that_call_differently_are_named)
{
    const struct some some = {
        .is_member = {[0] = true, [5] = true, [10] = true}, .count = 3, .text = "0,5,10"};
    const struct sim_call mistake = {.operation = GROUP_ALLTOALL, .size = 8};
    struct sim_call call[CALLS_MOST];

    for (uint32_t i = 0; i < CALLS_MOST; i++)
        call[i] = (struct sim_call){.operation = GROUP_BROADCAST, .size = 100, .root = 1};
    struct sim_programs *programs = start(sim, "some", &some, call, seed);
    sim_pass(sim, 5 * MILLISECONDS);
    sim_program_mistake(programs, 10, &mistake);
    must_fail(sim, programs, &some, ERROR_USAGE, "alltoall");
    sim_programs_free(programs);
}

/* --- opening --- */

SIM_SEED_TEST(1, group_sim("2x2", seed), members_without_this_node_are_refused)
{
    static const struct {
        const char *members, *words;
    } refused[] = {{"1,3", "node 0 is not one of the members, which are 1,3"},
                   {"0,4", "is not a list of members"},
                   {"0-0", "is not a list of members"},
                   {"0,1", "is not a list of members"},
                   {"1-2,0", "is not a list of members"},
                   {"00", "is not a list of members"},
                   {"0,", "is not a list of members"},
                   {"0-3", "not all"}};
    const struct group_client client = {0};
    struct error e;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const struct group_options options = {.name = "g", .members = refused[i].members};
        assert_null(group_open(sim_groups(sim, 0), &options, &client, &e));
        assert_int_equal(e.code, ERROR_USAGE);
        assert_contains(e.text, refused[i].words);
    }
}

/* While one node, though no member, has an older release, no such group can be opened. */
SIM_SEED_TEST(1, group_sim("2x3", seed), members_need_their_minor_version)
{
    const struct group_options options = {.name = "g", .members = "0,4"};
    const struct group_client client = {0};
    struct error e;

    sim_kill(sim, 2, SIM_CRASH);
    sim_set_minors_back(sim, 2, PROTOCOL_MINOR - MEMBERS_MINOR + 1);
    sim_restart(sim, 2);
    sim_pass(sim, 10 * SECONDS);
    assert_null(group_open(sim_groups(sim, 0), &options, &client, &e));
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_contains(e.text, "needs version 14.7");
}

/* A late call waits for members only. */
SIM_SEED_TEST(4, group_sim("3x3", seed), members_are_named_when_they_are_late)
{
    const struct some some = {
        .is_member = {[0] = true, [4] = true, [8] = true}, .count = 3, .text = "0,4,8"};
    struct sim_call call[CALLS_MOST];
    const char *whom;
    uint32_t told = 0;

    for (uint32_t i = 0; i < CALLS_MOST; i++)
        call[i] = (struct sim_call){.operation = GROUP_BARRIER, .late = 1 * SECONDS};
    struct sim_programs *programs = start(sim, "some", &some, call, seed);
    sim_pass(sim, 10 * MILLISECONDS);
    sim_program_stop(programs, 4);
    sim_pass(sim, 10 * SECONDS);
    for (uint32_t rank = 0; rank < 9; rank++)
        if (sim_program_late(programs, rank, &whom) > 0) {
            assert_string_equal(whom, "node 4 has not called it");
            told++;
        }
    assert_int_equal(told, 1);
    sim_program_go_on(programs, 4);
    must_succeed(sim, programs, &some);
    sim_programs_free(programs);
}
