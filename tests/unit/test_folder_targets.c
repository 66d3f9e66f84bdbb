/* Where an output may be put: targets that are refused, and obstacles that others make. */
#include <limits.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "folders_fixture.h"
#include "tests/support/cmocka.h"

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
        {"data/file/x", ID, ERROR_IO},    /* nor is the path above it */
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
    assert_int_equal(open_ends(&f, &ends, &request), -1);
    assert_int_equal(ends.failure.code, ERROR_USAGE);
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
        assert_int_equal(commit(&f, &ends, &e), -1);
        assert_int_equal(e.code, ERROR_REFUSED);
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
