#include "proto/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Whether a character changes the order or the lines of the text around it, as those for texts from right to left do. */
static bool rearranges(uint32_t point)
{
    return point == 0x61c || point == 0x200e || point == 0x200f ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

/* The length of the printable character at p, or 0 if there is none. A NUL ends every check. */
static unsigned character_length(const uint8_t *p)
{
    unsigned length;
    uint32_t point, least;

    if (p[0] < 0x80)
        return p[0] >= 0x20 && p[0] != 0x7f ? 1 : 0;
    if ((p[0] & 0xe0) == 0xc0)
        length = 2, point = p[0] & 0x1fu, least = 0xa0; /* 80..9f are control characters */
    else if ((p[0] & 0xf0) == 0xe0)
        length = 3, point = p[0] & 0x0fu, least = 0x800;
    else if ((p[0] & 0xf8) == 0xf0)
        length = 4, point = p[0] & 0x07u, least = 0x10000;
    else
        return 0;
    for (unsigned i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (p[i] & 0x3fu);
    }
    if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ||
        rearranges(point))
        return 0;
    return length;
}

void text_clean(char *text)
{
    uint8_t *p = (uint8_t *)text;
    while (*p != '\0') {
        unsigned length = character_length(p);
        if (length == 0) {
            *p = '?';
            length = 1;
        }
        p += length;
    }
}

char *text_printable(char *out, size_t size, const char *text)
{
    (void)snprintf(out, size, "%s", text);
    text_clean(out);
    return out;
}

char *text_escaped(const uint8_t *bytes, size_t length)
{
    char *ended = malloc(length + 1), *out = NULL;
    size_t used = 0;

    if (ended != NULL && length <= (SIZE_MAX - 1) / 4)
        out = malloc(4 * length + 1);
    if (out != NULL) {
        if (length > 0)
            memcpy(ended, bytes, length);
        ended[length] = '\0'; /* ends the checks of characters */
    }
    for (size_t i = 0; out != NULL && i < length;) {
        const uint8_t *p = (const uint8_t *)ended + i;
        unsigned n = *p == '\\' ? 0 : character_length(p);

        if (n > 0)
            memcpy(out + used, p, n);
        else
            (void)snprintf(out + used, 5, "\\x%02x", *p);
        used += n > 0 ? n : 4;
        i += n > 0 ? n : 1;
    }
    if (out != NULL)
        out[used] = '\0';
    free(ended);
    return out;
}

int text_parse_bytes(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *suffix;
        uint64_t factor;
    } units[] = {
        {"", 1},         {"B", 1},          {"K", 1u << 10},    {"KiB", 1u << 10},
        {"M", 1u << 20}, {"MiB", 1u << 20}, {"G", 1u << 30},    {"GiB", 1u << 30},
        {"KB", 1000},    {"MB", 1000000},   {"GB", 1000000000},
    };
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -1;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0)
        return -1;
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcasecmp(end, units[i].suffix) == 0)
            return __builtin_mul_overflow(number, units[i].factor, bytes) ? -1 : 0;
    return -1;
}
