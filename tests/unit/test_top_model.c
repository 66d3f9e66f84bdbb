/* Rates, loads, faults and runs of `torusctl top`, from two surveys. */
#include "client/cli/top/model.h"
#include "tests/support/cmocka.h"
#include "top_fixture.h"

#define NEAR 1e-6

TOP_TEST(NULL, 0, test_rates_need_two_surveys)
{
    struct all_nodes c = fake_survey_make("4x4", 5000);

    fake_all_bytes(&c, 1000000);
    take(m, &c, 1);
    struct observed_link l = observed_link(&m->seen, 5, 0);
    assert_int_equal(l.state, LINK_UP);
    assert_true(l.away < 0 && l.towards < 0 && l.here->sent < 0);
    assert_int_equal(m->seen.answered, 16);
    assert_int_equal(m->seen.links, 32);
    assert_int_equal(m->seen.links_up, 32);

    c = fake_survey_make("4x4", 7000); /* two seconds later, by the clocks of the nodes */
    fake_status(&c, 3)->link_mbit = 80;
    fake_all_bytes(&c, 1000000);
    fake_bytes(&c, 5, 0, 5000000); /* 2 MB/s away from node 5, nothing back */
    take(m, &c, 100);
    l = observed_link(&m->seen, 5, 0);
    assert_float_equal(l.here->sent, 2e6, NEAR);
    assert_true(m->seen.capacity.nominal);
    assert_float_equal(m->seen.capacity.value, 1e7, NEAR);
    assert_float_equal(l.away, 0.2, NEAR);
    assert_float_equal(l.towards, 0, NEAR);
    assert_float_equal(observed_load(&l), 0.2, NEAR);
    l = observed_link(&m->seen, 9, 1); /* the same link from its other end */
    assert_int_equal(l.neighbour, 5);
    assert_float_equal(l.towards, 0.2, NEAR);
}

TOP_TEST(NULL, 0, test_the_fastest_rate_is_full_if_none_is_known)
{
    struct all_nodes c = fake_survey_make("8", 1000);

    take(m, &c, 1);
    c = fake_survey_make("8", 2000);
    fake_all_bytes(&c, 5000); /* heartbeats: no link is full of them */
    take(m, &c, 2);
    struct observed_link l = observed_link(&m->seen, 0, 0);
    assert_true(m->seen.capacity.value <= 0 && observed_load(&l) <= 0);
    c = fake_survey_make("8", 3000);
    fake_all_bytes(&c, 5000);
    fake_bytes(&c, 2, 0, 40005000);
    fake_bytes(&c, 3, 0, 10005000);
    take(m, &c, 3);
    assert_false(m->seen.capacity.nominal);
    assert_float_equal(m->seen.capacity.value, 4e7, NEAR);
    l = observed_link(&m->seen, 3, 0);
    assert_float_equal(observed_load(&l), 0.25, NEAR);
    c = fake_survey_make("8", 4000); /* the torus rests, and the most seen stays */
    fake_all_bytes(&c, 5000);
    take(m, &c, 4);
    assert_float_equal(m->seen.capacity.value, 4e7, NEAR);
}

/* A connection, and a daemon, begin to count again. */
TOP_TEST("4x4", 500000, test_counters_that_begin_again)
{
    struct all_nodes c = fake_survey_full("4x4", 3000, 1500000);

    fake_link(&c, 5, 0)->connects = 2;
    fake_link(&c, 5, 0)->tx_bytes = 2000000;
    fake_link(&c, 9, 1)->connects = 2;
    fake_status(&c, 6)->uptime_ms = 100;
    fake_status(&c, 6)->pid = 7777;
    take(m, &c, 3);
    struct observed_link l = observed_link(&m->seen, 5, 0);
    assert_true(l.away < 0 && l.towards < 0);
    l = observed_link(&m->seen, 6, 0);
    assert_true(l.here->sent < 0);
    assert_float_equal(l.there->received, 500000, NEAR); /* what the other end says is used */
    assert_float_equal(l.away, 0.5, NEAR);
    assert_int_equal(m->restarts, 1);
    assert_int_equal(m->restarted, 6);
}

TOP_TEST("4x4", 0, test_a_node_that_was_away_has_been_restarted)
{
    struct all_nodes c = fake_survey_make("4x4", 3000);
    char text[512];

    fake_dead(&c, 6);
    take(m, &c, 3);
    assert_int_equal(m->restarts, 0);
    assert_int_equal(m->seen.answered, 15);
    assert_int_equal(m->seen.links_up, 28);
    assert_int_equal(m->seen.fault_count, 1); /* its links are not faults of their own */
    assert_int_equal(m->seen.faults[0].kind, FAULT_NODE);
    top_model_fault_text(m, &m->seen.faults[0], text, sizeof text);
    assert_string_equal(text, "h6 (node 6) is down, or cannot be reached");
    c = fake_survey_make("4x4", 4000);
    fake_status(&c, 6)->uptime_ms = 500;
    take(m, &c, 4);
    assert_int_equal(m->restarts, 1);
    assert_int_equal(m->seen.fault_count, 0);
}

TOP_TEST("4x4", 0, test_a_link_that_is_down)
{
    struct all_nodes c = fake_survey_make("4x4", 3000);
    const struct torus_link_fault cable = {.node = 2, .port = 0, .code = "loop", .text = "a loop"};
    const struct torus_link_fault *cables[] = {&cable};
    char text[512];

    fake_down(&c, 5, 2, "no carrier on eth1");
    fake_status(&c, 2)->link_faults = cables;
    fake_status(&c, 2)->link_fault_count = 1;
    take(m, &c, 3);
    assert_int_equal(m->seen.links_up, 31);
    assert_int_equal(m->seen.fault_count, 2);
    assert_int_equal(m->seen.faults[0].kind, FAULT_CABLE);
    assert_int_equal(m->seen.faults[1].kind, FAULT_LINK);
    top_model_fault_text(m, &m->seen.faults[1], text, sizeof text);
    assert_string_equal(text, "link 5:+1 h5 - 6:-1 h6: no carrier on eth1");
    const struct observed_link l = observed_link(&m->seen, 6, 3);
    assert_int_equal(l.state, LINK_DOWN);
}

TOP_TEST("4x4m", 0, test_lies)
{
    struct all_nodes c = fake_survey_make("4x4m", 3000);

    fake_link(&c, 5, 0)->port = 77; /* no node has such a port */
    fake_link(&c, 6, 0)->port = 2;  /* another port a second time */
    fake_link(&c, 0, 0)->tx_bytes = UINT64_MAX;
    fake_exchange(&c, 1, "x")->state = (enum torus_state)99;
    fake_exchange(&c, 2, "x")->done_bytes = UINT64_MAX;
    fake_exchange(&c, 3, "x")->done_bytes = UINT64_MAX;
    take(m, &c, 3);
    assert_int_equal(observed_link(&m->seen, 3, 2).state, LINK_NONE); /* the end of a line */
    assert_int_equal(observed_link(&m->seen, 16, 0).state, LINK_NONE);
    assert_int_equal(observed_link(&m->seen, 0, 99).state, LINK_NONE);
    assert_true(m->seen.runs.run[0].done == UINT64_MAX);
    assert_int_equal(m->seen.runs.run[0].states[TORUS_STATE_UNKNOWN], 1);
}

TOP_TEST("4x4", 1000, test_another_torus)
{
    struct all_nodes c = fake_survey_make("2x3", 3000);

    take(m, &c, 3);
    assert_int_equal(m->seen.now.torus.nodes, 6);
    assert_int_equal(m->surveys, 1);
    assert_true(observed_link(&m->seen, 1, 0).away < 0);
}

/* A survey of an exchange of 1000 bytes at each of four nodes, of which `done` are there at each. */
static struct all_nodes exchange_survey(uint64_t uptime_ms, uint64_t done)
{
    struct all_nodes c = fake_survey_make("4", uptime_ms);

    for (uint32_t rank = 0; rank < 4; rank++) {
        struct torus_activity *x = fake_exchange(&c, rank, "0-1-2");
        x->total_bytes = 1000;
        x->done_bytes = done;
    }
    return c;
}

TOP_TEST(NULL, 0, test_an_exchange)
{
    struct all_nodes c = exchange_survey(1000, 100);
    char text[200];

    take(m, &c, 1);
    const struct run *r = &m->seen.runs.run[0];
    assert_int_equal(m->seen.runs.count, 1);
    assert_true(r->rate < 0 && r->left < 0);
    assert_float_equal(r->part, 0.1, NEAR);
    c = exchange_survey(2000, 200);
    take(m, &c, 2);
    assert_float_equal(r->rate, 400, NEAR);
    assert_float_equal(r->left, 8, NEAR); /* 3200 bytes */
    assert_string_equal(run_state(r, text, sizeof text), "running");
    c = exchange_survey(3000, 400); /* the rate follows with a delay */
    fake_status(&c, 2)->exchange_count = 0;
    fake_exchange(&c, 2, "0-1-2")->state = TORUS_STATE_DONE;
    take(m, &c, 3);
    assert_float_equal(r->rate, 500, NEAR); /* three nodes at 200, and 400 before */
    assert_string_equal(run_state(r, text, sizeof text), "running 3, done 1");
    assert_int_equal(r->nodes, 4);
}

/* In an exchange of files, nobody knows the number of bytes, and the rounds show the progress. */
TOP_TEST(NULL, 0, test_an_exchange_without_a_total)
{
    for (unsigned i = 1; i <= 3; i++) {
        struct all_nodes c = fake_survey_make("4", 1000 * i);
        struct torus_activity *x = fake_exchange(&c, 1, "f");
        x->rounds = 10;
        x->round = i;
        take(m, &c, i);
    }
    assert_float_equal(m->seen.runs.run[0].part, 0.3, NEAR);
    assert_float_equal(m->seen.runs.run[0].left, 7, NEAR); /* a round a second */
}

TOP_TEST(NULL, 0, test_runs_that_have_ended_come_last)
{
    struct all_nodes c = fake_survey_make("4", 1000);

    struct torus_activity *old = fake_exchange(&c, 0, "old");
    old->state = TORUS_STATE_FAILED;
    old->reason = "node 3 is down";
    (void)fake_exchange(&c, 1, "new");
    fake_exchange(&c, 2, "new")->state = TORUS_STATE_COMMITTED; /* not yet at node 1 */
    struct torus_group_info *g = fake_group(&c, 0, "halo");
    g->calls = 12;
    g->calls_done = 10;
    g = fake_group(&c, 1, "halo");
    g->calls = 11;
    g->calls_done = 11;
    take(m, &c, 1);
    assert_int_equal(m->seen.runs.count, 3);
    assert_string_equal(m->seen.runs.run[0].id, "halo");
    assert_int_equal(m->seen.runs.run[0].calls, 12);
    assert_int_equal(m->seen.runs.run[0].calls_done, 10);
    assert_string_equal(m->seen.runs.run[1].id, "new");
    assert_int_equal(m->seen.runs.run[1].nodes, 2);
    assert_false(m->seen.runs.run[1].ended);
    assert_string_equal(m->seen.runs.run[2].id, "old");
    assert_true(m->seen.runs.run[2].ended);
    assert_string_equal(m->seen.runs.run[2].reason, "node 3 is down");
}

/* What the node counts that was asked for the copy, and not what another one does. */
TOP_TEST(NULL, 0, test_a_copy)
{
    char text[200];

    for (unsigned i = 1; i <= 2; i++) {
        struct all_nodes c = fake_survey_make("4", 1000 * i);
        for (uint32_t rank = 0; rank < 4; rank++) {
            struct torus_copy_activity *x = fake_copy(&c, rank, "2-abc");
            x->asker = 2;
            x->bytes = rank == 2 ? 1000 * i : 70 * i + rank;
            x->bytes_of = rank == 2 ? 8000 : 0;
            x->waits_for = rank == 2 && i == 2 ? "h3" : "";
        }
        take(m, &c, i);
    }
    const struct run *r = &m->seen.runs.run[0];
    assert_int_equal(m->seen.runs.count, 1);
    assert_int_equal(r->kind, RUN_COPY);
    assert_int_equal(r->nodes, 4);
    assert_int_equal(r->root, 2);
    assert_string_equal(r->what, "/data/model");
    assert_float_equal(r->rate, 1000, NEAR);
    assert_float_equal(r->part, 0.25, NEAR);
    assert_float_equal(r->left, 6, NEAR);
    assert_string_equal(run_state(r, text, sizeof text), torus_copy_phase_name(TORUS_COPY_MOVING));
    assert_string_equal(run_reason(r, text, sizeof text), "waits for h3");
    assert_int_equal(run_copy_at(r, &m->seen.now, 1)->bytes, 141);
    assert_null(run_exchange_at(r, &m->seen.now, 1));
}

TOP_TEST(NULL, 0, test_many_runs)
{
    static char ids[100][8];
    struct all_nodes c = fake_survey_make("100", 1000);

    for (uint32_t rank = 0; rank < 100; rank++) {
        (void)snprintf(ids[rank], sizeof ids[rank], "x%u", rank);
        (void)fake_exchange(&c, rank, ids[rank]);
    }
    for (uint32_t rank = 0; rank < 100; rank++) /* is left out once, although many nodes tell it */
        (void)fake_exchange(&c, rank, ids[99]);
    take(m, &c, 1);
    assert_int_equal(m->seen.runs.count, RUNS_MOST);
    assert_int_equal(m->seen.runs.left_out, 100 - RUNS_MOST);
}
