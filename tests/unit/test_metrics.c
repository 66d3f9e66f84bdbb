/* The text of metrics, which support/openmetrics.py reads from real daemons; and which format a client gets. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/metrics/exposition.h"
#include "daemon/torusd/metrics/room.h"
#include "tests/support/cmocka.h"

static const struct metric gauge = {"a_gauge", "", METRIC_GAUGE, "A value"};
static const struct metric counter = {"b_bytes", "bytes", METRIC_COUNTER, "Bytes"};
static const struct metric info = {"c", "", METRIC_INFO, "Texts"};
static const struct metric times = {"d_seconds", "seconds", METRIC_HISTOGRAM, "Times"};

/* Writes metrics of all kinds; the caller frees the text. */
static char *write_all(bool openmetrics, size_t *length)
{
    static const char hostile[] = "\"}\\ \n# EOF\n\x01\xff{a=\"b\"} 7";
    const struct label labels[] = {{"one", hostile}, {"two", ""}};
    struct histogram h = {0};
    struct exposition x;

    histogram_add(&h, 0.001); /* a bound belongs to its bucket */
    histogram_add(&h, 0.002);
    histogram_add(&h, 1e9);
    exposition_begin(&x, openmetrics);
    exposition_single(&x, &gauge, -1.5);
    exposition_metric(&x, &counter);
    exposition_value(&x, labels, 2, 9007199254740991.0);
    exposition_value(&x, labels, 1, 0);
    exposition_metric(&x, &info);
    exposition_value(&x, labels, 2, 1);
    exposition_metric(&x, &times);
    exposition_histogram(&x, &h);
    return exposition_end(&x, length);
}

static void check_text(bool openmetrics, const char *expected)
{
    size_t length;
    char *text = write_all(openmetrics, &length);

    assert_non_null(text);
    assert_string_equal(text, expected);
    assert_int_equal(strlen(text), length);
    free(text);
}

/* What must be escaped or replaced in a label. */
#define ONE "{one=\"\\\"}\\\\ ?# EOF???{a=\\\"b\\\"} 7\""

#define BUCKETS                                                                                    \
    "d_seconds_bucket{le=\"0.001\"} 1\n"                                                           \
    "d_seconds_bucket{le=\"0.003\"} 2\n"                                                           \
    "d_seconds_bucket{le=\"0.01\"} 2\n"                                                            \
    "d_seconds_bucket{le=\"0.03\"} 2\n"                                                            \
    "d_seconds_bucket{le=\"0.1\"} 2\n"                                                             \
    "d_seconds_bucket{le=\"0.3\"} 2\n"                                                             \
    "d_seconds_bucket{le=\"1.0\"} 2\n"                                                             \
    "d_seconds_bucket{le=\"3.0\"} 2\n"                                                             \
    "d_seconds_bucket{le=\"10.0\"} 2\n"                                                            \
    "d_seconds_bucket{le=\"30.0\"} 2\n"                                                            \
    "d_seconds_bucket{le=\"100.0\"} 2\n"                                                           \
    "d_seconds_bucket{le=\"300.0\"} 2\n"                                                           \
    "d_seconds_bucket{le=\"1000.0\"} 2\n"                                                          \
    "d_seconds_bucket{le=\"3000.0\"} 2\n"                                                          \
    "d_seconds_bucket{le=\"+Inf\"} 3\n"                                                            \
    "d_seconds_count 3\n"                                                                          \
    "d_seconds_sum 1000000000.003\n"

TEST(the_text_is_openmetrics)
{
    check_text(true, "# TYPE a_gauge gauge\n"
                     "# HELP a_gauge A value.\n"
                     "a_gauge -1.5\n"
                     "# TYPE b_bytes counter\n"
                     "# UNIT b_bytes bytes\n"
                     "# HELP b_bytes Bytes.\n"
                     "b_bytes_total" ONE ",two=\"\"} 9007199254740991\n"
                     "b_bytes_total" ONE "} 0\n"
                     "# TYPE c info\n"
                     "# HELP c Texts.\n"
                     "c_info" ONE ",two=\"\"} 1\n"
                     "# TYPE d_seconds histogram\n"
                     "# UNIT d_seconds seconds\n"
                     "# HELP d_seconds Times.\n" BUCKETS "# EOF\n");
}

TEST(the_older_format_names_counters_in_full)
{
    check_text(false, "# TYPE a_gauge gauge\n"
                      "# HELP a_gauge A value.\n"
                      "a_gauge -1.5\n"
                      "# TYPE b_bytes_total counter\n"
                      "# HELP b_bytes_total Bytes.\n"
                      "b_bytes_total" ONE ",two=\"\"} 9007199254740991\n"
                      "b_bytes_total" ONE "} 0\n"
                      "# TYPE c_info gauge\n"
                      "# HELP c_info Texts.\n"
                      "c_info" ONE ",two=\"\"} 1\n"
                      "# TYPE d_seconds histogram\n"
                      "# HELP d_seconds Times.\n" BUCKETS);
}

TEST(a_text_that_is_too_long_is_given_up)
{
    struct exposition x;
    size_t length = 1;

    exposition_begin(&x, true);
    exposition_metric(&x, &gauge);
    for (unsigned i = 0; x.text != NULL; i++) {
        assert_true(x.length <= EXPOSITION_MOST);
        exposition_value(&x, NULL, 0, i);
    }
    exposition_value(&x, NULL, 0, 1);
    assert_null(exposition_end(&x, &length));
    assert_int_equal(length, 0);
}

TEST(clients_get_the_format_that_they_prefer)
{
    static const struct {
        const char *header;
        bool openmetrics;
    } cases[] = {
        {NULL, true},
        {"", true},
        {"*/*", true},
        {"text/plain", false},
        {"Text/Plain;version=0.0.4;q=0.5, */*;q=0.1", false},
        {"text/html,application/xhtml+xml,*/*;q=0.8", false},
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         true},
        {"application/openmetrics-text; version=1.0.0; q=0.2,text/plain;q=0.3", false},
        {"application/openmetrics-text;q=0", false},
        {"application/openmetrics-text;q=1e999, text/plain", true},
        {"application/openmetrics-text;q=-1, text/plain;q=x", false},
        {",,;;q=;q,q;=\x80;;;q", true},
        {"text/plain;q", false},
        {";", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (accept_openmetrics(cases[i].header) != cases[i].openmetrics)
            fail_msg("Accept: %s", cases[i].header);
}

/* Room on the data roots: what is known about a file system that answers, fails, or holds whoever asks it. */

enum { GOOD, DEAD, BROKEN, ROOTS };

static uv_loop_t loop;
static struct {
    char path[64];
    struct stat status;
} folder[ROOTS];
static pthread_mutex_t dead = PTHREAD_MUTEX_INITIALIZER; /* locked: DEAD does not answer */

static bool is(int fd, unsigned which)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_ino == folder[which].status.st_ino;
}

static int ask(int fd, struct statvfs *out)
{
    *out = (struct statvfs){
        .f_frsize = 4096, .f_bsize = 512, .f_blocks = 100, .f_bfree = 30, .f_bavail = 20};
    if (is(fd, DEAD)) {
        (void)pthread_mutex_lock(&dead);
        (void)pthread_mutex_unlock(&dead);
    }
    if (!is(fd, BROKEN))
        return 0;
    errno = EIO;
    return -1;
}

static void on_closed(void *context)
{
    *(bool *)context = true;
}

static void make_roots(struct roots *roots, char *above)
{
    static const char *const names[ROOTS] = {"good", "dead", "broken"};
    struct error e;

    *roots = (struct roots){0};
    assert_non_null(mkdtemp(above));
    for (unsigned i = 0; i < ROOTS; i++) {
        (void)snprintf(folder[i].path, sizeof folder[i].path, "%s/%s", above, names[i]);
        assert_int_equal(mkdir(folder[i].path, 0700), 0);
        assert_int_equal(stat(folder[i].path, &folder[i].status), 0);
        assert_int_equal(roots_add(roots, file_system_posix(), folder[i].path, &e), 0);
    }
}

static void remove_roots(struct roots *roots, const char *above)
{
    roots_free(roots);
    for (unsigned i = 0; i < ROOTS; i++)
        assert_int_equal(rmdir(folder[i].path), 0);
    assert_int_equal(rmdir(above), 0);
}

/* Lets the loop run until the answer of a root is known, and is this. */
static struct room_answer await(struct room *room, unsigned which, bool answers)
{
    struct room_answer answer;

    do {
        (void)uv_run(&loop, UV_RUN_ONCE);
        assert_true(room_tell(room, which, &answer));
    } while (!answer.known || answer.answers != answers);
    assert_string_equal(answer.path, folder[which].path);
    return answer;
}

TEST(a_file_system_that_may_only_be_slow_is_not_known)
{
    char above[] = "/tmp/torus-room-XXXXXX";
    bool closed = false;
    const struct room_setup setup = {.loop = &loop,
                                     .ask = ask,
                                     .every_ms = 5,
                                     .keep_ms = 3600 * 1000,
                                     .closed = on_closed,
                                     .context = &closed};
    struct room_answer answer;
    struct roots roots;

    make_roots(&roots, above);
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)pthread_mutex_lock(&dead);
    struct room *room = room_open(&setup);
    assert_non_null(room);
    room_of(room, &roots);
    (void)await(room, GOOD, true);
    assert_true(room_tell(room, DEAD, &answer));
    assert_false(answer.known);
    room_close(room);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
    assert_int_equal(uv_loop_close(&loop), 0);
    (void)pthread_mutex_unlock(&dead);
    remove_roots(&roots, above);
}

TEST(a_file_system_without_an_answer_holds_nothing_else)
{
    char above[] = "/tmp/torus-room-XXXXXX";
    bool closed = false;
    const struct room_setup setup = {.loop = &loop,
                                     .ask = ask,
                                     .every_ms = 5,
                                     .keep_ms = 200,
                                     .closed = on_closed,
                                     .context = &closed};
    struct room_answer answer;
    struct roots roots;

    make_roots(&roots, above);
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)pthread_mutex_lock(&dead);
    struct room *room = room_open(&setup);
    assert_non_null(room);
    room_of(room, &roots);
    answer = await(room, GOOD, true);
    assert_int_equal(answer.size, 100 * 4096);
    assert_int_equal(answer.free, 20 * 4096);
    (void)await(room, BROKEN, false);
    (void)await(room, DEAD, false);
    (void)await(room, GOOD, true);
    (void)pthread_mutex_unlock(&dead);
    (void)await(room, DEAD, true);
    (void)pthread_mutex_lock(&dead);
    (void)await(room, DEAD, false);
    assert_false(room_tell(room, ROOTS, &answer));
    /* Neither other roots nor the end wait for the thread that is held. */
    room_of(room, &(struct roots){0});
    assert_false(room_tell(room, 0, &answer));
    room_close(room);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
    assert_int_equal(uv_loop_close(&loop), 0);
    (void)pthread_mutex_unlock(&dead);
    remove_roots(&roots, above);
}
