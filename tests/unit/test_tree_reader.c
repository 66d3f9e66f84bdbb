/* Readers: the stream is what the files hold, whoever reads which part when; what has changed is found. */
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/torusd/tree/digests.h"
#include "daemon/torusd/tree/walk.h"
#include "tests/support/cmocka.h"
#include "tree_fixture.h"

static void close_reader(void **state, struct tree_reader *r)
{
    ((struct trees *)*state)->store->read_close(r);
}

/* --- the stream --- */

/* A tree of files of many sizes, one of them with holes, and the bytes of all. */
struct stream_tree {
    uint8_t *bytes;
    size_t length;
    struct tree_reader *reader;
    const struct tree_store *store;
};

static void add_file(void **state, struct stream_tree *t, const char *name, size_t length)
{
    t->bytes = realloc(t->bytes, t->length + length + 1);
    assert_non_null(t->bytes);
    randombytes_buf(t->bytes + t->length, length);
    make_file(data_at(state, "%s", name), t->bytes + t->length, length);
    t->length += length;
}

static void add_sparse(void **state, struct stream_tree *t, const char *name)
{
    const size_t block = 65536; /* file systems have holes of whole blocks only */
    int file = open(data_at(state, "%s", name), O_CREAT | O_WRONLY, 0600);

    t->bytes = realloc(t->bytes, t->length + 2 * block);
    assert_non_null(t->bytes);
    memset(t->bytes + t->length, 's', 2 * block);
    assert_int_equal(pwrite(file, t->bytes + t->length, block, (off_t)block), block);
    assert_int_equal(pwrite(file, t->bytes + t->length, block, (off_t)(5 * block)), block);
    assert_int_equal(ftruncate(file, (off_t)(7 * block)), 0);
    t->length += 2 * block;
    (void)close(file);
}

static void make_stream(void **state, struct stream_tree *t)
{
    char name[40];

    *t = (struct stream_tree){.store = ((struct trees *)*state)->store};
    make_folder(data_at(state, "t"));
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "t/%02u", i / 50);
        if (i % 50 == 0)
            make_folder(data_at(state, "%s", name));
        (void)snprintf(name, sizeof name, "t/%02u/%02u", i / 50, i % 50);
        if (i == 500)
            add_sparse(state, t, name);
        else
            add_file(state, t, name, i % 7 == 0 ? 0 : i % 100 == 1 ? 70000 + i : i);
    }
    t->reader = open_reader_of(state, "t");
    assert_int_equal(t->store->facts(t->reader).stream, t->length);
}

static void check_read(const struct stream_tree *t, size_t offset, size_t length)
{
    struct error e = {0};
    uint8_t *bytes = malloc(length + 1);

    assert_non_null(bytes);
    if (t->store->read(t->reader, offset, bytes, length, &e) != 0)
        fail_msg("%s", e.text);
    if (memcmp(bytes, t->bytes + offset, length) != 0)
        fail_msg("%zu bytes from %zu on are wrong", length, offset);
    free(bytes);
}

static void free_stream(void **state, struct stream_tree *t)
{
    close_reader(state, t->reader);
    free(t->bytes);
}

TREES_TEST(any_part_of_the_stream_can_be_read)
{
    struct stream_tree t;
    struct error e = {0};
    uint8_t byte;
    unsigned before = descriptors();
    make_stream(state, &t);
    check_read(&t, 0, t.length);
    check_read(&t, t.length, 0);
    for (size_t offset = 0; offset < t.length; offset += 10007)
        check_read(&t, offset, t.length - offset < 10007 ? t.length - offset : 10007);
    for (unsigned i = 0; i < 500; i++) {
        size_t offset = randombytes_uniform((uint32_t)t.length);
        check_read(&t, offset, randombytes_uniform((uint32_t)(t.length - offset)) % 50000);
    }
    assert_fails(t.store->read(t.reader, t.length, &byte, 1, &e), e, ERROR_PROTOCOL, "");
    assert_int_equal(t.store->read(t.reader, UINT64_MAX, &byte, 2, &e), -1);
    assert_in_range(descriptors(), before + 3, before + 3 + 9); /* source, documents; and spots */
    assert_int_equal(t.store->check(t.reader, NULL, &e), 0);
    free_stream(state, &t);
    assert_int_equal(descriptors(), before);
}

static void *read_parts(void *argument)
{
    struct stream_tree *t = argument;
    uint8_t *bytes = malloc(60000);
    struct error e = {0};
    unsigned wrong = bytes == NULL;

    for (unsigned i = 0; i < 60 && wrong == 0; i++) {
        size_t offset = randombytes_uniform((uint32_t)(t->length - 60000));
        size_t length = randombytes_uniform(60000);
        wrong += t->store->read(t->reader, offset, bytes, length, &e) != 0 ||
                 memcmp(bytes, t->bytes + offset, length) != 0;
    }
    free(bytes);
    return (void *)(uintptr_t)wrong;
}

TREES_TEST(threads_may_read_at_the_same_time)
{
    struct stream_tree t;
    pthread_t thread[12]; /* more than there are spots */
    make_stream(state, &t);
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_parts, &t), 0);
    for (unsigned i = 0; i < 12; i++) {
        void *wrong;
        assert_int_equal(pthread_join(thread[i], &wrong), 0);
        assert_null(wrong);
    }
    free_stream(state, &t);
}

/* --- what has changed --- */

struct change {
    const char *name;
    void (*make)(void **state);
    bool seen_by_read; /* of the file "t/f" */
};

static void shorten(void **state)
{
    assert_int_equal(truncate(data_at(state, "t/f"), 1), 0);
}

/* The file is longer than before and begins with other bytes, so it has not just grown. */
static void lengthen(void **state)
{
    make_file(data_at(state, "t/f"), "something else", 14);
}

static void write_again(void **state)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 5}};
    assert_int_equal(utimensat(AT_FDCWD, data_at(state, "t/f"), times, 0), 0);
}

static void set_as_before(const char *path, const struct stat *st)
{
    struct timespec times[2] = {st->st_atim, st->st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* Replaces the file by one of the same size and time; the time of the folder is the same, too. */
static void replace(void **state)
{
    struct stat st, folder;
    const char *path = data_at(state, "t/f"), *fresh = data_at(state, "fresh");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(stat(data_at(state, "t"), &folder), 0);
    make_file(fresh, "T/F", 3);
    set_as_before(fresh, &st);
    assert_int_equal(rename(fresh, path), 0);
    set_as_before(data_at(state, "t"), &folder);
}

static void remove_file(void **state)
{
    assert_int_equal(unlink(data_at(state, "t/f")), 0);
}

static void swap_for_link(void **state)
{
    remove_file(state);
    assert_int_equal(symlink("/etc/passwd", data_at(state, "t/f")), 0);
}

static void swap_folder_for_link(void **state)
{
    assert_int_equal(rename(data_at(state, "t/d"), data_at(state, "moved")), 0);
    assert_int_equal(symlink("../moved", data_at(state, "t/d")), 0);
}

static void add_name(void **state)
{
    make_file(data_at(state, "t/new"), "", 0);
}

static void change_symlink(void **state)
{
    struct stat folder;
    assert_int_equal(stat(data_at(state, "t"), &folder), 0);
    assert_int_equal(unlink(data_at(state, "t/l")), 0);
    assert_int_equal(symlink("elsewhere", data_at(state, "t/l")), 0);
    set_as_before(data_at(state, "t"), &folder);
}

TREES_TEST(what_changes_between_open_and_read_is_found)
{
    static const char *const names[] = {"t/", "t/d/", "t/d/a", "t/f", NULL};
    static const struct change changes[] = {{"f", shorten, true},
                                            {"f", lengthen, false},
                                            {"f", write_again, true},
                                            {"f", replace, true},
                                            {"f", remove_file, true},
                                            {"f", swap_for_link, true},
                                            {"d", swap_folder_for_link, false},
                                            {"", add_name, false},
                                            {"l", change_symlink, false}};
    struct trees *t = *state;
    uint8_t bytes[20];
    unsigned before = descriptors();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct error e = {0};
        void *folder = t->folder;
        if (i > 0)
            assert_int_equal(rename(data_at(state, "t"), at(&folder, "old%zu", i)), 0);
        make_tree(state, names);
        assert_int_equal(symlink("somewhere", data_at(state, "t/l")), 0);
        struct tree_reader *r = open_reader_of(state, "t"), *all = open_reader_of(state, "t");
        assert_int_equal(t->store->facts(r).stream, 8); /* "t/d/a", "t/f" */
        assert_int_equal(t->store->check(r, NULL, &e), 0);
        changes[i].make(state);
        int result = t->store->read(r, 5, bytes, 3, &e);
        assert_int_equal(result, changes[i].seen_by_read ? -1 : 0);
        if (result != 0 && strstr(e.text, "t/f was changed") == NULL)
            fail_msg("%s", e.text);
        assert_int_equal(t->store->check(r, NULL, &e), -1);
        assert_contains(e.text, "was changed while it was being copied");
        if (changes[i].make == swap_folder_for_link)
            assert_int_equal(t->store->read(r, 0, bytes, 5, &e), -1);
        /* Both files at once: the second one is opened while the first one is read. */
        bool swapped = changes[i].make == swap_folder_for_link;
        result = t->store->read(all, 0, bytes, 8, &e);
        assert_int_equal(result, changes[i].seen_by_read || swapped ? -1 : 0);
        close_reader(state, r);
        close_reader(state, all);
        assert_int_equal(descriptors(), before);
    }
}

/* The file behind it is open by then. */
TREES_TEST(a_file_that_shrinks_while_it_is_open_is_found)
{
    static uint8_t bytes[100001];
    struct trees *t = *state;
    struct error e = {0};
    unsigned before = descriptors();
    make_folder(data_at(state, "t"));
    make_file(data_at(state, "t/f"), bytes, 100000);
    make_file(data_at(state, "t/g"), "g", 1);
    struct tree_reader *r = open_reader_of(state, "t");
    assert_int_equal(t->store->read(r, 0, bytes, 50000, &e), 0);
    assert_int_equal(truncate(data_at(state, "t/f"), 60000), 0);
    assert_int_equal(t->store->read(r, 50000, bytes, 50001, &e), -1);
    assert_contains(e.text, "t/f was changed");
    close_reader(state, r);
    assert_int_equal(descriptors(), before);
}

/* --- digests --- */

TREES_TEST(the_manifest_has_digests_if_asked)
{
    const char *path = data_at(state, "f");
    struct manifest m;
    uint8_t expected[16];
    make_file(path, "abc", 3);
    struct tree_reader *r =
        open_reader(state, &(struct tree_read_options){.path = &path, .paths = 1, .digests = true});
    int file = manifest_of(state, r, &m);
    struct manifest_cursor *c = manifest_cursor_new(&m);
    struct entry entry = entry_at(c, "");
    (void)crypto_generichash(expected, 16, (const uint8_t *)"abc", 3, NULL, 0);
    assert_true(entry.has_digest);
    assert_memory_equal(entry.digest, expected, 16);
    manifest_cursor_free(c);
    (void)close(file);
    close_reader(state, r);
}

TREES_TEST(files_that_any_writer_wants_are_cut)
{
    struct stream_tree t;
    struct error e = {0};
    struct manifest m;
    uint64_t size, index;
    static struct wanted first;
    static const uint8_t garbage[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    const uint8_t *wanted[] = {first.bytes, garbage, (const uint8_t *)"\2"};
    memset(&first, 0, sizeof first);
    make_stream(state, &t);
    assert_true(wanted_add(&first, 0, 0) && wanted_add(&first, 3, 0)); /* the folder; a file */
    assert_true(wanted_add(&first, 512, 0) &&
                wanted_add(&first, 5000, 0)); /* the one with holes; none */
    const size_t length[] = {first.length, sizeof garbage, 1};
    assert_int_equal(t.store->digest(t.reader, wanted, length, 3, NULL, &e), 0);
    int entries_file = manifest_of(state, t.reader, &m);
    int file = document_of(state, t.reader, TREE_DIGESTS, &size);
    assert_success(digests_check(file, size, &m, 0, &e), e);
    struct digests_cursor *c = digests_cursor_new(file, size);
    struct manifest_cursor *all = manifest_cursor_new(&m);
    unsigned files = 0;
    while (digests_next_file(c, &index, &e) == 1) {
        struct entry entry;
        struct chunk chunk;
        uint8_t digest[16];
        assert_int_equal(manifest_seek_index(all, index, &e), 0);
        assert_int_equal(manifest_next(all, &entry, &e), 1);
        for (uint64_t at_byte = entry.begin; digests_next_chunk(c, &chunk, &e) == 1;
             at_byte += chunk.length) {
            (void)crypto_generichash(digest, 16, t.bytes + at_byte, chunk.length, NULL, 0);
            assert_memory_equal(digest, chunk.digest, 16);
        }
        files++;
    }
    assert_int_equal(files, 2);
    digests_cursor_free(c);
    manifest_cursor_free(all);
    (void)close(file);
    (void)close(entries_file);
    free_stream(state, &t);
}

TREES_TEST(a_file_that_changed_gets_no_digests)
{
    struct trees *t = *state;
    struct error e = {0};
    const uint8_t *wanted = (const uint8_t *)"\0";
    const size_t length = 1;
    make_file(data_at(state, "f"), "abc", 3);
    struct tree_reader *r = open_reader_of(state, "f");
    assert_int_equal(t->store->digest(r, &wanted, &length, 1, NULL, &e), 0);
    make_file(data_at(state, "f"), "ab", 2);
    assert_int_equal(t->store->digest(r, &wanted, &length, 1, NULL, &e), -1);
    assert_contains(e.text, "f was changed");
    close_reader(state, r);
}

/* Walks: everything in a tree becomes an entry, as it is; what cannot be read is an error that names it. */

TREES_TEST(names_may_have_any_bytes_and_are_in_order)
{
    static const char *const names[] = {"t/",    "t/a/",     "t/a-b",  "t/a.b",
                                        "t/a/b", "t/a/b\n",  "t/\x01", "t/\xff\xfe",
                                        "t/ä",   "t/empty/", "t/-",    NULL};
    static const char *const paths[] = {"/",   "\x01", "-",      "a/", "a/b",      "a/b\n",
                                        "a-b", "a.b",  "empty/", "ä",  "\xff\xfe", NULL};
    make_tree(state, names);
    struct tree_reader *r = open_reader_of(state, "t");
    check_paths(state, r, paths);
    close_reader(state, r);
}

TREES_TEST(entries_say_what_the_disk_says)
{
    static const char *const names[] = {"t/", "t/f", "t/x", "t/z/", NULL};
    static const char *const paths[] = {"/", "f", "hard=", "l@", "sparse", "x", "z/", NULL};
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = -77, .tv_nsec = 123456789}};
    struct manifest m;
    make_tree(state, names);
    assert_int_equal(chmod(data_at(state, "t/x"), 06751), 0);
    assert_int_equal(chmod(data_at(state, "t/z"), 01777), 0);
    assert_int_equal(utimensat(AT_FDCWD, data_at(state, "t/x"), times, 0), 0);
    assert_int_equal(symlink("../nowhere\n", data_at(state, "t/l")), 0);
    assert_int_equal(link(data_at(state, "t/f"), data_at(state, "t/hard")), 0);
    int sparse = open(data_at(state, "t/sparse"), O_CREAT | O_WRONLY, 0600);
    assert_int_equal(pwrite(sparse, "data", 4, 1 << 20), 4);
    assert_int_equal(ftruncate(sparse, 300 << 20), 0);
    (void)close(sparse);
    struct tree_reader *r = open_reader_of(state, "t");
    check_paths(state, r, paths);
    int file = manifest_of(state, r, &m);
    struct manifest_cursor *c = manifest_cursor_new(&m);
    struct entry entry = entry_at(c, "x");
    assert_int_equal(entry.mode, 06751);
    assert_int_equal(entry.owner, geteuid());
    assert_int_equal(entry.modified.tv_sec, -77);
    assert_int_equal(entry.modified.tv_nsec, 123456789);
    assert_int_equal(entry.size, 3);
    assert_false(entry.has_digest);
    assert_int_equal(entry_at(c, "z").mode, 01777);
    entry = entry_at(c, "l");
    assert_string_equal(entry.link, "../nowhere\n");
    entry = entry_at(c, "hard");
    assert_string_equal(entry.link, "f");
    assert_int_equal(entry.linked, 1);
    entry = entry_at(c, "sparse");
    assert_int_equal(entry.size, 300 << 20);
    assert_int_equal(entry.extents, 1);
    assert_in_range(entry.bytes, 4, 1 << 20);
    manifest_cursor_free(c);
    (void)close(file);
    close_reader(state, r);
}

TREES_TEST(a_file_that_is_a_hole_has_no_data)
{
    struct manifest m;
    struct error e = {0};
    struct entry entry;
    int hole = open(data_at(state, "h"), O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(hole, 1 << 30), 0);
    (void)close(hole);
    struct tree_reader *r = open_reader_of(state, "h");
    int file = manifest_of(state, r, &m);
    struct manifest_cursor *c = manifest_cursor_new(&m);
    assert_int_equal(manifest_next(c, &entry, &e), 1);
    assert_int_equal(m.stream, 0);
    assert_string_equal(entry.path, "");
    assert_int_equal(entry.size, 1 << 30);
    assert_non_null(entry.extent);
    manifest_cursor_free(c);
    (void)close(file);
    close_reader(state, r);
}

TREES_TEST(attributes_are_read_in_order)
{
    static const char *const names[] = {"t/", "t/f", "t/g", NULL};
    static const uint8_t expected[] = "user.a\0\1\0\0\0Auser.b\0\0\0\0"; /* with the last 0 */
    static char large[40000];
    struct manifest m;
    make_tree(state, names);
    if (setxattr(data_at(state, "t/f"), "user.b", "", 0, 0) != 0)
        skip(); /* a file system without attributes */
    assert_int_equal(setxattr(data_at(state, "t/f"), "user.a", "A", 1, 0), 0);
    assert_int_equal(setxattr(data_at(state, "t"), "user.a", "A", 1, 0), 0);
    struct tree_reader *r = open_reader_of(state, "t");
    int file = manifest_of(state, r, &m);
    struct manifest_cursor *c = manifest_cursor_new(&m);
    struct entry entry = entry_at(c, "f");
    assert_int_equal(entry.attributes_length, sizeof expected);
    assert_memory_equal(entry.attributes, expected, sizeof expected);
    assert_int_equal(entry_at(c, "g").attributes_length, 0);
    entry = entry_at(c, "");
    assert_int_equal(entry.attributes_length, 12);
    manifest_cursor_free(c);
    (void)close(file);
    close_reader(state, r);
    /* More than a manifest can hold. */
    const char *path = data_at(state, "t");
    const struct tree_read_options options = {.path = &path, .paths = 1};
    if (setxattr(data_at(state, "t/g"), "user.1", large, sizeof large, 0) == 0 &&
        setxattr(data_at(state, "t/g"), "user.2", large, sizeof large, 0) == 0)
        check_open_fails(state, &options, ERROR_REFUSED, "t/g has more than");
}

TREES_TEST(what_cannot_be_copied_is_counted)
{
    static const char *const names[] = {"t/", "t/f", NULL}, *const paths[] = {"/", "f", NULL};
    struct trees *t = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    make_tree(state, names);
    struct tree_reader *r = open_reader_of(state, "t");
    assert_int_equal(t->store->facts(r).left_out, 0);
    assert_string_equal(t->store->facts(r).first_left_out, "");
    close_reader(state, r);
    assert_int_equal(mkfifo(data_at(state, "t/a\n"), 0600), 0);
    assert_true((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s",
                                 data_at(state, "t/s")) < sizeof address.sun_path);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof address), 0);
    (void)close(s);
    r = open_reader_of(state, "t");
    assert_int_equal(t->store->facts(r).left_out, 2);
    assert_string_equal(t->store->facts(r).first_left_out, data_at(state, "t/a?"));
    check_paths(state, r, paths);
    close_reader(state, r);
}

TREES_TEST(patterns_leave_names_out)
{
    static const char *const names[] = {"t/",     "t/a.o",   "t/k/",     "t/k/b.o", "t/k/c",
                                        "t/tmp/", "t/tmp/x", "t/keep.o", "t/k/tmp", NULL};
    static const char *const paths[] = {"t/", "t/k/", "t/k/c", "t/k/tmp", "t/keep.o", NULL};
    static const char *const pattern[] = {"+ keep.o", "- *.o", "- tmp/"};
    const char *path = data_at(state, "t/");
    make_tree(state, names);
    struct tree_reader *r = open_reader(
        state, &(struct tree_read_options){
                   .path = &path, .paths = 1, .into = true, .pattern = pattern, .patterns = 3});
    check_paths(state, r, paths);
    close_reader(state, r);
    static const char *const wrong[] = {"*.o"};
    check_open_fails(
        state,
        &(struct tree_read_options){.path = &path, .paths = 1, .pattern = wrong, .patterns = 1},
        ERROR_USAGE, "not a pattern");
}

TREES_TEST(what_copies_have_left_is_no_content)
{
    static const char *const names[] = {"t/",
                                        "t/.torus-copy/",
                                        "t/.torus-copy/f",
                                        "t/k/",
                                        "t/k/.x.torus-copy/",
                                        "t/k/.x.torus-copy/f",
                                        "t/x.torus-copy",
                                        NULL};
    static const char *const paths[] = {"/", "k/", "x.torus-copy", NULL};
    static const char *const within[] = {"t/.torus-copy", "t/.torus-copy/f"};
    make_tree(state, names);
    struct tree_reader *r = open_reader_of(state, "t");
    check_paths(state, r, paths);
    assert_int_equal(((struct trees *)*state)->store->facts(r).left_out, 0);
    close_reader(state, r);
    for (unsigned i = 0; i < 4; i++) {
        const char *path = data_at(state, "%s", within[i / 2]);
        const struct tree_read_options options = {.path = &path, .paths = 1, .into = i % 2 == 0};
        check_open_fails(state, &options, ERROR_REFUSED, "name another source");
    }
}

TREES_TEST(several_sources_keep_their_names)
{
    static const char *const names[] = {"t/", "t/f", "u/", "u/t", "a", NULL};
    static const char *const paths[] = {"a", "t/", "t/f", "u/", "u/t", NULL};
    const char *path[] = {data_at(state, "u"), data_at(state, "./t//"), data_at(state, "a")};
    struct tree_read_options options = {.path = path, .paths = 3, .into = true};
    make_tree(state, names);
    struct tree_reader *r = open_reader(state, &options);
    check_paths(state, r, paths);
    close_reader(state, r);
    path[2] = data_at(state, "u/t");
    check_open_fails(state, &options, ERROR_USAGE, "the same name");
    path[2] = data_at(state, "u/.");
    check_open_fails(state, &options, ERROR_USAGE, "does not end with a name");
    options.into = false;
    check_open_fails(state, &options, ERROR_USAGE, "one source");
}

TREES_TEST(missing_and_foreign_sources_are_errors)
{
    static const char *const none[] = {NULL};
    const char *path = data_at(state, "missing");
    struct tree_read_options options = {.path = &path, .paths = 1};
    check_open_fails(state, &options, ERROR_REFUSED, "missing");
    options.missing_ok = true;
    struct tree_reader *r = open_reader(state, &options);
    check_paths(state, r, none);
    close_reader(state, r);
    path = "/etc";
    check_open_fails(state, &options, ERROR_REFUSED, "data_roots");
    assert_int_equal(symlink("/etc", data_at(state, "link")), 0);
    path = data_at(state, "link");
    check_open_fails(state, &options, ERROR_REFUSED, "data_roots");
    assert_int_equal(mkfifo(data_at(state, "fifo"), 0600), 0);
    path = data_at(state, "fifo");
    check_open_fails(state, &options, ERROR_REFUSED, "neither a file nor a folder");
}

/* A source may be a link, but links below it are not followed. */
TREES_TEST(links_lead_to_sources_only)
{
    static const char *const names[] = {"t/", "t/f", NULL};
    static const char *const paths[] = {"s/", "s/f", "s/up@", NULL};
    make_tree(state, names);
    assert_int_equal(symlink("..", data_at(state, "t/up")), 0);
    assert_int_equal(symlink("t", data_at(state, "s")), 0);
    const char *path = data_at(state, "s");
    struct tree_reader *r =
        open_reader(state, &(struct tree_read_options){.path = &path, .paths = 1, .into = true});
    check_paths(state, r, paths);
    close_reader(state, r);
}

static void make_deep(void **state, unsigned depth)
{
    char path[400] = "t";

    make_folder(data_at(state, "t"));
    for (unsigned i = 0; i < depth; i++) {
        make_file(data_at(state, "%s/z", path), "z", 1);
        (void)strcat(path, "/d");
        make_folder(data_at(state, "%s", path));
    }
}

/* Deeper than folders stay open, with files behind each inner folder. */
TREES_TEST(deep_trees_need_few_descriptors)
{
    struct rlimit limit, low;
    unsigned depth = 3 * WALK_FOLDERS_OPEN;
    struct manifest m;
    make_deep(state, depth);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = descriptors() + WALK_FOLDERS_OPEN + 10;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct tree_reader *r = open_reader_of(state, "t");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int file = manifest_of(state, r, &m);
    assert_int_equal(m.folders, depth + 1);
    assert_int_equal(m.files, depth);
    walk_through(&m);
    (void)close(file);
    close_reader(state, r);
}

/* Other folders with the same names. */
static void swap_folders(void *argument)
{
    void **state = argument;

    assert_int_equal(rename(data_at(state, "t/d"), data_at(state, "moved")), 0);
    assert_int_equal(rename(data_at(state, "other"), data_at(state, "t/d")), 0);
}

TREES_TEST(folders_that_are_opened_again_are_the_same)
{
    static const char *const others[] = {"other/",       "other/d/",       "other/d/d/",
                                         "other/d/d/d/", "other/d/d/d/d/", NULL};
    struct trees *t = *state;
    struct faulty_files faulty;
    struct roots roots = {0};
    struct error e = {0};
    make_tree(state, others);
    make_deep(state, WALK_FOLDERS_OPEN + 2);
    const char *path = data_at(state, "t"); /* the buffers of the fixture are few */
    faulty_files_init(&faulty);
    assert_int_equal(roots_add(&roots, &faulty.files, data_at(state, "."), &e), 0);
    atomic_store(&t->files.roots, &roots);
    faulty.left = 2; /* after the source was opened, and its state read */
    faulty.before = swap_folders;
    faulty.argument = state;
    check_open_fails(state, &(struct tree_read_options){.path = &path, .paths = 1}, ERROR_IO,
                     "d was changed");
    assert_string_equal(faulty.call, "open_folder");
    atomic_store(&t->files.roots, &t->roots);
    roots_free(&roots);
}

TREES_TEST(paths_that_are_too_long_are_named)
{
    char name[NAME_MAX + 1];
    const char *path = data_at(state, "t");
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    make_folder(path);
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    for (unsigned i = 0; i < 17; i++) {
        assert_int_equal(mkdirat(folder, name, 0700), 0);
        int inner = openat(folder, name, O_RDONLY | O_DIRECTORY);
        (void)close(folder);
        folder = inner;
    }
    (void)close(folder);
    check_open_fails(state, &(struct tree_read_options){.path = &path, .paths = 1}, ERROR_REFUSED,
                     "longer than 4095 bytes");
    /* The fixture cannot remove such a path. */
    char command[FIXTURE_PATH + 20];
    (void)snprintf(command, sizeof command, "rm -r %s", path);
    assert_int_equal(system(command), 0);
}

TREES_TEST(what_cannot_be_read_is_named)
{
    static const char *const names[] = {"t/", "t/open", "t/secret", "t/shut/", NULL};
    struct trees *t = *state;
    void *folder = t->folder;
    const char *path = data_at(state, "t");
    static const char *const pattern[] = {"- secret"};
    struct tree_read_options options = {.path = &path, .paths = 1};
    bool root = geteuid() == 0;
    make_tree(state, names);
    assert_int_equal(chmod(data_at(state, "t/secret"), 0), 0);
    assert_int_equal(chmod(data_at(state, "t/shut"), 0), 0);
    assert_int_equal(chmod(t->folder, 0755), 0);
    assert_int_equal(chmod(at(&folder, "state"), 0777), 0);
    assert_true(!root || seteuid(65534) == 0);
    check_open_fails(state, &options, ERROR_REFUSED, "t/secret cannot be read");
    options.pattern = pattern;
    options.patterns = 1;
    check_open_fails(state, &options, ERROR_REFUSED, "t/shut cannot be read");
    assert_true(!root || seteuid(0) == 0);
    assert_int_equal(chmod(data_at(state, "t/shut"), 0700), 0);
}

TREES_TEST(a_walk_ends_when_it_shall)
{
    static const char *const names[] = {"t/", "t/f", NULL};
    struct trees *t = *state;
    struct tree_progress progress = {.stop = true};
    const char *path = data_at(state, "t");
    struct tree_read_options options = {.path = &path, .paths = 1};
    struct tree_reader *r;
    struct error e = {0};
    make_tree(state, names);
    assert_fails(t->store->read_open(t->store->context, &options, &progress, &r, &e), e,
                 ERROR_CANCELLED, "");
    progress.stop = false;
    progress.files = 0;
    assert_int_equal(t->store->read_open(t->store->context, &options, &progress, &r, &e), 0);
    assert_int_equal(progress.files, 2);
    close_reader(state, r);
}
