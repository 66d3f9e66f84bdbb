/* Times between two moments: a moment that is later than "now" has been 0 ago, not 584 years. */
#include "daemon/lib/base/limits.h"
#include "daemon/torusd/copy/calls.h"
#include "daemon/torusd/router/link_clock.h"
#include "daemon/torusd/survey/bounds.h"
#include "proto/elapsed.h"
#include "proto/peer/peer_message.h"
#include "tests/support/cmocka.h"

#define NOW (100 * SECONDS)

TEST(a_later_moment_is_now)
{
    assert_int_equal(elapsed(3, 10), 7);
    assert_int_equal(elapsed(10, 10), 0);
    assert_int_equal(elapsed(11, 10), 0);
    assert_int_equal(elapsed(UINT64_MAX, 0), 0);
    assert_true(elapsed(0, UINT64_MAX) == UINT64_MAX);
}

/* A port that has used up its queries gets no new ones because a clock was read a little earlier. */
TEST(queries_stay_limited)
{
    struct heard h;
    unsigned taken = 0;

    assert_int_equal(heard_init(&h, 1), 0);
    for (uint32_t i = 0; i < 2 * HEARD_BURST; i++)
        taken +=
            heard_add(&h, 0, &(struct peer_survey_query){.asker = i, .id = i + 1}, NOW) != NULL;
    assert_true(taken > 0 && taken < 2 * HEARD_BURST);
    assert_null(heard_add(&h, 0, &(struct peer_survey_query){.asker = 99, .id = 1}, NOW - 1));
    heard_free(&h);
}

TEST(calls_of_copies_stay_limited)
{
    struct copy_calls c;
    unsigned taken = 0;

    assert_int_equal(copy_calls_init(&c, 1), 0);
    for (uint32_t i = 0; i < 2 * COPY_CALLS_BURST; i++)
        taken += copy_calls_take(
            &c, 0, &(struct peer_copy_call){.asker = i, .id = 1, .attempt = 1, .number = 1}, NOW);
    assert_int_equal(taken, COPY_CALLS_BURST);
    assert_false(copy_calls_take(
        &c, 0, &(struct peer_copy_call){.asker = 999, .id = 1, .attempt = 1, .number = 1},
        NOW - 1));
    copy_calls_free(&c);
}

TEST(a_heartbeat_is_not_held_for_ages)
{
    const struct link_clock clock = {.peer_at = 5, .heard_at = NOW};
    struct peer_heartbeat beat = {0};

    link_clock_fill(&clock, &beat, NOW - 1);
    assert_int_equal(beat.held, 0);
}
