/* Times between two moments: a moment that is later than "now" has been 0 ago, not 584 years. */
#include "daemon/lib/base/limits.h"
#include "daemon/torusd/router/flood_limit.h"
#include "daemon/torusd/router/link_clock.h"
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

/* A port that has used up its messages gets no new ones because a clock was read a little earlier. */
TEST(floods_stay_limited)
{
    static const struct flood_rules rules = {.kept = 8, .rate = 4, .burst = 8, .initiator = 4};
    struct flood_limit f;
    unsigned taken = 0;

    assert_int_equal(flood_limit_init(&f, &rules, 1), 0);
    for (uint32_t i = 0; i < 16; i++)
        taken += flood_limit_take(&f, 0, &(struct flooded){.initiator = i, .id = 1, .cost = 1},
                                  NOW) != NULL;
    assert_int_equal(taken, 8);
    assert_null(
        flood_limit_take(&f, 0, &(struct flooded){.initiator = 99, .id = 1, .cost = 1}, NOW - 1));
    flood_limit_free(&f);
}

TEST(a_heartbeat_is_not_held_for_ages)
{
    const struct link_clock clock = {.peer_at = 5, .heard_at = NOW};
    struct peer_heartbeat beat = {0};

    link_clock_fill(&clock, &beat, NOW - 1);
    assert_int_equal(beat.held, 0);
}
