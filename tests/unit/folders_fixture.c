#include "folders_fixture.h"

#include <inttypes.h>

#include "daemon/lib/base/log.h"
#include "tests/support/cmocka.h"

void on_wake(void *context)
{
    ((struct ends *)context)->wakes++;
}

void on_failed(void *context, const struct error *e)
{
    struct ends *ends = context;
    if (ends->failures++ == 0)
        ends->failure = *e;
}

void on_closed(void *context)
{
    ((struct ends *)context)->closed++;
}

void start(struct fixture *f)
{
    struct error e;

    made_folders_init(&f->made);
    f->folders = (struct folders){.files = &f->files.files,
                                  .workers = &f->jobs.workers,
                                  .pool = &f->pool,
                                  .made = &f->made,
                                  .roots = &f->roots,
                                  .state_folder = f->state_folder,
                                  .output_mode = 0700};
    assert_success(folders_init(&f->folders, &f->storage, &e), e);
}

void restart(struct fixture *f)
{
    f->storage.close(f->storage.context);
    stepper_finish(&f->jobs);
    made_folders_free(&f->made);
    start(f);
}

void open_fixture(struct fixture *f, void **state)
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

void close_fixture(struct fixture *f)
{
    f->storage.close(f->storage.context);
    stepper_finish(&f->jobs);
    made_folders_free(&f->made);
    assert_int_equal(slab_pool_close(&f->pool), 0);
    roots_free(&f->roots);
    assert_int_equal(f->files.open, 0);
}

void begin_open(struct fixture *f, struct ends *ends, const struct folder_request *request)
{
    const struct block_events events = {ends, on_wake, on_failed, on_closed};
    struct error e;

    *ends = (struct ends){0};
    assert_int_equal(f->storage.open_folders(f->storage.context, request, &events, &ends->source,
                                             &ends->sink, &e),
                     0);
    assert_true(ends->source->irregular && ends->sink->durable);
    assert_int_equal(ends->sink->check, CHECK_DIGEST);
    assert_false(ends->source->ops->opened(ends->source) || ends->sink->ops->opened(ends->sink));
}

void turn(struct fixture *f)
{
    if (!folders_flush(&f->folders) && !stepper_step(&f->jobs))
        fail_msg("nothing is under way");
}

void lay_out(struct fixture *f, struct ends *ends, uint64_t round_bytes, uint32_t segments)
{
    struct error e;

    assert_int_equal(ends->source->ops->lay_out(ends->source, round_bytes, segments, &e), 0);
    assert_int_equal(ends->sink->ops->lay_out(ends->sink, round_bytes, segments, &e), 0);
    while (ends->failures == 0 && !ends->sink->ops->opened(ends->sink))
        turn(f);
}

int open_ends(struct fixture *f, struct ends *ends, const struct folder_request *request)
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

void open_well(struct fixture *f, struct ends *ends, const struct folder_request *request)
{
    if (open_ends(f, ends, request) != 0)
        fail_msg("%s", ends->failure.text);
}

void close_ends(struct fixture *f, struct ends *ends, bool keep)
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

int move_block(struct fixture *f, struct ends *from, uint32_t origin, struct ends *to,
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

int finish(struct fixture *f, struct ends *ends)
{
    while (ends->failures == 0 && ends->sink->ops->pending(ends->sink) > 0)
        turn(f);
    while (ends->failures == 0 &&
           (!ends->sink->ops->finish(ends->sink) || !ends->source->ops->finish(ends->source)))
        turn(f);
    return ends->failures > 0 ? -1 : 0;
}

int commit(struct fixture *f, struct ends *ends, struct error *e)
{
    int result;

    while ((result = ends->sink->ops->commit(ends->sink, e)) == 0)
        turn(f);
    return result;
}

void commit_well(struct fixture *f, struct ends *ends)
{
    struct error e;

    if (commit(f, ends, &e) != 1)
        fail_msg("%s", e.text);
}

void on_done(void *argument, const char *id, const struct error *e)
{
    struct error *out = argument;

    assert_string_equal(id, ID);
    *out = e != NULL ? *e : (struct error){0};
}

int resolve(struct fixture *f, bool committed, struct error *e)
{
    (void)error_set(e, ERROR_TIMEOUT, "never");
    f->storage.resolve(f->storage.context, ID, committed, on_done, e);
    assert_int_equal(e->code, ERROR_TIMEOUT); /* not from inside */
    stepper_finish(&f->jobs);
    return e->code == ERROR_NONE ? 0 : -1;
}

uint8_t *random_bytes(size_t length, unsigned seed)
{
    uint8_t *bytes = malloc(length);

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
    return bytes;
}

struct folder_request small(void **state)
{
    if (!exists(at(state, "data/in"))) {
        make_folder(at(state, "data/in"));
        for (unsigned d = 0; d < 3; d++)
            make_file(at(state, "data/in/%u", d), "block", 5);
    }
    return (struct folder_request){
        .id = ID, .from = at(state, "data/in"), .to = at(state, "data/out"), .rank = 1, .nodes = 3};
}

void fill(struct fixture *f, struct ends *ends, const struct folder_request *request)
{
    open_well(f, ends, request);
    assert_int_equal(move_block(f, ends, 0, ends, 1, 100), 0);
    assert_int_equal(finish(f, ends), 0);
}

void check_refused(struct fixture *f, const struct folder_request *request, enum error_code code)
{
    struct ends ends;
    unsigned before = entries(f->roots.path[0]), before_state = entries(f->state_folder);

    assert_int_equal(open_ends(f, &ends, request), -1);
    if (ends.failure.code != code)
        fail_msg("code %d, expected %d: %s", ends.failure.code, code, ends.failure.text);
    close_ends(f, &ends, false);
    assert_int_equal(entries(f->roots.path[0]), before); /* nothing is left behind */
    assert_int_equal(entries(f->state_folder), before_state);
}

void note_id(void *argument, const char *id)
{
    (void)strcat(argument, id);
}

void check_in_doubt(struct fixture *f, const char *expected)
{
    char ids[100] = "";
    struct error e;

    assert_int_equal(f->storage.each_in_doubt(f->storage.context, note_id, ids, &e), 0);
    assert_string_equal(ids, expected);
}

void record(struct fixture *f, struct error *e)
{
    f->storage.record_commit(f->storage.context, ID, on_done, e);
    stepper_finish(&f->jobs);
}

void check_committed(struct fixture *f, const char *expected)
{
    char ids[100] = "";
    struct error e;

    assert_int_equal(f->storage.each_committed(f->storage.context, note_id, ids, &e), 0);
    assert_string_equal(ids, expected);
}

struct folder_request many(void **state)
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
