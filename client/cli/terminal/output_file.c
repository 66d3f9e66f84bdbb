#include "client/cli/terminal/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int cannot_write(const char *path, struct error *e)
{
    return error_set(e, ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}

static void release(struct output_file *f)
{
    free(f->path);
    free(f->unfinished);
    *f = (struct output_file){0};
}

/* Gives the file the owner and the mode of the one that it will replace, or the mode that open() would give to a new
 * file. Only root can keep the owner of a file of others. */
static int set_like(int fd, const char *path)
{
    struct stat s, own;
    mode_t mask;

    if (stat(path, &s) != 0) {
        mask = umask(0);
        (void)umask(mask);
        return fchmod(fd, 0666 & ~mask);
    }
    if (fstat(fd, &own) != 0)
        return -1;
    if ((own.st_uid != s.st_uid || own.st_gid != s.st_gid) && fchown(fd, s.st_uid, s.st_gid) != 0)
        return -1;
    return fchmod(fd, s.st_mode & 0777);
}

/* Opens a temporary file in the folder of f->path. */
static int open_beside(struct output_file *f)
{
    if (asprintf(&f->unfinished, "%s.XXXXXX", f->path) < 0) {
        f->unfinished = NULL;
        errno = ENOMEM;
        return -1;
    }
    int fd = mkostemp(f->unfinished, O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (set_like(fd, f->path) == 0)
        f->stream = fdopen(fd, "w");
    if (f->stream != NULL)
        return 0;
    int why = errno;
    (void)close(fd);
    (void)unlink(f->unfinished);
    errno = why;
    return -1;
}

static int open_directly(struct output_file *f)
{
    f->stream = fopen(f->path, "we");
    return f->stream != NULL ? 0 : -1;
}

int output_file_open(struct output_file *f, const char *path, struct error *e)
{
    struct stat s;
    bool exists = stat(path, &s) == 0;

    *f = (struct output_file){0};
    if (strcmp(path, "-") == 0) {
        f->stream = stdout;
        return 0;
    }
    if (exists && S_ISREG(s.st_mode) && access(path, W_OK) != 0)
        return cannot_write(path, e); /* rename() would replace a write-protected file */
    bool direct = exists && !S_ISREG(s.st_mode);
    f->path = exists && !direct ? realpath(path, NULL) : strdup(path);
    if (f->path != NULL && (direct ? open_directly(f) : open_beside(f)) == 0)
        return 0;
    cannot_write(path, e);
    release(f);
    return -1;
}

int output_file_finish(struct output_file *f, struct error *e)
{
    int rc = 0;

    if (f->stream == stdout)
        return 0;
    errno = 0;
    bool failed = fflush(f->stream) != 0 || ferror(f->stream) != 0;
    if (!failed && f->unfinished != NULL) /* before it replaces a file that is complete */
        failed = fsync(fileno(f->stream)) != 0;
    int why = errno;
    if (fclose(f->stream) != 0 && !failed) {
        failed = true;
        why = errno;
    }
    errno = why != 0 ? why : EIO;
    if (!failed && f->unfinished != NULL)
        failed = rename(f->unfinished, f->path) != 0;
    if (failed) {
        rc = cannot_write(f->path, e);
        if (f->unfinished != NULL)
            (void)unlink(f->unfinished);
    }
    release(f);
    return rc;
}

void output_file_give_up(struct output_file *f)
{
    if (f->stream != stdout)
        (void)fclose(f->stream);
    if (f->unfinished != NULL)
        (void)unlink(f->unfinished);
    release(f);
}
