#include "daemon/launcher/job_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT "/tmp/torusd-%u"

/* Appends "/NAME" to a path. */
static int below(char out[PATH_MAX], const char *path, const char *name, struct error *e)
{
    if (snprintf(out, PATH_MAX, "%s/%s", path, name) < PATH_MAX)
        return 0;
    return error_set(e, ERROR_USAGE, "the path %.80s.../%.80s is too long", path, name);
}

int job_folder_name(struct job_folder *f, const char *job, struct error *e)
{
    char host[HOST_NAME_MAX + 1] = "", name[PATH_MAX];

    /* As libtorus replaces %h in TORUS_SOCKET. */
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || host[0] == '.' ||
        strchr(host, '/') != NULL)
        return error_set(e, ERROR_IO, "this host has no name: set it with hostname");
    (void)snprintf(name, sizeof name, FORMAT "/%s", (unsigned)geteuid(), job);
    if (below(f->path, name, host, e) != 0 || below(f->data, f->path, "data", e) != 0 ||
        below(f->state, f->path, "state", e) != 0)
        return -1;
    return below(f->control, f->path, "control.sock", e);
}

static int make(const char *path, struct error *e)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return error_set(e, ERROR_IO, "cannot make the folder %s: %s", path, strerror(errno));
}

/* Everybody can make folders in /tmp, so somebody else may have been first. */
static int check_owner(const char *path, struct error *e)
{
    struct stat status;

    if (lstat(path, &status) != 0)
        return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "%s is not a folder of this user that nobody else may enter: remove it, or "
                     "let its owner remove it",
                     path);
}

int job_folder_make(const struct job_folder *f, struct error *e)
{
    char part[PATH_MAX];
    const char *slash;

    (void)snprintf(part, sizeof part, FORMAT, (unsigned)geteuid());
    if (make(part, e) != 0 || check_owner(part, e) != 0)
        return -1;
    slash = strrchr(f->path, '/');
    (void)snprintf(part, sizeof part, "%.*s", (int)(slash - f->path), f->path);
    return make(part, e) == 0 && make(f->path, e) == 0 ? make(f->data, e) : -1;
}

void job_folder_remove(const struct job_folder *f)
{
    const char *slash = strrchr(f->path, '/');
    char part[PATH_MAX];

    (void)rmdir(f->data);
    (void)rmdir(f->state);
    if (rmdir(f->path) != 0)
        return;
    (void)snprintf(part, sizeof part, "%.*s", (int)(slash - f->path), f->path);
    if (rmdir(part) != 0)
        return;
    (void)snprintf(part, sizeof part, FORMAT, (unsigned)geteuid());
    (void)rmdir(part);
}
