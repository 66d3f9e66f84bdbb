/* Copies from a reader to a writer. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/digests.h"
#include "tests/support/cmocka.h"

COPYING_TEST(a_new_tree_is_equal)
{
    for (unsigned seed = 1; seed <= 8; seed++) {
        const char *from = at(state, "data/from%u", seed), *to = at(state, "data/to%u", seed);
        random_tree(from, seed, 60);
        how.from = from;
        how.to = to;
        how.piece = seed % 2 == 0 ? 5000 : 1000000;
        how.seed = seed % 3;
        how.threads = seed % 4;
        copy_well();
        check_equal(from, to);
        assert_int_equal(result.moved, result.report.bytes);
        assert_int_equal(result.report.bytes_missing, result.report.bytes);
        assert_int_equal(result.report.unchanged + result.report.changed, 0);
        /* a second copy moves and changes nothing */
        copy_well();
        assert_int_equal(result.moved, 0);
        assert_int_equal(result.report.added + result.report.changed, 0);
        assert_true(result.report.unchanged > 0);
        assert_int_equal(entries(at(state, "data")), 2 * seed); /* no staging is left */
        assert_int_equal(entries(at(state, "state/copies")), 0);
    }
}

COPYING_TEST(a_changed_tree_is_equal_again)
{
    for (unsigned seed = 1; seed <= 12; seed++) {
        const char *from = at(state, "data/from%u", seed), *to = at(state, "data/to%u", seed);
        random_tree(from, seed, 40);
        (void)copying_well(&copying, from, to);
        random_changes(from, seed);
        random_changes(to, seed + 1000);
        how.from = from;
        how.to = to;
        how.seed = seed % 3;
        how.threads = seed % 4;
        how.write = (struct tree_write_options){
            .delete = true, .checksum = seed % 5 == 0, .as_it_comes = seed % 3 == 0};
        how.write.look_only = true;
        copy_well();
        const struct copied looked = result;
        how.write.look_only = false;
        copy_well();
        check_equal(from, to);
        assert_int_equal(looked.report.added, result.report.added);
        assert_int_equal(looked.report.changed, result.report.changed);
        assert_int_equal(looked.report.removed, result.report.removed);
        assert_int_equal(looked.report.bytes_missing, result.report.bytes_missing);
        copy_well();
        assert_int_equal(result.report.added + result.report.changed + result.report.removed, 0);
    }
}

/* --- mount points --- */

static int on_mount_points(void **state)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0)
        return 2;
    copying_close(&copying); /* its folders are those of the other namespace */
    copying_open(&copying, state);
    how.write.delete = true;
    random_tree(how.from, 60, 20);
    make_folder(at(state, "data/from/sub"));
    make_file(at(state, "data/from/sub/x"), "x", 1);
    make_folder(how.to);
    if (mount("tmpfs", how.to, "tmpfs", 0, "size=20m") != 0)
        return 2;
    /* a target that is one is filled */
    for (unsigned i = 0; i < 2; i++) {
        if (copy() != 0 || !trees_are_equal(how.from, how.to, true) ||
            (i == 1 && result.report.added + result.report.changed > 0)) {
            (void)fprintf(stderr, "%u: %s, first %s\n", i, result.error.text, result.report.first);
            return 3;
        }
    }
    /* one below is not */
    if (mount("tmpfs", at(state, "data/to/sub"), "tmpfs", 0, "size=1m") != 0)
        return 2;
    if (copy() != -1 || result.error.code != ERROR_REFUSED ||
        strstr(result.error.text, "to/sub is a mount point") == NULL)
        return 4;
    /* and what the source lacks is not removed there */
    make_file(at(state, "data/to/sub/other"), "o", 1);
    if (unlink(at(state, "data/from/sub/x")) != 0 || rmdir(at(state, "data/from/sub")) != 0 ||
        copy() != 0 || !exists(at(state, "data/to/sub/other")))
        return 5;
    return 0;
}

COPYING_TEST(mount_points_are_not_crossed)
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

/* Sources that change while they are copied: files that grow, and files that change otherwise. */

#define LARGE 700000u /* bytes: digests of such files are asked for */

/* What happens to "data/from/f" between two steps of a copy. */
static char path[FIXTURE_PATH];
static void (*change)(void);

static void make_change(void *argument)
{
    change();
}

static void write_at(off_t offset, const char *bytes)
{
    int file = open(path, O_WRONLY);

    assert_true(file >= 0);
    assert_int_equal(
        pwrite(file, bytes, strlen(bytes), offset >= 0 ? offset : lseek(file, 0, SEEK_END)),
        (ssize_t)strlen(bytes));
    (void)close(file);
}

static void append(void)
{
    write_at(-1, "another line\n");
}

static void append_and_overwrite_begin(void)
{
    write_at(0, "other");
    append();
}

static void append_and_overwrite_what_was_read(void)
{
    write_at(30000, "other"); /* no sample has this */
    append();
}

static void overwrite_one(void)
{
    write_at(10, "other");
}

static void cut(void)
{
    assert_int_equal(truncate(path, 5), 0);
}

static void vanish(void)
{
    assert_int_equal(unlink(path), 0);
}

static void replace_by_longer(void)
{
    vanish();
    random_file(path, 99, 2 * LARGE);
}

/* A tree with a file "f" that changes, and others that do not. */
static void prepare(void **state, size_t length)
{
    make_folder(how.from);
    (void)strcpy(path, at(state, "data/from/f"));
    random_file(path, 1, length);
    random_file(at(state, "data/from/a"), 2, 1000);
    random_file(at(state, "data/from/z"), 3, 1000);
    assert_int_equal(link(path, at(state, "data/from/second")), 0);
}

static uint8_t *contents(const char *name, size_t *length)
{
    int file = open(name, O_RDONLY);
    struct stat st;

    assert_true(file >= 0 && fstat(file, &st) == 0);
    uint8_t *bytes = malloc((size_t)st.st_size + 1);
    assert_int_equal(read(file, bytes, (size_t)st.st_size), st.st_size);
    (void)close(file);
    *length = (size_t)st.st_size;
    return bytes;
}

/* Checks that the copy of "f" is the first bytes of what it is now. */
static void check_beginning(void **state, size_t length)
{
    size_t now, length_copied;
    uint8_t *of_now = contents(path, &now),
            *of_copy = contents(at(state, "data/to/f"), &length_copied);
    struct stat st, second;

    assert_int_equal(length_copied, length);
    assert_true(now > length);
    assert_memory_equal(of_now, of_copy, length);
    free(of_now);
    free(of_copy);
    assert_int_equal(stat(at(state, "data/to/f"), &st), 0);
    assert_int_equal(stat(at(state, "data/to/second"), &second), 0);
    assert_int_equal(st.st_ino, second.st_ino);
}

/* Where in a copy something happens. */
static void set_moment(unsigned moment)
{
    how.before_read = moment == 0 ? make_change : NULL;
    how.before_check = moment == 1 ? make_change : NULL;
}

COPYING_TEST(files_that_grow_are_copied_as_they_were_found)
{
    static const size_t length[] = {1, 100, LARGE};

    for (unsigned i = 0; i < 2 * 2 * 3; i++) {
        prepare(state, length[i / 4]);
        set_moment(i % 2);
        how.write.checksum = i / 2 % 2 == 1;
        change = append;
        if (copy() != 0)
            fail_msg("%u: %s", i, result.error.text);
        check_beginning(state, length[i / 4]);
        /* the rest comes with the next copy, which needs only that */
        how.before_read = how.before_check = NULL;
        assert_int_equal(copy(), 0);
        check_equal(how.from, how.to);
        if (length[i / 4] == LARGE)
            assert_true(result.moved < LARGE / 2);
        start_anew(state);
    }
}

/* The older version at the target has most of it, so that digests of it were sent before it has grown. */
COPYING_TEST(files_that_grow_after_their_digests_were_sent)
{
    for (unsigned bad = 0; bad < 2; bad++) {
        prepare(state, LARGE);
        assert_int_equal(copy(), 0);
        write_at(400000, "a change");
        set_moment(0);
        change = bad == 0 ? append : append_and_overwrite_what_was_read;
        assert_int_equal(copy(), bad == 0 ? 0 : -1);
        if (bad == 0)
            check_beginning(state, LARGE);
        start_anew(state);
    }
}

COPYING_TEST(files_that_also_change_otherwise_fail_the_copy)
{
    static void (*const changes[])(void) = {
        append_and_overwrite_begin, append_and_overwrite_what_was_read, overwrite_one, cut, vanish,
        replace_by_longer};

    for (unsigned i = 0; i < 2 * sizeof changes / sizeof *changes; i++) {
        prepare(state, LARGE);
        set_moment(i % 2);
        change = changes[i / 2];
        /* bytes that no sample has must have been read to be missed */
        const int expected = change == append_and_overwrite_what_was_read && i % 2 == 0 ? 0 : -1;
        assert_int_equal(copy(), expected);
        if (expected == -1 &&
            strstr(result.error.text, " was changed while it was being copied") == NULL)
            fail_msg("%u: %s", i, result.error.text);
        assert_int_equal(exists(how.to), expected == 0);
        start_anew(state);
    }
}

/* Nobody knows what a file was like that had not been written to for long. */
COPYING_TEST(files_that_were_at_rest_do_not_just_grow)
{
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

    prepare(state, 1000);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    set_moment(0);
    change = append;
    assert_int_equal(copy(), -1);
}

/* --- files that are left out --- */

COPYING_TEST(the_rest_is_copied_if_that_is_asked_for)
{
    static void (*const changes[])(void) = {append_and_overwrite_begin, overwrite_one, cut, vanish,
                                            replace_by_longer};

    for (unsigned i = 0; i < 2 * 2 * sizeof changes / sizeof *changes; i++) {
        const bool has_old = i / 2 % 2 == 1;
        prepare(state, LARGE);
        if (has_old) {
            make_folder(how.to);
            make_file(at(state, "data/to/f"), "old", 3);
        }
        set_moment(i % 2);
        how.write.skip_changing = how.write.delete = true;
        change = changes[i / 4];
        if (copy() != 0)
            fail_msg("%u: %s", i, result.error.text);
        assert_int_equal(result.changed, 1);
        assert_int_equal(result.report.added, has_old ? 2 : 3);
        assert_int_equal(exists(at(state, "data/to/f")), has_old);
        assert_false(exists(at(state, "data/to/second")));
        if (has_old) {
            size_t length;
            uint8_t *bytes = contents(at(state, "data/to/f"), &length);
            assert_true(length == 3 && memcmp(bytes, "old", 3) == 0);
            free(bytes);
        }
        /* when it is at rest, all is as usual */
        how.before_read = how.before_check = NULL;
        if (change == vanish)
            assert_int_equal(unlink(at(state, "data/from/second")), 0);
        assert_int_equal(copy(), 0);
        assert_int_equal(result.changed, 0);
        check_equal(how.from, how.to);
        start_anew(state);
    }
}

COPYING_TEST(a_file_that_grows_is_not_left_out)
{
    prepare(state, LARGE);
    set_moment(0);
    how.write.skip_changing = true;
    change = append;
    assert_int_equal(copy(), 0);
    assert_int_equal(result.changed, 0);
    check_beginning(state, LARGE);
}

/* What stood for the bytes of a file that had gone is not taken for it when it is back. */
COPYING_TEST(substitutes_are_not_resumed)
{
    char aside[FIXTURE_PATH];

    prepare(state, LARGE);
    (void)strcpy(aside, at(state, "data/aside"));
    set_moment(0);
    how.write.skip_changing = true;
    how.no_finish = true;
    change = vanish;
    assert_int_equal(unlink(at(state, "data/from/second")), 0);
    assert_int_equal(link(path, aside), 0);
    assert_int_equal(copy(), 0);
    assert_false(exists(at(state, "data/.to.torus-copy")));
    assert_int_equal(rename(aside, path), 0);
    how = (struct how){.from = how.from, .to = how.to};
    assert_int_equal(copy(), 0);
    check_equal(how.from, how.to);
}

/* What the reader says may be anything. */
COPYING_TEST(numbers_of_entries_are_checked)
{
    static const uint64_t number[] = {0, 1, 2, 3, 4, 5, 77, UINT64_MAX};
    struct tree_writer *w;
    struct error e;

    const struct tree_write_options options = {
        .id = "test", .path = at(state, "data/to"), .skip_changing = true};
    assert_int_equal(copying.store->write_open(copying.store->context, &options, &w, &e), 0);
    assert_fails(copying.store->leave(w, number, 8, &e), e, ERROR_PROTOCOL, "");
    copying.store->write_close(w);
}

/* What other nodes send may contain anything: manifests, digests, bytes. Nothing of it leads out of the target, or leaves
 * anything behind. */

#define DOCUMENT_MOST (1u << 20)

/* A document in memory, made by the functions that readers use. */
struct document {
    uint8_t bytes[DOCUMENT_MOST];
    size_t length;
    uint64_t stream;
};

static void read_back(struct document *d, int file, uint64_t size)
{
    assert_in_range(size, 1, DOCUMENT_MOST);
    d->length = (size_t)size;
    assert_int_equal(file_read(file, d->bytes, d->length, 0), 0);
    (void)close(file);
}

static void make_manifest(struct document *d, const struct entry *list, size_t count)
{
    int file = memfd_create("manifest", MFD_CLOEXEC);
    struct error e;
    struct manifest_maker *m = manifest_maker_new(file, &e);
    uint64_t size;

    assert_non_null(m);
    for (size_t i = 0; i < count; i++) {
        struct entry entry = list[i];
        entry.path_length = strlen(entry.path);
        if (manifest_maker_add(m, &entry, &e) != 0)
            fail_msg("%s: %s", entry.path, e.text);
    }
    assert_int_equal(manifest_maker_finish(m, &size, &d->stream, &e), 0);
    manifest_maker_free(m);
    read_back(d, file, size);
}

static struct tree_writer *open_writer(const char *to)
{
    struct tree_write_options options = {.id = "hostile", .path = to, .delete = true};
    struct tree_writer *w;
    struct error e;

    if (copying.store->write_open(copying.store->context, &options, &w, &e) != 0)
        fail_msg("%s", e.text);
    return w;
}

static int compare(struct tree_writer *w, const struct document *d, struct error *e)
{
    struct tree_progress progress = {0};
    const uint8_t *wanted;
    size_t length;

    assert_int_equal(copying.store->write_document(w, TREE_MANIFEST, d->bytes, d->length, e), 0);
    return copying.store->compare(w, &progress, &wanted, &length, e);
}

static const struct entry sample[] = {
    {.path = "", .kind = ENTRY_FOLDER, .mode = 0755},
    {.path = "file", .kind = ENTRY_FILE, .mode = 0644, .size = 1000},
    {.path = "folder", .kind = ENTRY_FOLDER, .mode = 0700},
    {.path = "folder/deep", .kind = ENTRY_FILE, .mode = 04755, .size = 10},
    {.path = "link", .kind = ENTRY_SYMLINK, .link = "/etc"},
};

/* Every byte of a manifest is changed: it is refused, or means something that can be copied. */
COPYING_TEST(damaged_manifests_are_refused)
{
    struct document *d = malloc(sizeof *d);
    unsigned refused = 0;

    make_manifest(d, sample, 5);
    for (size_t i = 0; i < d->length; i += 3) {
        struct tree_writer *w = open_writer(at(state, "data/to"));
        struct error e;
        d->bytes[i] ^= 0x55;
        refused += compare(w, d, &e) != 0;
        d->bytes[i] ^= 0x55;
        copying.store->write_close(w);
        assert_int_equal(entries(at(state, "data")), 0);
    }
    assert_int_equal(refused, (d->length + 2) / 3); /* the digest at its end finds all */
    free(d);
}

/* Files of a manifest must not become the new files of the copy that writes it. */
COPYING_TEST(names_of_new_files_are_refused)
{
    static const struct entry list[][3] = {
        {{.path = "", .kind = ENTRY_FOLDER, .mode = 0755},
         {.path = ".torus-copy", .kind = ENTRY_FOLDER, .mode = 0700}},
        {{.path = "", .kind = ENTRY_FOLDER, .mode = 0755},
         {.path = "a", .kind = ENTRY_FOLDER, .mode = 0755},
         {.path = "a/.b.torus-copy", .kind = ENTRY_SYMLINK, .link = "/etc"}},
    };
    struct document *d = malloc(sizeof *d);
    struct error e;

    for (unsigned i = 0; i < 2; i++) {
        struct tree_writer *w = open_writer(at(state, "data/to"));
        make_manifest(d, list[i], i + 2);
        assert_fails(compare(w, d, &e), e, ERROR_PROTOCOL, "");
        copying.store->write_close(w);
        assert_int_equal(entries(at(state, "data")), 0);
    }
    free(d);
}

/* Bytes that no file has, or that have come before; calls out of order. */
COPYING_TEST(bytes_of_no_file_are_refused)
{
    struct document *d = malloc(sizeof *d);
    struct tree_progress progress = {0};
    const struct interval *span;
    uint8_t bytes[2000] = {7};
    struct error e;
    uint32_t spans;

    make_manifest(d, sample, 5);
    struct tree_writer *w = open_writer(at(state, "data/to"));
    assert_fails(copying.store->write(w, 0, bytes, 10, &e), e, ERROR_PROTOCOL, "");
    assert_int_equal(copying.store->missing(w, 1, &progress, &span, &spans, &e), -1);
    assert_int_equal(copying.store->finish(w, &progress, &e), -1);
    assert_int_equal(compare(w, d, &e), 0);
    assert_int_equal(copying.store->missing(w, 1, &progress, &span, &spans, &e), 0);
    assert_int_equal(spans, 1);
    assert_int_equal(span[0].end, 1010);
    assert_fails(copying.store->write(w, 0, bytes, 1011, &e), e, ERROR_PROTOCOL, "");
    assert_int_equal(copying.store->write(w, UINT64_MAX, bytes, 10, &e), -1);
    assert_int_equal(copying.store->write(w, 10, bytes, 500, &e), 0);
    assert_int_equal(copying.store->write(w, 10, bytes, 500, &e), 0);
    assert_int_equal(copying.store->finish(w, &progress, &e), -1);
    assert_contains(e.text, "500 of 1000 bytes of file have not arrived");
    assert_int_equal(copying.store->write(w, 0, bytes, 1010, &e), 0);
    assert_int_equal(copying.store->write(w, 0, bytes, 1010, &e), 0);
    assert_int_equal(copying.store->finish(w, &progress, &e), 0);
    copying.store->write_close(w);
    check_file(at(state, "data/to/folder/deep"), bytes + 1000, 10);
    free(d);
}

/* Sizes that no disk has. */
COPYING_TEST(huge_files_are_refused_before_data_moves)
{
    static const struct entry huge[] = {
        {.path = "", .kind = ENTRY_FILE, .mode = 0644, .size = UINT64_C(1) << 60},
    };
    struct document *d = malloc(sizeof *d);
    struct tree_progress progress = {0};
    const struct interval *span;
    struct error e;
    uint32_t spans;

    make_manifest(d, huge, 1);
    struct tree_writer *w = open_writer(at(state, "data/to"));
    assert_int_equal(compare(w, d, &e), 0);
    assert_fails(copying.store->missing(w, 1, &progress, &span, &spans, &e), e, ERROR_REFUSED, "");
    copying.store->write_close(w);
    assert_int_equal(entries(at(state, "data")), 0);
    free(d);
}

/* Digests of the wrong files, with the same chunk everywhere. */
COPYING_TEST(odd_digests_do_no_harm)
{
    enum { SIZE = 1 << 20, CHUNK = 65536 };
    const struct entry large[] = {
        {.path = "", .kind = ENTRY_FOLDER, .mode = 0755},
        {.path = "one", .kind = ENTRY_FILE, .mode = 0644, .size = SIZE},
        {.path = "two", .kind = ENTRY_FILE, .mode = 0644, .size = SIZE},
    };
    struct document *d = malloc(sizeof *d), *digests = malloc(sizeof *digests);
    struct tree_progress progress = {0};
    const struct interval *span;
    struct error e;
    uint32_t spans;
    uint64_t size;

    make_manifest(d, large, 3);
    make_folder(at(state, "data/to"));
    random_file(at(state, "data/to/one"), 1, SIZE / 2);
    int file = memfd_create("digests", MFD_CLOEXEC);
    const struct chunk_digests none = {0};
    struct digests_maker *m = digests_maker_new(file, &none, &e);
    for (uint64_t index = 1; index <= 2; index++) { /* nobody wanted the second */
        struct chunk chunk = {.length = CHUNK, .digest = {1, 2, 3}};
        assert_int_equal(digests_maker_file(m, index, &e), 0);
        for (unsigned i = 0; i < SIZE / CHUNK; i++)
            assert_int_equal(digests_maker_chunk(m, &chunk, &e), 0);
    }
    assert_int_equal(digests_maker_finish(m, &size, &e), 0);
    digests_maker_free(m);
    read_back(digests, file, size);
    for (size_t i = 0; i <= digests->length; i += 97) { /* damaged, and in the end whole */
        struct tree_writer *w = open_writer(at(state, "data/to"));
        bool whole = i + 97 > digests->length;
        assert_int_equal(compare(w, d, &e), 0);
        if (!whole)
            digests->bytes[i] ^= 0x10;
        assert_int_equal(
            copying.store->write_document(w, TREE_DIGESTS, digests->bytes, digests->length, &e), 0);
        assert_int_equal(copying.store->missing(w, 4, &progress, &span, &spans, &e),
                         whole ? 0 : -1);
        if (whole)
            assert_int_equal(span[0].end - span[0].begin, 2 * SIZE);
        else
            digests->bytes[i] ^= 0x10;
        copying.store->write_close(w);
        assert_int_equal(entries(at(state, "data")), 1);
        assert_int_equal(entries(at(state, "data/to")), 1);
    }
    free(d);
    free(digests);
}

/* Contents that differ from the digest in the manifest are not put in place. */
COPYING_TEST(wrong_contents_are_found)
{
    struct entry digested[] = {
        {.path = "", .kind = ENTRY_FILE, .mode = 0644, .size = 3, .has_digest = true},
    };
    struct document *d = malloc(sizeof *d);
    struct tree_progress progress = {0};
    const struct interval *span;
    struct error e;
    uint32_t spans;

    make_manifest(d, digested, 1);
    struct tree_writer *w = open_writer(at(state, "data/to"));
    assert_int_equal(compare(w, d, &e), 0);
    assert_int_equal(copying.store->missing(w, 1, &progress, &span, &spans, &e), 0);
    assert_fails(copying.store->write(w, 0, (const uint8_t *)"abc", 3, &e), e, ERROR_DAMAGED, "");
    copying.store->write_close(w);
    assert_false(exists(at(state, "data/to")));
    free(d);
}
