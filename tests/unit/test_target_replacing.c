/* Targets that cannot be replaced, and old results that are replaced. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target_fixture.h"
#include "tests/support/cmocka.h"

#define NOBODY 54321 /* a user and group that no system has */

FOLDER_TEST(a_mount_point_is_refused)
{
    struct fixture f;
    open_fixture(&f, state);
    make_folder(at(state, "data/in"));
    make_folder(at(state, "data/other"));
    if (mount("none", at(state, "data/in"), "tmpfs", 0, NULL) != 0) { /* only root may */
        close_fixture(&f);
        skip();
    }
    check_refused(&f, false, "data/in is a mount point");
    assert_int_equal(umount(at(state, "data/in")), 0);
    /* A target on the same file system. */
    assert_int_equal(mount(at(state, "data/other"), at(state, "data/in"), "", MS_BIND, NULL), 0);
    check_refused(&f, false, "data/in is a mount point");
    assert_int_equal(umount(at(state, "data/in")), 0);
    fill_well(&f, false);
    place_well(&f);
    close_fixture(&f);
}

FOLDER_TEST(somebody_elses_folder_in_a_sticky_one_is_refused)
{
    struct fixture f;

    if (geteuid() != 0)
        skip();
    open_fixture(&f, state);
    make_folder(at(state, "data/in"));
    assert_int_equal(chmod(at(state, "data/in"), 0777), 0);
    assert_int_equal(chmod(at(state, "data"), 01777), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(chmod(at(state, "state"), 0777), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    check_refused(&f, false, "belongs to another user, and the folder above it is sticky");
    assert_int_equal(seteuid(0), 0);
    close_fixture(&f);
}

static bool set_attribute(const char *how, const char *path)
{
    char command[FIXTURE_PATH + 64];

    (void)snprintf(command, sizeof command, "chattr %s '%s' 2>/dev/null", how, path);
    return system(command) == 0; /* NOLINT: no ioctl is the same on all file systems */
}

FOLDER_TEST(immutable_folders_are_refused)
{
    static const struct {
        const char *path, *on, *off, *text;
    } cases[] = {
        {"data/in", "+i", "-i", "data/in is immutable or append-only"},
        {"data/in", "+a", "-a", "data/in is immutable or append-only"},
        {"data", "+a", "-a", "in a folder that is immutable or append-only"},
        {"data", "+i", "-i", "in a folder that is immutable or append-only"},
    };
    struct fixture f;
    open_fixture(&f, state);
    make_folder(at(state, "data/in"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = at(state, "%s", cases[i].path);
        if (!set_attribute(cases[i].on, path))
            continue; /* no root, or not on this file system: another test has another one */
        check_refused(&f, false, cases[i].text);
        assert_true(set_attribute(cases[i].off, path));
    }
    fill_well(&f, false);
    place_well(&f);
    close_fixture(&f);
}

static void make_old(void **state)
{
    make_folder(at(state, "data/in"));
    assert_int_equal(chmod(at(state, "data/in"), 0750), 0);
    make_file(at(state, "data/in/0"), "old", 3);
    make_file(at(state, "data/in/7"), "old", 3);
}

FOLDER_TEST(an_old_result_is_replaced)
{
    struct fixture f;
    open_fixture(&f, state);
    make_old(state);
    check_refused(&f, false, "exists and is not empty");
    fill_well(&f, true);
    check_file(at(state, "data/in/7"), "old", 3);
    place_well(&f);
    check_new(state);
    check_status(at(state, "data/in"), 0750, geteuid(), getegid());
    /* A missing or empty target is not an obstacle. */
    assert_int_equal(unlink(at(state, "data/in/0")) + unlink(at(state, "data/in/1")), 0);
    fill_well(&f, true);
    place_well(&f);
    check_new(state);
    close_fixture(&f);
}

FOLDER_TEST(other_things_are_not_replaced)
{
    struct fixture f;
    struct error e;
    open_fixture(&f, state);
    make_old(state);
    make_file(at(state, "data/in/notes"), "mine", 4);
    check_refused(&f, true, "contains notes, which is not a file of a result");
    assert_int_equal(unlink(at(state, "data/in/notes")), 0);
    make_folder(at(state, "data/in/3"));
    check_refused(&f, true, "contains 3, which is not a file of a result");
    assert_int_equal(rmdir(at(state, "data/in/3")), 0);
    /* An obstacle appears in the meantime. */
    fill_well(&f, true);
    make_file(at(state, "data/in/notes"), "mine", 4);
    assert_int_equal(target_place(&f.target, &e), -1);
    assert_non_null(strstr(e.text, "the complete output is kept as .in.torusd-"));
    check_file(at(state, "data/in/7"), "old", 3);
    assert_int_equal(unlink(at(state, "data/in/notes")), 0);
    place_well(&f);
    check_new(state);
    close_fixture(&f);
}

FOLDER_TEST(a_file_system_without_swaps_is_refused)
{
    struct fixture f;
    struct error e;
    long calls = 0;

    for (; calls < 1000; calls++) { /* until it is the swap that fails */
        open_fixture(&f, state);
        make_old(state);
        f.files.error = EINVAL;
        f.files.left = calls;
        bool failed = fill(&f, true, &e) != 0;
        bool found = f.files.call != NULL && strcmp(f.files.call, "swap") == 0;
        f.files.left = -1;
        assert_int_equal(target_discard(&f.target, &(struct error){0}), 0);
        check_file(at(state, "data/in/7"), "old", 3);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
        if (found) {
            assert_true(failed);
            assert_non_null(strstr(e.text, "cannot be replaced atomically on its file system"));
            return;
        }
    }
    fail();
}

/* Work that is still in the journal is done at the next start, or, for old results, when an output is closed. */
static void finish_later(struct fixture *f, bool old_result_remains)
{
    struct error e;

    target_init(&f->target, &f->roots, &f->journal, &f->made, f->output_mode, ID);
    if (target_reopen(&f->target, &e) == 0 &&
        (old_result_remains ? target_discard(&f->target, &e) : target_place(&f->target, &e)) != 0)
        fail_msg("%s: %s", f->files.call, e.text);
    target_close(&f->target);
}

/* Each system call fails once, and the daemon is killed then, or goes on: in the end only the new result is there. */
FOLDER_TEST(a_crash_leaves_the_old_or_the_new_one)
{
    for (int killed = 0; killed < 2; killed++) {
        for (long call = 0;; call++) {
            struct fixture f;
            struct error e;
            open_fixture(&f, state);
            make_old(state);
            fill_well(&f, true);
            f.files.left = call;
            bool placed = target_place(&f.target, &e) == 0;
            bool failed = f.files.failed;
            f.files.left = -1;
            if (entries(at(state, "data/in")) != 2 || /* the old one or the new one, but whole */
                exists(at(state, "data/in/7")) == exists(at(state, "data/in/1")))
                fail_msg("call %ld, %s", call, f.files.call);
            assert_true(placed ? exists(at(state, "data/in/1")) : failed);
            if (killed == 0 && !placed && target_place(&f.target, &e) != 0)
                fail_msg("call %ld, %s: %s", call, f.files.call, e.text);
            bool old_result_remains = f.target.old_result_remains;
            target_close(&f.target);
            finish_later(&f, old_result_remains);
            if (entries(at(state, "state")) != 0 || entries(at(state, "data")) != 1)
                fail_msg("call %ld, %s: something is left", call, f.files.call);
            check_new(state);
            close_fixture(&f);
            assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
            if (!failed)
                break;
        }
    }
}

/* Names that neither the old nor the new folder has any more. */
FOLDER_TEST(what_cannot_be_told_apart_is_left_alone)
{
    struct fixture f;
    struct error e;
    open_fixture(&f, state);
    make_old(state);
    fill_well(&f, true);
    f.target.entry.new_number = f.target.entry.old_number = 1;
    assert_int_equal(target_place(&f.target, &e), -1);
    assert_non_null(strstr(e.text, "cannot tell which of"));
    check_file(at(state, "data/in/7"), "old", 3);
    target_close(&f.target);
    close_fixture(&f);
}
