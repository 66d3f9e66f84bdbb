/* The line that shows how far a copy is. */
#include "client/cli/copying/copy_progress.h"
#include "tests/support/cmocka.h"

static struct copy_watch watch;

static void report(enum torus_copy_phase phase, uint64_t files, uint64_t bytes)
{
    const struct torus_copy_progress progress = {
        .phase = phase, .files = files, .bytes = bytes, .bytes_of = 1000, .waits_for = ""};
    assert_int_equal(copy_watch_update(&watch, &progress), 0);
}

TEST(each_phase_has_its_words)
{
    copy_watch_begin(&watch, false);
    report(TORUS_COPY_CALLING, 7, 0);
    assert_string_equal(watch.doing, "calling the nodes");
    report(TORUS_COPY_READING, 1, 0);
    assert_string_equal(watch.doing, "reading, 1 file");
    report(TORUS_COPY_COMPARING, 1200, 0);
    assert_string_equal(watch.doing, "comparing, 1200 files");
    assert_false(watch.moved);
    report(TORUS_COPY_MOVING, 1200, 10);
    assert_string_equal(watch.doing, "moving");
    assert_true(watch.moved);
    report(TORUS_COPY_PLACING, 1200, 10);
    assert_string_equal(watch.doing, "placing");
    assert_true(watch.moved);
    copy_watch_end(&watch);

    copy_watch_begin(&watch, true); /* nothing gets a place */
    report(TORUS_COPY_PLACING, 1200, 0);
    assert_string_equal(watch.doing, "collecting the results");
    copy_watch_end(&watch);
}

TEST(the_line_says_what_the_copy_does)
{
    const struct torus_progress progress = {.exchange = "",
                                            .state = TORUS_STATE_RUNNING,
                                            .done_bytes = 512,
                                            .total_bytes = 1024,
                                            .waits_for = ""};
    const struct progress_pace pace = {.elapsed_ms = 5000, .left_ms = -1, .doing = "moving"};
    char line[128];

    (void)progress_line(line, sizeof line, 60, &progress, &pace);
    assert_string_equal(line, "moving [===========>          ]  50 %  512 B of 1 KiB  0:05");
}

/* The bytes of an earlier attempt, and the time between two attempts, are no part of the pace. */
TEST(an_attempt_has_a_pace_of_its_own)
{
    copy_watch_begin(&watch, false);
    watch.progress.shown = false;
    report(TORUS_COPY_MOVING, 0, 100);
    assert_int_equal(watch.progress.from_bytes, 100);
    report(TORUS_COPY_MOVING, 0, 600);
    assert_int_equal(watch.progress.from_bytes, 100);
    report(TORUS_COPY_CALLING, 0, 0);
    assert_int_equal(watch.progress.from_ms, 0);
    report(TORUS_COPY_MOVING, 0, 200); /* more than where the first attempt began */
    assert_int_equal(watch.progress.from_bytes, 200);
    report(TORUS_COPY_MOVING, 0, 150); /* another attempt, whose other phases were not seen */
    assert_int_equal(watch.progress.from_bytes, 150);
    copy_watch_end(&watch);
}
