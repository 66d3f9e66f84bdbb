#include "client/cli/cluster/cluster_edit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/output_file.h"
#include "daemon/lib/cluster/cluster_file.h"

#define BLANKS " \t\r"
#define MARK "\xef\xbb\xbf" /* a byte order mark, which some editors write */

/* Where a setting is in a text, or where it would be. */
struct place {
    const char *section;    /* behind the line that begins the section; NULL if it is missing */
    const char *end;        /* behind its last line that is not empty */
    const char *value;      /* NULL: it is not set */
    size_t length;          /* of the value */
    const char *line_break; /* as the section has it */
};

/* Whether the line begins this section, or (NULL) any. */
static bool begins(const char *line, const char *section)
{
    size_t length;

    line += strspn(line, BLANKS);
    if (*line++ != '[')
        return false;
    if (section == NULL)
        return true;
    line += strspn(line, BLANKS);
    length = strlen(section);
    return strncmp(line, section, length) == 0 &&
           line[length + strspn(line + length, BLANKS)] == ']';
}

/* Finds the value if the line is this setting. */
static bool find_value(struct place *p, const char *line, const char *name)
{
    const size_t length = strlen(name);
    const char *mark, *end;

    line += strspn(line, BLANKS);
    if (strncmp(line, name, length) != 0)
        return false;
    mark = line + length + strspn(line + length, BLANKS);
    if (*mark != '=' && *mark != ':')
        return false;
    p->value = mark + 1 + strspn(mark + 1, BLANKS);
    end = p->value;
    while (*end != '\0' && *end != '\n' &&
           (*end != ';' || (end > mark + 1 && strchr(BLANKS, end[-1]) == NULL)))
        end++;
    if (end < p->value)
        end = p->value;
    while (end > p->value && strchr(BLANKS, end[-1]) != NULL)
        end--;
    p->length = (size_t)(end - p->value);
    return true;
}

static bool is_empty(const char *line, const char *next)
{
    line += strspn(line, BLANKS);
    return line >= next || *line == '\n' || *line == '\0';
}

/* A section may occur several times, which together are one. */
static struct place find(const char *text, const char *section, const char *name)
{
    struct place p = {.line_break = "\n"};
    bool inside = false, first = false;

    for (const char *line = text, *next; *line != '\0'; line = next) {
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        if (begins(line, NULL)) {
            inside = begins(line, section);
            first = inside && p.section == NULL;
            if (first)
                p.section = next;
            if (first && next - line > 1 && next[-1] == '\n' && next[-2] == '\r')
                p.line_break = "\r\n";
        }
        if (inside && find_value(&p, line, name))
            return p;
        if (first && !is_empty(line, next))
            p.end = next;
    }
    return p;
}

char *cluster_edit_get(const char *text, const char *section, const char *name)
{
    const struct place p = find(text, section, name);

    return p.value != NULL ? strndup(p.value, p.length) : NULL;
}

char *cluster_edit_set(const char *text, const char *section, const char *name, const char *value)
{
    const struct place p = find(text, section, name);
    const char *at = strcmp(name, "rank") == 0 ? p.section : p.end;
    char *result;
    int length;

    if (p.section == NULL)
        return NULL;
    if (p.value != NULL)
        length =
            asprintf(&result, "%.*s%s%s", (int)(p.value - text), text, value, p.value + p.length);
    else
        length = asprintf(&result, "%.*s%s%s = %s%s%s", (int)(at - text), text,
                          at[-1] != '\n' ? p.line_break : "", name, value, p.line_break, at);
    return length >= 0 ? result : NULL;
}

char *cluster_edit_remove(const char *text, const char *section, const char *name)
{
    const struct place p = find(text, section, name);
    const char *from = p.value, *to = p.value;
    char *result;

    if (p.value == NULL)
        return strdup(text);
    while (from > text && from[-1] != '\n')
        from--;
    to += strcspn(to, "\n");
    to += *to == '\n';
    return asprintf(&result, "%.*s%s", (int)(from - text), text, to) >= 0 ? result : NULL;
}

char *cluster_edit_add(const char *text, const char *section, const char *lines)
{
    const size_t length = strlen(text);
    const bool open = length > 0 && text[length - 1] != '\n';
    char *result;

    return asprintf(&result, "%s%s%s[%s]\n%s", text, open ? "\n" : "", length > 0 ? "\n" : "",
                    section, lines) >= 0
               ? result
               : NULL;
}

/* Whether the file has this text still, perhaps with a mark in front. */
static bool is_unchanged(const char *path, const char *before, bool *marked)
{
    const size_t length = strlen(before), room = strlen(MARK) + length + 1;
    char *now = malloc(room);
    FILE *in = fopen(path, "re");
    const size_t size = now != NULL && in != NULL ? fread(now, 1, room, in) : 0;
    const bool read = now != NULL && in != NULL && ferror(in) == 0;
    const size_t begin =
        read && size >= strlen(MARK) && memcmp(now, MARK, strlen(MARK)) == 0 ? strlen(MARK) : 0;
    const bool same = read && size - begin == length && memcmp(now + begin, before, length) == 0;

    *marked = begin > 0;
    if (in != NULL)
        (void)fclose(in);
    free(now);
    return same;
}

int cluster_edit_write(const char *path, const char *before, const char *after, struct error *e)
{
    struct output_file file;
    bool marked;

    if (output_file_open(&file, path, e) != 0)
        return -1;
    if (!is_unchanged(path, before, &marked)) {
        output_file_give_up(&file);
        return error_set(
            e, ERROR_REFUSED,
            "%.200s was changed meanwhile, and is left as it is: run the command again", path);
    }
    (void)fprintf(file.stream, "%s%s", marked ? MARK : "", after);
    return output_file_finish(&file, e);
}
