#include "daemon/torusd/tree/patterns.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/tree/glob.h"

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
                         "\"%s\" is no pattern: it must be \"- \" or \"+ \", and a pattern", text);
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
