#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/journal.h"
#include "folder_fixture.h"

static void the_state_folder_is_made(void **state)
{
    struct error e = {0};
    assert_int_equal(journal_open(at(state, "state"), &e), 0);
    assert_int_equal(journal_open(at(state, "state"), &e), 0);
    assert_int_equal(journal_open(at(state, "no/such/place"), &e), -1);
    assert_int_equal(e.code, ERROR_IO);
    make_file(at(state, "file"), "", 0);
    assert_int_equal(journal_open(at(state, "file"), &e), -1);
}

static void entries_are_read_as_they_were_written(void **state)
{
    struct journal_entry in = {.finished = false}, out;
    struct error e;
    /* Paths may hold anything but a zero. */
    (void)snprintf(in.temporary, sizeof in.temporary, "/a/new\nline %%s");
    (void)snprintf(in.final, sizeof in.final, "/a/\xff\x01");
    for (int finished = 0; finished < 2; finished++) {
        in.finished = finished == 1;
        assert_int_equal(journal_write(*state, "3-0000beef-1", &in, &e), 0);
        memset(&out, 0x55, sizeof out);
        assert_int_equal(journal_read(*state, "3-0000beef-1", &out, &e), 0);
        assert_int_equal(out.finished, in.finished);
        assert_string_equal(out.temporary, in.temporary);
        assert_string_equal(out.final, in.final);
    }
    assert_int_equal(entries(*state), 1);
    journal_remove(*state, "3-0000beef-1");
    assert_int_equal(entries(*state), 0);
    assert_int_equal(journal_read(*state, "3-0000beef-1", &out, &e), -1);
    journal_remove(*state, "3-0000beef-1");
}

static void the_longest_paths_fit(void **state)
{
    struct journal_entry in = {.finished = true}, out;
    struct error e;
    memset(in.temporary, 't', sizeof in.temporary - 1);
    memset(in.final, 'f', sizeof in.final - 1);
    assert_int_equal(journal_write(*state, "x", &in, &e), 0);
    assert_int_equal(journal_read(*state, "x", &out, &e), 0);
    assert_string_equal(out.temporary, in.temporary);
    assert_string_equal(out.final, in.final);
}

static void half_an_entry_is_none(void **state)
{
    static const char whole[] = "finished\0/tmp/a\0/tmp/b";
    struct journal_entry out;
    struct error e;
    for (size_t length = 0; length < sizeof whole; length++) {
        make_file(at(state, "exchange-x"), whole, length);
        assert_int_equal(journal_read(*state, "x", &out, &e), -1);
        assert_int_equal(e.code, ERROR_IO);
    }
    make_file(at(state, "exchange-x"), whole, sizeof whole);
    assert_int_equal(journal_read(*state, "x", &out, &e), 0);
    assert_true(out.finished);
}

struct list {
    void **state;
    char text[100];
};

static void note_and_remove(void *context, const char *id)
{
    struct list *list = context;
    (void)strcat(strcat(list->text, id), " ");
    journal_remove(*list->state, id);
}

static void every_entry_is_listed(void **state)
{
    struct journal_entry entry = {.finished = true};
    struct list list = {.state = state};
    struct error e;
    assert_int_equal(journal_write(*state, "1-a-1", &entry, &e), 0);
    assert_int_equal(journal_write(*state, "1-a-2", &entry, &e), 0);
    assert_int_equal(journal_record_commit(*state, "1-a-3", &e), 0); /* is none of them */
    make_file(at(state, ".next-1-a-4"), "x", 1);                     /* nor is half a write */
    journal_each(*state, note_and_remove, &list);
    assert_string_equal(list.text, "1-a-1 1-a-2 ");
    journal_each(*state, note_and_remove, &list);
    assert_string_equal(list.text, "1-a-1 1-a-2 ");
    journal_each("/no/such/folder", note_and_remove, &list);
}

static void decisions_are_remembered_until_they_are_forgotten(void **state)
{
    struct error e;
    assert_false(journal_was_committed(*state, "1-a-1"));
    assert_int_equal(journal_record_commit(*state, "1-a-1", &e), 0);
    assert_int_equal(journal_record_commit(*state, "1-a-12", &e), 0);
    assert_true(journal_was_committed(*state, "1-a-1"));
    assert_true(journal_was_committed(*state, "1-a-12"));
    assert_false(journal_was_committed(*state, "1-a-2"));
    journal_forget_commit(*state, "1-a-1");
    assert_false(journal_was_committed(*state, "1-a-1"));
    assert_true(journal_was_committed(*state, "1-a-12"));
    journal_forget_commit(*state, "1-a-1");
}

static void what_cannot_be_written_is_an_error(void **state)
{
    struct journal_entry entry = {.finished = true};
    struct error e = {0};
    const char *nowhere = at(state, "missing");
    assert_int_equal(journal_write(nowhere, "x", &entry, &e), -1);
    assert_int_equal(e.code, ERROR_IO);
    assert_non_null(strstr(e.text, "No such file"));
    assert_int_equal(journal_record_commit(nowhere, "x", &e), -1);
    assert_false(journal_was_committed(nowhere, "x"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_state_folder_is_made),
        TEST(entries_are_read_as_they_were_written),
        TEST(the_longest_paths_fit),
        TEST(half_an_entry_is_none),
        TEST(every_entry_is_listed),
        TEST(decisions_are_remembered_until_they_are_forgotten),
        TEST(what_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
