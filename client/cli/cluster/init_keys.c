#include "client/cli/cluster/init_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cluster/host_files.h"

#define NEXT ".next"

static int choose_path(struct init_keys *k, const char *path, const char *cluster_file,
                       struct error *e)
{
    const char *slash = strrchr(cluster_file, '/');
    int folder = slash != NULL ? (int)(slash + 1 - cluster_file) : 0, length;
    const char *standard = host_file_kinds[HOST_FILE_KEY].path;

    if (path != NULL)
        length = snprintf(k->path, sizeof k->path, "%s", path);
    else if (access(standard, R_OK) == 0)
        length = snprintf(k->path, sizeof k->path, "%s", standard);
    else
        length = snprintf(k->path, sizeof k->path, "%.*scluster.key", folder, cluster_file);
    if (length >= (int)(sizeof k->path - sizeof NEXT))
        return error_set(e, ERROR_USAGE, "the path of the key file is too long: %.80s...", k->path);
    (void)snprintf(k->next_path, sizeof k->next_path, "%.*s" NEXT, length, k->path);
    return 0;
}

/* Reads a key from a file. Without the file, makes a key and sets *made. */
static int read_or_make(const char *path, struct key *key, bool *made, struct error *e)
{
    *made = false;
    if (key_read_as_root(path, key, e) == 0)
        return 0;
    if (errno != ENOENT)
        return -1;
    *made = true;
    return key_make(key, e);
}

int init_keys_store(struct init_keys *k, struct error *e)
{
    if (k->made && key_write(k->path, &k->key, e) != 0)
        return -1;
    k->made = false;
    if (k->made_next && key_write(k->next_path, &k->next, e) != 0)
        return -1;
    k->made_next = false;
    return 0;
}

/* Reads the second key of the host whose key file the key is read from, perhaps by a link. Returns 1, 0 if there is none,
 * or -1 with *e. */
static int read_second(const struct init_keys *k, struct key *second, struct error *e)
{
    const char *name = strrchr(host_file_kinds[HOST_FILE_SECOND_KEY].path, '/');
    char *real = realpath(k->path, NULL), *path = NULL;
    const int folder = real != NULL ? (int)(strrchr(real, '/') - real) : 0;
    int rc;

    if (real == NULL || asprintf(&path, "%.*s%s", folder, real, name) < 0) {
        free(real);
        return error_set(e, ERROR_IO, "cannot find the folder of %.200s: %s", k->path,
                         strerror(errno));
    }
    rc = key_read_as_root(path, second, e) == 0 ? 1 : errno == ENOENT ? 0 : -1;
    free(path);
    free(real);
    return rc;
}

/* A change that was interrupted may have reached this host, whose key file is then that of the next key. */
static int find_former(struct init_keys *k, struct error *e)
{
    struct key former;
    int found;

    if (memcmp(k->key.id, k->next.id, KEY_ID_SIZE) != 0)
        return 0;
    k->swapped = true;
    found = read_second(k, &former, e);
    if (found <= 0)
        return found;
    k->swapped = memcmp(former.id, k->next.id, KEY_ID_SIZE) == 0;
    k->key = former;
    key_forget(&former);
    return 0;
}

int init_keys_read(struct init_keys *k, const char *path, const char *cluster_file, bool change,
                   struct error *e)
{
    *k = (struct init_keys){.changing = change};
    if (choose_path(k, path, cluster_file, e) != 0)
        return -1;
    if (change && access(k->path, F_OK) != 0 && errno == ENOENT)
        return error_set(e, ERROR_USAGE,
                         "there is no key to change: %.200s does not exist; name the file of the "
                         "present key with --key FILE",
                         k->path);
    if (read_or_make(k->path, &k->key, &k->made, e) != 0)
        return -1;
    if (!change)
        return 0;
    if (read_or_make(k->next_path, &k->next, &k->made_next, e) != 0)
        return -1;
    return find_former(k, e);
}

void init_keys_list(const struct init_keys *k, struct secrets *list)
{
    struct key own;
    struct error e;

    *list = (struct secrets){0};
    secrets_add(list, &k->key);
    if (k->changing)
        secrets_add(list, &k->next);
    if (key_read_as_root(host_file_kinds[HOST_FILE_KEY].path, &own, &e) == 0)
        secrets_add(list, &own);
    key_forget(&own);
}

int init_keys_finish(struct init_keys *k, struct error *e)
{
    struct stat before;
    int owned = k->changing ? stat(k->path, &before) : -1;

    if (!k->changing)
        return 0;
    /* The file may be that of this host, which belongs to the user of torusd. */
    if ((owned != 0 || geteuid() != 0 || chown(k->next_path, before.st_uid, before.st_gid) == 0) &&
        rename(k->next_path, k->path) == 0)
        return 0;
    return error_set(e, ERROR_IO,
                     "all hosts have the new key, but %.200s cannot be renamed to %.200s: %s",
                     k->next_path, k->path, strerror(errno));
}

void init_keys_forget(struct init_keys *k)
{
    key_forget(&k->key);
    key_forget(&k->next);
}
