/* Folders without memory, with system calls that fail, and when they are closed. */
#include <errno.h>

#include "daemon/lib/base/log.h"
#include "folders_fixture.h"
#include "tests/support/cmocka.h"

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
