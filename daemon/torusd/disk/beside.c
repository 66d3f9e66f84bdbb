#include "daemon/torusd/disk/beside.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define NAME_KEPT 200u /* bytes of the name of a target that its folder has, if it is longer */

/* Names that become too long end with a digest. */
void beside_name_copy(const char *target, char out[NAME_MAX + 1])
{
    uint8_t digest[8];
    char hex[2 * sizeof digest + 1];

    if (strcmp(target, ".") == 0) {
        (void)strcpy(out, BESIDE_COPY);
    } else if (strlen(target) <= NAME_KEPT) {
        (void)snprintf(out, NAME_MAX + 1, ".%.*s" BESIDE_COPY, (int)NAME_KEPT, target);
    } else {
        (void)crypto_generichash(digest, sizeof digest, (const uint8_t *)target, strlen(target),
                                 NULL, 0);
        (void)sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
        (void)snprintf(out, NAME_MAX + 1, ".%.*s-%s" BESIDE_COPY, (int)NAME_KEPT, target, hex);
    }
}

int beside_name_exchanges(const char *target, char out[NAME_MAX + 1])
{
    return snprintf(out, NAME_MAX + 1, ".%s.torusd-", target);
}

bool beside_is_used(const struct file_system *files, int above, const char *name)
{
    int folder = files->open_folder(files->context, above, name);
    const bool used = folder >= 0 && files->lock(files->context, folder) == -EWOULDBLOCK;

    if (folder >= 0)
        files->close(files->context, folder);
    return used;
}

struct looking {
    const struct file_system *files;
    int above;
    char stem[NAME_MAX + 1];
    bool found;
};

static void look_at(void *argument, const char *name)
{
    struct looking *l = argument;

    if (!l->found && strncmp(name, l->stem, strlen(l->stem)) == 0)
        l->found = beside_is_used(l->files, l->above, name);
}

int beside_find_exchange(const struct file_system *files, int above, const char *target)
{
    struct looking l = {.files = files, .above = above};

    if (beside_name_exchanges(target, l.stem) > NAME_MAX)
        return 0; /* too long for an exchange */
    const int result = files->list(files->context, above, look_at, &l);
    return result < 0 ? result : l.found;
}
