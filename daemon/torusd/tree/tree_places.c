#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/tree_files.h"

/* A user counts before it takes the roots, and who replaces them looks for users afterwards: so a set that has just been
 * taken is not freed. */
const struct roots *tree_files_enter(struct tree_files *files)
{
    (void)atomic_fetch_add(&files->users, 1);
    return atomic_load(&files->roots);
}

void tree_files_leave(struct tree_files *files)
{
    (void)atomic_fetch_sub(&files->users, 1);
}

bool tree_files_are_unused(struct tree_files *files)
{
    return atomic_load(&files->users) == 0;
}

/* For file systems that cannot make a file without a name. */
static int make_and_unlink(const char *folder)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/document.XXXXXX", folder);

    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        (void)unlink(path);
    return file;
}

int tree_files_temporary(const struct tree_files *files, struct error *e)
{
    int file = open(files->state_folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
        file = make_and_unlink(files->state_folder);
    if (file < 0)
        return error_set(e, ERROR_IO, "no temporary file can be made in state folder %s: %s",
                         files->state_folder, strerror(errno));
    return file;
}
