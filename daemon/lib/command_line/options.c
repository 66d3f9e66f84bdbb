#include "daemon/lib/command_line/options.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/command_line/wrap.h"
#include "proto/text.h"

#define LEFT 22 /* columns of the names of options */
#define WORD 32 /* longer words get no suggestion */
#define EXIT_USAGE 2

/* --- suggestions --- */

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

/* Returns how many letters must be inserted, deleted, replaced or swapped to change a to b. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
    unsigned d[WORD + 1][WORD + 1];

    for (unsigned i = 0; i <= n; i++)
        d[i][0] = i;
    for (unsigned j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            d[i][j] =
                least(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1, d[i][j]);
        }
    }
    return d[n][m];
}

/* One letter of a word of three may differ, two of one of four: otherwise everything is close to a short word. */
void suggest(struct suggestion *s, const char *known)
{
    size_t n = strlen(s->word), m = strlen(known);
    unsigned far;

    if (n == 0 || n > WORD || m > WORD)
        return;
    if (n >= 3 && strncmp(s->word, known, n) == 0)
        far = 0; /* a prefix */
    else
        far = distance(s->word, n, known, m);
    if (far > 2 || 3 * far > m + 2 || (s->best != NULL && far >= s->distance))
        return;
    s->best = known;
    s->distance = far;
}

/* --- one argument --- */

struct match {
    const struct option *option;
    void *arguments;  /* that the option fills; NULL: it is only listed */
    const char *text; /* NULL: a flag */
};

/* A command line while it is parsed. */
struct reader {
    const struct option_set *sets;
    size_t count;
    int argc, used;
    char **argv;
    bool no_options; /* "--" came */
};

static bool is_named(const struct option *o)
{
    return o->name[0] == '-';
}

/* Returns whether the option may be given several times. */
static bool is_list(const struct option *o)
{
    const char *name = is_named(o) ? o->value : o->name;
    const size_t length = name != NULL ? strlen(name) : 0;

    return length > 3 && strcmp(name + length - 3, "...") == 0;
}

/* Returns where the option stores its value. */
static void *place_of(const struct match *m)
{
    return (char *)m->arguments + m->option->offset;
}

static bool find_named(const struct option_set *sets, size_t count, const char *name, size_t length,
                       struct match *m)
{
    for (size_t i = 0; i < count; i++) {
        for (const struct option *o = sets[i].options; o->name != NULL; o++) {
            if (is_named(o) && strlen(o->name) == length && memcmp(o->name, name, length) == 0) {
                *m = (struct match){.option = o, .arguments = sets[i].arguments};
                return true;
            }
        }
    }
    return false;
}

/* Finds the first positional argument that has not been given yet, or may be given again. */
static bool find_positional(const struct option_set *sets, size_t count, struct match *m)
{
    for (size_t i = 0; i < count; i++) {
        for (const struct option *o = sets[i].options; o->name != NULL; o++) {
            *m = (struct match){.option = o, .arguments = sets[i].arguments};
            if (!is_named(o) && (is_list(o) || *(const char **)place_of(m) == NULL))
                return true;
        }
    }
    return false;
}

static int unknown_option(const struct option_set *sets, size_t count, const char *name,
                          size_t length, struct error *e)
{
    char word[64];
    struct suggestion s = {.word = word};

    (void)snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), name);
    for (size_t i = 0; i < count; i++)
        for (const struct option *o = sets[i].options; o->name != NULL; o++)
            if (is_named(o))
                suggest(&s, o->name);
    if (s.best != NULL)
        return error_set(e, ERROR_USAGE, "unknown option %s; did you mean %s?", word, s.best);
    return error_set(e, ERROR_USAGE, "unknown option %s", word);
}

/* Reads the option at the front. Returns 1 with *m, or -1 with *e. */
static int next_named(struct reader *r, struct match *m, struct error *e)
{
    const char *word = r->argv[r->used++];
    const char *name = strcmp(word, "-h") == 0 ? "--help" : word, *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);

    if (!find_named(r->sets, r->count, name, length, m))
        return unknown_option(r->sets, r->count, name, length, e);
    if (m->option->value == NULL)
        return equals == NULL ? 1 : error_set(e, ERROR_USAGE, "%s takes no value", m->option->name);
    if (equals != NULL)
        m->text = equals + 1;
    else if (r->used == r->argc || strncmp(r->argv[r->used], "--", 2) == 0)
        return error_set(e, ERROR_USAGE, "%s needs a value: %s %s", m->option->name,
                         m->option->name, m->option->value);
    else
        m->text = r->argv[r->used++];
    return 1;
}

/* Reads the next option or positional argument. Returns 1 with *m; 0 at the end, or in front of an argument that is not
 * in a table; or -1 with *e. */
static int next(struct reader *r, struct match *m, struct error *e)
{
    if (!r->no_options && r->used < r->argc && strcmp(r->argv[r->used], "--") == 0) {
        r->no_options = true;
        r->used++;
    }
    if (r->used == r->argc)
        return 0;
    if (!r->no_options && r->argv[r->used][0] == '-' && r->argv[r->used][1] != '\0')
        return next_named(r, m, e);
    if (!find_positional(r->sets, r->count, m))
        return 0;
    m->text = r->argv[r->used++];
    return 1;
}

/* --- command lines --- */

static int store(const struct match *m, struct error *e)
{
    struct option_list *list = place_of(m);

    if (m->text == NULL)
        *(bool *)place_of(m) = true;
    else if (!is_list(m->option))
        *(const char **)place_of(m) = m->text;
    else if (list->count == OPTION_LIST_MOST)
        return error_set(e, ERROR_USAGE, "more than %u times %s", OPTION_LIST_MOST,
                         m->option->name);
    else
        list->given[list->count++] = (struct option_given){m->option, m->text};
    return 0;
}

int options_parse(const struct option_set *sets, size_t count, int argc, char **argv,
                  struct error *e)
{
    struct reader r = {.sets = sets, .count = count, .argc = argc, .argv = argv};
    struct match m;
    int more;

    while ((more = next(&r, &m, e)) > 0)
        if (store(&m, e) != 0)
            return -1;
    return more == 0 ? r.used : -1;
}

int options_list(const struct option *options, int argc, char **argv, struct option_given *given,
                 size_t *count, struct error *e)
{
    const struct option_set set = {options, NULL};
    struct reader r = {.sets = &set, .count = 1, .argc = argc, .argv = argv};
    struct match m;
    int more;

    for (*count = 0; (more = next(&r, &m, e)) > 0;)
        given[(*count)++] = (struct option_given){m.option, m.text};
    return more == 0 ? r.used : -1;
}

void options_help(FILE *out, const struct option *options)
{
    for (const struct option *o = options; o->name != NULL; o++) {
        char left[64];
        (void)snprintf(left, sizeof left, "%s%s%s", o->name, is_named(o) && o->value ? " " : "",
                       is_named(o) && o->value ? o->value : "");
        (void)fprintf(out, "  %-*s  ", LEFT, left);
        if (strlen(left) > LEFT)
            (void)fprintf(out, "\n%*s", LEFT + 4, "");
        wrap_words(out, o->help, LEFT + 4, LEFT + 4, WRAP_COLUMNS);
    }
}

/* --- programs --- */

struct of_all {
    const char *log_level;
    bool help, version;
};

const struct option program_options_of_all[] = {
    {"--log-level", "LEVEL", offsetof(struct of_all, log_level),
     "error, warning, info or debug (default: info)"},
    {"--help", NULL, offsetof(struct of_all, help), "print this text"},
    {"--version", NULL, offsetof(struct of_all, version), "print the version"},
    {0},
};

int program_options_fail(const struct program_options *options, const struct error *e,
                         int *exit_code)
{
    (void)fprintf(stderr, "%s: %s\n%s --help lists the options\n", options->program, e->text,
                  options->program);
    *exit_code = EXIT_USAGE;
    return -1;
}

int program_options_refuse(const struct program_options *options, const char *option,
                           const char *value, struct error *e, int *exit_code)
{
    char text[80];

    (void)error_wrap(e, "%s %s", option, text_printable(text, sizeof text, value));
    return program_options_fail(options, e, exit_code);
}

static void print_help(const struct program_options *options)
{
    (void)fputs(options->head, stdout);
    options_help(stdout, options->option);
    options_help(stdout, program_options_of_all);
    (void)fputs(options->tail, stdout);
}

int program_options_read(const struct program_options *options, int argc, char **argv,
                         void *arguments, int *exit_code)
{
    struct of_all all = {0};
    const struct option_set sets[] = {{options->option, arguments}, {program_options_of_all, &all}};
    struct error e;
    const int used = options_parse(sets, 2, argc - 1, argv + 1, &e) + 1;

    *exit_code = EXIT_SUCCESS;
    if (used == 0)
        return program_options_fail(options, &e, exit_code);
    if (all.help)
        print_help(options);
    if (!all.help && all.version)
        (void)printf("%s " TORUSD_VERSION "\n", options->program);
    if (all.help || all.version)
        return -1;
    if (used < argc) {
        (void)error_set(&e, ERROR_USAGE, "unexpected argument \"%.60s\"", argv[used]);
        return program_options_fail(options, &e, exit_code);
    }
    if (all.log_level != NULL && log_level_parse(all.log_level) < 0) {
        (void)error_set(&e, ERROR_USAGE, "it is error, warning, info or debug");
        return program_options_refuse(options, "--log-level", all.log_level, &e, exit_code);
    }
    if (all.log_level != NULL)
        log_set_level((enum log_level)log_level_parse(all.log_level));
    return 0;
}
