/* Command lines. */
#include <math.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/measuring/fit.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "daemon/lib/command_line/options.h"
#include "daemon/lib/command_line/wrap.h"
#include "proto/text.h"
#include "tests/support/cmocka.h"

struct arguments {
    const char *size;
    bool loud;
    const char *topic;
};

static const struct option own[] = {
    {"--size", "BYTES", offsetof(struct arguments, size), "how much"},
    {"--loud", NULL, offsetof(struct arguments, loud), "whether"},
    {"TOPIC", NULL, offsetof(struct arguments, topic), "what about"},
    {0},
};

struct several {
    struct option_list patterns, sources;
    const char *to;
};

static const struct option repeated[] = {
    {"--drop", "PATTERN...", offsetof(struct several, patterns), "leave out"},
    {"--keep", "PATTERN...", offsetof(struct several, patterns), "keep"},
    {"--to", "PATH", offsetof(struct several, to), "where"},
    {"SOURCE...", NULL, offsetof(struct several, sources), "what"},
    {0},
};

static struct arguments a;
static struct global_arguments g;
static struct error e;

/* Parses words up to a NULL. */
static int parse(const char *const *words)
{
    const struct option_set sets[] = {{own, &a}, {global_options, &g}};
    int n = 0;

    a = (struct arguments){0};
    g = (struct global_arguments){0};
    while (words[n] != NULL)
        n++;
    return options_parse(sets, 2, n, (char **)(uintptr_t)words, &e);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

TEST(test_good)
{
    assert_int_equal(parse((const char *const[]){NULL}), 0);
    assert_int_equal(PARSE("--size", "5", "--json", "--loud"), 4);
    assert_string_equal(a.size, "5");
    assert_true(a.loud);
    assert_true(g.json);
    assert_int_equal(PARSE("--size=6", "--socket=/a=b"), 2);
    assert_string_equal(a.size, "6");
    assert_string_equal(g.socket, "/a=b");
    assert_int_equal(PARSE("--size", "1", "--size", "2"), 4); /* the last one counts */
    assert_string_equal(a.size, "2");
    assert_int_equal(PARSE("--size", "-1"), 2); /* for the parser of sizes to complain about */
    assert_string_equal(a.size, "-1");
    assert_int_equal(PARSE("--size="), 1);
    assert_string_equal(a.size, "");
    assert_int_equal(PARSE("-h"), 1);
    assert_true(g.help);
}

TEST(test_repeated)
{
    const char *const words[] = {"one", "--drop", "*.o", "--to", "/x",     "--keep=b",
                                 "two", "--drop", "c",   "--",   "--three"};
    const char *many[OPTION_LIST_MOST + 1];
    struct several s = {0};
    const struct option_set set = {repeated, &s};

    assert_int_equal(options_parse(&set, 1, 11, (char **)(uintptr_t)words, &e), 11);
    assert_int_equal(s.sources.count, 3);
    assert_string_equal(s.sources.given[0].text, "one");
    assert_string_equal(s.sources.given[1].text, "two");
    assert_string_equal(s.sources.given[2].text, "--three");
    assert_int_equal(s.patterns.count, 3); /* in their order, over both options */
    assert_string_equal(s.patterns.given[0].text, "*.o");
    assert_string_equal(s.patterns.given[1].text, "b");
    assert_ptr_equal(s.patterns.given[1].option, &repeated[1]);
    assert_string_equal(s.patterns.given[2].text, "c");
    assert_ptr_equal(s.patterns.given[2].option, &repeated[0]);
    assert_string_equal(s.to, "/x");

    for (size_t i = 0; i <= OPTION_LIST_MOST; i++)
        many[i] = "x";
    s = (struct several){0};
    assert_int_equal(options_parse(&set, 1, (int)OPTION_LIST_MOST, (char **)(uintptr_t)many, &e),
                     OPTION_LIST_MOST);
    s = (struct several){0};
    assert_fails(options_parse(&set, 1, (int)OPTION_LIST_MOST + 1, (char **)(uintptr_t)many, &e), e,
                 ERROR_USAGE, "");
}

TEST(test_alone)
{
    assert_int_equal(PARSE("links", "--loud"), 2);
    assert_string_equal(a.topic, "links");
    assert_int_equal(PARSE("links", "status", "--loud"), 1); /* stops at one too many */
    assert_false(a.loud);
    assert_int_equal(PARSE("--", "--loud"), 2);
    assert_false(a.loud);
    assert_string_equal(a.topic, "--loud");
    assert_int_equal(PARSE("-"), 1);
    assert_string_equal(a.topic, "-");
}

TEST(test_bad)
{
    assert_int_equal(PARSE("--sice", "5"), -1);
    assert_contains(e.text, "--size?");
    assert_int_equal(PARSE("--jsn"), -1);
    assert_contains(e.text, "--json");
    assert_int_equal(PARSE("--sice=5"), -1);
    assert_contains(e.text, "--size?");
    assert_int_equal(PARSE("-x"), -1);
    assert_contains(e.text, "-x");
    assert_int_equal(PARSE("--nothing-like-any-of-these-that-there-are-and-longer-than-all"), -1);
    assert_int_equal(PARSE("--size"), -1);
    assert_contains(e.text, "--size BYTES");
    assert_int_equal(PARSE("--size", "--loud"), -1);
    assert_int_equal(PARSE("--loud=yes"), -1);
    assert_contains(e.text, "--loud ");
    assert_int_equal(e.code, ERROR_USAGE);
}

/* A program whose options go to functions gets them in their order. */
TEST(test_listed)
{
    const char *const words[] = {"--loud", "--size=4", "--size", "5", "rest"};
    struct option_given given[5];
    size_t count;

    (void)state;
    assert_int_equal(options_list(global_options, 5, (char **)(uintptr_t)words, given, &count, &e),
                     -1);
    assert_int_equal(options_list(own, 4, (char **)(uintptr_t)words, given, &count, &e), 4);
    assert_int_equal(count, 3);
    assert_ptr_equal(given[0].option, &own[1]);
    assert_null(given[0].text);
    assert_string_equal(given[1].text, "4");
    assert_ptr_equal(given[2].option, &own[0]);
    assert_string_equal(given[2].text, "5");
}

static const char *meant(const char *word)
{
    return command_suggest(commands, word) != NULL ? command_suggest(commands, word) : "";
}

TEST(test_suggestions)
{
    assert_string_equal(meant("exchnge"), "exchange");
    assert_string_equal(meant("exhcange"), "exchange");
    assert_string_equal(meant("stat"), "status");
    assert_string_equal(meant("link"), "links");
    assert_string_equal(meant("palm"), "plan");
    assert_string_equal(meant("zzz"), "");
    assert_string_equal(meant("foo"), "");
    assert_string_equal(meant(""), "");
    assert_string_equal(meant("0123456789012345678901234567890123456789"), "");
}

static void check_command(const struct command *c)
{
    assert_ptr_equal(command_find(commands, c->name), c);
    assert_non_null(c->summary);
    assert_non_null(c->usage);
    assert_contains(command_details(c), "examples:\n  torusctl");
    assert_true(c->arguments_size > 0);
    for (const struct option *o = c->options; o->name != NULL; o++) {
        size_t size = o->value != NULL || o->name[0] != '-' ? sizeof(char *) : sizeof(bool);
        assert_true(o->offset + size <= c->arguments_size);
        assert_non_null(o->help);
    }
}

/* Every command explains itself, and its options fit into its struct. */
TEST(test_commands)
{
    for (const struct command_group *group = commands; group->title != NULL; group++)
        for (const struct command *const *c = group->command; *c != NULL; c++)
            check_command(*c);
    assert_null(command_find(commands, "nothing"));
}

/* Sizes, times, numbers and folders as people write them. */

TEST(test_sizes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"512B", 512},
        {"64KiB", 65536},
        {"64K", 65536},
        {"64k", 65536},
        {"64kib", 65536},
        {"1KB", 1000},
        {"1MB", 1000000},
        {"2MiB", 2u << 20},
        {"2M", 2u << 20},
        {"3G", UINT64_C(3) << 30},
        {"3GiB", UINT64_C(3) << 30},
        {"3GB", UINT64_C(3000000000)},
        {"9223372036854775807", INT64_MAX},
        {"007", 7},
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 42;
        assert_int_equal(parse_size(good[i].text, &bytes, &e), 0);
        assert_true(bytes == good[i].bytes);
    }
}

TEST(test_no_sizes)
{
    static const struct {
        const char *text, *complaint;
    } bad[] = {
        {"", "whole number"},
        {"KiB", "whole number"},
        {"x", "whole number"},
        {"+5", "whole number"},
        {" 5", "whole number"},
        {"0x10", "the units are"},
        {"1.5M", "the units are"},
        {"1e6", "the units are"},
        {"12Q", "the units are"},
        {"1KiBB", "the units are"},
        {"5 apples and some more of them", "the units are"},
        {"-1", "negative"},
        {"-1K", "negative"},
        {"9223372036854775808", "too large: at most 9223372036854775807 bytes"},
        {"18446744073709551616", "too large: at most 9223372036854775807 bytes"},
        {"99999999999999999999999999999999999999", "too large: at most 9223372036854775807 bytes"},
        {"8589934592G", "too large: at most 9223372036854775807 bytes"},
        {"99999999999999999999G", "too large: at most 9223372036854775807 bytes"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes;
        assert_fails(parse_size(bad[i].text, &bytes, &e), e, ERROR_USAGE, bad[i].complaint);
    }
}

TEST(test_seconds)
{
    static const char *const bad[] = {"",   "0",   "0.0", "-1",  "1.",          "1.2345", ".5",
                                      "1s", "1e3", "nan", "1,5", "99999999999", "inf"};
    uint64_t ms;

    assert_int_equal(parse_seconds("30", &ms, &e), 0);
    assert_int_equal(ms, 30000);
    assert_int_equal(parse_seconds("0.5", &ms, &e), 0);
    assert_int_equal(ms, 500);
    assert_int_equal(parse_seconds("30.0", &ms, &e), 0);
    assert_int_equal(ms, 30000);
    assert_int_equal(parse_seconds("2.25", &ms, &e), 0);
    assert_int_equal(ms, 2250);
    assert_int_equal(parse_seconds("0.001", &ms, &e), 0);
    assert_int_equal(ms, 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_fails(parse_seconds(bad[i], &ms, &e), e, ERROR_USAGE, "");
    }
}

TEST(test_numbers)
{
    static const char *const bad[] = {
        "", "16", "-1", "5x", "x", "4294967296", "99999999999999999999"};
    uint32_t n;

    assert_int_equal(parse_number("0", 15, &n, &e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(parse_number("15", 15, &n, &e), 0);
    assert_int_equal(n, 15);
    assert_int_equal(parse_number("3", 1, &n, &e), -1);
    assert_int_equal(parse_number("1", 0, &n, &e), -1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse_number(bad[i], 15, &n, &e), -1);
}

TEST(test_micros)
{
    static const char *const bad[] = {"",    "x",   "-1",   "+1", " 1",    "1 ", "1us", "0x10",
                                      "inf", "nan", "2e99", "1e", "1.2.3", ".",  "e3",  "1,5"};
    double micros;

    assert_int_equal(parse_micros("75", &micros, &e), 0);
    assert_true(micros == 75);
    assert_int_equal(parse_micros("0.011", &micros, &e), 0);
    assert_true(micros == 0.011);
    assert_int_equal(parse_micros("0", &micros, &e), 0);
    assert_true(micros == 0);
    assert_int_equal(parse_micros("1e-3", &micros, &e), 0);
    assert_true(micros == 0.001);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_fails(parse_micros(bad[i], &micros, &e), e, ERROR_USAGE, "");
    }
}

TEST(test_folders)
{
    char directory[] = "/tmp/torus-test-XXXXXX", percent[64], expected[128];
    char *path;

    assert_int_equal(parse_folder("/data/%r", &path, &e), 0);
    assert_string_equal(path, "/data/%r");
    free(path);

    assert_non_null(mkdtemp(directory));
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(parse_folder("out/%r", &path, &e), 0);
    (void)snprintf(expected, sizeof expected, "%s/out/%%r", directory);
    assert_string_equal(path, expected);
    free(path);

    /* The daemon would take a part of this name for the rank. */
    (void)snprintf(percent, sizeof percent, "%s/%%r", directory);
    assert_int_equal(mkdir(percent, 0700), 0);
    assert_int_equal(chdir(percent), 0);
    assert_int_equal(parse_folder("out", &path, &e), 0);
    (void)snprintf(expected, sizeof expected, "%s/%%%%r/out", directory);
    assert_string_equal(path, expected);
    free(path);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(parse_folder("out", &path, &e), 0);
    assert_string_equal(path, "/out");
    free(path);
    assert_int_equal(parse_folder("", &path, &e), -1);
    assert_int_equal(rmdir(percent), 0);
    assert_int_equal(rmdir(directory), 0);
}

TEST(test_lists)
{
    const char *text = "at2,a-name-that-is-too-long";
    uint64_t sizes[3];
    char item[8];
    size_t count;

    assert_int_equal(parse_item(&text, item, sizeof item, &e), 0);
    assert_string_equal(item, "at2");
    assert_int_equal(parse_item(&text, item, sizeof item, &e), -1);
    assert_contains(e.text, "is too long: ");
    assert_contains(e.text, " characters, at most 7 are possible");
    text = "last";
    assert_int_equal(parse_item(&text, item, sizeof item, &e), 0);
    assert_string_equal(item, "last");
    assert_null(text);
    assert_int_equal(parse_sizes("0,1K,2MB", sizes, 3, &count, &e), 0);
    assert_int_equal(count, 3);
    assert_int_equal(sizes[1], 1024);
    assert_int_equal(sizes[2], 2000000);
    assert_int_equal(parse_sizes("2-32", sizes, 3, &count, &e), 0);
    assert_true(count == 3 && sizes[0] == 2 && sizes[1] == 8 && sizes[2] == 32);
    assert_int_equal(parse_sizes("0,8K-9K", sizes, 3, &count, &e), 0);
    assert_true(count == 3 && sizes[1] == 8192 && sizes[2] == 9216);
    assert_int_equal(parse_sizes("7-7", sizes, 3, &count, &e), 0);
    assert_true(count == 1 && sizes[0] == 7);
    assert_int_equal(parse_sizes("1-65", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("-1", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1-", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("2-1", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("0-1", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1-2-3", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1,2,3,4", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1,,2", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1,", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("", sizes, 3, &count, &e), -1);
    assert_int_equal(parse_sizes("1,x", sizes, 3, &count, &e), -1);
}

TEST(test_named)
{
    const char *const names[] = {NULL, "one", "two", NULL};
    size_t i;

    assert_int_equal(parse_named("two", names, &i, &e), 0);
    assert_int_equal(i, 2);
    assert_int_equal(parse_named("three", names, &i, &e), -1);
    assert_contains(e.text, "'three'");
    assert_contains(e.text, "one, two");
    assert_int_equal(parse_named("", names, &i, &e), -1);
}

TEST(test_dimensions)
{
    uint32_t dimensions;

    assert_int_equal(parse_dimensions("0", 3, &dimensions, &e), 0);
    assert_int_equal(dimensions, 1);
    assert_int_equal(parse_dimensions("2,0", 3, &dimensions, &e), 0);
    assert_int_equal(dimensions, 5);
    assert_int_equal(parse_dimensions("3", 3, &dimensions, &e), -1);
    assert_int_equal(parse_dimensions("", 3, &dimensions, &e), -1);
    assert_int_equal(parse_dimensions("1,", 3, &dimensions, &e), -1);
    assert_int_equal(parse_dimensions("x", 3, &dimensions, &e), -1);
}

/* Texts that are wrapped for terminals. */

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

/* Texts from elsewhere. */

static void check_text(const char *in, const char *out)
{
    char text[64];
    strcpy(text, in);
    text_clean(text);
    assert_string_equal(text, out);
}

TEST(test_kept)
{
    check_text("", "");
    check_text("node 3 is down", "node 3 is down");
    check_text("größer \xe2\x82\xac \xf0\x9f\x98\x80", "größer \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(test_replaced)
{
    check_text("a\nb\tc\033[0m\x7f", "a?b?c?[0m?");
    check_text("\xc2\x9b", "??"); /* a control character in two bytes */
    check_text("\xff\xfe", "??");
    check_text("\xc0\xaf", "??");           /* overlong */
    check_text("\xed\xa0\x80", "???");      /* surrogate */
    check_text("\xf4\x90\x80\x80", "????"); /* beyond the last character */
    check_text("ok \xe2\x82", "ok ??");     /* cut short */
    check_text("\xe2\x82x", "??x");
}

TEST(test_constant_untouched)
{
    static const char constant[] = "read only";

    text_clean((char *)(uintptr_t)constant);
}

/* The papers' cost model, fitted to invented times. */

#define TS 500e-6 /* seconds a startup */
#define TW 0.4e-6 /* and a byte: 20 Mbit/s */
#define SIZES 6
#define MOST 400

static const double sizes[SIZES] = {256, 1024, 4096, 16384, 65536, 262144};

static bool near(double one, double other, double part)
{
    return fabs(one - other) <= part * fabs(other);
}

/* Exact times of a schedule with that many startups and blocks. */
static size_t make(struct fit_point *points, double startups, double blocks)
{
    for (size_t i = 0; i < SIZES; i++)
        points[i] =
            (struct fit_point){startups, blocks * sizes[i], startups * TS + blocks * sizes[i] * TW};
    return SIZES;
}

/* Uniform in -1..1, the same in every run. */
static double noise(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 33) / (double)(UINT64_C(1) << 30) - 1;
}

TEST(exact_times_give_the_parameters_back)
{
    struct fit_point points[2 * SIZES];
    struct fit fit;
    size_t count = make(points, 4, 8);

    count += make(points + count, 7, 14);
    assert_int_equal(fit_model(points, count, &fit, &e), 0);
    assert_true(near(fit.ts.value, TS, 1e-9) && near(fit.tw.value, TW, 1e-9));
    assert_true(near(fit.ts.low, TS, 1e-4) && near(fit.ts.high, TS, 1e-4));
    assert_true(near(fit.tw.low, TW, 1e-4) && near(fit.tw.high, TW, 1e-4));
    assert_true(fit.r2 > 1 - 1e-9 && fit.worst < 1e-9 && fit.median < 1e-9);
    assert_int_equal(fit.points, 2 * SIZES);
    assert_true(near(fit_seconds(&fit, &points[3]), points[3].seconds, 1e-9));
}

/* Figures worked out by hand: x = (1, 1/2, 1/4), y = (0, 1/2, 3/4) for T = 1, 2, 4 and startups 1
 * with bytes 0, 1, 3 fit exactly with ts = tw = 1; T = 5 instead of 4 gives x = (1, .5, .2),
 * y = (0, .5, .6): xx = 1.29, xy = .37, yy = .61, determinant .65, ts = (1.7*.61 - 1.1*.37) / .65,
 * tw = (1.1*1.29 - 1.7*.37) / .65. */
TEST(a_small_fit_is_as_by_hand)
{
    const struct fit_point points[] = {{1, 0, 1}, {1, 1, 2}, {1, 3, 5}};
    double ts = (1.7 * .61 - 1.1 * .37) / .65, tw = (1.1 * 1.29 - 1.7 * .37) / .65;
    double r[3] = {1 - ts, 1 - (ts + tw) / 2, 1 - (ts + 3 * tw) / 5};
    double squares = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    struct fit fit;

    assert_int_equal(fit_model(points, 3, &fit, &e), 0);
    assert_true(near(fit.ts.value, ts, 1e-12) && near(fit.tw.value, tw, 1e-12));
    /* Student's t with one degree of freedom: 12.706 standard errors. */
    assert_true(near(fit.ts.high - ts, 12.706 * sqrt(squares / .65 * .61), 1e-9));
    assert_true(near(fit.tw.high - tw, 12.706 * sqrt(squares / .65 * 1.29), 1e-9));
    /* Weights 1, 1/4, 1/25; their mean of T is 1.7 / 1.29. */
    assert_true(near(fit.r2, 1 - squares / (3 - 1.7 * 1.7 / 1.29), 1e-9));
    assert_true(near(fit.worst, fmax(fabs(r[0]), fmax(fabs(r[1]), fabs(r[2]))), 1e-9));
    assert_true(near(fit_residual(&fit, &points[2]), r[2], 1e-9));
    assert_true(near(fabs(fit_residual(&fit, &points[fit.worst_point])), fit.worst, 1e-12));
}

/* Times with errors of up to 10 %: the estimate is near, and the intervals contain the true value in about 95 of 100
 * cases. */
TEST(noise_is_averaged_and_intervals_hold_the_truth)
{
    struct fit_point points[MOST];
    unsigned ts_held = 0, tw_held = 0, cases = 400;
    uint64_t seed = 1;
    struct fit fit;

    for (unsigned k = 0; k < cases; k++) {
        size_t count = make(points, 4, 8);
        count += make(points + count, 4, 32);
        for (size_t i = 0; i < count; i++)
            points[i].seconds *= 1 + 0.1 * noise(&seed);
        assert_int_equal(fit_model(points, count, &fit, &e), 0);
        assert_true(near(fit.ts.value, TS, 0.4) && near(fit.tw.value, TW, 0.15));
        assert_true(fit.worst < 0.2 && fit.r2 > 0.9);
        ts_held += fit.ts.low < TS && TS < fit.ts.high;
        tw_held += fit.tw.low < TW && TW < fit.tw.high;
    }
    assert_in_range(ts_held, cases * 90 / 100, cases * 99 / 100);
    assert_in_range(tw_held, cases * 90 / 100, cases * 99 / 100);
}

/* More points: narrower intervals, also beyond the table of Student's t. */
TEST(many_points_narrow_the_intervals)
{
    struct fit_point points[MOST];
    uint64_t seed = 7;
    double width = HUGE_VAL;

    for (size_t turns = 1; turns <= 64; turns *= 4) {
        struct fit fit;
        size_t count = 0;
        while (count < turns * SIZES) {
            count += make(points + count, 4, 8);
            for (size_t i = count - SIZES; i < count; i++)
                points[i].seconds *= 1 + 0.05 * noise(&seed);
        }
        assert_int_equal(fit_model(points, count, &fit, &e), 0);
        assert_true(fit.ts.high - fit.ts.low < width);
        assert_true(near(fit.ts.high - fit.ts.value, fit.ts.value - fit.ts.low, 1e-9));
        width = fit.ts.high - fit.ts.low;
    }
}

/* A link that passes 15000 bytes at once makes ts negative: there is no bound at zero. */
TEST(a_burst_gives_a_negative_startup)
{
    struct fit_point points[SIZES];
    struct fit fit;

    for (size_t i = 0; i < SIZES; i++) {
        double bytes = 8 * sizes[i], limited = bytes > 15000 ? bytes - 15000 : 0;
        points[i] = (struct fit_point){4, bytes, 4 * 50e-6 + limited * TW};
    }
    assert_int_equal(fit_model(points + 2, SIZES - 2, &fit, &e), 0);
    assert_true(fit.ts.value < 0 && fit.tw.value > 0);
    assert_int_equal(fit_model(points, SIZES, &fit, &e), 0);
    assert_true(fit.worst > 0.15);
}

static void check_refused(const struct fit_point *points, size_t count, const char *says)
{
    struct fit fit;

    assert_fails(fit_model(points, count, &fit, &e), e, ERROR_REFUSED, says);
}

TEST(times_that_cannot_be_fitted_are_refused)
{
    struct fit_point points[SIZES];

    (void)make(points, 4, 8);
    check_refused(points, 0, "at least 3 block sizes");
    check_refused(points, 2, "at least 3 block sizes");
    for (size_t i = 0; i < SIZES; i++)
        points[i].bytes = 8 * 4096.0; /* one size only */
    check_refused(points, SIZES, "block sizes, such as");
    for (size_t i = 0; i < SIZES; i++)
        points[i].bytes = 0;
    check_refused(points, SIZES, "block sizes, such as");
    for (size_t i = 0; i < SIZES; i++)
        points[i] = (struct fit_point){0, sizes[i], 1};
    check_refused(points, SIZES, "block sizes, such as");
    (void)make(points, 4, 8);
    points[2].seconds = 0;
    check_refused(points, SIZES, "cannot be fitted");
    points[2].seconds = -1;
    check_refused(points, SIZES, "cannot be fitted");
    points[2].seconds = (double)NAN;
    check_refused(points, SIZES, "cannot be fitted");
    points[2].seconds = HUGE_VAL;
    check_refused(points, SIZES, "cannot be fitted");
}
