#include "daemon/copy/paths.h"

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
