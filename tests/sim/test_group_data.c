/* Members whose data has different types or shapes: the group fails, with the same words for all of them. */
#include "daemon/torusd/group/call.h"
#include "proto/frame.h"
#include "tests/sim/events.h"
#include "tests/sim/group_fixture.h"
#include "tests/sim/internal.h"
#include "tests/sim/program_data.h"
#include "tests/support/cmocka.h"

SEEDS(SIM_SHARE > 1 ? 12 : 48);

static const char *const tori[] = {"1x2", "2x2", "3x5", "3mx4", "7", "2x3x2", "5m"};
enum { TORI = sizeof tori / sizeof tori[0] };

static const struct data_kind floats = {.type = REDUCTION_FLOAT64, .shape = 77};

#define SUMS .type = REDUCTION_INT64, .operator= REDUCTION_SUM
static const struct sim_call calls[] = {
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
};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* A group whose programs make one call, with data of this kind, unless the kind is not known. */
struct scene {
    struct sim *sim;
    struct sim_call call;
    uint32_t nodes, other; /* the member with other data */
    struct sim_programs *programs;
};

static struct scene begin(uint64_t seed)
{
    struct scene s = {.sim = group_sim(tori[seed % TORI], seed), .call = calls[seed % CALLS]};

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

TEST(another_type_fails_it_for_all)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct scene s = begin(seed);
        char first[80], second[80];
        run(&s, seed, &(struct data_kind){.type = REDUCTION_INT64, .shape = 77}, 0);
        group_check_failed(s.sim, s.programs, s.nodes, 2 * SECONDS, ERROR_USAGE, "int64");
        const char *text = sim_program_error(s.programs, 0)->text;
        (void)snprintf(first, sizeof first, "member %u calls %s with elements of type int64, ",
                       s.other, group_operation_name(s.call.operation));
        (void)snprintf(second, sizeof second, ", member %u with int64", s.other);
        assert_true(strstr(text, first) != NULL || strstr(text, second) != NULL);
        end(&s, seed);
    }
}

TEST(another_shape_fails_it_for_all)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct scene s = begin(seed);
        run(&s, seed, &(struct data_kind){.type = REDUCTION_FLOAT64, .shape = 78}, 0);
        group_check_failed(s.sim, s.programs, s.nodes, 2 * SECONDS, ERROR_USAGE,
                           "with arrays of different shapes");
        end(&s, seed);
    }
}

/* Two members tell what data they have, and all the members between them do not. */
TEST(what_is_known_reaches_all)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct scene s = begin(seed);
        uint32_t told = (s.other + 1 + (uint32_t)(seed / 7 % (s.nodes - 1))) % s.nodes;
        char words[80];
        if (s.call.operation == GROUP_BROADCAST)
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
}

/* What is not known goes with anything. */
TEST(unknown_data_goes_with_any)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct scene s = begin(seed);
        const struct data_kind others[] = {{0, 0}, {floats.type, 0}, {0, floats.shape}, floats};
        run(&s, seed, &others[seed / 3 % 4], seed * UINT64_C(0x9e3779b97f4a7c15));
        check_completes(&s);
        end(&s, seed);
    }
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

/* Only neighbouring versions work together, so all nodes become older by one version after the other. */
static void go_back(struct scene *s, uint32_t minors_back)
{
    for (uint32_t back = 1; back <= minors_back; back++)
        for (uint32_t rank = 0; rank < s->nodes; rank++)
            restart(s->sim, rank, back);
}

/* With a node of the release before, data is not compared at all; with the last node of the new one, it is. */
TEST(data_is_compared_from_the_last_node_on)
{
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct scene s = begin(seed);
        const struct data_kind other = {.type = REDUCTION_INT64, .shape = 77};
        const uint32_t old = (uint32_t)(seed * 3 % s.nodes);
        uint32_t least = DATA_KIND_MINOR - 1;
        if (s.call.operation == GROUP_GATHER)
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
}

/* A node that does not know gather: the call is refused, and the group goes on without it. */
TEST(gather_waits_for_the_last_node)
{
    static const struct sim_call barrier = {.operation = GROUP_BARRIER};
    const uint32_t minor = group_operation_minor(GROUP_GATHER);

    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct scene s = begin(seed);
        const struct group_call gather = {.operation = GROUP_GATHER,
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
        for (uint32_t rank = 0; rank < s.nodes; rank++) {
            assert_int_equal(group_call(s.programs->program[rank].group, &gather, 1, &e), -1);
            assert_int_equal(e.code, ERROR_REFUSED);
        }
        end(&s, seed);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_type_fails_it_for_all),
        cmocka_unit_test(another_shape_fails_it_for_all),
        cmocka_unit_test(what_is_known_reaches_all),
        cmocka_unit_test(unknown_data_goes_with_any),
        cmocka_unit_test(data_is_compared_from_the_last_node_on),
        cmocka_unit_test(gather_waits_for_the_last_node),
    };

    if (argc == 3) {
        first_seed = strtoull(argv[1], NULL, 10);
        seeds = strtoull(argv[2], NULL, 10);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
