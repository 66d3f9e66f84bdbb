/* Copies that are interrupted while data arrives, and what the next ones use of it. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "daemon/torusd/tree/tree_files.h"
#include "tests/support/cmocka.h"

static const char *staging(void **state, const char *name)
{
    return at(state, "data/.to.torus-copy/%s", name);
}

/* Interrupts a copy of a random tree after a part of the stream. Returns the number of bytes that have arrived. */
static uint64_t interrupt(void **state, unsigned seed, uint64_t *all)
{
    how.seed = seed;
    random_tree(how.from, seed, 40);
    how.write.look_only = true;
    copy_well();
    *all = result.report.bytes;
    how.write.look_only = false;
    how.stop_after = *all / 2;
    how.piece = 33333;
    copy_well();
    assert_false(exists(how.to));
    assert_true(exists(staging(state, "arrived")));
    assert_int_equal(entries(at(state, "state/copies")), 1);
    how.stop_after = 0;
    return result.moved;
}

COPYING_TEST(what_has_arrived_is_not_sent_again)
{
    for (unsigned seed = 20; seed < 26; seed++) {
        uint64_t all, half = interrupt(state, seed, &all);
        copy_well();
        assert_int_equal(result.report.bytes_missing, all - half);
        check_equal(how.from, how.to);
        assert_int_equal(entries(at(state, "data")), 2);
        assert_int_equal(entries(at(state, "state/copies")), 0);
        start_anew(state);
    }
}

/* While a file is completed, its other pieces come, because another node lacks them: they do not disturb it. */
COPYING_TEST(what_others_lack_comes_all_the_same)
{
    for (unsigned seed = 1; seed <= 12; seed++) {
        random_tree(how.from, seed, 10);
        random_file(at(state, "data/from/large"), seed, seed % 4 == 0 ? 20 << 20 : 3 << 20);
        if (seed % 3 == 0) { /* an older version has nearly everything, too */
            (void)copying_well(&copying, how.from, how.to);
            overwrite(at(state, "data/from/large"), 1 << 20, "changed");
        }
        how.seed = seed;
        how.threads = seed % 8;
        how.piece = 20000;
        how.write.checksum = seed % 2 == 0;
        how.write.as_it_comes = seed % 5 == 0;
        how.stop_after = seed % 3 == 0 ? 0 : 2 << 20;
        how.no_finish = seed % 3 == 0;
        copy_well();
        how.stop_after = 0;
        how.no_finish = false;
        how.everything = true;
        copy_well();
        assert_true(result.report.bytes_missing < result.moved);
        check_equal(how.from, how.to);
        assert_int_equal(entries(at(state, "data")), 2);
        start_anew(state);
    }
}

COPYING_TEST(another_manifest_uses_it_too)
{
    for (unsigned seed = 30; seed < 38; seed++) {
        uint64_t all, half = interrupt(state, seed, &all);
        random_changes(how.from, seed);
        random_file(at(state, "data/from/   first"), 1, 5000); /* all numbers change */
        how.write.checksum = seed == 37;
        copy_well();
        if (!how.write.checksum) /* what had no digest is not trusted then */
            assert_true(result.moved < result.report.bytes && half > 0);
        check_equal(how.from, how.to);
        assert_int_equal(entries(at(state, "data")), 2);
        start_anew(state);
    }
}

/* A file that has arrived, or arrived in part, changes at the source without changing its size. */
COPYING_TEST(changed_files_are_sent_again)
{
    static const char *const changed[] = {"data/from/one", "data/from/two"};

    for (unsigned i = 0; i < 2; i++) {
        how.stop_after = 300000;
        make_folder(how.from);
        random_file(at(state, "data/from/one"), 1, 200000);
        random_file(at(state, "data/from/two"), 2, 200000);
        copy_well();
        overwrite(at(state, "%s", changed[i]), 1000, "changed");
        how.stop_after = 0;
        copy_well();
        assert_int_equal(result.moved, i == 0 ? 300000 : 200000);
        check_equal(how.from, how.to);
        start_anew(state);
    }
}

/* Damages what the interrupted copy has left: the next one is correct anyway. */
COPYING_TEST(damaged_records_are_not_believed)
{
    for (unsigned damage = 0; damage < 6; damage++) {
        char command[2 * FIXTURE_PATH];
        uint64_t all, half = interrupt(state, 40, &all);
        uint64_t expected = all;
        switch (damage) {
        case 0:
            overwrite(staging(state, "arrived"), 70, "\377\377\377");
            break;
        case 1:
            overwrite(staging(state, "arrived"), -3, "xyz");
            break;
        case 2:
            overwrite(staging(state, "manifest"), 100, "xyz");
            break;
        case 3:
            assert_int_equal(truncate(staging(state, "arrived"), 20), 0);
            break;
        case 4: /* the files have gone */
            (void)snprintf(command, sizeof command, "rm -rf '%s'", staging(state, "f"));
            assert_int_equal(system(command), 0);
            break;
        default: /* all is well */
            expected = all - half;
            break;
        }
        copy_well();
        assert_int_equal(result.report.bytes_missing, expected);
        check_equal(how.from, how.to);
        start_anew(state);
    }
}

/* The record of a system that has crashed since counts only if it was synced. */
COPYING_TEST(records_of_an_earlier_boot_do_not_count)
{
    char command[3 * FIXTURE_PATH];
    uint64_t all, half;

    for (unsigned synced = 0; synced < 2; synced++) {
        half = interrupt(state, 41, &all);
        /* as if it were a synced record, which has no use for a boot id; or one that is gone */
        (void)snprintf(command, sizeof command, "mv '%s' '%s'", staging(state, "arrived"),
                       staging(state, synced == 1 ? "arrived.synced" : "arrived.lost"));
        assert_int_equal(system(command), 0);
        copy_well();
        assert_int_equal(result.report.bytes_missing, synced == 1 ? all - half : all);
        check_equal(how.from, how.to);
        start_anew(state);
    }
}

/* The process is killed while data arrives. */
COPYING_TEST(kills_lose_nothing_but_time)
{
    how.piece = 20000;
    random_tree(how.from, 50, 40);
    for (unsigned i = 0; i < 5; i++) {
        pid_t child = fork();
        int status;
        assert_true(child >= 0);
        if (child == 0) {
            struct tree_writer *w;
            struct error e;
            struct how part = how;
            struct tree_write_options options = {.path = how.to, .id = "killed"};
            part.stop_after = 100000 * (i + 1);
            (void)copying_run(&copying, &part, &result);
            /* a copy that has just begun, over the record of the one before */
            _exit(copying.store->write_open(copying.store->context, &options, &w, &e) == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_false(exists(how.to));
    }
    copy_well();
    assert_true(result.moved < result.report.bytes);
    check_equal(how.from, how.to);
}

COPYING_TEST(old_stagings_are_removed_at_the_start)
{
    uint64_t all;
    struct timespec now, times[2] = {{0}};

    (void)interrupt(state, 42, &all);
    tree_files_recover(&copying.files);
    assert_true(exists(staging(state, "arrived")));
    (void)clock_gettime(CLOCK_REALTIME, &now);
    times[0].tv_sec = times[1].tv_sec = now.tv_sec - RECOVER_AGE - 10;
    assert_int_equal(utimensat(AT_FDCWD, staging(state, "arrived"), times, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, staging(state, ""), times, 0), 0);
    tree_files_recover(&copying.files);
    assert_false(exists(staging(state, "")));
    assert_int_equal(entries(at(state, "state/copies")), 0);
    assert_int_equal(entries(at(state, "data")), 1);
}

COPYING_TEST(foreign_folders_are_not_used)
{
    random_tree(how.from, 43, 5);
    make_folder(staging(state, ""));
    assert_int_equal(chmod(staging(state, ""), 0755), 0);
    assert_fails(copy(), result.error, ERROR_REFUSED, "");
    assert_int_equal(rmdir(staging(state, "")), 0);
    assert_int_equal(symlink("/", at(state, "data/.to.torus-copy")), 0);
    assert_int_equal(copy(), -1);
    assert_int_equal(unlink(at(state, "data/.to.torus-copy")), 0);
    copy_well();
    check_equal(how.from, how.to);
}

/* --- files that somebody changes between two copies --- */

static const char *damaged; /* what damage_one() does to each file */

static int damage_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    if (S_ISREG(st->st_mode) && damaged != NULL) /* its mode may close it to its owner */
        assert_int_equal(chmod(path, (st->st_mode & 07777u) | 0600u), 0);
    if (S_ISREG(st->st_mode) && st->st_size >= 6 && damaged != NULL)
        overwrite(path, st->st_size / 2 - 3, damaged);
    else if (S_ISREG(st->st_mode)) /* its bytes stay, but nothing else says so */
        assert_int_equal(chmod(path, st->st_mode & 07777u), 0);
    return 0;
}

/* Bytes of files that have arrived are overwritten: none of them reaches the target. */
COPYING_TEST(damaged_bytes_do_not_become_the_result)
{
    for (unsigned seed = 60; seed < 66; seed++) {
        uint64_t all, half = interrupt(state, seed, &all);
        damaged = "damage";
        assert_int_equal(nftw(staging(state, "f"), damage_one, 16, FTW_PHYS), 0);
        if (seed % 2 == 1)
            random_file(at(state, "data/from/   first"), 1, 5000); /* all numbers change */
        copy_well();
        assert_true(half > 0 && result.report.bytes_missing > all - half);
        check_equal(how.from, how.to);
        start_anew(state);
    }
}

/* The part of a file that has arrived is used even if the status of the file has changed: a daemon that was killed had
 * written more than it had recorded. */
COPYING_TEST(pieces_of_large_files_are_checked)
{
    for (unsigned damage = 0; damage < 2; damage++) {
        how.seed = 1;
        how.piece = 20000;
        how.stop_after = 300000;
        make_folder(how.from);
        random_file(at(state, "data/from/large"), 1, 600000);
        copy_well();
        damaged = NULL;
        assert_int_equal(nftw(staging(state, "f"), damage_one, 16, FTW_PHYS), 0);
        how.stop_after = 0;
        for (long begin = 0; damage == 1 && begin < 600000; begin += 200000)
            overwrite(staging(state, "f/00000/1"), begin + 5, "damage");
        copy_well();
        if (damage == 0)
            assert_int_equal(result.report.bytes_missing, 300000);
        else
            assert_in_range(result.report.bytes_missing, 300000, 360000);
        check_equal(how.from, how.to);
        start_anew(state);
    }
}

/* Everything has arrived, and the daemon has ended before it was put in place. */
COPYING_TEST(damaged_files_are_not_put_in_place)
{
    for (unsigned damage = 0; damage < 2; damage++) {
        how.no_finish = true;
        make_folder(how.from);
        random_file(at(state, "data/from/one"), 1, 200000);
        random_file(at(state, "data/from/two"), 2, 300);
        copy_well();
        int marker = open(staging(state, "complete"), O_WRONLY | O_CREAT, 0600);
        assert_int_equal(write(marker, "torus-copy 1 0 0 0\n.", 20), 20);
        (void)close(marker);
        damaged = "damage";
        if (damage == 1)
            assert_int_equal(nftw(staging(state, "f"), damage_one, 16, FTW_PHYS), 0);
        tree_files_recover(&copying.files);
        assert_int_equal(exists(how.to), damage == 0);
        how.no_finish = false;
        copy_well();
        assert_int_equal(result.moved, damage == 0 ? 0 : 200300);
        check_equal(how.from, how.to);
        start_anew(state);
    }
}

static void damage_staging(void *argument)
{
    (void)nftw(argument, damage_one, 16, FTW_PHYS);
}

/* Somebody overwrites files while the copy still goes on. */
COPYING_TEST(files_that_change_before_the_end_are_noticed)
{
    char path[FIXTURE_PATH];

    how.before_finish = damage_staging;
    how.argument = strcpy(path, staging(state, "f"));
    make_folder(how.from);
    random_file(at(state, "data/from/one"), 1, 2000);
    damaged = "damage";
    assert_fails(copy(), result.error, ERROR_DAMAGED,
                 "/data/.to.torus-copy/f/00000/1, a new file that");
    assert_false(exists(how.to));
    how.before_finish = NULL;
    copy_well();
    assert_int_equal(result.moved, 2000);
    check_equal(how.from, how.to);
}

static void remove_any(const char *path)
{
    if (unlink(path) != 0)
        assert_int_equal(rmdir(path), 0);
}

/* What torusd does not make is named, and the copy continues when it is gone. */
COPYING_TEST(links_and_folders_in_stagings_are_named)
{
    static const char *const name[] = {"",        "f",        "f/00000",  "f/00000/1", "stamps",
                                       "arrived", "manifest", "complete", "reserve",   "tree"};

    for (unsigned i = 0; i < 2 * sizeof name / sizeof *name; i++) {
        const char *foreign = name[i / 2];
        const bool is_link = i % 2 == 0;
        char path[FIXTURE_PATH], command[3 * FIXTURE_PATH];
        if (!is_link && (foreign[0] == '\0' || strcmp(foreign, "tree") == 0 ||
                         strcmp(foreign, "f") == 0 || strcmp(foreign, "f/00000") == 0))
            continue;
        how.stop_after = 300000;
        make_folder(how.from);
        random_file(at(state, "data/from/one"), 1, 200000);
        random_file(at(state, "data/from/two"), 2, 200000);
        copy_well();
        (void)strcpy(path,
                     at(state, "data/.to.torus-copy%s%s", foreign[0] != '\0' ? "/" : "", foreign));
        (void)snprintf(command, sizeof command, "rm -rf '%s'", path);
        assert_int_equal(system(command), 0);
        assert_int_equal(is_link ? symlink(how.from, path) : mkdir(path, 0700), 0);
        how.stop_after = 0;
        assert_fails(copy(), result.error, ERROR_REFUSED, "");
        (void)snprintf(command, sizeof command, "%s is a %s, ", path,
                       is_link ? "symbolic link" : "folder");
        if (strstr(result.error.text, command) == NULL ||
            strstr(result.error.text, "remove it") == NULL)
            fail_msg("%s", result.error.text);
        remove_any(path);
        copy_well();
        check_equal(how.from, how.to);
        assert_int_equal(entries(at(state, "data")), 2);
        start_anew(state);
    }
}

/* --- full disks --- */

static void fill_disk(const char *path, size_t leave)
{
    static char zeros[4096];
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    off_t size;

    assert_true(file >= 0);
    while (write(file, zeros, sizeof zeros) > 0)
        ;
    size = lseek(file, 0, SEEK_END);
    assert_int_equal(ftruncate(file, size - (off_t)leave), 0);
    (void)close(file);
}

/* Runs a copy up to where data is written, fills the disk, and writes. */
static int write_to_full_disk(void **state, struct error *e)
{
    const char *path[] = {at(state, "from")};
    const struct tree_store *store = copying.store;
    struct tree_read_options read = {.path = path, .paths = 1};
    struct tree_write_options write = {.id = "full", .path = at(state, "data/to")};
    struct tree_progress progress = {0};
    const struct interval *span;
    const uint8_t *wanted;
    struct tree_reader *r;
    struct tree_writer *w;
    uint32_t spans;
    size_t length;
    int code = 0;

    assert_int_equal(store->read_open(store->context, &read, &progress, &r, e), 0);
    assert_int_equal(store->write_open(store->context, &write, &w, e), 0);
    uint64_t size = store->facts(r).size[TREE_MANIFEST];
    uint8_t *bytes = malloc(1 << 20);
    assert_int_equal(store->read_document(r, TREE_MANIFEST, 0, bytes, (size_t)size, e), 0);
    assert_int_equal(store->write_document(w, TREE_MANIFEST, bytes, (size_t)size, e), 0);
    assert_int_equal(store->compare(w, &progress, &wanted, &length, e), 0);
    assert_int_equal(store->missing(w, 10, &progress, &span, &spans, e), 0);
    fill_disk(at(state, "data/filler"), 300000);
    for (uint64_t place = 0; place < store->facts(r).stream && code == 0; place += 100000) {
        uint64_t left = store->facts(r).stream - place;
        size_t part = left < 100000 ? (size_t)left : 100000;
        assert_int_equal(store->read(r, place, bytes, part, e), 0);
        code = store->write(w, place, bytes, part, e);
    }
    free(bytes);
    store->write_close(w);
    store->read_close(r);
    return code;
}

static int on_small_disk(void **state)
{
    struct error e;

    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", at(state, "data"), "tmpfs", 0, "size=2m,mode=755") != 0)
        return 2;
    copying_open(&copying, state);
    assert_int_equal(roots_add(&copying.roots, copying.roots.files, at(state, "from"), &e), 0);
    how = (struct how){.from = at(state, "from"), .to = at(state, "data/to")};
    /* it is full while data arrives */
    if (write_to_full_disk(state, &e) != -1 || e.code != ERROR_IO || exists(how.to))
        return 3;
    (void)unlink(at(state, "data/filler"));
    if (copy() != 0 || result.moved >= result.report.bytes)
        return 4;
    if (!trees_are_equal(how.from, how.to, true))
        return 5;
    /* it has room for one file at a time */
    fill_disk(at(state, "data/filler"), 700000);
    random_file(at(state, "from/one"), 3, 500000);
    random_file(at(state, "from/two"), 4, 500000);
    if (copy() != -1 || result.error.code != ERROR_REFUSED)
        return 8;
    how.write.as_it_comes = true;
    if (copy() != 0 || !trees_are_equal(how.from, how.to, true)) {
        (void)fprintf(stderr, "%s\n", result.error.text);
        return 9;
    }
    how.write.as_it_comes = false;
    (void)unlink(at(state, "data/filler"));
    /* it has no room to begin with */
    fill_disk(at(state, "data/filler"), 100000);
    how.to = at(state, "data/other");
    if (copy() != -1 || result.error.code != ERROR_REFUSED ||
        strstr(result.error.text, "needs 988.0 KiB of room, and its file system has ") == NULL) {
        (void)fprintf(stderr, "%s\n", result.error.text);
        return 6;
    }
    if (entries(at(state, "data")) != 2)
        return 7;
    copying_close(&copying);
    return 0;
}

FOLDER_TEST(full_disks_are_reported)
{
    pid_t child;
    int status;

    if (geteuid() != 0)
        skip();
    make_folder(at(state, "data"));
    make_folder(at(state, "state"));
    make_folder(at(state, "from"));
    random_file(at(state, "from/one"), 1, 500000);
    random_file(at(state, "from/two"), 2, 500000);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(on_small_disk(state));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip(); /* this machine allows no mounts */
    assert_int_equal(WEXITSTATUS(status), 0);
}
