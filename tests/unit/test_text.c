/* Text from elsewhere, errors, log levels and lines. */
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "proto/error.h"
#include "proto/text.h"
#include "tests/support/cmocka.h"

static void check_printable(const char *in, const char *expected)
{
    char out[64];
    assert_string_equal(text_printable(out, sizeof out, in), expected);
}

TEST(unprintable_bytes_become_question_marks)
{
    check_printable("", "");
    check_printable("node 5 is down", "node 5 is down");
    check_printable("a\nb\x1b[31mc\x7f", "a?b?[31mc?");
    check_printable("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
    check_printable("\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80");
    check_printable("\xc0\xaf", "??");           /* overlong */
    check_printable("\xe0\x80\xaf", "???");      /* overlong */
    check_printable("\xed\xa0\x80", "???");      /* surrogate */
    check_printable("\xf4\x90\x80\x80", "????"); /* beyond U+10FFFF */
    check_printable("\xc2\x85", "??");           /* a control character of two bytes */
    check_printable("\xff\xfe", "??");
    check_printable("a\xe2\x80\xae"
                    "b\xd8\x9c",
                    "a???b??");                              /* from right to left */
    check_printable("\xe2\x81\xa6 \xe2\x80\xa8", "??? ???"); /* an isolate, and a line separator */
    check_printable("end\xe2\x82", "end??");                 /* cut */
}

static void check_escaped(const char *in, size_t length, const char *expected)
{
    char *text = text_escaped((const uint8_t *)in, length);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

TEST(names_of_any_bytes_stay_different)
{
    check_escaped("", 0, "");
    check_escaped("a b%c", 5, "a b%c");
    check_escaped("gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f");
    check_escaped("a\nb\x1b", 4, "a\\x0ab\\x1b");
    check_escaped("a\\x0a", 5, "a\\x5cx0a"); /* differs from a line end */
    check_escaped("\xff\0z", 3, "\\xff\\x00z");
    check_escaped("\xe2\x82\xac", 2, "\\xe2\\x82"); /* cut */
}

TEST(a_copy_is_cut_where_it_does_not_fit)
{
    char out[5];

    assert_string_equal(text_printable(out, sizeof out, "abcdefgh"), "abcd");
    assert_string_equal(text_printable(out, 1, "abc"), "");
    assert_string_equal(text_printable(out, sizeof out, "abc\xe2\x82\xac"), "abc?");
}

static void check_bytes(const char *text, uint64_t expected)
{
    uint64_t bytes;
    assert_int_equal(text_parse_bytes(text, &bytes), 0);
    assert_int_equal(bytes, expected);
}

TEST(sizes_are_parsed)
{
    static const char *const wrong[] = {"",
                                        "-1",
                                        "+1",
                                        "x",
                                        "1x",
                                        "1 KiB x",
                                        "KiB",
                                        "0x10",
                                        " 1",
                                        "1.5",
                                        "1KiBs",
                                        "18446744073709551616",
                                        "18014398509481984KiB"};
    uint64_t bytes;

    check_bytes("0", 0);
    check_bytes("512", 512);
    check_bytes("512B", 512);
    check_bytes("64KiB", 65536);
    check_bytes("64 kib", 65536);
    check_bytes("10M", 10u << 20);
    check_bytes("1MB", 1000000);
    check_bytes("3K", 3072);
    check_bytes("3KB", 3000);
    check_bytes("2GiB", UINT64_C(2) << 30);
    check_bytes("2G", UINT64_C(2) << 30);
    check_bytes("2GB", UINT64_C(2000000000));
    check_bytes("18446744073709551615", UINT64_MAX);
    check_bytes("18014398509481983KiB", UINT64_MAX - 1023);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (text_parse_bytes(wrong[i], &bytes) == 0)
            fail_msg("\"%s\" was taken for %llu", wrong[i], (unsigned long long)bytes);
}

TEST(errors_carry_a_code_and_a_sentence)
{
    struct error e = {0};

    assert_fails(error_set(&e, ERROR_REFUSED, "port %d: %s", 3, "no"), e, ERROR_REFUSED, "");
    assert_string_equal(e.text, "port 3: no");
    assert_fails(error_wrap(&e, "node %u", 7u), e, ERROR_REFUSED, "");
    assert_string_equal(e.text, "node 7: port 3: no");
    assert_int_equal(error_set(NULL, ERROR_IO, "nobody listens"), -1);
    assert_int_equal(error_wrap(NULL, "nobody listens"), -1);
}

TEST(errors_say_whom_they_are_about)
{
    struct error e;

    (void)error_set(&e, ERROR_LINK, "link 3:+0 is down");
    assert_int_equal(e.culprit.kind, CULPRIT_NONE);
    assert_int_equal(error_blame_link(&e, 3, 1), -1);
    assert_int_equal(error_wrap_node(&e, 5), -1);
    assert_string_equal(e.text, "node 5: link 3:+0 is down");
    assert_int_equal(e.culprit.kind, CULPRIT_LINK); /* the first one named */
    assert_int_equal(e.culprit.node, 3);
    assert_int_equal(e.culprit.port, 1);
    (void)error_set(&e, ERROR_IO, "disk full"); /* its earlier contents do not stay */
    assert_int_equal(e.culprit.kind, CULPRIT_NONE);
    (void)error_wrap_node(&e, 5);
    assert_string_equal(e.text, "node 5: disk full");
    assert_int_equal(e.culprit.kind, CULPRIT_NODE);
    assert_int_equal(e.culprit.node, 5);
    assert_int_equal(error_blame_program(&e, 6), -1);
    assert_int_equal(e.culprit.kind, CULPRIT_PROGRAM);
    assert_int_equal(e.culprit.node, 6);
    assert_int_equal(error_blame_node(NULL, 1), -1);
    assert_int_equal(error_wrap_node(NULL, 1), -1);
}

TEST(long_sentences_are_cut)
{
    struct error e;
    char word[1000];

    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    (void)error_set(&e, ERROR_IO, "%s", word);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    (void)error_wrap(&e, "here");
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    assert_memory_equal(e.text, "here: xx", 8);
    (void)error_wrap(&e, "%s", word);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    /* Room for the context, but not for the separator. */
    (void)error_set(&e, ERROR_IO, "inner");
    (void)error_wrap(&e, "%.*s", (int)sizeof e.text - 2, word);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
}

TEST(every_code_has_a_name_of_its_own)
{
    for (int a = ERROR_NONE; a <= ERROR_BUSY; a++) {
        assert_string_not_equal(error_name((enum error_code)a), "unknown");
        for (int b = ERROR_NONE; b < a; b++)
            assert_string_not_equal(error_name((enum error_code)a), error_name((enum error_code)b));
    }
    assert_string_equal(error_name((enum error_code)(ERROR_BUSY + 1)), "unknown");
}

TEST(log_levels_have_names)
{
    assert_int_equal(log_level_parse("error"), LOG_LEVEL_ERROR);
    assert_int_equal(log_level_parse("warning"), LOG_LEVEL_WARNING);
    assert_int_equal(log_level_parse("info"), LOG_LEVEL_INFO);
    assert_int_equal(log_level_parse("debug"), LOG_LEVEL_DEBUG);
    assert_int_equal(log_level_parse("Info"), -1);
    assert_int_equal(log_level_parse(""), -1);
    assert_int_equal(log_level_parse("information"), -1);
}

/* What log_write() writes to standard error. */
static size_t logged(char *out, size_t size, enum log_level level, const char *text)
{
    int pipe_end[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(pipe_end), 0);
    assert_true(dup2(pipe_end[1], STDERR_FILENO) >= 0);
    log_write(level, "%s", text);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    (void)close(pipe_end[1]);
    ssize_t n = read(pipe_end[0], out, size - 1);
    (void)close(pipe_end[0]);
    assert_true(n >= 0);
    out[n] = '\0';
    return (size_t)n;
}

TEST(a_count_has_its_word)
{
    assert_string_equal(text_plural(0, "node", "nodes"), "nodes");
    assert_string_equal(text_plural(1, "node", "nodes"), "node");
    assert_string_equal(text_plural(2, "node", "nodes"), "nodes");
    assert_string_equal(text_plural(UINT64_C(1) << 32 | 1, "node", "nodes"), "nodes");
}

TEST(a_log_line_is_one_line)
{
    char out[2048], text[1500];

    log_set_level(LOG_LEVEL_WARNING);
    assert_int_equal(logged(out, sizeof out, LOG_LEVEL_INFO, "not written"), 0);
    assert_true(logged(out, sizeof out, LOG_LEVEL_WARNING, "a\nforged\rline") > 0);
    assert_contains(out, " warning a?forged?line\n");
    assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1);
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_in_range(logged(out, sizeof out, LOG_LEVEL_ERROR, text), 1000, 1024);
    assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1);
}
