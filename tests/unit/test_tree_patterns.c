/* Patterns of names, against what the manual of rsync says about its own. */
#include "daemon/torusd/tree/manifest.h"
#include "daemon/torusd/tree/patterns.h"
#include "tests/support/cmocka.h"

static struct patterns *patterns_of(const char *const *text, uint32_t count)
{
    struct error e = {0};
    struct patterns *p = patterns_new(text, count, &e);

    if (p == NULL)
        fail_msg("%s", e.text);
    return p;
}

static bool leaves_out(const char *pattern, const char *path, bool folder)
{
    char text[5000];
    const char *const texts[] = {text};

    (void)snprintf(text, sizeof text, "- %s", pattern);
    struct patterns *p = patterns_of(texts, 1);
    bool result = patterns_leave_out(p, path, folder);
    patterns_free(p);
    return result;
}

/* A path that ends with '/' is that of a folder. */
struct example {
    const char *pattern;
    const char *matches[6];
    const char *others[6];
};

static const struct example examples[] = {
    {"*.o", {"a.o", "x/a.o", ".o", "a.o/"}, {"a.c", "a.o/x", "ao"}},
    {"foo", {"foo", "x/foo", "x/foo/"}, {"foo/x", "afoo", "foob", "x/afoo"}},
    {"/foo", {"foo", "foo/"}, {"x/foo", "foo/x"}},
    {"foo/", {"foo/", "x/foo/"}, {"foo", "x/foo", "foo/x"}},
    {"/foo/", {"foo/"}, {"foo", "x/foo/"}},
    {"foo/bar",
     {"foo/bar", "x/foo/bar", "x/foo/bar/"},
     {"bar", "xfoo/bar", "foo/bar/x", "foo/x/bar"}},
    {"/foo/bar", {"foo/bar"}, {"x/foo/bar"}},
    {"/foo/*", {"foo/a", "foo/b/"}, {"foo/", "foo/a/b", "x/foo/a"}},
    {"foo/*/bar", {"foo/x/bar", "y/foo/x/bar"}, {"foo/bar", "foo/x/y/bar"}},
    {"foo/**/bar", {"foo/x/bar", "foo/x/y/bar", "a/foo/x/bar"}, {"foo/bar", "afoo/x/bar"}},
    {"/foo/**", {"foo/a", "foo/a/b"}, {"foo/", "x/foo/a"}},
    {"foo/***", {"foo/", "foo/a", "foo/a/b", "x/foo/"}, {"foo", "afoo/"}},
    {"**/bar", {"bar", "x/bar", "x/y/bar"}, {"xbar", "x/xbar"}},
    {"**bar", {"bar", "xbar", "x/y/xbar"}, {"barx"}},
    {"a**z",
     {"az", "a/b/z", "x/a1/2z"},
     {"ba/z", "az/"
              "x"}},
    {"?", {"a", "x/b"}, {"ab", "x/ab"}},
    {"a?c",
     {"abc", "a\xff"
             "c"},
     {"ac", "a/c", "abbc"}},
    {"[abc]x", {"ax", "bx", "d/cx"}, {"dx", "x", "aax"}},
    {"[a-c]x", {"ax", "bx", "cx"}, {"dx", "-x"}},
    {"[!a-c]x", {"dx", "-x"}, {"ax", "x", "y/x"}},
    {"[^a]", {"b"}, {"a"}},
    {"[]a]", {"]", "a"}, {"b"}},
    {"[a-]", {"-", "a"}, {"b"}},
    {"[c-a]", {"c"}, {"a", "b", "-"}},
    {"[!/]b", {NULL}, {"ab", "x/ab", "b"}},
    {"[a/]b", {NULL}, {"ab", "x/ab"}},
    {"/[!/]b", {"ab"}, {"x/ab", "b"}},
    {"**[!/]b", {"ab", "x/ab"}, {"b", "x/b"}},
    {"*o\\", {NULL}, {"foo\\", "foo"}},
    {"foo\\", {"foo\\"}, {"foo"}},
    {"[\\]]", {"]"}, {"\\"}},
    {"[[:digit:]]*", {"1", "1a"}, {"a1", "d"}},
    {"[[:nothing:]]", {NULL}, {"n", "["}},
    {"[a", {NULL}, {"a", "[a", "["}},
    {"x[^a]y", {"xby"}, {"x/y", "xay"}},
    {"a\\*b*", {"a*b", "a*bc"}, {"axb", "a\\*b"}},
    {"a\\b", {"a\\b"}, {"ab"}},
    {"*", {"a", "a/b", "a/"}, {NULL}},
    {"*/", {"a/", "b/c/"}, {"a"}},
    {"/*", {"a", "b/"}, {"a/b"}},
    {"*a*b*c*", {"abc", "xaxbxcx"}, {"acb", "ab/c"}},
    {"a b", {"a b"}, {"a"}},
    {"\xff*", {"\xff", "\xff\n"}, {"f"}},
};

static bool try_example(const char *pattern, const char *path)
{
    char copy[100];
    size_t length = strlen(path);

    (void)snprintf(copy, sizeof copy, "%s", path);
    bool folder = copy[length - 1] == '/';
    copy[length - folder] = '\0';
    return leaves_out(pattern, copy, folder);
}

TEST(patterns_match_as_those_of_rsync)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        for (size_t k = 0; k < 6; k++) {
            const struct example *x = &examples[i];
            if (x->matches[k] != NULL && !try_example(x->pattern, x->matches[k]))
                fail_msg("%s should match %s", x->pattern, x->matches[k]);
            if (x->others[k] != NULL && try_example(x->pattern, x->others[k]))
                fail_msg("%s should not match %s", x->pattern, x->others[k]);
        }
}

/* The manual: "+ x/", "+ x/y/", "+ x/y/file.txt", "- *" keeps one file and its folders. */
TEST(the_first_pattern_that_matches_decides)
{
    static const char *const text[] = {"+ /x/", "+ /x/y/", "+ /x/y/file.txt", "- *"};
    struct patterns *p = patterns_of(text, 4);

    assert_false(patterns_leave_out(p, "x", true));
    assert_true(patterns_leave_out(p, "x", false));
    assert_false(patterns_leave_out(p, "x/y", true));
    assert_false(patterns_leave_out(p, "x/y/file.txt", false));
    assert_true(patterns_leave_out(p, "x/y/file", false));
    assert_true(patterns_leave_out(p, "y", true));
    assert_false(patterns_leave_out(p, "", true));
    patterns_free(p);
    p = patterns_of(NULL, 0);
    assert_false(patterns_leave_out(p, "x", true));
    patterns_free(p);
}

TEST(texts_that_are_no_patterns_are_refused)
{
    static const char *const wrong[] = {"", "-", "- ", "+ ", "x", "-x", "* x"};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error e = {0};
        assert_null(patterns_new(&wrong[i], 1, &e));
        assert_int_equal(e.code, ERROR_USAGE);
    }
}

/* Patterns that take other programs for ever. */
TEST(the_time_is_bounded)
{
    static char pattern[2001], path[MANIFEST_PATH_MOST + 1];

    for (size_t i = 0; i + 1 < sizeof pattern; i += 2)
        memcpy(pattern + i, i % 4 == 0 ? "a*" : "*a", 2);
    memset(path, 'a', sizeof path - 1);
    assert_true(leaves_out(pattern, path, false));
    path[sizeof path - 2] = 'b';
    assert_false(leaves_out(pattern, path, false));
}
