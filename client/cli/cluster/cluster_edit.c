#include "client/cli/cluster/cluster_edit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BLANKS " \t\r"

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

static bool sets(const char *line, const char *name)
{
    size_t length = strlen(name);

    line += strspn(line, BLANKS);
    return strncmp(line, name, length) == 0 && line[length + strspn(line + length, BLANKS)] == '=';
}

static bool is_empty(const char *line, const char *next)
{
    line += strspn(line, BLANKS);
    return line >= next || *line == '\n' || *line == '\0';
}

char *cluster_edit_set(const char *text, const char *section, const char *name, const char *value)
{
    const char *from = NULL, *to = NULL; /* what the new line replaces */
    bool inside = false;
    char *result;

    for (const char *line = text, *next; *line != '\0'; line = next) {
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        if (begins(line, NULL)) {
            if (inside)
                break;
            inside = begins(line, section);
        }
        if (inside && sets(line, name)) {
            from = line;
            to = next;
            break;
        }
        if (inside && !is_empty(line, next))
            from = to = next;
    }
    if (from == NULL || asprintf(&result, "%.*s%s%s = %s\n%s", (int)(from - text), text,
                                 from > text && from[-1] != '\n' ? "\n" : "", name, value, to) < 0)
        return NULL;
    return result;
}
