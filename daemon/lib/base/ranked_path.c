#include "daemon/lib/base/ranked_path.h"

#include <stdio.h>
#include <string.h>

#include "proto/text.h"

bool ranked_path_has_rank(const char *path)
{
    for (; (path = strchr(path, '%')) != NULL; path += path[1] != '\0' ? 2 : 1)
        if (path[1] == 'r')
            return true;
    return false;
}

int ranked_path_check(const char *path, struct error *e)
{
    char shown[160];

    (void)text_printable(shown, sizeof shown, path);
    if (path[0] != '/')
        return error_set(e, ERROR_USAGE, "\"%s\" is not an absolute path", shown);
    for (const char *at = strchr(path, '%'); at != NULL; at = strchr(at + 2, '%'))
        if (at[1] != 'r' && at[1] != '%')
            return error_set(e, ERROR_USAGE,
                             "\"%s\" has a %% that is not followed by r (the node's rank) or %%",
                             shown);
    return 0;
}

size_t ranked_path_expand(const char *path, uint32_t rank, char *out, size_t size)
{
    char digits[RANK_DIGITS + 1];
    size_t used = 0;

    (void)snprintf(digits, sizeof digits, "%u", rank);
    for (; *path != '\0'; path++) {
        const char *add = path;
        size_t length = 1;
        if (*path == '%' && *++path == 'r') {
            add = digits;
            length = strlen(digits);
        }
        for (size_t i = 0; i < length; i++, used++)
            if (used + 1 < size)
                out[used] = add[i];
    }
    out[used < size ? used : size - 1] = '\0';
    return used;
}
