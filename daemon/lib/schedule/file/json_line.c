#include "daemon/lib/schedule/file/json_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define KEY_SIZE 32u

int json_line_error(const struct json_line *line, struct error *e, const char *format, ...)
{
    char text[sizeof((struct error *)NULL)->text];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return error_set(e, ERROR_REFUSED, "line %" PRIu32 ", column %zu: %s", line->number,
                     (size_t)(line->at - line->begin) + 1, text);
}

static void skip_spaces(struct json_line *line)
{
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t' || *line->at == '\r'))
        line->at++;
}

bool json_line_is_empty(struct json_line *line)
{
    skip_spaces(line);
    return line->at == line->end;
}

bool json_line_has(struct json_line *line, char mark)
{
    if (json_line_is_empty(line) || *line->at != mark)
        return false;
    line->at++;
    return true;
}

int json_line_need(struct json_line *line, char mark, struct error *e)
{
    if (json_line_has(line, mark))
        return 0;
    if (line->at == line->end)
        return json_line_error(line, e, "expected '%c', but the line ends", mark);
    return json_line_error(line, e, "expected '%c'", mark);
}

int json_line_string(struct json_line *line, const char *what, char *text, size_t size,
                     struct error *e)
{
    size_t length = 0;

    if (!json_line_has(line, '"'))
        return json_line_error(line, e, "%s must be a string", what);
    for (; line->at < line->end && *line->at != '"'; line->at++) {
        if (*line->at == '\\' || *line->at < ' ' || *line->at > '~')
            return json_line_error(line, e, "%s cannot have this character", what);
        if (length + 1 >= size)
            return json_line_error(line, e, "%s is longer than %zu characters", what, size - 1);
        text[length++] = *line->at;
    }
    text[length] = '\0';
    return json_line_need(line, '"', e);
}

int json_line_number(struct json_line *line, const char *what, int64_t least, int64_t most,
                     int64_t *number, struct error *e)
{
    bool negative = json_line_has(line, '-');
    const char *first = line->at;
    int64_t value = 0;

    while (line->at < line->end && *line->at >= '0' && *line->at <= '9' && value <= INT32_MAX)
        value = 10 * value + (*line->at++ - '0');
    bool whole = line->at > first && (*first != '0' || line->at == first + 1) &&
                 (line->at == line->end || strchr("0123456789.eE+-", *line->at) == NULL);
    *number = negative ? -value : value;
    if (!whole || *number < least || *number > most || (negative && value == 0))
        return json_line_error(line, e, "%s must be a number from %" PRId64 " to %" PRId64, what,
                               least, most);
    return 0;
}

static int read_member(struct json_line *line, const struct json_key *keys, unsigned count,
                       void *into, uint32_t *seen, struct error *e)
{
    char name[KEY_SIZE];
    unsigned i = 0;

    if (json_line_string(line, "a key", name, sizeof name, e) != 0)
        return -1;
    while (i < count && strcmp(keys[i].name, name) != 0)
        i++;
    if (i == count)
        return json_line_error(line, e, "unknown key \"%s\"", name);
    if ((*seen & UINT32_C(1) << i) != 0)
        return json_line_error(line, e, "key \"%s\" appears twice", name);
    *seen |= UINT32_C(1) << i;
    if (json_line_need(line, ':', e) != 0)
        return -1;
    return keys[i].read(line, into, e);
}

int json_line_object(struct json_line *line, const struct json_key *keys, unsigned count,
                     void *into, uint32_t *seen, struct error *e)
{
    *seen = 0;
    if (json_line_need(line, '{', e) != 0)
        return -1;
    if (!json_line_has(line, '}')) {
        do {
            if (read_member(line, keys, count, into, seen, e) != 0)
                return -1;
        } while (json_line_has(line, ','));
        if (json_line_need(line, '}', e) != 0)
            return -1;
    }
    if (!json_line_is_empty(line))
        return json_line_error(line, e, "expected the end of the line after the object");
    return 0;
}
