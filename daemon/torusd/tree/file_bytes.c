#include "daemon/torusd/tree/file_bytes.h"

#include <errno.h>
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
