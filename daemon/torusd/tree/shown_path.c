#include "daemon/torusd/tree/shown_path.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "proto/text.h"

const char *show_path(struct shown_path *out, const char *above, const char *below)
{
    char whole[2 * PATH_MAX];
    int length = snprintf(whole, sizeof whole, "%s%s%s", above, *below != '\0' ? "/" : "", below);
    size_t used = length < 0 ? 0 : (size_t)length;

    if (used >= sizeof whole)
        used = sizeof whole - 1;
    if (used < sizeof out->text)
        return text_printable(out->text, sizeof out->text, whole);
    memcpy(out->text, "...", 3);
    (void)text_printable(out->text + 3, sizeof out->text - 3, whole + used - (SHOWN_PATH - 4));
    return out->text;
}
