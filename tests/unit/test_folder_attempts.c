/* An output that the next attempt continues. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/engine/cut.h"
#include "daemon/torusd/engine/missing_blocks.h"
#include "folders_fixture.h"
#include "tests/support/cmocka.h"

#define FILES 2u

static const uint32_t lengths[FILES] = {131072, 200001};

static uint32_t any(unsigned *chance, uint32_t below)
{
    *chance = *chance * 1103515245 + 12345;
    return *chance / 65536 % below;
}

/* Bytes that count as kept, and bytes that were written before and do not count, even after the end. */
static void write_some(struct fixture *f, struct ends *ends, uint32_t d, const uint8_t *bytes,
                       unsigned *chance, struct arrived *arrived)
{
    struct error e;

    for (int i = 0; i < 12; i++) {
        uint32_t begin = any(chance, lengths[d]), length = 1 + any(chance, 9000);
        bool good = i >= 4;
        if (good && length > lengths[d] - begin)
            length = lengths[d] - begin;
        struct slab *slab = slab_without_pool(length, NULL, NULL);
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
}

/* Moves the rest of a block in pieces, like an engine. */
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

/* Random bytes of the rest, again. */
static void read_again(struct fixture *f, struct ends *ends, uint32_t d, const uint8_t *bytes,
                       unsigned *chance)
{
    uint64_t size = ends->source->ops->size(ends->source, d), place;
    uint64_t at = any(chance, (uint32_t)size / 2);
    const uint8_t *read;
    struct error e;

    assert_int_equal(ends->source->ops->reread(ends->source, d, at, 5000, &read, &e), 0);
    stepper_finish(&f->jobs);
    assert_int_equal(ends->source->ops->reread(ends->source, d, at, 5000, &read, &e), 1);
    for (uint32_t i = 0; i < 5000; i++) {
        assert_true(source_place(ends->source, d, lengths[d], at + i, &place) > 0);
        assert_int_equal(read[i], bytes[place]);
    }
}

/* Two attempts at one output: the bytes that they move, and how. */
struct attempts {
    struct fixture f;
    struct ends first, second, kept_sink;
    struct folder_request request;
    struct arrived arrived;
    struct cut cut;
    uint8_t *bytes[FILES];
    uint64_t marks[FILES];
    unsigned seed, chance;
};

static void begin_attempts(struct attempts *a, void **state, unsigned seed)
{
    *a = (struct attempts){.seed = seed, .chance = seed};
    a->cut = (struct cut){.round_bytes = seed % 2 == 0 ? 30000 : 300000, .segments = 1 + seed % 5};
    open_fixture(&a->f, state);
    a->f.jobs.chance = seed % 4 == 0 ? 0 : seed;
    a->f.files.cached = seed % 3 == 1;
    make_folder(at(state, "data/in"));
    for (unsigned d = 0; d < FILES; d++) {
        a->bytes[d] = random_bytes(lengths[d], seed + d);
        make_file(at(state, "data/in/%u", d), a->bytes[d], lengths[d]);
    }
    a->request = (struct folder_request){
        .id = ID, .from = at(state, "data/in"), .to = at(state, "data/new/out"), .nodes = FILES};
}

/* The first attempt ends while it writes, or after it has finished. */
static void run_first(struct attempts *a)
{
    const struct block_events events = {&a->kept_sink, on_wake, on_failed, on_closed};

    open_well(&a->f, &a->first, &a->request);
    for (unsigned d = 0; d < FILES; d++) {
        write_some(&a->f, &a->first, d, a->bytes[d], &a->chance, &a->arrived);
        a->marks[d] = a->first.source->ops->mark(a->first.source, d);
    }
    if (a->seed % 3 == 0)
        assert_int_equal(finish(&a->f, &a->first), 0);
    else if (a->seed % 3 == 1)
        turn(&a->f);
    assert_true(a->first.sink->ops->keep_output(a->first.sink, &events));
    (void)a->first.source->ops->close(a->first.source);
    if (a->seed % 5 == 0)
        stepper_finish(&a->f.jobs);
}

/* The second attempt has the output of the first one, under its own name, */
static void open_next(struct attempts *a, void **state, const char *id)
{
    struct ends *ends = &a->second;

    a->request.id = id;
    a->request.marks = a->marks;
    a->request.kept_sink = a->first.sink;
    begin_open(&a->f, ends, &a->request);
    assert_ptr_equal(ends->sink, a->request.kept_sink);
    while (ends->failures == 0 &&
           !(ends->sink->ops->opened(ends->sink) && ends->source->ops->opened(ends->source)))
        turn(&a->f);
    assert_int_equal(ends->failures + a->kept_sink.failures, 0);
    assert_true(exists(at(state, "data/new/.out.torusd-%s-0", id)));
    assert_int_equal(entries(at(state, "data/new")), 1);
    assert_int_equal(entries(a->f.state_folder), 1);
}

static void open_second(struct attempts *a, void **state)
{
    open_next(a, state, OTHER_ID);
}

/* and moves the missing bytes. */
static void run_second(struct attempts *a)
{
    struct ends *ends = &a->second;

    ends->source->skips = &a->arrived;
    ends->source->even = a->seed % 2 == 0;
    for (unsigned d = 0; d < FILES; d++)
        ends->sink->ops->limit(ends->sink, d, lengths[d]);
    lay_out(&a->f, ends, a->cut.round_bytes, a->cut.segments);
    ends->sink = remainder_sink(ends->sink, &a->arrived, UINT64_MAX);
    for (unsigned d = 0; d < FILES; d++) {
        assert_int_equal(ends->source->ops->size(ends->source, d),
                         lengths[d] - arrived_of(&a->arrived, d)->bytes);
        read_again(&a->f, ends, d, a->bytes[d], &a->chance);
        move_rest(&a->f, ends, d, &a->cut, &a->chance);
    }
    assert_int_equal(finish(&a->f, ends), 0);
    ends->sink = remainder_whole(ends->sink);
    commit_well(&a->f, ends);
    close_ends(&a->f, ends, false);
}

FOLDER_TEST(an_output_goes_on)
{
    for (unsigned seed = 1; seed <= 24; seed++) {
        struct attempts a;
        begin_attempts(&a, state, seed);
        run_first(&a);
        open_second(&a, state);
        run_second(&a);
        for (unsigned d = 0; d < FILES; d++) {
            check_file(at(state, "data/new/out/%u", d), a.bytes[d], lengths[d]);
            free(a.bytes[d]);
        }
        assert_int_equal(entries(at(state, "data/new")), 1);
        assert_int_equal(entries(a.f.state_folder), 0);
        arrived_free(&a.arrived);
        close_fixture(&a.f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* --- files that somebody changes between two attempts --- */

/* Until what has arrived is in the files, and no job is left. */
static void write_all(struct fixture *f, struct ends *ends)
{
    while (ends->sink->ops->pending(ends->sink) > 0)
        turn(f);
    stepper_finish(&f->jobs);
}

/* The second attempt is withdrawn before anybody has asked it what is lost. A third one takes its place. */
static void withdraw_second(struct attempts *a, void **state)
{
    const struct block_events events = {&a->kept_sink, on_wake, on_failed, on_closed};

    assert_true(a->second.sink->ops->keep_output(a->second.sink, &events));
    (void)a->second.source->ops->close(a->second.source);
    stepper_finish(&a->f.jobs);
    a->first.sink = a->second.sink;
    open_next(a, state, ID);
}

/* Somebody overwrites a few bytes of files that have arrived: none of them is in the result. */
FOLDER_TEST(damaged_bytes_do_not_become_the_result)
{
    for (unsigned seed = 1; seed <= 12; seed++) {
        struct attempts a;
        begin_attempts(&a, state, seed);
        run_first(&a);
        write_all(&a.f, &a.first);
        for (unsigned d = 0; d < FILES; d++)
            if (seed % 4 != d)
                overwrite(at(state, "data/new/.out.torusd-" ID "-0/%u", d), 1 + seed * 4000,
                          "damage");
        open_second(&a, state);
        if (seed % 2 == 0)
            withdraw_second(&a, state);
        for (unsigned d = 0; d < FILES; d++) {
            assert_int_equal(a.second.sink->ops->lost(a.second.sink, d), seed % 4 != d);
            if (a.second.sink->ops->lost(a.second.sink, d))
                arrived_drop(&a.arrived, d);
        }
        run_second(&a);
        for (unsigned d = 0; d < FILES; d++) {
            check_file(at(state, "data/new/out/%u", d), a.bytes[d], lengths[d]);
            free(a.bytes[d]);
        }
        arrived_free(&a.arrived);
        close_fixture(&a.f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

static void replace(const char *path, const char *by)
{
    if (exists(path))
        assert_int_equal(unlink(path), 0);
    if (strcmp(by, "folder") == 0)
        make_folder(path);
    else if (strcmp(by, "symbolic link") == 0)
        assert_int_equal(symlink("/dev/null", path), 0);
    else
        make_file(path, "other", 5);
}

/* Links, folders and further files are named, with what to do, before anything is in place. */
FOLDER_TEST(what_is_no_file_of_the_output_is_named)
{
    static const char *const kinds[] = {"symbolic link", "folder", "file"};

    for (unsigned i = 0; i < 6; i++) {
        const bool further = i / 2 == 2, second = i % 2 == 0 && !further;
        struct fixture f;
        struct ends first, ends, kept_sink = {0};
        const struct block_events events = {&kept_sink, on_wake, on_failed, on_closed};
        char path[FIXTURE_PATH], expected[2 * FIXTURE_PATH];
        open_fixture(&f, state);
        struct folder_request request = small(state);
        open_well(&f, &first, &request);
        assert_int_equal(move_block(&f, &first, 1, &first, 1, 5), 0);
        write_all(&f, &first);
        (void)strcpy(path, at(state, "data/.out.torusd-" ID "-1/%s", further ? "notes" : "1"));
        (void)snprintf(expected, sizeof expected, "%s is a %s, ", path, kinds[i / 2]);
        replace(path, kinds[i / 2]);
        if (second) {
            assert_true(first.sink->ops->keep_output(first.sink, &events));
            request.id = OTHER_ID;
            request.kept_sink = first.sink;
            (void)first.source->ops->close(first.source);
            begin_open(&f, &ends, &request);
            stepper_finish(&f.jobs);
            while (folders_flush(&f.folders) || stepper_step(&f.jobs))
                ;
            *strstr(expected, ID "-1") = '\0'; /* it has the name of the second attempt by now */
            (void)strcat(expected, OTHER_ID "-1/1 is a ");
        } else {
            assert_int_equal(finish(&f, &first), -1);
        }
        const struct error *e = second ? &ends.failure : &first.failure;
        assert_int_equal(e->code, ERROR_REFUSED);
        if (strstr(e->text, expected) == NULL ||
            strstr(e->text, "remove it, and start the exchange again") == NULL)
            fail_msg("%s, not %s", e->text, expected);
        close_ends(&f, second ? &ends : &first, false);
        assert_false(exists(at(state, "data/out")));
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* Somebody writes while the exchange goes on, or when everything has arrived. */
FOLDER_TEST(damage_is_noticed_before_the_commit)
{
    for (unsigned more = 0; more < 2; more++) {
        struct fixture f;
        struct ends ends;
        struct error e;
        open_fixture(&f, state);
        const struct folder_request request = small(state);
        open_well(&f, &ends, &request);
        assert_int_equal(move_block(&f, &ends, 1, &ends, 1, 5), 0);
        write_all(&f, &ends);
        overwrite(at(state, "data/.out.torusd-" ID "-1/1"), 0, "x");
        if (more == 1) {
            struct slab *slab = slab_without_pool(1, NULL, NULL);
            const struct extent piece = {slab, slab->data, 1};
            slab->data[0] = 'k';
            assert_int_equal(ends.sink->ops->write(ends.sink, 1, 4, &piece, &e), 0);
            slab_unref(slab);
        }
        assert_fails(finish(&f, &ends), ends.failure, ERROR_DAMAGED,
                     ID "-1/1, a new file that had arrived: start");
        close_ends(&f, &ends, false);
        assert_int_equal(entries(at(state, "data")), 1);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* A node that is missing in the next attempt leaves no file, and a file that changed between attempts is an error. */
FOLDER_TEST(what_differs_in_the_next_attempt)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    for (int changed = 0; changed < 2; changed++) {
        struct fixture f;
        struct ends first, ends, kept_sink = {0};
        const struct block_events events = {&kept_sink, on_wake, on_failed, on_closed};
        const bool gone[3] = {false, false, true};
        uint64_t marks[3];
        open_fixture(&f, state);
        struct folder_request request = small(state);
        open_well(&f, &first, &request);
        for (unsigned d = 0; d < 3; d++) {
            assert_int_equal(move_block(&f, &first, d, &first, d, 5), 0);
            marks[d] = first.source->ops->mark(first.source, d);
        }
        assert_true(first.sink->ops->keep_output(first.sink, &events));
        request.id = OTHER_ID;
        request.marks = marks;
        request.gone = gone;
        request.kept_sink = first.sink;
        assert_int_equal(utimensat(AT_FDCWD, at(state, "data/in/%d", 2 - changed), times, 0), 0);
        (void)first.source->ops->close(first.source);
        begin_open(&f, &ends, &request);
        stepper_finish(&f.jobs);
        while (folders_flush(&f.folders) || stepper_step(&f.jobs))
            ;
        assert_int_equal(ends.failures, changed);
        if (changed) {
            assert_int_equal(ends.failure.code, ERROR_DAMAGED);
        } else {
            lay_out(&f, &ends, 1 << 20, 1); /* nothing counts: all files are empty */
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

/* Folders without memory, with system calls that fail, and when they are closed. */

/* After storage.close() no task is reported, and the state folder is released in the end. */
FOLDER_TEST(a_close_is_the_end)
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

FOLDER_TEST(without_memory_for_jobs_nothing_is_left)
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
    assert_fails(f.storage.open_folders(f.storage.context, &request, &events, &source, &sink, &e),
                 e, ERROR_MEMORY, "");
    f.jobs.refuse = false;
    begin_open(&f, &ends, &request);
    stepper_finish(&f.jobs);
    f.jobs.refuse = true;
    assert_fails(ends.source->ops->lay_out(ends.source, 1 << 20, 1, &e), e, ERROR_MEMORY, "");
    e.code = ERROR_NONE;
    assert_fails(ends.sink->ops->lay_out(ends.sink, 1 << 20, 1, &e), e, ERROR_MEMORY, "");
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

FOLDER_TEST(a_decision_needs_no_memory)
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

/* The whole life of an output, with the root's record, and then the start of a daemon. */
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

/* Each system call in turn fails once: the failure is reported, nothing leaks, and the final state is the one that was
 * decided. */
FOLDER_TEST(every_call_may_fail_once)
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
            /* The state after the next start and the root's answer. */
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

/* Only outputs that are not committed are removed. */

FOLDER_TEST(what_is_not_committed_is_removed)
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

FOLDER_TEST(folders_that_others_use_stay)
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

/* A removal that failed without descriptors is tried again when the output's own descriptors are closed, and each time
 * that another output is closed. */
FOLDER_TEST(an_output_that_could_not_be_removed)
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

/* The output is found again by its record in the journal, even if the state folder fails. */
FOLDER_TEST(an_output_is_removed_when_another_is_closed)
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
    assert_int_equal(resolve(&f, false, &e), -1); /* a doubt cannot end in this way, either */
    assert_int_equal(unlink(at(state, "data/.out.torusd-%s-1/notes", ID)), 0);
    request.id = OTHER_ID;
    request.to = at(state, "data/other");
    open_well(&f, &other, &request);
    close_ends(&f, &other, false);
    assert_false(exists(temporary));
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}

/* A user who may write beside the target replaces the temporary folder. */
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

FOLDER_TEST(a_swapped_folder_is_not_removed)
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

FOLDER_TEST(a_swapped_folder_is_not_put_in_place)
{
    for (int link = 0; link < 2; link++) {
        struct fixture f;
        struct ends ends;
        struct error e;
        open_fixture(&f, state);
        swap(state, &f, &ends, link == 1);
        assert_fails(commit(&f, &ends, &e), e, ERROR_IO, "");
        assert_false(exists(at(state, "data/out")));
        close_ends(&f, &ends, false);
        assert_int_equal(entries(f.state_folder), 1);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* After a crash, only names identify outputs. */
FOLDER_TEST(a_link_is_not_followed_after_a_crash)
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
