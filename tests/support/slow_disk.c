/* A disk that hangs, for a daemon that has this library in LD_PRELOAD. While the file $SLOW_DISK exists,
 * the first call of each kind with a path that contains one of the words in $SLOW_DISK_IN (separated by
 * colons) takes $SLOW_DISK_MS milliseconds. It then adds a line to the file: "main" in the process's first
 * thread, otherwise "job"; the call; the path.
 *
 * If the file begins with a line "#NUMBER call call ...", only these calls hang, and hang once more for each
 * new number. With $SLOW_DISK_EACH, every call of these kinds hangs. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum call { FSYNC, WRITEBACK, RENAME, UNLINK, MKDIR, OPEN, READ, WRITE, STAT, LOG, CALLS };

static const char *const name[CALLS] = {"fsync", "writeback", "rename", "unlink", "mkdir",
                                        "open",  "read",      "write",  "stat",   "log"};
static atomic_long used[CALLS]; /* the last number for which it hung, plus 1 */

#define REAL(function, result, ...)                                                                \
    static result (*real)(__VA_ARGS__);                                                            \
    if (real == NULL)                                                                              \
    *(void **)&real = dlsym(RTLD_NEXT, #function)

/* The path of a name in a folder (a descriptor), or of a descriptor alone. */
static void find_path(int fd, const char *file, char out[2 * PATH_MAX])
{
    char link[64];
    ssize_t n = 0;

    if (fd >= 0 && (file == NULL || file[0] != '/')) {
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, out, PATH_MAX - 1);
    }
    n = n > 0 ? n : 0;
    (void)snprintf(out + n, PATH_MAX, "%s%s", n > 0 && file != NULL ? "/" : "",
                   file != NULL ? file : "");
}

static bool is_meant(const char *path)
{
    char words[PATH_MAX], *rest = words, *word;
    const char *set = getenv("SLOW_DISK_IN");

    (void)snprintf(words, sizeof words, "%s", set != NULL ? set : "");
    while ((word = strsep(&rest, ":")) != NULL)
        if (*word != '\0' && strstr(path, word) != NULL)
            return true;
    return false;
}

/* Whether the first line of the control file lets this call hang now. */
static bool is_due(enum call call, int control)
{
    char text[256] = "", word[32];
    long number = 0;

    if (read(control, text, sizeof text - 2) > 0 && text[0] == '#') {
        *strchrnul(text, '\n') = '\0';
        (void)strcat(text, " ");
        (void)snprintf(word, sizeof word, " %s ", name[call]);
        if (strstr(text, word) == NULL)
            return false;
        number = atol(text + 1);
    }
    return getenv("SLOW_DISK_EACH") != NULL ||
           atomic_exchange(&used[call], number + 1) != number + 1;
}

static void delay(enum call call, int fd, const char *file)
{
    REAL(open, int, const char *, int, ...);
    const char *control = getenv("SLOW_DISK"), *milliseconds = getenv("SLOW_DISK_MS");
    char path[2 * PATH_MAX], line[2 * PATH_MAX + 40];
    int log;

    if (control == NULL || milliseconds == NULL)
        return;
    find_path(fd, file, path);
    if (!is_meant(path) || (log = real(control, O_RDWR | O_APPEND | O_CLOEXEC)) < 0)
        return;
    if (is_due(call, log)) {
        long left = atol(milliseconds);
        struct timespec time = {left / 1000, left % 1000 * 1000000};
        int n = snprintf(line, sizeof line, "%s %s %s\n", getpid() == gettid() ? "main" : "job",
                         name[call], path);
        if (write(log, line, (size_t)n) == n)
            (void)nanosleep(&time, NULL);
    }
    (void)close(log);
}

int fsync(int fd)
{
    REAL(fsync, int, int);
    delay(FSYNC, fd, NULL);
    return real(fd);
}

int sync_file_range(int fd, off_t offset, off_t length, unsigned flags)
{
    REAL(sync_file_range, int, int, off_t, off_t, unsigned);
    delay(WRITEBACK, fd, NULL);
    return real(fd, offset, length, flags);
}

int renameat(int from, const char *old, int to, const char *new)
{
    REAL(renameat, int, int, const char *, int, const char *);
    delay(RENAME, from, old);
    return real(from, old, to, new);
}

int unlinkat(int folder, const char *file, int flags)
{
    REAL(unlinkat, int, int, const char *, int);
    delay(UNLINK, folder, file);
    return real(folder, file, flags);
}

int mkdirat(int folder, const char *file, mode_t mode)
{
    REAL(mkdirat, int, int, const char *, mode_t);
    delay(MKDIR, folder, file);
    return real(folder, file, mode);
}

static mode_t mode_of(int flags, va_list ap)
{
    return (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
}

int open(const char *file, int flags, ...)
{
    REAL(open, int, const char *, int, ...);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    delay(OPEN, -1, file);
    return real(file, flags, mode);
}

int openat(int folder, const char *file, int flags, ...)
{
    REAL(openat, int, int, const char *, int, ...);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    delay(OPEN, folder, file);
    return real(folder, file, flags, mode);
}

/* openat2 has no function in the C library. As the C library's syscall() does, this reads six arguments even if
 * fewer were passed; the rest are arbitrary, and harmless. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    REAL(syscall, long, long, ...);
    long argument[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_openat2)
        delay(OPEN, (int)argument[0], (const char *)argument[1]);
    return real(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                argument[5]);
}

ssize_t pread(int fd, void *data, size_t length, off_t offset)
{
    REAL(pread, ssize_t, int, void *, size_t, off_t);
    delay(READ, fd, NULL);
    return real(fd, data, length, offset);
}

ssize_t preadv(int fd, const struct iovec *piece, int count, off_t offset)
{
    REAL(preadv, ssize_t, int, const struct iovec *, int, off_t);
    delay(READ, fd, NULL);
    return real(fd, piece, count, offset);
}

/* The only call that the loop's thread may make, with a flag not to wait. */
ssize_t preadv2(int fd, const struct iovec *piece, int count, off_t offset, int flags)
{
    REAL(preadv2, ssize_t, int, const struct iovec *, int, off_t, int);
    if ((flags & RWF_NOWAIT) == 0)
        delay(READ, fd, NULL);
    return real(fd, piece, count, offset, flags);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset)
{
    REAL(pwrite, ssize_t, int, const void *, size_t, off_t);
    delay(WRITE, fd, NULL);
    return real(fd, data, length, offset);
}

ssize_t pwritev(int fd, const struct iovec *piece, int count, off_t offset)
{
    REAL(pwritev, ssize_t, int, const struct iovec *, int, off_t);
    delay(WRITE, fd, NULL);
    return real(fd, piece, count, offset);
}

ssize_t write(int fd, const void *data, size_t length)
{
    REAL(write, ssize_t, int, const void *, size_t);
    if (fd == STDERR_FILENO)
        delay(LOG, fd, NULL);
    return real(fd, data, length);
}

int fstat(int fd, struct stat *out)
{
    REAL(fstat, int, int, struct stat *);
    delay(STAT, fd, NULL);
    return real(fd, out);
}

int fstatat(int folder, const char *restrict file, struct stat *restrict out, int flags)
{
    REAL(fstatat, int, int, const char *restrict, struct stat *restrict, int);
    delay(STAT, folder, file);
    return real(folder, file, out, flags);
}

/* The file system that hangs must not look like one in memory, even if the test's folder is in memory. */
int sysinfo(struct sysinfo *out)
{
    REAL(sysinfo, int, struct sysinfo *);

    int result = real(out);
    if (result == 0 && getenv("SLOW_DISK") != NULL)
        out->totalswap = 1;
    return result;
}
