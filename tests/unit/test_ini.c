/* Lines of INI files, as the function that gets them sees them. */
#include "folder_fixture.h"
#include "proto/ini.h"
#include "tests/support/cmocka.h"

static const struct text_kind kind = {.name = "a test", .most = 64u << 10};

struct seen {
    char text[1024];
    const char *refused; /* the name of the setting that is */
};

static int note(void *context, const struct ini_line *line, struct error *e)
{
    struct seen *seen = context;
    size_t used = strlen(seen->text);

    if (line->name == NULL)
        (void)snprintf(seen->text + used, sizeof seen->text - used, "%u[%s]", line->number,
                       line->section);
    else
        (void)snprintf(seen->text + used, sizeof seen->text - used, "%u(%s|%s|%s)", line->number,
                       line->section, line->name, line->value);
    if (seen->refused != NULL && line->name != NULL && strcmp(line->name, seen->refused) == 0)
        return error_set(e, ERROR_BUSY, "not this one");
    return 0;
}

static int read_text(void **state, const char *text, struct seen *seen, struct error *e)
{
    make_file(at(state, "file"), text, strlen(text));
    seen->text[0] = '\0';
    return ini_read(at(state, "file"), &kind, note, seen, e);
}

static void check_lines(void **state, const char *text, const char *expected)
{
    struct seen seen = {0};
    struct error e;

    assert_success(read_text(state, text, &seen, &e), e);
    assert_string_equal(seen.text, expected);
}

static void check_refused(void **state, const char *text, unsigned line, const char *why)
{
    struct seen seen = {.refused = "{\"schedule\""};
    struct error e;
    char expected[FIXTURE_PATH + 200];

    assert_fails(read_text(state, text, &seen, &e), e, ERROR_USAGE, "");
    (void)snprintf(expected, sizeof expected, "%s:%u: %s", at(state, "file"), line, why);
    assert_string_equal(e.text, expected);
}

FOLDER_TEST(every_line_is_told_with_its_number)
{
    check_lines(state, "", "");
    check_lines(state, "\n\n", "");
    check_lines(state, "a=1\n[s]\nb = 2\n\n; c\n# d\nc : 3", "1(|a|1)2[s]3(s|b|2)7(s|c|3)");
    check_lines(state, "[s]\na = 1\n[t]\n[s]\na=2\n", "1[s]2(s|a|1)3[t]4[s]5(s|a|2)");
}

FOLDER_TEST(blanks_at_both_ends_mean_nothing)
{
    check_lines(state, " \t[ s ] \n\ta\t=\t1 2\t\n   b=\n", "1[s]2(s|a|1 2)3(s|b|)");
    check_lines(state, "[s]\r\na = 1\r\n\r\nb = 2\r\n", "1[s]2(s|a|1)4(s|b|2)");
    check_lines(state, "\xef\xbb\xbf[s]\n", "1[s]");
    check_lines(state, "  a = 1\n    b = 2\n", "1(|a|1)2(|b|2)");
}

FOLDER_TEST(comments_begin_behind_a_blank)
{
    check_lines(state, "[s];c\na = 1;2 ;3\nb = ;\nc=;4\n  ; d\n  # e\nf = 1 # 2\n",
                "1[s]2(s|a|1;2)3(s|b|)4(s|c|)7(s|f|1 # 2)");
    check_lines(state, "a = b = c: d\n", "1(|a|b = c: d)");
}

FOLDER_TEST(what_is_not_a_line_is_refused_with_its_number)
{
    check_refused(state, "[s]\n\nnothing\n", 3, "neither \"name = value\" nor \"[section]\"");
    check_refused(state, "[s]\na = 1\n  and 2\n", 3, "neither \"name = value\" nor \"[section]\"");
    check_refused(state, "[s]\na ;= 1\n", 2, "neither \"name = value\" nor \"[section]\"");
    check_refused(state, "a=1\n[s\n", 2, "\"[s\" has no \"]\"");
    check_refused(state, "[s] t\n", 1, "\"t\" follows a section's \"]\"");
    check_refused(state, "[s]\na = 1\rb = 2\n", 2,
                  "a carriage return inside the line: lines must end with LF or CR LF");
}

FOLDER_TEST(a_file_of_another_format_is_named)
{
    check_refused(state, "\n{\"schedule\":1}\n", 2,
                  "this is a schedule in torusd's format, not a test");
    check_refused(state, "num_ranks 3\n", 1, "this is a GOAL schedule, not a test");
    check_refused(state, "<svg>\n", 1, "this is an SVG picture, not a test");
    check_refused(state, "[\n{}]\n", 1, "this is a JSON array, not a test");
    check_refused(state, "a = 1\n{}\n", 2, "neither \"name = value\" nor \"[section]\"");
}

FOLDER_TEST(a_refusal_ends_the_reading)
{
    struct seen seen = {.refused = "b"};
    struct error e;
    char expected[FIXTURE_PATH + 100];

    assert_int_equal(read_text(state, "[s]\na=1\nb=2\nc=3\n", &seen, &e), -1);
    assert_string_equal(seen.text, "1[s]2(s|a|1)3(s|b|2)");
    (void)snprintf(expected, sizeof expected, "%s:3: not this one", at(state, "file"));
    assert_string_equal(e.text, expected);
    assert_int_equal(e.code, ERROR_BUSY);
    assert_fails(ini_read(at(state, "missing"), &kind, note, &seen, &e), e, ERROR_IO, "");
}
