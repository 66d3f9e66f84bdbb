/* The line of the progress bar. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <torus/torus.h>

#include "client/cli/progress.h"

static const struct torus_progress half = {
    .exchange = "0.7.1",
    .state = TORUS_STATE_RUNNING,
    .round = 3,
    .rounds = 12,
    .done_bytes = 512 * 1024,
    .total_bytes = 1024 * 1024,
};

static void test_line(void **state)
{
    char line[256];
    size_t n = progress_line(line, sizeof line, 80, &half, 65000);

    (void)state;
    assert_int_equal(n, strlen(line));
    assert_string_equal(
        line, "running, round 3 of 12 [============>           ]  50 %  512 KiB of 1 MiB  1:05");
    (void)progress_line(line, sizeof line, 60, &half, 65000);
    assert_string_equal(line, "running, round 3 of 12   50 %  512 KiB of 1 MiB  1:05");
    (void)progress_line(line, sizeof line, 50, &half, 65000);
    assert_string_equal(line, "running, round 3 of 12 [======>     ]  50 %  1:05");
    (void)progress_line(line, sizeof line, 30, &half, 65000);
    assert_string_equal(line, "[=======>       ]  50 %  1:05");
    (void)progress_line(line, sizeof line, 14, &half, 65000);
    assert_string_equal(line, "  50 %  1:05");
}

static void test_repetitions(void **state)
{
    struct torus_progress p = half;
    char line[256];

    (void)state;
    p.repetition = 6;
    p.repeat = 100;
    (void)progress_line(line, sizeof line, 80, &p, 65000);
    assert_non_null(strstr(line, "running, repetition 7 of 100 "));
    p.repetition = UINT32_MAX - 1;
    p.repeat = UINT32_MAX;
    assert_true(progress_line(line, sizeof line, 40, &p, 65000) < 40);
}

static void test_waiting(void **state)
{
    struct torus_progress p = {.exchange = "0.7.1", .state = TORUS_STATE_WAITING};
    char line[256];

    (void)state;
    (void)progress_line(line, sizeof line, 80, &p, 2000);
    assert_string_equal(line, "waiting for its turn  0:02");
    p.state = TORUS_STATE_ENTERED;
    (void)progress_line(line, sizeof line, 80, &p, 2000);
    assert_string_equal(line, "waiting for the other nodes  0:02");
}

static void test_never_too_wide(void **state)
{
    char line[256];

    (void)state;
    for (size_t columns = 0; columns < 300; columns++) {
        size_t n = progress_line(line, sizeof line, columns, &half, 5000);
        assert_int_equal(n, strlen(line));
        assert_true(columns == 0 ? n == 0 : n < columns);
    }
}

static void test_odd_progress(void **state)
{
    struct torus_progress p = {.exchange = ""};
    char line[256];

    (void)state;
    (void)progress_line(line, sizeof line, 80, &p, 2000);
    assert_string_equal(line, "asking the daemon  0:02");
    p.state = TORUS_STATE_RUNNING;
    p.done_bytes = UINT64_MAX;
    p.total_bytes = 1;
    (void)progress_line(line, sizeof line, 80, &p, 2000);
    assert_non_null(strstr(line, "100 %"));
    p.state = TORUS_STATE_ENTERED;
    p.round = p.rounds = p.total_bytes = UINT64_MAX;
    (void)progress_line(line, sizeof line, 250, &p, INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),         cmocka_unit_test(test_repetitions),
        cmocka_unit_test(test_waiting),      cmocka_unit_test(test_never_too_wide),
        cmocka_unit_test(test_odd_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
