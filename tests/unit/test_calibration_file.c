/* The calibration in the state folder: read as written, or reported as damaged. */
#include "daemon/torusd/files/outcomes.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

static const struct calibration good = {
    .id = 7, .version = 3, .measured_at = 1700000000, .costs = {1.0 / 3e5, 1e-5, 5.9e6}};

static struct journal journal;

static int setup(void **state)
{
    struct error e;

    return folder_setup(state) == 0 ? journal_open(&journal, file_system_posix(), *state, &e) : -1;
}

static int teardown(void **state)
{
    journal_close(&journal);
    return folder_teardown(state);
}

TEST_WITH(setup, teardown, it_is_read_as_it_was_written)
{
    const struct calibration taken_back = {.id = 8, .version = 4, .replaced = {7, UINT64_MAX}};
    struct calibration c;
    struct error e;

    assert_int_equal(calibration_file_read(&journal, &c, &e), 0);
    assert_int_equal(calibration_file_write(&journal, &good, &e), 0);
    assert_int_equal(calibration_file_read(&journal, &c, &e), 1);
    assert_false(calibration_newer(&c, &good) || calibration_newer(&good, &c));
    assert_int_equal(calibration_file_write(&journal, &taken_back, &e), 0);
    assert_int_equal(calibration_file_read(&journal, &c, &e), 1);
    assert_int_equal(c.version, 4);
    assert_int_equal(c.measured_at, 0);
    assert_memory_equal(&c, &taken_back, sizeof c);
    assert_int_equal(entries(*state), 1); /* and nothing half-written beside it */
}

TEST_WITH(setup, teardown, every_damage_is_noticed)
{
    static char text[1024];
    struct calibration c;
    struct error e;

    assert_int_equal(calibration_file_write(&journal, &good, &e), 0);
    FILE *f = fopen(at(state, "calibration"), "re");
    size_t length = fread(text, 1, sizeof text, f);
    (void)fclose(f);
    for (size_t cut = 0; cut < length; cut++) {
        make_file(at(state, "calibration"), text, cut);
        assert_int_equal(calibration_file_read(&journal, &c, &e), -1);
    }
    for (size_t i = 0; i < length; i++) {
        char kept = text[i];
        text[i] = (char)(kept ^ 0x40);
        make_file(at(state, "calibration"), text, length);
        assert_int_equal(calibration_file_read(&journal, &c, &e), -1);
        text[i] = kept;
    }
    make_file(at(state, "calibration"), text, length);
    assert_int_equal(calibration_file_read(&journal, &c, &e), 1);
    text[length] = '\n';
    make_file(at(state, "calibration"), text, length + 1);
    assert_int_equal(calibration_file_read(&journal, &c, &e), -1);
}

TEST_WITH(setup, teardown, senseless_numbers_are_refused)
{
    static const char *const numbers[] = {
        "version 0\nmeasured_at 9\nstep_seconds 0\nmessage_seconds 0\nbytes_per_second 1000\n",
        "version 1\nmeasured_at 9\nstep_seconds -1\nmessage_seconds 0\nbytes_per_second 1000\n",
        "version 1\nmeasured_at 9\nstep_seconds nan\nmessage_seconds 0\nbytes_per_second 1000\n",
        "version 1\nmeasured_at 9\nstep_seconds inf\nmessage_seconds 0\nbytes_per_second 1000\n",
        "version 1\nmeasured_at 9\nstep_seconds 0\nmessage_seconds 0\nbytes_per_second 0\n",
        "version 1\nmeasured_at 9\nstep_seconds 0\nmessage_seconds 1000\nbytes_per_second 1000\n",
        "version 1\nmeasured_at 0\nstep_seconds 0\nmessage_seconds 0\nbytes_per_second 1000\n",
    };
    struct calibration c;
    struct error e;
    char text[400];

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)snprintf(text, sizeof text, "id 0000000000000001\n%sreplaced\n", numbers[i]);
        make_file(at(state, "calibration"), text, strlen(text));
        assert_int_equal(calibration_file_read(&journal, &c, &e), -1);
    }
}

/* Files as editors on other systems write them; the error names an encoding that is not accepted. */
TEST_WITH(setup, teardown, marks_and_line_ends_of_editors_are_no_part_of_it)
{
    static const char text[] = "\xef\xbb\xbfid 0000000000000001\r\nversion 1\r\nmeasured_at 9\r\n"
                               "step_seconds 0\r\nmessage_seconds 0\r\nbytes_per_second 1000\r\n"
                               "replaced\r\n";
    struct calibration c;
    struct error e;

    make_file(at(state, "calibration"), text, sizeof text - 1);
    if (calibration_file_read(&journal, &c, &e) != 1)
        fail_msg("%s", e.text);
    assert_int_equal(c.measured_at, 9);
    make_file(at(state, "calibration"), "\xff\xfei\0d\0", 6);
    assert_int_equal(calibration_file_read(&journal, &c, &e), -1);
    assert_contains(e.text, "/calibration: this is UTF-16");
    make_file(at(state, "calibration"), text + 3, 40);
    assert_int_equal(calibration_file_read(&journal, &c, &e), -1);
    assert_contains(e.text, "/calibration is damaged: remove it");
}

TEST_WITH(setup, teardown, a_folder_in_its_place_is_an_error)
{
    struct calibration c;
    struct error e;

    make_folder(at(state, "calibration"));
    assert_int_equal(calibration_file_read(&journal, &c, &e), -1);
    assert_fails(calibration_file_write(&journal, &good, &e), e, ERROR_IO, "");
}
