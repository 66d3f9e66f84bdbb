/* Requests for copies from command lines: paths, patterns, nodes. */
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/copying/copy_order.h"
#include "client/cli/copying/copy_paths.h"
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
    assert_int_equal(copy_path_absolute("/a/../b", true, &path, &e), -1);
    assert_int_equal(e.code, ERROR_USAGE);
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
    assert_true(copy_path_has_rank("/a/%r"));
    assert_true(copy_path_has_rank("/%%%r"));
    assert_false(copy_path_has_rank("/a%%r"));
    assert_false(copy_path_has_rank("/%"));
    assert_false(copy_path_has_rank("/a"));
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
