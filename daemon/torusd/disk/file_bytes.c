#include "daemon/torusd/disk/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int file_read(int file, void *bytes, size_t length, uint64_t offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = pread(file, (char *)bytes + done, length - done, (off_t)(offset + done));
        if (n == 0)
            errno = 0;
        if (n == 0 || (n < 0 && errno != EINTR))
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int file_write(int file, const void *bytes, size_t length, uint64_t offset)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = pwrite(file, (const char *)bytes + done, length - done, (off_t)(offset + done));
        if (n < 0 && errno != EINTR)
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

ssize_t file_fetch(int folder, const char *name, void *bytes, size_t most)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, bytes, most);
    int error = errno;

    if (file >= 0)
        (void)close(file);
    return length < 0 ? -error : length;
}

int file_replace(int folder, const char *next, const char *name, const void *bytes, size_t length,
                 bool sync)
{
    int file = openat(folder, next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (file < 0)
        return -errno;
    int result =
        file_write(file, bytes, length, 0) == 0 && (!sync || fsync(file) == 0) ? 0 : -errno;
    (void)close(file);
    if (result == 0 && (renameat(folder, next, folder, name) != 0 || (sync && fsync(folder) != 0)))
        result = -errno;
    return result;
}

void read_boot_id(char id[BOOT_ID_SIZE])
{
    memset(id, 0, BOOT_ID_SIZE);
    if (file_fetch(AT_FDCWD, "/proc/sys/kernel/random/boot_id", id, BOOT_ID_SIZE - 1) <= 0)
        memset(id, 0, BOOT_ID_SIZE);
}
