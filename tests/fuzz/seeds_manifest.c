/* Inputs of fuzz_manifest: documents without their digests. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/torusd/tree/digests.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/seeds.h"

static void put_document(const char *folder, const char *name, int kind, int file, uint64_t size)
{
    uint8_t *bytes = malloc(size);

    REQUIRE(bytes != NULL && pread(file, bytes, size, 0) == (ssize_t)size);
    REQUIRE(fwrite(bytes, 1, size - 16, open_seed(folder, "manifest", name, kind)) == size - 16);
    close_seed();
    free(bytes);
    (void)close(file);
}

static void put_manifest(const char *folder, const char *name, const struct entry *entry,
                         size_t count)
{
    struct error e = {0};
    uint64_t size, stream;
    int file = memfd_create("seed", MFD_CLOEXEC);
    struct manifest_maker *m = manifest_maker_new(file, &e);

    REQUIRE(m != NULL);
    for (size_t i = 0; i < count; i++) {
        struct entry copy = entry[i];
        copy.path_length = strlen(copy.path);
        copy.mode = 0644;
        copy.modified = (struct timespec){1700000000, 123456789};
        REQUIRE(manifest_maker_add(m, &copy, &e) == 0);
    }
    REQUIRE(manifest_maker_finish(m, &size, &stream, &e) == 0);
    manifest_maker_free(m);
    put_document(folder, name, 0, file, size);
}

static void put_digests(const char *folder, bool fast)
{
    const struct chunk_digests how = {.fast = fast, .seed = 5};
    const struct chunk chunk[] = {
        {.length = 60000, .digest = {1}}, {.length = 40000, .digest = {2}}, {.length = 5}};
    struct error e = {0};
    uint64_t size;
    int file = memfd_create("seed", MFD_CLOEXEC);
    struct digests_maker *m = digests_maker_new(file, &how, &e);

    REQUIRE(m != NULL && digests_maker_file(m, 0, &e) == 0);
    REQUIRE(digests_maker_chunk(m, &chunk[0], &e) == 0 &&
            digests_maker_chunk(m, &chunk[1], &e) == 0);
    REQUIRE(digests_maker_file(m, 2, &e) == 0 && digests_maker_chunk(m, &chunk[2], &e) == 0);
    REQUIRE(digests_maker_finish(m, &size, &e) == 0);
    digests_maker_free(m);
    put_document(folder, fast ? "fast-digests" : "digests", 1, file, size);
}

static void put_texts(const char *folder, const char *name, int kind, const char *text)
{
    (void)fputs(text, open_seed(folder, "manifest", name, kind));
    close_seed();
}

void manifest_seeds(const char *folder)
{
    static const struct extent_of_file extents[] = {{0, 4096}, {8192, 5}};
    static const uint8_t attributes[] = "user.a\0\3\0\0\0xyzuser.b\0\0\0\0"; /* with the last 0 */
    const struct entry tree[] = {
        {.kind = ENTRY_FOLDER, .path = "a"},
        {.kind = ENTRY_FILE, .path = "a/b", .size = 7, .has_digest = true},
        {.kind = ENTRY_FILE, .path = "a/s", .size = 9000, .extent = extents, .extents = 2},
        {.kind = ENTRY_FILE,
         .path = "a-b",
         .attributes = attributes,
         .attributes_length = sizeof attributes},
        {.kind = ENTRY_SYMLINK, .path = "l", .link = "../x"},
        {.kind = ENTRY_HARDLINK, .path = "m", .link = "a/b", .linked = 1},
    };
    const struct entry folder_entry[] = {{.kind = ENTRY_FOLDER, .path = ""},
                                         {.kind = ENTRY_FOLDER, .path = "x"},
                                         {.kind = ENTRY_FOLDER, .path = "x/y"}};
    const struct entry file_entry[] = {{.kind = ENTRY_FILE, .path = "", .size = 1}};

    put_manifest(folder, "tree", tree, sizeof tree / sizeof *tree);
    put_manifest(folder, "folders", folder_entry, 3);
    put_manifest(folder, "file", file_entry, 1);
    put_manifest(folder, "nothing", NULL, 0);
    put_digests(folder, true);
    put_digests(folder, false);
    put_texts(folder, "wanted", 2, "\1\2\x80\2\3\xff\xff\3");
    put_texts(folder, "pattern", 3, "- a*[b-d]?/**/x/***a_long_name/with/x/s");
    put_texts(folder, "anchored", 3, "- /[[:digit:]!]*.ob1/2/some.o  ");
}
