#include "client/cli/xml.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void xml_begin(struct xml *x, const char *text, size_t length)
{
    *x = (struct xml){.at = text, .end = text + length, .line = 1};
}

int xml_error(const struct xml *x, struct error *e, const char *format, ...)
{
    char text[sizeof((struct error *)NULL)->text];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return error_set(e, ERROR_REFUSED, "line %" PRIu32 ": %s", x->line, text);
}

static bool has(const struct xml *x, const char *word)
{
    size_t length = strlen(word);

    return (size_t)(x->end - x->at) >= length && memcmp(x->at, word, length) == 0;
}

static void step(struct xml *x, size_t count)
{
    for (; count > 0; count--)
        x->line += *x->at++ == '\n';
}

static void skip_spaces(struct xml *x)
{
    while (x->at < x->end && (*x->at == ' ' || *x->at == '\t' || *x->at == '\r' || *x->at == '\n'))
        step(x, 1);
}

/* What begins with `first` up to and with `last`. */
static int skip_past(struct xml *x, const char *first, const char *last, struct error *e)
{
    step(x, strlen(first));
    while (x->at < x->end && !has(x, last))
        step(x, 1);
    if (x->at == x->end)
        return xml_error(x, e, "the file ends where '%s' is expected", last);
    step(x, strlen(last));
    return 0;
}

static struct xml_text read_name(struct xml *x)
{
    struct xml_text name = {x->at, 0};

    while (x->at < x->end &&
           ((*x->at >= 'a' && *x->at <= 'z') || (*x->at >= 'A' && *x->at <= 'Z') ||
            (*x->at >= '0' && *x->at <= '9') || *x->at == '_' || *x->at == '-'))
        x->at++;
    name.length = (size_t)(x->at - name.at);
    return name;
}

static int read_attribute(struct xml *x, struct error *e)
{
    struct xml_text name = read_name(x), value;

    if (name.length == 0)
        return xml_error(x, e, "an attribute or the end of the tag is expected");
    if (x->attributes == XML_ATTRIBUTES_MOST)
        return xml_error(x, e, "more than %u attributes", XML_ATTRIBUTES_MOST);
    skip_spaces(x);
    if (!has(x, "="))
        return xml_error(x, e, "'=' is expected behind the attribute's name");
    x->at++;
    skip_spaces(x);
    char quote = x->at < x->end ? *x->at : '\0';
    if (quote != '"' && quote != '\'')
        return xml_error(x, e, "a quoted value is expected");
    value.at = ++x->at;
    while (x->at < x->end && *x->at != quote && *x->at != '<' && *x->at != '&')
        step(x, 1);
    if (x->at == x->end || *x->at != quote)
        return xml_error(x, e, "the value has no end, or has '<' or '&' in it");
    value.length = (size_t)(x->at++ - value.at);
    x->attribute[x->attributes].name = name;
    x->attribute[x->attributes++].value = value;
    return 0;
}

static int read_tag(struct xml *x, struct error *e)
{
    x->at++;
    x->opens = !has(x, "/");
    x->closes = !x->opens;
    x->at += x->closes;
    x->name = read_name(x);
    x->attributes = 0;
    if (x->name.length == 0)
        return xml_error(x, e, "the name of a tag is expected");
    for (;;) {
        skip_spaces(x);
        if (x->opens && has(x, "/>")) {
            x->closes = true;
            x->at += 2;
            return 1;
        }
        if (has(x, ">")) {
            x->at++;
            return 1;
        }
        if (!x->opens)
            return xml_error(x, e, "'>' is expected");
        if (read_attribute(x, e) != 0)
            return -1;
    }
}

int xml_next(struct xml *x, struct error *e)
{
    for (;;) {
        skip_spaces(x);
        if (x->at == x->end)
            return 0;
        if (has(x, "<!--")) {
            if (skip_past(x, "<!--", "-->", e) != 0)
                return -1;
        } else if (has(x, "<?")) {
            if (skip_past(x, "<?", "?>", e) != 0)
                return -1;
        } else if (has(x, "<")) {
            return read_tag(x, e);
        } else {
            return xml_error(x, e, "a tag is expected");
        }
    }
}

bool xml_is(const struct xml_text *text, const char *word)
{
    return text->length == strlen(word) && memcmp(text->at, word, text->length) == 0;
}

const struct xml_text *xml_find(const struct xml *x, const char *name)
{
    for (unsigned i = 0; i < x->attributes; i++)
        if (xml_is(&x->attribute[i].name, name))
            return &x->attribute[i].value;
    return NULL;
}

int xml_number(const struct xml *x, const char *name, int64_t least, int64_t most, int64_t *number,
               struct error *e)
{
    const struct xml_text *text = xml_find(x, name);
    size_t at = 0;

    if (text == NULL)
        return xml_error(x, e, "<%.*s> has no attribute %s", (int)x->name.length, x->name.at, name);
    bool negative = text->length > 0 && text->at[0] == '-';
    *number = 0;
    for (at = negative;
         at < text->length && text->at[at] >= '0' && text->at[at] <= '9' && *number <= INT32_MAX;
         at++)
        *number = 10 * *number + (text->at[at] - '0');
    bool whole = at == text->length && text->length > (size_t)negative;
    if (negative)
        *number = -*number;
    if (!whole || *number < least || *number > most)
        return xml_error(x, e, "%s=\"%.*s\" has to be a number from %" PRId64 " to %" PRId64, name,
                         text->length < 40 ? (int)text->length : 40, text->at, least, most);
    return 0;
}
