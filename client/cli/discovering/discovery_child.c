#include "client/cli/discovering/discovery_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/text.h"

#define PREFIX "torusd-discover: " /* of errors in the options */
#define LOG_MOST 8192
#define LOG_LEVEL_AT 25 /* a line begins with the time, a blank and the level */

/* Writes the path of torusd-discover: beside this program, in the folder sbin beside its folder, or as in PATH. */
static void find_program(char path[PATH_MAX])
{
    static const char *const places[] = {"torusd-discover", "../sbin/torusd-discover"};
    char own[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    char *slash = length > 0 ? strrchr(own, '/') : NULL;

    for (size_t i = 0; slash != NULL && i < sizeof places / sizeof places[0]; i++) {
        slash[1] = '\0';
        if (snprintf(path, PATH_MAX, "%s%s", own, places[i]) < PATH_MAX && access(path, X_OK) == 0)
            return;
    }
    (void)strcpy(path, "torusd-discover");
}

/* Runs in the new process. */
static void become_discovery(const struct discovery_child *c, const char *program,
                             const char *interfaces, const char *key_file, pid_t parent)
{
    const char *arguments[] = {"torusd-discover", "--interfaces",
                               interfaces,        "--discover-socket",
                               c->socket,         key_file != NULL ? "--key-file" : NULL,
                               key_file,          NULL};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0 || dup2(c->log, STDERR_FILENO) < 0)
        _exit(EXIT_FAILURE);
    (void)execvp(program, (char *const *)(uintptr_t)arguments);
    (void)dprintf(STDERR_FILENO, "%s cannot be started: %s\n", program, strerror(errno));
    _exit(EXIT_FAILURE);
}

int discovery_child_start(struct discovery_child *c, const char *interfaces, const char *key_file,
                          struct error *e)
{
    char program[PATH_MAX], log[128];
    const pid_t parent = getpid();

    *c = (struct discovery_child){.log = -1};
    (void)strcpy(c->folder, "/tmp/torus-discover-XXXXXX");
    if (mkdtemp(c->folder) == NULL)
        return error_set(e, ERROR_IO, "cannot create a folder in /tmp: %s", strerror(errno));
    (void)snprintf(c->socket, sizeof c->socket, "%s/socket", c->folder);
    (void)snprintf(log, sizeof log, "%s/log", c->folder);
    c->log = open(log, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    (void)unlink(log);
    find_program(program);
    c->pid = c->log >= 0 ? fork() : -1;
    if (c->pid == 0)
        become_discovery(c, program, interfaces, key_file, parent);
    if (c->pid > 0)
        return 0;
    c->pid = 0;
    (void)error_set(e, ERROR_IO, "cannot start torusd-discover: %s", strerror(errno));
    discovery_child_stop(c);
    return -1;
}

/* Copies the last line of the log without its time. */
static void last_line(const struct discovery_child *c, char *out, size_t size)
{
    char text[LOG_MOST] = "";
    off_t end = lseek(c->log, 0, SEEK_END), begin = end > LOG_MOST - 1 ? end - (LOG_MOST - 1) : 0;
    ssize_t length = pread(c->log, text, sizeof text - 1, begin);
    char *line = text, *newline;

    text[length > 0 ? length : 0] = '\0';
    while ((newline = strchr(line, '\n')) != NULL && newline[1] != '\0')
        line = newline + 1;
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, PREFIX, strlen(PREFIX)) == 0)
        line += strlen(PREFIX);
    else if (strlen(line) > LOG_LEVEL_AT && strncmp(line + LOG_LEVEL_AT, "error", 5) == 0)
        line += LOG_LEVEL_AT + strlen("error   ");
    (void)text_printable(out, size, line);
}

int discovery_child_check(struct discovery_child *c, struct error *e)
{
    char text[256];
    int status;

    if (c->pid == 0 || waitpid(c->pid, &status, WNOHANG) != c->pid)
        return 0;
    c->pid = 0;
    last_line(c, text, sizeof text);
    return error_set(e, ERROR_IO, "torusd-discover has ended: %s", text);
}

void discovery_child_stop(struct discovery_child *c)
{
    if (c->pid > 0) {
        (void)kill(c->pid, SIGTERM);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (c->log >= 0)
        (void)close(c->log);
    if (c->folder[0] != '\0') {
        (void)unlink(c->socket);
        (void)rmdir(c->folder);
    }
    *c = (struct discovery_child){.log = -1};
}
