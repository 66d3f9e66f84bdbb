/* Memory of readers: bounded for large trees; without memory there is an error, and nothing is lost. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counted_memory.h"
#include "tests/support/cmocka.h"
#include "tree_fixture.h"

#define FOLDERS 100u
#define FILES 1000u /* in each */

/* Most names are hard links, because they are quick to make and to remove; file systems allow 65,000 for a file. */
static void make_many(void **state)
{
    char name[60];

    make_folder(data_at(state, "t"));
    for (unsigned f = 0; f < FOLDERS; f++) {
        const char *first = data_at(state, "t/%02u/a", f / 50 * 50);
        make_folder(data_at(state, "t/%02u", f));
        if (f % 50 == 0)
            make_file(first, "some data", 9);
        int folder = open(data_at(state, "t/%02u", f), O_RDONLY | O_DIRECTORY);
        for (unsigned i = 0; i < FILES; i++) {
            (void)snprintf(name, sizeof name, "a name of some length, as files have it: %u", i);
            assert_int_equal(linkat(AT_FDCWD, first, folder, name, 0), 0);
        }
        (void)close(folder);
    }
}

TREES_TEST(large_trees_need_little_memory)
{
    struct trees *t = *state;
    struct error e = {0};
    struct manifest m;
    uint8_t bytes[18];
    make_many(state);
    memory_count();
    struct tree_reader *r = open_reader_of(state, "t");
    assert_int_equal(t->store->facts(r).stream, sizeof bytes);
    assert_int_equal(t->store->read(r, 0, bytes, sizeof bytes, &e), 0);
    assert_memory_equal(bytes, "some datasome data", sizeof bytes);
    assert_int_equal(t->store->check(r, NULL, &e), 0);
    /* The names alone have 4,000,000 bytes. Each hard link takes 8 bytes, in an array that doubles. */
    assert_in_range(memory_peak(), 100000, 2000000);
    int file = manifest_of(state, r, &m);
    assert_int_equal(m.entries, 1 + FOLDERS * (FILES + 1) + 2);
    assert_int_equal(m.hardlinks, FOLDERS * FILES);
    (void)close(file);
    t->store->read_close(r);
}

static int use_all(struct trees *t, const struct tree_read_options *options, struct error *e)
{
    const uint8_t wanted[] = {0, 0, 0, 0, 0, 0, 0, 0}, *const answers[] = {wanted};
    const size_t length[] = {sizeof wanted};
    struct tree_reader *r;
    uint8_t bytes[10];

    if (t->store->read_open(t->store->context, options, NULL, &r, e) != 0)
        return -1;
    int result = t->store->digest(r, answers, length, 1, NULL, e);
    if (result == 0)
        result = t->store->read(r, 0, bytes, sizeof bytes, e);
    if (result == 0)
        result = t->store->check(r, NULL, e);
    t->store->read_close(r);
    return result;
}

TREES_TEST(without_memory_there_is_an_error)
{
    static const char *const names[] = {"t/", "t/a/", "t/a/b", "t/f", "t/g", NULL};
    static const char *const pattern[] = {"- *.o"};
    struct trees *t = *state;
    const char *path = data_at(state, "t");
    const struct tree_read_options options = {
        .path = &path, .paths = 1, .pattern = pattern, .patterns = 1, .digests = true};
    make_tree(state, names);
    assert_int_equal(link(data_at(state, "t/f"), data_at(state, "t/h")), 0);
    int sparse = open(data_at(state, "t/sparse"), O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(sparse, 1 << 20), 0);
    assert_int_equal(pwrite(sparse, "x", 1, 1 << 19), 1);
    (void)close(sparse);
    unsigned before = descriptors(), after = 0;
    for (;; after++) {
        struct error e = {0};
        memory_fail(after);
        int result = use_all(t, &options, &e);
        if (!memory_has_failed()) {
            if (result != 0)
                fail_msg("%s", e.text);
            break;
        }
        if (result == 0 || e.code != ERROR_MEMORY)
            fail_msg("allocation %u: %s: %s", after, error_name(e.code), e.text);
        assert_int_equal(descriptors(), before);
    }
    assert_in_range(after, 30, 500);
}
