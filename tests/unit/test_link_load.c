/* Which times tell what a link can carry, and which rate follows from them. */
#include "daemon/lib/trace/link_load.h"
#include "tests/support/cmocka.h"

#define MS UINT64_C(1000000)

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

/* What is on a long way is not held up: a span is longer than the way and back. */
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
