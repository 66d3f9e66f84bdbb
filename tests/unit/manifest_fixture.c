#include "manifest_fixture.h"

#include <sys/mman.h>

#include <sodium.h>

#include "tests/support/cmocka.h"

int memory_file(void)
{
    int file = memfd_create("test", MFD_CLOEXEC);

    assert_true(file >= 0);
    return file;
}

static struct entry any_entry(enum entry_kind kind, const char *path)
{
    return (struct entry){.kind = kind,
                          .path = path,
                          .path_length = strlen(path),
                          .mode = 0755,
                          .owner = 1000,
                          .group = 100,
                          .modified = {.tv_sec = -5, .tv_nsec = 999999999}};
}

struct entry folder_entry(const char *path)
{
    return any_entry(ENTRY_FOLDER, path);
}

struct entry file_entry(const char *path, uint64_t size)
{
    struct entry entry = any_entry(ENTRY_FILE, path);

    entry.size = size;
    return entry;
}

struct entry symlink_entry(const char *path, const char *text)
{
    struct entry entry = any_entry(ENTRY_SYMLINK, path);

    entry.link = text;
    return entry;
}

struct entry hardlink_entry(const char *path, const char *earlier, uint64_t linked)
{
    struct entry entry = any_entry(ENTRY_HARDLINK, path);

    entry.link = earlier;
    entry.linked = linked;
    return entry;
}

void add(struct manifest_maker *m, struct entry entry)
{
    struct error e = {0};

    assert_success(manifest_maker_add(m, &entry, &e), e);
}

void finish_and_open(struct manifest_maker *maker, int file, struct manifest *m)
{
    struct error e = {0};
    uint64_t size, stream;

    assert_int_equal(manifest_maker_finish(maker, &size, &stream, &e), 0);
    manifest_maker_free(maker);
    assert_success(manifest_open(m, file, size, &e), e);
    assert_int_equal(m->stream, stream);
}

void seal(uint8_t *bytes, size_t size)
{
    if (size >= 16)
        (void)crypto_generichash(bytes + size - 16, 16, bytes, size - 16, NULL, 0);
}

int small_manifest(uint64_t *size)
{
    static const struct extent_of_file extents[] = {{0, 4096}, {8192, 5}};
    static const uint8_t attributes[] = "user.a\0\3\0\0\0xyzuser.b\0\0\0\0";
    struct error e = {0};
    int file = memory_file();
    struct manifest_maker *m = manifest_maker_new(file, &e);
    struct entry sparse = file_entry("a/sparse", 10000), digest = file_entry("a-b", 77);
    uint64_t stream;

    sparse.extent = extents;
    sparse.extents = 2;
    digest.has_digest = true;
    memset(digest.digest, 9, sizeof digest.digest);
    digest.attributes = attributes;
    digest.attributes_length = sizeof attributes;
    add(m, folder_entry("a"));
    add(m, file_entry("a/b", 0));
    add(m, sparse);
    add(m, digest);
    add(m, symlink_entry("a.b", "../\xff\n"));
    add(m, hardlink_entry("b", "a/sparse", 2));
    assert_int_equal(manifest_maker_finish(m, size, &stream, &e), 0);
    assert_int_equal(stream, 4096 + 5 + 77);
    manifest_maker_free(m);
    return file;
}

void walk_through(const struct manifest *m)
{
    struct manifest_cursor *all = manifest_cursor_new(m), *one = manifest_cursor_new(m);
    struct entry entry, again;
    struct error e = {0};
    uint64_t begin = 0, index = 0;
    int result;

    for (; (result = manifest_next(all, &entry, &e)) == 1; index++) {
        assert_int_equal(entry.index, index);
        if (entry.kind == ENTRY_FILE)
            assert_int_equal(entry.begin, begin);
        begin += entry.bytes;
        assert_int_equal(manifest_seek_index(one, index, &e), 0);
        assert_int_equal(manifest_next(one, &again, &e), 1);
        assert_string_equal(again.path, entry.path);
        for (uint64_t i = 0; i < 2 && entry.bytes > 0; i++) {
            uint64_t at = i == 0 ? entry.begin : entry.begin + entry.bytes - 1;
            assert_int_equal(manifest_seek_stream(one, at, &e), 0);
            assert_int_equal(manifest_next(one, &again, &e), 1);
            assert_int_equal(again.index, index);
            assert_int_equal(again.begin, entry.begin);
        }
    }
    assert_int_equal(result, 0);
    assert_int_equal(index, m->entries);
    assert_int_equal(begin, m->stream);
    assert_int_equal(manifest_seek_stream(one, m->stream, &e), 0);
    assert_int_equal(manifest_next(one, &again, &e), 0);
    manifest_cursor_free(all);
    manifest_cursor_free(one);
}
