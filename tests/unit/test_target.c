/* Access rights of results, and how a result replaces what is there. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/target.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

#define ID "0-0000beef-1"

struct fixture {
    struct faulty_files files;
    struct roots roots;
    struct journal journal;
    struct made_folders made;
    char path[FIXTURE_PATH]; /* of the target */
    struct target target;
    mode_t output_mode;
};

/* A data root "data" and a state folder. */
static void open_fixture(struct fixture *f, void **state)
{
    struct error e;

    log_set_level(LOG_LEVEL_ERROR);
    *f = (struct fixture){.output_mode = 0700};
    faulty_files_init(&f->files);
    made_folders_init(&f->made);
    make_folder(at(state, "data"));
    assert_int_equal(chmod(at(state, "data"), 0755), 0);
    assert_int_equal(roots_add(&f->roots, &f->files.files, at(state, "data"), &e), 0);
    assert_int_equal(journal_open(&f->journal, &f->files.files, at(state, "state"), &e), 0);
    (void)strcpy(f->path, at(state, "data/in"));
}

/* Fails the test if anything is left open. */
static void close_fixture(struct fixture *f)
{
    journal_close(&f->journal);
    made_folders_free(&f->made);
    roots_free(&f->roots);
    assert_int_equal(f->files.open, 0);
}

/* Makes an output that can be placed, of two files. */
static int fill(struct fixture *f, bool replace, struct error *e)
{
    const struct file_system *files = &f->files.files;
    const struct iovec bytes = {(char *)(uintptr_t) "new", 3};

    target_init(&f->target, &f->roots, &f->journal, &f->made, f->output_mode, ID);
    if (target_find(&f->target, f->path, 0, e) != 0 || target_prepare(&f->target, replace, e) != 0)
        return -1;
    for (uint32_t i = 0; i < 2; i++) {
        int file = target_open(&f->target, i, true, e);
        if (file < 0)
            return -1;
        ssize_t n = files->write(files->context, file, &bytes, 1, 0);
        files->close(files->context, file);
        if (n != 3)
            return error_set(e, ERROR_IO, "%s", strerror((int)-n));
    }
    uint64_t contents;
    return target_contents(&f->target, &contents, e) == 0 ? target_seal(&f->target, contents, e)
                                                          : -1;
}

/* The same; fails the test unless it succeeds. */
static void fill_well(struct fixture *f, bool replace)
{
    struct error e;

    assert_success(fill(f, replace, &e), e);
}

/* Puts the output in place. */
static void place_well(struct fixture *f)
{
    struct error e;

    assert_success(target_install(&f->target, &e), e);
    staging_close(&f->target.staging);
}

/* Fails the test unless the target is refused with this text and nothing is left. */
static void check_refused(struct fixture *f, bool replace, const char *text)
{
    unsigned before = entries(f->roots.path[0]);
    struct error e;

    assert_int_equal(fill(f, replace, &e), -1);
    assert_contains(e.text, text);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_int_equal(target_discard(&f->target, &e), 0);
    assert_int_equal(entries(f->roots.path[0]), before);
}

/* Fails the test unless the file has this mode, owner and group. */
static void check_status(const char *path, mode_t mode, uid_t owner, gid_t group)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    if ((st.st_mode & 07777) != mode || st.st_uid != owner || st.st_gid != group)
        fail_msg("%s: mode %04o, owner %u, group %u", path, st.st_mode & 07777, st.st_uid,
                 st.st_gid);
}

/* Checks that the new result is in place, and nothing else. */
static void check_new(void **state)
{
    assert_int_equal(entries(at(state, "data")), 1);
    assert_int_equal(entries(at(state, "data/in")), 2);
    check_file(at(state, "data/in/0"), "new", 3);
    check_file(at(state, "data/in/1"), "new", 3);
    assert_int_equal(entries(at(state, "state")), 0);
}

#define NOBODY 54321 /* a user and group that no system has */

FOLDER_TEST(a_new_folder_has_the_configured_mode)
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

FOLDER_TEST(folders_above_have_it_too)
{
    struct fixture f;
    open_fixture(&f, state);
    f.output_mode = 0750;
    (void)strcpy(f.path, at(state, "data/x/y/in"));
    fill_well(&f, false);
    place_well(&f);
    check_status(at(state, "data/x"), 0750, geteuid(), getegid());
    check_status(at(state, "data/x/y"), 0750, geteuid(), getegid());
    check_status(at(state, "data/x/y/in"), 0750, geteuid(), getegid());
    close_fixture(&f);
}

FOLDER_TEST(a_folder_is_private_while_it_is_filled)
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

FOLDER_TEST(a_prepared_folder_keeps_mode_owner_and_group)
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
            staging_close(&f.target.staging);
            target_init(&f.target, &f.roots, &f.journal, &f.made, f.output_mode, ID);
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
FOLDER_TEST(what_cannot_be_kept_is_refused)
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
    check_refused(&f, false, ": Permission denied");
    assert_int_equal(seteuid(0), 0);
    close_fixture(&f);
}

/* Version 2; entries of tag, permissions and id: the owner, user NOBODY, the group, the mask, others. */
static const uint8_t list[] = {2, 0,    0,    0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  7,
                               0, 0x31, 0xd4, 0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
                               5, 0,    255,  255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};

FOLDER_TEST(access_control_lists_are_kept)
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
            staging_close(&f.target.staging);
            target_init(&f.target, &f.roots, &f.journal, &f.made, f.output_mode, ID);
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

/* A new folder follows the list of the folder above it, as far as its mode permits. */
FOLDER_TEST(an_inherited_list_is_limited_by_the_mode)
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

/* The set-group-ID bit of the folder above says which group new files get, with a list and without. */
FOLDER_TEST(a_new_folder_inherits_the_set_group_id)
{
    for (int with_list = 0; with_list < 2; with_list++) {
        struct fixture f;
        struct stat st;
        static const char *const made[] = {"data/x", "data/x/in"};
        open_fixture(&f, state);
        assert_int_equal(chmod(at(state, "data"), 02755), 0);
        if (with_list != 0 &&
            setxattr(at(state, "data"), "system.posix_acl_default", list, sizeof list, 0) != 0)
            skip();
        f.output_mode = 0750;
        (void)strcpy(f.path, at(state, "data/x/in"));
        fill_well(&f, false);
        place_well(&f);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(stat(at(state, made[i]), &st), 0);
            assert_int_equal(st.st_mode & S_ISGID, S_ISGID);
        }
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* Targets that cannot be replaced, and old results that are replaced. */

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
            continue; /* no root, or not on this file system: test_targets.py has another one */
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
    assert_int_equal(target_install(&f.target, &e), -1);
    assert_contains(e.text, "the complete output is kept as .in.torusd-");
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
            assert_contains(e.text, "cannot be replaced atomically on its file system");
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
        (old_result_remains ? target_discard(&f->target, &e) : target_install(&f->target, &e)) != 0)
        fail_msg("%s: %s", f->files.call, e.text);
    staging_close(&f->target.staging);
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
            bool placed = target_install(&f.target, &e) == 0;
            bool failed = f.files.failed;
            f.files.left = -1;
            if (entries(at(state, "data/in")) != 2 || /* the old one or the new one, but whole */
                exists(at(state, "data/in/7")) == exists(at(state, "data/in/1")))
                fail_msg("call %ld, %s", call, f.files.call);
            assert_true(placed ? exists(at(state, "data/in/1")) : failed);
            if (killed == 0 && !placed && target_install(&f.target, &e) != 0)
                fail_msg("call %ld, %s: %s", call, f.files.call, e.text);
            bool old_result_remains = f.target.old_result_remains;
            staging_close(&f.target.staging);
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
    assert_int_equal(target_install(&f.target, &e), -1);
    assert_contains(e.text, "cannot tell which of");
    check_file(at(state, "data/in/7"), "old", 3);
    staging_close(&f.target.staging);
    close_fixture(&f);
}

/* A copy writes to the target: refused as long as it uses its folder. What an interrupted copy has left does not matter, nor
 * a copy to another target. */
FOLDER_TEST(the_target_of_a_copy_is_left_alone)
{
    struct fixture f;
    struct error e;
    open_fixture(&f, state);
    make_folder(at(state, "data/.other.torus-copy"));
    make_folder(at(state, "data/.in.torus-copy"));
    int folder = open(at(state, "data/.in.torus-copy"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int other = open(at(state, "data/.other.torus-copy"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(folder, LOCK_EX) | flock(other, LOCK_EX), 0);
    assert_fails(fill(&f, false, &e), e, ERROR_BUSY, "a copy is writing to ");
    assert_int_equal(target_discard(&f.target, &e), 0);
    (void)close(folder);
    fill_well(&f, false);
    place_well(&f);
    (void)close(other);
    close_fixture(&f);
}
