#include "daemon/torus-routed/kernel/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int state_file_descriptor(const char *path, int flags)
{
    int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    struct stat st;

    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    (void)close(fd);
    errno = ELOOP;
    return -1;
}

FILE *state_file_open(const char *path, const char *mode)
{
    int fd = state_file_descriptor(path, mode[0] == 'r'   ? O_RDONLY
                                         : mode[0] == 'a' ? O_WRONLY | O_CREAT | O_APPEND
                                                          : O_WRONLY | O_CREAT | O_TRUNC);
    FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;

    if (file == NULL && fd >= 0)
        (void)close(fd);
    return file;
}
