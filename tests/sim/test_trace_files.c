/* Traces of simulated runs as files: 'torusctl report' finds in them what the simulator has done. */
#include <unistd.h>

#include "client/cli/reporting/findings.h"
#include "tests/sim/trace_save.h"
#include "tests/support/cmocka.h"

#define RATE 6250000u /* bytes a second: 50 Mbit/s */

static struct sim *start(const char *dims)
{
    struct sim *sim =
        SIM_WHOLE(.dims = dims, .seed = 3, .latency = 50 * MICROSECONDS, .rate = RATE);

    sim_pass(sim, SIM_CLOCKS_KNOWN);
    return sim;
}

/* Returns the result of a traced exchange. */
static struct sim_request *exchange(struct sim *sim, const char *algorithm, uint64_t bytes)
{
    const struct spec spec =
        GENERATED(.algorithm = (char *)(uintptr_t)algorithm, .block_bytes = bytes, .trace = true);
    struct sim_request *r = sim_exchange(sim, sim_torus(sim)->nodes / 2, &spec);

    assert_true(sim_run_until_ended(r, 600 * SECONDS));
    assert_int_equal(r->error.code, ERROR_NONE);
    return r;
}

/* Writes the traces to a file, and reads it again. */
static void save(struct sim *sim, struct trace_data *d)
{
    const char *path = file_of("", 0);
    struct error e;

    if (sim_trace_save(sim, path, NULL, &e) != 0 || trace_data_read(d, path, &e) != 0)
        fail_msg("%s", e.text);
    (void)unlink(path);
}

static unsigned count_events(const struct trace_node_data *n, enum torus_trace_event kind)
{
    unsigned count = 0;

    for (size_t i = 0; i < json_array_size(n->events); i++)
        count += json_integer_value(json_array_get(json_array_get(n->events, i), 1)) == kind;
    return count;
}

SIM_TEST(start("4x4"), what_the_simulator_has_sent_is_in_the_file)
{
    struct trace_data d;

    struct sim_request *r = exchange(sim, "at2", 100000);
    const double seconds = sim_median_seconds(r);
    save(sim, &d);
    assert_int_equal(d.torus.nodes, 16);
    assert_true(d.seconds >= seconds && d.seconds < 2 * seconds);
    for (uint32_t rank = 0; rank < 16; rank++) {
        const struct trace_node_data *n = &d.node[rank];
        assert_true(n->traced);
        for (unsigned port = 0; port < 4; port++) {
            const uint64_t sent = r->result.node[rank].port[port].tx_bytes;
            assert_int_equal(n->port[port].neighbour, torus_neighbour(&d.torus, rank, port));
            /* heads of frames, and messages of the exchange itself, are not in tx_bytes */
            assert_true(n->port[port].bytes >= (double)sent);
            assert_true(n->port[port].bytes <= 1.02 * (double)sent + 5000);
        }
        assert_int_equal(count_events(n, TORUS_TRACE_STEP), 4); /* as many as at2 has on 4x4 */
    }
    trace_data_free(&d);
}

TEST(a_slow_link_is_named)
{
    struct finding found[FINDINGS_MOST];
    struct trace_data d;

    for (unsigned slow = 0; slow < 2; slow++) {
        struct sim *sim = start("3x3");
        if (slow == 1)
            sim_set_rate(sim, 4, 2, RATE / 5);
        (void)exchange(sim, "stream", 100000);
        save(sim, &d);
        assert_true(findings_make(&d, found) > 0);
        assert_int_equal(found[0].kind, slow == 1 ? FINDING_LINK : FINDING_NOTHING);
        if (slow == 1) {
            const uint32_t other = torus_neighbour(&d.torus, 4, 2);
            assert_true((found[0].node == 4 && found[0].port == 2) ||
                        (found[0].node == other && found[0].port == 3));
        }
        trace_data_free(&d);
        sim_free(sim);
    }
}

SIM_TEST(start("3x3"), nodes_that_are_down_have_no_trace)
{
    struct trace_data d;

    (void)exchange(sim, "direct", 1000);
    sim_kill(sim, 5, SIM_CRASH);
    sim_pass(sim, 1 * SECONDS);
    save(sim, &d);
    for (uint32_t rank = 0; rank < 9; rank++)
        assert_int_equal(d.node[rank].traced, rank != 5);
    trace_data_free(&d);
}

SIM_TEST(start("2"), without_a_traced_run_there_is_no_file)
{
    const char *path = file_of("", 0);
    struct error e;

    (void)unlink(path);
    assert_fails(sim_trace_save(sim, path, NULL, &e), e, ERROR_REFUSED, "");
    assert_int_equal(access(path, F_OK), -1);
}
