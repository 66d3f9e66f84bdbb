/* Texts that are wrapped for terminals. */
#include "daemon/lib/command_line/wrap.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *printed;
static size_t length;

static FILE *begin(void)
{
    FILE *out = open_memstream(&printed, &length);
    assert_non_null(out);
    return out;
}

static void check(FILE *out, const char *wanted)
{
    assert_int_equal(fclose(out), 0);
    assert_string_equal(printed, wanted);
    free(printed);
}

static void words(const char *text, unsigned column, unsigned indent, unsigned columns,
                  const char *wanted)
{
    FILE *out = begin();

    wrap_words(out, text, column, indent, columns);
    check(out, wanted);
}

static void text(const char *given, const char *wanted)
{
    FILE *out = begin();

    wrap_text(out, given);
    check(out, wanted);
}

TEST(test_words)
{
    words("one two three", 0, 2, 13, "one two three\n");
    words("one two three", 0, 2, 12, "one two\n  three\n");
    words("one\ntwo   three ", 4, 4, 11, "one two\n    three\n");
    words("a-word-that-is-too-long b", 1, 1, 10, "a-word-that-is-too-long\n b\n");
    words("", 5, 5, 10, "\n");
    words("behind a prefix", 8, 2, 12, "\n  behind a\n  prefix\n");
    /* Three columns, five bytes. */
    words("\xc3\xa4\xc3\xb6x yy", 0, 0, 6, "\xc3\xa4\xc3\xb6x yy\n");
}

#define TEN "ninechars "
#define SEVENTY TEN TEN TEN TEN TEN TEN TEN

TEST(test_texts)
{
    text("", "");
    text("one\ntwo\n\nthree\n", "one two\n\nthree\n");
    text(SEVENTY "and more words\nand the end\n", SEVENTY "and more\nwords and the end\n");
    /* Items, with and without explanations; commands. */
    text("Keys:\n  name     the name\n           of it\n  other  " SEVENTY "and\n  last\n  lines\n",
         "Keys:\n  name     the name of it\n  other  " TEN TEN TEN TEN TEN TEN
         "ninechars\n         and\n  last\n  lines\n");
    text("  other  " SEVENTY "more\n",
         "  other  " TEN TEN TEN TEN TEN TEN "ninechars\n         more\n");
    text("examples:\n  torusctl " SEVENTY SEVENTY "\n",
         "examples:\n  torusctl " SEVENTY SEVENTY "\n");
}
