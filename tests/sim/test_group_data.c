/* Members whose data has different types or shapes: the group fails, with the same words for all of them. */
#include "daemon/torusd/group/call.h"
#include "proto/frame.h"
#include "tests/sim/events.h"
#include "tests/sim/group_fixture.h"
#include "tests/sim/internal.h"
#include "tests/sim/program_data.h"
#include "tests/sim/programs.h"
#include "tests/support/cmocka.h"

SEEDS(SIM_SHARE > 1 ? 12 : 48);

static const char *const tori[] = {"1x2", "2x2", "3x5", "3mx4", "7", "2x3x2", "5m"};
enum { TORI = sizeof tori / sizeof tori[0] };

static const struct data_kind floats = {.type = REDUCTION_FLOAT64, .shape = 77};

#define SUMS .type = REDUCTION_INT64, .operator= REDUCTION_SUM
static const struct sim_call typed[] = {
    {.operation = GROUP_ALLTOALL, .size = 96},
    {.operation = GROUP_ALLTOALL, .size = 40000},
    {.operation = GROUP_ALLTOALLV, .size = 500},
    {.operation = GROUP_ALLGATHER, .size = 24},
    {.operation = GROUP_ALLGATHER, .size = 60000},
    {.operation = GROUP_ALLGATHERV, .size = 300},
    {.operation = GROUP_BROADCAST, .size = 3000, .root = 1},
    {.operation = GROUP_BROADCAST, .size = 900000},
    {.operation = GROUP_ALLREDUCE, .size = 10, SUMS},
    {.operation = GROUP_ALLREDUCE, .size = 90000, SUMS},
    {.operation = GROUP_REDUCE, .size = 10, .root = 1, SUMS},
    {.operation = GROUP_REDUCE_SCATTER, .size = 40, SUMS},
    {.operation = GROUP_GATHER, .size = 16, .root = 1},
    {.operation = GROUP_GATHER, .size = 60000, .root = 1},
    {.operation = GROUP_SCATTER, .size = 16, .root = 1},
    {.operation = GROUP_SCATTER, .size = 60000, .root = 1},
};
enum { CALLS = sizeof typed / sizeof typed[0] };

/* A group whose programs make one call, with data of this kind, unless the kind is not known. */
struct scene {
    struct sim *sim;
    struct sim_call call;
    uint32_t nodes, other; /* the member with other data */
    struct sim_programs *programs;
};

static struct scene begin(uint64_t seed)
{
    struct scene s = {.sim = group_sim(tori[seed % TORI], seed), .call = typed[seed % CALLS]};

    s.nodes = sim_torus(s.sim)->nodes;
    s.other = (uint32_t)(seed * 5 % s.nodes);
    s.call.data = floats;
    return s;
}

/* One program makes the same call with data of another kind. */
static void run(struct scene *s, uint64_t seed, const struct data_kind *others, uint64_t untold)
{
    const struct sim_programs_setup setup = {.name = "g",
                                             .call = &s->call,
                                             .calls = 1,
                                             .seed = seed,
                                             .depth = 1,
                                             .pause = 2 * MILLISECONDS,
                                             .stay = true,
                                             .untold = untold};
    struct sim_call other = s->call;

    other.data = *others;
    s->programs = sim_programs_new(s->sim, &setup);
    sim_program_mistake(s->programs, s->other, &other);
}

static void end(struct scene *s, uint64_t seed)
{
    sim_programs_free(s->programs);
    group_check_reopens(s->sim, seed);
    sim_free(s->sim);
}

static void check_completes(struct scene *s)
{
    if (!sim_run(s->sim, 60 * SECONDS, group_all_completed, s->programs))
        sim_violated(s->sim, "data", "only %u of %u programs have made their call",
                     sim_programs_done(s->programs), s->nodes);
}

SEED_TEST(seeds, another_type_fails_it_for_all)
{
    struct scene s = begin(seed);
    char first[80], second[80];
    run(&s, seed, &(struct data_kind){.type = REDUCTION_INT64, .shape = 77}, 0);
    group_check_failed(s.sim, s.programs, s.nodes, 2 * SECONDS, ERROR_USAGE, "int64");
    const char *text = sim_program_error(s.programs, 0)->text;
    (void)snprintf(first, sizeof first, "member %u calls %s with elements of type int64, ", s.other,
                   group_operation_name(s.call.operation));
    (void)snprintf(second, sizeof second, ", member %u with int64", s.other);
    assert_true(strstr(text, first) != NULL || strstr(text, second) != NULL);
    end(&s, seed);
}

SEED_TEST(seeds, another_shape_fails_it_for_all)
{
    struct scene s = begin(seed);
    run(&s, seed, &(struct data_kind){.type = REDUCTION_FLOAT64, .shape = 78}, 0);
    group_check_failed(s.sim, s.programs, s.nodes, 2 * SECONDS, ERROR_USAGE,
                       "with arrays of different shapes");
    end(&s, seed);
}

/* Two members tell what data they have, and all the members between them do not. */
SEED_TEST(seeds, what_is_known_reaches_all)
{
    struct scene s = begin(seed);
    uint32_t told = (s.other + 1 + (uint32_t)(seed / 7 % (s.nodes - 1))) % s.nodes;
    char words[80];
    if (s.call.operation == GROUP_BROADCAST || s.call.operation == GROUP_SCATTER)
        s.call.root = seed % 2 == 0 ? told : s.other;
    if (s.call.operation == GROUP_REDUCE || s.call.operation == GROUP_GATHER)
        s.call.root = told;
    run(&s, seed, &(struct data_kind){.type = DATA_TYPE_OTHER + 5, .shape = 77},
        ~(UINT64_C(1) << told | UINT64_C(1) << s.other));
    (void)snprintf(words, sizeof words, "elements of type %s, member %u with %s",
                   told < s.other ? "float64" : "another type", told < s.other ? s.other : told,
                   told < s.other ? "another type" : "float64");
    group_check_failed(s.sim, s.programs, s.nodes, 2 * SECONDS, ERROR_USAGE, words);
    end(&s, seed);
}

/* What is not known goes with anything. */
SEED_TEST(seeds, unknown_data_goes_with_any)
{
    struct scene s = begin(seed);
    const struct data_kind others[] = {{0, 0}, {floats.type, 0}, {0, floats.shape}, floats};
    run(&s, seed, &others[seed / 3 % 4], seed * UINT64_C(0x9e3779b97f4a7c15));
    check_completes(&s);
    end(&s, seed);
}

static void restart(struct sim *sim, uint32_t rank, uint32_t minors_back)
{
    sim_kill(sim, rank, SIM_CRASH);
    sim_set_minors_back(sim, rank, minors_back);
    sim_restart(sim, rank);
    sim_run_until_whole(sim);
}

static bool all_know(struct sim *sim, void *least)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (router_least_minor(sim_router(sim, rank)) != *(uint32_t *)least)
            return false;
    return true;
}

/* Only neighbouring versions work together, so all nodes become older by one version after another. */
static void go_back(struct scene *s, uint32_t minors_back)
{
    for (uint32_t back = 1; back <= minors_back; back++)
        for (uint32_t rank = 0; rank < s->nodes; rank++)
            restart(s->sim, rank, back);
}

/* With a node of the previous release, data is not compared at all; as soon as the last node has the new release, it
 * is. */
SEED_TEST(seeds, data_is_compared_from_the_last_node_on)
{
    struct scene s = begin(seed);
    const struct data_kind other = {.type = REDUCTION_INT64, .shape = 77};
    const uint32_t old = (uint32_t)(seed * 3 % s.nodes);
    uint32_t least = DATA_KIND_MINOR - 1;
    if (group_operation_minor(s.call.operation) > 0)
        s.call.operation = GROUP_ALLGATHER; /* older nodes do not know it */
    go_back(&s, PROTOCOL_MINOR - DATA_KIND_MINOR);
    restart(s.sim, old, PROTOCOL_MINOR - DATA_KIND_MINOR + 1);
    assert_true(sim_run(s.sim, 60 * SECONDS, all_know, &least));
    run(&s, seed, &other, 0);
    check_completes(&s);
    sim_programs_free(s.programs);
    restart(s.sim, old, PROTOCOL_MINOR - DATA_KIND_MINOR);
    least = DATA_KIND_MINOR;
    assert_true(sim_run(s.sim, 60 * SECONDS, all_know, &least));
    run(&s, seed, &other, 0);
    group_check_failed(s.sim, s.programs, s.nodes, 2 * SECONDS, ERROR_USAGE, "int64");
    end(&s, seed);
}

/* A node that does not know an operation: the call is refused, and the group goes on without it. */
SEED_TEST(seeds, new_operations_wait_for_the_last_node)
{
    static const struct sim_call barrier = {.operation = GROUP_BARRIER};
    const enum group_operation operation = seed % 2 == 0 ? GROUP_GATHER : GROUP_SCATTER;
    const uint32_t minor = group_operation_minor(operation);
    struct scene s = begin(seed);
    const struct group_call call = {.operation = operation,
                                    .part = sim_all_dimensions(sim_torus(s.sim))};
    struct error e;
    uint32_t least = minor - 1;

    go_back(&s, PROTOCOL_MINOR - minor);
    restart(s.sim, s.other, PROTOCOL_MINOR - minor + 1);
    assert_true(sim_run(s.sim, 60 * SECONDS, all_know, &least));
    const struct sim_programs_setup setup = {
        .name = "g", .call = &barrier, .calls = 1, .seed = seed, .depth = 1, .stay = true};
    s.programs = sim_programs_new(s.sim, &setup);
    assert_true(sim_run(s.sim, 60 * SECONDS, group_all_completed, s.programs));
    for (uint32_t rank = 0; rank < s.nodes; rank++)
        assert_fails(group_call(s.programs->program[rank].group, &call, 1, &e), e, ERROR_REFUSED,
                     "");
    end(&s, seed);
}

/* Calls of groups that take long: which members they wait for, and which program is told that. */

/* All late_tori except the first have rows. */
static const char *const late_tori[] = {"8", "2x2", "3x5", "4x4", "3mx4", "3x2", "2x3x2"};

#define LATE_TORI (sizeof late_tori / sizeof late_tori[0])

/* `rate`: bytes per second. */
static struct sim *begin_with(const char *dims, uint64_t seed, uint64_t rate)
{
    return SIM_WHOLE(.dims = dims, .seed = seed, .latency = 50 * MICROSECONDS, .rate = rate,
                     .shared = seed % 2 == 1, .chop = true);
}

static struct sim *begin_late(const char *dims, uint64_t seed)
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

static void end_late(struct watched *w, struct sim *sim)
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
        struct sim *sim = begin_late(late_tori[seed % LATE_TORI], seed);
        struct watched w;

        start(&w, sim, seed, &call, 1);
        sim_program_stop(w.programs, w.who);
        assert_true(sim_run(sim, 5 * SECONDS, others_have_called, &w));
        sim_pass(sim, 2 * SECONDS - (20 + seed % 10 * 20) * MICROSECONDS);
        end_late(&w, sim);
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
            assert_contains(sim_program_error(w.programs, 0)->text, "all have called it");
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
SEED_TEST(seeds, a_program_is_told_whom_its_call_waits_for)
{
    const struct sim_call call = {.operation = seed % 4 < 2 ? GROUP_BARRIER : GROUP_ALLTOALL,
                                  .size = seed % 8 == 7 ? 70000 : 70,
                                  .late = 2 * SECONDS,
                                  .timeout = seed % 3 == 0 ? 120 * SECONDS : 0};
    struct sim *sim = begin_late(late_tori[seed % LATE_TORI], seed);
    struct watched w;

    start(&w, sim, seed, &call, 1);
    sim_program_stop(w.programs, w.who);
    sim_pass(sim, 60 * SECONDS);
    check_told(sim, &w, false);
    end_late(&w, sim);
}

/* A call of a row waits for its members: one of them is told. The other rows do not wait. */
SEED_TEST(seeds, a_member_is_told_whom_a_call_of_its_row_waits_for)
{
    struct sim *sim = begin_late(late_tori[1 + seed % (LATE_TORI - 1)], seed);
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
    end_late(&w, sim);
}

/* A node that does not answer does not delay the census: its result is that not all nodes answer. */
TEST(a_node_that_stands_still_is_not_waited_for)
{
    const struct sim_call call = {.operation = GROUP_BARRIER, .late = 2 * SECONDS};

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct sim *sim = begin_late(late_tori[seed % LATE_TORI], seed);
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
        end_late(&w, sim);
    }
}
