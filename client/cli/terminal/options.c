#include "client/cli/terminal/options.h"

#include <string.h>

#include "client/cli/terminal/suggest.h"
#include "client/cli/terminal/wrap.h"

#define LEFT 22 /* columns of the names of options */

struct match {
    const struct option *option;
    void *arguments;
};

static bool is_named(const struct option *o)
{
    return o->name[0] == '-';
}

static bool *flag_of(const struct match *m)
{
    return (bool *)((char *)m->arguments + m->option->offset);
}

static const char **text_of(const struct match *m)
{
    return (const char **)(void *)((char *)m->arguments + m->option->offset);
}

/* Returns whether the option may be given several times. */
static bool is_list(const struct option *o)
{
    const char *name = is_named(o) ? o->value : o->name;
    const size_t length = name != NULL ? strlen(name) : 0;

    return length > 3 && strcmp(name + length - 3, "...") == 0;
}

static struct option_list *list_of(const struct match *m)
{
    return (struct option_list *)(void *)((char *)m->arguments + m->option->offset);
}

/* Stores a value. Returns 0, or -1 with *e. */
static int set_text(const struct match *m, const char *text, struct error *e)
{
    if (!is_list(m->option)) {
        *text_of(m) = text;
        return 0;
    }
    struct option_list *list = list_of(m);
    if (list->count == OPTION_LIST_MOST)
        return error_set(e, ERROR_USAGE, "more than %u times %s", OPTION_LIST_MOST,
                         m->option->name);
    list->given[list->count++] = (struct option_given){m->option, text};
    return 0;
}

static bool find_named(const struct option_set *sets, size_t count, const char *name, size_t length,
                       struct match *m)
{
    for (size_t i = 0; i < count; i++) {
        for (const struct option *o = sets[i].options; o->name != NULL; o++) {
            if (is_named(o) && strlen(o->name) == length && memcmp(o->name, name, length) == 0) {
                *m = (struct match){o, sets[i].arguments};
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
            *m = (struct match){o, sets[i].arguments};
            if (!is_named(o) && (is_list(o) || *text_of(m) == NULL))
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

/* Parses the option argv[0]. Returns the number of arguments that it uses, or -1 with *e. */
static int parse_named(const struct option_set *sets, size_t count, int argc, char **argv,
                       struct error *e)
{
    const char *name = strcmp(argv[0], "-h") == 0 ? "--help" : argv[0];
    const char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    struct match m;

    if (!find_named(sets, count, name, length, &m))
        return unknown_option(sets, count, name, length, e);
    if (m.option->value == NULL) {
        if (equals != NULL)
            return error_set(e, ERROR_USAGE, "%s takes no value", m.option->name);
        *flag_of(&m) = true;
        return 1;
    }
    if (equals != NULL)
        return set_text(&m, equals + 1, e) == 0 ? 1 : -1;
    if (argc < 2 || strncmp(argv[1], "--", 2) == 0)
        return error_set(e, ERROR_USAGE, "%s needs a value: %s %s", m.option->name, m.option->name,
                         m.option->value);
    return set_text(&m, argv[1], e) == 0 ? 2 : -1;
}

int options_parse(const struct option_set *sets, size_t count, int argc, char **argv,
                  struct error *e)
{
    bool named = true;
    int i = 0;

    while (i < argc) {
        struct match m;
        if (named && strcmp(argv[i], "--") == 0) {
            named = false;
            i++;
        } else if (named && argv[i][0] == '-' && argv[i][1] != '\0') {
            int used = parse_named(sets, count, argc - i, argv + i, e);
            if (used < 0)
                return -1;
            i += used;
        } else {
            if (!find_positional(sets, count, &m))
                return i;
            if (set_text(&m, argv[i++], e) != 0)
                return -1;
        }
    }
    return i;
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
