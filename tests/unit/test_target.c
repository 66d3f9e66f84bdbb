/* One output folder on the disk: whose it is and who may use it, what cannot be replaced, and how an old
 * result is. Root is needed for other users' folders, mounts and attributes of files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/log.h"
#include "daemon/files/target/target.h"
#include "folder_fixture.h"

#define ID "0-0000beef-1"
#define NOBODY 54321 /* a user and group that no system has */

struct fixture {
    struct faulty_files files;
    struct roots roots;
    struct journal journal;
    struct place place;
    struct target target;
    mode_t output_mode;
};

static void open_fixture(struct fixture *f, void **state)
{
    struct error e;

    log_set_level(LOG_LEVEL_ERROR);
    *f = (struct fixture){.output_mode = 0700};
    faulty_files_init(&f->files);
    make_folder(at(state, "data"));
    assert_int_equal(chmod(at(state, "data"), 0755), 0);
    assert_int_equal(roots_add(&f->roots, &f->files.files, at(state, "data"), &e), 0);
    assert_int_equal(journal_open(&f->journal, &f->files.files, at(state, "state"), &e), 0);
    assert_int_equal(roots_find_target(&f->roots, at(state, "data/in"), &f->place, &e), 0);
}

static void close_fixture(struct fixture *f)
{
    journal_close(&f->journal);
    roots_free(&f->roots);
    assert_int_equal(f->files.open, 0);
}

/* Makes an output that can be placed, of two files. */
static int fill(struct fixture *f, bool replace, struct error *e)
{
    const struct file_system *files = &f->files.files;
    const struct iovec bytes = {(char *)(uintptr_t) "new", 3};

    target_init(&f->target, &f->roots, &f->journal, f->output_mode, ID);
    if (target_prepare(&f->target, &f->place, 0, replace, e) != 0)
        return -1;
    for (uint32_t i = 0; i < 2; i++) {
        int file = target_create(&f->target, i, e);
        if (file < 0)
            return -1;
        ssize_t n = files->write(files->context, file, &bytes, 1, 0);
        files->close(files->context, file);
        if (n != 3)
            return error_set(e, ERROR_IO, "%s", strerror((int)-n));
    }
    return target_seal(&f->target, e);
}

static void fill_well(struct fixture *f, bool replace)
{
    struct error e;

    if (fill(f, replace, &e) != 0)
        fail_msg("%s", e.text);
}

static void place_well(struct fixture *f)
{
    struct error e;

    if (target_place(&f->target, &e) != 0)
        fail_msg("%s", e.text);
    target_close(&f->target);
}

static void check_refused(struct fixture *f, bool replace, const char *text)
{
    unsigned before = entries(f->roots.path[0]);
    struct error e;

    assert_int_equal(fill(f, replace, &e), -1);
    if (strstr(e.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, e.text);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_int_equal(target_discard(&f->target, &e), 0);
    assert_int_equal(entries(f->roots.path[0]), before);
}

static void check_status(const char *path, mode_t mode, uid_t owner, gid_t group)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    if ((st.st_mode & 07777) != mode || st.st_uid != owner || st.st_gid != group)
        fail_msg("%s: mode %04o, owner %u, group %u", path, st.st_mode & 07777, st.st_uid,
                 st.st_gid);
}

static void check_new(void **state)
{
    assert_int_equal(entries(at(state, "data")), 1);
    assert_int_equal(entries(at(state, "data/in")), 2);
    check_file(at(state, "data/in/0"), "new", 3);
    check_file(at(state, "data/in/1"), "new", 3);
    assert_int_equal(entries(at(state, "state")), 0);
}

/* --- who may use a result --- */

static void a_new_folder_has_the_configured_mode(void **state)
{
    static const mode_t modes[][3] = {
        {0700, 0700, 0600}, {0770, 0770, 0660}, {0755, 0755, 0644}, {02750, 02750, 0640}};
    mode_t mask = umask(027);

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct fixture f;
        open_fixture(&f, state);
        f.output_mode = modes[i][0];
        fill_well(&f, false);
        place_well(&f);
        check_new(state);
        check_status(at(state, "data/in"), modes[i][1], geteuid(), getegid());
        check_status(at(state, "data/in/1"), modes[i][2], geteuid(), getegid());
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
    (void)umask(mask);
}

static void folders_above_have_it_too(void **state)
{
    struct fixture f;
    struct error e;
    open_fixture(&f, state);
    f.output_mode = 0750;
    assert_int_equal(roots_find_target(&f.roots, at(state, "data/x/y/in"), &f.place, &e), 0);
    fill_well(&f, false);
    place_well(&f);
    check_status(at(state, "data/x"), 0750, geteuid(), getegid());
    check_status(at(state, "data/x/y"), 0750, geteuid(), getegid());
    check_status(at(state, "data/x/y/in"), 0750, geteuid(), getegid());
    close_fixture(&f);
}

static void a_folder_is_private_while_it_is_filled(void **state)
{
    struct fixture f;
    char path[FIXTURE_PATH + NAME_MAX];
    open_fixture(&f, state);
    f.output_mode = 0777;
    make_folder(at(state, "data/in"));
    assert_int_equal(chmod(at(state, "data/in"), 0755), 0);
    fill_well(&f, false);
    (void)snprintf(path, sizeof path, "%s/%s", at(state, "data"), f.target.entry.temporary);
    check_status(path, 0700, geteuid(), getegid());
    place_well(&f);
    check_status(at(state, "data/in"), 0755, geteuid(), getegid());
    check_status(at(state, "data/in/0"), 0644, geteuid(), getegid());
    close_fixture(&f);
}

static void a_prepared_folder_keeps_mode_owner_and_group(void **state)
{
    static const mode_t modes[][2] = {{0700, 0600}, {02770, 0660}, {01777, 0666}, {02750, 0640}};

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < 2 * sizeof modes / sizeof *modes; i++) {
        struct fixture f;
        const mode_t *mode = modes[i / 2];
        open_fixture(&f, state);
        const char *in = at(state, "data/in");
        make_folder(in);
        assert_int_equal(chown(in, NOBODY, NOBODY + 1), 0);
        assert_int_equal(chmod(in, mode[0]), 0);
        fill_well(&f, false);
        if (i % 2 == 1) { /* the daemon is killed and started again */
            struct error e;
            target_close(&f.target);
            target_init(&f.target, &f.roots, &f.journal, f.output_mode, ID);
            assert_int_equal(target_reopen(&f.target, &e), 0);
        }
        place_well(&f);
        check_new(state);
        check_status(in, mode[0], NOBODY, NOBODY + 1);
        check_status(at(state, "data/in/0"), mode[1], NOBODY, NOBODY + 1);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* As an ordinary user, which cannot give a folder away. */
static void what_cannot_be_kept_is_refused(void **state)
{
    struct fixture f;

    if (geteuid() != 0)
        skip();
    open_fixture(&f, state);
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(chmod(at(state, "data"), 0777), 0);
    assert_int_equal(chmod(at(state, "state"), 0777), 0);
    make_folder(at(state, "data/in"));
    assert_int_equal(chmod(at(state, "data/in"), 0777), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    check_refused(&f, false, "cannot give to the new folder in its place: Operation not permitted");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(at(state, "data/in"), 0755), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    check_refused(&f, false, "cannot be written by torusd: Permission denied");
    assert_int_equal(seteuid(0), 0);
    close_fixture(&f);
}

/* Version 2; entries of tag, permissions and id: the owner, user NOBODY, the group, the mask, others. */
static const uint8_t list[] = {2, 0,    0,    0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  7,
                               0, 0x31, 0xd4, 0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
                               5, 0,    255,  255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};

static void access_control_lists_are_kept(void **state)
{
    for (int restarted = 0; restarted < 2; restarted++) {
        struct fixture f;
        uint8_t found[64];
        open_fixture(&f, state);
        const char *in = at(state, "data/in");
        make_folder(in);
        if (setxattr(in, "system.posix_acl_access", list, sizeof list, 0) != 0)
            skip(); /* none on this file system */
        assert_int_equal(setxattr(in, "system.posix_acl_default", list, sizeof list, 0), 0);
        fill_well(&f, false);
        const char *hidden = at(state, "data/%s", f.target.entry.temporary);
        check_status(hidden, 0700, geteuid(), getegid()); /* the mask permits nothing */
        if (restarted == 1) {
            struct error e;
            target_close(&f.target);
            target_init(&f.target, &f.roots, &f.journal, f.output_mode, ID);
            assert_int_equal(target_reopen(&f.target, &e), 0);
        }
        place_well(&f);
        check_new(state);
        assert_int_equal(getxattr(in, "system.posix_acl_access", found, sizeof found), sizeof list);
        assert_memory_equal(found, list, sizeof list);
        assert_int_equal(getxattr(in, "system.posix_acl_default", found, sizeof found),
                         sizeof list);
        assert_memory_equal(found, list, sizeof list);
        const char *file = at(state, "data/in/0");
        assert_int_equal(getxattr(file, "system.posix_acl_access", found, sizeof found),
                         sizeof list);
        check_status(file, 0640, geteuid(), getegid()); /* files follow the default list */
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* A new folder follows the list of the one above it, as far as its mode lets it. */
static void an_inherited_list_is_limited_by_the_mode(void **state)
{
    static const mode_t modes[][3] = {{0700, 0700, 0600}, {0777, 0750, 0640}};

    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        open_fixture(&f, state);
        if (setxattr(at(state, "data"), "system.posix_acl_default", list, sizeof list, 0) != 0)
            skip();
        f.output_mode = modes[i][0];
        fill_well(&f, false);
        place_well(&f);
        check_status(at(state, "data/in"), modes[i][1], geteuid(), getegid());
        check_status(at(state, "data/in/0"), modes[i][2], geteuid(), getegid());
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* --- what cannot be replaced --- */

static void a_mount_point_is_refused(void **state)
{
    struct fixture f;
    open_fixture(&f, state);
    make_folder(at(state, "data/in"));
    make_folder(at(state, "data/other"));
    if (mount("none", at(state, "data/in"), "tmpfs", 0, NULL) != 0)
        skip();
    check_refused(&f, false, "data/in is a mount point");
    assert_int_equal(umount(at(state, "data/in")), 0);
    /* One of the same file system. */
    assert_int_equal(mount(at(state, "data/other"), at(state, "data/in"), "", MS_BIND, NULL), 0);
    check_refused(&f, false, "data/in is a mount point");
    assert_int_equal(umount(at(state, "data/in")), 0);
    fill_well(&f, false);
    place_well(&f);
    close_fixture(&f);
}

static void somebody_elses_folder_in_a_sticky_one_is_refused(void **state)
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
    check_refused(&f, false, "belongs to somebody else, and the folder above it is sticky");
    assert_int_equal(seteuid(0), 0);
    close_fixture(&f);
}

static bool set_attribute(const char *how, const char *path)
{
    char command[FIXTURE_PATH + 64];

    (void)snprintf(command, sizeof command, "chattr %s '%s' 2>/dev/null", how, path);
    return system(command) == 0; /* NOLINT: no ioctl is the same on all file systems */
}

static void immutable_folders_are_refused(void **state)
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
            continue; /* no root, or not on this file system: test_disks.py has another one */
        check_refused(&f, false, cases[i].text);
        assert_true(set_attribute(cases[i].off, path));
    }
    fill_well(&f, false);
    place_well(&f);
    close_fixture(&f);
}

/* --- replacing an old result --- */

static void make_old(void **state)
{
    make_folder(at(state, "data/in"));
    assert_int_equal(chmod(at(state, "data/in"), 0750), 0);
    make_file(at(state, "data/in/0"), "old", 3);
    make_file(at(state, "data/in/7"), "old", 3);
}

static void an_old_result_is_replaced(void **state)
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
    /* What is not there, or empty, is not in the way. */
    assert_int_equal(unlink(at(state, "data/in/0")) + unlink(at(state, "data/in/1")), 0);
    fill_well(&f, true);
    place_well(&f);
    check_new(state);
    close_fixture(&f);
}

static void other_things_are_not_replaced(void **state)
{
    struct fixture f;
    struct error e;
    open_fixture(&f, state);
    make_old(state);
    make_file(at(state, "data/in/notes"), "mine", 4);
    check_refused(&f, true, "holds notes, which is no file of a result");
    assert_int_equal(unlink(at(state, "data/in/notes")), 0);
    make_folder(at(state, "data/in/3"));
    check_refused(&f, true, "holds 3, which is no file of a result");
    assert_int_equal(rmdir(at(state, "data/in/3")), 0);
    /* Somebody puts something there meanwhile. */
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

static void a_file_system_without_swaps_is_refused(void **state)
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
            assert_non_null(strstr(e.text, "cannot be replaced at once on its file system"));
            return;
        }
    }
    fail();
}

/* What the journal still knows is done by the next start, or, of an old result only, when an output is closed. */
static void finish_later(struct fixture *f, bool left_over)
{
    struct error e;

    target_init(&f->target, &f->roots, &f->journal, f->output_mode, ID);
    if (target_reopen(&f->target, &e) == 0 &&
        (left_over ? target_discard(&f->target, &e) : target_place(&f->target, &e)) != 0)
        fail_msg("%s: %s", f->files.call, e.text);
    target_close(&f->target);
}

/* Each call fails once, and the daemon is killed there, or goes on: in the end there is the new result, and
 * nothing else. */
static void a_crash_leaves_the_old_or_the_new_one(void **state)
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
            bool left_over = f.target.left_over;
            target_close(&f.target);
            finish_later(&f, left_over);
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
static void what_cannot_be_told_apart_is_left_alone(void **state)
{
    struct fixture f;
    struct error e;
    open_fixture(&f, state);
    make_old(state);
    fill_well(&f, true);
    f.target.entry.new_number = f.target.entry.old_number = 1;
    assert_int_equal(target_place(&f.target, &e), -1);
    assert_non_null(strstr(e.text, "it cannot be told which of them is the new result"));
    check_file(at(state, "data/in/7"), "old", 3);
    target_close(&f.target);
    close_fixture(&f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_folder_has_the_configured_mode),
        TEST(folders_above_have_it_too),
        TEST(a_folder_is_private_while_it_is_filled),
        TEST(a_prepared_folder_keeps_mode_owner_and_group),
        TEST(what_cannot_be_kept_is_refused),
        TEST(access_control_lists_are_kept),
        TEST(an_inherited_list_is_limited_by_the_mode),
        TEST(a_mount_point_is_refused),
        TEST(somebody_elses_folder_in_a_sticky_one_is_refused),
        TEST(immutable_folders_are_refused),
        TEST(an_old_result_is_replaced),
        TEST(other_things_are_not_replaced),
        TEST(a_file_system_without_swaps_is_refused),
        TEST(a_crash_leaves_the_old_or_the_new_one),
        TEST(what_cannot_be_told_apart_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
