/* Folders as sources and sinks, on a real loop in a temporary folder. */
#include <fcntl.h>
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
#include "daemon/files/folders.h"
#include "daemon/files/journal.h"
#include "folder_fixture.h"

#define ID "0-0000beef-1"
#define OTHER_ID "0-0000beef-2"

struct fixture {
    uv_loop_t loop;
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
    unsigned wakes;
    struct error failure;
};

static void on_wake(void *context)
{
    ((struct ends *)context)->wakes++;
}

static void on_failed(void *context, const struct error *e)
{
    ((struct ends *)context)->failure = *e;
}

static void start(struct fixture *f)
{
    struct error e;

    if (folders_init(&f->folders, &f->storage, &e) != 0)
        fail_msg("%s", e.text);
}

static void open_fixture(struct fixture *f, void **state)
{
    struct error e;

    log_set_level(LOG_LEVEL_ERROR);
    *f = (struct fixture){0};
    assert_int_equal(uv_loop_init(&f->loop), 0);
    slab_pool_init(&f->pool, 0);
    make_folder(at(state, "data"));
    assert_int_equal(roots_add(&f->roots, at(state, "data"), &e), 0);
    (void)snprintf(f->state_folder, sizeof f->state_folder, "%s", at(state, "state"));
    f->folders = (struct folders){&f->loop, &f->pool, &f->roots, f->state_folder};
    start(f);
}

/* Nothing may be left behind: no buffer, no handle, no entry. */
static void close_fixture(struct fixture *f)
{
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    assert_int_equal(slab_pool_close(&f->pool), 0);
    roots_free(&f->roots);
}

static int open_ends(struct fixture *f, struct ends *ends, const struct folder_request *request,
                     struct error *e)
{
    const struct block_events events = {ends, on_wake, on_failed};

    *ends = (struct ends){0};
    return f->storage.open_folders(f->storage.context, request, &events, &ends->source, &ends->sink,
                                   e);
}

static void close_ends(struct ends *ends, bool keep)
{
    ends->source->ops->close(ends->source);
    ends->sink->ops->close(ends->sink, keep);
}

static void turn(struct fixture *f)
{
    (void)uv_run(&f->loop, UV_RUN_ONCE);
}

/* Moves block (from, to), flipping one bit of byte `flip` (UINT64_MAX: none). */
static void move_block(struct fixture *f, struct ends *from, uint32_t origin, struct ends *to,
                       uint32_t destination, uint32_t most, uint64_t flip)
{
    uint64_t size = from->source->ops->size(from->source, destination), done = 0;
    struct extent piece;
    struct error e;

    while (done < size) {
        uint32_t want = size - done < most ? (uint32_t)(size - done) : most;
        int result = from->source->ops->read(from->source, destination, done, want, &piece, &e);
        assert_int_equal(from->failure.code, ERROR_NONE);
        if (result < 0)
            fail_msg("%s", e.text);
        if (result == 0) {
            turn(f);
            continue;
        }
        assert_in_range(piece.length, 1, want);
        if (flip >= done && flip < done + piece.length)
            ((uint8_t *)(uintptr_t)piece.data)[flip - done] ^= 1;
        if (to->sink->ops->write(to->sink, origin, done, &piece, &e) != 0)
            fail_msg("%s", e.text);
        done += piece.length;
        slab_unref(piece.slab);
    }
}

static void finish(struct fixture *f, struct ends *ends)
{
    while (ends->sink->ops->pending(ends->sink) > 0)
        turn(f);
    while (!ends->sink->ops->finish(ends->sink)) {
        assert_int_equal(ends->failure.code, ERROR_NONE);
        turn(f);
    }
}

static uint8_t *random_bytes(size_t length, unsigned seed)
{
    uint8_t *bytes = malloc(length);

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
    return bytes;
}

static const size_t sizes[2][2] = {{10, 700001}, {0, 131072}};

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

static void exchange(void **state, uint32_t most, uint64_t flip)
{
    struct fixture f;
    struct ends node[2];
    struct error e;
    uint64_t sent = 0, delivered = 0;

    open_fixture(&f, state);
    make_sources(state);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const struct folder_request request = {.id = ID,
                                               .from = at(state, "data/in%%r"),
                                               .to = at(state, "data/new/out%%r"),
                                               .rank = rank,
                                               .nodes = 2};
        if (open_ends(&f, &node[rank], &request, &e) != 0)
            fail_msg("%s", e.text);
    }
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t d = 0; d < 2; d++) {
            assert_int_equal(node[s].source->ops->size(node[s].source, d), sizes[s][d]);
            move_block(&f, &node[s], s, &node[d], d, most, s == 0 && d == 1 ? flip : UINT64_MAX);
        }
    for (uint32_t rank = 0; rank < 2; rank++) {
        finish(&f, &node[rank]);
        delivered += node[rank].sink->ops->digest(node[rank].sink);
        assert_int_equal(node[rank].source->ops->check(node[rank].source, &sent, &e), 0);
        assert_false(exists(at(state, "data/new/out%u", rank)));
    }
    assert_int_equal(sent == delivered, flip == UINT64_MAX);
    for (uint32_t rank = 0; rank < 2; rank++) {
        if (node[rank].sink->ops->commit(node[rank].sink, &e) != 0)
            fail_msg("%s", e.text);
        close_ends(&node[rank], false);
    }
    assert_int_equal(entries(at(state, "data/new")), 2); /* no temporary folder is left */
    assert_int_equal(entries(f.state_folder), 0);
    for (unsigned s = 0; s < 2 && flip == UINT64_MAX; s++)
        for (unsigned d = 0; d < 2; d++) {
            uint8_t *bytes = random_bytes(sizes[s][d], 2 * s + d);
            check_file(at(state, "data/new/out%u/%u", d, s), bytes, sizes[s][d]);
            free(bytes);
        }
    close_fixture(&f);
}

static void files_arrive_as_they_were(void **state)
{
    exchange(state, 65536, UINT64_MAX);
}

static void files_arrive_in_small_pieces_too(void **state)
{
    exchange(state, 4099, UINT64_MAX);
}

static void a_flipped_bit_changes_the_digest(void **state)
{
    exchange(state, 65536, 700000);
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

static void check_refused(struct fixture *f, const struct folder_request *request,
                          enum error_code code, const char *text)
{
    struct ends ends;
    struct error e = {0};
    unsigned before = entries(f->roots.path[0]);

    assert_int_equal(open_ends(f, &ends, request, &e), -1);
    assert_int_equal(e.code, code);
    if (strstr(e.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, e.text);
    assert_int_equal(entries(f->roots.path[0]), before); /* nothing is left behind */
}

static void a_missing_file_is_refused_or_empty(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    open_fixture(&f, state);
    struct folder_request request = small(state);
    assert_int_equal(unlink(at(state, "data/in/2")), 0);
    check_refused(&f, &request, ERROR_REFUSED, "data/in/2 (the block for node 2); --missing-ok");
    request.missing_ok = true;
    assert_int_equal(open_ends(&f, &ends, &request, &e), 0);
    assert_int_equal(ends.source->ops->size(ends.source, 2), 0);
    assert_int_equal(ends.source->ops->size(ends.source, 1), 5);
    close_ends(&ends, false);
    assert_int_equal(symlink("/etc/hostname", at(state, "data/in/2")), 0);
    check_refused(&f, &request, ERROR_REFUSED, "is not below the configured data_roots");
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}

static void a_file_that_shrinks_is_noticed(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    struct extent piece;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    assert_int_equal(open_ends(&f, &ends, &request, &e), 0);
    assert_int_equal(truncate(at(state, "data/in/2"), 4), 0);
    assert_int_equal(ends.source->ops->read(ends.source, 2, 0, 5, &piece, &e), 0);
    while (ends.failure.code == ERROR_NONE)
        turn(&f);
    assert_non_null(strstr(ends.failure.text, "data/in/2: has become shorter"));
    close_ends(&ends, false);
    close_fixture(&f);
}

static void a_file_that_changes_is_noticed(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    uint64_t digest = 0;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    assert_int_equal(open_ends(&f, &ends, &request, &e), 0);
    assert_int_equal(ends.source->ops->check(ends.source, &digest, &e), 0);
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, at(state, "data/in/0"), times, 0), 0);
    assert_int_equal(ends.source->ops->check(ends.source, &digest, &e), -1);
    assert_int_equal(e.code, ERROR_DAMAGED);
    assert_non_null(strstr(e.text, "data/in/0 was changed while it was being sent"));
    close_ends(&ends, false);
    close_fixture(&f);
}

static void a_target_must_be_free(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    make_folder(at(state, "data/out"));
    make_file(at(state, "data/out/thing"), "x", 1);
    check_refused(&f, &request, ERROR_REFUSED, "exists and is not empty");
    assert_int_equal(unlink(at(state, "data/out/thing")), 0);
    assert_int_equal(open_ends(&f, &ends, &request, &e), 0); /* an empty folder will do */
    finish(&f, &ends);
    assert_int_equal(ends.sink->ops->commit(ends.sink, &e), 0);
    close_ends(&ends, false);
    assert_int_equal(entries(at(state, "data/out")), 3);
    check_file(at(state, "data/out/2"), "", 0); /* nothing came: an empty file */
    struct folder_request other = request;
    make_file(at(state, "data/file"), "x", 1);
    other.to = at(state, "data/file");
    check_refused(&f, &other, ERROR_REFUSED, "is not a folder");
    assert_int_equal(symlink(at(state, "data"), at(state, "data/link")), 0);
    other.to = at(state, "data/link");
    check_refused(&f, &other, ERROR_REFUSED, "is not a folder");
    other.to = at(state, "elsewhere");
    check_refused(&f, &other, ERROR_REFUSED, "is not below");
    other.to = at(state, "data/%%x");
    check_refused(&f, &other, ERROR_USAGE, "%");
    close_fixture(&f);
}

static void rivals_for_a_target_are_refused(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    struct folder_request rival = request;
    /* What another daemon left when it crashed is no rival. */
    make_folder(at(state, "data/.out.torusd-9-0000beef-9-4"));
    assert_int_equal(open_ends(&f, &ends, &request, &e), 0);
    rival.rank = 2;
    check_refused(&f, &rival, ERROR_REFUSED, "is another node's target too");
    rival = request;
    rival.id = OTHER_ID;
    check_refused(&f, &rival, ERROR_REFUSED, "another exchange is writing to target");
    close_ends(&ends, false);
    assert_int_equal(open_ends(&f, &ends, &rival, &e), 0);
    close_ends(&ends, false);
    assert_int_equal(entries(f.state_folder), 0);
    close_fixture(&f);
}

static void what_is_not_committed_is_removed(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    open_fixture(&f, state);
    struct folder_request request = small(state);
    request.to = at(state, "data/x/y/out");
    for (int stage = 0; stage < 4; stage++) {
        assert_int_equal(open_ends(&f, &ends, &request, &e), 0);
        assert_true(exists(at(state, "data/x/y")));
        if (stage >= 1)
            move_block(&f, &ends, 1, &ends, 1, 2, UINT64_MAX); /* writes are under way */
        if (stage == 2)
            (void)ends.sink->ops->finish(ends.sink); /* maybe too early, maybe syncing */
        if (stage == 3)
            finish(&f, &ends);
        close_ends(&ends, false);
        (void)uv_run(&f.loop, UV_RUN_DEFAULT);
        assert_false(exists(at(state, "data/x")));
        assert_int_equal(entries(f.state_folder), 0);
    }
    close_fixture(&f);
}

static void note_id(void *argument, const char *id)
{
    (void)strcat(argument, id);
}

static void an_output_in_doubt_waits_for_its_outcome(void **state)
{
    for (int committed = 0; committed < 2; committed++) {
        struct fixture f;
        struct ends ends;
        struct error e;
        char ids[100] = "";
        open_fixture(&f, state);
        const struct folder_request request = small(state);
        assert_int_equal(open_ends(&f, &ends, &request, &e), 0);
        move_block(&f, &ends, 0, &ends, 1, 100, UINT64_MAX);
        finish(&f, &ends);
        close_ends(&ends, true);
        start(&f); /* survives a start, too */
        f.storage.each_in_doubt(f.storage.context, note_id, ids);
        assert_string_equal(ids, ID);
        assert_int_equal(f.storage.resolve(f.storage.context, ID, committed == 1, &e), 0);
        assert_int_equal(entries(f.state_folder), 0);
        if (committed == 1)
            check_file(at(state, "data/out/0"), "block", 5);
        assert_int_equal(entries(at(state, "data")), committed == 1 ? 2 : 1);
        close_fixture(&f);
        if (committed == 0)
            assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* The daemon dies after it has put an output in place, and before it has noted that. */
static void a_crash_after_the_rename_does_no_harm(void **state)
{
    for (int committed = 0; committed < 2; committed++) {
        struct fixture f;
        struct journal_entry entry = {.finished = true};
        struct error e = {0};
        open_fixture(&f, state);
        (void)small(state);
        (void)snprintf(entry.temporary, sizeof entry.temporary, "%s",
                       at(state, "data/.out.torusd-%s-1", ID));
        (void)snprintf(entry.final, sizeof entry.final, "%s", at(state, "data/out"));
        assert_int_equal(journal_write(f.state_folder, ID, &entry, &e), 0);
        make_folder(at(state, "data/out"));
        make_file(at(state, "data/out/0"), "block", 5);
        start(&f);
        /* Its root may have forgotten the decision by then: all had confirmed. */
        if (f.storage.resolve(f.storage.context, ID, committed == 1, &e) != 0)
            fail_msg("%s", e.text);
        check_file(at(state, "data/out/0"), "block", 5);
        assert_int_equal(entries(f.state_folder), 0);
        close_fixture(&f);
        if (committed == 0)
            assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

static void what_a_crash_left_unfinished_is_removed(void **state)
{
    struct fixture f;
    struct journal_entry entry = {.finished = false};
    struct error e;
    char ids[100] = "";
    open_fixture(&f, state);
    (void)snprintf(entry.temporary, sizeof entry.temporary, "%s", at(state, "data/.tmp"));
    (void)snprintf(entry.final, sizeof entry.final, "%s", at(state, "data/out"));
    make_folder(at(state, "data/.tmp"));
    make_file(at(state, "data/.tmp/0"), "half", 4);
    assert_int_equal(journal_write(f.state_folder, ID, &entry, &e), 0);
    make_file(at(state, "state/exchange-%s", OTHER_ID), "nonsense", 8);
    start(&f);
    assert_false(exists(at(state, "data/.tmp")));
    assert_int_equal(entries(f.state_folder), 0);
    f.storage.each_in_doubt(f.storage.context, note_id, ids);
    assert_string_equal(ids, "");
    close_fixture(&f);
}

/* Between prepare and commit somebody else has put something there. */
static void an_output_that_cannot_be_put_in_place_is_kept(void **state)
{
    struct fixture f;
    struct ends ends;
    struct error e;
    open_fixture(&f, state);
    const struct folder_request request = small(state);
    assert_int_equal(open_ends(&f, &ends, &request, &e), 0);
    move_block(&f, &ends, 0, &ends, 1, 100, UINT64_MAX);
    finish(&f, &ends);
    make_folder(at(state, "data/out"));
    make_file(at(state, "data/out/thing"), "x", 1);
    assert_int_equal(ends.sink->ops->commit(ends.sink, &e), -1);
    assert_int_equal(e.code, ERROR_IO);
    close_ends(&ends, false);
    check_file(at(state, "data/.out.torusd-%s-1/0", ID), "block", 5);
    check_file(at(state, "data/out/thing"), "x", 1);
    assert_int_equal(entries(at(state, "data/out")), 1);
    close_fixture(&f);
}

static void decisions_are_kept_in_the_state_folder(void **state)
{
    struct fixture f;
    struct error e;
    open_fixture(&f, state);
    assert_false(f.storage.was_committed(f.storage.context, ID));
    assert_int_equal(f.storage.record_commit(f.storage.context, ID, &e), 0);
    start(&f);
    assert_true(f.storage.was_committed(f.storage.context, ID));
    f.storage.forget_commit(f.storage.context, ID);
    assert_false(f.storage.was_committed(f.storage.context, ID));
    close_fixture(&f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_arrive_as_they_were),
        TEST(files_arrive_in_small_pieces_too),
        TEST(a_flipped_bit_changes_the_digest),
        TEST(a_missing_file_is_refused_or_empty),
        TEST(a_file_that_shrinks_is_noticed),
        TEST(a_file_that_changes_is_noticed),
        TEST(a_target_must_be_free),
        TEST(rivals_for_a_target_are_refused),
        TEST(what_is_not_committed_is_removed),
        TEST(an_output_in_doubt_waits_for_its_outcome),
        TEST(a_crash_after_the_rename_does_no_harm),
        TEST(what_a_crash_left_unfinished_is_removed),
        TEST(an_output_that_cannot_be_put_in_place_is_kept),
        TEST(decisions_are_kept_in_the_state_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
