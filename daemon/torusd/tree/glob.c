#include "daemon/torusd/tree/glob.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/tree/manifest.h"

#define TEXT_MOST (MANIFEST_PATH_MOST + 2u) /* with a '/' before it, and one behind */

enum part_kind {
    PART_SET,      /* one byte of a set */
    PART_ANY_NAME, /* any bytes except '/' */
    PART_ANY,      /* any bytes */
};

struct part {
    enum part_kind kind;
    uint8_t set[32]; /* a bit for each byte */
};

struct glob {
    bool slash_in_set;
    size_t count;
    struct part part[];
};

static void put_in(struct part *p, unsigned byte)
{
    p->set[byte / 8] |= (uint8_t)(1u << byte % 8);
}

static bool is_in(const struct part *p, unsigned char byte)
{
    return (p->set[byte / 8] >> byte % 8 & 1) != 0;
}

bool glob_is_needed(const char *pattern)
{
    return strpbrk(pattern, "*?[") != NULL;
}

/* Adds a class such as "[:digit:]" to a set. Returns the address behind it, or NULL if there is no such class. */
static const char *read_class(struct part *p, const char *at)
{
    static const struct {
        const char *name;
        int (*has)(int byte);
    } classes[] = {{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank},
                   {"cntrl", iscntrl}, {"digit", isdigit}, {"graph", isgraph},
                   {"lower", islower}, {"print", isprint}, {"punct", ispunct},
                   {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit}};
    const char *end = strstr(at, ":]");

    for (size_t i = 0; end != NULL && i < sizeof classes / sizeof *classes; i++) {
        size_t length = strlen(classes[i].name);
        if ((size_t)(end - at) != length + 2 || strncmp(at + 2, classes[i].name, length) != 0)
            continue;
        for (int byte = 0; byte < 128; byte++)
            if (classes[i].has(byte))
                put_in(p, (unsigned)byte);
        return end + 2;
    }
    return NULL;
}

/* Reads one byte of a set, which a '\' may precede. */
static const char *read_member(const char *at, unsigned *byte)
{
    if (*at == '\\' && at[1] != '\0')
        at++;
    *byte = (unsigned char)*at;
    return at + 1;
}

/* Reads a set behind its '['. Returns the address behind its ']', or NULL if it has none: it matches nothing then. */
static const char *read_set(struct part *p, const char *at)
{
    bool others = *at == '!' || *at == '^', first = true;
    unsigned low, high;

    at += others;
    for (; at != NULL && (*at != ']' || first); first = false) {
        if (*at == '\0')
            return NULL;
        if (at[0] == '[' && at[1] == ':') {
            at = read_class(p, at);
            continue;
        }
        at = read_member(at, &low);
        high = low;
        if (at[0] == '-' && at[1] != ']' && at[1] != '\0')
            at = read_member(at + 1, &high);
        put_in(p, low); /* also of a range that ends before it begins */
        for (unsigned byte = low; byte <= high; byte++)
            put_in(p, byte);
    }
    for (size_t i = 0; others && i < sizeof p->set; i++)
        p->set[i] = (uint8_t)~p->set[i];
    p->set['/' / 8] &= (uint8_t) ~(1u << '/' % 8);
    return at != NULL ? at + 1 : NULL;
}

/* Reads one part. Returns the address behind it. */
static const char *read_part(struct glob *g, struct part *p, const char *at)
{
    unsigned char byte = (unsigned char)*at++;

    p->kind = PART_SET;
    if (byte == '*') {
        p->kind = *at == '*' ? PART_ANY : PART_ANY_NAME;
        return at + strspn(at, "*");
    }
    if (byte == '?') {
        memset(p->set, 0xff, sizeof p->set);
        p->set['/' / 8] &= (uint8_t) ~(1u << '/' % 8);
        return at;
    }
    if (byte == '[') {
        const char *end = read_set(p, at);
        if (end != NULL) {
            g->slash_in_set = g->slash_in_set || memchr(at, '/', (size_t)(end - at)) != NULL;
            return end;
        }
        memset(p->set, 0, sizeof p->set);
        return at + strlen(at);
    }
    if (byte == '\\') {
        if (*at == '\0') /* it takes the meaning of nothing: matches nothing */
            return at;
        byte = (unsigned char)*at++;
    }
    put_in(p, byte);
    return at;
}

struct glob *glob_new(const char *pattern)
{
    struct glob *g = calloc(1, sizeof *g + (strlen(pattern) + 1) * sizeof *g->part);

    while (g != NULL && *pattern != '\0')
        pattern = read_part(g, &g->part[g->count++], pattern);
    return g;
}

bool glob_has_slash_in_set(const struct glob *g)
{
    return g->slash_in_set;
}

void glob_free(struct glob *g)
{
    free(g);
}

/* --- matching --- */

/* Where in the text a part may end: from[i] says whether what comes before it can match up to byte i. */
static bool advance(const struct part *p, const char *text, size_t length, bool *from)
{
    bool any = false, reached = false, before = false;

    for (size_t i = 0; i <= length; i++) {
        bool now = from[i];
        if (p->kind == PART_SET) {
            from[i] = before && is_in(p, (unsigned char)text[i - 1]);
            before = now;
        } else {
            if (i > 0 && p->kind == PART_ANY_NAME && text[i - 1] == '/')
                reached = false;
            reached = reached || now;
            from[i] = reached;
        }
        any = any || from[i];
    }
    return any;
}

bool glob_matches(const struct glob *g, const char *text, enum glob_start start, bool slash_behind)
{
    char whole[TEXT_MOST + 1];
    bool from[TEXT_MOST + 1];
    size_t length = strnlen(text, MANIFEST_PATH_MOST);

    whole[0] = '/';
    memcpy(whole + 1, text, length);
    whole[++length] = '/'; /* counts only with slash_behind */
    for (size_t i = 0; i <= length + 1; i++)
        from[i] = i == 1 || (i == 0 && start == GLOB_AT_SLASH) ||
                  (i > 1 && i <= length && start == GLOB_AT_NAMES && whole[i - 1] == '/');
    for (size_t i = 0; i < g->count; i++)
        if (!advance(&g->part[i], whole, length + slash_behind, from))
            return false;
    return from[length] || (slash_behind && from[length + 1]);
}
