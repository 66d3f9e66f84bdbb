/* Files of a source that are missing, that change while they are sent, or that are read again. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folders_fixture.h"
#include "tests/support/cmocka.h"

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
    assert_int_equal(finish(f, ends), -1);
    assert_int_equal(ends->failure.code, ERROR_DAMAGED);
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
    assert_int_equal(ops->reread(ends.source, 2, 4, 1, &bytes, &e), -1);
    assert_int_equal(e.code, ERROR_IO);
    assert_int_equal(ends.failures, 0); /* it is not the exchange that fails of it */
    assert_int_equal(ops->reread(ends.source, 0, 0, 1, &bytes, &e), 0);
    close_ends(&f, &ends, false); /* meanwhile */
    close_fixture(&f);
}
