#include "daemon/torusd/copy/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define DIGITS_MOST 11u /* of a rank, with '/' */

int copy_path_check(const char *path, const char *what, bool *ranks, struct error *e)
{
    char shown[120];

    *ranks = false;
    (void)text_printable(shown, sizeof shown, path);
    if (path[0] != '/')
        return error_set(e, ERROR_USAGE, "the %s \"%s\" is not an absolute path", what, shown);
    if (strlen(path) > COPY_PATH_MOST)
        return error_set(e, ERROR_USAGE, "the %s \"%s\" is longer than %u bytes", what, shown,
                         COPY_PATH_MOST);
    for (const char *at = strchr(path, '%'); at != NULL; at = strchr(at + 2, '%')) {
        if (at[1] != 'r' && at[1] != '%')
            return error_set(e, ERROR_USAGE,
                             "the %s \"%s\" has a %% without r: write %%r for a rank, and %%%% for "
                             "a per cent sign",
                             what, shown);
        *ranks |= at[1] == 'r';
    }
    return 0;
}

char *copy_path_expand(const char *path, uint32_t rank, const uint32_t *below)
{
    size_t room = strlen(path) + DIGITS_MOST + 1;
    char *out, *end;

    for (const char *at = strchr(path, '%'); at != NULL; at = strchr(at + 2, '%'))
        room += DIGITS_MOST;
    out = end = malloc(room);
    if (out == NULL)
        return NULL;
    for (; *path != '\0'; path++)
        if (*path != '%')
            *end++ = *path;
        else if (*++path == 'r')
            end += snprintf(end, DIGITS_MOST, "%u", rank);
        else
            *end++ = '%';
    *end = '\0';
    if (below != NULL)
        (void)snprintf(end, DIGITS_MOST + 1, "/%u", *below);
    return out;
}

/* The same path without empty names, ".", and a slash at the end; allocated. */
static char *tidy(const char *path)
{
    char *out = malloc(strlen(path) + 2), *end = out;

    while (out != NULL && *path != '\0') {
        const size_t length = strcspn(path, "/");
        if (length > 0 && !(length == 1 && path[0] == '.')) {
            *end++ = '/';
            end = (char *)memcpy(end, path, length) + length;
        }
        path += length + (path[length] == '/');
    }
    if (out != NULL)
        *end = '\0';
    return out;
}

/* Whether `inner` is `outer`, or is in a folder RANK of it. */
static bool is_in_ranks(const char *outer, const char *inner)
{
    const size_t length = strlen(outer);

    if (strncmp(outer, inner, length) != 0)
        return false;
    return inner[length] == '\0' ||
           (inner[length] == '/' &&
            strspn(inner + length + 1, "0123456789") == strcspn(inner + length + 1, "/"));
}

int copy_paths_clash(const char *from, const char *to)
{
    char *a = tidy(from), *b = tidy(to);
    const int result = a == NULL || b == NULL ? -1 : is_in_ranks(a, b) || is_in_ranks(b, a);

    free(a);
    free(b);
    return result;
}
