/* What lies outside of the data roots is not touched, by whatever name it is asked for. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/files/roots.h"
#include "folder_fixture.h"

static void check_expanded(const char *path, const char *expected)
{
    char out[PATH_MAX];
    struct error e = {0};
    if (path_expand(path, 42, out, &e) != 0)
        fail_msg("%s: %s", path, e.text);
    assert_string_equal(out, expected);
}

static void check_not_expanded(const char *path, const char *text)
{
    char out[PATH_MAX];
    struct error e = {0};
    assert_int_equal(path_expand(path, 42, out, &e), -1);
    assert_int_equal(e.code, ERROR_USAGE);
    assert_non_null(strstr(e.text, text));
}

static void the_rank_is_put_into_paths(void **state)
{
    char path[PATH_MAX + 10];
    (void)state;
    check_expanded("/a/b", "/a/b");
    check_expanded("/%r/in-%r", "/42/in-42");
    check_expanded("/%%r/100%%", "/%r/100%");
    check_not_expanded("a/%r", "not an absolute path");
    check_not_expanded("", "not an absolute path");
    check_not_expanded("/%d", "%");
    check_not_expanded("/a%", "%");
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[PATH_MAX - 2] = '\0';
    check_expanded(path, path);
    path[PATH_MAX - 2] = 'x';
    path[sizeof path - 1] = '\0';
    check_not_expanded(path, "too long");
    memset(path, 'x', PATH_MAX - 4);
    path[0] = '/';
    (void)strcpy(path + PATH_MAX - 4, "%r%r");
    check_not_expanded(path, "too long");
}

static void open_roots(void **state, struct roots *roots)
{
    struct error e;
    *roots = (struct roots){0};
    make_folder(at(state, "data"));
    make_folder(at(state, "data/in"));
    make_folder(at(state, "data2"));
    make_file(at(state, "data2/secret"), "s", 1);
    make_file(at(state, "data/in/0"), "block", 5);
    assert_int_equal(roots_add(roots, at(state, "data"), &e), 0);
}

static void a_root_contains_itself_and_what_is_below(void **state)
{
    struct roots roots;
    struct error e = {0};
    open_roots(state, &roots);
    assert_true(roots_contain(&roots, at(state, "data")));
    assert_true(roots_contain(&roots, at(state, "data/x/y")));
    assert_false(roots_contain(&roots, at(state, "data2")));
    assert_false(roots_contain(&roots, at(state, "dat")));
    assert_false(roots_contain(&roots, *state));
    assert_false(roots_contain(&roots, "/"));
    assert_int_equal(roots_add(&roots, at(state, "missing"), &e), -1);
    assert_int_equal(roots_add(&roots, at(state, "data2"), &e), 0);
    assert_true(roots_contain(&roots, at(state, "data2/x")));
    roots_free(&roots);
    assert_false(roots_contain(&roots, at(state, "data")));
    assert_int_equal(roots_add(&roots, "/", &e), 0);
    assert_true(roots_contain(&roots, "/anything"));
    assert_true(roots_contain(&roots, "/"));
    roots_free(&roots);
}

static void a_root_may_be_named_by_a_link(void **state)
{
    struct roots roots = {0};
    struct error e;
    char out[PATH_MAX];
    make_folder(at(state, "real"));
    make_folder(at(state, "real/in"));
    assert_int_equal(symlink(at(state, "real"), at(state, "link")), 0);
    assert_int_equal(roots_add(&roots, at(state, "link"), &e), 0);
    assert_int_equal(roots_resolve_folder(&roots, at(state, "link/in"), out, &e), 0);
    assert_string_equal(out, at(state, "real/in"));
    roots_free(&roots);
}

static void folders_outside_are_refused(void **state)
{
    struct roots roots;
    char out[PATH_MAX];
    struct error e = {0};
    open_roots(state, &roots);
    assert_int_equal(roots_resolve_folder(&roots, at(state, "data/in"), out, &e), 0);
    assert_int_equal(roots_resolve_folder(&roots, at(state, "data/./in/../in"), out, &e), 0);
    assert_string_equal(out, at(state, "data/in"));
    assert_int_equal(roots_resolve_folder(&roots, at(state, "data2"), out, &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_non_null(strstr(e.text, "is not below the configured data_roots"));
    assert_int_equal(roots_resolve_folder(&roots, at(state, "data/../data2"), out, &e), -1);
    assert_int_equal(symlink(at(state, "data2"), at(state, "data/escape")), 0);
    assert_int_equal(roots_resolve_folder(&roots, at(state, "data/escape"), out, &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_int_equal(roots_resolve_folder(&roots, at(state, "data/missing"), out, &e), -1);
    assert_int_equal(e.code, ERROR_IO);
    assert_int_equal(roots_resolve_folder(&roots, at(state, "data/in/0"), out, &e), -1);
    assert_non_null(strstr(e.text, "is not a folder"));
    roots_free(&roots);
    assert_int_equal(roots_resolve_folder(&roots, at(state, "data/in"), out, &e), -1);
    assert_non_null(strstr(e.text, "no data_roots are configured"));
}

static void files_outside_are_not_opened(void **state)
{
    struct roots roots;
    struct error e = {0};
    open_roots(state, &roots);
    int fd = roots_open_file(&roots, at(state, "data/in/0"), &e);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(roots_open_file(&roots, at(state, "data/in/1"), &e), -1);
    assert_int_equal(e.code, ERROR_NONE); /* just not there */
    assert_int_equal(symlink(at(state, "data2/secret"), at(state, "data/in/2")), 0);
    assert_int_equal(roots_open_file(&roots, at(state, "data/in/2"), &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_int_equal(symlink(at(state, "data/in/0"), at(state, "data/in/3")), 0);
    fd = roots_open_file(&roots, at(state, "data/in/3"), &e);
    assert_true(fd >= 0); /* a link within */
    (void)close(fd);
    assert_int_equal(mkfifo(at(state, "data/in/4"), 0600), 0);
    assert_int_equal(roots_open_file(&roots, at(state, "data/in/4"), &e), -1); /* does not hang */
    assert_non_null(strstr(e.text, "is not a regular file"));
    assert_int_equal(roots_open_file(&roots, at(state, "data/in"), &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    roots_free(&roots);
}

static void check_target(const struct roots *roots, const char *path, const char *expected,
                         unsigned created)
{
    char out[PATH_MAX];
    unsigned made;
    struct error e = {0};
    if (roots_resolve_target(roots, path, out, &made, &e) != 0)
        fail_msg("%s: %s", path, e.text);
    assert_string_equal(out, expected);
    assert_int_equal(made, created);
    roots_remove_created(out, made);
}

static void check_no_target(const struct roots *roots, const char *path, const char *text)
{
    char out[PATH_MAX];
    unsigned created;
    struct error e = {0};
    assert_int_equal(roots_resolve_target(roots, path, out, &created, &e), -1);
    if (strstr(e.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, e.text);
}

static void folders_above_a_target_are_made_and_removed(void **state)
{
    struct roots roots;
    open_roots(state, &roots);
    unsigned before = entries(at(state, "data"));
    check_target(&roots, at(state, "data/out"), at(state, "data/out"), 0);
    check_target(&roots, at(state, "data/out///"), at(state, "data/out"), 0);
    check_target(&roots, at(state, "data/a/b/c/out"), at(state, "data/a/b/c/out"), 3);
    check_target(&roots, at(state, "data/in/x/out"), at(state, "data/in/x/out"), 1);
    assert_int_equal(entries(at(state, "data")), before);
    assert_int_equal(symlink(at(state, "data/in"), at(state, "data/inside")), 0);
    check_target(&roots, at(state, "data/inside/x/out"), at(state, "data/in/x/out"), 1);
    roots_free(&roots);
}

static void targets_outside_are_refused_and_nothing_is_made(void **state)
{
    struct roots roots;
    open_roots(state, &roots);
    assert_int_equal(symlink(at(state, "data2"), at(state, "data/escape")), 0);
    assert_int_equal(symlink("..", at(state, "data/up")), 0);
    unsigned data = entries(at(state, "data")), data2 = entries(at(state, "data2"));
    check_no_target(&roots, at(state, "data"), "is not below"); /* the root itself */
    check_no_target(&roots, at(state, "data2/out"), "is not below");
    check_no_target(&roots, at(state, "out"), "is not below");
    check_no_target(&roots, at(state, "data/escape/out"), "is not below");
    check_no_target(&roots, at(state, "data/escape/a/b/out"), "is not below");
    check_no_target(&roots, at(state, "data/up/data2/out"), "is not below");
    check_no_target(&roots, at(state, "data/../data2/out"), "\"..\"");
    check_no_target(&roots, at(state, "data/x/../out"), "\"..\"");
    check_no_target(&roots, at(state, "data/.."), "name of its own");
    check_no_target(&roots, at(state, "data/x/."), "name of its own");
    check_no_target(&roots, "/", "name of its own");
    check_no_target(&roots, at(state, "data/in/0/x/out"), "");
    assert_int_equal(entries(at(state, "data")), data);
    assert_int_equal(entries(at(state, "data2")), data2);
    roots_free(&roots);
    check_no_target(&roots, at(state, "data/out"), "no data_roots");
}

static void made_folders_that_are_used_stay(void **state)
{
    struct roots roots;
    char out[PATH_MAX];
    unsigned created;
    struct error e;
    open_roots(state, &roots);
    assert_int_equal(roots_resolve_target(&roots, at(state, "data/a/b/out"), out, &created, &e), 0);
    make_file(at(state, "data/a/other"), "", 0);
    roots_remove_created(out, created);
    assert_false(exists(at(state, "data/a/b")));
    assert_true(exists(at(state, "data/a/other")));
    roots_free(&roots);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_rank_is_put_into_paths),
        TEST(a_root_contains_itself_and_what_is_below),
        TEST(a_root_may_be_named_by_a_link),
        TEST(folders_outside_are_refused),
        TEST(files_outside_are_not_opened),
        TEST(folders_above_a_target_are_made_and_removed),
        TEST(targets_outside_are_refused_and_nothing_is_made),
        TEST(made_folders_that_are_used_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
