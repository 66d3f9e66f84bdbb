/* Requests for copies from command lines: paths, patterns, nodes. */
#include <sys/stat.h>
#include <torus/torus.h>
#include <unistd.h>

#include "client/cli/copying/copy_order.h"
#include "client/cli/copying/copy_run.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/base/ranked_path.h"
#include "tests/support/cmocka.h"

static struct error e;

/* ---- Paths ----------------------------------------------------------------------------------- */

static void check_path(const char *text, bool literal, const char *expected)
{
    char *path;

    assert_int_equal(copy_path_absolute(text, literal, &path, &e), 0);
    assert_string_equal(path, expected);
    free(path);
}

TEST(absolute_paths_lose_what_has_no_meaning)
{
    char *path;

    check_path("/data/model", true, "/data/model");
    check_path("//data/./model///", true, "/data/model");
    check_path("/", true, "/");
    check_path("/a%rb%", true, "/a%%rb%%"); /* a name that a shell has written */
    check_path("/a%r/%%", false, "/a%r/%%");
    check_path("/...", true, "/...");
    check_path("/../a", true, "/a");
    check_path("/a\xff\n", true, "/a\xff\n");
    assert_int_equal(copy_path_absolute("", true, &path, &e), -1);
    assert_fails(copy_path_absolute("/a/../b", true, &path, &e), e, ERROR_USAGE, "");
}

TEST(relative_paths_begin_at_the_working_directory)
{
    char folder[] = "/tmp/torus-test-XXXXXX", below[64], expected[64];

    assert_non_null(mkdtemp(folder));
    (void)snprintf(below, sizeof below, "%s/50%%", folder);
    assert_int_equal(mkdir(below, 0700), 0);
    assert_int_equal(chdir(below), 0);
    (void)snprintf(expected, sizeof expected, "%s/50%%%%/a", folder);
    check_path("a", true, expected);
    check_path("./a/", false,
               expected); /* the directory's own per cent sign is escaped in any case */
    (void)snprintf(expected, sizeof expected, "%s/50%%%%", folder);
    check_path(".", true, expected);
    (void)snprintf(expected, sizeof expected, "%s/b", folder);
    check_path("../b", true, expected); /* the working directory has no links */
    check_path("../../../..", true, "/");
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(below), 0);
    assert_int_equal(rmdir(folder), 0);
    check_path("a", true, "/a");
}

TEST(ranks_in_paths_are_found)
{
    assert_true(ranked_path_has_rank("/a/%r"));
    assert_true(ranked_path_has_rank("/%%%r"));
    assert_false(ranked_path_has_rank("/a%%r"));
    assert_false(ranked_path_has_rank("/%"));
    assert_false(ranked_path_has_rank("/a"));
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static const struct option positional = {"SOURCE...", NULL, 0, ""};
static const struct option exclude = {"--exclude", "PATTERN...", 0, ""};
static const struct option include = {"--include", "PATTERN...", 0, ""};
static const struct option exclude_from = {"--exclude-from", "FILE...", 0, ""};

static struct copy_arguments *arguments(const char *source, const char *to)
{
    struct copy_arguments *a = calloc(1, sizeof *a);

    assert_non_null(a);
    a->sources.given[a->sources.count++] = (struct option_given){&positional, source};
    a->to = to;
    return a;
}

/* Makes an order, which must fail with ERROR_USAGE unless `good`. The arguments are freed. */
static struct copy_order *make(enum torus_copy_kind kind, struct copy_arguments *a, bool good)
{
    struct copy_order *o = malloc(sizeof *o);

    assert_non_null(o);
    assert_int_equal(copy_order_make(o, kind, a, &e), good ? 0 : -1);
    free(a);
    if (good)
        return o;
    assert_int_equal(e.code, ERROR_USAGE);
    copy_order_free(o);
    free(o);
    return NULL;
}

static void release(struct copy_order *o)
{
    copy_order_free(o);
    free(o);
}

static bool is_into(enum torus_copy_kind kind, const char *to, const char *second)
{
    struct copy_arguments *a = arguments("/a/b%r", to);
    struct copy_order *o;
    bool into;

    if (second != NULL)
        a->sources.given[a->sources.count++] = (struct option_given){&positional, second};
    o = make(kind, a, true);
    into = o->copy.into;
    release(o);
    return into;
}

TEST(the_target_is_a_name_or_a_folder)
{
    struct copy_arguments *a;

    assert_false(is_into(TORUS_COPY_TO_ALL, "/x", NULL));
    assert_true(is_into(TORUS_COPY_TO_ALL, "/x/", NULL));
    assert_true(is_into(TORUS_COPY_TO_ALL, "/x", "/a/c"));
    assert_false(is_into(TORUS_COPY_EXCHANGE, "/x/", NULL));
    a = arguments("/a/b", "/x");
    a->sources.given[a->sources.count++] = (struct option_given){&positional, "/c/b/"};
    assert_null(make(TORUS_COPY_TO_ALL, a, false)); /* both would be /x/b */
    a = arguments("/a/50%", "/x");
    a->sources.given[a->sources.count++] = (struct option_given){&positional, "/b/50%"};
    assert_null(make(TORUS_COPY_TO_ALL, a, false));
    assert_null(strstr(e.text, "%%")); /* paths are those of the user */
    assert_null(make(TORUS_COPY_TO_ALL, arguments("/", "/x/"), false));
    assert_null(make(TORUS_COPY_TO_ALL, arguments("/a", NULL), false));
}

TEST(gather_and_scatter_need_ranks)
{
    assert_null(make(TORUS_COPY_GATHER, arguments("/a", "/x"), false));
    assert_null(make(TORUS_COPY_GATHER, arguments("/a", "/x%%r"), false));
    release(make(TORUS_COPY_GATHER, arguments("/a", "/x%r"), true));
    assert_null(make(TORUS_COPY_SCATTER, arguments("/a", "/x%r"), false));
    release(make(TORUS_COPY_SCATTER, arguments("/a/%r", "/x"), true));
}

TEST(options_that_contradict_each_other_are_refused)
{
    struct copy_arguments *a = arguments("/a", "/x");
    struct copy_order *o;

    a->dry_run = a->verify = true;
    assert_null(make(TORUS_COPY_TO_ALL, a, false));
    a = arguments("/a", "/x");
    a->on_failure = "never";
    assert_null(make(TORUS_COPY_TO_ALL, a, false));
    a = arguments("/a", "/x");
    a->timeout = "0";
    assert_null(make(TORUS_COPY_TO_ALL, a, false));
    a = arguments("/a", "/x");
    a->on_failure = "wait";
    a->timeout = "1.5";
    a->delete = true;
    o = make(TORUS_COPY_TO_ALL, a, true);
    assert_true(o->copy.wait && !o->copy.shrink && o->copy.remove && !o->copy.checksum);
    assert_int_equal(o->copy.timeout_ms, 1500);
    release(o);
}

TEST(patterns_keep_their_order)
{
    static const char *const expected[] = {"- a", "+ b", "- .git", "+ keep me", "- x y ", "- c"};
    static const char text[] = "# a comment\n\n.git\r\n+ keep me\n; no\n- x y ";
    const char *path = text_file(text);
    struct copy_arguments *a = arguments("/a", "/x");
    struct copy_order *o;

    a->patterns.given[a->patterns.count++] = (struct option_given){&exclude, "a"};
    a->patterns.given[a->patterns.count++] = (struct option_given){&include, "b"};
    a->patterns.given[a->patterns.count++] = (struct option_given){&exclude_from, path};
    a->patterns.given[a->patterns.count++] = (struct option_given){&exclude, "c"};
    o = make(TORUS_COPY_TO_ALL, a, true);
    assert_int_equal(o->copy.pattern_count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(o->copy.pattern[i], expected[i]);
    release(o);

    a = arguments("/a", "/x");
    a->patterns.given[a->patterns.count++] = (struct option_given){&exclude, ""};
    assert_null(make(TORUS_COPY_TO_ALL, a, false));
    a = arguments("/a", "/x");
    for (size_t i = 0; i <= TORUS_COPY_LIST_MAX; i++)
        a->patterns.given[a->patterns.count++] = (struct option_given){&exclude, "p"};
    assert_null(make(TORUS_COPY_TO_ALL, a, false));
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

/* Returns the ranks in the request of node 2 of 9 nodes: "1 3", "all"; or "" if the list is refused. */
static const char *placed(const char *list)
{
    static char text[128];
    struct copy_order *o = make(TORUS_COPY_TO_ALL, arguments("/a", "/x"), true);
    int r = copy_order_place(o, list, 2, 9, &e);

    text[0] = '\0';
    assert_int_equal(o->copy.node, 2);
    for (size_t i = 0; r == 0 && i < o->copy.node_count; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u", i > 0 ? " " : "",
                       o->copy.nodes[i]);
    if (r == 0 && o->copy.node_count == 0)
        (void)strcpy(text, "all");
    if (r != 0)
        assert_int_equal(e.code, ERROR_USAGE);
    release(o);
    return text;
}

TEST(lists_of_nodes_leave_out_the_asked_one)
{
    assert_string_equal(placed(NULL), "all");
    assert_string_equal(placed("all"), "all");
    assert_string_equal(placed("5"), "5");
    assert_string_equal(placed("7,0-3,3"), "0 1 3 7");
    assert_string_equal(placed("0-8"), "0 1 3 4 5 6 7 8");
    assert_string_equal(placed("2"), ""); /* nobody else */
    assert_string_equal(placed("9"), "");
    assert_string_equal(placed("5-4"), "");
    assert_string_equal(placed("1048575"), "");
    assert_string_equal(placed("99999999999"), "");
    assert_string_equal(placed("1,,3"), "");
    assert_string_equal(placed("-3"), "");
    assert_string_equal(placed("x"), "");
    assert_string_equal(placed(""), "");
}

/* The line that shows how far a copy is. */

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
    progress_end(&watch.progress);

    copy_watch_begin(&watch, true); /* nothing gets a place */
    report(TORUS_COPY_PLACING, 1200, 0);
    assert_string_equal(watch.doing, "collecting the results");
    progress_end(&watch.progress);
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

/* The bytes of an earlier attempt, and the time between two attempts, are not part of the pace. */
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
    progress_end(&watch.progress);
}

/* The line of the progress bar. */

/* The line after that many milliseconds, without a known rate. */
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
    assert_contains(line, "]  25 %  512 KiB  8 KiB/s  1:05, 1:02:05 left");
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
    assert_contains(line, "running, 6 of 100 repetitions ");
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
    assert_contains(line, "100 %");
    p.state = TORUS_STATE_ENTERED;
    p.round = p.rounds = p.total_bytes = UINT64_MAX;
    (void)progress_line(line, sizeof line, 250, &p, AFTER(INT64_MAX));
}
