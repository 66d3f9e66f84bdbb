/* The scene of `torusctl serve`, and what the page is told: rates, faults, runs. Surveys are made up. */
#include "client/cli/serving/scene.h"
#include "doctor_fixture.h"
#include "tests/support/cmocka.h"
#include <string.h>

/* Surveys are parts of the fixture, and not freed. */
void __wrap_torus_survey_free(struct torus_survey *survey);
void __wrap_torus_survey_free(struct torus_survey *survey)
{
}

struct made {
    struct ring ring;
    struct torus_node_answer answer[RING];
    const struct torus_node_answer *list[RING];
    struct torus_survey survey;
    struct torus_activity activity[RING];
    const struct torus_activity *activities[RING][1];
};

static struct made made[2]; /* the survey now, and the one before */
static struct scene scene;
static unsigned turn;
static double now;

/* A survey like the one before, `seconds` later. */
static struct made *next(double seconds)
{
    struct made *m = &made[turn++ % 2];

    ring_begin(&m->ring);
    now += seconds;
    for (uint32_t i = 0; i < RING; i++) {
        m->ring.status[i].dims = "4";
        m->ring.status[i].pid = 100 + i;
        m->ring.status[i].uptime_ms = (uint64_t)(now * 1000);
        m->answer[i] = (struct torus_node_answer){.rank = i,
                                                  .outcome = TORUS_SURVEY_ANSWERED,
                                                  .host = m->ring.node[i].host,
                                                  .status = &m->ring.status[i],
                                                  .links = &m->ring.links[i]};
        m->list[i] = &m->answer[i];
    }
    m->survey = (struct torus_survey){.count = RING, .nodes = m->list, .took_us = 1500};
    return m;
}

static void lose(struct made *m, uint32_t node)
{
    m->answer[node].outcome = TORUS_SURVEY_UNREACHABLE;
    m->answer[node].host = "";
    m->answer[node].status = NULL;
    m->answer[node].links = NULL;
}

static void run_exchange(struct made *m, uint64_t done, enum torus_state state)
{
    for (uint32_t i = 0; i < RING; i++) {
        m->activity[i] = (struct torus_activity){.id = "1-abc",
                                                 .algorithm = "at2",
                                                 .state = state,
                                                 .reason = "",
                                                 .coordinator = 2,
                                                 .age_ms = 5000,
                                                 .rounds = 1,
                                                 .done_bytes = done,
                                                 .total_bytes = 1000};
        m->activities[i][0] = &m->activity[i];
        m->ring.status[i].exchange_count = 1;
        m->ring.status[i].exchanges = m->activities[i];
    }
}

/* Takes the survey over; the value that the page is told. */
static json_t *take(struct made *m)
{
    struct torus_error e;
    struct all_nodes all;

    assert_int_equal(all_nodes_make(&all, &m->ring.status[0], &m->survey, &e), 0);
    assert_int_equal(scene_take(&scene, &all, now), 0);
    json_t *value = scene_state_value(&scene, 42);
    assert_non_null(value);
    return value;
}

static int begin(void **state)
{
    scene_free(&scene);
    now = 1000;
    return 0;
}

static int end(void **state)
{
    scene_free(&scene);
    return 0;
}

/* A member of the channel by which a node sends at a port (0 or 1). */
static const json_t *of_end(const json_t *value, uint32_t node, unsigned port, size_t member)
{
    return json_array_get(json_array_get(json_object_get(value, "end"), node * 2 + port), member);
}

static const char *fault(const json_t *value, size_t i, const char *key)
{
    return json_string_value(
        json_object_get(json_array_get(json_object_get(value, "faults"), i), key));
}

static json_int_t count(const json_t *value, const char *key)
{
    return json_integer_value(json_object_get(value, key));
}

TEST_WITH(begin, end, rates_come_from_two_surveys)
{
    struct made *m;
    json_t *value = take(next(1));

    assert_true(scene.new_torus);
    assert_true(json_is_null(of_end(value, 1, 0, 1)));
    json_decref(value);
    m = next(2);
    m->ring.link[1][0].tx_bytes += 5000;
    m->ring.link[1][0].retransmits = 8;
    value = take(m);
    assert_false(scene.new_torus);
    assert_int_equal(json_integer_value(of_end(value, 1, 0, 1)), 2500);
    assert_int_equal(json_integer_value(of_end(value, 1, 0, 6)), 4);
    assert_int_equal(json_integer_value(of_end(value, 1, 1, 1)), 0);
    assert_true(json_is_true(of_end(value, 1, 0, 0)));
    assert_int_equal(json_array_size(json_object_get(value, "end")), 2 * RING);
    assert_int_equal(count(value, "links"), RING);
    assert_int_equal(count(value, "links_up"), RING);
    assert_int_equal(json_array_size(json_object_get(value, "faults")), 0);
    assert_int_equal(count(value, "capacity"), 125000000);
    json_decref(value);
    value = scene_history_value(&scene, 1, 0);
    const json_t *sent =
        json_object_get(json_array_get(json_object_get(value, "series"), 0), "peak");
    assert_in_range(json_integer_value(json_array_get(sent, HISTORY_POINTS - 1)), 2498, 2502);
    json_decref(value);
    assert_null(scene_history_value(&scene, RING, TORUS_RANK_NONE));
    assert_null(scene_history_value(&scene, 0, 2));
}

TEST_WITH(begin, end, another_connection_or_daemon_gives_no_rate)
{
    struct made *m;

    json_decref(take(next(1)));
    m = next(1);
    m->ring.link[0][0].connects = 2;
    m->ring.status[1].pid = 999;
    m->ring.link[2][0].tx_bytes = 5; /* less than before */
    json_t *value = take(m);
    assert_true(json_is_null(of_end(value, 0, 0, 1)));
    assert_true(json_is_null(of_end(value, 1, 0, 1)));
    assert_true(json_is_null(of_end(value, 2, 0, 1)));
    assert_false(json_is_null(of_end(value, 3, 0, 1)));
    json_decref(value);
    value = take(next(SCENE_GAP_SECONDS + 5)); /* nobody has looked */
    assert_true(json_is_null(of_end(value, 3, 0, 1)));
    json_decref(value);
}

TEST_WITH(begin, end, faults_name_machines)
{
    struct made *m;

    json_decref(take(next(1)));
    m = next(1);
    lose(m, 2);
    m->ring.link[0][0].state = TORUS_LINK_DIALLING;
    m->ring.link[0][0].reason = "connection refused <b>\x01";
    json_t *value = take(m);
    assert_int_equal(json_array_size(json_object_get(value, "faults")), 2);
    assert_string_equal(fault(value, 0, "text"), "gamma is down, or cannot be reached");
    assert_string_equal(fault(value, 1, "text"), "the link from port +0 of alpha to beta is down");
    assert_string_equal(fault(value, 1, "why"), "connection refused <b>?");
    assert_int_equal(count(value, "links_up"),
                     RING - 1); /* those of gamma are up at their other ends */
    assert_true(json_is_null(json_array_get(json_object_get(value, "end"), 4)));
    assert_true(json_is_false(of_end(value, 1, 1, 0))); /* the other end of the link of alpha */
    json_decref(value);
}

TEST_WITH(begin, end, cables_that_lead_elsewhere_are_faults)
{
    struct made *m = next(1);

    ring_fault(&m->ring, 0, 1, "wrong-cable", 1, 0);
    json_t *value = take(m);
    assert_string_equal(fault(value, 0, "text"), "alpha: a text");
    json_decref(value);
}

static const json_t *run(const json_t *value)
{
    assert_int_equal(json_array_size(json_object_get(value, "runs")), 1);
    return json_array_get(json_object_get(value, "runs"), 0);
}

TEST_WITH(begin, end, an_exchange_has_progress_rate_and_time_left)
{
    struct made *m = next(1);

    run_exchange(m, 100, TORUS_STATE_RUNNING);
    json_decref(take(m));
    m = next(1);
    run_exchange(m, 300, TORUS_STATE_RUNNING);
    m->activity[3].state = TORUS_STATE_DONE;
    json_t *value = take(m);
    const json_t *j = run(value);
    assert_string_equal(json_string_value(json_object_get(j, "root")), "gamma");
    assert_string_equal(json_string_value(json_object_get(j, "state")), "running 3, done 1");
    assert_int_equal(count(j, "done"), 1200);
    assert_int_equal(count(j, "total"), 4000);
    assert_int_equal(count(j, "rate"), 800);
    assert_true(json_number_value(json_object_get(j, "part")) == 0.3);
    assert_true(json_number_value(json_object_get(j, "left")) == 3.5);
    assert_true(json_is_false(json_object_get(j, "ended")));
    json_decref(value);
    m = next(1);
    run_exchange(m, 1000, TORUS_STATE_COMMITTED);
    value = take(m);
    assert_true(json_is_true(json_object_get(run(value), "ended")));
    assert_true(json_is_null(json_object_get(run(value), "left")));
    json_decref(value);
}

/* A torus whose daemon says what cannot be: it must not matter. */
TEST_WITH(begin, end, nonsense_does_no_harm)
{
    struct made *m = next(1);

    m->ring.link[0][0].port = 31;
    m->ring.link[1][1].rtt_us = UINT32_MAX;
    m->ring.link[1][1].queue_bytes = UINT64_MAX;
    run_exchange(m, UINT64_MAX, (enum torus_state)77);
    json_t *value = take(m);
    assert_true(json_is_null(json_array_get(json_object_get(value, "end"), 0)));
    assert_string_equal(json_string_value(json_object_get(run(value), "state")), "unknown");
    json_decref(value);
}

TEST_WITH(begin, end, each_channel_has_its_opposite)
{
    struct error e;

    json_decref(take(next(1)));
    json_t *torus = scene_torus_value(&scene, &e);
    const json_t *channels = json_object_get(torus, "channels"),
                 *opposite = json_object_get(torus, "opposite");
    assert_int_equal(json_array_size(channels), 2 * RING);
    for (size_t i = 0; i < 2 * (size_t)RING; i++) {
        const json_t *a = json_array_get(channels, i);
        const size_t k = (size_t)json_integer_value(json_array_get(opposite, i));
        const json_t *b = json_array_get(channels, k);
        assert_int_equal(json_integer_value(json_array_get(opposite, k)), i);
        assert_int_equal(json_integer_value(json_array_get(a, 0)),
                         json_integer_value(json_array_get(b, 2)));
    }
    json_decref(torus);
}
