/* Kills a program that has this library in LD_PRELOAD at one of its steps: before it makes, writes, names or removes a
 * file, waits for others, or starts another program; or in the middle of a write.
 *
 * $KILL_POINT_PROGRAM is the name of the program, others are not touched. $KILL_POINT is the number of the step, from 1.
 * $KILL_POINT_LOG is a file to which a program that ends appends the names of its steps, a line each. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(function, result, ...)                                                                \
    static result (*real)(__VA_ARGS__);                                                            \
    if (real == NULL)                                                                              \
    *(void **)&real = dlsym(RTLD_NEXT, #function)

#define STEPS_MOST 65536

static atomic_long steps;
static const char *kind[STEPS_MOST]; /* of each step */

static bool is_meant(void)
{
    const char *program = getenv("KILL_POINT_PROGRAM");

    return program != NULL && strcmp(program, program_invocation_short_name) == 0;
}

/* Counts a step. Returns whether it is the last one. */
static bool is_last(const char *name)
{
    const char *point = getenv("KILL_POINT");
    long number;

    if (!is_meant())
        return false;
    number = atomic_fetch_add(&steps, 1);
    if (number < STEPS_MOST)
        kind[number] = name;
    return number + 1 == (point != NULL ? atol(point) : 0);
}

static void step(const char *name)
{
    if (is_last(name))
        (void)kill(getpid(), SIGKILL);
}

/* Other programs that this one starts are not to be killed. */
__attribute__((constructor)) static void end_here(void)
{
    (void)unsetenv("LD_PRELOAD");
}

__attribute__((destructor)) static void log_steps(void)
{
    const char *path = getenv("KILL_POINT_LOG");
    FILE *log = path != NULL && is_meant() ? fopen(path, "ae") : NULL;
    const long count = atomic_load(&steps);

    for (long i = 0; log != NULL && i < count && i < STEPS_MOST; i++)
        (void)fprintf(log, "%s\n", kind[i]);
    if (log != NULL && fflush(log) != 0)
        abort();
}

int open(const char *file, int flags, ...)
{
    REAL(open, int, const char *, int, ...);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if ((flags & O_CREAT) != 0)
        step("make");
    return real(file, flags, mode);
}

int mkostemp(char *file, int flags)
{
    REAL(mkostemp, int, char *, int);
    step("make");
    return real(file, flags);
}

int mkdir(const char *file, mode_t mode)
{
    REAL(mkdir, int, const char *, mode_t);
    step("make");
    return real(file, mode);
}

int rename(const char *from, const char *to)
{
    REAL(rename, int, const char *, const char *);
    step("name");
    return real(from, to);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    REAL(renameat2, int, int, const char *, int, const char *, unsigned);
    step("name");
    return real(from, old, to, new, flags);
}

int unlink(const char *file)
{
    REAL(unlink, int, const char *);
    step("remove");
    return real(file);
}

int fsync(int fd)
{
    REAL(fsync, int, int);
    step("sync");
    return real(fd);
}

int fchmod(int fd, mode_t mode)
{
    REAL(fchmod, int, int, mode_t);
    step("mode");
    return real(fd, mode);
}

int fclose(FILE *stream)
{
    REAL(fclose, int, FILE *);
    step("close");
    return real(stream);
}

int poll(struct pollfd *fds, nfds_t count, int milliseconds)
{
    REAL(poll, int, struct pollfd *, nfds_t, int);
    step("wait");
    return real(fds, count, milliseconds);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[],
                 char *const environment[])
{
    REAL(posix_spawnp, int, pid_t *, const char *, const posix_spawn_file_actions_t *,
         const posix_spawnattr_t *, char *const[], char *const[]);
    step("start");
    return real(pid, file, actions, attributes, arguments, environment);
}

/* Half of the bytes may be written. */
ssize_t write(int fd, const void *data, size_t length)
{
    REAL(write, ssize_t, int, const void *, size_t);
    struct stat status;
    const bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (is_last(is_file ? "write" : "send")) {
        (void)real(fd, data, length / 2);
        (void)kill(getpid(), SIGKILL);
    }
    return real(fd, data, length);
}
