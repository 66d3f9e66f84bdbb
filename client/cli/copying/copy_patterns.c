#include "client/cli/copying/copy_patterns.h"

#include <stdlib.h>
#include <string.h>

#include "proto/text_file.h"

static const struct text_kind pattern_file = {.name = "a file with patterns", .most = 64u * 1024u};

/* Refuses what has another meaning in rsync or in git, and would be a name here. */
static int check_pattern(const char *pattern, size_t length, struct error *e)
{
    if (length == 0)
        return error_set(e, ERROR_USAGE, "the pattern is empty");
    if (length == 1 && pattern[0] == '!')
        return error_set(e, ERROR_USAGE,
                         "'!' would forget the patterns before it, which torusctl does not do: "
                         "leave these out; for a file with this name, write '[\\!]'");
    if (pattern[0] == '!')
        return error_set(e, ERROR_USAGE,
                         "'!' does not turn a pattern round: to keep these names, write --include "
                         "'%.*s' before the patterns that leave them out; for names that begin "
                         "with '!', write '[\\!]%.*s'",
                         (int)(length - 1 < 80 ? length - 1 : 80), pattern + 1,
                         (int)(length - 1 < 80 ? length - 1 : 80), pattern + 1);
    if (length > 2 && (pattern[0] == '-' || pattern[0] == '+') && pattern[1] == ' ')
        return error_set(e, ERROR_USAGE,
                         "'%c ' before a pattern has a meaning only in files of --exclude-from: "
                         "write %s '%.*s'; for names that begin with it, write '[%c] %.*s'",
                         pattern[0], pattern[0] == '+' ? "--include" : "--exclude",
                         (int)(length - 2 < 80 ? length - 2 : 80), pattern + 2, pattern[0],
                         (int)(length - 2 < 80 ? length - 2 : 80), pattern + 2);
    return 0;
}

/* Adds "- PATTERN" or "+ PATTERN". */
static int add(struct copy_patterns *p, char sign, const char *pattern, size_t length,
               struct error *e)
{
    char *text;

    if (check_pattern(pattern, length, e) != 0)
        return -1;
    if (p->count == TORUS_COPY_LIST_MAX)
        return error_set(e, ERROR_USAGE, "more than %u patterns", TORUS_COPY_LIST_MAX);
    text = malloc(length + 3);
    if (text == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    text[0] = sign;
    text[1] = ' ';
    memcpy(text + 2, pattern, length);
    text[length + 2] = '\0';
    p->pattern[p->count++] = text;
    return 0;
}

static int add_line(struct copy_patterns *p, const char *line, size_t length, struct error *e)
{
    if (length > 0 && line[length - 1] == '\r')
        length--;
    if (length == 0 || line[0] == '#' || line[0] == ';')
        return 0;
    if (length >= 2 && (line[0] == '+' || line[0] == '-') && line[1] == ' ')
        return add(p, line[0], line + 2, length - 2, e);
    return add(p, '-', line, length, e);
}

static int add_file(struct copy_patterns *p, const char *path, struct error *e)
{
    char *text;
    size_t length;
    unsigned number = 1;
    int r = text_file_read(path, &pattern_file, &text, &length, e);

    if (r != 0)
        return -1;
    for (const char *line = text, *end; r == 0 && line < text + length; line = end + 1, number++) {
        end = strchr(line, '\n');
        if (end == NULL)
            end = text + length;
        r = add_line(p, line, (size_t)(end - line), e);
        if (r != 0)
            (void)error_wrap(e, "%s: line %u", path, number);
    }
    free(text);
    return r;
}

int copy_patterns_read(struct copy_patterns *p, const struct option_list *list, struct error *e)
{
    int r = 0;

    p->count = 0;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        const struct option_given *g = &list->given[i];
        if (strcmp(g->option->name, "--exclude-from") == 0)
            r = add_file(p, g->text, e);
        else
            r = add(p, strcmp(g->option->name, "--include") == 0 ? '+' : '-', g->text,
                    strlen(g->text), e);
        if (r != 0)
            (void)error_wrap(e, "%s", g->option->name);
    }
    return r;
}

void copy_patterns_free(struct copy_patterns *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->pattern[i]);
    p->count = 0;
}
