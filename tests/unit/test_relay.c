/* The length of frames that relays pass on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/lib/schedule/predict.h"

enum { ONE = 1400, TWO = 2828 }; /* bytes of blocks in full packets */

static void frames_on_slow_cables_are_packets(void **state)
{
    (void)state;
    assert_int_equal(relay_frame(2.5, 32, 0), ONE);
    assert_int_equal(relay_frame(10, 8, 0), ONE);
    assert_int_equal(relay_frame(10, 1, 0), ONE); /* never less than a packet */
    assert_int_equal(relay_frame(100, 1, 0), ONE);
    assert_int_equal(relay_frame(1e-6, 1, 0), ONE);
}

static void frames_are_longer_on_faster_links(void **state)
{
    uint32_t before = 0;

    (void)state;
    assert_int_equal(relay_frame(20, 8, 0), TWO);
    assert_int_equal(relay_frame(160, 1, 0), TWO);
    for (double mbit = 1; mbit < 2000; mbit *= 1.01) {
        uint32_t frame = relay_frame(mbit, 1, 0);
        assert_in_range(frame, ONE, RELAY_FRAME_MOST);
        assert_in_range(frame, before, RELAY_FRAME_MOST);
        /* A frame has one packet less than the link carries in 160 us, or fewer. */
        assert_true(frame == ONE || frame == RELAY_FRAME_MOST || frame <= mbit * 20);
        before = frame;
    }
    assert_int_equal(relay_frame(1000, 1, 0), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(1e5, 1, 0), RELAY_FRAME_MOST);
}

static void processors_with_many_daemons_are_spared(void **state)
{
    (void)state;
    assert_int_equal(relay_frame(20, 1, 0), ONE);
    assert_int_equal(relay_frame(20, 8, 0), TWO);
    assert_in_range(relay_frame(20, 40, 0), TWO, RELAY_FRAME_MOST - 1);
    assert_int_equal(relay_frame(20, 512, 0), RELAY_FRAME_MOST);
}

static void frames_within_the_burst_are_not_cut(void **state)
{
    (void)state;
    assert_int_equal(relay_frame(10, 8, 64 * 1024), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(10, 8, UINT64_MAX), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(10, 8, 1514), ONE);
    assert_int_equal(relay_frame(10, 8, 3000), TWO);
    assert_int_equal(relay_frame(100, 8, 3000), relay_frame(100, 8, 0));
}

static void links_of_unknown_rate_have_long_frames(void **state)
{
    (void)state;
    assert_int_equal(relay_frame(0, 1, 0), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(0, 32, 0), RELAY_FRAME_MOST);
}

/* Many frames of a message make hops cheap; then longer ones spare processors and headers. */
static void long_messages_have_longer_frames(void **state)
{
    (void)state;
    assert_int_equal(relay_frame_of(ONE, 0), ONE);
    assert_int_equal(relay_frame_of(ONE, 64 * 1024), ONE);
    assert_int_equal(relay_frame_of(ONE, 64 * TWO), TWO);
    assert_int_equal(relay_frame_of(TWO, 64 * 1024), TWO);
    assert_int_equal(relay_frame_of(ONE, 1024 * 1024), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame_of(ONE, UINT64_MAX), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame_of(RELAY_FRAME_MOST, 1), RELAY_FRAME_MOST);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_on_slow_cables_are_packets),
        cmocka_unit_test(frames_are_longer_on_faster_links),
        cmocka_unit_test(processors_with_many_daemons_are_spared),
        cmocka_unit_test(frames_within_the_burst_are_not_cut),
        cmocka_unit_test(links_of_unknown_rate_have_long_frames),
        cmocka_unit_test(long_messages_have_longer_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
