/* Traces: every node has one of a run that asks for it, through all attempts; they are bounded, and change nothing. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/group_fixture.h"
#include "tests/sim/trace_checks.h"
#include "tests/support/cmocka.h"

static struct sim *start(const char *dims, uint64_t rate, bool chop)
{
    return SIM_WHOLE(.dims = dims, .seed = 3, .latency = 50 * MICROSECONDS, .rate = rate,
                     .chop = chop);
}

static void run(struct sim_request *r, const struct spec *spec)
{
    assert_true(sim_run_until_ended(r, 600 * SECONDS));
    assert_int_equal(r->error.code, ERROR_NONE);
    assert_true(check_agreement(r, spec));
}

static uint64_t sent_by(const struct trace *t, unsigned port)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < t->intervals; i++)
        bytes += t->port[(size_t)i * t->ports + port].sent;
    return bytes;
}

/* The same run, without and with a trace: the counts are the same, and so is the time, but for a field of a message. */
static void nothing_changes(const char *dims, const struct algorithm *a, uint64_t bytes)
{
    struct spec spec = GENERATED(.algorithm = (char *)(uintptr_t)a->name, .operation = a->operation,
                                 .block_bytes = bytes, .repeat = 3);
    struct exchange_result plain = {.rounds = 0};
    uint64_t sent[2][TORUS_MAX_PORTS] = {{0}};

    for (unsigned traced = 0; traced < 2; traced++) {
        struct sim *sim = start(dims, 12500000, false);
        spec.trace = traced == 1;
        struct sim_request *r = sim_exchange(sim, sim_torus(sim)->nodes / 2, &spec);
        run(r, &spec);
        check_success(r, &spec);
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            sent[traced][port] = r->result.node[0].port[port].tx_bytes;
        if (traced == 0) {
            plain = r->result;
            assert_null(exchanges_last_trace(sim_exchanges(sim, 0)));
        } else {
            assert_int_equal(r->result.bytes_delivered, plain.bytes_delivered);
            assert_int_equal(r->result.rounds, plain.rounds);
            assert_int_equal(r->result.startups, plain.startups);
            assert_in_range(r->result.nanoseconds, plain.nanoseconds - plain.nanoseconds / 500,
                            plain.nanoseconds + plain.nanoseconds / 500);
            assert_memory_equal(sent[0], sent[1], sizeof sent[0]);
            check_traces(sim);
        }
        sim_free(sim);
    }
}

TEST(traces_change_nothing)
{
    static const char *const names[] = {"at2", "stream", "direct", "pair", "at2-1port", "balanced"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        nothing_changes("4x4", algorithm_find(names[i]), 40000);
    nothing_changes("8", algorithm_find("ar"), 100000);
}

/* What is recorded is what has happened. */
TEST(every_node_records)
{
    static const char *const tori[] = {"1", "2", "4x4", "3x4x2", "complete:5", "4mx3"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct sim *sim = start(tori[i], 12500000, true);
        struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 100000, .trace = true);
        struct sim_request *r = sim_exchange(sim, 0, &spec);
        run(r, &spec);
        for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
            const struct trace *t = check_last_trace(sim, rank);
            assert_string_equal(t->id, r->id);
            assert_true(t->ended > t->began);
            assert_true(check_count_events(t, TRACE_PHASE) >= 3);
            assert_int_equal(check_count_events(t, TRACE_LINK_DOWN), 0);
            for (unsigned port = 0; port < torus_ports(sim_torus(sim)); port++) {
                uint64_t bytes = r->result.node[rank].port[port].tx_bytes, seen = sent_by(t, port);
                /* Frames of the links and of the waves are in the trace, too; what left before the first sample, or
                 * after the last one, is not. */
                assert_in_range(seen, bytes - bytes / 5, bytes + bytes / 5 + 20000);
            }
        }
        check_traces(sim);
        sim_free(sim);
    }
}

/* In a stepped run each node notes each of its steps, in each repetition. */
SIM_TEST(start("8x8", 125000000, false), steps_are_recorded)
{
    struct spec spec =
        GENERATED(.algorithm = "at2", .block_bytes = 2000, .repeat = 4, .trace = true);
    struct sim_request *r = sim_exchange(sim, 5, &spec);

    run(r, &spec);
    for (uint32_t rank = 0; rank < 64; rank++) {
        const struct trace *t = check_last_trace(sim, rank);
        uint32_t step = 0;
        assert_int_equal(check_count_events(t, TRACE_STEP), 4 * 6);
        for (uint32_t k = 0; k < trace_kept(t); k++) {
            const struct trace_event *event = trace_event_at(t, k);
            if (event->kind == TRACE_STEP)
                assert_int_equal(event->a, step++ % 6);
        }
    }
}

/* A link goes down: the trace goes on in the next attempt, and both ends of the link say when. */
TEST(a_trace_goes_through_attempts)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct sim *sim = SIM_WHOLE(.dims = "4x4", .seed = seed, .latency = 100 * MICROSECONDS,
                                    .rate = 12500000, .chop = true);
        struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 400000, .trace = true);
        struct sim_request *r = sim_exchange(sim, 2, &spec);
        char first[EXCHANGE_ID_SIZE];
        sim_pass(sim, 100 * MILLISECONDS);
        (void)strcpy(first, r->id);
        uint32_t rank = sim_any(sim, 16);
        unsigned port = sim_any(sim, 4);
        sim_set_wire(sim, rank, port, SIM_WIRE_CUT);
        assert_true(sim_run_until_ended(r, 600 * SECONDS));
        assert_int_equal(r->error.code, ERROR_NONE);
        assert_true(r->result.reroutes >= 1);
        assert_string_not_equal(r->id, first);
        sim_pass(sim, 1 * SECONDS);
        for (uint32_t node = 0; node < 16; node++) {
            const struct trace *t = check_last_trace(sim, node);
            assert_string_equal(t->id, first);
            assert_true(check_count_events(t, TRACE_PHASE) >= 6);
            bool end = node == rank || node == torus_neighbour(sim_torus(sim), rank, port);
            assert_int_equal(check_count_events(t, TRACE_LINK_DOWN), end ? 1 : 0);
            assert_true(t->ended >= t->began + r->result.nanoseconds / 2);
        }
        check_traces(sim);
        sim_free(sim);
    }
}

/* The last two traced jobs are kept; others change nothing. A long one has as many intervals as a short one. */
SIM_TEST(start("2x2", 1250000, true), two_are_kept)
{
    struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 1000, .trace = true);
    char last[EXCHANGE_ID_SIZE] = "";

    for (unsigned i = 0; i < 5; i++) {
        struct sim_request *r = sim_exchange(sim, i % 4, &spec);
        run(r, &spec);
        (void)strcpy(last, r->id);
        sim_pass(sim, 10 * MILLISECONDS);
    }
    spec.trace = false;
    run(sim_exchange(sim, 1, &spec), &spec);
    spec.trace = true;
    for (uint32_t rank = 0; rank < 4; rank++)
        assert_string_equal(check_last_trace(sim, rank)->id, last);
    spec.block_bytes = 4000000;
    struct sim_request *r = sim_exchange(sim, 3, &spec);
    run(r, &spec);
    for (uint32_t rank = 0; rank < 4; rank++) {
        const struct trace *t = check_last_trace(sim, rank);
        assert_string_equal(t->id, r->id);
        assert_true(t->interval > 4 * TRACE_INTERVAL_LEAST);
        assert_true(t->interval * t->intervals >= r->result.nanoseconds / 10 * 9);
    }
    check_traces(sim);
}

/* More than two at once: those have a trace that found a place, and all succeed. */
SIM_TEST(start("3x3", 1250000, true), many_at_once)
{
    struct spec spec = GENERATED(.algorithm = "auto", .block_bytes = 20000, .trace = true);
    struct sim_request *r[6];

    for (unsigned i = 0; i < 6; i++)
        r[i] = sim_exchange(sim, i, &spec);
    for (unsigned i = 0; i < 6; i++) {
        assert_true(sim_run_until_ended(r[i], 600 * SECONDS));
        assert_int_equal(r[i]->error.code, ERROR_NONE);
    }
    check_traces(sim);
    for (uint32_t rank = 0; rank < 9; rank++)
        (void)check_last_trace(sim, rank);
}

/* Calls of programs; the group makes others by itself. */
static uint32_t count_calls(const struct trace *t, enum trace_event_kind kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < trace_kept(t); i++)
        count += trace_event_at(t, i)->kind == kind && trace_event_at(t, i)->a < GROUP_PART;
    return count;
}

/* In a group each node notes when each call began and ended. */
SIM_TEST(group_sim("3x3", 7), calls_are_recorded)
{
    struct sim_programs *programs = group_start_steady_traced(sim, 7);

    assert_true(sim_run(sim, 60 * SECONDS, group_all_completed, programs));
    for (uint32_t rank = 0; rank < 9; rank++) {
        const struct trace *t = check_last_trace(sim, rank);
        assert_int_equal(t->ended, 0); /* the group is open */
        assert_int_equal(count_calls(t, TRACE_CALL_BEGUN), GROUP_STEADY_CALLS);
        assert_int_equal(count_calls(t, TRACE_CALL_ENDED), GROUP_STEADY_CALLS);
        assert_string_equal(t->id, check_last_trace(sim, 0)->id);
    }
    check_traces(sim);
    sim_programs_free(programs);
}
