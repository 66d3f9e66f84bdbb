/* What copies do with what the target has already. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "tests/support/cmocka.h"

static void run_well(struct copying *c, const struct how *how, struct copied *result)
{
    if (copying_run(c, how, result) != 0)
        fail_msg("%s", result->error.text);
}

static void run_refused(struct copying *c, const struct how *how, enum error_code code,
                        const char *text)
{
    struct copied result;

    assert_int_equal(copying_run(c, how, &result), -1);
    assert_int_equal(result.error.code, code);
    if (strstr(result.error.text, text) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", result.error.text, text);
}

/* data/from with a/x, b; data/to with what a test adds. */
static void small_trees(struct copying *c, void **state, struct how *how)
{
    copying_open(c, state);
    make_folder(at(state, "data/from"));
    make_folder(at(state, "data/from/a"));
    make_file(at(state, "data/from/a/x"), "x", 1);
    make_file(at(state, "data/from/b"), "new", 3);
    make_folder(at(state, "data/to"));
    *how = (struct how){.from = at(state, "data/from"), .to = at(state, "data/to")};
}

FOLDER_TEST(a_folder_gives_way_only_if_it_is_empty)
{
    struct how how;
    struct copying c;
    struct copied result;

    small_trees(&c, state, &how);
    make_folder(at(state, "data/to/b"));
    make_folder(at(state, "data/to/b/c"));
    make_file(at(state, "data/to/b/c/y"), "y", 1);
    run_refused(&c, &how, ERROR_REFUSED, "to/b is a folder with something in it");
    assert_true(exists(at(state, "data/to/b/c/y")));
    assert_false(exists(at(state, "data/to/a")));
    how.write.delete = true;
    run_well(&c, &how, &result);
    assert_int_equal(result.report.removed, 2);
    check_equal(how.from, how.to);

    assert_int_equal(unlink(at(state, "data/to/b")), 0);
    make_folder(at(state, "data/to/b"));
    how.write.delete = false;
    run_well(&c, &how, &result);
    check_equal(how.from, how.to);
    copying_close(&c);
}

FOLDER_TEST(a_file_gives_way_to_a_folder)
{
    struct how how;
    struct copying c;
    struct copied result;

    small_trees(&c, state, &how);
    make_file(at(state, "data/to/a"), "a", 1);
    run_well(&c, &how, &result);
    assert_int_equal(result.report.changed, 2); /* the file, and the target's own time */
    check_equal(how.from, how.to);
    copying_close(&c);
}

FOLDER_TEST(what_the_source_lacks_stays_unless_deleted)
{
    static const char *const patterns[] = {"- kept", "- /a/also"};
    struct how how;
    struct copying c;
    struct copied result;

    small_trees(&c, state, &how);
    make_folder(at(state, "data/to/a"));
    make_folder(at(state, "data/to/more"));
    make_file(at(state, "data/to/more/kept"), "1", 1);
    make_file(at(state, "data/to/more/gone"), "2", 1);
    make_file(at(state, "data/to/a/also"), "3", 1);
    make_file(at(state, "data/to/a/gone"), "4", 1);
    assert_int_equal(symlink("/etc", at(state, "data/to/a/link")), 0);
    run_well(&c, &how, &result);
    assert_int_equal(result.report.removed, 0);
    assert_true(exists(at(state, "data/to/a/gone")));
    how.write.delete = true;
    how.write.pattern = patterns;
    how.write.patterns = 2;
    run_well(&c, &how, &result);
    assert_int_equal(result.report.removed, 3);
    assert_true(exists(at(state, "data/to/more/kept")));
    assert_true(exists(at(state, "data/to/a/also")));
    assert_false(exists(at(state, "data/to/more/gone")));
    assert_false(exists(at(state, "data/to/a/gone")));
    assert_true(exists("/etc/passwd"));
    copying_close(&c);
}

FOLDER_TEST(a_target_that_is_a_link_is_refused)
{
    struct how how;
    struct copying c;

    small_trees(&c, state, &how);
    make_folder(at(state, "outside"));
    assert_int_equal(symlink(at(state, "outside"), at(state, "data/link")), 0);
    how.to = at(state, "data/link");
    run_refused(&c, &how, ERROR_REFUSED, "is a symbolic link");
    how.write.into = true;
    run_refused(&c, &how, ERROR_REFUSED, "is a symbolic link");
    how.to = at(state, "data/link/below");
    run_refused(&c, &how, ERROR_REFUSED, "is a link");
    how.to = at(state, "outside");
    run_refused(&c, &how, ERROR_REFUSED, "is not below");
    assert_int_equal(entries(at(state, "outside")), 0);
    assert_int_equal(entries(at(state, "data")), 3);
    copying_close(&c);
}

FOLDER_TEST(what_another_copy_gathers_is_no_target)
{
    static const char *const paths[] = {"data/.m.torus-copy", "data/.m.torus-copy/f/x"};
    struct how how;
    struct copying c;

    small_trees(&c, state, &how);
    for (unsigned i = 0; i < 2; i++) {
        how.to = at(state, "%s", paths[i]);
        run_refused(&c, &how, ERROR_REFUSED, "name another target");
    }
    assert_int_equal(entries(at(state, "data")), 2);
    copying_close(&c);
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
FOLDER_TEST(links_put_in_the_way_are_not_followed)
{
    static const char *const places[] = {"data/to/a", "data/to"};

    for (unsigned i = 0; i < 2; i++) {
        struct how how;
        struct copying c;
        struct copied result;
        struct swap swap;
        small_trees(&c, state, &how);
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
        (void)copying_run(&c, &how, &result);
        check_file(at(state, "outside/x"), "old", 3);
        assert_true(exists(at(state, "outside/extra")));
        assert_int_equal(entries(at(state, "outside")), 2);
        copying_close(&c);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

FOLDER_TEST(only_one_copy_writes_to_a_target)
{
    struct how how;
    struct copying c;
    struct tree_writer *w;
    struct error e;

    small_trees(&c, state, &how);
    struct tree_write_options options = {.id = "first", .path = how.to};
    c.files.patience_ms = 100;
    assert_int_equal(c.store->write_open(c.store->context, &options, &w, &e), 0);
    run_refused(&c, &how, ERROR_BUSY, "another copy to ");
    how.write.look_only = true; /* looking is possible all the same */
    struct copied result;
    run_well(&c, &how, &result);
    how.write.look_only = false;
    c.store->write_close(w);
    run_well(&c, &how, &result);
    check_equal(how.from, how.to);
    copying_close(&c);
}

FOLDER_TEST(looking_changes_nothing)
{
    struct how how;
    struct copying c;
    struct copied result;

    small_trees(&c, state, &how);
    how.to = at(state, "data/x/y/z");
    how.write.look_only = true;
    run_well(&c, &how, &result);
    assert_int_equal(result.report.added, 4);
    assert_int_equal(result.report.bytes_missing, 4);
    how.write.into = true;
    run_well(&c, &how, &result);
    assert_int_equal(result.report.added, 4);
    how.write.into = false;
    assert_int_equal(entries(at(state, "data")), 2);
    assert_false(exists(at(state, "state/copies")));
    how.write.look_only = false;
    run_well(&c, &how, &result);
    check_equal(how.from, how.to);
    copying_close(&c);
}

FOLDER_TEST(folders_above_that_were_made_go_if_nothing_arrives)
{
    struct how how;
    struct copying c;
    struct copied result;

    small_trees(&c, state, &how);
    how.to = at(state, "data/x/y/z");
    how.no_finish = true;
    how.stop_after = 0;
    assert_int_equal(unlink(at(state, "data/from/b")) + unlink(at(state, "data/from/a/x")), 0);
    run_well(&c, &how, &result);
    assert_false(exists(at(state, "data/x")));
    copying_close(&c);
}

FOLDER_TEST(sources_keep_their_names_in_a_folder)
{
    struct how how;
    struct copying c;
    struct copied result;

    for (int as_it_comes = 0; as_it_comes < 2; as_it_comes++) {
        small_trees(&c, state, &how);
        const char *sources[] = {at(state, "data/from/a"), at(state, "data/from/b")};
        how = (struct how){.to = at(state, "data/into/there"),
                           .read = {.path = sources, .paths = 2},
                           .write = {.into = true, .delete = true, .as_it_comes = as_it_comes}};
        run_well(&c, &how, &result);
        check_equal(at(state, "data/from/a"), at(state, "data/into/there/a"));
        check_file(at(state, "data/into/there/b"), "new", 3);
        /* what else is in the folder stays, whatever the copy deletes */
        make_file(at(state, "data/into/there/c"), "c", 1);
        make_file(at(state, "data/into/there/a/c"), "c", 1);
        run_well(&c, &how, &result);
        assert_true(exists(at(state, "data/into/there/c")));
        assert_false(exists(at(state, "data/into/there/a/c")));
        copying_close(&c);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

FOLDER_TEST(what_a_missing_source_has_left_stays)
{
    struct how how;
    struct copying c;
    struct copied result;

    small_trees(&c, state, &how);
    make_file(at(state, "data/to/kept"), "k", 1);
    how.from = at(state, "data/missing");
    how.read.missing_ok = true;
    how.write.delete = true;
    run_well(&c, &how, &result);
    assert_int_equal(result.report.removed, 0);
    assert_true(exists(at(state, "data/to/kept")));
    copying_close(&c);
}

FOLDER_TEST(a_single_file_is_copied)
{
    struct how how;
    struct copying c;
    struct copied result;

    small_trees(&c, state, &how);
    how.from = at(state, "data/from/b");
    how.to = at(state, "data/c");
    run_well(&c, &how, &result);
    check_equal(how.from, how.to);
    make_folder(at(state, "data/d"));
    how.to = at(state, "data/d");
    run_well(&c, &how, &result); /* an empty folder gives way */
    check_equal(how.from, how.to);
    copying_close(&c);
}

FOLDER_TEST(a_data_root_is_a_target)
{
    struct how how;
    struct copying c, root;
    struct copied result;
    struct error e;

    small_trees(&c, state, &how);
    make_folder(at(state, "root"));
    copying_open(&root, state);
    assert_int_equal(roots_add(&root.roots, root.roots.files, at(state, "root"), &e), 0);
    how.to = at(state, "root");
    how.write.delete = true;
    make_file(at(state, "root/beside"), "b", 1);
    assert_int_equal(copying_run(&root, &how, &result), -1);
    assert_int_equal(result.error.code, ERROR_REFUSED);
    assert_non_null(strstr(result.error.text, "--delete-root"));
    assert_true(exists(at(state, "root/beside")));
    how.write.look_only = true; /* says what would go */
    run_well(&root, &how, &result);
    assert_int_equal(result.report.removed, 1);
    how.write.look_only = false;
    how.write.delete_root = true;
    run_well(&root, &how, &result);
    check_equal(how.from, how.to);
    run_well(&root, &how, &result);
    assert_int_equal(result.report.added + result.report.changed + result.report.removed, 0);
    check_equal(how.from, how.to);
    make_file(at(state, "root/more"), "m", 1);
    run_well(&root, &how, &result);
    assert_int_equal(result.report.removed, 1);
    check_equal(how.from, how.to);
    copying_close(&root);
    copying_close(&c);
}

/* The prefix that is configured may be a link; what is below it is not followed. */
FOLDER_TEST(a_data_root_may_be_a_link)
{
    struct how how;
    struct copying c, linked;
    struct copied result;
    struct error e;

    small_trees(&c, state, &how);
    make_folder(at(state, "disk"));
    assert_int_equal(symlink("disk", at(state, "named")), 0);
    copying_open(&linked, state);
    assert_int_equal(roots_add(&linked.roots, linked.roots.files, at(state, "named"), &e), 0);
    how.to = at(state, "named/to");
    run_well(&linked, &how, &result);
    check_equal(how.from, at(state, "disk/to"));
    how.to = at(state, "disk/to"); /* the same, by its other name */
    run_well(&linked, &how, &result);
    assert_int_equal(result.report.added + result.report.changed, 0);
    assert_int_equal(symlink("to", at(state, "disk/inside")), 0);
    how.to = at(state, "named/inside/more");
    assert_int_equal(copying_run(&linked, &how, &result), -1);
    assert_int_equal(result.error.code, ERROR_REFUSED);
    copying_close(&linked);
    copying_close(&c);
}

/* A copy that would remove more than it may changes nothing. */
FOLDER_TEST(removals_have_a_limit)
{
    struct how how;
    struct copying c;
    struct copied result;

    small_trees(&c, state, &how);
    run_well(&c, &how, &result);
    make_folder(at(state, "data/to/more"));
    make_file(at(state, "data/to/more/one"), "1", 1);
    make_file(at(state, "data/to/more/two"), "2", 1);
    how.write.delete = true;
    for (uint64_t most = 0; most < 3; most++) {
        how.write.delete_most = most + 1;
        assert_int_equal(copying_run(&c, &how, &result), -1);
        assert_int_equal(result.error.code, ERROR_REFUSED);
        assert_true(exists(at(state, "data/to/more/two")));
        how.write.look_only = true;
        run_well(&c, &how, &result);
        assert_int_equal(result.report.removed, 3);
        how.write.look_only = false;
    }
    how.write.delete_most = 4;
    run_well(&c, &how, &result);
    assert_int_equal(result.report.removed, 3);
    check_equal(how.from, how.to);
    copying_close(&c);
}

int __real_flock(int file, int operation);
int __wrap_flock(int file, int operation);

static atomic_uint locked_out; /* tries to lock what is locked */

int __wrap_flock(int file, int operation)
{
    int result = __real_flock(file, operation);

    if (result != 0)
        (void)atomic_fetch_add(&locked_out, 1);
    return result;
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

/* A copy that has been cancelled closes its files a little later. Then it removes its staging with the entry in the state
 * folder, and the folders above the target if it has made them. */
static void wait_for_another_copy(void **state, const char *to)
{
    struct how how;
    struct copying c;
    struct error e;
    pthread_t thread;

    small_trees(&c, state, &how);
    how.to = to;
    atomic_store(&locked_out, 0);
    struct tree_write_options options = {.id = "first", .path = how.to};
    struct other_copy other = {.c = &c, .to = how.to, .opened = -1};
    struct tree_writer *w;
    assert_int_equal(c.store->write_open(c.store->context, &options, &w, &e), 0);
    c.files.patience_ms = 60000;
    assert_int_equal(pthread_create(&thread, NULL, open_other, &other), 0);
    while (atomic_load(&locked_out) == 0)
        (void)sched_yield();
    c.store->write_close(w);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(other.opened, 0);
    assert_int_equal(entries(at(state, "state/copies")), 1);
    c.store->write_close(other.w);
    assert_int_equal(entries(at(state, "state/copies")), 0);
    copying_close(&c);
}

FOLDER_TEST(a_copy_waits_until_another_one_is_closed)
{
    wait_for_another_copy(state, at(state, "data/to"));
}

FOLDER_TEST(a_copy_waits_until_another_one_has_removed_its_folders)
{
    wait_for_another_copy(state, at(state, "data/x/y/to"));
    assert_false(exists(at(state, "data/x")));
}

/* Folders above two targets belong to both copies: the last one removes them, unless one has a result. */
FOLDER_TEST(folders_of_two_copies_go_with_the_last)
{
    for (unsigned placed = 0; placed < 2; placed++) {
        struct how how;
        struct copying c;
        struct copied result;
        struct error e;
        struct tree_writer *w[2];

        small_trees(&c, state, &how);
        for (unsigned i = 0; i < 2; i++) {
            const struct tree_write_options options = {
                .id = "one", .path = at(state, i == 0 ? "data/x/y/to" : "data/x/y/z/to")};
            assert_int_equal(c.store->write_open(c.store->context, &options, &w[i], &e), 0);
        }
        c.store->write_close(w[0]);
        assert_true(exists(at(state, "data/x/y/z")));
        how.to = at(state, "data/x/y/result");
        if (placed == 1)
            run_well(&c, &how, &result);
        c.store->write_close(w[1]);
        assert_int_equal(exists(at(state, "data/x/y")), placed);
        assert_int_equal(exists(at(state, "data/x")), placed);
        assert_false(exists(at(state, "data/x/y/z")));
        copying_close(&c);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* Only a part of a large file has changed. */
FOLDER_TEST(a_changed_part_is_moved_only)
{
    struct copying c;
    struct how how = {.from = at(state, "data/from"), .to = at(state, "data/to")};
    struct copied result;
    char more[4000];

    copying_open(&c, state);
    make_folder(how.from);
    random_file(at(state, "data/from/large"), 1, 6 << 20);
    random_file(at(state, "data/from/other"), 2, 3 << 20);
    run_well(&c, &how, &result);
    (void)snprintf(more, sizeof more,
                   "cd %s && { head -c 3000000 large; echo inserted; tail -c +3000001 large; } > l "
                   "&& cat l > large && rm l && printf changed | dd of=other conv=notrunc bs=1 "
                   "seek=2000000 status=none",
                   how.from);
    assert_int_equal(system(more), 0);
    how.write.look_only = true;
    run_well(&c, &how, &result);
    assert_in_range(result.report.bytes_missing, 100, 800000);
    uint64_t missing = result.report.bytes_missing;
    how.write.look_only = false;
    how.most = 1000;
    run_well(&c, &how, &result);
    assert_int_equal(result.report.bytes_missing, missing);
    assert_int_equal(result.moved, missing);
    check_equal(how.from, how.to);
    /* only a time has changed: no byte moves */
    assert_int_equal(system(strcat(strcpy(more, "touch "), at(state, "data/from/large"))), 0);
    run_well(&c, &how, &result);
    assert_int_equal(result.moved, 0);
    check_equal(how.from, how.to);
    copying_close(&c);
}

/* With checksums, also those that no data of the source stands against. */
FOLDER_TEST(bytes_in_a_hole_are_a_difference)
{
    static const off_t places[] = {1 << 18, (1 << 20) - 1};
    struct how how;
    struct copying c;
    struct copied result;
    struct stat st;

    small_trees(&c, state, &how);
    how.write.checksum = true;
    int file = open(at(state, "data/from/sparse"), O_CREAT | O_WRONLY, 0600);
    assert_true(pwrite(file, "x", 1, 0) == 1 && pwrite(file, "y", 1, 1 << 19) == 1);
    assert_int_equal(ftruncate(file, 1 << 20), 0);
    (void)close(file);
    run_well(&c, &how, &result);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        file = open(at(state, "data/to/sparse"), O_WRONLY);
        assert_true(fstat(file, &st) == 0 && pwrite(file, "z", 1, places[i]) == 1);
        const struct timespec times[2] = {st.st_atim, st.st_mtim};
        assert_int_equal(futimens(file, times), 0);
        (void)close(file);
        run_well(&c, &how, &result);
        assert_int_equal(result.report.changed, 1);
        check_equal(how.from, how.to);
    }
    copying_close(&c);
}
