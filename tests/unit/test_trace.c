/* What a node records of a run: sums are kept when intervals are joined, and the first and last events. */
#include "daemon/lib/trace/link_load.h"
#include "daemon/lib/trace/trace.h"
#include "tests/support/cmocka.h"

#define MS UINT64_C(1000000)
#define UNIT 1024u

static unsigned long chance = 1;

static uint64_t below(uint64_t most)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint64_t)(chance >> 33) % most;
}

#define TRACE_TEST(begin, name) OBJECT_TEST(struct trace *, t, begin, trace_unref(t), name)

struct sums {
    uint64_t sent, received, resent, used, delayed, state[TRACE_STATES];
    uint32_t queue, unacked, writing;
};

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void add_up(const struct trace *t, unsigned port, struct sums *s)
{
    *s = (struct sums){.sent = 0};
    for (uint32_t i = 0; i < t->intervals; i++) {
        const struct trace_port *p = &t->port[(size_t)i * t->ports + port];
        s->sent += p->sent;
        s->received += p->received;
        s->resent += p->resent;
        s->queue = larger(s->queue, p->queue);
        s->unacked = larger(s->unacked, p->unacked);
        for (unsigned state = 0; state < TRACE_STATES; state++)
            s->state[state] += p->state[state];
        s->used += t->node[i].used;
        s->delayed += t->node[i].delayed;
        s->writing = larger(s->writing, t->node[i].writing);
    }
}

static void assert_near(uint64_t a, uint64_t b, uint64_t by)
{
    if ((a > b ? a - b : b - a) > by)
        fail_msg("%ju and %ju differ by more than %ju", (uintmax_t)a, (uintmax_t)b, (uintmax_t)by);
}

/* Counters rise at random, for so many samples that intervals are joined often. */
TRACE_TEST(trace_new("1-2-3", 4, 7 * MS), joining_keeps_sums)
{
    struct trace_sample s = {.writing = 0};
    struct sums expected[4] = {{.sent = 0}}, found;
    uint64_t now = 7 * MS, samples = 20000;
    const uint64_t first_used = 55555;

    s.used = first_used;
    for (unsigned port = 0; port < 4; port++)
        s.port[port].sent = 1000; /* before the run */
    trace_take(t, &s, now);
    for (uint64_t i = 0; i < samples; i++) {
        uint64_t passed = 1 + below(3 * MS); /* not late */
        for (unsigned port = 0; port < 4; port++) {
            uint64_t sent = below(100000), received = below(1000);
            expected[port].state[s.port[port].state] += passed;
            s.port[port].sent += sent;
            s.port[port].received += received;
            s.port[port].resent += i % 100 == 0;
            s.port[port].queue = below(5000);
            s.port[port].unacked = below(7000);
            expected[port].sent += sent;
            expected[port].received += received;
            expected[port].resent += i % 100 == 0;
            expected[port].queue = larger(expected[port].queue, (uint32_t)s.port[port].queue);
            expected[port].unacked = larger(expected[port].unacked, (uint32_t)s.port[port].unacked);
            s.port[port].state = (enum trace_state)below(TRACE_STATES);
        }
        s.used += passed / 2;
        s.delayed += passed / 4;
        s.writing = below(900);
        now += passed;
        trace_take(t, &s, now);
    }
    assert_in_range(t->intervals, TRACE_INTERVALS / 2, TRACE_INTERVALS);
    assert_true(t->interval > TRACE_INTERVAL_LEAST && t->interval * t->intervals >= now - 7 * MS);
    for (unsigned port = 0; port < 4; port++) {
        uint64_t all = 0;
        add_up(t, port, &found);
        assert_int_equal(found.sent, expected[port].sent);
        assert_int_equal(found.received, expected[port].received);
        assert_int_equal(found.resent, expected[port].resent);
        assert_int_equal(found.queue, expected[port].queue);
        assert_int_equal(found.unacked, expected[port].unacked);
        /* A sample may be divided between intervals, and each part is rounded down. */
        for (unsigned k = 0; k < TRACE_STATES; k++) {
            all += found.state[k];
            assert_near(found.state[k], expected[port].state[k] / UNIT, 2 * samples);
        }
        assert_near(all, (now - 7 * MS) / UNIT, 2 * samples);
    }
    assert_near(found.used, (s.used - first_used) / UNIT, 2 * samples);
    assert_near(found.delayed, s.delayed / UNIT, 2 * samples);
}

/* What was counted before the first sample does not belong to the run. A counter that falls has begun again at 0. */
TRACE_TEST(trace_new("x", 1, 0), counters_begin_again)
{
    struct trace_sample s = {.used = 900000};
    struct sums found;

    s.port[0].sent = 5000;
    s.port[0].resent = 70;
    trace_take(t, &s, 1 * MS);
    add_up(t, 0, &found);
    assert_int_equal(found.sent, 0);
    assert_int_equal(found.resent, 0);
    assert_int_equal(found.used, 0);
    s.port[0].sent = 6000;
    trace_take(t, &s, 2 * MS);
    s.port[0].sent = 300; /* a new connection */
    s.port[0].resent = 4;
    s.used = 10 * UNIT;
    trace_take(t, &s, 3 * MS);
    add_up(t, 0, &found);
    assert_int_equal(found.sent, 1300);
    assert_int_equal(found.resent, 4);
    assert_int_equal(found.used, 10);
    trace_take(t, &s, 2 * MS); /* a time in the past adds nothing */
    add_up(t, 0, &found);
    assert_int_equal(found.sent, 1300);
}

/* The time of a state belongs to the intervals in which it was, not to that of the sample. */
TRACE_TEST(trace_new("x", 1, 0), a_long_state_fills_its_intervals)
{
    struct trace_sample s = {.writing = 0};

    s.port[0].state = TRACE_SINK;
    trace_take(t, &s, 0);
    s.port[0].state = TRACE_LINK;
    trace_take(t, &s, 10 * MS + MS / 2);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(t->port[i].state[TRACE_SINK], MS / UNIT);
    assert_int_equal(t->port[10].state[TRACE_SINK], MS / 2 / UNIT);
    assert_int_equal(t->port[10].state[TRACE_LINK], 0);
    assert_int_equal(t->intervals, 11);
    /* Days later: bounded, and nothing overflows. */
    trace_take(t, &s, UINT64_C(40) * 86400 * 1000 * MS);
    assert_true(t->intervals <= TRACE_INTERVALS);
    assert_int_equal(t->port[t->intervals - 1].state[TRACE_RESENDING], 0);
    for (uint32_t i = 1; i + 1 < t->intervals; i++)
        assert_true(t->port[i].state[TRACE_LINK] > UINT32_MAX / 2);
}

/* A sample that comes much too late says that the main thread was delayed, also if the system does not say so. */
TRACE_TEST(trace_new("x", 1, 0), late_samples_are_delays)
{
    struct trace_sample s = {.used = 0};
    struct sums found;

    trace_take(t, &s, 0);
    trace_take(t, &s, 3 * MS); /* a little late */
    add_up(t, 0, &found);
    assert_int_equal(found.delayed, 0);
    s.used = 20 * MS; /* of 100 ms */
    s.port[0].sent = 1000000;
    trace_take(t, &s, 103 * MS);
    add_up(t, 0, &found);
    assert_near(found.used, 20 * MS / UNIT, 110);
    assert_near(found.delayed, 79 * MS / UNIT, 110);
    assert_int_equal(found.sent, 1000000);
    for (uint32_t i = 3; i < 103; i++) { /* all of that belongs to the whole time */
        assert_near(t->node[i].delayed, 79 * MS / 100 / UNIT, 2);
        assert_near(t->port[i].sent, 10000, 2);
    }
    trace_pause(t); /* nobody takes samples */
    trace_take(t, &s, 2000 * MS);
    add_up(t, 0, &found);
    assert_near(found.delayed, 79 * MS / UNIT, 110);
}

TRACE_TEST(trace_new("x", 2, 100 * MS), samples_are_due_by_the_interval)
{
    struct trace_sample s = {.writing = 0};
    uint64_t now = 100 * MS, taken = 0;

    assert_int_equal(trace_due(t), 101 * MS);
    while (now < 100 * MS + 600 * 1000 * MS) {
        uint64_t due = trace_due(t);
        assert_true(due >= now + TRACE_INTERVAL_LEAST);
        assert_true(due - now <= TRACE_INTERVAL_LEAST || due - now <= t->interval / 4);
        now = due;
        trace_take(t, &s, now);
        taken++;
    }
    /* In ten minutes: not more than a few for each of the 512 intervals, each time that these are joined. */
    assert_in_range(taken, 4 * TRACE_INTERVALS / 2, 4 * TRACE_INTERVALS * 12);
}

TEST(first_and_last_events_are_kept)
{
    static const uint64_t counts[] = {0,   1,   255, 256, 257,  511,  512,
                                      513, 767, 768, 769, 1024, 1025, 100000};

    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        const uint64_t count = counts[k];
        struct trace *t = trace_new("x", 2, 50);
        for (uint64_t i = 0; i < count; i++)
            trace_note(t, 50 + i, TRACE_STEP, (uint32_t)i, 2 * i);
        uint32_t kept = trace_kept(t);
        assert_int_equal(kept, count < TRACE_EVENTS ? count : TRACE_EVENTS);
        assert_int_equal(t->events, count);
        for (uint32_t i = 0; i < kept; i++) {
            uint64_t number = i < TRACE_EVENTS / 2 ? i : count - kept + i;
            const struct trace_event *event = trace_event_at(t, i);
            assert_int_equal(event->a, number);
            assert_int_equal(event->b, 2 * number);
            assert_int_equal(event->at, number);
            assert_int_equal(event->kind, TRACE_STEP);
        }
        trace_unref(t);
    }
}

TEST(events_before_the_begin_are_at_0)
{
    struct trace *t = trace_new("x", 2, 50);

    trace_note(t, 49, TRACE_LINK_DOWN, 1, 0);
    assert_int_equal(trace_event_at(t, 0)->at, 0);
    trace_note(NULL, 49, TRACE_LINK_DOWN, 1, 0);
    trace_unref(t);
    trace_unref(NULL);
    assert_null(trace_ref(NULL));
}

/* Which times tell what a link can carry, and which rate follows from them. */

static struct link_load_sample sample_of(uint64_t acked, uint64_t backlog)
{
    return (struct link_load_sample){.known = true, .acked = acked, .backlog = backlog};
}

/* Takes a first sample, and another one a while later. */
static bool take_two(struct link_load_sample first, struct link_load_sample last, uint64_t time,
                     struct link_load_span *span)
{
    struct link_load load = {0};

    assert_false(link_load_take(&load, &first, 5 * MS, span));
    return link_load_take(&load, &last, 5 * MS + time, span);
}

TEST(what_waits_from_begin_to_end_is_load)
{
    struct link_load_span span;

    assert_true(take_two(sample_of(1000, 100000), sample_of(51000, 90000), 4 * MS, &span));
    assert_int_equal(span.began, 5 * MS);
    assert_int_equal(span.loaded, 4 * MS);
    assert_int_equal(span.carried, 50000);
    assert_int_equal(span.drained, 0);
    /* What waits at the end came later. */
    assert_true(take_two(sample_of(1000, 100000), sample_of(96000, 90000), 4 * MS, &span));
    assert_int_equal(span.loaded, 0);
    assert_int_equal(span.drained, 4 * MS);
    assert_int_equal(span.carried, 95000);
}

/* A receiver acknowledges a short message late. */
TEST(short_messages_say_nothing)
{
    struct link_load_span span;

    assert_true(take_two(sample_of(0, LINK_LOAD_LEAST - 1), sample_of(0, 100000), 40 * MS, &span));
    assert_int_equal(span.loaded + span.drained + span.carried, 0);
}

TEST(a_receiver_without_room)
{
    struct link_load_sample last = sample_of(0, 100000);
    struct link_load_span span;

    last.no_room = 2 * MS;
    assert_true(take_two(sample_of(0, 100000), last, 4 * MS, &span));
    assert_int_equal(span.no_room, 2 * MS);
    assert_int_equal(span.loaded + span.drained + span.carried, 0);
    last.no_room = MS / 4; /* hardly */
    assert_true(take_two(sample_of(0, 100000), last, 4 * MS, &span));
    assert_int_equal(span.loaded, 4 * MS);
}

/* Bytes on a long path are not held up by the link: a span is longer than the round trip. */
TEST(a_long_way)
{
    struct link_load_sample first = sample_of(0, 100000), last = sample_of(100000, 100000);
    struct link_load_span span;

    first.min_trip = last.min_trip = 3 * MS;
    assert_false(take_two(first, last, 5 * MS, &span));
    assert_true(take_two(first, last, 6 * MS, &span));
    assert_int_equal(span.drained, 6 * MS);
}

TEST(another_connection)
{
    struct link_load_span span;
    struct link_load_sample silent = {.known = false};

    assert_false(take_two(sample_of(5000, 100000), sample_of(100, 100000), 4 * MS, &span));
    assert_false(take_two(sample_of(5000, 100000), silent, 4 * MS, &span));
    assert_false(take_two(silent, sample_of(5000, 100000), 4 * MS, &span));
}

/* --- rates --- */

#define PARTS 100u

/* Parts of 10 ms, of which `loaded` are loaded and carry `bytes`. */
static struct link_rate rate_of(double loaded, double bytes)
{
    struct link_use use[PARTS];
    struct link_rate rate;

    for (unsigned i = 0; i < PARTS; i++)
        use[i] = (struct link_use){
            .loaded = 0.01 * loaded, .drained = 0.01 * (1 - loaded), .carried = bytes};
    link_rate_find(use, PARTS, &rate);
    return rate;
}

TEST(the_rate_of_a_loaded_link)
{
    struct link_rate rate = rate_of(1, 25000);

    assert_true(rate.known);
    assert_float_equal(rate.least, 2.5e6, 1);
    assert_float_equal(rate.most, 2.5e6, 1);
    assert_true(link_rate_is_slow(&rate, 5e6));
    assert_false(link_rate_is_slow(&rate, 3e6));
    rate = rate_of(0.5, 25000); /* it drained for half of the time */
    assert_float_equal(rate.least, 2.5e6, 1);
    assert_float_equal(rate.most, 5e6, 1);
    rate = rate_of(0, 25000);
    assert_false(link_rate_is_slow(&rate, 1e12));
}

/* Bytes that are acknowledged in lumps of 64 KiB, each of 26 ms, are a rate. */
TEST(lumps)
{
    struct link_use use[PARTS];
    struct link_rate rate;

    for (unsigned i = 0; i < PARTS; i++)
        use[i] = i % 26 == 25 ? (struct link_use){.drained = 0.001, .carried = 65160}
                              : (struct link_use){.loaded = 0.001};
    link_rate_find(use, PARTS, &rate);
    assert_true(rate.known);
    assert_false(link_rate_is_slow(&rate, 2.5e6));
}

/* For a part of the run its machine did not run: what it carried otherwise counts. */
TEST(a_link_that_is_slow_for_a_while)
{
    struct link_use use[PARTS];
    struct link_rate rate;

    for (unsigned i = 0; i < PARTS; i++)
        use[i] = (struct link_use){.loaded = 0.1, .carried = i < PARTS / 2 ? 30000 : 300000};
    link_rate_find(use, PARTS, &rate);
    assert_float_equal(rate.most, 3e6, 1);
}

TEST(too_little_load)
{
    struct link_use use[] = {{.loaded = 0.05, .carried = 100}};
    struct link_rate rate;

    link_rate_find(use, 1, &rate);
    assert_false(rate.known);
    link_rate_find(use, 0, &rate);
    assert_false(rate.known);
    assert_false(link_rate_is_slow(&rate, 1e12));
}
