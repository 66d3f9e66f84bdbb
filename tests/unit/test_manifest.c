/* Manifests: what is written is read again, in order; what is wrong is refused. */
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/tree/manifest_format.h"
#include "manifest_fixture.h"
#include "tests/support/cmocka.h"

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

TEST(a_folder_comes_before_what_it_holds_and_that_before_other_names)
{
    static const char *const sorted[] = {"",      "a",   "a/\n", "a/b", "a/b/c", "a/b\x01",
                                         "a\x01", "a-b", "a.b",  "ab",  "b",     "b/\x80"};

    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++)
        for (size_t j = 0; j < sizeof sorted / sizeof *sorted; j++)
            assert_int_equal(sign(manifest_compare_paths(sorted[i], sorted[j])),
                             sign((int)i - (int)j));
}

TEST(everything_is_read_as_it_was_written)
{
    struct error e = {0};
    struct entry entry;
    struct manifest m;
    uint64_t size;
    int file = small_manifest(&size);

    assert_int_equal(manifest_open(&m, file, size, &e), 0);
    assert_int_equal(m.entries, 6);
    assert_int_equal(m.files, 3);
    assert_int_equal(m.folders, 1);
    assert_int_equal(m.symlinks, 1);
    assert_int_equal(m.hardlinks, 1);
    struct manifest_cursor *c = manifest_cursor_new(&m);
    assert_int_equal(manifest_next(c, &entry, &e), 1);
    assert_string_equal(entry.path, "a");
    assert_int_equal(entry.kind, ENTRY_FOLDER);
    assert_int_equal(entry.mode, 0755);
    assert_int_equal(entry.owner, 1000);
    assert_int_equal(entry.group, 100);
    assert_int_equal(entry.modified.tv_sec, -5);
    assert_int_equal(entry.modified.tv_nsec, 999999999);
    assert_int_equal(manifest_seek_index(c, 2, &e), 0);
    assert_int_equal(manifest_next(c, &entry, &e), 1);
    assert_string_equal(entry.path, "a/sparse");
    assert_int_equal(entry.size, 10000);
    assert_int_equal(entry.bytes, 4101);
    assert_int_equal(entry.extents, 2);
    assert_int_equal(entry.extent[1].offset, 8192);
    assert_int_equal(entry.extent[1].length, 5);
    assert_int_equal(manifest_next(c, &entry, &e), 1);
    assert_true(entry.has_digest && entry.digest[15] == 9);
    assert_int_equal(entry.begin, 4101);
    assert_int_equal(entry.attributes_length, 25);
    assert_memory_equal(entry.attributes, "user.a\0\3\0\0\0xyzuser.b\0\0\0\0", 25);
    assert_int_equal(manifest_next(c, &entry, &e), 1);
    assert_string_equal(entry.link, "../\xff\n");
    assert_int_equal(manifest_next(c, &entry, &e), 1);
    assert_string_equal(entry.link, "a/sparse");
    assert_int_equal(entry.linked, 2);
    assert_int_equal(manifest_next(c, &entry, &e), 0);
    assert_int_equal(manifest_next(c, &entry, &e), 0);
    manifest_cursor_free(c);
    walk_through(&m);
    (void)close(file);
}

TEST(a_tree_may_be_empty_or_one_file)
{
    struct manifest m;
    struct error e = {0};

    for (int one = 0; one < 2; one++) {
        int file = memory_file();
        struct manifest_maker *maker = manifest_maker_new(file, &e);
        if (one == 1)
            add(maker, file_entry("", 5));
        finish_and_open(maker, file, &m);
        assert_int_equal(m.entries, one);
        walk_through(&m);
        (void)close(file);
    }
}

TEST(long_manifests_are_read_from_any_entry_on)
{
    struct manifest m;
    struct error e = {0};
    int file = memory_file();
    struct manifest_maker *maker = manifest_maker_new(file, &e);
    char path[100];

    for (unsigned i = 0; i < 20 * MANIFEST_STRIDE + 3; i++) {
        (void)snprintf(path, sizeof path, "%06u%s", i / 100 * 100, i % 100 == 0 ? "" : "/");
        if (i % 100 != 0)
            (void)snprintf(path + 7, sizeof path - 7, "some name %02u", i % 100);
        add(maker, i % 100 == 0 ? folder_entry(path) : file_entry(path, i % 3 == 0 ? 0 : i));
    }
    finish_and_open(maker, file, &m);
    walk_through(&m);
    (void)close(file);
}

/* --- what is wrong --- */

static void check_refused(struct manifest_maker *m, struct entry entry)
{
    struct error e = {0};

    if (manifest_maker_add(m, &entry, &e) == 0)
        fail_msg("%s was not refused", entry.path);
    assert_int_equal(e.code, ERROR_REFUSED);
}

TEST(paths_that_are_wrong_are_refused)
{
    static const char *const wrong[] = {"",   "/",    "/a",  "a/",  "a//b", ".", "..", "a/.",
                                        "..", "m/..", "./a", "x/y", "a",    "m", "l",  "m/f/x"};
    struct error e = {0};
    int file = memory_file();
    struct manifest_maker *m = manifest_maker_new(file, &e);
    static char longest[MANIFEST_PATH_MOST + 2], name[NAME_MOST + 2];

    add(m, folder_entry("m"));
    add(m, file_entry("m/f", 1));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_refused(m, file_entry(wrong[i], 1));
    memset(name, 'z', NAME_MOST + 1);
    check_refused(m, file_entry(name, 1));
    name[NAME_MOST] = '\0';
    add(m, folder_entry(name));
    memset(longest, 'z', MANIFEST_PATH_MOST + 1);
    for (size_t i = NAME_MOST; i < MANIFEST_PATH_MOST; i += NAME_MOST + 1) {
        longest[i] = '\0';
        if (i > NAME_MOST)
            add(m, folder_entry(longest));
        longest[i] = '/';
    }
    assert_int_equal(strlen(longest), MANIFEST_PATH_MOST + 1);
    check_refused(m, file_entry(longest, 1));
    longest[MANIFEST_PATH_MOST] = '\0';
    add(m, file_entry(longest, 1));
    manifest_maker_free(m);
    (void)close(file);
}

TEST(entries_that_are_wrong_are_refused)
{
    static const struct extent_of_file touching[] = {{0, 5}, {5, 1}}, outside[] = {{9, 2}},
                                       whole[] = {{0, 10}}, empty[] = {{3, 0}};
    const struct extent_of_file *const wrong[] = {touching, outside, whole, empty};
    static const uint8_t no_name[] = "\0\0\0\0", no_end[4] = "user",
                         unsorted[] = "b\0\0\0\0\0a\0\0\0\0", too_long[] = "a\0\xff\xff\xff\xff";
    struct error e = {0};
    int file = memory_file();
    struct manifest_maker *m = manifest_maker_new(file, &e);
    struct entry entry = file_entry("a", 10);

    for (size_t i = 0; i < 4; i++) {
        entry.extent = wrong[i];
        entry.extents = i == 0 ? 2 : 1;
        check_refused(m, entry);
    }
    const struct {
        const uint8_t *bytes;
        uint32_t length;
    } attributes[] = {{no_name, 5}, {no_end, 4}, {unsorted, 12}, {too_long, 6}, {too_long, 3}};
    for (size_t i = 0; i < 5; i++) {
        entry = file_entry("a", 1);
        entry.attributes = attributes[i].bytes;
        entry.attributes_length = attributes[i].length;
        check_refused(m, entry);
    }
    entry = file_entry("a", 1);
    entry.mode = 010000;
    check_refused(m, entry);
    entry = file_entry("a", 1);
    entry.modified.tv_nsec = 1000000000;
    check_refused(m, entry);
    entry = folder_entry("a");
    entry.size = 1;
    check_refused(m, entry);
    entry = folder_entry("a");
    entry.has_digest = true;
    check_refused(m, entry);
    check_refused(m, file_entry("a", UINT64_C(1) << 63));
    check_refused(m, symlink_entry("a", ""));
    check_refused(m, symlink_entry("", "a"));
    check_refused(m, hardlink_entry("a", "a", 0));
    add(m, file_entry("a", INT64_MAX));
    check_refused(m, file_entry("b", 1));
    manifest_maker_free(m);
    (void)close(file);
}

/* Opens a manifest whose bytes were changed. Returns whether it is accepted; then all of it can be read. */
static bool accepts(const uint8_t *bytes, size_t length)
{
    struct error e = {0};
    struct manifest m;
    int file = memory_file();

    assert_int_equal(write(file, bytes, length), length);
    bool accepted = manifest_open(&m, file, length, &e) == 0;
    if (accepted) {
        walk_through(&m);
    } else {
        assert_int_equal(e.code, ERROR_PROTOCOL);
        assert_contains(e.text, "the manifest is damaged");
        assert_null(strchr(e.text, '_')); /* a text has no names of the code */
    }
    (void)close(file);
    return accepted;
}

TEST(each_changed_byte_is_found)
{
    static uint8_t bytes[4096];
    uint64_t size;
    int file = small_manifest(&size);

    assert_int_equal(pread(file, bytes, sizeof bytes, 0), size);
    (void)close(file);
    assert_true(accepts(bytes, size));
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= (uint8_t)(1u << i % 8);
        assert_false(accepts(bytes, size));
        bytes[i] ^= (uint8_t)(1u << i % 8);
        assert_false(accepts(bytes, i));
    }
    assert_false(accepts(bytes, size + 1));
}

/* Whoever changes a manifest may also compute its digest. */
TEST(what_a_hostile_node_changes_is_refused_or_harmless)
{
    static const uint8_t value[] = {0, 1, 2, 3, 4, 5, 0x2f, 0x2e, 0x7f, 0x80, 0xff};
    static uint8_t bytes[4096], changed[4096];
    uint64_t size;
    unsigned accepted = 0;
    int file = small_manifest(&size);

    assert_int_equal(pread(file, bytes, sizeof bytes, 0), size);
    (void)close(file);
    for (size_t i = 0; i < size; i++) {
        memcpy(changed, bytes, size);
        for (size_t v = 0; v < sizeof value; v++) {
            changed[i] = value[v];
            seal(changed, size);
            accepted += accepts(changed, size);
        }
        memcpy(changed, bytes, i);
        seal(changed, i);
        assert_false(accepts(changed, i));
    }
    assert_in_range(accepted, 1000, 3000); /* of 5000: owners, times, digests, bytes of names */
}

TEST(a_hard_link_leads_to_a_file_of_that_path)
{
    static const struct {
        const char *path;
        uint64_t linked;
        bool accepted;
    } tries[] = {{"b", 1, true},  {"b", 0, false}, {"a", 0, false},
                 {"x", 1, false}, {"c", 2, false}, {"b", 2, false}};

    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        struct error e = {0};
        struct manifest m;
        uint64_t size, stream;
        int file = memory_file();
        struct manifest_maker *maker = manifest_maker_new(file, &e);
        add(maker, folder_entry("a"));
        add(maker, file_entry("b", 1));
        add(maker, symlink_entry("c", "b"));
        add(maker, hardlink_entry("d", tries[i].path, tries[i].linked));
        assert_int_equal(manifest_maker_finish(maker, &size, &stream, &e), 0);
        manifest_maker_free(maker);
        assert_int_equal(manifest_open(&m, file, size, &e), tries[i].accepted ? 0 : -1);
        (void)close(file);
    }
}

/* One list for all links: it must fit them. */
TEST(the_list_of_hard_links_is_checked)
{
    struct error e = {0};
    struct manifest m;
    uint64_t size, stream;
    uint8_t bytes[2000];
    char path[20];
    int file = memory_file();
    struct manifest_maker *maker = manifest_maker_new(file, &e);

    add(maker, file_entry("a", 1));
    add(maker, file_entry("b", 1));
    for (unsigned i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "c%u", i);
        add(maker, hardlink_entry(path, i % 3 == 0 ? "b" : "a", i % 3 == 0));
    }
    assert_int_equal(manifest_maker_finish(maker, &size, &stream, &e), 0);
    manifest_maker_free(maker);
    assert_int_equal(manifest_open(&m, file, size, &e), 0);
    assert_int_equal(m.hardlinks, 4);
    assert_int_equal(m.files, 2);
    walk_through(&m);
    assert_int_equal(pread(file, bytes, sizeof bytes, 0), size);
    (void)close(file);
    uint8_t *list = bytes + size - MANIFEST_TAIL - MANIFEST_INDEX - 4 * MANIFEST_LINK;
    static const uint64_t lists[][4] = {{0, 0, 1, 1}, {0, 0, 0, 1},         {0, 1, 1, 1},
                                        {0, 1, 0, 1}, {0, 0, 1, 2},         {0, 0, 1, 9},
                                        {1, 1, 1, 1}, {0, 0, 1, UINT64_MAX}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (unsigned k = 0; k < 4; k++)
            (void)put_u64(list + k * MANIFEST_LINK, lists[i][k]);
        seal(bytes, size);
        assert_int_equal(accepts(bytes, size), i == 0);
    }
}
