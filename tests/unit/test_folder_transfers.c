/* Blocks from folder to folder: read, moved, written, committed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
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
            assert_contains(e.text, strerror(ENOSPC));
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

/* Files of a source that are missing, that change while they are sent, or that are read again. */

FOLDER_TEST(a_missing_file_is_refused_or_empty)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    struct folder_request request = small(state);
    assert_int_equal(unlink(at(state, "data/in/2")), 0);
    check_refused(&f, &request, ERROR_REFUSED);
    request.missing_ok = true;
    open_well(&f, &ends, &request);
    assert_int_equal(ends.source->ops->size(ends.source, 2), 0);
    assert_int_equal(ends.source->ops->size(ends.source, 1), 5);
    close_ends(&f, &ends, false);
    assert_int_equal(symlink("/etc/hostname", at(state, "data/in/2")), 0);
    check_refused(&f, &request, ERROR_REFUSED);
    assert_int_equal(unlink(at(state, "data/in/2")), 0);
    make_folder(at(state, "data/in/2"));
    check_refused(&f, &request, ERROR_REFUSED);
    request.from = at(state, "data/in/1");
    check_refused(&f, &request, ERROR_REFUSED);
    close_fixture(&f);
}

/* No blocks come from a missing node or go to it: its files are neither required nor made. */
FOLDER_TEST(files_of_a_node_that_is_gone)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    struct folder_request request = small(state);
    bool *gone = calloc(request.nodes, sizeof *gone);
    assert_non_null(gone);
    gone[2] = true;
    request.gone = gone;
    assert_int_equal(unlink(at(state, "data/in/2")), 0);
    open_well(&f, &ends, &request);
    free(gone); /* it has been copied */
    assert_int_equal(ends.source->ops->size(ends.source, 2), 0);
    assert_int_equal(ends.source->ops->size(ends.source, 1), 5);
    close_ends(&f, &ends, false);
    close_fixture(&f);
}

/* The source notices the change at the end, and nothing is left behind. */
static void check_changed(struct fixture *f, struct ends *ends)
{
    assert_fails(finish(f, ends), ends->failure, ERROR_DAMAGED, "");
    close_ends(f, ends, false);
    close_fixture(f);
}

/* Changes are noticed not only in files that are held open. */
FOLDER_TEST(a_file_that_is_replaced_is_noticed)
{
    struct fixture f;
    struct ends ends;
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    const unsigned number = MANY - 1;
    open_fixture(&f, state);
    const struct folder_request request = many(state);
    const char *path = at(state, "data/in/%u", number), *other = at(state, "data/other");
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    open_well(&f, &ends, &request);
    make_file(other, &number, sizeof number);
    assert_int_equal(utimensat(AT_FDCWD, other, times, 0), 0);
    assert_int_equal(rename(other, path), 0);
    check_changed(&f, &ends);
}

FOLDER_TEST(a_file_that_shrinks_is_noticed)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    struct extent piece;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    begin_open(&f, &ends, &request);
    stepper_finish(&f.jobs);
    assert_int_equal(truncate(at(state, "data/in/2"), 4), 0);
    assert_int_equal(ends.source->ops->lay_out(ends.source, 1 << 20, 1, &e), 0);
    assert_int_equal(ends.source->ops->read(ends.source, 2, 0, 5, &piece, &e), 0);
    while (ends.failures == 0)
        turn(&f);
    assert_int_equal(ends.failure.code, ERROR_IO);
    close_ends(&f, &ends, false);
    close_fixture(&f);
}

FOLDER_TEST(a_file_that_changes_is_noticed)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    open_well(&f, &ends, &request);
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, at(state, "data/in/0"), times, 0), 0);
    check_changed(&f, &ends);
}

/* A node that received damaged bytes asks for some of them again, even after all files have been checked. */
FOLDER_TEST(bytes_can_be_read_again)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    const uint8_t *bytes;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    open_well(&f, &ends, &request);
    const struct source_ops *ops = ends.source->ops;
    for (int checked = 0; checked < 2; checked++) {
        unsigned wakes = ends.wakes;
        assert_int_equal(ops->reread(ends.source, 2, 1, 3, &bytes, &e), 0);
        assert_int_equal(ops->reread(ends.source, 2, 1, 3, &bytes, &e), 0); /* not yet */
        stepper_finish(&f.jobs);
        assert_true(ends.wakes > wakes);
        assert_int_equal(ops->reread(ends.source, 2, 1, 3, &bytes, &e), 1);
        assert_memory_equal(bytes, "loc", 3);
        for (unsigned d = 0; checked == 0 && d < 3; d++)
            assert_int_equal(move_block(&f, &ends, d, &ends, d, 5), 0);
        if (checked == 0)
            assert_int_equal(finish(&f, &ends), 0);
    }
    /* The latest request counts. */
    assert_int_equal(ops->reread(ends.source, 0, 0, 5, &bytes, &e), 0);
    stepper_finish(&f.jobs);
    assert_int_equal(ops->reread(ends.source, 2, 4, 1, &bytes, &e), 0);
    stepper_finish(&f.jobs);
    assert_int_equal(ops->reread(ends.source, 2, 4, 1, &bytes, &e), 1);
    assert_memory_equal(bytes, "k", 1);
    assert_int_equal(truncate(at(state, "data/in/2"), 4), 0);
    assert_int_equal(ops->reread(ends.source, 2, 4, 1, &bytes, &e), 0);
    stepper_finish(&f.jobs);
    assert_fails(ops->reread(ends.source, 2, 4, 1, &bytes, &e), e, ERROR_IO, "");
    assert_int_equal(ends.failures, 0); /* this does not fail the exchange */
    assert_int_equal(ops->reread(ends.source, 0, 0, 1, &bytes, &e), 0);
    close_ends(&f, &ends, false); /* meanwhile */
    close_fixture(&f);
}

/* Where an output may be put: targets that are refused, and obstacles that others make. */

FOLDER_TEST(a_target_must_be_free)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    make_folder(at(state, "data/out"));
    make_file(at(state, "data/out/thing"), "x", 1);
    check_refused(&f, &request, ERROR_REFUSED);
    assert_int_equal(unlink(at(state, "data/out/thing")), 0);
    open_well(&f, &ends, &request); /* an empty folder will do */
    assert_int_equal(finish(&f, &ends), 0);
    commit_well(&f, &ends);
    close_ends(&f, &ends, false);
    assert_int_equal(entries(at(state, "data/out")), 3);
    check_file(at(state, "data/out/2"), "", 0); /* nothing came: an empty file */
    close_fixture(&f);
}

/* Where nothing can be put. */
FOLDER_TEST(targets_that_cannot_be_are_refused)
{
    static const struct {
        const char *to, *id;
        enum error_code code;
    } row[] = {
        {"data/file", ID, ERROR_REFUSED}, /* not a folder */
        {"data/file/x", ID, ERROR_IO},    /* the path above it is not accepted, either */
        {"data/link", ID, ERROR_REFUSED},
        {"data/link/x", ID, ERROR_REFUSED}, /* a link is not followed */
        {"data/link/new/x", ID, ERROR_REFUSED},
        {"elsewhere", ID, ERROR_REFUSED}, /* not below a data root */
        {"data/%x", ID, ERROR_USAGE},
        {"data/out", "../../x", ERROR_PROTOCOL}, /* not the id of an exchange */
    };
    struct fixture f;

    open_fixture(&f, state);
    struct folder_request request = small(state);
    make_file(at(state, "data/file"), "x", 1);
    assert_int_equal(symlink(at(state, "data"), at(state, "data/link")), 0);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        request.to = at(state, "%s", row[i].to);
        request.id = row[i].id;
        check_refused(&f, &request, row[i].code);
    }
    close_fixture(&f);
}

/* The error states the longest path that is accepted, and that path is accepted. */
FOLDER_TEST(a_name_of_a_target_has_a_limit)
{
    char name[NAME_MAX + 1];
    struct fixture f;
    struct ends ends;
    size_t most;

    open_fixture(&f, state);
    struct folder_request request = small(state);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    request.to = at(state, "data/%s", name);
    assert_fails(open_ends(&f, &ends, &request), ends.failure, ERROR_USAGE, "");
    const char *limit = strstr(ends.failure.text, "target name is too long: 255 bytes, at most ");
    assert_non_null(limit);
    most = strtoul(limit + strlen("target name is too long: 255 bytes, at most "), NULL, 10);
    close_ends(&f, &ends, false);
    assert_in_range(most, 100, NAME_MAX - 1);
    name[most] = '\0';
    request.to = at(state, "data/%s", name);
    open_well(&f, &ends, &request);
    assert_int_equal(finish(&f, &ends), 0);
    commit_well(&f, &ends);
    close_ends(&f, &ends, false);
    assert_int_equal(entries(at(state, "data/%s", name)), 3);
    name[most] = 'x';
    name[most + 1] = '\0';
    request.to = at(state, "data/%s", name);
    check_refused(&f, &request, ERROR_USAGE);
    close_fixture(&f);
}

/* Folders above two targets belong to both exchanges: the last one removes them, unless one has a result. */
FOLDER_TEST(folders_of_two_exchanges_go_with_the_last)
{
    for (unsigned placed = 0; placed < 2; placed++) {
        struct fixture f;
        struct ends ends[2];
        open_fixture(&f, state);
        struct folder_request request = small(state);
        for (unsigned i = 0; i < 2; i++) {
            request.id = i == 0 ? ID : OTHER_ID;
            request.to = at(state, i == 0 ? "data/x/y/out" : "data/x/y/z/out");
            open_well(&f, &ends[i], &request);
        }
        assert_int_equal(finish(&f, &ends[0]), 0);
        if (placed == 1)
            commit_well(&f, &ends[0]);
        close_ends(&f, &ends[0], false);
        assert_true(exists(at(state, "data/x/y/z")));
        close_ends(&f, &ends[1], false);
        assert_int_equal(exists(at(state, "data/x/y")), placed);
        assert_int_equal(exists(at(state, "data/x")), placed);
        assert_false(exists(at(state, "data/x/y/z")));
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

FOLDER_TEST(of_two_at_once_one_is_refused)
{
    for (unsigned seed = 0; seed < 20; seed++) {
        struct fixture f;
        struct ends ends, other, third;
        open_fixture(&f, state);
        f.jobs.chance = seed;
        const struct folder_request request = small(state);
        struct folder_request rival = request;
        rival.id = OTHER_ID;
        rival.to = at(state, "data/./out/"); /* the same */
        begin_open(&f, &ends, &request);
        begin_open(&f, &other, &rival);
        stepper_finish(&f.jobs);
        assert_int_equal(ends.failures, 0); /* the first that was asked for */
        assert_int_equal(other.failures, 1);
        assert_int_equal(other.failure.code, ERROR_BUSY);
        close_ends(&f, &other, false);
        /* Until nothing is left of the first output. */
        (void)ends.source->ops->close(ends.source);
        (void)ends.sink->ops->close(ends.sink, false);
        begin_open(&f, &third, &rival);
        while (third.failures == 0)
            turn(&f);
        assert_int_equal(third.failure.code, ERROR_BUSY);
        close_ends(&f, &third, false);
        assert_int_equal(ends.closed, 2);
        open_well(&f, &third, &rival);
        close_ends(&f, &third, false);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

FOLDER_TEST(rivals_of_other_nodes_are_refused)
{
    struct fixture f;
    struct folders other = {0};
    struct storage other_storage;
    struct ends ends;
    struct error e;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    struct folder_request rival = request;
    /* Leftovers of another daemon that crashed do not block a target. */
    make_folder(at(state, "data/.out.torusd-9-0000beef-9-4"));
    open_well(&f, &ends, &request);
    rival.rank = 2;
    check_refused(&f, &rival, ERROR_REFUSED);
    /* Another daemon on a shared file system. */
    other = f.folders;
    other.sinks = NULL;
    other.state_folder = at(state, "state2");
    other.output_mode = 0700;
    assert_int_equal(folders_init(&other, &other_storage, &e), 0);
    struct storage own = f.storage;
    f.storage = other_storage;
    check_refused(&f, &rival, ERROR_REFUSED);
    rival.id = OTHER_ID;
    check_refused(&f, &rival, ERROR_BUSY);
    f.storage = own;
    close_ends(&f, &ends, false);
    f.storage = other_storage;
    open_well(&f, &ends, &rival);
    close_ends(&f, &ends, false);
    other_storage.close(other_storage.context);
    f.storage = own;
    assert_int_equal(entries(f.state_folder), 0);
    assert_int_equal(entries(at(state, "state2")), 0);
    close_fixture(&f);
}

/* An obstacle appears between prepare and commit. */
FOLDER_TEST(a_target_that_appears_meanwhile)
{
    for (int kind = 0; kind < 3; kind++) {
        struct fixture f;
        struct ends ends;
        struct error e;
        open_fixture(&f, state);
        const struct folder_request request = small(state);
        const char *out = at(state, "data/out");
        fill(&f, &ends, &request);
        if (kind == 0) {
            make_folder(out);
            make_file(at(state, "data/out/thing"), "x", 1);
        } else if (kind == 1) {
            make_file(out, "x", 1);
        } else {
            assert_int_equal(symlink(*state, out), 0);
        }
        assert_fails(commit(&f, &ends, &e), e, ERROR_REFUSED, "");
        close_ends(&f, &ends, false);
        check_file(at(state, "data/.out.torusd-%s-1/0", ID), "block", 5);
        assert_int_equal(resolve(&f, true, &e), -1);
        restart(&f);
        check_in_doubt(&f, ID);
        assert_int_equal(resolve(&f, true, &e), -1);
        if (kind == 0)
            check_file(at(state, "data/out/thing"), "x", 1);
        else
            assert_true(exists(out));
        /* The obstacle goes. */
        assert_int_equal(kind == 0 ? unlink(at(state, "data/out/thing")) : unlink(out), 0);
        assert_int_equal(resolve(&f, true, &e), 0);
        check_file(at(state, "data/out/0"), "block", 5);
        assert_int_equal(entries(at(state, "data")), 2);
        assert_int_equal(entries(f.state_folder), 0);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

FOLDER_TEST(a_commit_may_be_tried_again)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    fill(&f, &ends, &request);
    make_file(at(state, "data/out"), "x", 1);
    assert_int_equal(commit(&f, &ends, &e), -1);
    assert_int_equal(unlink(at(state, "data/out")), 0);
    commit_well(&f, &ends);
    assert_int_equal(ends.sink->ops->commit(ends.sink, &e), 1);
    close_ends(&f, &ends, false);
    check_file(at(state, "data/out/0"), "block", 5);
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}
