#include "daemon/lib/host/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads until the end, at most `size` - 1 bytes. Returns whether the end has come. */
static bool read_all(int fd, int patience_ms, char *text, size_t size)
{
    const int64_t until = now_ms() + patience_ms;
    size_t length = 0;
    ssize_t n = 1;

    while (n > 0 && length < size - 1) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        const int64_t left = until - now_ms();
        if (left <= 0 || poll(&ready, 1, (int)left) <= 0)
            break;
        n = read(fd, text + length, size - 1 - length);
        length += n > 0 ? (size_t)n : 0;
    }
    text[length] = '\0';
    return n == 0;
}

static bool run(const char *const *argv, int patience_ms, bool errors, char *text, size_t size,
                int *exit_status)
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = -1, error;
    pid_t child;

    text[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (errors)
        (void)posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    else
        (void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    error = posix_spawnp(&child, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (error == 0) {
        if (!read_all(ends[0], patience_ms, text, size))
            (void)kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    (void)close(ends[0]);
    if (exit_status != NULL)
        *exit_status = error == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return error == 0 && text[0] != '\0';
}

bool host_run(const char *const *argv, int patience_ms, char *text, size_t size, int *status)
{
    return run(argv, patience_ms, false, text, size, status);
}

bool host_run_all(const char *const *argv, int patience_ms, char *text, size_t size, int *status)
{
    return run(argv, patience_ms, true, text, size, status);
}
