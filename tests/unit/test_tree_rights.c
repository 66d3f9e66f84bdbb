/* Copies by a daemon that may not do everything: one without root, and names that even root may not change. */
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "daemon/torusd/tree/staging.h"
#include "tests/support/cmocka.h"

#define USER 54321 /* that no system has */

static void shell(const char *format, const char *path)
{
    char command[2 * FIXTURE_PATH];

    (void)snprintf(command, sizeof command, format, path);
    assert_int_equal(system(command), 0);
}

static int rights_teardown(void **state)
{
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
    shell("chattr -R -i %s 2>/dev/null || true", *state);
    if (getuid() != 0)
        shell("chmod -R u+rwx %s", *state);
    return copying_teardown(state);
}

#define RIGHTS_TEST(name) TEST_WITH(copying_setup, rights_teardown, name)

/* Lets an ordinary user write to "data". */
static void give_folders(void **state)
{
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(chown(at(state, "data"), USER, USER), 0);
    assert_int_equal(chown(at(state, "state"), USER, USER), 0);
    assert_int_equal(chown(at(state, "state/copies"), USER, USER), 0);
}

/* From here on, this process has the rights of an ordinary user, who may write to "data". */
static void become_user(void **state)
{
    if (geteuid() != 0)
        return;
    give_folders(state);
    assert_int_equal(seteuid(USER), 0);
}

static void make_closed(const char *path, mode_t mode)
{
    char file[FIXTURE_PATH];

    make_folder(path);
    (void)snprintf(file, sizeof file, "%s/f", path);
    make_file(file, "x", 1);
    assert_int_equal(chmod(path, mode), 0);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777u;
}

/* As an ordinary user, who cannot give files away, and whose folders may be closed to it. */
RIGHTS_TEST(an_ordinary_user_copies_what_it_may)
{
    pid_t child;
    int status;

    if (geteuid() != 0)
        skip();
    give_folders(state);
    random_tree(at(state, "data/of-root"), 9, 20);
    assert_int_equal(
        system(strcat(strcpy((char[4096]){0}, "chmod -R a+rX "), at(state, "data/of-root"))), 0);
    child = fork();
    if (child == 0) {
        if (setgid(USER) != 0 || setuid(USER) != 0)
            _exit(1);
        make_folder(at(state, "data/from"));
        make_folder(at(state, "data/from/closed"));
        make_folder(at(state, "data/from/closed/deep"));
        make_file(at(state, "data/from/closed/deep/x"), "x", 1);
        (void)chmod(at(state, "data/from/closed/deep/x"), 0400);
        (void)chmod(at(state, "data/from/closed/deep"), 0500);
        (void)chmod(at(state, "data/from/closed"), 0500);
        const struct how other = {.from = at(state, "data/of-root"), .to = at(state, "data/mine")};
        for (unsigned i = 0; i < 2; i++) {
            if (copy() != 0 || !trees_are_equal(how.from, how.to, true) ||
                copying_run(&copying, &other, &result) != 0 || result.report.not_owned < 15 ||
                (i == 1 && result.report.added + result.report.changed > 0)) {
                (void)fprintf(stderr, "%u: %s\n", i, result.error.text);
                _exit(2);
            }
        }
        struct stat st;
        (void)chmod(at(state, "data/from/closed/deep"), 0700);
        make_file(at(state, "data/from/closed/deep/y"), "y", 1);
        (void)chmod(at(state, "data/from/closed/deep"), 0500);
        if (copy() != 0 || !trees_are_equal(how.from, how.to, true) ||
            lstat(at(state, "data/to/closed"), &st) != 0 || (st.st_mode & 07777) != 0500)
            _exit(3);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

RIGHTS_TEST(new_folders_may_be_closed_to_their_owner)
{
    become_user(state);
    make_folder(at(state, "data/from"));
    make_closed(at(state, "data/from/a"), 0755);
    (void)copying_well(&copying, at(state, "data/from"), at(state, "data/to"));
    make_closed(at(state, "data/from/n"), 0755);
    make_closed(at(state, "data/from/n/deep"), 0555);
    assert_int_equal(chmod(at(state, "data/from/n"), 0555), 0);
    (void)copying_well(&copying, at(state, "data/from"), at(state, "data/to"));
    check_equal(at(state, "data/from"), at(state, "data/to"));
    (void)copying_well(&copying, at(state, "data/from/n"), at(state, "data/only-n"));
    check_equal(at(state, "data/from/n"), at(state, "data/only-n"));
    assert_int_equal(mode_of(at(state, "data/only-n")), 0555);
}

/* A crash after a file got its mode, and before the record says that it is complete. */
RIGHTS_TEST(a_read_only_file_is_resumed)
{
    how.stop_after = 300000;
    char staged[FIXTURE_PATH * 2];

    become_user(state);
    make_folder(how.from);
    random_file(at(state, "data/from/f"), 3, 600000);
    assert_int_equal(chmod(at(state, "data/from/f"), 0400), 0);
    copy_well();
    (void)snprintf(staged, sizeof staged, "%s",
                   at(state, "data/.to.torus-copy/" STAGING_FILES "/00000/1"));
    assert_int_equal(chmod(staged, 0400), 0);
    how.stop_after = 0;
    copy_well();
    assert_int_equal(result.moved, 300000);
    check_equal(how.from, how.to);
}

/* Gives the folder "to" to root; or back to the user. */
static void give_to_root(void *context)
{
    void **state = context;

    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chown(at(state, "data/to"), 0, 0), 0);
    assert_int_equal(seteuid(USER), 0);
}

static void give_to_user(void **state)
{
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chown(at(state, "data/to"), USER, USER), 0);
    assert_int_equal(seteuid(USER), 0);
}

/* The target may not be changed any more when a new folder is to be put in place: what was built is not part of later
 * copies. */
RIGHTS_TEST(a_folder_of_an_earlier_copy_is_not_put_in_place)
{
    if (getuid() != 0)
        skip();
    become_user(state);
    make_folder(how.from);
    copy_well();
    make_folder(at(state, "data/from/n"));
    make_closed(at(state, "data/from/n/secret"), 0555);
    how.before_finish = give_to_root;
    how.argument = state;
    assert_int_equal(copy(), -1);
    assert_true(exists(at(state, "data/.to.torus-copy/tree/secret/f")));
    how.before_finish = NULL;
    shell("cd %s && chmod -R u+w n && rm -r n", how.from);
    make_folder(at(state, "data/from/empty"));
    assert_fails(copy(), result.error, ERROR_REFUSED, "");
    give_to_user(state);
    copy_well();
    check_equal(how.from, how.to);
    assert_int_equal(entries(at(state, "data")), 2);
}

RIGHTS_TEST(closed_folders_are_removed)
{
    static const char *const patterns[] = {"- kept"};
    how.write = (struct tree_write_options){.delete = true, .pattern = patterns, .patterns = 1};
    become_user(state);
    make_folder(how.from);
    make_file(at(state, "data/from/way"), "way", 3);
    make_folder(how.to);
    make_folder(at(state, "data/to/old"));
    make_closed(at(state, "data/to/old/deep"), 0555);
    assert_int_equal(chmod(at(state, "data/to/old"), 0555), 0);
    make_closed(at(state, "data/to/way"), 0500);
    make_closed(at(state, "data/to/more"), 0755);
    make_file(at(state, "data/to/more/kept"), "k", 1);
    assert_int_equal(chmod(at(state, "data/to/more"), 0550), 0);
    copy_well();
    assert_int_equal(result.report.removed, 5);
    assert_false(exists(at(state, "data/to/old")));
    check_file(at(state, "data/to/way"), "way", 3);
    assert_int_equal(entries(at(state, "data/to/more")), 1);
    assert_int_equal(mode_of(at(state, "data/to/more")), 0550);
}

/* Fails the test unless the copy is refused before anything is changed, as it is if it only looks. */
static void check_refused(const char *text, const char *tree)
{
    for (int look_only = 1; look_only >= 0; look_only--) {
        how.write.look_only = look_only;
        copy_refused(ERROR_REFUSED, text);
    }
    check_equal(tree, how.to);
}

/* Whether the file system has files that nobody may change. */
static bool make_immutable(const char *path)
{
    char command[2 * FIXTURE_PATH];

    (void)snprintf(command, sizeof command, "chattr +i %s 2>/dev/null", path);
    return geteuid() == 0 && system(command) == 0;
}

RIGHTS_TEST(what_cannot_be_removed_is_found_before_anything_changes)
{
    how.write.delete = true;
    make_folder(how.from);
    make_file(at(state, "data/from/new"), "new", 3);
    make_folder(how.to);
    make_file(at(state, "data/to/new"), "older", 5);
    make_folder(at(state, "data/to/z"));
    make_file(at(state, "data/to/z/fixed"), "f", 1);
    shell("cd %s/data && cp -a to before", *state);
    bool immutable = make_immutable(at(state, "data/to/z/fixed"));
    if (immutable) {
        check_refused("z/fixed is immutable", at(state, "data/before"));
        /* in the way */
        make_file(at(state, "data/from/z"), "file", 4);
        check_refused("z/fixed is immutable", at(state, "data/before"));
    }
    if (!immutable)
        skip();
}

/* Contents are equal; something else differs. */
RIGHTS_TEST(fixed_metadata_is_refused)
{
    bool immutable = true;

    make_folder(how.from);
    make_file(at(state, "data/from/a"), "a", 1);
    make_file(at(state, "data/from/f"), "f", 1);
    make_folder(at(state, "data/from/folder"));
    copy_well();
    make_file(at(state, "data/from/a"), "changed", 7);
    for (unsigned i = 0; i < 2 && immutable; i++) {
        char name[FIXTURE_PATH];
        (void)strcpy(name, at(state, i == 0 ? "data/to/f" : "data/to/folder"));
        assert_int_equal(chmod(name, 0700), 0);
        immutable = make_immutable(name);
        shell("cd %s/data && rm -rf before && cp -a to before", *state);
        if (immutable)
            check_refused("is immutable", at(state, "data/before"));
        shell("chattr -i %s 2>/dev/null || true", name);
        copy_well();
        check_equal(how.from, how.to);
        make_file(at(state, "data/from/a"), "again", 5);
    }
    if (!immutable)
        skip();
}

struct fix {
    char path[FIXTURE_PATH];
    bool works;
};

static void fix(void *context)
{
    struct fix *f = context;

    f->works = make_immutable(f->path);
}

/* A user makes a file immutable when it has been compared. */
RIGHTS_TEST(metadata_fixed_meanwhile_is_an_error)
{
    struct fix f;
    how.before_finish = fix;
    how.argument = &f;
    make_folder(how.from);
    make_file(at(state, "data/from/f"), "f", 1);
    (void)copying_well(&copying, how.from, how.to);
    (void)strcpy(f.path, at(state, "data/to/f"));
    assert_int_equal(chmod(f.path, 0700), 0);
    int copied = copy();
    if (!f.works)
        skip();
    assert_int_equal(copied, -1);
    assert_contains(result.error.text, "to/f cannot be changed");
}

/* The mode of a file of another user cannot be set: the report counts it. */
RIGHTS_TEST(modes_of_files_of_others_are_counted)
{
    if (getuid() != 0)
        skip();
    become_user(state);
    assert_int_equal(seteuid(0), 0);
    make_folder(how.from);
    make_file(at(state, "data/from/f"), "f", 1);
    shell("cd %s/data && cp -a from to && chmod 600 to/f && chmod 755 from to", *state);
    assert_int_equal(seteuid(USER), 0);
    assert_int_equal(chmod(how.to, 0755), -1);
    copy_well();
    assert_int_equal(result.report.changed, 1);
    assert_int_equal(result.report.not_owned, 1);
}

RIGHTS_TEST(files_of_others_in_sticky_folders_stay)
{
    how.write.delete = true;
    if (getuid() != 0)
        skip();
    make_folder(how.from);
    make_file(at(state, "data/from/new"), "new", 3);
    make_folder(how.to);
    make_file(at(state, "data/to/new"), "older", 5);
    make_folder(at(state, "data/to/sticky"));
    make_file(at(state, "data/to/sticky/of-root"), "f", 1);
    shell("cd %s && cp -a data/to data/before && chmod 755 . && chown 54321:54321 data state "
          "state/* data/* "
          "data/*/new && chmod 1777 data/*/sticky",
          *state);
    assert_int_equal(seteuid(USER), 0);
    check_refused("of-root belongs to another user", at(state, "data/before"));
}

RIGHTS_TEST(the_folder_of_several_sources_keeps_its_mode)
{
    const char *sources[] = {at(state, "data/from")};
    how.read.path = sources;
    how.read.paths = 1;
    how.from = NULL;
    how.to = at(state, "data/into");
    how.write.into = true;
    become_user(state);
    make_folder(sources[0]);
    make_folder(how.to);
    make_folder(at(state, "data/before"));
    assert_int_equal(chmod(how.to, 0555) + chmod(at(state, "data/before"), 0555), 0);
    shell("cd %s/data && touch -r into before", *state);
    if (geteuid() != 0)
        check_refused("into does not let torusd", at(state, "data/before"));
}

/* --- user namespaces --- */

static bool write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    const bool good = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);

    if (file >= 0)
        (void)close(file);
    return good;
}

/* Copies twice as root of a namespace that has no other user. Returns 0; 2: this machine has no such namespaces. */
static int copy_in_namespace(void **state)
{
    if (unshare(CLONE_NEWUSER) != 0 || !write_text("/proc/self/uid_map", "0 0 1") ||
        !write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/gid_map", "0 0 1"))
        return 2;
    if (copy() != 0 || result.report.not_owned == 0)
        return 3;
    for (unsigned i = 0; i < 3; i++) { /* nothing is different, also for --verify */
        how.write.checksum = how.write.look_only = i == 2;
        if (copy() != 0 || result.report.unchanged != 4 || result.report.changed != 0 ||
            result.moved != 0)
            return 4;
    }
    return 0;
}

/* What belongs to users whom the namespace does not have cannot be given to them: that is no difference. */
RIGHTS_TEST(owners_that_cannot_be_set_are_no_difference)
{
    int status;

    if (geteuid() != 0)
        skip();
    make_folder(at(state, "data/from"));
    make_folder(at(state, "data/from/folder"));
    make_file(at(state, "data/from/folder/theirs"), "theirs", 6);
    assert_int_equal(symlink("theirs", at(state, "data/from/folder/link")), 0);
    assert_int_equal(chown(at(state, "data/from/folder/theirs"), USER, USER), 0);
    assert_int_equal(lchown(at(state, "data/from/folder/link"), USER, USER), 0);
    assert_int_equal(chown(at(state, "data/from/folder"), USER, USER), 0);
    assert_int_equal(chmod(at(state, "data/from/folder"), 0777), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(copy_in_namespace(state));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}
