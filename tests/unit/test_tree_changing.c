/* Sources that change while they are copied: files that grow, and files that change otherwise. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copying_fixture.h"
#include "tests/support/cmocka.h"

#define LARGE 700000u /* bytes: digests of such files are asked for */

/* What happens to "data/from/f" between two steps of a copy. */
static char path[FIXTURE_PATH];
static void (*change)(void);

static void make_change(void *argument)
{
    change();
}

static void write_at(off_t offset, const char *bytes)
{
    int file = open(path, O_WRONLY);

    assert_true(file >= 0);
    assert_int_equal(
        pwrite(file, bytes, strlen(bytes), offset >= 0 ? offset : lseek(file, 0, SEEK_END)),
        (ssize_t)strlen(bytes));
    (void)close(file);
}

static void append(void)
{
    write_at(-1, "another line\n");
}

static void append_and_overwrite_begin(void)
{
    write_at(0, "other");
    append();
}

static void append_and_overwrite_what_was_read(void)
{
    write_at(30000, "other"); /* no sample has this */
    append();
}

static void overwrite_one(void)
{
    write_at(10, "other");
}

static void cut(void)
{
    assert_int_equal(truncate(path, 5), 0);
}

static void vanish(void)
{
    assert_int_equal(unlink(path), 0);
}

static void replace_by_longer(void)
{
    vanish();
    random_file(path, 99, 2 * LARGE);
}

/* A tree with a file "f" that changes, and others that do not. */
static void prepare(struct copying *c, void **state, struct how *how, size_t length)
{
    copying_open(c, state);
    *how = (struct how){.from = at(state, "data/from"), .to = at(state, "data/to")};
    make_folder(how->from);
    (void)strcpy(path, at(state, "data/from/f"));
    random_file(path, 1, length);
    random_file(at(state, "data/from/a"), 2, 1000);
    random_file(at(state, "data/from/z"), 3, 1000);
    assert_int_equal(link(path, at(state, "data/from/second")), 0);
}

static void clean_up(struct copying *c, void **state)
{
    copying_close(c);
    assert_int_equal(folder_teardown(state) + folder_setup(state), 0);
}

static uint8_t *contents(const char *name, size_t *length)
{
    int file = open(name, O_RDONLY);
    struct stat st;

    assert_true(file >= 0 && fstat(file, &st) == 0);
    uint8_t *bytes = malloc((size_t)st.st_size + 1);
    assert_int_equal(read(file, bytes, (size_t)st.st_size), st.st_size);
    (void)close(file);
    *length = (size_t)st.st_size;
    return bytes;
}

/* Checks that the copy of "f" is the first bytes of what it is now. */
static void check_beginning(void **state, size_t length)
{
    size_t now, copied;
    uint8_t *of_now = contents(path, &now), *of_copy = contents(at(state, "data/to/f"), &copied);
    struct stat st, second;

    assert_int_equal(copied, length);
    assert_true(now > length);
    assert_memory_equal(of_now, of_copy, length);
    free(of_now);
    free(of_copy);
    assert_int_equal(stat(at(state, "data/to/f"), &st), 0);
    assert_int_equal(stat(at(state, "data/to/second"), &second), 0);
    assert_int_equal(st.st_ino, second.st_ino);
}

/* Where in a copy something happens. */
static void set_moment(struct how *how, unsigned moment)
{
    how->before_read = moment == 0 ? make_change : NULL;
    how->before_check = moment == 1 ? make_change : NULL;
}

FOLDER_TEST(files_that_grow_are_copied_as_they_were_found)
{
    static const size_t length[] = {1, 100, LARGE};

    for (unsigned i = 0; i < 2 * 2 * 3; i++) {
        struct copying c;
        struct how how;
        struct copied result;
        prepare(&c, state, &how, length[i / 4]);
        set_moment(&how, i % 2);
        how.write.checksum = i / 2 % 2 == 1;
        change = append;
        if (copying_run(&c, &how, &result) != 0)
            fail_msg("%u: %s", i, result.error.text);
        check_beginning(state, length[i / 4]);
        /* the rest comes with the next copy, which needs only that */
        how.before_read = how.before_check = NULL;
        assert_int_equal(copying_run(&c, &how, &result), 0);
        check_equal(how.from, how.to);
        if (length[i / 4] == LARGE)
            assert_true(result.moved < LARGE / 2);
        clean_up(&c, state);
    }
}

/* The older version at the target has most of it, so that digests of it were sent before it has grown. */
FOLDER_TEST(files_that_grow_after_their_digests_were_sent)
{
    for (unsigned bad = 0; bad < 2; bad++) {
        struct copying c;
        struct how how;
        struct copied result;
        prepare(&c, state, &how, LARGE);
        assert_int_equal(copying_run(&c, &how, &result), 0);
        write_at(400000, "a change");
        set_moment(&how, 0);
        change = bad == 0 ? append : append_and_overwrite_what_was_read;
        assert_int_equal(copying_run(&c, &how, &result), bad == 0 ? 0 : -1);
        if (bad == 0)
            check_beginning(state, LARGE);
        clean_up(&c, state);
    }
}

FOLDER_TEST(files_that_also_change_otherwise_fail_the_copy)
{
    static void (*const changes[])(void) = {
        append_and_overwrite_begin, append_and_overwrite_what_was_read, overwrite_one, cut, vanish,
        replace_by_longer};

    for (unsigned i = 0; i < 2 * sizeof changes / sizeof *changes; i++) {
        struct copying c;
        struct how how;
        struct copied result;
        prepare(&c, state, &how, LARGE);
        set_moment(&how, i % 2);
        change = changes[i / 2];
        /* bytes that no sample has must have been read to be missed */
        const int expected = change == append_and_overwrite_what_was_read && i % 2 == 0 ? 0 : -1;
        assert_int_equal(copying_run(&c, &how, &result), expected);
        if (expected == -1 &&
            strstr(result.error.text, " was changed while it was being copied") == NULL)
            fail_msg("%u: %s", i, result.error.text);
        assert_int_equal(exists(how.to), expected == 0);
        clean_up(&c, state);
    }
}

/* Nobody knows what a file was like that had not been written to for long. */
FOLDER_TEST(files_that_were_at_rest_do_not_just_grow)
{
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    struct copying c;
    struct how how;
    struct copied result;

    prepare(&c, state, &how, 1000);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    set_moment(&how, 0);
    change = append;
    assert_int_equal(copying_run(&c, &how, &result), -1);
    clean_up(&c, state);
}

/* --- files that are left out --- */

FOLDER_TEST(the_rest_is_copied_if_that_is_asked_for)
{
    static void (*const changes[])(void) = {append_and_overwrite_begin, overwrite_one, cut, vanish,
                                            replace_by_longer};

    for (unsigned i = 0; i < 2 * 2 * sizeof changes / sizeof *changes; i++) {
        struct copying c;
        struct how how;
        struct copied result;
        const bool has_old = i / 2 % 2 == 1;
        prepare(&c, state, &how, LARGE);
        if (has_old) {
            make_folder(how.to);
            make_file(at(state, "data/to/f"), "old", 3);
        }
        set_moment(&how, i % 2);
        how.write.skip_changing = how.write.delete = true;
        change = changes[i / 4];
        if (copying_run(&c, &how, &result) != 0)
            fail_msg("%u: %s", i, result.error.text);
        assert_int_equal(result.changed, 1);
        assert_int_equal(result.report.added, has_old ? 2 : 3);
        assert_int_equal(exists(at(state, "data/to/f")), has_old);
        assert_false(exists(at(state, "data/to/second")));
        if (has_old) {
            size_t length;
            uint8_t *bytes = contents(at(state, "data/to/f"), &length);
            assert_true(length == 3 && memcmp(bytes, "old", 3) == 0);
            free(bytes);
        }
        /* when it is at rest, all is as usual */
        how.before_read = how.before_check = NULL;
        if (change == vanish)
            assert_int_equal(unlink(at(state, "data/from/second")), 0);
        assert_int_equal(copying_run(&c, &how, &result), 0);
        assert_int_equal(result.changed, 0);
        check_equal(how.from, how.to);
        clean_up(&c, state);
    }
}

FOLDER_TEST(a_file_that_grows_is_not_left_out)
{
    struct copying c;
    struct how how;
    struct copied result;

    prepare(&c, state, &how, LARGE);
    set_moment(&how, 0);
    how.write.skip_changing = true;
    change = append;
    assert_int_equal(copying_run(&c, &how, &result), 0);
    assert_int_equal(result.changed, 0);
    check_beginning(state, LARGE);
    clean_up(&c, state);
}

/* What stood for the bytes of a file that had gone is not taken for it when it is back. */
FOLDER_TEST(substitutes_are_not_resumed)
{
    struct copying c;
    struct how how;
    struct copied result;
    char aside[FIXTURE_PATH];

    prepare(&c, state, &how, LARGE);
    (void)strcpy(aside, at(state, "data/aside"));
    set_moment(&how, 0);
    how.write.skip_changing = true;
    how.no_finish = true;
    change = vanish;
    assert_int_equal(unlink(at(state, "data/from/second")), 0);
    assert_int_equal(link(path, aside), 0);
    assert_int_equal(copying_run(&c, &how, &result), 0);
    assert_false(exists(at(state, "data/.to.torus-copy")));
    assert_int_equal(rename(aside, path), 0);
    how = (struct how){.from = how.from, .to = how.to};
    assert_int_equal(copying_run(&c, &how, &result), 0);
    check_equal(how.from, how.to);
    clean_up(&c, state);
}

/* What the reader says may be anything. */
FOLDER_TEST(numbers_of_entries_are_checked)
{
    static const uint64_t number[] = {0, 1, 2, 3, 4, 5, 77, UINT64_MAX};
    struct copying c;
    struct tree_writer *w;
    struct error e;

    copying_open(&c, state);
    const struct tree_write_options options = {
        .id = "test", .path = at(state, "data/to"), .skip_changing = true};
    assert_int_equal(c.store->write_open(c.store->context, &options, &w, &e), 0);
    assert_int_equal(c.store->leave(w, number, 8, &e), -1);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    c.store->write_close(w);
    clean_up(&c, state);
}
