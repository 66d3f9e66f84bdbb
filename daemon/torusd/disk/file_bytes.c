#include "daemon/torusd/disk/file_bytes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void file_close(int *file)
{
    if (*file >= 0)
        (void)close(*file);
    *file = -1;
}

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

ssize_t file_fetch(const struct file_system *files, int folder, const char *name, void *bytes,
                   size_t most)
{
    int file = files->open_file(files->context, folder, name);
    size_t done = 0;
    ssize_t result = 1;

    if (file < 0)
        return file;
    while (done < most && result > 0) {
        const struct iovec piece = {(char *)bytes + done, most - done};
        result = files->read(files->context, file, &piece, 1, done);
        if (result > 0)
            done += (size_t)result;
    }
    files->close(files->context, file);
    return result < 0 ? result : (ssize_t)done;
}

static int write_bytes(const struct file_system *files, int file, const void *bytes, size_t length)
{
    size_t done = 0;

    while (done < length) {
        const struct iovec rest = {(char *)(uintptr_t)bytes + done, length - done};
        ssize_t result = files->write(files->context, file, &rest, 1, done);
        if (result <= 0)
            return result < 0 ? (int)result : -EIO;
        done += (size_t)result;
    }
    return 0;
}

int file_replace(const struct file_system *files, int folder, const char *next, const char *name,
                 const void *bytes, size_t length, bool sync)
{
    int file = files->create_file(files->context, folder, next, 0600);

    if (file == -EEXIST) { /* left behind by a call that failed, or by a crash */
        (void)files->remove_file(files->context, folder, next);
        file = files->create_file(files->context, folder, next, 0600);
    }
    if (file < 0)
        return file;
    int result = write_bytes(files, file, bytes, length);
    if (result == 0 && sync)
        result = files->sync(files->context, file);
    files->close(files->context, file);
    if (result == 0)
        result = files->rename(files->context, folder, next, name);
    if (result < 0)
        (void)files->remove_file(files->context, folder, next);
    return result == 0 && sync ? files->sync(files->context, folder) : result;
}

void read_boot_id(char id[BOOT_ID_SIZE])
{
    memset(id, 0, BOOT_ID_SIZE);
    if (file_fetch(file_system_posix(), FILE_SYSTEM_TOP, "/proc/sys/kernel/random/boot_id", id,
                   BOOT_ID_SIZE - 1) <= 0)
        memset(id, 0, BOOT_ID_SIZE);
}
