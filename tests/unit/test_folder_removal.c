/* Only outputs that are not committed are removed. */
#include <errno.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "folders_fixture.h"
#include "tests/support/cmocka.h"

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
        assert_int_equal(commit(&f, &ends, &e), -1);
        assert_int_equal(e.code, ERROR_IO);
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
