#include "client/cli/xml.h"

#include <errno.h>
#include <expat.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    XML_Parser parser;
    xml_element_fn element;
    void *context;
    struct error *e;
    unsigned depth;
    bool failed; /* with *e */
};

int xml_error(const struct xml_element *x, struct error *e, const char *format, ...)
{
    char text[sizeof((struct error *)NULL)->text];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return error_set(e, ERROR_REFUSED, "line %" PRIu32 ": %s", x->line, text);
}

static void on_start(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *r = context;
    const struct xml_element element = {.name = name,
                                        .attributes = attributes,
                                        .depth = r->depth++,
                                        .line = (uint32_t)XML_GetCurrentLineNumber(r->parser)};

    if (r->failed || r->element(r->context, &element, r->e) == 0)
        return;
    r->failed = true;
    (void)XML_StopParser(r->parser, XML_FALSE);
}

static void on_end(void *context, const XML_Char *name)
{
    (void)name;
    ((struct reading *)context)->depth--;
}

int xml_read(const char *text, size_t length, xml_element_fn element, void *context,
             struct error *e)
{
    struct reading r = {
        .parser = XML_ParserCreate(NULL), .element = element, .context = context, .e = e};
    int result = 0;

    if (r.parser == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to read XML");
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    if (length > INT_MAX)
        result = error_set(e, ERROR_REFUSED, "more than %d bytes of XML", INT_MAX);
    else if (XML_Parse(r.parser, text, (int)length, XML_TRUE) != XML_STATUS_OK && !r.failed)
        result = error_set(e, ERROR_REFUSED, "line %lu: not XML: %s",
                           (unsigned long)XML_GetCurrentLineNumber(r.parser),
                           XML_ErrorString(XML_GetErrorCode(r.parser)));
    XML_ParserFree(r.parser);
    return r.failed ? -1 : result;
}

const char *xml_find(const struct xml_element *x, const char *name)
{
    for (const char *const *at = x->attributes; *at != NULL; at += 2)
        if (strcmp(at[0], name) == 0)
            return at[1];
    return NULL;
}

int xml_number(const struct xml_element *x, const char *name, int64_t least, int64_t most,
               int64_t *number, struct error *e)
{
    const char *text = xml_find(x, name);
    char *end = NULL;

    if (text == NULL)
        return xml_error(x, e, "<%.20s> has no attribute %s", x->name, name);
    const char *digits = text + (*text == '-');
    errno = 0;
    *number = strtoll(text, &end, 10);
    if (*digits < '0' || *digits > '9' || *end != '\0' || errno != 0 || *number < least ||
        *number > most)
        return xml_error(x, e, "%s=\"%.40s\" has to be a number from %" PRId64 " to %" PRId64, name,
                         text, least, most);
    return 0;
}
