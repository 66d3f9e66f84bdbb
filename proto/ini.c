#include "proto/ini.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text_format.h"

#define BLANKS " \t"

struct reading {
    const struct text_kind *kind;
    ini_line_fn *each;
    void *context;
    struct ini_line line;
    bool has_begun;     /* a line that is not a comment has been read */
    const char *format; /* the recognised format of the file if its first line is wrong; NULL:
                         * unknown */
};

/* Removes blanks at both ends, in place. */
static char *trim(char *text)
{
    size_t length;

    text += strspn(text, BLANKS);
    for (length = strlen(text); length > 0 && strchr(BLANKS, text[length - 1]) != NULL; length--)
        ;
    text[length] = '\0';
    return text;
}

/* Ends the text where a comment begins. */
static void cut_comment(char *text)
{
    for (char *at = text; (at = strchr(at, ';')) != NULL; at++)
        if (at == text || strchr(BLANKS, at[-1]) != NULL) {
            *at = '\0';
            return;
        }
}

static int read_section(struct reading *r, char *text, struct error *e)
{
    char *end = strchr(text, ']');

    if (end == NULL)
        return error_set(e, ERROR_USAGE, "\"%.40s\" has no \"]\"", text);
    *end++ = '\0';
    cut_comment(end);
    if (*trim(end) != '\0')
        return error_set(e, ERROR_USAGE, "\"%.40s\" follows a section's \"]\"", trim(end));
    r->line.section = trim(text + 1);
    r->line.name = r->line.value = NULL;
    return r->each(r->context, &r->line, e);
}

static int read_setting(struct reading *r, char *text, char *mark, struct error *e)
{
    *mark = '\0';
    r->line.name = trim(text);
    cut_comment(mark + 1);
    r->line.value = trim(mark + 1);
    return r->each(r->context, &r->line, e);
}

static int read_line(struct reading *r, char *text, struct error *e)
{
    char *mark;

    if (strchr(text, '\r') != NULL)
        return error_set(e, ERROR_USAGE,
                         "a carriage return inside the line: lines must end with LF or CR LF");
    mark = text + strspn(text, "0123456789");
    /* The colon in the name of a port, as in "0:3 = 10.0.0.1:7411", does not end the name. */
    mark = mark > text && *mark == ':' && mark[1] >= '0' && mark[1] <= '9' ? mark + 1 : text;
    mark += strcspn(mark, "=:;");
    if (*text == '[')
        return read_section(r, text, e);
    if (*mark == '=' || *mark == ':')
        return read_setting(r, text, mark, e);
    return error_set(e, ERROR_USAGE, "neither \"name = value\" nor \"[section]\"");
}

/* Reports the format of a file of another kind, rather than what is wrong with its first line. */
static int read_line_of_kind(struct reading *r, char *text, struct error *e)
{
    bool is_first = !r->has_begun;

    text = trim(text);
    if (*text == '\0' || *text == ';' || *text == '#')
        return 0;
    r->has_begun = true;
    if (read_line(r, text, e) == 0)
        return 0;
    if (is_first && r->format != NULL)
        (void)error_set(e, ERROR_USAGE, "this is %s, not %s", r->format, r->kind->name);
    return -1;
}

static int read_lines(struct reading *r, char *text, struct error *e)
{
    char *rest = text, *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        size_t length = strlen(line);
        r->line.number++;
        if (length > 0 && line[length - 1] == '\r')
            line[length - 1] = '\0';
        if (read_line_of_kind(r, line, e) != 0)
            return -1;
    }
    return 0;
}

int ini_read_text(const char *name, const struct text_kind *kind, char *text, size_t length,
                  ini_line_fn *each, void *context, struct error *e)
{
    struct reading r = {kind, each, context, .line = {.section = ""}};
    char room[TEXT_FORMAT_SIZE];

    r.format = text_format(text, length, room);
    if (r.format != NULL && strcmp(r.format, TEXT_FORMAT_INI) == 0)
        r.format = NULL;
    return read_lines(&r, text, e) == 0 ? 0 : error_wrap(e, "%.200s:%u", name, r.line.number);
}

int ini_read(const char *path, const struct text_kind *kind, ini_line_fn *each, void *context,
             struct error *e)
{
    char *text;
    size_t length;
    int rc;

    if (text_file_read(path, kind, &text, &length, e) != 0)
        return -1;
    rc = ini_read_text(path, kind, text, length, each, context, e);
    free(text);
    return rc;
}
