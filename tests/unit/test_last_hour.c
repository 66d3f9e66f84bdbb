/* What counters have counted in the last hour. */
#include "daemon/lib/base/last_hour.h"
#include "tests/support/cmocka.h"

#define MINUTE UINT64_C(60000000000)

static struct last_hour h;
static uint64_t value[LAST_HOUR_VALUES], risen[LAST_HOUR_VALUES];

static int begin(void **state)
{
    memset(&h, 0, sizeof h);
    memset(value, 0, sizeof value);
    return 0;
}

TEST_WITH(begin, NULL, nothing_was_noted)
{
    value[0] = 7;
    assert_int_equal(last_hour_risen(&h, 5 * MINUTE, value, risen), 0);
    assert_int_equal(risen[0], 0);
}

/* What was counted before is forgotten after an hour, and not before. */
TEST_WITH(begin, NULL, an_old_count_is_no_present_one)
{
    for (uint64_t minute = 0; minute <= 600; minute++) {
        if (minute == 100)
            value[1] += 50; /* once */
        value[0]++;
        last_hour_note(&h, minute * MINUTE, value);
        const uint64_t time = last_hour_risen(&h, minute * MINUTE, value, risen);
        assert_true(time <= 60 * MINUTE);
        if (minute >= 60)
            assert_true(time >= 55 * MINUTE && risen[0] >= 55 && risen[0] <= 60);
        if (minute < 100 || minute >= 161)
            assert_int_equal(risen[1], 0);
        else if (minute > 100 && minute < 155)
            assert_int_equal(risen[1], 50);
    }
}

/* Notes may stop, while a link is down. */
TEST_WITH(begin, NULL, notes_that_are_old)
{
    last_hour_note(&h, 0, value);
    last_hour_note(&h, 10 * MINUTE, value);
    value[2] = 3;
    assert_int_equal(last_hour_risen(&h, 500 * MINUTE, value, risen), 490 * MINUTE);
    assert_int_equal(risen[2], 3);
}

TEST_WITH(begin, NULL, counters_that_begin_again)
{
    value[0] = 1000;
    last_hour_note(&h, 0, value);
    value[0] = 4;
    assert_true(last_hour_risen(&h, 0, value, risen) > 0);
    assert_int_equal(risen[0], 4);
}
