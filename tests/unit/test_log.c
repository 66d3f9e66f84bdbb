/* The log's thread: a caller does not wait for a reader that hangs. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "tests/support/cmocka.h"

static int saved = -1, reader = -1;

/* The log can be read from `reader`. */
static int to_pipe(void **state)
{
    int ends[2];

    saved = dup(STDERR_FILENO);
    if (saved < 0 || pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0)
        return -1;
    reader = ends[0];
    return close(ends[1]);
}

static int back(void **state)
{
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    return close(reader);
}

/* The next line, without its time and level. */
static const char *next_line(char line[1024])
{
    size_t n = 0;

    while (n < 1023 && read(reader, line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    return n > 33 ? line + 33 : "";
}

static void expect_line(const char *wanted)
{
    char line[1024];
    assert_string_equal(next_line(line), wanted);
}

TEST_WITH(to_pipe, back, lines_come_in_order)
{
    char line[1024], wanted[40];

    log_info("before");
    log_begin();
    for (int i = 0; i < 100; i++)
        log_info("line %d", i);
    log_end();
    log_info("after %s", "a\nb");
    expect_line("before");
    for (int i = 0; i < 100; i++) {
        (void)snprintf(wanted, sizeof wanted, "line %d", i);
        assert_string_equal(next_line(line), wanted);
    }
    expect_line("after a?b");
}

/* The pipe is full long before the end. */
TEST_WITH(to_pipe, back, a_reader_of_the_log_that_hangs_is_not_waited_for)
{
    enum { LINES = 10000 };
    char line[1024];
    int lost = 0, seen = 0;

    log_set_level(LOG_LEVEL_DEBUG); /* of which there may be any number */
    log_begin();
    for (int i = 0; i < LINES; i++)
        log_debug("%d of many lines that are written while nobody reads them", i);
    while (seen + lost < LINES) {
        const char *text = next_line(line);
        if (strstr(text, "lines are missing here") != NULL) {
            lost += atoi(text);
            continue;
        }
        assert_int_equal(atoi(text), seen + lost);
        seen++;
    }
    assert_int_equal(seen + lost, LINES);
    assert_true(lost > 0);
    log_info("now it is read again");
    expect_line("now it is read again");
    log_end();
    log_set_level(LOG_LEVEL_INFO);
}

/* In a process of its own, because its thread hangs for ever. */
TEST_WITH(to_pipe, back, nobody_reads_any_more)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        log_set_level(LOG_LEVEL_DEBUG);
        log_begin();
        for (int i = 0; i < 10000; i++)
            log_debug("%d of many lines that are never read", i);
        log_end();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
}

/* Every lost line is counted, and lines do not run into each other. */
TEST_WITH(to_pipe, back, a_disk_is_full_for_a_while)
{
    enum { LINES = 100, ROOM = 2000 };
    struct rlimit limit, little;
    int pipe_end = dup(STDERR_FILENO), told = 0, seen = 0, torn = 0;
    char line[1024], *text;
    FILE *file = tmpfile();

    assert_non_null(file);
    (void)fflush(NULL);
    assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    little = limit;
    little.rlim_cur = ROOM;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    log_begin();
    for (int i = 0; i < LINES; i++)
        log_info("%d of some lines", i);
    log_end();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    log_begin();
    log_info("%d of some lines", LINES);
    log_end();
    assert_int_equal(dup2(pipe_end, STDERR_FILENO), STDERR_FILENO);
    (void)close(pipe_end);
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL) {
        text = strlen(line) > 33 ? line + 33 : line;
        if (strstr(text, "lines are missing here") != NULL) {
            assert_int_equal(told, 0);
            told = atoi(text);
        } else if (strstr(text, " of some lines\n") != NULL) {
            assert_int_equal(atoi(text), seen + told);
            seen++;
        } else {
            torn++;
        }
    }
    (void)fclose(file);
    assert_true(told > 0 && torn <= 1);
    assert_int_equal(seen + told, LINES + 1);
}

/* A kind that repeats is only counted after a while; other kinds are written. */
TEST_WITH(to_pipe, back, many_of_a_kind_are_counted)
{
    enum { LINES = (int)LOG_KIND_AT_ONCE + 100000 };
    int status, seen = 0, left_out = 0;
    char line[1024];
    bool other = false;
    pid_t child = fork();

    if (child == 0) {
        log_begin();
        for (int i = 0; i < LINES; i++)
            log_warning("failure %d", i);
        log_info("something else");
        log_end();
        _exit(0);
    }
    while (seen + left_out < LINES) {
        const char *text = next_line(line);
        other = other || strcmp(text, "something else") == 0;
        seen += strncmp(text, "failure ", 8) == 0;
        if (strstr(text, " more lines like this one were left out in ") != NULL)
            left_out += atoi(text);
    }
    assert_int_equal(seen + left_out, LINES);
    assert_in_range(seen, LOG_KIND_AT_ONCE, LINES / 2);
    assert_true(other);
    assert_contains(line, ": failure ");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
}

#define SECOND UINT64_C(1000000000)

TEST(how_many_of_a_kind)
{
    static const char *const formats[] = {"one", "two"};
    static struct log_kinds kinds;
    const uint64_t begin = 1000 * SECOND;
    unsigned taken = 0;

    assert_null(log_kinds_left_out(&kinds, begin, 0));
    for (unsigned i = 0; i < 3 * LOG_KIND_AT_ONCE; i++)
        taken += log_kinds_take(&kinds, formats[0], 1, "text", begin);
    assert_int_equal(taken, LOG_KIND_AT_ONCE);
    assert_true(log_kinds_take(&kinds, formats[1], 1, "text", begin));
    /* One more with each second; all after a while. */
    assert_false(log_kinds_take(&kinds, formats[0], 1, "text", begin + SECOND - 1));
    assert_true(log_kinds_take(&kinds, formats[0], 1, "text", begin + SECOND));
    assert_false(log_kinds_take(&kinds, formats[0], 2, "last", begin + SECOND));
    assert_null(log_kinds_left_out(&kinds, begin + SECOND, SECOND + 1));
    struct log_kind *k = log_kinds_left_out(&kinds, begin + SECOND, SECOND);
    assert_non_null(k);
    assert_int_equal(k->left_out, 2 * LOG_KIND_AT_ONCE + 2);
    assert_int_equal(k->level, 2);
    assert_string_equal(k->last, "last");
    k->left_out = 0;
    assert_null(log_kinds_left_out(&kinds, begin + SECOND, 0));
    taken = 0;
    for (unsigned i = 0; i < 3 * LOG_KIND_AT_ONCE; i++)
        taken += log_kinds_take(&kinds, formats[0], 1, "text", begin + 5000 * SECOND);
    assert_int_equal(taken, LOG_KIND_AT_ONCE);
}
