/* The line of the progress bar. */
#include <torus/torus.h>

#include "client/cli/terminal/progress.h"
#include "tests/support/cmocka.h"

/* The line after so many milliseconds, without a known rate. */
#define AFTER(ms) (&(const struct progress_pace){.elapsed_ms = (ms), .left_ms = -1})

static const struct torus_progress half = {
    .exchange = "0.7.1",
    .state = TORUS_STATE_RUNNING,
    .round = 3,
    .rounds = 12,
    .done_bytes = 512 * 1024,
    .total_bytes = 1024 * 1024,
};

TEST(test_line)
{
    char line[256];
    size_t n = progress_line(line, sizeof line, 80, &half, AFTER(65000));

    assert_int_equal(n, strlen(line));
    assert_string_equal(
        line, "running, 3 of 12 rounds [===========>           ]  50 %  512 KiB of 1 MiB  1:05");
    (void)progress_line(line, sizeof line, 60, &half, AFTER(65000));
    assert_string_equal(line, "running, 3 of 12 rounds   50 %  512 KiB of 1 MiB  1:05");
    (void)progress_line(line, sizeof line, 50, &half, AFTER(65000));
    assert_string_equal(line, "running [====>    ]  50 %  512 KiB of 1 MiB  1:05");
    (void)progress_line(line, sizeof line, 30, &half, AFTER(65000));
    assert_string_equal(line, "running   50 %  1:05");
    (void)progress_line(line, sizeof line, 14, &half, AFTER(65000));
    assert_string_equal(line, "  50 %  1:05");
}

TEST(test_pace_in_the_line)
{
    struct torus_progress p = half;
    struct progress_pace pace = {.elapsed_ms = 65000, .left_ms = 3725000, .bytes_per_second = 8192};
    char line[256];

    (void)progress_line(line, sizeof line, 120, &p, &pace);
    assert_string_equal(line,
                        "running, 3 of 12 rounds [===============>              ]  50 %  512 KiB "
                        "of 1 MiB  8 KiB/s  1:05, 1:02:05 left");
    (void)progress_line(line, sizeof line, 70, &p, &pace); /* less of it where there is no room */
    assert_string_equal(line, "running   50 %  512 KiB of 1 MiB  8 KiB/s  1:05, 1:02:05 left");
    (void)progress_line(line, sizeof line, 60, &p, &pace);
    assert_string_equal(line, "running [=======>      ]  50 %  8 KiB/s  1:05, 1:02:05 left");
    p.total_bytes = 0; /* files: by rounds */
    (void)progress_line(line, sizeof line, 100, &p, &pace);
    assert_non_null(strstr(line, "]  25 %  512 KiB  8 KiB/s  1:05, 1:02:05 left"));
    p.rounds = 1; /* of which there is one */
    (void)progress_line(line, sizeof line, 100, &p, AFTER(2000));
    assert_string_equal(line, "running  512 KiB  0:02");
}

TEST(test_pace)
{
    struct torus_progress p = {.exchange = "", .total_bytes = 1000000};
    struct progress shown = {.began_ms = 1000};
    struct progress_pace pace;

    pace = progress_pace(&shown, &p, 6000); /* nothing has moved */
    assert_true(pace.elapsed_ms == 5000 && pace.left_ms < 0 && pace.bytes_per_second == 0);
    p.done_bytes = 100000;
    pace = progress_pace(&shown, &p, 7000); /* it moves from here on */
    assert_true(pace.left_ms < 0 && pace.bytes_per_second == 0);
    p.done_bytes = 300000;
    pace = progress_pace(&shown, &p, 9000);
    assert_true(pace.bytes_per_second > 99999 && pace.bytes_per_second < 100001);
    assert_true(pace.left_ms > 6990 && pace.left_ms < 7010);
    p.done_bytes = 50000; /* it was retried */
    pace = progress_pace(&shown, &p, 10000);
    assert_true(pace.left_ms < 0 && pace.bytes_per_second == 0);
    p.done_bytes = 150000;
    pace = progress_pace(&shown, &p, 12000);
    assert_true(pace.left_ms > 16900 && pace.left_ms < 17100);
    p = (struct torus_progress){.exchange = "", .rounds = 1, .done_bytes = 5000};
    shown = (struct progress){.began_ms = 1000};
    (void)progress_pace(&shown, &p, 2000);
    p.done_bytes = 9000; /* a file, whose size is not known */
    pace = progress_pace(&shown, &p, 4000);
    assert_true(pace.left_ms < 0 && pace.bytes_per_second > 1999 && pace.bytes_per_second < 2001);
}

TEST(test_repetitions)
{
    struct torus_progress p = half;
    char line[256];

    p.repetition = 6;
    p.repeat = 100;
    (void)progress_line(line, sizeof line, 80, &p, AFTER(65000));
    assert_non_null(strstr(line, "running, 6 of 100 repetitions "));
    p.repetition = UINT32_MAX - 1;
    p.repeat = UINT32_MAX;
    assert_true(progress_line(line, sizeof line, 40, &p, AFTER(65000)) < 40);
}

TEST(test_waiting)
{
    struct torus_progress p = {.exchange = "0.7.1", .state = TORUS_STATE_WAITING};
    char line[256];

    (void)progress_line(line, sizeof line, 80, &p, AFTER(2000));
    assert_string_equal(line, "in the start queue  0:02");
    p.state = TORUS_STATE_ENTERED;
    (void)progress_line(line, sizeof line, 80, &p, AFTER(2000));
    assert_string_equal(line, "waiting for the other nodes  0:02");
    p.missing = "0";
    p.missing_count = 1;
    (void)progress_line(line, sizeof line, 80, &p, AFTER(2000));
    assert_string_equal(line, "waiting for node 0  0:02");
    p.state = TORUS_STATE_PREPARING;
    p.missing = "3, 7 ...";
    p.missing_count = 9;
    (void)progress_line(line, sizeof line, 80, &p, AFTER(2000));
    assert_string_equal(line, "waiting for nodes 3, 7 ...  0:02");
    p.state = TORUS_STATE_WAITING;
    p.waits_for = "node 4 (1,0)";
    (void)progress_line(line, sizeof line, 80, &p, AFTER(2000));
    assert_string_equal(line, "waiting for node 4 (1,0)  0:02");
}

TEST(test_never_too_wide)
{
    char line[256];

    for (size_t columns = 0; columns < 300; columns++) {
        size_t n = progress_line(line, sizeof line, columns, &half, AFTER(5000));
        assert_int_equal(n, strlen(line));
        assert_true(columns == 0 ? n == 0 : n < columns);
    }
}

TEST(test_odd_progress)
{
    struct torus_progress p = {.exchange = ""};
    char line[256];

    (void)progress_line(line, sizeof line, 80, &p, AFTER(2000));
    assert_string_equal(line, "asking the daemon  0:02");
    p.state = TORUS_STATE_RUNNING;
    p.done_bytes = UINT64_MAX;
    p.total_bytes = 1;
    (void)progress_line(line, sizeof line, 80, &p, AFTER(2000));
    assert_non_null(strstr(line, "100 %"));
    p.state = TORUS_STATE_ENTERED;
    p.round = p.rounds = p.total_bytes = UINT64_MAX;
    (void)progress_line(line, sizeof line, 250, &p, AFTER(INT64_MAX));
}
