/* Folders as sources and sinks, in a temporary folder; jobs run where the test says so. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/log.h"
#include "daemon/engine/cut.h"
#include "daemon/engine/missing_blocks.h"
#include "daemon/files/folders.h"
#include "daemon/files/state/journal.h"
#include "folder_fixture.h"

#define ID "0-0000beef-1"
#define OTHER_ID "0-0000beef-2"

struct fixture {
    struct stepper jobs;
    struct faulty_files files;
    struct slab_pool pool;
    struct roots roots;
    struct folders folders;
    struct storage storage;
    char state_folder[FIXTURE_PATH];
};

/* One node's two ends, and what has been heard of them. */
struct ends {
    struct source *source;
    struct sink *sink;
    unsigned wakes, failures, closed;
    struct error failure;
};

static void on_wake(void *context)
{
    ((struct ends *)context)->wakes++;
}

static void on_failed(void *context, const struct error *e)
{
    struct ends *ends = context;
    if (ends->failures++ == 0)
        ends->failure = *e;
}

static void on_closed(void *context)
{
    ((struct ends *)context)->closed++;
}

static void start(struct fixture *f)
{
    struct error e;

    f->folders = (struct folders){.files = &f->files.files,
                                  .workers = &f->jobs.workers,
                                  .pool = &f->pool,
                                  .roots = &f->roots,
                                  .state_folder = f->state_folder,
                                  .output_mode = 0700};
    if (folders_init(&f->folders, &f->storage, &e) != 0)
        fail_msg("%s", e.text);
}

/* The daemon ends and starts again. */
static void restart(struct fixture *f)
{
    f->storage.close(f->storage.context);
    stepper_finish(&f->jobs);
    start(f);
}

static void open_fixture(struct fixture *f, void **state)
{
    struct error e;

    log_set_level(LOG_LEVEL_ERROR);
    *f = (struct fixture){0};
    stepper_init(&f->jobs, 0);
    faulty_files_init(&f->files);
    slab_pool_init(&f->pool, 0);
    make_folder(at(state, "data"));
    assert_int_equal(roots_add(&f->roots, &f->files.files, at(state, "data"), &e), 0);
    (void)snprintf(f->state_folder, sizeof f->state_folder, "%s", at(state, "state"));
    start(f);
}

/* Nothing may be left behind: no buffer, no job, no descriptor. */
static void close_fixture(struct fixture *f)
{
    f->storage.close(f->storage.context);
    stepper_finish(&f->jobs);
    assert_int_equal(slab_pool_close(&f->pool), 0);
    roots_free(&f->roots);
    assert_int_equal(f->files.open, 0);
}

static void begin_open(struct fixture *f, struct ends *ends, const struct folder_request *request)
{
    const struct block_events events = {ends, on_wake, on_failed, on_closed};
    struct error e;

    *ends = (struct ends){0};
    assert_int_equal(f->storage.open_folders(f->storage.context, request, &events, &ends->source,
                                             &ends->sink, &e),
                     0);
    assert_true(ends->source->sized && ends->sink->durable);
    assert_int_equal(ends->sink->check, CHECK_DIGEST);
    assert_false(ends->source->ops->opened(ends->source) || ends->sink->ops->opened(ends->sink));
}

static void turn(struct fixture *f)
{
    if (!folders_flush(&f->folders) && !stepper_step(&f->jobs))
        fail_msg("nothing is under way");
}

static void lay_out(struct fixture *f, struct ends *ends, uint64_t round_bytes, uint32_t segments)
{
    struct error e;

    assert_int_equal(ends->source->ops->lay_out(ends->source, round_bytes, segments, &e), 0);
    assert_int_equal(ends->sink->ops->lay_out(ends->sink, round_bytes, segments, &e), 0);
    while (ends->failures == 0 && !ends->sink->ops->opened(ends->sink))
        turn(f);
}

/* Returns 0, or -1 with ends->failure; they are open in both cases. */
static int open_ends(struct fixture *f, struct ends *ends, const struct folder_request *request)
{
    begin_open(f, ends, request);
    while (ends->failures == 0 && stepper_step(&f->jobs))
        ;
    if (ends->failures > 0)
        return -1;
    assert_true(ends->source->ops->opened(ends->source) && ends->sink->ops->opened(ends->sink));
    assert_int_equal(ends->wakes, 2);
    lay_out(f, ends, 1 << 20, 1);
    return ends->failures > 0 ? -1 : 0;
}

static void open_well(struct fixture *f, struct ends *ends, const struct folder_request *request)
{
    if (open_ends(f, ends, request) != 0)
        fail_msg("%s", ends->failure.text);
}

static void close_ends(struct fixture *f, struct ends *ends, bool keep)
{
    unsigned wakes = ends->wakes, failures = ends->failures;
    unsigned later = 0;

    later += !ends->source->ops->close(ends->source);
    later += !ends->sink->ops->close(ends->sink, keep);
    assert_int_equal(ends->closed, 0);
    stepper_finish(&f->jobs);
    assert_int_equal(ends->closed, later);
    assert_int_equal(ends->wakes, wakes);
    assert_int_equal(ends->failures, failures);
}

/* Moves block (from, to). Returns 0, or -1 if one end has failed. */
static int move_block(struct fixture *f, struct ends *from, uint32_t origin, struct ends *to,
                      uint32_t destination, uint32_t most)
{
    uint64_t size = from->source->ops->size(from->source, destination), done = 0;
    struct extent piece;
    struct error e;

    while (done < size && to->failures == 0) {
        uint32_t want = size - done < most ? (uint32_t)(size - done) : most;
        int result = from->source->ops->read(from->source, destination, done, want, &piece, &e);
        if (from->failures > 0 || to->failures > 0)
            return -1;
        if (result < 0)
            fail_msg("%s", e.text);
        if (result == 0) {
            turn(f);
            continue;
        }
        assert_in_range(piece.length, 1, want);
        if (to->sink->ops->write(to->sink, origin, done, &piece, &e) != 0) {
            to->failure = e;
            to->failures++;
        }
        done += piece.length;
        slab_unref(piece.slab);
        if (f->files.in_memory)
            (void)folders_flush(&f->folders);
        if (f->files.in_memory && to->failures == 0 && to->sink->ops->pending(to->sink) > 0)
            fail_msg("byte %" PRIu64 " waits to be written", done);
    }
    return to->failures > 0 ? -1 : 0;
}

/* Returns 0 when both ends have finished, or -1 if one has failed. */
static int finish(struct fixture *f, struct ends *ends)
{
    while (ends->failures == 0 && ends->sink->ops->pending(ends->sink) > 0)
        turn(f);
    while (ends->failures == 0 &&
           (!ends->sink->ops->finish(ends->sink) || !ends->source->ops->finish(ends->source)))
        turn(f);
    return ends->failures > 0 ? -1 : 0;
}

static int commit(struct fixture *f, struct ends *ends, struct error *e)
{
    int result;

    while ((result = ends->sink->ops->commit(ends->sink, e)) == 0)
        turn(f);
    return result;
}

static void commit_well(struct fixture *f, struct ends *ends)
{
    struct error e;

    if (commit(f, ends, &e) != 1)
        fail_msg("%s", e.text);
}

static void on_done(void *argument, const char *id, const struct error *e)
{
    struct error *out = argument;

    assert_string_equal(id, ID);
    *out = e != NULL ? *e : (struct error){0};
}

/* Returns 0, or -1 with *e. */
static int resolve(struct fixture *f, bool committed, struct error *e)
{
    (void)error_set(e, ERROR_TIMEOUT, "never");
    f->storage.resolve(f->storage.context, ID, committed, on_done, e);
    assert_int_equal(e->code, ERROR_TIMEOUT); /* not from inside */
    stepper_finish(&f->jobs);
    return e->code == ERROR_NONE ? 0 : -1;
}

static uint8_t *random_bytes(size_t length, unsigned seed)
{
    uint8_t *bytes = malloc(length);

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
    return bytes;
}

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

/* Where files are, for all that the file system can tell. */
enum where { ANYWHERE, CACHED, IN_MEMORY };

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

static void files_arrive_as_they_were(void **state)
{
    exchange(state, 65536, 0, ANYWHERE);
}

static void files_in_memory_arrive_without_jobs_too(void **state)
{
    exchange(state, 65536, 0, CACHED);
    assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    exchange(state, 65536, 0, IN_MEMORY);
}

static void files_arrive_in_small_pieces_too(void **state)
{
    exchange(state, 4099, 0, ANYWHERE);
}

static void files_arrive_in_whatever_order_jobs_end(void **state)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        exchange(state, 4099, seed, seed % 3);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* --- attempts that follow each other --- */

#define FILES 2u

static const uint32_t lengths[FILES] = {131072, 200001};

static uint32_t any(unsigned *chance, uint32_t below)
{
    *chance = *chance * 1103515245 + 12345;
    return *chance / 65536 % below;
}

/* What counts as arrived, and what was written before and does not, also behind the end. */
static void write_some(struct fixture *f, struct ends *ends, uint32_t d, const uint8_t *bytes,
                       unsigned *chance, struct arrived *arrived)
{
    struct error e;

    for (int i = 0; i < 12; i++) {
        uint32_t begin = any(chance, lengths[d]), length = 1 + any(chance, 9000);
        bool good = i >= 4;
        if (good && length > lengths[d] - begin)
            length = lengths[d] - begin;
        struct slab *slab = slab_lone(length, NULL, NULL);
        const struct extent piece = {slab, slab->data, length};
        memset(slab->data, 0xee, length);
        if (good)
            memcpy(slab->data, bytes + begin, length);
        assert_int_equal(ends->sink->ops->write(ends->sink, d, begin, &piece, &e), 0);
        slab_unref(slab);
        if (good)
            assert_int_equal(arrived_add(arrived, d, begin, begin + length), 0);
        while (!good && ends->sink->ops->pending(ends->sink) > 0)
            turn(f);
    }
    arrived_settle(arrived);
}

/* The rest of a block, piece by piece as an engine has them. */
static void move_rest(struct fixture *f, struct ends *ends, uint32_t d, const struct cut *plain,
                      unsigned *chance)
{
    uint64_t size = ends->source->ops->size(ends->source, d), moved = 0;
    struct cut cut = *plain;
    struct error e;

    cut.uniform = ends->source->even;
    cut.block_bytes = size;
    for (uint64_t number = 0; moved < size; number++) {
        const struct cut_round round = cut_round(&cut, number);
        uint32_t done[8] = {0}, left = cut_whole(&round, size);
        while (left > 0) {
            uint32_t segment = any(chance, cut.segments);
            uint32_t rest = cut_length(&round, size, segment) - done[segment];
            uint64_t at = cut_begin(&round, segment) + done[segment];
            struct extent piece;
            if (rest == 0)
                continue;
            int result = ends->source->ops->read(ends->source, d, at, rest, &piece, &e);
            if (result == 0) {
                turn(f);
                continue;
            }
            assert_int_equal(result, 1);
            assert_int_equal(ends->sink->ops->write(ends->sink, d, at, &piece, &e), 0);
            done[segment] += piece.length;
            left -= piece.length;
            moved += piece.length;
            slab_unref(piece.slab);
        }
    }
}

/* Any bytes of the rest, once more. */
static void read_again(struct fixture *f, struct ends *ends, uint32_t d, const uint8_t *bytes,
                       unsigned *chance)
{
    uint64_t size = ends->source->ops->size(ends->source, d), place;
    uint64_t at = any(chance, (uint32_t)size / 2);
    const uint8_t *read;
    struct error e;

    assert_int_equal(ends->source->ops->again(ends->source, d, at, 5000, &read, &e), 0);
    stepper_finish(&f->jobs);
    assert_int_equal(ends->source->ops->again(ends->source, d, at, 5000, &read, &e), 1);
    for (uint32_t i = 0; i < 5000; i++) {
        assert_true(source_place(ends->source, d, lengths[d], at + i, &place) > 0);
        assert_int_equal(read[i], bytes[place]);
    }
}

/* The first attempt ends while it writes, or when it has finished; the next one has its output, under its own
 * name, and moves what is missing. */
static void an_output_goes_on(void **state)
{
    for (unsigned seed = 1; seed <= 24; seed++) {
        struct fixture f;
        struct ends first, ends, parked = {0};
        const struct block_events events = {&parked, on_wake, on_failed, on_closed};
        struct arrived arrived = {0};
        uint8_t *bytes[FILES];
        uint64_t marks[FILES];
        unsigned chance = seed;
        const struct cut cut = {.round_bytes = seed % 2 == 0 ? 30000 : 300000,
                                .segments = 1 + seed % 5};
        open_fixture(&f, state);
        f.jobs.chance = seed % 4 == 0 ? 0 : seed;
        f.files.cached = seed % 3 == 1;
        make_folder(at(state, "data/in"));
        for (unsigned d = 0; d < FILES; d++) {
            bytes[d] = random_bytes(lengths[d], seed + d);
            make_file(at(state, "data/in/%u", d), bytes[d], lengths[d]);
        }
        struct folder_request request = {.id = ID,
                                         .from = at(state, "data/in"),
                                         .to = at(state, "data/new/out"),
                                         .nodes = FILES};
        open_well(&f, &first, &request);
        for (unsigned d = 0; d < FILES; d++) {
            write_some(&f, &first, d, bytes[d], &chance, &arrived);
            marks[d] = first.source->ops->mark(first.source, d);
        }
        if (seed % 3 == 0)
            assert_int_equal(finish(&f, &first), 0);
        else if (seed % 3 == 1)
            turn(&f);
        assert_true(first.sink->ops->park(first.sink, &events));
        request.id = OTHER_ID;
        request.marks = marks;
        request.parked = first.sink;
        (void)first.source->ops->close(first.source);
        if (seed % 5 == 0)
            stepper_finish(&f.jobs);
        begin_open(&f, &ends, &request);
        assert_ptr_equal(ends.sink, request.parked);
        while (ends.failures == 0 &&
               !(ends.sink->ops->opened(ends.sink) && ends.source->ops->opened(ends.source)))
            turn(&f);
        assert_int_equal(ends.failures + parked.failures, 0);
        assert_true(exists(at(state, "data/new/.out.torusd-" OTHER_ID "-0")));
        assert_int_equal(entries(at(state, "data/new")), 1);
        assert_int_equal(entries(f.state_folder), 1);

        ends.source->skips = &arrived;
        ends.source->even = seed % 2 == 0;
        for (unsigned d = 0; d < FILES; d++)
            ends.sink->ops->limit(ends.sink, d, lengths[d]);
        lay_out(&f, &ends, cut.round_bytes, cut.segments);
        ends.sink = remainder_sink(ends.sink, &arrived, UINT64_MAX);
        for (unsigned d = 0; d < FILES; d++) {
            assert_int_equal(ends.source->ops->size(ends.source, d),
                             lengths[d] - arrived_bytes(&arrived, d));
            read_again(&f, &ends, d, bytes[d], &chance);
            move_rest(&f, &ends, d, &cut, &chance);
        }
        assert_int_equal(finish(&f, &ends), 0);
        ends.sink = remainder_whole(ends.sink);
        commit_well(&f, &ends);
        close_ends(&f, &ends, false);
        for (unsigned d = 0; d < FILES; d++) {
            check_file(at(state, "data/new/out/%u", d), bytes[d], lengths[d]);
            free(bytes[d]);
        }
        assert_int_equal(entries(at(state, "data/new")), 1);
        assert_int_equal(entries(f.state_folder), 0);
        arrived_free(&arrived);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* A folder with one block each from and to three nodes, for node 1. */
static struct folder_request small(void **state)
{
    if (!exists(at(state, "data/in"))) {
        make_folder(at(state, "data/in"));
        for (unsigned d = 0; d < 3; d++)
            make_file(at(state, "data/in/%u", d), "block", 5);
    }
    return (struct folder_request){
        .id = ID, .from = at(state, "data/in"), .to = at(state, "data/out"), .rank = 1, .nodes = 3};
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

static void what_comes_together_is_written_with_one_call(void **state)
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

/* Where files are in memory, what comes is written before it has left the processor's cache, or it is said
 * what has failed. */
static void little_waits_for_files_in_memory(void **state)
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
             begin += length) { /* from the end to the front: none goes on with another */
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
            assert_false(ends.sink->ops->park(ends.sink, &events));
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

/* Up to a finished output. */
static void fill(struct fixture *f, struct ends *ends, const struct folder_request *request)
{
    open_well(f, ends, request);
    assert_int_equal(move_block(f, ends, 0, ends, 1, 100), 0);
    assert_int_equal(finish(f, ends), 0);
}

static void check_refused(struct fixture *f, const struct folder_request *request,
                          enum error_code code, const char *text)
{
    struct ends ends;
    unsigned before = entries(f->roots.path[0]), before_state = entries(f->state_folder);

    assert_int_equal(open_ends(f, &ends, request), -1);
    if (strstr(ends.failure.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, ends.failure.text);
    assert_int_equal(ends.failure.code, code);
    close_ends(f, &ends, false);
    assert_int_equal(entries(f->roots.path[0]), before); /* nothing is left behind */
    assert_int_equal(entries(f->state_folder), before_state);
}

static void a_missing_file_is_refused_or_empty(void **state)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    struct folder_request request = small(state);
    assert_int_equal(unlink(at(state, "data/in/2")), 0);
    check_refused(&f, &request, ERROR_REFUSED, "data/in/2 (the block for node 2); --missing-ok");
    request.missing_ok = true;
    open_well(&f, &ends, &request);
    assert_int_equal(ends.source->ops->size(ends.source, 2), 0);
    assert_int_equal(ends.source->ops->size(ends.source, 1), 5);
    close_ends(&f, &ends, false);
    assert_int_equal(symlink("/etc/hostname", at(state, "data/in/2")), 0);
    check_refused(&f, &request, ERROR_REFUSED, "is not below the configured data_roots");
    assert_int_equal(unlink(at(state, "data/in/2")), 0);
    make_folder(at(state, "data/in/2"));
    check_refused(&f, &request, ERROR_REFUSED, "data/in/2 is not a regular file");
    request.from = at(state, "data/in/1");
    check_refused(&f, &request, ERROR_REFUSED, "data/in/1 is not a folder");
    close_fixture(&f);
}

/* Nothing comes from a node that is gone or goes to it: its files are neither asked for nor made. */
static void files_of_a_node_that_is_gone(void **state)
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

static void one_file_for_all(void **state)
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

static void a_file_may_come_in_short_reads(void **state)
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

#define MANY (HELD_MOST + 50u)

/* Files with their number in them, for as many nodes. */
static struct folder_request many(void **state)
{
    make_folder(at(state, "data/in"));
    for (unsigned d = 0; d < MANY; d++)
        make_file(at(state, "data/in/%u", d), &d, sizeof d);
    return (struct folder_request){.id = ID,
                                   .from = at(state, "data/in"),
                                   .to = at(state, "data/out"),
                                   .rank = 1,
                                   .nodes = MANY};
}

static void more_files_than_may_stay_open(void **state)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    const struct folder_request request = many(state);
    open_well(&f, &ends, &request);
    for (unsigned d = 0; d < MANY; d++) /* block d goes to this node, as from node d */
        assert_int_equal(move_block(&f, &ends, d, &ends, d, 3), 0);
    assert_in_range(f.files.open, HELD_MOST, HELD_MOST + 8);
    assert_int_equal(finish(&f, &ends), 0);
    commit_well(&f, &ends);
    close_ends(&f, &ends, false);
    for (unsigned d = 0; d < MANY; d++)
        check_file(at(state, "data/out/%u", d), &d, sizeof d);
    assert_int_equal(atomic_load(&f.folders.held), 0);
    close_fixture(&f);
}

/* A node that is gone in the next attempt leaves no file, and a file that was changed in between is an error. */
static void what_differs_in_the_next_attempt(void **state)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    for (int changed = 0; changed < 2; changed++) {
        struct fixture f;
        struct ends first, ends, parked = {0};
        const struct block_events events = {&parked, on_wake, on_failed, on_closed};
        const bool gone[3] = {false, false, true};
        uint64_t marks[3];
        open_fixture(&f, state);
        struct folder_request request = small(state);
        open_well(&f, &first, &request);
        for (unsigned d = 0; d < 3; d++) {
            assert_int_equal(move_block(&f, &first, d, &first, d, 5), 0);
            marks[d] = first.source->ops->mark(first.source, d);
        }
        assert_true(first.sink->ops->park(first.sink, &events));
        request.id = OTHER_ID;
        request.marks = marks;
        request.gone = gone;
        request.parked = first.sink;
        assert_int_equal(utimensat(AT_FDCWD, at(state, "data/in/%d", 2 - changed), times, 0), 0);
        (void)first.source->ops->close(first.source);
        begin_open(&f, &ends, &request);
        stepper_finish(&f.jobs);
        while (folders_flush(&f.folders) || stepper_step(&f.jobs))
            ;
        assert_int_equal(ends.failures, changed);
        if (changed) {
            assert_non_null(strstr(ends.failure.text, "data/in/1 was changed while it was being"));
        } else {
            lay_out(&f, &ends, 1 << 20, 1); /* nothing counts: all is empty */
            assert_int_equal(finish(&f, &ends), 0);
            commit_well(&f, &ends);
            assert_int_equal(entries(at(state, "data/out")), 2);
            check_file(at(state, "data/out/1"), "", 0);
        }
        close_ends(&f, &ends, false);
        assert_int_equal(entries(f.state_folder), 0);
        assert_int_equal(entries(at(state, "data")), changed ? 1 : 2);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* The source finds that out at the end, and nothing is left behind. */
static void check_changed(struct fixture *f, struct ends *ends, const char *text)
{
    assert_int_equal(finish(f, ends), -1);
    assert_int_equal(ends->failure.code, ERROR_DAMAGED);
    assert_non_null(strstr(ends->failure.text, text));
    close_ends(f, ends, false);
    close_fixture(f);
}

/* Not only what is held open is noticed. */
static void a_file_that_is_replaced_is_noticed(void **state)
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
    check_changed(&f, &ends, "was changed while it was being sent");
}

static void a_file_that_shrinks_is_noticed(void **state)
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
    assert_non_null(strstr(ends.failure.text, "data/in/2 has become shorter"));
    close_ends(&f, &ends, false);
    close_fixture(&f);
}

/* Whoever has damaged it asks for some of it again, also when all has been checked. */
static void bytes_can_be_read_again(void **state)
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
        assert_int_equal(ops->again(ends.source, 2, 1, 3, &bytes, &e), 0);
        assert_int_equal(ops->again(ends.source, 2, 1, 3, &bytes, &e), 0); /* not yet */
        stepper_finish(&f.jobs);
        assert_true(ends.wakes > wakes);
        assert_int_equal(ops->again(ends.source, 2, 1, 3, &bytes, &e), 1);
        assert_memory_equal(bytes, "loc", 3);
        for (unsigned d = 0; checked == 0 && d < 3; d++)
            assert_int_equal(move_block(&f, &ends, d, &ends, d, 5), 0);
        if (checked == 0)
            assert_int_equal(finish(&f, &ends), 0);
    }
    /* What is asked for last counts. */
    assert_int_equal(ops->again(ends.source, 0, 0, 5, &bytes, &e), 0);
    stepper_finish(&f.jobs);
    assert_int_equal(ops->again(ends.source, 2, 4, 1, &bytes, &e), 0);
    stepper_finish(&f.jobs);
    assert_int_equal(ops->again(ends.source, 2, 4, 1, &bytes, &e), 1);
    assert_memory_equal(bytes, "k", 1);
    assert_int_equal(truncate(at(state, "data/in/2"), 4), 0);
    assert_int_equal(ops->again(ends.source, 2, 4, 1, &bytes, &e), 0);
    stepper_finish(&f.jobs);
    assert_int_equal(ops->again(ends.source, 2, 4, 1, &bytes, &e), -1);
    assert_non_null(strstr(e.text, "data/in/2 cannot be read: it has become shorter"));
    assert_int_equal(ends.failures, 0); /* it is not the exchange that fails of it */
    assert_int_equal(ops->again(ends.source, 0, 0, 1, &bytes, &e), 0);
    close_ends(&f, &ends, false); /* meanwhile */
    close_fixture(&f);
}

static void a_file_that_changes_is_noticed(void **state)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    open_well(&f, &ends, &request);
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, at(state, "data/in/0"), times, 0), 0);
    check_changed(&f, &ends, "data/in/0 was changed while it was being sent");
}

static void a_target_must_be_free(void **state)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    make_folder(at(state, "data/out"));
    make_file(at(state, "data/out/thing"), "x", 1);
    check_refused(&f, &request, ERROR_REFUSED, "data/out exists and is not empty");
    assert_int_equal(unlink(at(state, "data/out/thing")), 0);
    open_well(&f, &ends, &request); /* an empty folder will do */
    assert_int_equal(finish(&f, &ends), 0);
    commit_well(&f, &ends);
    close_ends(&f, &ends, false);
    assert_int_equal(entries(at(state, "data/out")), 3);
    check_file(at(state, "data/out/2"), "", 0); /* nothing came: an empty file */
    struct folder_request other = request;
    make_file(at(state, "data/file"), "x", 1);
    other.to = at(state, "data/file");
    check_refused(&f, &other, ERROR_REFUSED, "is not a folder");
    other.to = at(state, "data/file/x");
    check_refused(&f, &other, ERROR_IO, "Not a directory");
    assert_int_equal(symlink(at(state, "data"), at(state, "data/link")), 0);
    other.to = at(state, "data/link");
    check_refused(&f, &other, ERROR_REFUSED, "is not a folder");
    other.to = at(state, "data/link/x");
    check_refused(&f, &other, ERROR_REFUSED, "a folder above it is a symbolic link");
    other.to = at(state, "data/link/new/x");
    check_refused(&f, &other, ERROR_REFUSED, "a folder above it is a symbolic link");
    other.to = at(state, "elsewhere");
    check_refused(&f, &other, ERROR_REFUSED, "is not below");
    other.to = at(state, "data/%%x");
    check_refused(&f, &other, ERROR_USAGE, "%");
    other.id = "../../x";
    other.to = request.to;
    check_refused(&f, &other, ERROR_PROTOCOL, "is not the id of an exchange");
    close_fixture(&f);
}

/* The error says how long it may be, and that is so. */
static void a_name_of_a_target_has_a_limit(void **state)
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
    assert_int_equal(open_ends(&f, &ends, &request), -1);
    assert_int_equal(ends.failure.code, ERROR_USAGE);
    const char *limit = strstr(ends.failure.text, "target name too long: 255 bytes, at most ");
    assert_non_null(limit);
    most = strtoul(limit + strlen("target name too long: 255 bytes, at most "), NULL, 10);
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
    check_refused(&f, &request, ERROR_USAGE, "target name too long");
    close_fixture(&f);
}

static void of_two_at_once_one_is_refused(void **state)
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
        assert_non_null(strstr(other.failure.text, "another exchange is writing to target"));
        close_ends(&f, &other, false);
        /* Until nothing of the first is left. */
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

static void rivals_of_other_nodes_are_refused(void **state)
{
    struct fixture f;
    struct folders other = {0};
    struct storage other_storage;
    struct ends ends;
    struct error e;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    struct folder_request rival = request;
    /* What another daemon left when it crashed is no rival. */
    make_folder(at(state, "data/.out.torusd-9-0000beef-9-4"));
    open_well(&f, &ends, &request);
    rival.rank = 2;
    check_refused(&f, &rival, ERROR_REFUSED, "is another node's target too");
    /* Another daemon on a shared file system. */
    other = f.folders;
    other.sinks = NULL;
    other.state_folder = at(state, "state2");
    other.output_mode = 0700;
    assert_int_equal(folders_init(&other, &other_storage, &e), 0);
    struct storage own = f.storage;
    f.storage = other_storage;
    check_refused(&f, &rival, ERROR_REFUSED, "is another node's target too");
    rival.id = OTHER_ID;
    check_refused(&f, &rival, ERROR_BUSY, "another exchange is writing to target");
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

static void what_is_not_committed_is_removed(void **state)
{
    for (unsigned seed = 0; seed < 8; seed++) {
        struct fixture f;
        struct ends ends;
        open_fixture(&f, state);
        f.jobs.chance = seed;
        struct folder_request request = small(state);
        request.to = at(state, "data/x/y/out");
        for (int stage = -1; stage < 5; stage++) {
            if (stage < 0) { /* while it is opened */
                begin_open(&f, &ends, &request);
                for (unsigned i = 0; i < seed / 2; i++)
                    (void)stepper_step(&f.jobs);
            } else {
                open_well(&f, &ends, &request);
                assert_true(exists(at(state, "data/x/y")));
            }
            if (stage >= 1) /* writes are under way */
                assert_int_equal(move_block(&f, &ends, 1, &ends, 1, 2), 0);
            if (stage == 2)
                (void)ends.sink->ops->finish(ends.sink); /* maybe too early, maybe syncing */
            if (stage == 3)
                assert_int_equal(finish(&f, &ends), 0);
            close_ends(&f, &ends, false);
            assert_false(exists(at(state, "data/x")));
            assert_int_equal(entries(f.state_folder), 0);
        }
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

static void folders_that_others_use_stay(void **state)
{
    struct fixture f;
    struct ends ends;
    open_fixture(&f, state);
    struct folder_request request = small(state);
    request.to = at(state, "data/x/y/out");
    open_well(&f, &ends, &request);
    make_file(at(state, "data/x/mine"), "x", 1);
    close_ends(&f, &ends, false);
    assert_false(exists(at(state, "data/x/y")));
    check_file(at(state, "data/x/mine"), "x", 1);
    close_fixture(&f);
}

/* Whoever may write beside the target puts something else in place of the temporary folder. */
static void swap(void **state, struct fixture *f, struct ends *ends, bool link)
{
    const struct folder_request request = small(state);

    make_folder(at(state, "precious"));
    make_file(at(state, "precious/0"), "mine", 4);
    fill(f, ends, &request);
    const char *temporary = at(state, "data/.out.torusd-%s-1", ID);
    assert_int_equal(rename(temporary, at(state, "data/aside")), 0);
    if (link)
        assert_int_equal(symlink(at(state, "precious"), temporary), 0);
    else
        assert_int_equal(rename(at(state, "precious"), temporary), 0);
}

/* Whatever there was no descriptor for is tried again: at once, when its own have been closed, and each time that
 * another output has been closed. */
static void an_output_that_could_not_be_removed(void **state)
{
    long calls = 0;
    bool failed;
    do {
        struct fixture f;
        struct ends ends;
        open_fixture(&f, state);
        struct folder_request request = small(state);
        fill(&f, &ends, &request);
        f.files.error = EMFILE;
        f.files.left = calls++;
        close_ends(&f, &ends, false);
        failed = f.files.failed;
        assert_int_equal(entries(at(state, "data")), 1); /* the sources */
        f.files.left = -1;
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    } while (failed);
    assert_true(calls > 4);
}

/* It is found again by the journal's entry, also if the state folder is the one that fails. */
static void an_output_is_removed_when_another_is_closed(void **state)
{
    struct fixture f;
    struct ends ends, other;
    struct error e;
    open_fixture(&f, state);
    struct folder_request request = small(state);
    fill(&f, &ends, &request);
    const char *temporary = at(state, "data/.out.torusd-%s-1", ID);
    make_file(at(state, "data/.out.torusd-%s-1/notes", ID), "", 0); /* which is not ours */
    close_ends(&f, &ends, false);
    assert_true(exists(temporary));
    assert_int_equal(resolve(&f, false, &e), -1); /* nor can a doubt end so */
    assert_int_equal(unlink(at(state, "data/.out.torusd-%s-1/notes", ID)), 0);
    request.id = OTHER_ID;
    request.to = at(state, "data/other");
    open_well(&f, &other, &request);
    close_ends(&f, &other, false);
    assert_false(exists(temporary));
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}

static void a_swapped_folder_is_not_removed(void **state)
{
    for (int link = 0; link < 2; link++) {
        struct fixture f;
        struct ends ends;
        open_fixture(&f, state);
        log_set_level(LOG_LEVEL_ERROR);
        swap(state, &f, &ends, link == 1);
        close_ends(&f, &ends, false);
        check_file(at(state, link == 1 ? "precious/0" : "data/.out.torusd-" ID "-1/0"), "mine", 4);
        assert_int_equal(entries(at(state, "data/aside")), 0); /* our own files are gone */
        assert_int_equal(entries(f.state_folder), 0);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

static void a_swapped_folder_is_not_put_in_place(void **state)
{
    for (int link = 0; link < 2; link++) {
        struct fixture f;
        struct ends ends;
        struct error e;
        open_fixture(&f, state);
        swap(state, &f, &ends, link == 1);
        assert_int_equal(commit(&f, &ends, &e), -1);
        assert_non_null(strstr(e.text, "has been moved or replaced"));
        assert_false(exists(at(state, "data/out")));
        close_ends(&f, &ends, false);
        assert_int_equal(entries(f.state_folder), 1);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* After a crash only names are left to go by. */
static void a_link_is_not_followed_after_a_crash(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    open_fixture(&f, state);
    swap(state, &f, &ends, true);
    close_ends(&f, &ends, true);
    restart(&f);
    assert_int_equal(resolve(&f, false, &e), -1);
    assert_int_equal(resolve(&f, true, &e), -1);
    check_file(at(state, "precious/0"), "mine", 4);
    assert_int_equal(unlink(at(state, "data/.out.torusd-%s-1", ID)), 0);
    assert_int_equal(resolve(&f, false, &e), 0);
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}

static void note_id(void *argument, const char *id)
{
    (void)strcat(argument, id);
}

static void check_in_doubt(struct fixture *f, const char *expected)
{
    char ids[100] = "";
    struct error e;

    assert_int_equal(f->storage.each_in_doubt(f->storage.context, note_id, ids, &e), 0);
    assert_string_equal(ids, expected);
}

static void an_output_in_doubt_waits_for_its_outcome(void **state)
{
    for (int committed = 0; committed < 2; committed++) {
        struct fixture f;
        struct ends ends;
        struct error e;
        open_fixture(&f, state);
        struct folder_request request = small(state);
        request.to = at(state, "data/x/y/out");
        fill(&f, &ends, &request);
        close_ends(&f, &ends, true);
        restart(&f); /* survives a start, too */
        check_in_doubt(&f, ID);
        assert_int_equal(resolve(&f, committed == 1, &e), 0);
        assert_int_equal(entries(f.state_folder), 0);
        if (committed == 1)
            check_file(at(state, "data/x/y/out/0"), "block", 5);
        assert_int_equal(entries(at(state, "data")), committed == 1 ? 2 : 1);
        assert_int_equal(resolve(&f, committed == 1, &e), 0); /* settled already */
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* Its target is kept for it: another exchange has to wait. */
static void an_output_in_doubt_keeps_its_target(void **state)
{
    for (int committed = 0; committed < 2; committed++) {
        struct fixture f;
        struct ends ends;
        struct error e;
        open_fixture(&f, state);
        const struct folder_request request = small(state);
        struct folder_request rival = request;
        rival.id = OTHER_ID;
        fill(&f, &ends, &request);
        close_ends(&f, &ends, true);
        check_refused(&f, &rival, ERROR_BUSY, "in doubt");
        restart(&f);
        check_refused(&f, &rival, ERROR_BUSY, "in doubt");
        assert_int_equal(resolve(&f, committed == 1, &e), 0);
        if (committed == 1) {
            check_refused(&f, &rival, ERROR_REFUSED, "exists and is not empty");
        } else {
            open_well(&f, &ends, &rival);
            close_ends(&f, &ends, false);
        }
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* The daemon dies after it has put an output in place, and before it has noted that. */
static void a_crash_after_the_rename_does_no_harm(void **state)
{
    for (int committed = 0; committed < 2; committed++) {
        struct fixture f;
        struct ends ends;
        struct error e = {0};
        open_fixture(&f, state);
        const struct folder_request request = small(state);
        fill(&f, &ends, &request);
        close_ends(&f, &ends, true);
        assert_int_equal(rename(at(state, "data/.out.torusd-%s-1", ID), at(state, "data/out")), 0);
        restart(&f);
        check_in_doubt(&f, ID);
        /* Its root may have forgotten the decision by then: all had confirmed. */
        if (resolve(&f, committed == 1, &e) != 0)
            fail_msg("%s", e.text);
        check_file(at(state, "data/out/0"), "block", 5);
        assert_int_equal(entries(f.state_folder), 0);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

static void write_entry(struct fixture *f, void **state, unsigned made, const char *folder)
{
    struct journal_entry entry = {.made = made};
    struct error e;

    (void)snprintf(entry.folder, sizeof entry.folder, "%s", at(state, "%s", folder));
    (void)strcpy(entry.temporary, ".tmp");
    (void)strcpy(entry.final, "out");
    assert_int_equal(journal_write(&f->folders.journal, ID, &entry, &e), 0);
}

static void what_a_crash_left_unfinished_is_removed(void **state)
{
    struct fixture f;
    open_fixture(&f, state);
    log_set_level(LOG_LEVEL_ERROR);
    for (unsigned depth = 0; depth < 4; depth++) { /* how far the daemon had come */
        write_entry(&f, state, 2, "data/a/b");
        if (depth > 0)
            make_folder(at(state, "data/a"));
        if (depth > 1)
            make_folder(at(state, "data/a/b"));
        if (depth > 2) {
            make_folder(at(state, "data/a/b/.tmp"));
            make_file(at(state, "data/a/b/.tmp/0"), "half", 4);
        }
        restart(&f);
        assert_int_equal(entries(at(state, "data")), 0);
        assert_int_equal(entries(f.state_folder), 0);
        check_in_doubt(&f, "");
    }
    make_file(at(state, "state/exchange-%s", OTHER_ID), "nonsense", 8);
    restart(&f);
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}

static void what_cannot_be_removed_is_tried_again(void **state)
{
    struct fixture f;
    open_fixture(&f, state);
    write_entry(&f, state, 0, "data");
    make_folder(at(state, "data/.tmp"));
    make_file(at(state, "data/.tmp/0"), "half", 4);
    make_file(at(state, "data/.tmp/notes"), "not ours", 8);
    restart(&f);
    check_file(at(state, "data/.tmp/notes"), "not ours", 8);
    assert_false(exists(at(state, "data/.tmp/0")));
    assert_int_equal(entries(f.state_folder), 1);
    check_in_doubt(&f, ""); /* it was never finished */
    assert_int_equal(unlink(at(state, "data/.tmp/notes")), 0);
    restart(&f);
    assert_int_equal(entries(at(state, "data")), 0);
    assert_int_equal(entries(f.state_folder), 0);
    /* A root that is not configured any more. */
    write_entry(&f, state, 0, "data2");
    restart(&f);
    assert_int_equal(entries(f.state_folder), 1);
    close_fixture(&f);
}

/* Between prepare and commit somebody else has put something there. */
static void a_target_that_appears_meanwhile(void **state)
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
        assert_int_equal(commit(&f, &ends, &e), -1);
        assert_int_equal(e.code, ERROR_REFUSED);
        assert_non_null(strstr(e.text, kind == 0 ? "is not empty" : "is not a folder"));
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

static void a_commit_may_be_tried_again(void **state)
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

static void record(struct fixture *f, struct error *e)
{
    f->storage.record_commit(f->storage.context, ID, on_done, e);
    stepper_finish(&f->jobs);
}

static void check_committed(struct fixture *f, const char *expected)
{
    char ids[100] = "";
    struct error e;

    assert_int_equal(f->storage.each_committed(f->storage.context, note_id, ids, &e), 0);
    assert_string_equal(ids, expected);
}

static void decisions_are_kept_in_the_state_folder(void **state)
{
    struct fixture f;
    struct error e = {.code = ERROR_TIMEOUT};
    open_fixture(&f, state);
    check_committed(&f, "");
    record(&f, &e);
    assert_int_equal(e.code, ERROR_NONE);
    restart(&f);
    check_committed(&f, ID);
    f.storage.forget_commit(f.storage.context, ID);
    stepper_finish(&f.jobs);
    check_committed(&f, "");
    f.files.left = 0;
    record(&f, &e);
    assert_int_equal(e.code, ERROR_IO);
    check_committed(&f, "");
    close_fixture(&f);
}

/* Returns whether folders could be opened and listed although one call failed; if so, all that is on record
 * has been listed. */
static bool starts_with_all(struct fixture *f)
{
    char committed[100] = "", in_doubt[100] = "";
    struct error e = {0};
    bool started;

    if (folders_init(&f->folders, &f->storage, &e) != 0)
        return false;
    started = f->storage.each_committed(f->storage.context, note_id, committed, &e) == 0 &&
              f->storage.each_in_doubt(f->storage.context, note_id, in_doubt, &e) == 0;
    f->files.left = -1;
    if (started) {
        assert_string_equal(committed, ID);
        assert_string_equal(in_doubt, ID);
    } else {
        assert_int_equal(e.code, ERROR_IO);
    }
    f->storage.close(f->storage.context);
    stepper_finish(&f->jobs);
    return started;
}

/* A root that does not know its decisions would answer that they were not made; a node that does not know
 * its doubts, that they are settled. */
static void what_cannot_be_read_at_the_start_is_not_overlooked(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    long calls = 0;
    unsigned starts = 0;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    fill(&f, &ends, &request);
    record(&f, &e);
    close_ends(&f, &ends, true);
    f.storage.close(f.storage.context);
    stepper_finish(&f.jobs);
    do {
        f.files.failed = false;
        f.files.left = calls++;
        starts += starts_with_all(&f);
        f.files.left = -1;
    } while (f.files.failed);
    assert_true(calls > 10 && starts > 1);
    start(&f);
    close_fixture(&f);
}

static void the_last_calibration_is_kept(void **state)
{
    struct fixture f;
    struct calibration c = {.id = 1}, read;
    struct error e;
    open_fixture(&f, state);
    f.jobs.chance = 7;
    assert_int_equal(f.storage.load_calibration(f.storage.context, &read, &e), 0);
    for (c.version = 1; c.version < 10; c.version++) {
        f.storage.store_calibration(f.storage.context, &c);
        if (c.version % 3 == 0)
            (void)stepper_step(&f.jobs);
    }
    stepper_finish(&f.jobs);
    restart(&f);
    assert_int_equal(f.storage.load_calibration(f.storage.context, &read, &e), 1);
    assert_int_equal(read.version, 9);
    close_fixture(&f);
}

/* After storage.close() no task is reported, and the state folder is released in the end. */
static void a_close_is_the_end(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e = {.code = ERROR_TIMEOUT};
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    open_well(&f, &ends, &request);
    f.storage.record_commit(f.storage.context, ID, on_done, &e);
    f.storage.resolve(f.storage.context, ID, true, on_done, &e);
    (void)ends.source->ops->close(ends.source);
    (void)ends.sink->ops->close(ends.sink, false);
    f.storage.close(f.storage.context);
    stepper_finish(&f.jobs);
    assert_int_equal(e.code, ERROR_TIMEOUT);
    assert_int_equal(ends.closed, 2);
    assert_int_equal(f.files.open, 1); /* the root's */
    start(&f);
    assert_false(exists(at(state, "data/.out.torusd-%s-1", ID)));
    close_fixture(&f);
}

static void without_memory_for_jobs_nothing_is_left(void **state)
{
    struct fixture f;
    struct ends ends;
    struct source *source;
    struct sink *sink;
    struct error e = {0};
    const struct block_events events = {&ends, on_wake, on_failed, on_closed};
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    f.jobs.refuse = true;
    assert_int_equal(
        f.storage.open_folders(f.storage.context, &request, &events, &source, &sink, &e), -1);
    assert_int_equal(e.code, ERROR_MEMORY);
    f.jobs.refuse = false;
    begin_open(&f, &ends, &request);
    stepper_finish(&f.jobs);
    f.jobs.refuse = true;
    assert_int_equal(ends.source->ops->lay_out(ends.source, 1 << 20, 1, &e), -1);
    assert_int_equal(e.code, ERROR_MEMORY);
    e.code = ERROR_NONE;
    assert_int_equal(ends.sink->ops->lay_out(ends.sink, 1 << 20, 1, &e), -1);
    assert_int_equal(e.code, ERROR_MEMORY);
    assert_true(ends.source->ops->close(ends.source));
    assert_true(ends.sink->ops->close(ends.sink, false));
    f.jobs.refuse = false;
    assert_int_equal(entries(at(state, "data")), 1);
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}

static bool no_memory;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
    return no_memory ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return no_memory ? NULL : __real_calloc(count, size);
}

static void a_decision_needs_no_memory(void **state)
{
    struct fixture f;
    struct ends ends;
    struct source *source;
    struct sink *sink;
    struct error e = {.code = ERROR_TIMEOUT};
    const struct block_events events = {&ends, on_wake, on_failed, on_closed};
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    no_memory = true;
    int result = f.storage.open_folders(f.storage.context, &request, &events, &source, &sink, &e);
    f.storage.record_commit(f.storage.context, ID, on_done, &e);
    no_memory = false;
    assert_int_equal(result, -1);
    stepper_finish(&f.jobs);
    assert_int_equal(e.code, ERROR_NONE);
    check_committed(&f, ID);
    close_fixture(&f);
}

/* The whole life of an output, with the root's record, and the start of a daemon after it. */
static bool live(struct fixture *f, const struct folder_request *request, struct error *e)
{
    struct ends ends;
    bool committed = false;
    bool good = open_ends(f, &ends, request) == 0 && move_block(f, &ends, 0, &ends, 1, 2) == 0 &&
                finish(f, &ends) == 0;

    *e = ends.failure;
    if (good) {
        record(f, e);
        committed = e->code == ERROR_NONE;
        if (committed && commit(f, &ends, e) == 1)
            *e = (struct error){0};
    }
    assert_true(ends.failures <= 1);
    close_ends(f, &ends, false);
    return committed;
}

/* Each call in turn fails once: it is said so, nothing leaks, and whatever has been decided is what
 * there is in the end. */
static void every_call_may_fail_once(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EACCES};
    unsigned failures = 0, told = 0;

    for (size_t i = 0; i < 2 * sizeof errors / sizeof errors[0]; i++)
        for (long call = 0;; call++) {
            struct fixture f;
            struct error e = {0};
            open_fixture(&f, state);
            f.files.in_memory = i % 2 == 1;
            log_set_level(LOG_LEVEL_ERROR);
            f.jobs.chance = (unsigned)call;
            struct folder_request request = small(state);
            request.to = at(state, "data/x/y/out");
            f.files.error = errors[i / 2];
            f.files.left = call;
            bool committed = live(&f, &request, &e);
            bool failed = f.files.failed;
            f.files.left = -1;
            failures += failed;
            told += e.code != ERROR_NONE;
            if (e.code != ERROR_NONE && strstr(e.text, strerror(errors[i / 2])) == NULL)
                fail_msg("call %ld, %s: \"%s\"", call, f.files.call, e.text);
            assert_true(failed || (committed && e.code == ERROR_NONE));
            /* What the next start and the torus make of it. */
            restart(&f);
            if (resolve(&f, committed, &e) != 0)
                fail_msg("call %ld, %s: \"%s\"", call, f.files.call, e.text);
            f.storage.forget_commit(f.storage.context, ID);
            stepper_finish(&f.jobs);
            if (exists(at(state, "data/x/y/out")) != committed)
                fail_msg("call %ld, %s: committed %d", call, f.files.call, committed);
            if (committed)
                check_file(at(state, "data/x/y/out/0"), "block", 5);
            if (entries(at(state, "data/x/y")) != (committed ? 1 : 0) ||
                exists(at(state, "data/x")) != committed || entries(f.state_folder) != 0)
                fail_msg("call %ld, %s: something is left", call, f.files.call);
            close_fixture(&f);
            assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
            if (!failed)
                break;
        }
    assert_in_range(told, failures / 2, failures);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_arrive_as_they_were),
        TEST(files_in_memory_arrive_without_jobs_too),
        TEST(files_arrive_in_small_pieces_too),
        TEST(what_comes_together_is_written_with_one_call),
        TEST(little_waits_for_files_in_memory),
        TEST(more_files_than_may_stay_open),
        TEST(a_file_that_is_replaced_is_noticed),
        TEST(files_arrive_in_whatever_order_jobs_end),
        TEST(an_output_goes_on),
        TEST(what_differs_in_the_next_attempt),
        TEST(a_missing_file_is_refused_or_empty),
        TEST(files_of_a_node_that_is_gone),
        TEST(one_file_for_all),
        TEST(a_file_may_come_in_short_reads),
        TEST(a_file_that_shrinks_is_noticed),
        TEST(bytes_can_be_read_again),
        TEST(a_file_that_changes_is_noticed),
        TEST(a_target_must_be_free),
        TEST(a_name_of_a_target_has_a_limit),
        TEST(of_two_at_once_one_is_refused),
        TEST(rivals_of_other_nodes_are_refused),
        TEST(what_is_not_committed_is_removed),
        TEST(folders_that_others_use_stay),
        TEST(an_output_that_could_not_be_removed),
        TEST(an_output_is_removed_when_another_is_closed),
        TEST(a_swapped_folder_is_not_removed),
        TEST(a_swapped_folder_is_not_put_in_place),
        TEST(a_link_is_not_followed_after_a_crash),
        TEST(an_output_in_doubt_waits_for_its_outcome),
        TEST(an_output_in_doubt_keeps_its_target),
        TEST(a_crash_after_the_rename_does_no_harm),
        TEST(what_a_crash_left_unfinished_is_removed),
        TEST(what_cannot_be_removed_is_tried_again),
        TEST(a_target_that_appears_meanwhile),
        TEST(a_commit_may_be_tried_again),
        TEST(decisions_are_kept_in_the_state_folder),
        TEST(what_cannot_be_read_at_the_start_is_not_overlooked),
        TEST(the_last_calibration_is_kept),
        TEST(a_close_is_the_end),
        TEST(without_memory_for_jobs_nothing_is_left),
        TEST(a_decision_needs_no_memory),
        TEST(every_call_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
