#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/disk/journal.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

static struct journal open_journal(void **state)
{
    struct journal j;
    struct error e;
    assert_success(journal_open(&j, file_system_posix(), *state, &e), e);
    return j;
}

FOLDER_TEST(the_state_folder_is_made_and_locked)
{
    struct journal j, second;
    struct error e = {0};
    const struct file_system *files = file_system_posix();
    assert_int_equal(journal_open(&j, files, at(state, "state"), &e), 0);
    struct stat st;
    assert_int_equal(stat(at(state, "state"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(entries(at(state, "state")), 0);
    assert_int_equal(journal_open(&second, files, at(state, "state"), &e), -1);
    assert_contains(e.text, "another daemon uses state folder");
    assert_contains(e.text, "--state-dir");
    journal_close(&j);
    assert_int_equal(journal_open(&j, files, at(state, "state"), &e), 0);
    journal_close(&j);
    assert_fails(journal_open(&j, files, at(state, "no/such/place"), &e), e, ERROR_IO, "");
    make_file(at(state, "file"), "", 0);
    assert_int_equal(journal_open(&j, files, at(state, "file"), &e), -1);
}

FOLDER_TEST(what_was_half_written_is_removed)
{
    make_file(at(state, ".next-exchange-1-a-4"), "x", 1);
    make_file(at(state, ".next-calibration"), "x", 1);
    make_file(at(state, "other"), "x", 1);
    struct journal j = open_journal(state);
    assert_int_equal(entries(*state), 1);
    journal_close(&j);
}

FOLDER_TEST(entries_are_read_as_they_were_written)
{
    struct journal_entry in = {.made = 3}, out;
    struct error e;
    struct journal j = open_journal(state);
    /* Names may contain any byte except zero, and some also "/". */
    (void)snprintf(in.folder, sizeof in.folder, "/a/new\nline %%s");
    (void)snprintf(in.temporary, sizeof in.temporary, ".\xff\x01");
    (void)snprintf(in.final, sizeof in.final, "\xff\x01");
    for (int finished = 0; finished < 2; finished++) {
        in.finished = finished == 1;
        assert_int_equal(journal_write(&j, "3-0000beef-1", &in, &e), 0);
        memset(&out, 0x55, sizeof out);
        assert_int_equal(journal_read(&j, "3-0000beef-1", &out, &e), 0);
        assert_int_equal(out.finished, in.finished);
        assert_int_equal(out.made, 3);
        assert_string_equal(out.folder, in.folder);
        assert_string_equal(out.temporary, in.temporary);
        assert_string_equal(out.final, in.final);
    }
    assert_int_equal(entries(*state), 1);
    journal_remove(&j, "3-0000beef-1");
    assert_int_equal(entries(*state), 0);
    assert_fails(journal_read(&j, "3-0000beef-1", &out, &e), e, ERROR_NONE,
                 ""); /* just not there */
    journal_remove(&j, "3-0000beef-1");
    journal_close(&j);
}

/* Entries tell whether files are the same; those of earlier releases do not. */
FOLDER_TEST(entries_say_what_ties_them_to_files)
{
    static const char old[] = "finished\0"
                              "2\0/tmp\0.b\0b\0"
                              "17\0"
                              "18";
    struct journal_entry in = {.finished = true, .contents = UINT64_MAX}, out;
    struct error e;
    struct journal j = open_journal(state);
    (void)strcpy(in.folder, "/tmp");
    for (unsigned replaces = 0; replaces < 2; replaces++) {
        in.replaces = replaces == 1;
        in.new_number = in.replaces ? 17 : 0;
        in.old_number = in.replaces ? 18 : 0;
        assert_int_equal(journal_write(&j, "x", &in, &e), 0);
        assert_int_equal(journal_read(&j, "x", &out, &e), 0);
        assert_true(out.contents == UINT64_MAX && out.replaces == in.replaces);
        assert_int_equal(out.new_number, in.new_number);
        assert_int_equal(out.old_number, in.old_number);
        make_file(at(state, "exchange-x"), old, replaces == 1 ? sizeof old : sizeof old - 6);
        assert_int_equal(journal_read(&j, "x", &out, &e), 0);
        assert_true(out.finished && out.contents == 0 && out.replaces == in.replaces);
        assert_int_equal(out.old_number, in.old_number);
    }
    journal_close(&j);
}

FOLDER_TEST(the_longest_names_fit)
{
    struct journal_entry in = {.finished = true, .made = 4095}, out;
    struct error e;
    struct journal j = open_journal(state);
    memset(in.folder, 'd', sizeof in.folder - 1);
    memset(in.temporary, 't', sizeof in.temporary - 1);
    memset(in.final, 'f', sizeof in.final - 1);
    assert_int_equal(journal_write(&j, "x", &in, &e), 0);
    assert_int_equal(journal_read(&j, "x", &out, &e), 0);
    assert_string_equal(out.folder, in.folder);
    assert_string_equal(out.temporary, in.temporary);
    assert_string_equal(out.final, in.final);
    journal_close(&j);
}

FOLDER_TEST(a_damaged_entry_is_refused)
{
    static const char whole[] = "finished\0"
                                "0\0/tmp\0.b\0b";
    static const char outside[] = "finished\0"
                                  "0\0/tmp\0../b\0b";
    struct journal_entry out;
    struct error e;
    struct journal j = open_journal(state);
    for (size_t length = 0; length < sizeof whole; length++) {
        make_file(at(state, "exchange-x"), whole, length);
        assert_fails(journal_read(&j, "x", &out, &e), e, ERROR_DAMAGED, "");
    }
    make_file(at(state, "exchange-x"), outside, sizeof outside);
    assert_int_equal(journal_read(&j, "x", &out, &e), -1);
    make_file(at(state, "exchange-x"), whole, sizeof whole);
    assert_int_equal(journal_read(&j, "x", &out, &e), 0);
    assert_true(out.finished);
    journal_close(&j);
}

/* Links and folders in the place of files are named, and say nothing about outcomes. */
FOLDER_TEST(links_and_folders_are_named)
{
    struct journal_entry out;
    struct error e;
    struct journal j = open_journal(state);
    for (unsigned link = 0; link < 2; link++) {
        const char *path = at(state, "exchange-%u", link);
        assert_int_equal(link == 1 ? symlink("/dev/null", path) : mkdir(path, 0700), 0);
        assert_fails(journal_read(&j, link == 1 ? "1" : "0", &out, &e), e, ERROR_IO,
                     link == 1 ? "/exchange-1 is a symbolic link, " : "/exchange-0 is a folder, ");
        assert_contains(e.text, "remove it, and start torusd again");
    }
    journal_close(&j);
}

FOLDER_TEST(an_id_must_be_fit_for_a_file_name)
{
    static const char *const bad[] = {"", "../x", "a/b", "a b", "1\n"};
    struct journal_entry entry = {.finished = true};
    struct error e;
    struct journal j = open_journal(state);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_fails(journal_write(&j, bad[i], &entry, &e), e, ERROR_PROTOCOL, "");
        assert_fails(journal_record_commit(&j, bad[i], &e), e, ERROR_PROTOCOL, "");
    }
    assert_int_equal(entries(*state), 0);
    journal_close(&j);
}

struct list {
    struct journal *journal;
    char text[100];
};

static void note(void *context, const char *id)
{
    struct list *list = context;
    (void)strcat(strcat(list->text, id), " ");
}

static void note_and_remove(void *context, const char *id)
{
    note(context, id);
    journal_remove(((struct list *)context)->journal, id);
}

FOLDER_TEST(every_entry_is_listed)
{
    struct journal_entry entry = {.finished = true};
    struct journal j = open_journal(state);
    struct list list = {.journal = &j};
    struct error e;
    assert_int_equal(journal_write(&j, "1-a-2", &entry, &e), 0);
    assert_int_equal(journal_write(&j, "1-a-1", &entry, &e), 0);
    assert_int_equal(journal_record_commit(&j, "1-a-3", &e), 0); /* is none of them */
    make_file(at(state, ".next-1-a-4"), "x", 1);                 /* nor is half a write */
    assert_int_equal(journal_each(&j, note_and_remove, &list, &e), 0);
    assert_string_equal(list.text, "1-a-1 1-a-2 ");
    assert_int_equal(journal_each(&j, note_and_remove, &list, &e), 0);
    assert_string_equal(list.text, "1-a-1 1-a-2 ");
    journal_close(&j);
}

static void check_decisions(struct journal *j, const char *expected)
{
    struct list list = {0};
    struct error e;
    assert_int_equal(journal_each_committed(j, note, &list, &e), 0);
    assert_string_equal(list.text, expected);
}

FOLDER_TEST(decisions_are_remembered_until_they_are_forgotten)
{
    struct error e;
    struct journal j = open_journal(state);
    check_decisions(&j, "");
    assert_int_equal(journal_record_commit(&j, "1-a-1", &e), 0);
    assert_int_equal(journal_record_commit(&j, "1-a-12", &e), 0);
    journal_close(&j);
    j = open_journal(state);
    check_decisions(&j, "1-a-1 1-a-12 ");
    journal_forget_commit(&j, "1-a-1");
    check_decisions(&j, "1-a-12 ");
    journal_forget_commit(&j, "1-a-1");
    journal_close(&j);
}

/* Each system call fails once: the decision is on record if and only if success was reported. */
FOLDER_TEST(a_decision_that_cannot_be_recorded_is_not_found_later)
{
    struct faulty_files f;
    struct journal j;
    struct error e;
    unsigned failures = 0;
    faulty_files_init(&f);
    assert_int_equal(journal_open(&j, &f.files, *state, &e), 0);
    for (long call = 0;; call++) {
        f.left = call;
        f.failed = false;
        int result = journal_record_commit(&j, "1-a-1", &e);
        bool failed = f.failed;
        f.left = -1;
        assert_int_equal(result, failed ? -1 : 0);
        check_decisions(&j, result == 0 ? "1-a-1 " : "");
        assert_int_equal(entries(*state), result == 0 ? 1 : 0);
        if (!failed)
            break;
        assert_int_equal(e.code, ERROR_IO);
        assert_contains(e.text, "Input/output error");
        failures++;
    }
    assert_int_equal(failures, 4); /* create, sync, rename, sync of the folder */
    journal_close(&j);
    assert_int_equal(f.open, 0);
}

static void note_path(void *context, const char *path)
{
    (void)strcat(strcat(context, path), " ");
}

static bool is_there(const void *context)
{
    return *(const bool *)context;
}

/* Targets of copies are listed; an entry that is cut off is removed, one that cannot be read now stays. */
FOLDER_TEST(targets_of_copies_are_listed)
{
    static const bool no = false, yes = true;
    char path[PATH_MAX], list[100] = "";
    struct journal copies;
    struct error e;

    for (unsigned i = 0; i < 2; i++) { /* it is made, or is there */
        assert_success(journal_open_copies(&copies, path, *state, &e), e);
        assert_success(journal_each_copy(&copies, note_path, list, &e), e);
        assert_string_equal(list, "");
        if (i == 0)
            journal_close(&copies);
    }
    journal_remove_copy(&copies, "/a", is_there, &no);
    assert_success(journal_add_copy(&copies, "/a", false, &e), e);
    assert_success(journal_add_copy(&copies, "/b", true, &e), e);
    assert_success(journal_add_copy(&copies, "/a", false, &e), e);
    log_set_level(LOG_LEVEL_ERROR);
    make_file(at(state, "copies/1234"), "/c", 2);
    assert_int_equal(symlink("/nothing", at(state, "copies/5678")), 0);
    assert_int_equal(entries(at(state, "copies")), 4);
    assert_success(journal_each_copy(&copies, note_path, list, &e), e);
    assert_true(strcmp(list, "/a /b ") == 0 || strcmp(list, "/b /a ") == 0);
    assert_int_equal(entries(at(state, "copies")), 3);
    journal_remove_copy(&copies, "/a", is_there, &yes);
    assert_int_equal(entries(at(state, "copies")), 3);
    journal_remove_copy(&copies, "/a", is_there, &no);
    list[0] = '\0';
    assert_success(journal_each_copy(&copies, note_path, list, &e), e);
    assert_string_equal(list, "/b ");
    journal_close(&copies);
}
