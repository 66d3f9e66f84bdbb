#include "daemon/torusd/tree/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/tree/file_bytes.h"
#include "daemon/torusd/tree/names.h"

#define FOLDER "copies"
#define DIGEST 16u
#define NAME_SIZE (2 * DIGEST + 1)

/* An entry is removed only while no staging of its target exists, and listed when there is one. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static void name_of(const char *path, char name[NAME_SIZE])
{
    uint8_t digest[DIGEST];

    (void)crypto_generichash(digest, sizeof digest, (const uint8_t *)path, strlen(path), NULL, 0);
    (void)sodium_bin2hex(name, NAME_SIZE, digest, sizeof digest);
}

/* Opens the folder of the list. Returns its descriptor or -errno. */
static int open_folder(const char *state_folder, bool make)
{
    int state = open(state_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;

    if (state < 0)
        return -errno;
    if (make && mkdirat(state, FOLDER, 0700) == 0)
        result = fsync(state) == 0 ? 0 : -errno;
    else if (make && errno != EEXIST)
        result = -errno;
    int folder = openat(state, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        result = -errno;
    (void)close(state);
    return result == 0 ? folder : result;
}

static int failed(const char *path, int error, struct error *e)
{
    return error_set(e, ERROR_IO, "the copy to %s cannot be recorded in the state folder: %s", path,
                     strerror(error));
}

int listing_add(const char *state_folder, const char *path, struct error *e)
{
    char name[NAME_SIZE];
    int folder = open_folder(state_folder, true);

    if (folder < 0)
        return failed(path, -folder, e);
    name_of(path, name);
    (void)pthread_mutex_lock(&changing);
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int result = file < 0 || file_write(file, path, strlen(path), 0) != 0 ? -errno : 0;
    (void)pthread_mutex_unlock(&changing);
    if (file >= 0)
        (void)close(file);
    (void)close(folder);
    return result == 0 ? 0 : failed(path, -result, e);
}

int listing_sync(const char *state_folder, const char *path, struct error *e)
{
    char name[NAME_SIZE];
    int folder = open_folder(state_folder, false);

    if (folder < 0)
        return failed(path, -folder, e);
    name_of(path, name);
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int result = file < 0 || fsync(file) != 0 || fsync(folder) != 0 ? -errno : 0;
    if (file >= 0)
        (void)close(file);
    (void)close(folder);
    return result == 0 ? 0 : failed(path, -result, e);
}

static void remove_entry(const char *state_folder, const char *name)
{
    int folder = open_folder(state_folder, false);

    if (folder == -ENOENT)
        return;
    if (folder < 0 || (unlinkat(folder, name, 0) != 0 && errno != ENOENT))
        log_warning("the entry %s of a copy in the state folder cannot be removed: %s", name,
                    strerror(folder < 0 ? -folder : errno));
    if (folder >= 0)
        (void)close(folder);
}

void listing_remove(const char *state_folder, const struct staging *s)
{
    char name[NAME_SIZE];

    name_of(s->path, name);
    (void)pthread_mutex_lock(&changing);
    if (!staging_exists(s))
        remove_entry(state_folder, name);
    (void)pthread_mutex_unlock(&changing);
}

/* Reads an entry. Returns whether it is that of a target. */
static bool read_entry(int folder, const char *name, char path[PATH_MAX])
{
    char expected[NAME_SIZE];
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, path, PATH_MAX - 1);

    if (file >= 0)
        (void)close(file);
    if (length <= 0)
        return false;
    path[length] = '\0';
    name_of(path, expected);
    return strcmp(name, expected) == 0;
}

int listing_each(const char *state_folder, void (*each)(void *context, const char *path),
                 void *context, struct error *e)
{
    struct names names = {0};
    char path[PATH_MAX];
    int folder = open_folder(state_folder, false);

    if (folder == -ENOENT)
        return 0;
    int result = folder < 0 ? folder : names_read(&names, folder);
    for (size_t i = 0; i < names.count && result == 0; i++) {
        if (read_entry(folder, names_get(&names, i), path)) {
            each(context, path);
        } else { /* a crash cut it off before the staging was made */
            log_warning("the entry %s of a copy in the state folder is damaged, and is removed",
                        names_get(&names, i));
            remove_entry(state_folder, names_get(&names, i));
        }
    }
    names_free(&names);
    if (folder >= 0)
        (void)close(folder);
    if (result < 0)
        return error_set(e, ERROR_IO, "the list of copies in the state folder cannot be read: %s",
                         strerror(-result));
    return 0;
}
