#include "client/cli/schedule_files/xml.h"

#include <errno.h>
#include <expat.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

/* The text is passed to libexpat in pieces, because libexpat copies each piece. */
#define PIECE 65536u

struct reading {
    XML_Parser parser;
    const struct xml_rule *rules;
    unsigned count;
    int inside; /* index of the rule of the innermost open element, or XML_OUTERMOST */
    void *context;
    struct error *e;
    bool failed; /* *e has been set */
};

int xml_error(uint32_t line, struct error *e, const char *format, ...)
{
    char text[sizeof((struct error *)NULL)->text];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    text_clean(text);
    return error_set(e, ERROR_REFUSED, "line %" PRIu32 ": %s", line, text);
}

/* --- memory of libexpat --- */

/* Global, because the memory functions of libexpat have no context. */
static _Thread_local struct {
    size_t used;
    bool exceeded;
} memory;

/* The header of each allocation. */
union head {
    size_t size;
    max_align_t align;
};

static void *resize(void *pointer, size_t size)
{
    union head *head = pointer != NULL ? (union head *)pointer - 1 : NULL;
    size_t before = head != NULL ? head->size : 0;

    if (size > XML_MEMORY_MOST || memory.used - before + size > XML_MEMORY_MOST) {
        memory.exceeded = true;
        return NULL;
    }
    head = realloc(head, sizeof *head + size);
    if (head == NULL)
        return NULL;
    head->size = size;
    memory.used += size - before;
    return head + 1;
}

static void *allocate(size_t size)
{
    return resize(NULL, size);
}

static void release(void *pointer)
{
    if (pointer == NULL)
        return;
    union head *head = (union head *)pointer - 1;
    memory.used -= head->size;
    free(head);
}

/* --- handlers of libexpat --- */

static uint32_t current_line(const struct reading *r)
{
    return (uint32_t)XML_GetCurrentLineNumber(r->parser);
}

static void stop(struct reading *r)
{
    r->failed = true;
    (void)XML_StopParser(r->parser, XML_FALSE);
}

/* Writes the elements that may be inside the current one: "<tb> or <copy>", or "" if none may. */
static void list_expected(const struct reading *r, char *list, size_t size)
{
    size_t used = 0;

    list[0] = '\0';
    for (unsigned i = 0; i < r->count && used < size; i++)
        if (r->rules[i].inside == r->inside)
            used += (size_t)snprintf(list + used, size - used, "%s<%s>", used > 0 ? " or " : "",
                                     r->rules[i].name);
}

static void refuse_element(struct reading *r, const char *name)
{
    char expected[128];

    list_expected(r, expected, sizeof expected);
    if (r->inside == XML_OUTERMOST)
        (void)xml_error(current_line(r), r->e,
                        "%s is expected as the outermost element, not <%.20s>", expected, name);
    else if (expected[0] == '\0')
        (void)xml_error(current_line(r), r->e, "<%s> must be empty, but contains <%.20s>",
                        r->rules[r->inside].name, name);
    else
        (void)xml_error(current_line(r), r->e, "%s is expected in <%s>, not <%.20s>", expected,
                        r->rules[r->inside].name, name);
    stop(r);
}

static void on_start(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *r = context;
    const struct xml_element element = {
        .name = name, .attributes = attributes, .line = current_line(r)};
    unsigned i = 0;

    if (r->failed)
        return;
    while (i < r->count && (r->rules[i].inside != r->inside || strcmp(r->rules[i].name, name) != 0))
        i++;
    if (i == r->count) {
        refuse_element(r, name);
        return;
    }
    r->inside = (int)i;
    if (r->rules[i].read != NULL && r->rules[i].read(r->context, &element, r->e) != 0)
        stop(r);
}

static void on_end(void *context, const XML_Char *name)
{
    struct reading *r = context;

    (void)name;
    if (!r->failed)
        r->inside = r->rules[r->inside].inside;
}

static void on_text(void *context, const XML_Char *text, int length)
{
    struct reading *r = context;
    int at = 0;

    while (at < length && strchr(" \t\r\n", text[at]) != NULL)
        at++;
    if (r->failed || at == length)
        return;
    (void)xml_error(current_line(r), r->e,
                    "text in <%s>, where only elements are possible: \"%.*s\"",
                    r->rules[r->inside].name, length - at < 20 ? length - at : 20, text + at);
    stop(r);
}

static void on_document_type(void *context, const XML_Char *name, const XML_Char *system,
                             const XML_Char *public, int internal)
{
    struct reading *r = context;

    (void)system;
    (void)public;
    (void)internal;
    (void)xml_error(current_line(r), r->e,
                    "<!DOCTYPE %.20s>: document types are not allowed; remove this declaration",
                    name);
    stop(r);
}

/* --- the whole --- */

static int refuse_text(struct reading *r)
{
    enum XML_Error code = XML_GetErrorCode(r->parser);

    if (memory.exceeded)
        return xml_error(current_line(r), r->e,
                         "an element with its attributes, or a comment, takes more than %u KiB",
                         XML_MEMORY_MOST >> 10);
    if (code == XML_ERROR_NO_MEMORY)
        return error_set(r->e, ERROR_MEMORY, "out of memory to read XML");
    return xml_error(current_line(r), r->e, "not XML: %s", XML_ErrorString(code));
}

static int parse(struct reading *r, const char *text, size_t length)
{
    size_t at = 0, piece;

    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, on_start, on_end);
    XML_SetCharacterDataHandler(r->parser, on_text);
    XML_SetStartDoctypeDeclHandler(r->parser, on_document_type);
    do {
        piece = length - at < PIECE ? length - at : PIECE;
        if (XML_Parse(r->parser, text + at, (int)piece, at + piece == length) != XML_STATUS_OK)
            return r->failed ? -1 : refuse_text(r);
        at += piece;
    } while (at < length);
    return 0;
}

int xml_read(const char *text, size_t length, const struct xml_rule *rules, unsigned count,
             void *context, struct error *e)
{
    static const XML_Memory_Handling_Suite suite = {allocate, resize, release};
    struct reading r = {.parser = XML_ParserCreate_MM(NULL, &suite, NULL),
                        .rules = rules,
                        .count = count,
                        .inside = XML_OUTERMOST,
                        .context = context,
                        .e = e};

    memory.exceeded = false;
    if (r.parser == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to read XML");
    int result = parse(&r, text, length);
    XML_ParserFree(r.parser);
    return result;
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
        return xml_error(x->line, e, "<%.20s> has no attribute %s", x->name, name);
    const char *digits = text + (*text == '-');
    errno = 0;
    *number = strtoll(text, &end, 10);
    if (*digits < '0' || *digits > '9' || *end != '\0' || errno != 0 || *number < least ||
        *number > most)
        return xml_error(x->line, e, "%s=\"%.40s\" must be a number from %" PRId64 " to %" PRId64,
                         name, text, least, most);
    return 0;
}
