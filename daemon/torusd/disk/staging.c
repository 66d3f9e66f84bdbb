#include "daemon/torusd/disk/staging.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define NAME_KEPT 200u /* bytes of the name of a target that its staging has, if it is longer */

/* Names that become too long end with a digest. */
void staging_name_copy(const char *target, char out[NAME_MAX + 1])
{
    uint8_t digest[8];
    char hex[2 * sizeof digest + 1];

    if (strcmp(target, ".") == 0) {
        (void)strcpy(out, STAGING_COPY);
    } else if (strlen(target) <= NAME_KEPT) {
        (void)snprintf(out, NAME_MAX + 1, ".%.*s" STAGING_COPY, (int)NAME_KEPT, target);
    } else {
        (void)crypto_generichash(digest, sizeof digest, (const uint8_t *)target, strlen(target),
                                 NULL, 0);
        (void)sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
        (void)snprintf(out, NAME_MAX + 1, ".%.*s-%s" STAGING_COPY, (int)NAME_KEPT, target, hex);
    }
}

bool staging_is_name(const char *name)
{
    size_t length = strlen(name), suffix = strlen(STAGING_COPY);

    return name[0] == '.' && length >= suffix && strcmp(name + length - suffix, STAGING_COPY) == 0;
}

bool staging_is_path(const char *path)
{
    char name[NAME_MAX + 1];

    for (size_t length; *path != '\0'; path += length + (path[length] == '/')) {
        length = strcspn(path, "/");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, path);
        if (staging_is_name(name))
            return true;
    }
    return false;
}

int staging_folder_check(const struct file_system *files, int above, const char *name, int folder)
{
    struct file_status open, named;
    int result = files->status(files->context, folder, &open);

    if (result == 0)
        result = files->status_at(files->context, above, name, &named);
    if (result == 0 && (open.device != named.device || open.number != named.number))
        result = -ESTALE;
    return result == -ENOENT ? -ESTALE : result;
}

int staging_folder_open(const struct file_system *files, int above, const char *name)
{
    int folder = files->open_folder(files->context, above, name);

    if (folder < 0)
        return folder;
    int result = files->lock(files->context, folder);
    if (result == 0)
        result = staging_folder_check(files, above, name, folder);
    if (result < 0)
        files->close(files->context, folder);
    return result < 0 ? result : folder;
}

int staging_folder_remove(const struct file_system *files, int above, const char *name, int folder)
{
    int result = staging_folder_check(files, above, name, folder);

    return result < 0 ? result : files->remove_folder(files->context, above, name);
}

int staging_rival(const char *who, const char *path, struct error *e)
{
    return error_set(e, ERROR_BUSY, "%s is writing to %s: wait for its end, or stop it", who, path);
}

int staging_shared(const char *path, struct error *e)
{
    return error_set(e, ERROR_REFUSED,
                     "target %s is also the target of another node: put %%r (the node's rank) into "
                     "its path",
                     path);
}

struct looking {
    const struct staging_claim *claim;
    char stem[NAME_MAX + 2]; /* what the names of the stagings of exchanges begin with */
    char copy[NAME_MAX + 1];
    struct error *error;
};

static void look_at(void *argument, const char *name)
{
    const struct looking *l = argument;
    const struct staging_claim *c = l->claim;
    const bool copy = strcmp(name, l->copy) == 0;
    const size_t stem = strlen(l->stem), id = c->id != NULL ? strlen(c->id) : 0;

    if (l->error->code != ERROR_NONE || strcmp(name, c->own) == 0 ||
        (!copy && strncmp(name, l->stem, stem) != 0))
        return;
    if (!copy && id > 0 && strncmp(name + stem, c->id, id) == 0 && name[stem + id] == '-') {
        (void)staging_shared(c->path, l->error);
        return;
    }
    int folder = staging_folder_open(c->files, c->above, name);
    if (folder >= 0)
        c->files->close(c->files->context, folder);
    if (folder == -EWOULDBLOCK)
        (void)staging_rival(copy     ? "a copy"
                            : id > 0 ? "another exchange"
                                     : "an exchange",
                            c->path, l->error);
    else if (!copy && id > 0 && c->in_doubt(c->context, name + stem, name))
        (void)error_set(l->error, ERROR_BUSY,
                        "target %s is kept for an exchange whose outcome is in doubt: %s", c->path,
                        name);
}

int staging_check_rivals(const struct staging_claim *claim, struct error *e)
{
    const struct file_system *files = claim->files;
    struct looking l = {.claim = claim, .error = e};

    *e = (struct error){0};
    (void)snprintf(l.stem, sizeof l.stem, ".%.*s.torusd-", NAME_MAX - 10, claim->target);
    staging_name_copy(claim->target, l.copy);
    const int result = files->list(files->context, claim->above, look_at, &l);
    if (result < 0)
        return error_set(e, ERROR_IO, "the folder above %s cannot be read: %s", claim->path,
                         strerror(-result));
    return e->code == ERROR_NONE ? 0 : -1;
}
