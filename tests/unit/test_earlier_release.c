/* What revision 53c387c6 has left on disks is understood: outputs in doubt, unfinished ones, decisions to commit, complete
 * and interrupted copies. The bytes are written here as that revision wrote them, one field after another. */
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "daemon/lib/base/log.h"
#include "folders_fixture.h"
#include "tests/support/cmocka.h"

#define TEMPORARY ".out.torusd-" ID "-1"

/* --- exchanges --- */

static uint64_t inode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_ino;
}

/* Writes the entry of an output in the folder `above`, of which `made` folders were made for it. `numbers`: it may replace an
 * old result, and these are the inode numbers of the new and the old folder, or 0. */
static void write_entry(void **state, const char *word, unsigned made, const char *above,
                        const uint64_t *numbers)
{
    char bytes[2 * FIXTURE_PATH];
    int length = snprintf(bytes, sizeof bytes, "%s%c%u%c%s%c%s%c%s%c", word, 0, made, 0, above, 0,
                          TEMPORARY, 0, "out", 0);

    if (numbers != NULL)
        length += snprintf(bytes + length, sizeof bytes - (size_t)length, "%llu%c%llu%c",
                           (unsigned long long)numbers[0], 0, (unsigned long long)numbers[1], 0);
    make_file(at(state, "state/exchange-" ID), bytes, (size_t)length);
}

/* A folder of a result: a file from each of two nodes, with this text. */
static void make_result(void **state, const char *path, const char *text)
{
    make_folder(at(state, "%s", path));
    make_file(at(state, "%s/0", path), text, strlen(text));
    make_file(at(state, "%s/1", path), text, strlen(text));
}

static void check_result(void **state, const char *path, const char *text)
{
    check_file(at(state, "%s/0", path), text, strlen(text));
    check_file(at(state, "%s/1", path), text, strlen(text));
    assert_int_equal(entries(at(state, "%s", path)), 2);
}

/* A complete output waits for its outcome, and is then put in place or removed, with the folder made above it. */
FOLDER_TEST(outputs_in_doubt)
{
    static const uint64_t not_swapped[2] = {0, 0};

    for (unsigned i = 0; i < 4; i++) {
        const bool committed = i % 2 == 1, replaces = i >= 2;
        struct fixture f;
        struct error e;
        open_fixture(&f, state);
        make_folder(at(state, "data/x"));
        make_result(state, "data/x/" TEMPORARY, "new");
        if (replaces)
            make_result(state, "data/x/out", "old");
        write_entry(state, "finished", replaces ? 0 : 1, at(state, "data/x"),
                    replaces ? not_swapped : NULL);
        restart(&f);
        check_in_doubt(&f, ID);
        assert_success(resolve(&f, committed, &e), e);
        if (committed || replaces)
            check_result(state, "data/x/out", committed ? "new" : "old");
        assert_int_equal(entries(at(state, "data/x")), committed || replaces ? 1 : 0);
        assert_int_equal(entries(at(state, "data")), committed || replaces ? 1 : 0);
        assert_int_equal(entries(f.state_folder), 0);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* The daemon ended while the new result and the old one changed places: just before the exchange of names, or just
 * after it. */
FOLDER_TEST(results_that_change_places)
{
    for (unsigned swapped = 0; swapped < 2; swapped++) {
        uint64_t numbers[2];
        struct fixture f;
        struct error e;
        open_fixture(&f, state);
        make_result(state, "data/out", swapped == 1 ? "new" : "old");
        make_result(state, "data/" TEMPORARY, swapped == 1 ? "old" : "new");
        numbers[swapped] = inode_of(at(state, "data/" TEMPORARY));
        numbers[1 - swapped] = inode_of(at(state, "data/out"));
        write_entry(state, "finished", 0, at(state, "data"), numbers);
        restart(&f);
        check_in_doubt(&f, ID);
        assert_success(resolve(&f, true, &e), e);
        check_result(state, "data/out", "new");
        assert_int_equal(entries(at(state, "data")), 1);
        assert_int_equal(entries(f.state_folder), 0);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* What was never finished is removed at the start, and so is a file of the state folder that was half written. */
FOLDER_TEST(unfinished_outputs)
{
    struct fixture f;

    open_fixture(&f, state);
    make_folder(at(state, "data/a"));
    make_folder(at(state, "data/a/b"));
    make_result(state, "data/a/b/" TEMPORARY, "half");
    write_entry(state, "preparing", 2, at(state, "data/a/b"), NULL);
    make_file(at(state, "state/.next-exchange-" OTHER_ID), "prep", 4);
    restart(&f);
    check_in_doubt(&f, "");
    assert_int_equal(entries(at(state, "data")), 0);
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}

FOLDER_TEST(decisions)
{
    struct fixture f;

    open_fixture(&f, state);
    make_file(at(state, "state/committed-" ID), "", 0);
    restart(&f);
    check_committed(&f, ID);
    f.storage.forget_commit(f.storage.context, ID);
    stepper_finish(&f.jobs);
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}

/* --- copies --- */

struct bytes {
    uint8_t data[1000];
    size_t length;
};

static void put(struct bytes *b, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        b->data[b->length++] = (uint8_t)(value >> 8 * i);
}

static void put_text(struct bytes *b, const char *text)
{
    memcpy(b->data + b->length, text, strlen(text));
    b->length += strlen(text);
}

/* Appends the digest of all that is there. */
static void put_digest(struct bytes *b)
{
    (void)crypto_generichash(b->data + b->length, 16, b->data, b->length, NULL, 0);
    b->length += 16;
}

#define MODIFIED 1234567890

/* One record of a manifest; `shared`: bytes of the path that the path before has, too. */
static void put_record(struct bytes *b, unsigned kind, unsigned mode, size_t shared,
                       const char *path, const char *contents)
{
    put(b, 32 + strlen(path) - shared + (contents != NULL ? 8 : 0), 4);
    put(b, kind, 1);
    put(b, 0, 1);
    put(b, mode, 2);
    put(b, shared, 2);
    put(b, strlen(path) - shared, 2);
    put(b, geteuid(), 4);
    put(b, getegid(), 4);
    put(b, MODIFIED, 8);
    put(b, 0, 4);
    put_text(b, path + shared);
    if (contents != NULL)
        put(b, strlen(contents), 8);
}

#define ONE "first"
#define TWO "the second file"

/* The manifest of a folder with the files "one" and "sub/two". */
static void make_manifest(struct bytes *b)
{
    *b = (struct bytes){.length = 0};
    put_text(b, "TORUSTRE");
    put(b, 1, 4);
    put(b, 256, 4);
    put_record(b, 1, 0755, 0, "", NULL);
    put_record(b, 2, 0640, 0, "one", ONE);
    put_record(b, 1, 0750, 0, "sub", NULL);
    put_record(b, 2, 0600, 3, "sub/two", TWO);
    put(b, 16, 8); /* the index: the first record, */
    put(b, 0, 8);  /* and its place in the stream */
    put(b, 4, 8);
    put(b, 0, 8);
    put(b, strlen(ONE TWO), 8);
    put_digest(b);
}

/* A new file of a staging, as it was when it was whole. */
static void make_staged(void **state, unsigned index, const char *contents, mode_t mode)
{
    const struct timespec times[2] = {{.tv_sec = MODIFIED}, {.tv_sec = MODIFIED}};
    const char *path = at(state, "data/.to.torus-copy/f/00000/%x", index);

    make_file(path, contents, strlen(contents));
    assert_int_equal(chmod(path, mode) | utimensat(AT_FDCWD, path, times, 0), 0);
}

/* The staging of data/to with both files, and its entry in the state folder. */
static void make_staging(void **state, struct bytes *manifest)
{
    static const char *const folders[] = {"data/.to.torus-copy", "data/.to.torus-copy/f",
                                          "data/.to.torus-copy/f/00000"};
    const char *target = at(state, "data/to");
    uint8_t digest[16];
    char name[33];

    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++) {
        make_folder(at(state, "%s", folders[i]));
        assert_int_equal(chmod(at(state, "%s", folders[i]), 0700), 0);
    }
    (void)crypto_generichash(digest, sizeof digest, (const uint8_t *)target, strlen(target), NULL,
                             0);
    (void)sodium_bin2hex(name, sizeof name, digest, sizeof digest);
    make_file(at(state, "state/copies/%s", name), target, strlen(target));
    make_manifest(manifest);
    make_file(at(state, "data/.to.torus-copy/manifest"), manifest->data, manifest->length);
    make_staged(state, 1, ONE, 0640);
    make_staged(state, 3, TWO, 0600);
}

/* The record that both files have arrived. */
static void make_arrived(void **state, const struct bytes *manifest)
{
    struct bytes b = {.length = 8 + 40};
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    memcpy(b.data, "arrived1", 8);
    assert_true(file >= 0 && read(file, b.data + 8, 39) > 0);
    (void)close(file);
    memcpy(b.data + b.length, manifest->data + manifest->length - 16, 16);
    b.length += 16;
    put(&b, 4, 8);                 /* entries */
    put(&b, 0, 8);                 /* files of which a part is here */
    put(&b, 1u << 1 | 1u << 3, 1); /* whole files, by their numbers */
    put_digest(&b);
    make_file(at(state, "data/.to.torus-copy/arrived"), b.data, b.length);
}

static void check_copy(void **state)
{
    struct stat st;

    check_file(at(state, "data/to/one"), ONE, strlen(ONE));
    check_file(at(state, "data/to/sub/two"), TWO, strlen(TWO));
    assert_int_equal(stat(at(state, "data/to/one"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(st.st_mtime, MODIFIED);
    assert_int_equal(stat(at(state, "data/to/sub"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0750);
    assert_false(exists(at(state, "data/.to.torus-copy")));
    assert_int_equal(entries(at(state, "state/copies")), 0);
}

/* Everything had arrived: the start puts it in place. A file that somebody has cut off meanwhile is not taken. */
FOLDER_TEST(complete_copies)
{
    for (unsigned damaged = 0; damaged < 2; damaged++) {
        struct copying c;
        struct bytes manifest;
        copying_open(&c, state);
        log_set_level(LOG_LEVEL_ERROR);
        make_staging(state, &manifest);
        make_arrived(state, &manifest);
        make_file(at(state, "data/.to.torus-copy/complete"), "torus-copy 1 0 0 0\n.", 20);
        if (damaged == 1)
            assert_int_equal(truncate(at(state, "data/.to.torus-copy/f/00000/3"), 3), 0);
        tree_files_recover(&c.files);
        if (damaged == 0)
            check_copy(state);
        assert_int_equal(exists(at(state, "data/to")), damaged == 0);
        assert_int_equal(exists(at(state, "data/.to.torus-copy/complete")), damaged == 1);
        copying_close(&c);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* Copies with patterns, into a folder that exists, and with --delete: the rules in the marker are those of the copy. */
FOLDER_TEST(complete_copies_with_rules)
{
    static const char marker[] = "torus-copy 1 0 1 0\n- *.keep\0.";
    struct copying c;
    struct bytes manifest;

    copying_open(&c, state);
    log_set_level(LOG_LEVEL_ERROR);
    make_staging(state, &manifest);
    make_file(at(state, "data/.to.torus-copy/complete"), marker, sizeof marker - 1);
    make_folder(at(state, "data/to"));
    make_file(at(state, "data/to/gone"), "x", 1);
    make_file(at(state, "data/to/a.keep"), "x", 1);
    tree_files_recover(&c.files);
    check_copy(state);
    assert_false(exists(at(state, "data/to/gone")));
    assert_true(exists(at(state, "data/to/a.keep")));
    copying_close(&c);
}

/* The record of an interrupted copy does not say what ties it to the files, so it counts for nothing: the start leaves the
 * staging, and the next copy sends everything again. */
FOLDER_TEST(interrupted_copies)
{
    static const struct timespec times[2] = {{.tv_sec = MODIFIED}, {.tv_sec = MODIFIED}};
    struct copying c;
    struct bytes manifest;

    copying_open(&c, state);
    log_set_level(LOG_LEVEL_ERROR);
    make_staging(state, &manifest);
    make_arrived(state, &manifest);
    tree_files_recover(&c.files);
    assert_true(exists(at(state, "data/.to.torus-copy/arrived")));
    make_folder(at(state, "data/from"));
    make_folder(at(state, "data/from/sub"));
    make_file(at(state, "data/from/one"), ONE, strlen(ONE));
    make_file(at(state, "data/from/sub/two"), TWO, strlen(TWO));
    assert_int_equal(chmod(at(state, "data/from/one"), 0640) |
                         chmod(at(state, "data/from/sub"), 0750) |
                         utimensat(AT_FDCWD, at(state, "data/from/one"), times, 0),
                     0);
    assert_int_equal(copying_well(&c, at(state, "data/from"), at(state, "data/to")),
                     strlen(ONE TWO));
    check_copy(state);
    copying_close(&c);
}
