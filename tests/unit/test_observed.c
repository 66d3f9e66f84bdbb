#include "daemon/torusd/router/observed.h"
#include "tests/support/cmocka.h"

#define NOMINAL 20000u
#define WINDOW (250 * MILLISECONDS)

/* Makes the measurements in turn. Returns how often `slow` changed. */
static unsigned measure(struct observed *o, uint64_t *now, const uint32_t *kbit, unsigned count)
{
    unsigned changes = 0;

    for (unsigned i = 0; i < count; i++) {
        observed_note(o, kbit[i], *now);
        changes += observed_decide(o, NOMINAL, *now);
        *now += WINDOW;
    }
    return changes;
}

static unsigned measure_same(struct observed *o, uint64_t *now, uint32_t kbit, uint64_t time)
{
    unsigned changes = 0;

    for (uint64_t end = *now + time; *now < end;)
        changes += measure(o, now, &kbit, 1);
    return changes;
}

/* Looks at a connection at intervals: this many bytes are acknowledged in each, and data waits for this part of it.
 * Returns how often its rate is measured. */
static unsigned look(struct busy_rate *rate, unsigned times, uint64_t bytes, unsigned percent)
{
    static uint64_t now = 100 * SECONDS;
    static struct busy_look l = {.queued = true};
    const uint32_t before = rate->measured;

    busy_rate_look(rate, now, &l);
    for (unsigned i = 0; i < times; i++) {
        now += WINDOW;
        l.acked += bytes;
        l.waited += WINDOW / 1000 * percent / 100;
        busy_rate_look(rate, now, &l);
    }
    return rate->measured - before;
}

TEST(what_waits_for_the_network_has_a_rate)
{
    struct busy_rate rate = {0};

    assert_int_equal(look(&rate, 4, 500000, 100), 4);
    assert_int_equal(rate.bps, 16000000);
    assert_int_equal(look(&rate, 4, 5000, 50), 0); /* the application is the limit */
    assert_int_equal(rate.bps, 16000000);
}

/* Few bytes arrive between two looks, but they always waited. */
TEST(a_link_that_is_very_slow_has_a_rate)
{
    struct busy_rate rate = {0};

    assert_int_equal(look(&rate, 20, 2000, 100), 2);
    assert_int_equal(rate.bps, 64000);
}

/* 1 Mbit/s, over a queue that passes 64 KiB at once. */
TEST(a_few_large_segments_do_not_make_another_rate)
{
    struct busy_rate rate = {0};
    struct busy_look l = {.queued = true};
    uint32_t measured = 0;

    for (unsigned i = 0; i < 100; i++) {
        const uint64_t carried = i * WINDOW / 8000;
        l.acked = carried - carried % 65536;
        l.waited = i * WINDOW / 1000;
        busy_rate_look(&rate, 100 * SECONDS + i * WINDOW, &l);
        if (rate.measured != measured)
            assert_true(rate.bps > 600000 && rate.bps < 1500000);
        measured = rate.measured;
    }
    assert_true(measured > 30);
}

/* Returns how often 1 Mbit/s is measured in so many windows, over a link that passes packets as a whole; each measurement
 * is at most a part of 1 / `part` wrong. */
static uint32_t measure_packets(struct busy_rate *rate, uint32_t packet, unsigned windows,
                                uint64_t part)
{
    static uint64_t now;
    struct busy_look l = {.queued = true};
    const uint32_t before = rate->measured;

    for (unsigned i = 0; i < windows; i++) {
        const uint32_t measured = rate->measured;
        now += WINDOW;
        l.acked = now / 8000 / packet * packet;
        l.waited = now / 1000;
        busy_rate_look(rate, now, &l);
        if (i > 1 && rate->measured != measured)
            assert_in_range(rate->bps, 1000000 - 1000000 / part, 1000000 + 1000000 / part);
    }
    return rate->measured - before;
}

/* As soon as the packets before them have passed. */
TEST(a_link_with_small_packets_is_measured_more_often)
{
    struct busy_rate rate = {.packet = 65536};

    assert_in_range(measure_packets(&rate, 65536, 40, 2), 15, 20);
    rate.packet = 1448;
    assert_int_equal(measure_packets(&rate, 1448, 3, 2), 2);
    assert_int_equal(measure_packets(&rate, 1448, 40, 10), 40);
}

/* What was carried before is acknowledged late, and then all at once. */
TEST(acknowledgements_that_catch_up_are_no_rate)
{
    struct busy_rate rate = {.packet = 1448};
    struct busy_look l = {.queued = true};

    for (unsigned i = 0; i < 40; i++) {
        l.acked += i == 20 ? 125000u : 31250u; /* 1 Mbit/s; those of 750 ms more at once */
        l.waited += WINDOW / 1000;
        l.rtt = i < 20 ? 800000 : 50000;
        busy_rate_look(&rate, 100 * SECONDS + i * WINDOW, &l);
        assert_true(rate.bps == 0 || rate.bps == 1000000);
    }
    assert_int_equal(rate.measured, 38);
}

TEST(a_link_that_carries_nothing_has_none)
{
    struct busy_rate rate = {0};

    assert_int_equal(look(&rate, 1000, 0, 100), 0);
    assert_int_equal(rate.bps, 0);
}

TEST(a_link_is_slow_after_several_measurements)
{
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    assert_int_equal(observed_rate(&o), 0);
    assert_int_equal(measure_same(&o, &now, 2000, OBSERVED_SPAN), 0);
    assert_int_equal(o.slow, 0);
    assert_int_equal(observed_rate(&o), 2000);
    assert_int_equal(measure_same(&o, &now, 2000, WINDOW), 1);
    assert_true(o.slow > 1940 && o.slow < 2060);
}

/* Measurements of the time before do not make it seem faster than it is. */
TEST(a_link_that_becomes_slow_is_as_slow_as_it_is_now)
{
    static const uint32_t falls[] = {20000, 20000, 20000, 11000, 2000,
                                     2000,  2000,  2000,  2000,  2000};
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    assert_int_equal(measure(&o, &now, falls, sizeof falls / sizeof *falls), 1);
    assert_true(o.slow > 1940 && o.slow < 2060);
}

TEST(measurements_of_the_time_before_do_not_correct_a_slow_rate)
{
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    assert_int_equal(measure_same(&o, &now, NOMINAL, 10 * SECONDS), 0);
    assert_int_equal(measure_same(&o, &now, 2000, 2 * SECONDS), 1);
    now += OBSERVED_HOLD;
    assert_int_equal(measure_same(&o, &now, 2000, 20 * SECONDS), 0);
    assert_true(o.slow > 1940 && o.slow < 2060);
}

/* What is nearly nominal, or cannot be compared, is not slow. */
TEST(a_link_near_its_rate_is_not_slow)
{
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    assert_int_equal(measure_same(&o, &now, NOMINAL * 3 / 4, 20 * SECONDS), 0);
    for (unsigned i = 0; i < 20; i++) {
        observed_note(&o, 10, now);
        assert_false(observed_decide(&o, 0, now));
        now += WINDOW;
    }
    assert_int_equal(o.slow, 0);
}

/* A processor that is busy now and then makes some measurements too low, a burst makes one too high. */
TEST(noise_changes_nothing)
{
    static const uint32_t busy[] = {19000, 3000, 18500, 19500, 2000, 1000, 19000, 20500};
    static const uint32_t slow[] = {8000, 8400, 7700, 3000, 8100, 30000, 7900, 8200, 4000, 7800};
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(measure(&o, &now, busy, sizeof busy / sizeof *busy), 0);
    assert_int_equal(o.slow, 0);
    (void)measure_same(&o, &now, 8000, 2 * SECONDS);
    const uint32_t before = o.slow;
    assert_true(before > 7700 && before < 8300);
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(measure(&o, &now, slow, sizeof slow / sizeof *slow), 0);
    assert_int_equal(o.slow, before);
}

/* Measurements of short times differ, but not their mean. */
TEST(a_slow_rate_is_about_the_mean)
{
    static const uint32_t noisy[] = {2300, 1700, 2250, 1800, 2100, 1750, 2200, 2000, 1900};
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    assert_int_equal(measure(&o, &now, noisy, sizeof noisy / sizeof *noisy), 1);
    assert_in_range(o.slow, 1900, 2100);
}

TEST(changes_are_far_apart)
{
    struct observed o = {0};
    uint64_t now = 100 * SECONDS, begun = now;
    unsigned changes = 0;

    while (now < begun + 120 * SECONDS) {
        changes += measure_same(&o, &now, 2000, 2 * SECONDS);
        changes += measure_same(&o, &now, NOMINAL, 2 * SECONDS);
    }
    assert_true(changes > 2 && changes <= 120 * SECONDS / OBSERVED_HOLD + 1);
}

TEST(a_link_that_is_well_again_is_used_soon)
{
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    (void)measure_same(&o, &now, 2000, 10 * SECONDS);
    assert_true(o.slow > 0);
    now += 60 * SECONDS; /* nothing was measured */
    assert_int_equal(measure_same(&o, &now, NOMINAL, WINDOW), 0);
    assert_int_equal(measure_same(&o, &now, NOMINAL, WINDOW), 1);
    assert_int_equal(o.slow, 0);
}

/* It was slow, but the next bytes that wait for it show that it is not. */
TEST(a_link_that_was_slow_for_a_while_does_not_become_slow)
{
    static const uint32_t ends[] = {2000, 2000, 2000, NOMINAL, NOMINAL};
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    assert_int_equal(measure(&o, &now, ends, sizeof ends / sizeof *ends), 0);
    assert_int_equal(o.slow, 0);
}

/* One measurement spans the moment when the link becomes well: its rate is not another one of a slow link. */
TEST(a_link_that_becomes_well_has_no_other_slow_rate)
{
    static const uint32_t ends[] = {9000, NOMINAL};
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    (void)measure_same(&o, &now, 2000, 10 * SECONDS);
    assert_int_equal(measure(&o, &now, ends, 2), 0);
    assert_int_equal(measure_same(&o, &now, NOMINAL, WINDOW), 1);
    assert_int_equal(o.slow, 0);
}

/* A change that had to wait is made only if the link is still measured to be slow. */
TEST(old_measurements_do_not_make_a_link_slow)
{
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    (void)measure_same(&o, &now, 2000, 10 * SECONDS);
    assert_int_equal(measure_same(&o, &now, NOMINAL, 2 * WINDOW), 1);
    assert_int_equal(measure_same(&o, &now, 2000, 8 * WINDOW), 0);
    for (uint64_t end = now + 2 * OBSERVED_HOLD; now < end; now += WINDOW)
        assert_false(observed_decide(&o, NOMINAL, now));
    assert_int_equal(o.slow, 0);
}

TEST(another_slow_rate_counts_if_it_is_clearly_another_one)
{
    struct observed o = {0};
    uint64_t now = 100 * SECONDS;

    (void)measure_same(&o, &now, 2000, 10 * SECONDS);
    assert_int_equal(measure_same(&o, &now, 2150, 10 * SECONDS), 0);
    assert_int_equal(measure_same(&o, &now, 4000, 10 * SECONDS), 1);
    assert_true(o.slow > 3880 && o.slow < 4120);
    assert_int_equal(measure_same(&o, &now, 1000, 10 * SECONDS), 1);
    assert_true(o.slow > 970 && o.slow < 1030);
}

/* Every rate is kept to within some per cent, and is never none. */
TEST(slow_rates_are_quantised)
{
    for (uint32_t kbit = 1; kbit < UINT32_MAX / 16; kbit += kbit / 50 + 1) {
        struct observed o = {0};
        for (unsigned i = 0; i < OBSERVED_WINDOWS; i++)
            observed_note(&o, kbit, SECONDS);
        assert_true(observed_decide(&o, 2 * kbit, SECONDS));
        assert_true(o.slow > 0 && o.slow >= kbit - kbit / 32 && o.slow <= kbit + kbit / 32);
    }
}
