/* Command lines. */
#include "client/cli/terminal/command.h"
#include "daemon/lib/command_line/options.h"
#include "tests/support/cmocka.h"
#include <string.h>

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
    assert_int_equal(
        options_parse(&set, 1, (int)OPTION_LIST_MOST + 1, (char **)(uintptr_t)many, &e), -1);
    assert_int_equal(e.code, ERROR_USAGE);
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
    assert_non_null(strstr(e.text, "--size?"));
    assert_int_equal(PARSE("--jsn"), -1);
    assert_non_null(strstr(e.text, "--json"));
    assert_int_equal(PARSE("--sice=5"), -1);
    assert_non_null(strstr(e.text, "--size?"));
    assert_int_equal(PARSE("-x"), -1);
    assert_non_null(strstr(e.text, "-x"));
    assert_int_equal(PARSE("--nothing-like-any-of-these-that-there-are-and-longer-than-all"), -1);
    assert_int_equal(PARSE("--size"), -1);
    assert_non_null(strstr(e.text, "--size BYTES"));
    assert_int_equal(PARSE("--size", "--loud"), -1);
    assert_int_equal(PARSE("--loud=yes"), -1);
    assert_non_null(strstr(e.text, "--loud "));
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
    assert_non_null(strstr(c->details, "examples:\n  torusctl"));
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
