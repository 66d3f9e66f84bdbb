#include "daemon/files/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "exchange-"
#define NEXT ".next-" /* an entry that is being written */

static int failed(struct error *e, const char *path)
{
    return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
}

/* Entries that were being written when the daemon died. */
static void remove_unfinished(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, NEXT, sizeof NEXT - 1) == 0)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL)
        (void)closedir(dir);
}

int journal_open(const char *folder, struct error *e)
{
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return failed(e, folder);
    if (access(folder, W_OK | X_OK) != 0)
        return failed(e, folder);
    remove_unfinished(folder);
    return 0;
}

static char *entry_path(char *path, const char *folder, const char *id)
{
    (void)snprintf(path, PATH_MAX, "%s/" PREFIX "%s", folder, id);
    return path;
}

static int sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -1 : fsync(fd);

    if (fd >= 0)
        (void)close(fd);
    return result;
}

int journal_write(const char *folder, const char *id, const struct journal_entry *entry,
                  struct error *e)
{
    char path[PATH_MAX], next[PATH_MAX];

    (void)snprintf(next, sizeof next, "%s/" NEXT "%s", folder, id);
    FILE *f = fopen(next, "we");
    if (f == NULL)
        return failed(e, next);
    /* Three strings, each with its final zero: paths may hold anything else. */
    (void)fprintf(f, "%s%c%s%c%s%c", entry->finished ? "finished" : "preparing", 0,
                  entry->temporary, 0, entry->final, 0);
    bool good = fflush(f) == 0 && (!entry->finished || fsync(fileno(f)) == 0);
    good = fclose(f) == 0 && good;
    good = good && rename(next, entry_path(path, folder, id)) == 0;
    good = good && (!entry->finished || sync_folder(folder) == 0);
    return good ? 0 : failed(e, next);
}

static int read_string(FILE *f, char *out, size_t size)
{
    int c;

    for (size_t i = 0; i < size; i++) {
        c = getc(f);
        if (c == EOF)
            return -1;
        out[i] = (char)c;
        if (c == '\0')
            return 0;
    }
    return -1;
}

int journal_read(const char *folder, const char *id, struct journal_entry *entry, struct error *e)
{
    char path[PATH_MAX], state[16];
    FILE *f = fopen(entry_path(path, folder, id), "re");

    if (f == NULL)
        return failed(e, path);
    bool good = read_string(f, state, sizeof state) == 0 &&
                read_string(f, entry->temporary, sizeof entry->temporary) == 0 &&
                read_string(f, entry->final, sizeof entry->final) == 0;
    (void)fclose(f);
    if (!good)
        return error_set(e, ERROR_IO, "%s is no journal entry", path);
    entry->finished = strcmp(state, "finished") == 0;
    return 0;
}

void journal_remove(const char *folder, const char *id)
{
    char path[PATH_MAX];

    (void)unlink(entry_path(path, folder, id));
}

void journal_each(const char *folder, void (*each)(void *context, const char *id), void *context)
{
    struct dirent **entry;
    int n = scandir(folder, &entry, NULL, alphasort); /* a copy: each() may remove entries */

    for (int i = 0; i < n; i++) {
        if (strncmp(entry[i]->d_name, PREFIX, sizeof PREFIX - 1) == 0)
            each(context, entry[i]->d_name + sizeof PREFIX - 1);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
}

static char *decision_path(char *path, const char *folder, const char *id)
{
    (void)snprintf(path, PATH_MAX, "%s/committed-%s", folder, id);
    return path;
}

int journal_record_commit(const char *folder, const char *id, struct error *e)
{
    char path[PATH_MAX];
    int fd = open(decision_path(path, folder, id), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return failed(e, path);
    bool good = fsync(fd) == 0;
    good = close(fd) == 0 && good;
    good = good && sync_folder(folder) == 0;
    return good ? 0 : failed(e, path);
}

void journal_forget_commit(const char *folder, const char *id)
{
    char path[PATH_MAX];

    (void)unlink(decision_path(path, folder, id));
}

bool journal_was_committed(const char *folder, const char *id)
{
    char path[PATH_MAX];

    return access(decision_path(path, folder, id), F_OK) == 0;
}
