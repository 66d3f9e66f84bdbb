/* Files outside of the data roots are not touched, whatever name a request uses. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/disk/roots.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

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
    assert_fails(path_expand(path, 42, out, &e), e, ERROR_USAGE, text);
}

FOLDER_TEST(the_rank_is_put_into_paths)
{
    char path[PATH_MAX + 10];

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
    check_not_expanded(path, "at most 4094 bytes");
    memset(path, 'x', PATH_MAX - 4);
    path[0] = '/';
    (void)strcpy(path + PATH_MAX - 4, "%r%r");
    check_not_expanded(path, "at most 4094 bytes");
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
    assert_int_equal(roots_add(roots, file_system_posix(), at(state, "data"), &e), 0);
}

static void check_found(const struct roots *roots, const char *path, size_t root,
                        const char *expected)
{
    struct location place;
    struct error e = {0};
    if (roots_find(roots, path, &place, &e) != 0)
        fail_msg("%s: %s", path, e.text);
    assert_int_equal(place.root, root);
    assert_string_equal(place.path, expected);
}

static void check_not_found(const struct roots *roots, const char *path)
{
    struct location place;
    struct error e = {0};
    assert_fails(roots_find(roots, path, &place, &e), e, ERROR_REFUSED, "data_roots");
}

FOLDER_TEST(a_root_contains_itself_and_what_is_below)
{
    struct roots roots;
    struct error e = {0};
    open_roots(state, &roots);
    check_found(&roots, at(state, "data"), 0, ".");
    check_found(&roots, at(state, "data/"), 0, ".");
    check_found(&roots, at(state, ".//data//x/./y/"), 0, "x/y");
    check_found(&roots, at(state, "data/..x/.y"), 0, "..x/.y");
    check_not_found(&roots, at(state, "data2"));
    check_not_found(&roots, at(state, "dat"));
    check_not_found(&roots, at(state, "data/../data/x"));
    check_not_found(&roots, *state);
    check_not_found(&roots, "/");
    assert_fails(roots_add(&roots, file_system_posix(), at(state, "missing"), &e), e, ERROR_USAGE,
                 "");
    assert_int_equal(roots_add(&roots, file_system_posix(), at(state, "data2"), &e), 0);
    check_found(&roots, at(state, "data2/x"), 1, "x");
    roots_free(&roots);
    check_not_found(&roots, at(state, "data"));
    assert_int_equal(roots_add(&roots, file_system_posix(), "/", &e), 0);
    check_found(&roots, "/anything", 0, "anything");
    check_found(&roots, "/", 0, ".");
    roots_free(&roots);
}

FOLDER_TEST(each_place_has_one_root)
{
    struct roots roots;
    struct error e;
    open_roots(state, &roots);
    assert_int_equal(symlink(at(state, "data/in"), at(state, "link")), 0);
    assert_int_equal(roots_add(&roots, file_system_posix(), at(state, "link"), &e), 0);
    assert_int_equal(roots_add(&roots, file_system_posix(), at(state, "data"), &e), 0);
    check_found(&roots, at(state, "data/in/x"), 1, "x");
    check_found(&roots, at(state, "link/x"), 1, "x");
    check_found(&roots, at(state, "data/x"), 0, "x");
    roots_free(&roots);
}

/* The contents of a descriptor, or the error. */
static const char *open_and_read(const struct roots *roots, const char *path, struct error *e)
{
    static char bytes[100];
    struct location place;
    struct file_status status;
    int fd = roots_open(roots, path, &place, &status, e);
    if (fd < 0)
        return NULL;
    ssize_t n = status.kind == FILE_REGULAR ? read(fd, bytes, sizeof bytes - 1) : 0;
    assert_true(n >= 0);
    bytes[n] = '\0';
    (void)close(fd);
    return bytes;
}

static void check_outside(const struct roots *roots, const char *path)
{
    struct error e = {0};
    assert_null(open_and_read(roots, path, &e));
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_contains(e.text, "data_roots");
}

static void only_what_lies_below_is_read(void **state, const struct file_system *files)
{
    struct roots roots = {0};
    struct error e = {0};
    struct location place;
    struct file_status status;
    open_roots(state, &roots);
    roots_free(&roots);
    assert_int_equal(roots_add(&roots, files, at(state, "data"), &e), 0);
    assert_string_equal(open_and_read(&roots, at(state, "data/in/0"), &e), "block");
    assert_string_equal(open_and_read(&roots, at(state, "data/./in/../in/0"), &e), "block");
    assert_null(open_and_read(&roots, at(state, "data/in/1"), &e));
    assert_int_equal(e.code, ERROR_NONE); /* just not there */
    assert_null(open_and_read(&roots, at(state, "data/in/0/x"), &e));
    assert_int_equal(e.code, ERROR_IO);
    check_outside(&roots, at(state, "data2"));
    check_outside(&roots, at(state, "data2/secret"));
    check_outside(&roots, at(state, "data/../data2/secret"));
    /* Links within, of all kinds; links that lead out. */
    assert_int_equal(symlink(at(state, "data/in/0"), at(state, "data/in/3")), 0);
    assert_string_equal(open_and_read(&roots, at(state, "data/in/3"), &e), "block");
    assert_int_equal(symlink("../in", at(state, "data/in/up")), 0);
    assert_string_equal(open_and_read(&roots, at(state, "data/in/up/0"), &e), "block");
    assert_int_equal(symlink(at(state, "data/in"), at(state, "alias")), 0);
    assert_string_equal(open_and_read(&roots, at(state, "alias/0"), &e), "block");
    assert_int_equal(symlink(at(state, "data2/secret"), at(state, "data/in/2")), 0);
    check_outside(&roots, at(state, "data/in/2"));
    assert_int_equal(symlink(at(state, "data2"), at(state, "data/escape")), 0);
    check_outside(&roots, at(state, "data/escape"));
    check_outside(&roots, at(state, "data/escape/secret"));
    assert_int_equal(symlink("/proc/self/root", at(state, "data/magic")), 0);
    assert_null(open_and_read(&roots, at(state, "data/magic/etc/hostname"), &e));
    /* Opening does not wait. */
    assert_int_equal(mkfifo(at(state, "data/in/4"), 0600), 0);
    int fd = roots_open(&roots, at(state, "data/in/4"), &place, &status, &e);
    assert_true(fd >= 0 && status.kind == FILE_OTHER);
    (void)close(fd);
    fd = roots_open(&roots, at(state, "data/in"), &place, &status, &e);
    assert_true(fd >= 0 && status.kind == FILE_FOLDER);
    (void)close(fd);
    roots_free(&roots);
    assert_null(open_and_read(&roots, at(state, "data/in/0"), &e));
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_contains(e.text, "data_roots");
}

FOLDER_TEST(files_outside_are_not_read)
{
    only_what_lies_below_is_read(state, file_system_posix());
}

FOLDER_TEST(nor_without_openat2)
{
    assert_non_null(file_system_posix_by_steps()->limitation);
    only_what_lies_below_is_read(state, file_system_posix_by_steps());
}

FOLDER_TEST(a_root_may_be_named_by_a_link)
{
    struct roots roots = {0};
    struct error e;
    make_folder(at(state, "real"));
    make_file(at(state, "real/0"), "block", 5);
    assert_int_equal(symlink(at(state, "real"), at(state, "link")), 0);
    assert_int_equal(roots_add(&roots, file_system_posix(), at(state, "link"), &e), 0);
    assert_string_equal(roots.path[0], at(state, "real"));
    assert_string_equal(open_and_read(&roots, at(state, "link/0"), &e), "block");
    assert_string_equal(open_and_read(&roots, at(state, "real/0"), &e), "block");
    roots_free(&roots);
}

/* A root is the folder that had this name at the start, even if another folder has the name now. */
FOLDER_TEST(roots_are_resolved_once)
{
    struct roots roots;
    struct error e;
    open_roots(state, &roots);
    assert_int_equal(rename(at(state, "data"), at(state, "moved")), 0);
    assert_int_equal(symlink(at(state, "data2"), at(state, "data")), 0);
    assert_string_equal(open_and_read(&roots, at(state, "data/in/0"), &e), "block");
    assert_null(open_and_read(&roots, at(state, "data/secret"), &e));
    roots_free(&roots);
}

static void check_no_target(const struct roots *roots, const char *path, const char *text)
{
    struct location place;
    struct error e = {0};
    assert_int_equal(roots_find_target(roots, path, &place, &e), -1);
    assert_contains(e.text, text);
}

FOLDER_TEST(a_target_has_a_name_below_a_root)
{
    struct roots roots;
    struct location place;
    struct error e;
    open_roots(state, &roots);
    assert_int_equal(roots_find_target(&roots, at(state, "data/a//b/out//"), &place, &e), 0);
    assert_string_equal(place.path, "a/b/out");
    check_no_target(&roots, at(state, "data"), "is not below"); /* the root itself */
    check_no_target(&roots, at(state, "data2/out"), "is not below");
    check_no_target(&roots, at(state, "out"), "is not below");
    check_no_target(&roots, at(state, "data/../data2/out"), "\"..\"");
    check_no_target(&roots, at(state, "data/x/../out"), "\"..\"");
    check_no_target(&roots, at(state, "data/.."), "is a data root itself");
    check_no_target(&roots, at(state, "data/x/."), "is a data root itself");
    check_no_target(&roots, at(state, "data/x/..//"), "is a data root itself");
    check_no_target(&roots, "/", "is a data root itself");
    roots_free(&roots);
    check_no_target(&roots, at(state, "data/out"), "no data_roots");
}

/* /dev/shm is in memory; the folder of this test may be, too. */
FOLDER_TEST(a_volatile_state_folder_is_refused_beside_durable_roots)
{
    const struct file_system *files = file_system_posix();
    struct roots roots = {0};
    struct error e = {0};
    char template[] = "/dev/shm/torusd-test-XXXXXX";
    if (mkdtemp(template) == NULL)
        skip();
    int memory = files->open_folder(files->context, FILE_SYSTEM_TOP, template);
    int disk = files->open_folder(files->context, FILE_SYSTEM_TOP, *state);
    if (files->is_volatile(files->context, memory) == 1 &&
        files->is_volatile(files->context, disk) == 0) {
        assert_int_equal(roots_check_state_folder(&roots, template, memory, &e), 0);
        assert_int_equal(roots_add(&roots, files, template, &e), 0);
        assert_int_equal(roots_check_state_folder(&roots, template, memory, &e), 0);
        assert_int_equal(roots_add(&roots, files, *state, &e), 0);
        assert_int_equal(roots_check_state_folder(&roots, template, memory, &e), -1);
        assert_contains(e.text, "--state-dir");
        assert_contains(e.text, *state);
        assert_int_equal(roots_check_state_folder(&roots, *state, disk, &e), 0);
    }
    files->close(files->context, memory);
    files->close(files->context, disk);
    roots_free(&roots);
    (void)rmdir(template);
}
