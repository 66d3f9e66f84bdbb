#include "proto/text_format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\r\n"

struct beginning {
    const char *bytes;
    size_t count;
    const char *format;
};

#define BEGINS(bytes, format)                                                                      \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, format                                                           \
    }

static const char *find_format(const struct beginning *known, size_t count, const char *text,
                               size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (length >= known[i].count && memcmp(text, known[i].bytes, known[i].count) == 0)
            return known[i].format;
    return NULL;
}

const char *text_format_binary(const char *text, size_t length)
{
    static const struct beginning known[] = {
        BEGINS("\x1f\x8b", "packed by gzip (unpack it with gunzip)"),
        BEGINS("\xfd"
               "7zXZ",
               "packed by xz (unpack it with unxz)"),
        BEGINS("BZh", "packed by bzip2 (unpack it with bunzip2)"),
        BEGINS("\x28\xb5\x2f\xfd", "packed by zstd (unpack it with unzstd)"),
        BEGINS("PK\x03\x04", "a zip archive (unpack it with unzip)"),
        BEGINS("\x7f"
               "ELF",
               "a program or library"),
        BEGINS("\x89PNG", "a PNG picture"),
        BEGINS("%PDF-", "a PDF document"),
    };

    return find_format(known, sizeof known / sizeof *known, text, length);
}

/* --- XML --- */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && *at != '\0' && strchr(BLANKS, *at) != NULL)
        at++;
    return at;
}

/* Returns the place behind the first `mark` from `at` on, or `end`. */
static const char *place_behind(const char *at, const char *end, const char *mark)
{
    const char *found = memmem(at, (size_t)(end - at), mark, strlen(mark));

    return found != NULL ? found + strlen(mark) : end;
}

static bool is_at(const char *at, const char *end, const char *text)
{
    size_t length = strlen(text);

    return (size_t)(end - at) >= length && memcmp(at, text, length) == 0;
}

const char *text_format_xml_root(const char *text, size_t length, char *name, size_t size)
{
    const char *end = text + length, *at = skip_blanks(text, end);
    size_t used = 0;

    if (at == end || *at != '<')
        return NULL;
    for (;; at = skip_blanks(at, end)) {
        if (is_at(at, end, "<!--"))
            at = place_behind(at + 4, end, "-->");
        else if (is_at(at, end, "<?"))
            at = place_behind(at, end, "?>");
        else if (is_at(at, end, "<!"))
            at = place_behind(at, end, ">");
        else
            break;
    }
    if (at < end && *at == '<')
        while (++at < end && used + 1 < size && *at > ' ' && *at <= '~' &&
               strchr("/>", *at) == NULL)
            name[used++] = *at;
    name[used] = '\0';
    return name;
}

static const char *xml_format(const char *root, char room[TEXT_FORMAT_SIZE])
{
    if (strcmp(root, "algo") == 0)
        return TEXT_FORMAT_MSCCL;
    if (strcmp(root, "Algo") == 0)
        return TEXT_FORMAT_FORESTCOLL;
    if (strcmp(root, "svg") == 0)
        return "an SVG picture";
    if (strcasecmp(root, "html") == 0)
        return "an HTML page";
    if (root[0] == '\0')
        return "XML";
    (void)snprintf(room, TEXT_FORMAT_SIZE, "XML with <%s> as its outermost element", root);
    return room;
}

/* --- JSON --- */

/* A schedule for torusd has one object a line, the first with "schedule", the others with "src". TE-CCL's keys have
 * numbers, which differ in its versions. */
static const char *json_format(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    size_t line = (size_t)((newline != NULL ? newline : end) - at);

    if (memmem(at, line, "\"schedule\"", 10) != NULL)
        return TEXT_FORMAT_SCHEDULE;
    if (memmem(at, line, "\"src\"", 5) != NULL)
        return TEXT_FORMAT_ROUTES;
    if (memmem(at, (size_t)(end - at), "-Flows\"", 7) != NULL ||
        memmem(at, (size_t)(end - at), "hunk paths\"", 11) != NULL)
        return TEXT_FORMAT_TECCL;
    if (memchr(at, '}', line) == NULL && newline != NULL)
        return "JSON with objects of several lines";
    return "JSON of another kind";
}

const char *text_format(const char *text, size_t length, char room[TEXT_FORMAT_SIZE])
{
    static const struct beginning known[] = {
        BEGINS("num_ranks ", "a GOAL schedule"),
        BEGINS("torusd-key-", "a cluster key"),
        BEGINS("#!", "a script"),
    };
    const char *end = text + length, *at = skip_blanks(text, end);
    const char *format = find_format(known, sizeof known / sizeof *known, at, (size_t)(end - at));
    char root[32];

    if (format != NULL)
        return format;
    if (text_format_xml_root(text, length, root, sizeof root) != NULL)
        return xml_format(root, room);
    if (at < end && *at == '{')
        return json_format(at, end);
    while (at < end && (*at == ';' || *at == '#'))
        at = skip_blanks(place_behind(at, end, "\n"), end);
    if (at < end && *at == '[') {
        const char *next = skip_blanks(at + 1, end);
        bool array = next == end || strchr("[{\"]", *next) != NULL ||
                     memchr(at, '\n', (size_t)(next - at)) != NULL;
        return array ? "a JSON array" : TEXT_FORMAT_INI;
    }
    if (memmem(text, length, "\nnum_ranks ", 11) != NULL) /* behind comments */
        return "a GOAL schedule";
    return NULL;
}
