#include "daemon/torusd/launcher/job_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT "/tmp/torusd-%u"
#define TRIES 1000u

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

/* How an attempt to make a folder ended. GONE: the folder that it is in has been removed. */
enum made { MADE, NOT_MADE, GONE };

static enum made failed(const char *what, const char *path, struct error *e)
{
    const int number = errno;

    (void)error_set(e, ERROR_IO, "%s%s: %s", what, path, strerror(number));
    return number == ENOENT ? GONE : NOT_MADE;
}

static enum made make(const char *path, struct error *e)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ? MADE
                                                     : failed("cannot make the folder ", path, e);
}

/* Everybody can make folders in /tmp, so somebody else may have been first. */
static enum made check_owner(const char *path, struct error *e)
{
    struct stat status;

    if (lstat(path, &status) != 0)
        return failed("", path, e);
    if (S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0)
        return MADE;
    (void)error_set(e, ERROR_REFUSED,
                    "%s is not a folder of this user that nobody else may enter: remove it, or "
                    "let its owner remove it",
                    path);
    return NOT_MADE;
}

static enum made make_all(const struct job_folder *f, struct error *e)
{
    char user[PATH_MAX], job[PATH_MAX];
    enum made made;

    (void)snprintf(user, sizeof user, FORMAT, (unsigned)geteuid());
    (void)snprintf(job, sizeof job, "%.*s", (int)(strrchr(f->path, '/') - f->path), f->path);
    if ((made = make(user, e)) != MADE || (made = check_owner(user, e)) != MADE ||
        (made = make(job, e)) != MADE || (made = make(f->path, e)) != MADE)
        return made;
    return make(f->data, e);
}

int job_folder_make(const struct job_folder *f, struct error *e)
{
    enum made made;

    /* Another job of this user that ends now removes the folders above its own, if they are empty. */
    for (unsigned i = 0; (made = make_all(f, e)) == GONE && i < TRIES; i++)
        ;
    return made == MADE ? 0 : -1;
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
