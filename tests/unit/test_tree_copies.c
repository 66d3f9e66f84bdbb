/* Copies from a reader to a writer. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "tests/support/cmocka.h"

static void copy_how(struct copying *c, const struct how *how, struct copied *result)
{
    if (copying_run(c, how, result) != 0)
        fail_msg("%s", result->error.text);
}

FOLDER_TEST(a_new_tree_is_equal)
{
    struct copying c;

    for (unsigned seed = 1; seed <= 12; seed++) {
        copying_open(&c, state);
        const char *from = at(state, "data/from%u", seed), *to = at(state, "data/to%u", seed);
        random_tree(from, seed, 60);
        struct how how = {.from = from,
                          .to = to,
                          .piece = seed % 2 == 0 ? 5000 : 1000000,
                          .seed = seed % 3,
                          .threads = seed % 4};
        struct copied result;
        copy_how(&c, &how, &result);
        check_equal(from, to);
        assert_int_equal(result.moved, result.report.bytes);
        assert_int_equal(result.report.bytes_missing, result.report.bytes);
        assert_int_equal(result.report.unchanged + result.report.changed, 0);
        /* a second copy moves and changes nothing */
        copy_how(&c, &how, &result);
        assert_int_equal(result.moved, 0);
        assert_int_equal(result.report.added + result.report.changed, 0);
        assert_true(result.report.unchanged > 0);
        assert_int_equal(entries(at(state, "data")), 2 * seed); /* no staging is left */
        assert_int_equal(entries(at(state, "state/copies")), 0);
        copying_close(&c);
    }
}

FOLDER_TEST(a_changed_tree_is_equal_again)
{
    struct copying c;

    for (unsigned seed = 1; seed <= 25; seed++) {
        copying_open(&c, state);
        const char *from = at(state, "data/from%u", seed), *to = at(state, "data/to%u", seed);
        random_tree(from, seed, 40);
        (void)copying_well(&c, from, to);
        random_changes(from, seed);
        random_changes(to, seed + 1000);
        struct how how = {
            .from = from,
            .to = to,
            .seed = seed % 3,
            .threads = seed % 4,
            .write = {.delete = true, .checksum = seed % 5 == 0, .as_it_comes = seed % 3 == 0}};
        struct copied result, looked;
        struct how look = how;
        look.write.look_only = true;
        copy_how(&c, &look, &looked);
        copy_how(&c, &how, &result);
        check_equal(from, to);
        assert_int_equal(looked.report.added, result.report.added);
        assert_int_equal(looked.report.changed, result.report.changed);
        assert_int_equal(looked.report.removed, result.report.removed);
        assert_int_equal(looked.report.bytes_missing, result.report.bytes_missing);
        copy_how(&c, &how, &result);
        assert_int_equal(result.report.added + result.report.changed + result.report.removed, 0);
        copying_close(&c);
    }
}

/* --- mount points --- */

static int on_mount_points(void **state)
{
    struct copying c;
    struct copied result;

    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0)
        return 2;
    copying_open(&c, state);
    struct how how = {
        .from = at(state, "data/from"), .to = at(state, "data/to"), .write = {.delete = true}};
    random_tree(how.from, 60, 20);
    make_folder(at(state, "data/from/sub"));
    make_file(at(state, "data/from/sub/x"), "x", 1);
    make_folder(how.to);
    if (mount("tmpfs", how.to, "tmpfs", 0, "size=20m") != 0)
        return 2;
    /* a target that is one is filled */
    for (unsigned i = 0; i < 2; i++) {
        if (copying_run(&c, &how, &result) != 0 || !trees_are_equal(how.from, how.to, true) ||
            (i == 1 && result.report.added + result.report.changed > 0)) {
            (void)fprintf(stderr, "%u: %s, first %s\n", i, result.error.text, result.report.first);
            return 3;
        }
    }
    /* one below is not */
    if (mount("tmpfs", at(state, "data/to/sub"), "tmpfs", 0, "size=1m") != 0)
        return 2;
    if (copying_run(&c, &how, &result) != -1 || result.error.code != ERROR_REFUSED ||
        strstr(result.error.text, "to/sub is a mount point") == NULL)
        return 4;
    /* and what the source lacks is not removed there */
    make_file(at(state, "data/to/sub/other"), "o", 1);
    if (unlink(at(state, "data/from/sub/x")) != 0 || rmdir(at(state, "data/from/sub")) != 0 ||
        copying_run(&c, &how, &result) != 0 || !exists(at(state, "data/to/sub/other")))
        return 5;
    copying_close(&c);
    return 0;
}

FOLDER_TEST(mount_points_are_not_crossed)
{
    int status;

    if (geteuid() != 0)
        skip();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(on_mount_points(state));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip(); /* this machine allows no mounts */
    assert_int_equal(WEXITSTATUS(status), 0);
}
