/* The length of frames that relays pass on. */
#include "daemon/lib/schedule/predict.h"
#include "tests/support/cmocka.h"

enum { ONE = 1400, TWO = 2828 }; /* bytes of blocks in full packets */

TEST(frames_on_slow_cables_are_packets)
{
    assert_int_equal(relay_frame(2.5, 32, 0), ONE);
    assert_int_equal(relay_frame(10, 8, 0), ONE);
    assert_int_equal(relay_frame(10, 1, 0), ONE); /* never less than a packet */
    assert_int_equal(relay_frame(100, 1, 0), ONE);
    assert_int_equal(relay_frame(1e-6, 1, 0), ONE);
}

TEST(frames_are_longer_on_faster_links)
{
    uint32_t before = 0;

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

TEST(processors_with_many_daemons_are_spared)
{
    assert_int_equal(relay_frame(20, 1, 0), ONE);
    assert_int_equal(relay_frame(20, 8, 0), TWO);
    assert_in_range(relay_frame(20, 40, 0), TWO, RELAY_FRAME_MOST - 1);
    assert_int_equal(relay_frame(20, 512, 0), RELAY_FRAME_MOST);
}

TEST(frames_within_the_burst_are_not_cut)
{
    assert_int_equal(relay_frame(10, 8, 64 * 1024), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(10, 8, UINT64_MAX), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(10, 8, 1514), ONE);
    assert_int_equal(relay_frame(10, 8, 3000), TWO);
    assert_int_equal(relay_frame(100, 8, 3000), relay_frame(100, 8, 0));
}

TEST(links_of_unknown_rate_have_long_frames)
{
    assert_int_equal(relay_frame(0, 1, 0), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame(0, 32, 0), RELAY_FRAME_MOST);
}

/* Many frames of a message make hops cheap; then longer ones spare processors and headers. */
TEST(long_messages_have_longer_frames)
{
    assert_int_equal(relay_frame_of(ONE, 0), ONE);
    assert_int_equal(relay_frame_of(ONE, 64 * 1024), ONE);
    assert_int_equal(relay_frame_of(ONE, 64 * TWO), TWO);
    assert_int_equal(relay_frame_of(TWO, 64 * 1024), TWO);
    assert_int_equal(relay_frame_of(ONE, 1024 * 1024), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame_of(ONE, UINT64_MAX), RELAY_FRAME_MOST);
    assert_int_equal(relay_frame_of(RELAY_FRAME_MOST, 1), RELAY_FRAME_MOST);
}
