/* What other nodes send may contain anything: manifests, digests, bytes. Nothing of it leads out of the target, or leaves
 * anything behind. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/digests.h"
#include "tests/support/cmocka.h"

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

static struct tree_writer *open_writer(struct copying *c, const char *to)
{
    struct tree_write_options options = {.id = "hostile", .path = to, .delete = true};
    struct tree_writer *w;
    struct error e;

    if (c->store->write_open(c->store->context, &options, &w, &e) != 0)
        fail_msg("%s", e.text);
    return w;
}

static int compare(struct copying *c, struct tree_writer *w, const struct document *d,
                   struct error *e)
{
    struct tree_progress progress = {0};
    const uint8_t *wanted;
    size_t length;

    assert_int_equal(c->store->write_document(w, TREE_MANIFEST, d->bytes, d->length, e), 0);
    return c->store->compare(w, &progress, &wanted, &length, e);
}

static const struct entry sample[] = {
    {.path = "", .kind = ENTRY_FOLDER, .mode = 0755},
    {.path = "file", .kind = ENTRY_FILE, .mode = 0644, .size = 1000},
    {.path = "folder", .kind = ENTRY_FOLDER, .mode = 0700},
    {.path = "folder/deep", .kind = ENTRY_FILE, .mode = 04755, .size = 10},
    {.path = "link", .kind = ENTRY_SYMLINK, .link = "/etc"},
};

/* Every byte of a manifest is changed: it is refused, or means something that can be copied. */
FOLDER_TEST(damaged_manifests_are_refused)
{
    struct document *d = malloc(sizeof *d);
    struct copying c;
    unsigned refused = 0;

    copying_open(&c, state);
    make_manifest(d, sample, 5);
    for (size_t i = 0; i < d->length; i += 3) {
        struct tree_writer *w = open_writer(&c, at(state, "data/to"));
        struct error e;
        d->bytes[i] ^= 0x55;
        refused += compare(&c, w, d, &e) != 0;
        d->bytes[i] ^= 0x55;
        c.store->write_close(w);
        assert_int_equal(entries(at(state, "data")), 0);
    }
    assert_int_equal(refused, (d->length + 2) / 3); /* the digest at its end finds all */
    free(d);
    copying_close(&c);
}

/* Files of a manifest must not become the new files of the copy that writes it. */
FOLDER_TEST(names_of_new_files_are_refused)
{
    static const struct entry list[][3] = {
        {{.path = "", .kind = ENTRY_FOLDER, .mode = 0755},
         {.path = ".torus-copy", .kind = ENTRY_FOLDER, .mode = 0700}},
        {{.path = "", .kind = ENTRY_FOLDER, .mode = 0755},
         {.path = "a", .kind = ENTRY_FOLDER, .mode = 0755},
         {.path = "a/.b.torus-copy", .kind = ENTRY_SYMLINK, .link = "/etc"}},
    };
    struct document *d = malloc(sizeof *d);
    struct copying c;
    struct error e;

    copying_open(&c, state);
    for (unsigned i = 0; i < 2; i++) {
        struct tree_writer *w = open_writer(&c, at(state, "data/to"));
        make_manifest(d, list[i], i + 2);
        assert_int_equal(compare(&c, w, d, &e), -1);
        assert_int_equal(e.code, ERROR_PROTOCOL);
        c.store->write_close(w);
        assert_int_equal(entries(at(state, "data")), 0);
    }
    free(d);
    copying_close(&c);
}

/* Bytes that no file has, or that have come before; calls out of order. */
FOLDER_TEST(bytes_of_no_file_are_refused)
{
    struct document *d = malloc(sizeof *d);
    struct tree_progress progress = {0};
    const struct tree_span *span;
    uint8_t bytes[2000] = {7};
    struct copying c;
    struct error e;
    uint32_t spans;

    copying_open(&c, state);
    make_manifest(d, sample, 5);
    struct tree_writer *w = open_writer(&c, at(state, "data/to"));
    assert_int_equal(c.store->write(w, 0, bytes, 10, &e), -1);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    assert_int_equal(c.store->missing(w, 1, &progress, &span, &spans, &e), -1);
    assert_int_equal(c.store->finish(w, &progress, &e), -1);
    assert_int_equal(compare(&c, w, d, &e), 0);
    assert_int_equal(c.store->missing(w, 1, &progress, &span, &spans, &e), 0);
    assert_int_equal(spans, 1);
    assert_int_equal(span[0].end, 1010);
    assert_int_equal(c.store->write(w, 0, bytes, 1011, &e), -1);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    assert_int_equal(c.store->write(w, UINT64_MAX, bytes, 10, &e), -1);
    assert_int_equal(c.store->write(w, 10, bytes, 500, &e), 0);
    assert_int_equal(c.store->write(w, 10, bytes, 500, &e), 0);
    assert_int_equal(c.store->finish(w, &progress, &e), -1);
    assert_non_null(strstr(e.text, "500 of 1000 bytes of file have not arrived"));
    assert_int_equal(c.store->write(w, 0, bytes, 1010, &e), 0);
    assert_int_equal(c.store->write(w, 0, bytes, 1010, &e), 0);
    assert_int_equal(c.store->finish(w, &progress, &e), 0);
    c.store->write_close(w);
    check_file(at(state, "data/to/folder/deep"), bytes + 1000, 10);
    free(d);
    copying_close(&c);
}

/* Sizes that no disk has. */
FOLDER_TEST(huge_files_are_refused_before_data_moves)
{
    static const struct entry huge[] = {
        {.path = "", .kind = ENTRY_FILE, .mode = 0644, .size = UINT64_C(1) << 60},
    };
    struct document *d = malloc(sizeof *d);
    struct tree_progress progress = {0};
    const struct tree_span *span;
    struct copying c;
    struct error e;
    uint32_t spans;

    copying_open(&c, state);
    make_manifest(d, huge, 1);
    struct tree_writer *w = open_writer(&c, at(state, "data/to"));
    assert_int_equal(compare(&c, w, d, &e), 0);
    assert_int_equal(c.store->missing(w, 1, &progress, &span, &spans, &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    c.store->write_close(w);
    assert_int_equal(entries(at(state, "data")), 0);
    free(d);
    copying_close(&c);
}

/* Digests of the wrong files, with the same chunk everywhere. */
FOLDER_TEST(odd_digests_do_no_harm)
{
    enum { SIZE = 1 << 20, CHUNK = 65536 };
    const struct entry large[] = {
        {.path = "", .kind = ENTRY_FOLDER, .mode = 0755},
        {.path = "one", .kind = ENTRY_FILE, .mode = 0644, .size = SIZE},
        {.path = "two", .kind = ENTRY_FILE, .mode = 0644, .size = SIZE},
    };
    struct document *d = malloc(sizeof *d), *digests = malloc(sizeof *digests);
    struct tree_progress progress = {0};
    const struct tree_span *span;
    struct copying c;
    struct error e;
    uint32_t spans;
    uint64_t size;

    copying_open(&c, state);
    make_manifest(d, large, 3);
    make_folder(at(state, "data/to"));
    random_file(at(state, "data/to/one"), 1, SIZE / 2);
    int file = memfd_create("digests", MFD_CLOEXEC);
    const struct chunk_digests how = {0};
    struct digests_maker *m = digests_maker_new(file, &how, &e);
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
        struct tree_writer *w = open_writer(&c, at(state, "data/to"));
        bool whole = i + 97 > digests->length;
        assert_int_equal(compare(&c, w, d, &e), 0);
        if (!whole)
            digests->bytes[i] ^= 0x10;
        assert_int_equal(
            c.store->write_document(w, TREE_DIGESTS, digests->bytes, digests->length, &e), 0);
        int result = c.store->missing(w, 4, &progress, &span, &spans, &e);
        assert_int_equal(result, whole ? 0 : -1);
        if (whole)
            assert_int_equal(span[0].end - span[0].begin, 2 * SIZE);
        else
            digests->bytes[i] ^= 0x10;
        c.store->write_close(w);
        assert_int_equal(entries(at(state, "data")), 1);
        assert_int_equal(entries(at(state, "data/to")), 1);
    }
    free(d);
    free(digests);
    copying_close(&c);
}

/* Contents that differ from the digest in the manifest are not put in place. */
FOLDER_TEST(wrong_contents_are_found)
{
    struct entry digested[] = {
        {.path = "", .kind = ENTRY_FILE, .mode = 0644, .size = 3, .has_digest = true},
    };
    struct document *d = malloc(sizeof *d);
    struct tree_progress progress = {0};
    const struct tree_span *span;
    struct copying c;
    struct error e;
    uint32_t spans;

    copying_open(&c, state);
    make_manifest(d, digested, 1);
    struct tree_writer *w = open_writer(&c, at(state, "data/to"));
    assert_int_equal(compare(&c, w, d, &e), 0);
    assert_int_equal(c.store->missing(w, 1, &progress, &span, &spans, &e), 0);
    assert_int_equal(c.store->write(w, 0, (const uint8_t *)"abc", 3, &e), -1);
    assert_int_equal(e.code, ERROR_DAMAGED);
    c.store->write_close(w);
    assert_false(exists(at(state, "data/to")));
    free(d);
    copying_close(&c);
}
