/* What a staging may hold: files and folders that torusd has made. Links and folders in the place of files would lead
 * copies elsewhere, or fail them one after the other. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/names.h"
#include "daemon/torusd/tree/staging.h"

#define DEEP 3u /* f/XXXXX/XXXXXXX */

struct checking {
    const struct staging *staging;
    char path[3 * (NAME_MAX + 1)];
};

/* The kind that something with this path has to have; 0: any. */
static mode_t kind_of(const char *path, unsigned depth)
{
    static const char *const file[] = {
        STAGING_MANIFEST, STAGING_MANIFEST_NEW, STAGING_ARRIVED, "arrived.new",
        "arrived.synced", "arrived.syncing",    "stamps",        "reserve",
        "complete",       "complete.new",       STAGING_HOLDER};

    if (depth > 1)
        return depth == DEEP ? S_IFREG : S_IFDIR;
    for (unsigned i = 0; i < sizeof file / sizeof *file; i++)
        if (strcmp(path, file[i]) == 0)
            return S_IFREG;
    return strcmp(path, STAGING_FILES) == 0 || strcmp(path, STAGING_OLD_FILES) == 0 ||
                   strcmp(path, STAGING_TREE) == 0
               ? S_IFDIR
               : 0;
}

static int check_below(struct checking *c, int folder, unsigned depth, struct error *e);

/* Checks the name that c->path ends with. */
static int check_name(struct checking *c, int folder, const char *name, unsigned char type,
                      unsigned depth, struct error *e)
{
    mode_t mode = type == DT_UNKNOWN ? 0 : (mode_t)DTTOIF(type), kind = kind_of(c->path, depth);
    struct stat st;

    if (mode == 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        mode = st.st_mode & S_IFMT;
    if (kind != 0 && mode != kind)
        return staging_refuse(c->staging, c->path, mode, e);
    if (kind != S_IFDIR || (depth == 1 && strcmp(name, STAGING_TREE) == 0))
        return 0;
    int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int result = inner >= 0 ? check_below(c, inner, depth + 1, e)
                            : staging_failed(c->staging, "examined", errno, e);
    if (inner >= 0)
        (void)close(inner);
    return result;
}

static int check_below(struct checking *c, int folder, unsigned depth, struct error *e)
{
    const size_t length = strlen(c->path);
    struct names names = {0};
    int error = names_read(&names, folder);
    int result = error < 0 ? staging_failed(c->staging, "examined", -error, e) : 0;

    for (size_t i = 0; i < names.count && result == 0; i++) {
        const char *name = names_get(&names, i);
        (void)snprintf(c->path + length, sizeof c->path - length, "%s%s", length > 0 ? "/" : "",
                       name);
        result = check_name(c, folder, name, names_type(&names, i), depth, e);
    }
    c->path[length] = '\0';
    names_free(&names);
    return result;
}

int staging_check(const struct staging *s, struct error *e)
{
    struct checking c = {.staging = s};

    return check_below(&c, s->folder, 1, e);
}
