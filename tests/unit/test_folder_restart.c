/* The knowledge of a daemon after its restart: outputs in doubt, leftovers of a crash, decisions. */
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/disk/journal.h"
#include "folders_fixture.h"
#include "tests/support/cmocka.h"

FOLDER_TEST(an_output_in_doubt_waits_for_its_outcome)
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
        assert_int_equal(resolve(&f, committed == 1, &e), 0); /* the outcome is known already */
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* Somebody changes a complete output before its outcome is known: it is not put in place, and the way out is named. */
FOLDER_TEST(a_changed_output_is_not_put_in_place)
{
    for (unsigned restarted = 0; restarted < 2; restarted++) {
        struct fixture f;
        struct ends ends;
        struct error e = {0};
        open_fixture(&f, state);
        const struct folder_request request = small(state);
        fill(&f, &ends, &request);
        overwrite(at(state, "data/.out.torusd-" ID "-1/0"), 1, "x");
        if (restarted == 0)
            assert_int_equal(commit(&f, &ends, &e), -1);
        close_ends(&f, &ends, true);
        if (restarted == 1) {
            restart(&f);
            assert_int_equal(resolve(&f, true, &e), -1);
        }
        assert_int_equal(e.code, ERROR_DAMAGED);
        assert_contains(e.text, ".out.torusd-" ID "-1 after they had arrived: remove it");
        assert_false(exists(at(state, "data/out")));
        assert_int_equal(unlink(at(state, "data/.out.torusd-" ID "-1/0")) |
                             unlink(at(state, "data/.out.torusd-" ID "-1/1")) |
                             unlink(at(state, "data/.out.torusd-" ID "-1/2")) |
                             rmdir(at(state, "data/.out.torusd-" ID "-1")),
                         0);
        assert_int_equal(resolve(&f, true, &e), 0);
        assert_int_equal(entries(f.state_folder), 0);
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* The target is reserved for the output in doubt: another exchange must wait. */
FOLDER_TEST(an_output_in_doubt_keeps_its_target)
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
        check_refused(&f, &rival, ERROR_BUSY);
        restart(&f);
        check_refused(&f, &rival, ERROR_BUSY);
        assert_int_equal(resolve(&f, committed == 1, &e), 0);
        if (committed == 1) {
            check_refused(&f, &rival, ERROR_REFUSED);
        } else {
            open_well(&f, &ends, &rival);
            close_ends(&f, &ends, false);
        }
        close_fixture(&f);
        assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
    }
}

/* The daemon dies after it has put an output in place, and before it has recorded that. */
FOLDER_TEST(a_crash_after_the_rename_does_no_harm)
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
        /* The root may have forgotten the decision by then, because all nodes had confirmed. */
        assert_success(resolve(&f, committed == 1, &e), e);
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

FOLDER_TEST(what_a_crash_left_unfinished_is_removed)
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

FOLDER_TEST(what_cannot_be_removed_is_tried_again)
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
    /* A data root that is no longer configured. */
    write_entry(&f, state, 0, "data2");
    restart(&f);
    assert_int_equal(entries(f.state_folder), 1);
    close_fixture(&f);
}

FOLDER_TEST(decisions_are_kept_in_the_state_folder)
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

/* Returns whether folders could be opened and listed although one call failed; if so, checks that all records were
 * listed. */
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

/* A root that lost its decisions would answer that they were not made; a node that lost its doubts would assume that
 * they have ended. */
FOLDER_TEST(what_cannot_be_read_at_the_start_is_not_overlooked)
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

FOLDER_TEST(the_last_calibration_is_kept)
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
