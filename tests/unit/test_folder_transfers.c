/* Blocks from folder to folder: read, moved, written, committed. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>

#include "folders_fixture.h"
#include "tests/support/cmocka.h"

static const size_t sizes[2][2] = {{10, 3700001}, {0, 131072}};

static void make_sources(void **state)
{
    for (unsigned s = 0; s < 2; s++) {
        make_folder(at(state, "data/in%u", s));
        for (unsigned d = 0; d < 2; d++) {
            uint8_t *bytes = random_bytes(sizes[s][d], 2 * s + d);
            make_file(at(state, "data/in%u/%u", s, d), bytes, sizes[s][d]);
            free(bytes);
        }
    }
}

static void exchange(void **state, uint32_t most, unsigned chance, enum where where)
{
    struct fixture f;
    struct ends node[2];

    open_fixture(&f, state);
    f.jobs.chance = chance;
    f.files.cached = where == CACHED;
    f.files.in_memory = where == IN_MEMORY;
    make_sources(state);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct folder_request request = {.id = ID,
                                               .from = at(state, "data/in%%r"),
                                               .to = at(state, "data/new/out%%r"),
                                               .rank = rank,
                                               .nodes = 2};
        open_well(&f, &node[rank], &request);
    }
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t d = 0; d < 2; d++) {
            assert_int_equal(node[s].source->ops->size(node[s].source, d), sizes[s][d]);
            assert_int_equal(move_block(&f, &node[s], s, &node[d], d, most), 0);
        }
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(finish(&f, &node[rank]), 0);
        assert_false(exists(at(state, "data/new/out%u", rank)));
    }
    for (uint32_t rank = 0; rank < 2; rank++) {
        commit_well(&f, &node[rank]);
        close_ends(&f, &node[rank], false);
    }
    assert_int_equal(entries(at(state, "data/new")), 2); /* no temporary folder is left */
    assert_int_equal(entries(f.state_folder), 0);
    for (unsigned s = 0; s < 2; s++)
        for (unsigned d = 0; d < 2; d++) {
            uint8_t *bytes = random_bytes(sizes[s][d], 2 * s + d);
            check_file(at(state, "data/new/out%u/%u", d, s), bytes, sizes[s][d]);
            free(bytes);
        }
    close_fixture(&f);
}

FOLDER_TEST(files_arrive_as_they_were)
{
    static const struct {
        const char *what;
        uint32_t most; /* bytes that are read at once */
        enum where where;
    } row[] = {
        {"pieces of a segment", 65536, ANYWHERE},
        {"small pieces", 4099, ANYWHERE},
        {"cached files, without jobs", 65536, CACHED},
        {"files in memory, without jobs", 65536, IN_MEMORY},
    };

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        print_message("%s\n", row[i].what);
        exchange(state, row[i].most, 0, row[i].where);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

FOLDER_TEST(files_arrive_in_whatever_order_jobs_end)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        exchange(state, 4099, seed, seed % 3);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

static unsigned writes;
static ssize_t (*write_uncounted)(void *context, int file, const struct iovec *piece, int count,
                                  uint64_t offset);

static ssize_t count_write(void *context, int file, const struct iovec *piece, int count,
                           uint64_t offset)
{
    writes++;
    return write_uncounted(context, file, piece, count, offset);
}

/* Four segments of a block, in any order. */
static void write_segments(struct fixture *f, struct ends *ends, const char *bytes)
{
    static const uint64_t offset[] = {12, 0, 8, 4};
    struct slab *slab = slab_get(&f->pool);
    struct error e;

    assert_non_null(slab);
    for (unsigned i = 0; i < 4; i++) {
        const struct extent piece = {slab, slab->data + offset[i], 4};
        memcpy(slab->data + offset[i], bytes + offset[i], 4);
        assert_int_equal(ends->sink->ops->write(ends->sink, 0, offset[i], &piece, &e), 0);
    }
    slab_unref(slab);
    assert_int_equal(ends->sink->ops->pending(ends->sink), 16);
}

FOLDER_TEST(what_comes_together_is_written_with_one_call)
{
    static const char bytes[] = "0123456789abcdef";

    for (enum where where = ANYWHERE; where <= IN_MEMORY; where += IN_MEMORY - ANYWHERE) {
        struct fixture f;
        struct ends ends;
        open_fixture(&f, state);
        f.files.in_memory = where == IN_MEMORY;
        const struct folder_request request = small(state);
        begin_open(&f, &ends, &request);
        stepper_finish(&f.jobs);
        lay_out(&f, &ends, 16, 4);
        stepper_finish(&f.jobs);
        write_uncounted = f.files.files.write;
        f.files.files.write = count_write;
        writes = 0;
        write_segments(&f, &ends, bytes);
        stepper_finish(&f.jobs);
        assert_int_equal(writes, 0); /* the loop's turn is not over */
        assert_int_equal(folders_flush(&f.folders), where == IN_MEMORY);
        assert_int_equal(writes, where == IN_MEMORY);
        stepper_finish(&f.jobs);
        assert_int_equal(writes, 1);
        assert_false(folders_flush(&f.folders));
        assert_int_equal(ends.sink->ops->pending(ends.sink), 0);
        assert_int_equal(finish(&f, &ends), 0);
        commit_well(&f, &ends);
        close_ends(&f, &ends, false);
        check_file(at(state, "data/out/0"), bytes, 16);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* If files are in memory, received bytes are written while they are in the processor's cache, or the failure is
 * reported. */
FOLDER_TEST(little_waits_for_files_in_memory)
{
    const uint32_t length = 65536, whole = 8 * length;
    uint8_t *bytes = random_bytes(whole, 1);

    for (int fails = 0; fails <= 1; fails++) {
        struct fixture f;
        struct ends ends;
        struct error e;
        uint32_t at_most = 0, begin = 0;
        open_fixture(&f, state);
        f.files.in_memory = true;
        const struct folder_request request = small(state);
        open_well(&f, &ends, &request);
        f.files.error = ENOSPC;
        f.files.left = fails ? 0 : -1;
        for (; begin < whole;
             begin += length) { /* from the end to the front: no piece continues another one */
            struct slab *slab = slab_get(&f.pool);
            assert_non_null(slab);
            const uint64_t offset = whole - length - begin;
            const struct extent piece = {slab, memcpy(slab->data, bytes + offset, length), length};
            int result = ends.sink->ops->write(ends.sink, 0, offset, &piece, &e);
            slab_unref(slab);
            if (result != 0)
                break;
            uint64_t waits = ends.sink->ops->pending(ends.sink);
            at_most = waits > at_most ? (uint32_t)waits : at_most;
        }
        assert_int_equal(at_most, whole / 2);
        assert_int_equal(ends.failures, 0);
        if (fails) {
            const struct block_events events = {&ends, on_wake, on_failed, on_closed};
            assert_in_range(begin, length, whole - length);
            assert_non_null(strstr(e.text, strerror(ENOSPC)));
            assert_false(ends.sink->ops->keep_output(ends.sink, &events));
        } else {
            assert_int_equal(finish(&f, &ends), 0);
            commit_well(&f, &ends);
        }
        close_ends(&f, &ends, false);
        if (!fails)
            check_file(at(state, "data/out/0"), bytes, whole);
        assert_int_equal(exists(at(state, "data/out")), !fails);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
    free(bytes);
}

FOLDER_TEST(one_file_for_all)
{
    for (int folder = 0; folder < 2; folder++) {
        struct fixture f;
        struct ends ends;
        open_fixture(&f, state);
        struct folder_request request = small(state);
        request.operation = OPERATION_ALLGATHER;
        if (folder == 0)
            request.from = at(state, "data/in/1");
        open_well(&f, &ends, &request);
        assert_int_equal(ends.source->ops->size(ends.source, 1), 5);
        assert_int_equal(move_block(&f, &ends, 1, &ends, 1, 100), 0);
        assert_int_equal(finish(&f, &ends), 0);
        commit_well(&f, &ends);
        close_ends(&f, &ends, false);
        check_file(at(state, "data/out/1"), "block", 5);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

FOLDER_TEST(a_file_may_come_in_short_reads)
{
    struct fixture f;
    struct ends ends;
    for (enum where where = ANYWHERE; where <= IN_MEMORY; where++) {
        open_fixture(&f, state);
        const struct folder_request request = small(state);
        f.files.read_most = 2;
        f.files.cached = where == CACHED;
        f.files.in_memory = where == IN_MEMORY;
        open_well(&f, &ends, &request);
        assert_int_equal(move_block(&f, &ends, 1, &ends, 1, 100), 0);
        assert_int_equal(finish(&f, &ends), 0);
        commit_well(&f, &ends);
        close_ends(&f, &ends, false);
        check_file(at(state, "data/out/1"), "block", 5);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

FOLDER_TEST(more_files_than_may_stay_open)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    const struct folder_request request = many(state);
    open_well(&f, &ends, &request);
    for (unsigned d = 0; d < MANY; d++) /* block d goes to this node, as from node d */
        assert_int_equal(move_block(&f, &ends, d, &ends, d, 3), 0);
    assert_in_range(f.files.open, OPEN_FILES_MOST, OPEN_FILES_MOST + 8);
    assert_int_equal(finish(&f, &ends), 0);
    commit_well(&f, &ends);
    close_ends(&f, &ends, false);
    for (unsigned d = 0; d < MANY; d++)
        check_file(at(state, "data/out/%u", d), &d, sizeof d);
    assert_int_equal(atomic_load(&f.folders.open_files), 0);
    close_fixture(&f);
}
