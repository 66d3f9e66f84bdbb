#include "daemon/torusd/tree/patterns.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/tree/manifest.h"

/* Matches one pattern of patterns.h against one text. */

/* Where a match may begin; it always reaches to the end of the text. */
enum glob_start {
    GLOB_AT_START,
    GLOB_AT_NAMES, /* at the start, and behind each '/' */
    GLOB_AT_SLASH, /* at the start, or as if a '/' came before it */
};

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

/* Whether a pattern has special bytes; otherwise it matches itself only. */
static bool glob_is_needed(const char *pattern)
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
        if (*at == '\0') /* a backslash at the end escapes nothing, and matches nothing */
            return at;
        byte = (unsigned char)*at++;
    }
    put_in(p, byte);
    return at;
}

static struct glob *glob_new(const char *pattern)
{
    struct glob *g = calloc(1, sizeof *g + (strlen(pattern) + 1) * sizeof *g->part);

    while (g != NULL && *pattern != '\0')
        pattern = read_part(g, &g->part[g->count++], pattern);
    return g;
}

/* Whether a set has a '/', which sets do not match. */
static bool glob_has_slash_in_set(const struct glob *g)
{
    return g->slash_in_set;
}

static void glob_free(struct glob *g)
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

/* Whether the pattern matches the text, or the text with a '/' behind it (`slash_behind`). The text has at most
 * MANIFEST_PATH_MOST bytes. */
static bool glob_matches(const struct glob *g, const char *text, enum glob_start start,
                         bool slash_behind)
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

/* --- patterns --- */

struct pattern {
    struct glob *glob; /* NULL: `text` matches itself only */
    const char *text;  /* without the mark, and without '/' at the beginning and at the end */
    bool leaves_out;
    bool only_folders;
    bool at_top;    /* a '/' was at its beginning */
    bool never;     /* it matches nothing */
    bool names;     /* matches names, not paths */
    bool with_all;  /* ends with "/" and "***" */
    bool any_start; /* begins with "**" */
};

struct patterns {
    uint32_t count;
    struct pattern *pattern;
    char **copy;
};

void patterns_free(struct patterns *p)
{
    if (p == NULL)
        return;
    for (uint32_t i = 0; i < p->count; i++) {
        glob_free(p->pattern[i].glob);
        free(p->copy[i]);
    }
    free(p->pattern);
    free(p->copy);
    free(p);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Reads a pattern whose text may be changed. Returns 0, or -1 with *e. */
static int read_pattern(struct pattern *p, char *text, struct error *e)
{
    if ((text[0] != '-' && text[0] != '+') || text[1] != ' ' || text[2] == '\0')
        return error_set(e, ERROR_USAGE,
                         "\"%s\" is not a pattern: it must be \"- \" or \"+ \", and a pattern",
                         text);
    p->leaves_out = text[0] == '-';
    text += 2;
    p->with_all = ends_with(text, "/***");
    size_t length = strlen(text);
    if (length > 1 && text[length - 1] == '/') {
        p->only_folders = true;
        text[length - 1] = '\0';
    }
    p->at_top = text[0] == '/';
    text += p->at_top;
    p->text = text;
    p->any_start = !p->at_top && strncmp(text, "**", 2) == 0;
    p->names = !p->at_top && strchr(text, '/') == NULL && strstr(text, "**") == NULL;
    if (!glob_is_needed(text))
        return 0;
    p->glob = glob_new(text);
    if (p->glob == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for patterns");
    /* a path with as many '/' as the pattern does not match, and no other path is tried */
    p->never = !p->at_top && strstr(text, "**") == NULL && glob_has_slash_in_set(p->glob);
    return 0;
}

struct patterns *patterns_new(const char *const *text, uint32_t count, struct error *e)
{
    struct patterns *p = calloc(1, sizeof *p);

    if (p != NULL) {
        p->pattern = calloc((size_t)count + 1, sizeof *p->pattern);
        p->copy = calloc((size_t)count + 1, sizeof *p->copy);
    }
    if (p == NULL || p->pattern == NULL || p->copy == NULL) {
        patterns_free(p);
        (void)error_set(e, ERROR_MEMORY, "out of memory for patterns");
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        p->copy[i] = strdup(text[i]);
        p->count++;
        int result = p->copy[i] != NULL ? read_pattern(&p->pattern[i], p->copy[i], e)
                                        : error_set(e, ERROR_MEMORY, "out of memory for patterns");
        if (result != 0) {
            patterns_free(p);
            return NULL;
        }
    }
    return p;
}

/* Whether a pattern without special bytes matches. */
static bool matches_itself(const struct pattern *p, const char *path, const char *name)
{
    size_t path_length = strlen(path), length = strlen(p->text);

    if (p->names)
        return strcmp(name, p->text) == 0;
    if (p->at_top)
        return strcmp(path, p->text) == 0;
    return ends_with(path, p->text) &&
           (path_length == length || path[path_length - length - 1] == '/');
}

static bool matches(const struct pattern *p, const char *path, const char *name, bool folder)
{
    if (p->never || (p->only_folders && !folder))
        return false;
    if (p->glob == NULL)
        return matches_itself(p, path, name);
    if (p->names)
        return glob_matches(p->glob, name, GLOB_AT_START, false);
    return glob_matches(p->glob, path,
                        p->at_top      ? GLOB_AT_START
                        : p->any_start ? GLOB_AT_SLASH
                                       : GLOB_AT_NAMES,
                        folder && p->with_all);
}

bool patterns_leave_out(const struct patterns *p, const char *path, bool folder)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

    for (uint32_t i = 0; i < p->count && *path != '\0'; i++)
        if (matches(&p->pattern[i], path, name, folder))
            return p->pattern[i].leaves_out;
    return false;
}
