/* Groups of programs: every operation on every kind of torus, in any order of calls and arrivals; and the effects of
 * faults. */
#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/group/state.h"
#include "proto/frame.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/group_fixture.h"
#include "tests/sim/programs.h"
#include "tests/support/cmocka.h"

#define CALLS_MOST 40u

SEEDS(4);

static const char *const tori[] = {"1",   "1x2", "2x2",   "3x5", "4x4", "3mx4",
                                   "3x2", "8",   "2x3x2", "5m",  "4x4m"};

static void run_calls(const char *dims, uint64_t seed, const struct sim_call *call, uint32_t calls,
                      uint32_t depth, uint64_t pause, bool shuffle)
{
    struct sim *sim = group_sim(dims, seed);
    const struct sim_programs_setup setup = {.name = "g",
                                             .call = call,
                                             .calls = calls,
                                             .seed = seed,
                                             .depth = depth,
                                             .pause = pause,
                                             .unchecked = seed % 4 == 3,
                                             .shuffle = shuffle,
                                             .lazy = seed % 3 == 2};
    struct sim_programs *programs = sim_programs_new(sim, &setup);

    if (!sim_programs_run(programs, 600 * SECONDS))
        sim_violated(sim, "ends", "the programs on %s have not ended", dims);
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_program_error(programs, rank)->code != ERROR_NONE)
            sim_violated(sim, "calls", "node %u: %s", rank,
                         sim_program_error(programs, rank)->text);
    assert_int_equal(sim_programs_done(programs), sim_torus(sim)->nodes);
    sim_programs_free(programs);
    assert_true(sim_run(sim, 10 * SECONDS, sim_is_quiet, NULL));
    sim_free(sim);
}

TEST(each_operation_everywhere)
{
    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++)
        for (uint32_t o = GROUP_ALLTOALL; o < GROUP_OPERATIONS; o++) {
            struct torus t;
            if (o == GROUP_PART || !group_operation_exists(o))
                continue;
            assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
            /* The last one is large. */
            const uint64_t sizes[] = {0, 1, 1000, 300000 / t.nodes + 7};
            struct sim_call call[4];
            for (unsigned k = 0; k < 4; k++)
                call[k] = (struct sim_call){.operation = (enum group_operation)o,
                                            .size = sizes[k],
                                            .root = (uint32_t)(i + k) % t.nodes,
                                            .type = REDUCTION_INT32,
                                            .operator= REDUCTION_SUM };
            run_calls(tori[i], 100 * i + o, call, 4, 1, 0, false);
        }
}

SEED_TEST(seeds, any_calls_in_any_order)
{
    struct chance c = chance_stream(seed, 5, 0);
    const char *dims = tori[chance_below(&c, sizeof tori / sizeof *tori)];
    struct sim_call call[CALLS_MOST];
    uint32_t calls = 1 + (uint32_t)chance_below(&c, CALLS_MOST);
    struct torus t;
    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    for (uint32_t i = 0; i < calls; i++)
        call[i] = sim_any_call(&c, &t);
    run_calls(dims, seed, call, calls, 1 + (uint32_t)chance_below(&c, 20),
              chance_below(&c, 3) == 0 ? 0 : chance_below(&c, 20 * MILLISECONDS), false);
}

/* Once each part has been opened, calls on it, on the whole and on other parts in turn. */
TEST(parts_have_calls_of_their_own)
{
    static const char *const group_cut[] = {"2x2", "3x5", "4x4m", "2x3x2", "1x4", "2x2x2x2"};

    for (uint64_t seed = first_seed; seed < first_seed + seeds / 2; seed++) {
        struct chance c = chance_stream(seed, 6, 0);
        const char *dims = group_cut[chance_below(&c, sizeof group_cut / sizeof *group_cut)];
        struct sim_call call[CALLS_MOST];
        uint32_t calls = 0, masks = 0;
        struct torus t;
        assert_int_equal(torus_parse(&t, dims, NULL), 0);
        for (uint32_t mask = 1; mask < (1u << t.dims) - 1 && masks < 6; mask++, masks++)
            call[calls++] = (struct sim_call){.operation = GROUP_PART, .part = mask};
        while (calls < CALLS_MOST / 2) {
            call[calls] = sim_any_call(&c, &t);
            call[calls].part = (uint32_t)chance_below(&c, masks + 1);
            call[calls].size %= 5000;
            for (uint32_t d = 0, size = 1; call[calls].part != 0 && d < t.dims; d++) {
                size *= (call[calls].part & 1u << d) != 0 ? t.size[d] : 1;
                if (d + 1 == t.dims)
                    call[calls].root %= size;
            }
            calls++;
        }
        bool shuffle = seed % 2 == 1;
        run_calls(dims, seed, call, calls, shuffle ? calls : 1 + (uint32_t)chance_below(&c, 6),
                  chance_below(&c, 5 * MILLISECONDS), shuffle);
    }
}

SIM_SEED_TEST(seeds / 4, group_sim(tori[2 + seed % 7], seed), a_late_member_costs_time_only)
{
    uint32_t nodes = sim_torus(sim)->nodes, who = (uint32_t)(seed * 3 % nodes);
    struct sim_programs *programs = group_start_steady(sim, seed);
    struct group_info info[2];
    sim_pass(sim, (5 + seed % 20) * MILLISECONDS);
    sim_program_stop(programs, who);
    sim_pass(sim, 60 * SECONDS);
    assert_int_equal(sim_programs_failed(programs), 0);
    for (uint32_t rank = 0; rank < nodes; rank++)
        if (groups_list(sim_groups(sim, rank), info, 2) == 1)
            assert_true(info[0].early <= 2u << 20);
    sim_program_go_on(programs, who);
    assert_true(sim_run(sim, 60 * SECONDS, group_all_completed, programs));
    sim_programs_free(programs);
}

/* Without memory for another group at node 0, the group waits, and opens when there is memory. */
SIM_TEST(SIM_WHOLE(.dims = "2x2", .seed = 1, .memory = UINT64_C(12) << 20), a_group_waits_for_room)
{
    assert_in_range(group_first_memory(sim_torus(sim)), 6u << 20, 12u << 20);
    static const struct sim_call call = {.operation = GROUP_BARRIER};
    struct sim_programs_setup group = {.call = &call, .calls = 1, .depth = 1, .stay = true};
    group.name = "first";
    struct sim_programs *first = sim_programs_new(sim, &group);
    assert_true(sim_run(sim, 10 * SECONDS, group_all_completed, first));
    group.name = "second";
    struct sim_programs *second = sim_programs_new(sim, &group);
    sim_pass(sim, 5 * SECONDS);
    assert_int_equal(sim_programs_done(second), 0); /* node 0 waits for memory, so all do */
    sim_programs_free(first);
    assert_true(sim_run(sim, 10 * SECONDS, group_all_completed, second));
    sim_programs_free(second);
}

struct peak {
    const struct sim_programs *programs;
    uint64_t early;
};

static bool all_completed_with_peak(struct sim *sim, void *context)
{
    struct peak *peak = context;
    struct group_info info[2];

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (groups_list(sim_groups(sim, rank), info, 2) == 1 && info[0].early > peak->early)
            peak->early = info[0].early;
    return group_all_completed(sim, (void *)peak->programs);
}

/* A member gets its schedule late: the others wait until it can receive data. */
SIM_SEED_TEST(seeds, group_sim(tori[2 + seed % 7], seed), large_data_does_not_come_early)
{
    const struct sim_call calls[] = {
        {.operation = seed % 2 == 0 ? GROUP_ALLTOALL : GROUP_ALLTOALLV, .size = 300000},
        {.operation = GROUP_ALLGATHER, .size = 300000}};
    const struct sim_programs_setup setup = {
        .name = "g", .call = calls, .calls = 2, .seed = seed, .depth = 2, .stay = true};
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    struct peak peak = {programs, 0};
    assert_true(sim_run(sim, 60 * SECONDS, all_completed_with_peak, &peak));
    assert_true(peak.early < 16384);
    sim_programs_free(programs);
}

/* The most complete calls of any program. */
static uint32_t most_completed(struct sim *sim, const struct sim_programs *programs)
{
    uint32_t most = 0;

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        uint32_t completed = sim_program_completed(programs, rank);
        most = completed > most ? completed : most;
        if (sim_program_error(programs, rank)->code != ERROR_NONE)
            sim_violated(sim, "calls", "%s", sim_program_error(programs, rank)->text);
    }
    return most;
}

/* Members may be ahead of a late member by as many calls as are eager together, and one more. `times` times the
 * bytes of each call arrive there. */
static void check_late(enum group_operation operation, const char *dims, uint32_t times,
                       unsigned number)
{
    /* Links so fast that bytes hardly count: a whole vector goes along one tree. */
    struct sim *sim =
        SIM_WHOLE(.dims = dims, .seed = number, .latency = 10000, .rate = UINT64_C(12500000000));
    const struct torus *t = sim_torus(sim);
    const struct limits limits = limits_of(t, t, false);
    const uint32_t late = t->nodes / 2;
    struct sim_call call[3 * GROUP_UNPROVEN_MOST];
    const struct sim_programs_setup setup = {
        .name = "g", .call = call, .calls = 3 * number, .depth = 3 * number, .stay = true};
    struct group_info info[2];

    for (unsigned i = 0; i < setup.calls; i++)
        call[i] = (struct sim_call){.operation = operation,
                                    .type = REDUCTION_UINT8,
                                    .operator= REDUCTION_XOR,
                                    .root = operation == GROUP_REDUCE ? late : 0,
                                    .size = (limits.eager - 8 * GROUP_UNPROVEN_MOST) / number};
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    sim_program_stop(programs, late);
    sim_pass(sim, 10 * SECONDS);
    assert_int_equal(most_completed(sim, programs), number + 1);
    assert_int_equal(groups_list(sim_groups(sim, late), info, 2), 1);
    assert_in_range(info[0].early, call[0].size * (number + 1) * times, limits.early);
    sim_program_go_on(programs, late);
    assert_true(sim_run(sim, 60 * SECONDS, group_all_completed, programs));
    sim_programs_free(programs);
    sim_free(sim);
}

/* No member waits for a receiver of a broadcast or for the root of a reduce, but the early frames there, a vector from
 * each neighbour, fit into its memory. */
TEST(a_member_late_for_rooted_calls_is_not_swamped)
{
    for (unsigned number = 1; number <= GROUP_UNPROVEN_MOST;
         number *= seeds > 4 ? 2 : GROUP_UNPROVEN_MOST) {
        check_late(GROUP_BROADCAST, "3x3x3", 1, number);
        check_late(GROUP_BROADCAST, "5m", 1, number);
        if (seeds > 4)
            check_late(GROUP_REDUCE, "3x3x3x3", 8, number);
        check_late(GROUP_REDUCE, "2x2x2", 3, number);
        check_late(GROUP_REDUCE, "4x4", 4, number);
        check_late(GROUP_REDUCE, "5m", 2, number);
    }
}

#define DEFAULT_MEMORY (UINT64_C(96) << 20) /* config.c */
#define MANY 8u /* groups that a user has with it (client/doc/programs.md) */

static const struct sim_call large_calls[] = {
    {.operation = GROUP_BARRIER},
    {.operation = GROUP_ALLTOALL, .size = 3000},
    {.operation = GROUP_ALLREDUCE,
     .type = REDUCTION_UINT32,
     .operator= REDUCTION_SUM,
     .size = 100000,
     .in_place = true},
    {.operation = GROUP_BROADCAST, .root = 3, .size = 300000},
    {.operation = GROUP_BROADCAST, .root = 3, .size = 100},
    {.operation = GROUP_ALLTOALL, .size = 20000},
    {.operation = GROUP_ALLGATHER, .size = 20000},
    {.operation = GROUP_ALLTOALLV, .size = 20000},
};
#define LARGE_CALLS (sizeof large_calls / sizeof *large_calls)

struct many {
    struct sim_programs *programs[MANY];
    unsigned count;
    unsigned most_full; /* the most groups at once that had all the memory for rounds at node 0 */
};

/* For sim_run(): whether the programs of all groups have made all their calls. */
static bool all_of_many_completed(struct sim *sim, void *context)
{
    struct many *m = context;
    unsigned full = 0;

    for (const struct group *g = sim_groups(sim, 0)->groups; g != NULL; g = g->next)
        full += g->session != NULL && g->session->part->level == 0;
    m->most_full = full > m->most_full ? full : m->most_full;
    for (unsigned i = 0; i < m->count; i++)
        if (!group_all_completed(sim, m->programs[i]))
            return false;
    return true;
}

static struct sim_programs *begin_large(struct sim *sim, uint64_t seed, const char *name)
{
    const struct sim_programs_setup setup = {.name = name,
                                             .call = large_calls,
                                             .calls = LARGE_CALLS,
                                             .seed = seed,
                                             .depth = 1 + (uint32_t)(seed % LARGE_CALLS),
                                             .stay = true,
                                             .timeout = 60 * SECONDS};

    return sim_programs_new(sim, &setup);
}

/* Groups have only what they were opened with when none of them has a large call. */
static void check_given_back(struct sim *sim, unsigned groups)
{
    const uint64_t first = group_first_memory(sim_torus(sim));
    struct group_info info[MANY];

    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        assert_int_equal(groups_list(sim_groups(sim, rank), info, MANY), groups);
        for (unsigned i = 0; i < groups; i++)
            assert_true(info[i].open && info[i].reserved == first);
        assert_int_equal(exchanges_reserved(sim_exchanges(sim, rank)), groups * first);
    }
}

/* Eight groups of all nodes make large calls at the same time, with the default memory; then one alone, with all memory that
 * it may have. Links go down meanwhile. */
SIM_SEED_TEST(seeds > 4 ? seeds / 4 : 1,
              SIM_WHOLE(.dims = "4x4", .seed = seed, .latency = 100 * MICROSECONDS,
                        .rate = 125000000, .memory = DEFAULT_MEMORY),
              many_groups_share_the_memory)
{
    struct many m = {.count = MANY};
    char name[MANY][8];

    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name[i], sizeof name[i], "g%u", i);
        m.programs[i] = begin_large(sim, seed + i, name[i]);
    }
    for (unsigned faults = 0; faults < 2; faults++) {
        sim_pass(sim, 20 * MILLISECONDS);
        (void)group_cut(sim, group_any(sim, 16), group_any(sim, 4));
    }
    assert_true(sim_run(sim, 600 * SECONDS, all_of_many_completed, &m));
    check_given_back(sim, MANY);
    sim_programs_free(m.programs[0]);
    struct many one = {.count = 1};
    one.programs[0] = begin_large(sim, seed, "again");
    assert_true(sim_run(sim, 600 * SECONDS, all_of_many_completed, &one));
    assert_int_equal(one.most_full, 1);
    check_given_back(sim, MANY);
    sim_programs_free(one.programs[0]);
    for (unsigned i = 1; i < MANY; i++)
        sim_programs_free(m.programs[i]);
}

/* With an older node, a group reserves all that it may have when it is opened, as that node does. */
SIM_TEST(SIM_WHOLE(.dims = "2x2", .seed = 1, .latency = 50 * MICROSECONDS), older_nodes_reserve_all)
{
    struct group_info info[1];

    for (uint32_t rank = 0; rank < 4; rank++) {
        sim_kill(sim, rank, SIM_CRASH);
        sim_set_minors_back(sim, rank, PROTOCOL_MINOR - GROWS_MINOR + (rank == 1));
        sim_restart(sim, rank);
    }
    sim_run_until_whole(sim);
    struct many one = {.count = 1};
    one.programs[0] = begin_large(sim, 1, "g");
    assert_true(sim_run(sim, 60 * SECONDS, all_of_many_completed, &one));
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_int_equal(groups_list(sim_groups(sim, rank), info, 1), 1);
        assert_int_equal(info[0].reserved, group_memory(sim_torus(sim)));
    }
    sim_programs_free(one.programs[0]);
}

/* Any calls, also on parts, with what a group is opened with and any part of what it may have: only smaller rounds, and calls
 * of parts that wait for all members. Links go down meanwhile. */
SEED_TEST(2 * seeds, little_memory_is_enough)
{
    static const char *const dims[] = {"2x2", "3x5", "4x4m", "2x3x2", "5"};
    struct chance c = chance_stream(seed, 7, 0);
    struct sim_call call[CALLS_MOST];
    uint32_t calls = 0, masks = 0;
    struct torus t;

    assert_int_equal(torus_parse(&t, dims[seed % 5], NULL), 0);
    const uint64_t first = group_first_memory(&t), more = group_memory(&t) - first;
    struct sim *sim = SIM_WHOLE(.dims = dims[seed % 5], .seed = seed, .latency = 50 * MICROSECONDS,
                                .rate = 125000000, .memory = first + (seed % 4) * more / 4 + 1000);
    for (uint32_t mask = 1; mask < (1u << t.dims) - 1 && masks < 6; mask++, masks++)
        call[calls++] = (struct sim_call){.operation = GROUP_PART, .part = mask};
    while (calls < CALLS_MOST) {
        const struct sim_call large = large_calls[chance_below(&c, LARGE_CALLS)];
        call[calls] = chance_below(&c, 3) == 0 ? large : sim_any_call(&c, &t);
        call[calls].part = (uint32_t)chance_below(&c, masks + 1);
        for (uint32_t d = 0, size = 1; d < t.dims; d++) {
            size *= call[calls].part == 0 || (call[calls].part & 1u << d) != 0 ? t.size[d] : 1;
            if (d + 1 == t.dims)
                call[calls].root %= size;
        }
        calls++;
    }
    const struct sim_programs_setup setup = {.name = "g",
                                             .call = call,
                                             .calls = calls,
                                             .seed = seed,
                                             .depth = 1 + (uint32_t)chance_below(&c, 6),
                                             .unchecked = seed % 4 == 3};
    struct sim_programs *programs = sim_programs_new(sim, &setup);
    if (seed % 3 == 0) {
        sim_pass(sim, chance_below(&c, 200) * MILLISECONDS);
        (void)group_cut(sim, group_any(sim, t.nodes), group_any(sim, torus_ports(&t)));
    }
    if (!sim_programs_run(programs, 600 * SECONDS))
        sim_violated(sim, "ends", "the programs have not ended");
    for (uint32_t rank = 0; rank < t.nodes; rank++)
        if (seed % 3 != 0 && sim_program_error(programs, rank)->code != ERROR_NONE)
            sim_violated(sim, "calls", "node %u: %s", rank,
                         sim_program_error(programs, rank)->text);
    sim_programs_free(programs);
    sim_free(sim);
}

/* An exchange that another node has begun leaves too little memory: the group opens when the exchange is over. */
TEST(groups_wait_for_memory)
{
    static const struct sim_call call[] = {{.operation = GROUP_BARRIER}};
    const struct spec spec =
        GENERATED(.algorithm = "direct", .block_bytes = 8000000, .barrier = "");

    for (uint64_t seed = first_seed; seed < first_seed + 3; seed++) {
        struct sim *sim = SIM_WHOLE(.dims = "2", .seed = seed, .latency = 1 * MILLISECONDS,
                                    .rate = 125000000, .memory = (8u << 20) + 65536);
        const struct sim_programs_setup setup = {.name = "g",
                                                 .call = call,
                                                 .calls = 1,
                                                 .seed = seed,
                                                 .depth = 1,
                                                 .timeout = 30 * SECONDS};
        struct sim_request *request = sim_exchange(sim, 1, &spec);
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        assert_true(sim_run_until_ended(request, 60 * SECONDS));
        assert_true(sim_programs_run(programs, 60 * SECONDS));
        for (uint32_t rank = 0; rank < 2; rank++)
            assert_int_equal(sim_program_error(programs, rank)->code, ERROR_NONE);
        assert_int_equal(sim_programs_done(programs), 2);
        sim_programs_free(programs);
        sim_free(sim);
    }
}

/* An open group leaves less memory than the share of an exchange: the exchange runs with less. */
TEST(exchanges_run_beside_groups)
{
    static const struct sim_call call = {.operation = GROUP_BARRIER};
    static const struct spec specs[] = {
        GENERATED(.algorithm = "auto", .block_bytes = 2000000, .barrier = ""),
        GENERATED(.algorithm = "direct", .mode = MODE_STEPPED, .block_bytes = 2000000,
                  .barrier = ""),
        {.algorithm = "auto", .from = "/same/700000", .to = "/out", .barrier = ""},
    };

    for (unsigned i = 0; i < sizeof specs / sizeof *specs; i++) {
        const struct sim_programs_setup setup = {
            .name = "g", .call = &call, .calls = 1, .seed = i, .depth = 1, .stay = true};
        struct sim *sim =
            SIM_WHOLE(.dims = "2x2", .seed = i, .rate = 1250000000, .memory = UINT64_C(9) << 20);
        struct spec spec = specs[i];
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        assert_true(sim_run(sim, 10 * SECONDS, group_all_completed, programs));
        spec.timeout_ns = 30 * SECONDS;
        struct sim_request *r = sim_exchange(sim, 1, &spec);
        assert_true(sim_run_until_ended(r, 60 * SECONDS));
        assert_int_equal(r->error.code, ERROR_NONE);
        assert_int_equal(sim_programs_failed(programs), 0);
        sim_programs_free(programs);
        sim_free(sim);
    }
}

/* One member waits for a broadcast over a slow link, while all others go on. */
TEST(a_member_that_waits_for_one_call_is_not_left_behind)
{
    struct sim_call call[CALLS_MOST];

    for (uint32_t who = 0; who < 3; who++) {
        struct sim *sim = group_sim("3", who);
        const struct sim_programs_setup setup = {.name = "g",
                                                 .call = call,
                                                 .calls = CALLS_MOST,
                                                 .seed = who,
                                                 .depth = 5,
                                                 .stay = true,
                                                 .unchecked = true};
        for (unsigned i = 0; i < CALLS_MOST; i++)
            call[i] = (struct sim_call){
                .operation = GROUP_BROADCAST, .size = 100, .root = (who + (i == 2 ? 2 : 1)) % 3};
        sim_set_latency(sim, who, torus_port(sim_torus(sim), 0, -1), 100 * MILLISECONDS);
        struct sim_programs *programs = sim_programs_new(sim, &setup);
        assert_true(sim_programs_run(programs, 60 * SECONDS));
        for (uint32_t rank = 0; rank < 3; rank++)
            assert_int_equal(sim_program_error(programs, rank)->code, ERROR_NONE);
        sim_programs_free(programs);
        sim_free(sim);
    }
}

/* Whatever is damaged in transit, no wrong data are delivered (programs.c checks that): damaged data are sent again, on
 * the same links or avoiding a link that was closed because of a damaged head. */
SIM_SEED_TEST(4 * seeds, group_sim(tori[2 + seed % 7], seed), damage_is_repaired)
{
    struct sim_programs *programs = group_start_steady(sim, seed);
    sim_pass(sim, (5 + seed % 20) * MILLISECONDS);
    sim_damage(sim, 1);
    if (!sim_run(sim, 60 * SECONDS, group_all_completed, programs))
        sim_violated(sim, "damage", "%u of %u programs have made all calls, %u have failed: %s",
                     sim_programs_done(programs), sim_torus(sim)->nodes,
                     sim_programs_failed(programs), sim_program_error(programs, 0)->text);
    sim_programs_free(programs);
}
