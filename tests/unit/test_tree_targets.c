/* What copies do with what the target has already. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "tests/support/cmocka.h"

/* data/from with a/x, b; data/to with what a test adds. */
static void small_trees(void **state)
{
    make_folder(at(state, "data/from"));
    make_folder(at(state, "data/from/a"));
    make_file(at(state, "data/from/a/x"), "x", 1);
    make_file(at(state, "data/from/b"), "new", 3);
    make_folder(at(state, "data/to"));
}

COPYING_TEST(a_folder_gives_way_only_if_it_is_empty)
{
    small_trees(state);
    make_folder(at(state, "data/to/b"));
    make_folder(at(state, "data/to/b/c"));
    make_file(at(state, "data/to/b/c/y"), "y", 1);
    copy_refused(ERROR_REFUSED, "to/b is a folder with something in it");
    assert_true(exists(at(state, "data/to/b/c/y")));
    assert_false(exists(at(state, "data/to/a")));
    how.write.delete = true;
    copy_well();
    assert_int_equal(result.report.removed, 2);
    check_equal(how.from, how.to);

    assert_int_equal(unlink(at(state, "data/to/b")), 0);
    make_folder(at(state, "data/to/b"));
    how.write.delete = false;
    copy_well();
    check_equal(how.from, how.to);
}

COPYING_TEST(a_file_gives_way_to_a_folder)
{
    small_trees(state);
    make_file(at(state, "data/to/a"), "a", 1);
    copy_well();
    assert_int_equal(result.report.changed, 2); /* the file, and the target's own time */
    check_equal(how.from, how.to);
}

COPYING_TEST(what_the_source_lacks_stays_unless_deleted)
{
    static const char *const patterns[] = {"- kept", "- /a/also"};

    small_trees(state);
    make_folder(at(state, "data/to/a"));
    make_folder(at(state, "data/to/more"));
    make_file(at(state, "data/to/more/kept"), "1", 1);
    make_file(at(state, "data/to/more/gone"), "2", 1);
    make_file(at(state, "data/to/a/also"), "3", 1);
    make_file(at(state, "data/to/a/gone"), "4", 1);
    assert_int_equal(symlink("/etc", at(state, "data/to/a/link")), 0);
    copy_well();
    assert_int_equal(result.report.removed, 0);
    assert_true(exists(at(state, "data/to/a/gone")));
    how.write.delete = true;
    how.write.pattern = patterns;
    how.write.patterns = 2;
    copy_well();
    assert_int_equal(result.report.removed, 3);
    assert_true(exists(at(state, "data/to/more/kept")));
    assert_true(exists(at(state, "data/to/a/also")));
    assert_false(exists(at(state, "data/to/more/gone")));
    assert_false(exists(at(state, "data/to/a/gone")));
    assert_true(exists("/etc/passwd"));
}

COPYING_TEST(a_target_that_is_a_link_is_refused)
{
    small_trees(state);
    make_folder(at(state, "outside"));
    assert_int_equal(symlink(at(state, "outside"), at(state, "data/link")), 0);
    how.to = at(state, "data/link");
    copy_refused(ERROR_REFUSED, "is a symbolic link");
    how.write.into = true;
    copy_refused(ERROR_REFUSED, "is a symbolic link");
    how.to = at(state, "data/link/below");
    copy_refused(ERROR_REFUSED, "is a link");
    how.to = at(state, "outside");
    copy_refused(ERROR_REFUSED, "is not below");
    assert_int_equal(entries(at(state, "outside")), 0);
    assert_int_equal(entries(at(state, "data")), 3);
}

COPYING_TEST(what_another_copy_gathers_is_no_target)
{
    static const char *const paths[] = {"data/.m.torus-copy", "data/.m.torus-copy/f/x"};

    small_trees(state);
    for (unsigned i = 0; i < 2; i++) {
        how.to = at(state, "%s", paths[i]);
        copy_refused(ERROR_REFUSED, "name another target");
    }
    assert_int_equal(entries(at(state, "data")), 2);
}

struct swap {
    char from[FIXTURE_PATH], aside[FIXTURE_PATH], to[FIXTURE_PATH];
};

static void swap_for_link(void *context)
{
    const struct swap *swap = context;

    assert_int_equal(rename(swap->from, swap->aside), 0);
    assert_int_equal(symlink(swap->to, swap->from), 0);
}

/* A user replaces a folder of the target by a link that leads out of it, before files are put in place. */
COPYING_TEST(links_put_in_the_way_are_not_followed)
{
    static const char *const places[] = {"data/to/a", "data/to"};

    for (unsigned i = 0; i < 2; i++) {
        struct swap swap;
        small_trees(state);
        make_folder(at(state, "data/to/a"));
        make_file(at(state, "data/to/a/extra"), "e", 1);
        make_folder(at(state, "outside"));
        make_file(at(state, "outside/extra"), "e", 1);
        make_file(at(state, "outside/x"), "old", 3);
        (void)strcpy(swap.from, at(state, "%s", places[i]));
        (void)strcpy(swap.aside, at(state, "data/aside"));
        (void)strcpy(swap.to, at(state, "outside"));
        how.write.delete = true;
        how.before_finish = swap_for_link;
        how.argument = &swap;
        (void)copy();
        check_file(at(state, "outside/x"), "old", 3);
        assert_true(exists(at(state, "outside/extra")));
        assert_int_equal(entries(at(state, "outside")), 2);
        start_anew(state);
    }
}

COPYING_TEST(only_one_copy_writes_to_a_target)
{
    struct tree_writer *w;
    struct error e;

    small_trees(state);
    struct tree_write_options options = {.id = "first", .path = how.to};
    copying.files.patience_ms = 100;
    assert_int_equal(copying.store->write_open(copying.store->context, &options, &w, &e), 0);
    copy_refused(ERROR_BUSY, "another copy is writing to ");
    how.write.look_only = true; /* looking is possible anyway */
    copy_well();
    how.write.look_only = false;
    copying.store->write_close(w);
    copy_well();
    check_equal(how.from, how.to);
}

/* A copy does not write where an exchange of files does, either; what an ended exchange has left does not matter, nor
 * that of another target. */
COPYING_TEST(a_copy_leaves_the_target_of_an_exchange_alone)
{
    const char *const names[] = {".to.torusd-0-0000beef-1-0", ".other.torusd-0-0000beef-1-0"};
    int folder[2];

    small_trees(state);
    for (unsigned i = 0; i < 2; i++) {
        make_folder(at(state, "data/%s", names[i]));
        folder[i] = open(at(state, "data/%s", names[i]), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(flock(folder[i], LOCK_EX | LOCK_NB), 0);
    }
    copy_refused(ERROR_BUSY, "an exchange is writing to ");
    assert_false(exists(at(state, "data/.to.torus-copy")));
    (void)close(folder[0]);
    copy_well();
    check_equal(how.from, how.to);
    (void)close(folder[1]);
}

COPYING_TEST(looking_changes_nothing)
{
    small_trees(state);
    how.to = at(state, "data/x/y/z");
    how.write.look_only = true;
    copy_well();
    assert_int_equal(result.report.added, 4);
    assert_int_equal(result.report.bytes_missing, 4);
    how.write.into = true;
    copy_well();
    assert_int_equal(result.report.added, 4);
    how.write.into = false;
    assert_int_equal(entries(at(state, "data")), 2);
    assert_int_equal(entries(at(state, "state/copies")), 0);
    how.write.look_only = false;
    copy_well();
    check_equal(how.from, how.to);
}

COPYING_TEST(folders_above_that_were_made_go_if_nothing_arrives)
{
    small_trees(state);
    how.to = at(state, "data/x/y/z");
    how.no_finish = true;
    how.stop_after = 0;
    assert_int_equal(unlink(at(state, "data/from/b")) + unlink(at(state, "data/from/a/x")), 0);
    copy_well();
    assert_false(exists(at(state, "data/x")));
}

COPYING_TEST(sources_keep_their_names_in_a_folder)
{
    for (int as_it_comes = 0; as_it_comes < 2; as_it_comes++) {
        small_trees(state);
        const char *sources[] = {at(state, "data/from/a"), at(state, "data/from/b")};
        how.from = NULL;
        how.to = at(state, "data/into/there");
        how.read.path = sources;
        how.read.paths = 2;
        how.write =
            (struct tree_write_options){.into = true, .delete = true, .as_it_comes = as_it_comes};
        copy_well();
        check_equal(at(state, "data/from/a"), at(state, "data/into/there/a"));
        check_file(at(state, "data/into/there/b"), "new", 3);
        /* what else is in the folder stays, whatever the copy deletes */
        make_file(at(state, "data/into/there/c"), "c", 1);
        make_file(at(state, "data/into/there/a/c"), "c", 1);
        copy_well();
        assert_true(exists(at(state, "data/into/there/c")));
        assert_false(exists(at(state, "data/into/there/a/c")));
        start_anew(state);
    }
}

COPYING_TEST(what_a_missing_source_has_left_stays)
{
    small_trees(state);
    make_file(at(state, "data/to/kept"), "k", 1);
    how.from = at(state, "data/missing");
    how.read.missing_ok = true;
    how.write.delete = true;
    copy_well();
    assert_int_equal(result.report.removed, 0);
    assert_true(exists(at(state, "data/to/kept")));
}

COPYING_TEST(a_single_file_is_copied)
{
    small_trees(state);
    how.from = at(state, "data/from/b");
    how.to = at(state, "data/c");
    copy_well();
    check_equal(how.from, how.to);
    make_folder(at(state, "data/d"));
    how.to = at(state, "data/d");
    copy_well(); /* an empty folder gives way */
    check_equal(how.from, how.to);
}

static void copy_with(struct copying *c)
{
    if (copying_run(c, &how, &result) != 0)
        fail_msg("%s", result.error.text);
}

COPYING_TEST(a_data_root_is_a_target)
{
    struct copying root;
    struct error e;

    small_trees(state);
    make_folder(at(state, "root"));
    copying_open(&root, state);
    assert_int_equal(roots_add(&root.roots, root.roots.files, at(state, "root"), &e), 0);
    how.to = at(state, "root");
    how.write.delete = true;
    make_file(at(state, "root/beside"), "b", 1);
    assert_fails(copying_run(&root, &how, &result), result.error, ERROR_REFUSED, "--delete-root");
    assert_true(exists(at(state, "root/beside")));
    how.write.look_only = true; /* says what would go */
    copy_with(&root);
    assert_int_equal(result.report.removed, 1);
    how.write.look_only = false;
    how.write.delete_root = true;
    copy_with(&root);
    check_equal(how.from, how.to);
    copy_with(&root);
    assert_int_equal(result.report.added + result.report.changed + result.report.removed, 0);
    check_equal(how.from, how.to);
    make_file(at(state, "root/more"), "m", 1);
    copy_with(&root);
    assert_int_equal(result.report.removed, 1);
    check_equal(how.from, how.to);
    copying_close(&root);
}

/* The prefix that is configured may be a link; what is below it is not followed. */
COPYING_TEST(a_data_root_may_be_a_link)
{
    struct copying linked;
    struct error e;

    small_trees(state);
    make_folder(at(state, "disk"));
    assert_int_equal(symlink("disk", at(state, "named")), 0);
    copying_open(&linked, state);
    assert_int_equal(roots_add(&linked.roots, linked.roots.files, at(state, "named"), &e), 0);
    how.to = at(state, "named/to");
    copy_with(&linked);
    check_equal(how.from, at(state, "disk/to"));
    how.to = at(state, "disk/to"); /* the same, by its other name */
    copy_with(&linked);
    assert_int_equal(result.report.added + result.report.changed, 0);
    assert_int_equal(symlink("to", at(state, "disk/inside")), 0);
    how.to = at(state, "named/inside/more");
    assert_fails(copying_run(&linked, &how, &result), result.error, ERROR_REFUSED, "");
    copying_close(&linked);
}

/* A copy that would remove more than it may changes nothing. */
COPYING_TEST(removals_have_a_limit)
{
    small_trees(state);
    copy_well();
    make_folder(at(state, "data/to/more"));
    make_file(at(state, "data/to/more/one"), "1", 1);
    make_file(at(state, "data/to/more/two"), "2", 1);
    how.write.delete = true;
    for (uint64_t most = 0; most < 3; most++) {
        how.write.delete_most = most + 1;
        assert_fails(copy(), result.error, ERROR_REFUSED, "");
        assert_true(exists(at(state, "data/to/more/two")));
        how.write.look_only = true;
        copy_well();
        assert_int_equal(result.report.removed, 3);
        how.write.look_only = false;
    }
    how.write.delete_most = 4;
    copy_well();
    assert_int_equal(result.report.removed, 3);
    check_equal(how.from, how.to);
}

int __real_flock(int file, int operation);
int __wrap_flock(int file, int operation);

static atomic_uint locked_out; /* tries to lock what is locked */

int __wrap_flock(int file, int operation)
{
    int failed = __real_flock(file, operation);

    if (failed != 0)
        (void)atomic_fetch_add(&locked_out, 1);
    return failed;
}

struct other_copy {
    struct copying *c;
    struct tree_writer *w;
    const char *to;
    int opened;
};

static void *open_other(void *context)
{
    struct other_copy *other = context;
    const struct tree_write_options options = {.id = "other", .path = other->to};
    struct error e;

    other->opened = other->c->store->write_open(other->c->store->context, &options, &other->w, &e);
    return NULL;
}

/* A copy that has been cancelled closes its files a little later. Then it removes its staging with the entry in the
 * state folder, and the folders above the target if it has made them. */
static void wait_for_another_copy(void **state, const char *to)
{
    struct error e;
    pthread_t thread;

    small_trees(state);
    how.to = to;
    atomic_store(&locked_out, 0);
    struct tree_write_options options = {.id = "first", .path = how.to};
    struct other_copy other = {.c = &copying, .to = how.to, .opened = -1};
    struct tree_writer *w;
    assert_int_equal(copying.store->write_open(copying.store->context, &options, &w, &e), 0);
    copying.files.patience_ms = 60000;
    assert_int_equal(pthread_create(&thread, NULL, open_other, &other), 0);
    while (atomic_load(&locked_out) == 0)
        (void)sched_yield();
    copying.store->write_close(w);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(other.opened, 0);
    assert_int_equal(entries(at(state, "state/copies")), 1);
    copying.store->write_close(other.w);
    assert_int_equal(entries(at(state, "state/copies")), 0);
}

COPYING_TEST(a_copy_waits_until_another_one_is_closed)
{
    wait_for_another_copy(state, at(state, "data/to"));
}

COPYING_TEST(a_copy_waits_until_another_one_has_removed_its_folders)
{
    wait_for_another_copy(state, at(state, "data/x/y/to"));
    assert_false(exists(at(state, "data/x")));
}

/* Folders above two targets belong to both copies: the last one removes them, unless one has a result. */
COPYING_TEST(folders_of_two_copies_go_with_the_last)
{
    for (unsigned placed = 0; placed < 2; placed++) {
        struct error e;
        struct tree_writer *w[2];

        small_trees(state);
        for (unsigned i = 0; i < 2; i++) {
            const struct tree_write_options options = {
                .id = "one", .path = at(state, i == 0 ? "data/x/y/to" : "data/x/y/z/to")};
            assert_int_equal(copying.store->write_open(copying.store->context, &options, &w[i], &e),
                             0);
        }
        copying.store->write_close(w[0]);
        assert_true(exists(at(state, "data/x/y/z")));
        how.to = at(state, "data/x/y/result");
        if (placed == 1)
            copy_well();
        copying.store->write_close(w[1]);
        assert_int_equal(exists(at(state, "data/x/y")), placed);
        assert_int_equal(exists(at(state, "data/x")), placed);
        assert_false(exists(at(state, "data/x/y/z")));
        start_anew(state);
    }
}

/* Only a part of a large file has changed. */
COPYING_TEST(a_changed_part_is_moved_only)
{
    char more[4000];

    make_folder(how.from);
    random_file(at(state, "data/from/large"), 1, 6 << 20);
    random_file(at(state, "data/from/other"), 2, 3 << 20);
    copy_well();
    (void)snprintf(more, sizeof more,
                   "cd %s && { head -c 3000000 large; echo inserted; tail -c +3000001 large; } > l "
                   "&& cat l > large && rm l && printf changed | dd of=other conv=notrunc bs=1 "
                   "seek=2000000 status=none",
                   how.from);
    assert_int_equal(system(more), 0);
    how.write.look_only = true;
    copy_well();
    assert_in_range(result.report.bytes_missing, 100, 800000);
    uint64_t missing = result.report.bytes_missing;
    how.write.look_only = false;
    how.most = 1000;
    copy_well();
    assert_int_equal(result.report.bytes_missing, missing);
    assert_int_equal(result.moved, missing);
    check_equal(how.from, how.to);
    /* only a time has changed: no byte moves */
    assert_int_equal(system(strcat(strcpy(more, "touch "), at(state, "data/from/large"))), 0);
    copy_well();
    assert_int_equal(result.moved, 0);
    check_equal(how.from, how.to);
}

/* With checksums, also those that no data of the source stands against. */
COPYING_TEST(bytes_in_a_hole_are_a_difference)
{
    static const off_t places[] = {1 << 18, (1 << 20) - 1};
    struct stat st;

    small_trees(state);
    how.write.checksum = true;
    int file = open(at(state, "data/from/sparse"), O_CREAT | O_WRONLY, 0600);
    assert_true(pwrite(file, "x", 1, 0) == 1 && pwrite(file, "y", 1, 1 << 19) == 1);
    assert_int_equal(ftruncate(file, 1 << 20), 0);
    (void)close(file);
    copy_well();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        file = open(at(state, "data/to/sparse"), O_WRONLY);
        assert_true(fstat(file, &st) == 0 && pwrite(file, "z", 1, places[i]) == 1);
        const struct timespec times[2] = {st.st_atim, st.st_mtim};
        assert_int_equal(futimens(file, times), 0);
        (void)close(file);
        copy_well();
        assert_int_equal(result.report.changed, 1);
        check_equal(how.from, how.to);
    }
}
