/* What other nodes say about trees: a manifest; digests of files; numbers of files that are wanted; patterns. Whatever is
 * accepted can be read. The first byte says which; digests at the ends of documents are not part of the input. */
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/torusd/tree/digests.h"
#include "daemon/torusd/tree/manifest_format.h"
#include "daemon/torusd/tree/patterns.h"
#include "tests/fuzz/fuzz.h"

/* Makes a file that holds an input, and the digest of it. */
static int sealed(const uint8_t *bytes, size_t length)
{
    uint8_t digest[16];
    int file = memfd_create("fuzz", MFD_CLOEXEC);

    REQUIRE(file >= 0);
    (void)crypto_generichash(digest, sizeof digest, bytes, length, NULL, 0);
    REQUIRE(write(file, bytes, length) == (ssize_t)length);
    REQUIRE(write(file, digest, sizeof digest) == (ssize_t)sizeof digest);
    return file;
}

static void check_entry(const struct entry *entry, uint64_t index, const char *last)
{
    REQUIRE(entry->index == index && strlen(entry->path) == entry->path_length);
    REQUIRE(entry->path_length > 0 || index == 0);
    REQUIRE(entry->path[0] != '/' && strstr(entry->path, "//") == NULL);
    REQUIRE(index == 0 || manifest_compare_paths(last, entry->path) < 0);
    REQUIRE(entry->kind != ENTRY_HARDLINK || entry->linked < index);
    REQUIRE(entry->bytes <= entry->size && (entry->kind == ENTRY_FILE || entry->size == 0));
}

static void try_manifest(const uint8_t *bytes, size_t length)
{
    char last[MANIFEST_PATH_MOST + 1] = "";
    struct manifest m;
    struct error e = {0};
    struct entry entry, again;
    uint64_t index = 0, begin = 0;
    int file = sealed(bytes, length);

    if (manifest_open(&m, file, length + 16, &e) == 0) {
        struct manifest_cursor *c = manifest_cursor_new(&m), *other = manifest_cursor_new(&m);
        REQUIRE(c != NULL && other != NULL);
        for (; manifest_next(c, &entry, &e) == 1; index++) {
            check_entry(&entry, index, last);
            (void)strcpy(last, entry.path);
            REQUIRE(entry.kind != ENTRY_FILE || entry.begin == begin);
            begin += entry.bytes;
            REQUIRE(entry.bytes == 0 || manifest_seek_stream(other, begin - 1, &e) == 0);
            REQUIRE(entry.bytes > 0 || manifest_seek_index(other, index, &e) == 0);
            REQUIRE(manifest_next(other, &again, &e) == 1 && again.index == index);
        }
        REQUIRE(index == m.entries && begin == m.stream);
        manifest_cursor_free(c);
        manifest_cursor_free(other);
    } else {
        REQUIRE(e.code == ERROR_PROTOCOL);
    }
    (void)close(file);
}

/* A manifest of a few files, which the digests are of. */
static void open_small(struct manifest *m)
{
    struct error e = {0};
    uint64_t size, stream;
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    struct manifest_maker *maker = manifest_maker_new(file, &e);
    const struct entry files[] = {
        {.kind = ENTRY_FILE, .path = "a", .path_length = 1, .size = 100000},
        {.kind = ENTRY_FOLDER, .path = "b", .path_length = 1},
        {.kind = ENTRY_FILE, .path = "c", .path_length = 1, .size = 5},
    };

    REQUIRE(maker != NULL);
    for (size_t i = 0; i < 3; i++) {
        struct entry entry = files[i];
        REQUIRE(manifest_maker_add(maker, &entry, &e) == 0);
    }
    REQUIRE(manifest_maker_finish(maker, &size, &stream, &e) == 0);
    manifest_maker_free(maker);
    REQUIRE(manifest_open(m, file, size, &e) == 0);
}

static void try_digests(const uint8_t *bytes, size_t length)
{
    struct manifest m;
    struct error e = {0};
    struct chunk chunk;
    uint64_t index;
    int file = sealed(bytes, length);

    open_small(&m);
    if (digests_check(file, length + 16, &m, 0, &e) == 0) {
        struct digests_cursor *c = digests_cursor_new(file, length + 16);
        REQUIRE(c != NULL);
        while (digests_next_file(c, &index, &e) == 1) {
            uint64_t sum = 0;
            while (digests_next_chunk(c, &chunk, &e) == 1)
                sum += chunk.length;
            REQUIRE(sum == (index == 0 ? 100000 : 5) && index != 1);
        }
        digests_cursor_free(c);
    } else {
        REQUIRE(e.code == ERROR_PROTOCOL);
    }
    (void)close(file);
    (void)close(m.file);
}

static void try_wanted(const uint8_t *bytes, size_t length)
{
    struct wanted_numbers n = {.bytes = bytes, .left = length, .sizes = length % 2 == 1};
    uint64_t index, size, last = 0;

    for (size_t i = 0; wanted_next(&n, &index, &size); i++) {
        REQUIRE(i == 0 || index > last);
        last = index;
    }
}

/* Two texts: a pattern, and a path. */
static void try_pattern(const uint8_t *bytes, size_t length)
{
    char text[2][MANIFEST_PATH_MOST + 1] = {"", ""};
    const char *pattern = text[0];
    struct error e = {0};
    size_t half = length / 2 < MANIFEST_PATH_MOST ? length / 2 : MANIFEST_PATH_MOST;

    memcpy(text[0], bytes, half);
    memcpy(text[1], bytes + half, half);
    struct patterns *p = patterns_new(&pattern, 1, &e);
    if (p == NULL) {
        REQUIRE(e.code == ERROR_USAGE);
        return;
    }
    bool keeps = text[0][0] == '+', out = patterns_leave_out(p, text[1], length % 2 == 0);
    REQUIRE(!keeps || !out);
    patterns_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(const uint8_t *bytes, size_t length) = {try_manifest, try_digests,
                                                                         try_wanted, try_pattern};

    if (size > 0)
        tries[data[0] % 4](data + 1, size - 1);
    return 0;
}
