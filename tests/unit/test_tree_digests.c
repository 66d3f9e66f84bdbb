/* Chunks of files and their digests: both sides of a copy cut alike; what is wrong is refused. */
#include <errno.h>
#include <unistd.h>

#include <sodium.h>

#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/tree/digests.h"
#include "manifest_fixture.h"
#include "tests/support/cmocka.h"

#define CHUNKS 4096u

static const struct chunk_digests slow = {0}, fast = {.fast = true, .seed = 7};
static const struct chunk_digests *how = &slow; /* digests of chunks are made */

struct cut {
    struct chunk chunk[CHUNKS];
    uint32_t count;
    uint64_t bytes;
};

static int note(void *context, uint64_t place, const struct chunk *chunk)
{
    struct cut *cut = context;

    assert_int_equal(place, cut->bytes);
    assert_true(cut->count < CHUNKS);
    cut->chunk[cut->count++] = *chunk;
    cut->bytes += chunk->length;
    return 0;
}

static void fill_random(uint8_t *bytes, size_t length, unsigned seed)
{
    uint8_t key[randombytes_SEEDBYTES] = {(uint8_t)seed};

    randombytes_buf_deterministic(bytes, length, key);
}

static void cut_bytes(const uint8_t *bytes, size_t length, struct cut *cut)
{
    int file = memory_file();
    struct file_data d;

    memset(cut, 0, sizeof *cut);
    assert_int_equal(pwrite(file, bytes, length, 0), length);
    assert_int_equal(file_data_find(file, length, &d), 0);
    assert_int_equal(chunks_of_file(file, &d, how, NULL, note, cut), 0);
    assert_int_equal(cut->bytes, d.bytes);
    file_data_free(&d);
    (void)close(file);
}

TEST(chunks_have_the_lengths_that_are_promised)
{
    static const size_t size = 32u << 20;
    static struct cut cut;
    uint8_t *bytes = malloc(size);

    fill_random(bytes, size, 1);
    cut_bytes(bytes, size, &cut);
    for (uint32_t i = 0; i < cut.count; i++) {
        assert_in_range(cut.chunk[i].length, i + 1 < cut.count ? CHUNK_LEAST : 1, CHUNK_MOST);
        uint8_t digest[16], same[16];
        (void)crypto_generichash(digest, 16, bytes, cut.chunk[i].length, NULL, 0);
        if (how->fast)
            digest_wide(bytes, cut.chunk[i].length, how->seed, digest);
        chunk_digest(how, bytes, cut.chunk[i].length, same);
        if (i == 0)
            assert_memory_equal(digest, cut.chunk[i].digest, 16);
        if (i == 0)
            assert_memory_equal(same, digest, 16);
    }
    assert_in_range(size / cut.count, CHUNK_MEAN * 8 / 10, CHUNK_MEAN * 12 / 10);
    /* What has no end of its own is cut at the greatest length. */
    memset(bytes, 0, size);
    cut_bytes(bytes, 3 * CHUNK_MOST + 7, &cut);
    assert_int_equal(cut.count, 4);
    assert_int_equal(cut.chunk[3].length, 7);
    free(bytes);
}

/* The version of the document must change if this does. */
TEST(files_are_cut_where_they_always_were)
{
    static const uint32_t length[] = {32646, 64934, 72438, 73137, 100766, 56079};
    static struct cut cut;
    size_t size = 400000;
    uint8_t *bytes = malloc(size);

    for (size_t i = 0, x = 1; i < size; i++, x = x * 69069 + 12345)
        bytes[i] = (uint8_t)(x >> 24);
    cut_bytes(bytes, size, &cut);
    assert_int_equal(cut.count, sizeof length / sizeof *length);
    for (uint32_t i = 0; i < cut.count; i++)
        assert_int_equal(cut.chunk[i].length, length[i]);
    free(bytes);
}

TEST(only_chunks_around_a_change_differ)
{
    static struct cut before, after;
    size_t size = 8u << 20, same = 0;
    uint8_t *bytes = malloc(size), *changed = malloc(size + 5);

    fill_random(bytes, size, 2);
    cut_bytes(bytes, size, &before);
    memcpy(changed, bytes, size / 2); /* five bytes more in the middle */
    memcpy(changed + size / 2, "12345", 5);
    memcpy(changed + size / 2 + 5, bytes + size / 2, size - size / 2);
    cut_bytes(changed, size + 5, &after);
    for (uint32_t i = 0; i < after.count; i++)
        for (uint32_t j = 0; j < before.count; j++)
            same += memcmp(&after.chunk[i], &before.chunk[j], sizeof after.chunk[i]) == 0;
    assert_in_range(same, after.count - 4, after.count - 1);
    free(bytes);
    free(changed);
}

TEST(bytes_may_come_in_any_portions)
{
    static struct cut whole, parts;
    size_t size = 1u << 20, portion = 1;
    uint8_t *bytes = malloc(size);
    struct cutter *cutter = cutter_new(how);
    struct chunk chunk;
    bool ended;

    memset(&parts, 0, sizeof parts);
    fill_random(bytes, size, 3);
    cut_bytes(bytes, size, &whole);
    for (size_t done = 0; done < size; portion = portion * 7 % 10007) {
        size_t length = size - done < portion ? size - done : portion;
        done += cutter_feed(cutter, bytes + done, length, &chunk, &ended);
        if (ended)
            (void)note(&parts, parts.bytes, &chunk);
    }
    if (cutter_end(cutter, &chunk))
        (void)note(&parts, parts.bytes, &chunk);
    assert_false(cutter_end(cutter, &chunk));
    assert_memory_equal(&parts, &whole, sizeof parts);
    cutter_free(cutter);
    free(bytes);
}

/* Data is what is left if holes are taken out, whatever the place. */
TEST(data_is_read_across_holes)
{
    static const struct extent_of_file extent[] = {{2, 3}, {10, 1}, {20, 4}};
    struct file_data d = {.size = 30, .bytes = 8, .extent = extent, .extents = 3};
    uint8_t bytes[9];
    int file = memory_file();

    assert_int_equal(write(file, "..abc.....d.........efgh......", 30), 30);
    for (uint64_t place = 0; place < 8; place++)
        for (size_t length = 0; length <= 8 - place; length++) {
            assert_int_equal(file_data_read(file, &d, place, bytes, length), 0);
            assert_memory_equal(bytes, "abcdefgh" + place, length);
        }
    assert_int_equal(file_data_read(file, &d, 3, bytes, 6), -1);
    assert_int_equal(errno, 0);
    (void)close(file);
}

TEST(many_holes_are_described_by_fewer_extents)
{
    const uint64_t step = 8192, count = MANIFEST_EXTENTS_MOST + 1000;
    struct file_data d;
    uint64_t end = 0, bytes = 0;
    int file = memory_file();

    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(pwrite(file, "x", 1, (off_t)(i * step)), 1);
    assert_int_equal(ftruncate(file, (off_t)(count * step)), 0);
    assert_int_equal(file_data_find(file, count * step, &d), 0);
    if (d.extent != NULL) { /* if there can be holes */
        assert_in_range(d.extents, 1, MANIFEST_EXTENTS_MOST);
        for (uint32_t i = 0; i < d.extents; i++) {
            assert_true(i == 0 || d.extent[i].offset > end);
            end = d.extent[i].offset + d.extent[i].length;
            bytes += d.extent[i].length;
        }
        assert_int_equal(bytes, d.bytes);
        assert_in_range(bytes, count, count * step - 1);
        assert_true(end > (count - 1) * step);
    }
    file_data_free(&d);
    (void)close(file);
}

TEST(jobs_that_shall_stop_do)
{
    struct tree_progress progress = {.stop = true};
    static struct cut cut;
    uint8_t digest[FILE_DIGEST];
    int file = memory_file();
    struct file_data d = {.size = 5, .bytes = 5};

    assert_int_equal(chunks_of_file(file, &d, how, &progress, note, &cut), -1);
    assert_int_equal(errno, ECANCELED);
    assert_int_equal(file_data_digest(file, &d, &progress, digest), -1);
    assert_int_equal(errno, ECANCELED);
    progress.stop = false; /* the file is empty */
    assert_int_equal(chunks_of_file(file, &d, how, &progress, note, &cut), -1);
    assert_int_equal(errno, 0);
    assert_int_equal(file_data_digest(file, &d, &progress, digest), -1);
    assert_int_equal(errno, 0);
    (void)close(file);
}

/* --- wanted --- */

TEST(wanted_numbers_are_read_again)
{
    static const uint64_t number[] = {0, 1, 2, 130, 131, 20000, UINT64_C(1) << 40, UINT64_MAX - 2};
    static struct wanted w;
    uint64_t index, size;

    for (unsigned sizes = 0; sizes < 2; sizes++) {
        memset(&w, 0, sizeof w);
        w.sizes = sizes == 1;
        for (size_t i = 0; i < sizeof number / sizeof *number - 1; i++)
            assert_true(wanted_add(&w, number[i], number[i] / 3));
        assert_false(wanted_add(&w, 5, 0));
        struct wanted_numbers n = {.bytes = w.bytes, .left = w.length, .sizes = sizes == 1};
        for (size_t i = 0; i < sizeof number / sizeof *number - 1; i++) {
            assert_true(wanted_next(&n, &index, &size));
            assert_int_equal(index, number[i]);
            assert_int_equal(size, sizes == 1 ? number[i] / 3 : 0);
        }
        assert_false(wanted_next(&n, &index, &size));
    }
    memset(&w, 0, sizeof w);
    for (index = 0; wanted_add(&w, index, 0); index++)
        ;
    assert_int_equal(index, TREE_WANTED_MOST);
}

TEST(wanted_bytes_may_be_anything)
{
    static uint8_t bytes[TREE_WANTED_MOST];

    for (unsigned seed = 0; seed < 20; seed++) {
        fill_random(bytes, sizeof bytes, seed);
        for (size_t i = 0; i < sizeof bytes && seed > 9; i++)
            bytes[i] |= 0x80;
        struct wanted_numbers n = {.bytes = bytes, .left = sizeof bytes, .sizes = seed % 2 == 1};
        uint64_t index, size, last = 0, count = 0;
        for (; wanted_next(&n, &index, &size); last = index)
            assert_true(count++ == 0 || index > last);
    }
}

/* --- the document --- */

static void make_manifest(struct manifest *m, int file)
{
    struct error e = {0};
    struct manifest_maker *maker = manifest_maker_new(file, &e);

    add(maker, folder_entry("a"));
    add(maker, file_entry("b", 0));
    add(maker, file_entry("c", 100000));
    add(maker, file_entry("d", 5));
    finish_and_open(maker, file, m);
}

static int make_document(uint64_t *size)
{
    static const uint32_t length[][3] = {{50000, 49000, 1000}, {5}};
    struct error e = {0};
    int file = memory_file();
    struct digests_maker *m = digests_maker_new(file, how, &e);

    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(digests_maker_file(m, 2 + i, &e), 0);
        for (unsigned c = 0; c < 3 && length[i][c] > 0; c++) {
            struct chunk chunk = {.length = length[i][c], .digest = {(uint8_t)c}};
            assert_int_equal(digests_maker_chunk(m, &chunk, &e), 0);
        }
    }
    assert_int_equal(digests_maker_finish(m, size, &e), 0);
    digests_maker_free(m);
    return file;
}

TEST(a_document_is_read_again)
{
    struct manifest m;
    struct error e = {0};
    struct chunk chunk;
    uint64_t size, index;
    int entries = memory_file(), file = make_document(&size);

    make_manifest(&m, entries);
    assert_success(digests_check(file, size, &m, 0, &e), e);
    struct digests_cursor *c = digests_cursor_new(file, size);
    assert_true(digests_how(c).fast == how->fast && digests_how(c).seed == how->seed);
    assert_int_equal(digests_next_file(c, &index, &e), 1);
    assert_int_equal(index, 2);
    assert_int_equal(digests_next_chunk(c, &chunk, &e), 1);
    assert_int_equal(digests_next_chunk(c, &chunk, &e), 1);
    assert_int_equal(chunk.length, 49000);
    assert_int_equal(chunk.digest[0], 1);
    assert_int_equal(digests_next_file(c, &index, &e), 1); /* passes over one */
    assert_int_equal(index, 3);
    assert_int_equal(digests_next_chunk(c, &chunk, &e), 1);
    assert_int_equal(chunk.length, 5);
    assert_int_equal(digests_next_chunk(c, &chunk, &e), 0);
    assert_int_equal(digests_next_chunk(c, &chunk, &e), 0);
    assert_int_equal(digests_next_file(c, &index, &e), 0);
    assert_int_equal(digests_next_file(c, &index, &e), 0);
    digests_cursor_free(c);
    (void)close(file);
    (void)close(entries);
}

static int check_bytes(const uint8_t *bytes, size_t length, const struct manifest *m)
{
    struct error e = {0};
    int file = memory_file();

    assert_int_equal(write(file, bytes, length), length);
    int result = digests_check(file, length, m, 0, &e);
    if (result != 0)
        assert_int_equal(e.code, ERROR_PROTOCOL);
    (void)close(file);
    return result;
}

TEST(a_changed_document_is_refused)
{
    static const uint8_t value[] = {0, 1, 2, 3, 5, 0x40, 0x80, 0xff};
    static uint8_t bytes[1000], changed[1000];
    struct manifest m;
    uint64_t size;
    int entries = memory_file(), file = make_document(&size);

    make_manifest(&m, entries);
    assert_int_equal(pread(file, bytes, sizeof bytes, 0), size);
    assert_int_equal(check_bytes(bytes, size, &m), 0);
    for (size_t i = 0; i < size; i++) {
        memcpy(changed, bytes, size);
        changed[i] ^= 1;
        assert_int_equal(check_bytes(changed, size, &m), -1);
        for (size_t v = 0; v < sizeof value; v++) {
            /* Only digests of chunks, and their seed, may be anything. */
            const size_t at = how->fast ? i - 8 : i;
            bool digest = (at >= 28 && at < 44) || (at >= 48 && at < 64) || (at >= 68 && at < 84) ||
                          (at >= 100 && at < 116) || i >= size - 16 ||
                          (how->fast && i >= 16 && i < 24);
            changed[i] = value[v];
            seal(changed, size);
            assert_int_equal(check_bytes(changed, size, &m),
                             digest || memcmp(changed, bytes, size) == 0 ? 0 : -1);
        }
        memcpy(changed, bytes, i);
        seal(changed, i);
        assert_int_equal(check_bytes(changed, i, &m), -1);
    }
    (void)close(file);
    (void)close(entries);
}

int main(int argc, char **argv)
{
    int failed = tests_main(argc, argv);

    how = &fast;
    return failed + tests_main(argc, argv);
}
