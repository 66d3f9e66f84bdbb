#include "daemon/torusd/files/target/target_names.h"

#include <stdio.h>
#include <string.h>

const char *target_full_name(const struct target *t, char name[2 * PATH_MAX])
{
    (void)snprintf(name, 2 * PATH_MAX, "%s/%s", t->entry.folder, t->entry.final);
    return name;
}

int target_name_too_long(const char *name, size_t length, size_t size, struct error *e)
{
    size_t added = length - strlen(name);

    return error_set(e, ERROR_USAGE,
                     "target name is too long: %zu bytes, at most %zu are possible, because the "
                     "name of its temporary folder is longer: %.60s...",
                     strlen(name), size - 1 - added, name);
}

char *target_cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash != NULL) {
        *slash = '\0';
        return slash + 1;
    }
    return NULL;
}

int target_set_temporary(struct target *t, const char *name, uint32_t rank, struct error *e)
{
    int n = snprintf(t->entry.temporary, sizeof t->entry.temporary, ".%s.torusd-%s-%u", name, t->id,
                     rank);

    if (n < 0 || (size_t)n >= sizeof t->entry.temporary || strlen(name) > NAME_MAX)
        return target_name_too_long(name, (size_t)n, sizeof t->entry.temporary, e);
    return 0;
}

int target_set_names(struct target *t, const struct place *place, uint32_t rank, struct error *e)
{
    const char *root = t->roots->path[place->root];
    const char *name;
    int n;

    t->above = *place;
    name = target_cut_last(t->above.path);
    if (name == NULL) {
        name = place->path;
        (void)strcpy(t->above.path, ".");
    }
    if (target_set_temporary(t, name, rank, e) != 0)
        return -1;
    memcpy(t->entry.final, name, strlen(name) + 1);
    if (strcmp(t->above.path, ".") == 0)
        n = snprintf(t->entry.folder, sizeof t->entry.folder, "%s", root);
    else
        n = snprintf(t->entry.folder, sizeof t->entry.folder, "%s/%s",
                     strcmp(root, "/") == 0 ? "" : root, t->above.path);
    if (n < 0 || (size_t)n >= sizeof t->entry.folder)
        return error_set(e, ERROR_USAGE,
                         "target path is too long: %d bytes, at most %zu are possible: %.60s...", n,
                         sizeof t->entry.folder - 1, place->path);
    return 0;
}
