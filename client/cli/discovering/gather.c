#include "client/cli/discovering/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/discovering/discovery_socket.h"
#include "client/cli/terminal/clock.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/schedule/work.h"
#include "proto/error.h"
#include "proto/notices.h"
#include "proto/text.h"

/* --- a discovery process of its own --- */

struct discovery_child {
    pid_t pid; /* 0: none runs */
    int log;   /* descriptor of its log */
    char folder[64];
    char socket[96];
};

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

/* Ends it, and removes its files. */
static void discovery_child_stop(struct discovery_child *c)
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

/* Starts torusd-discover on these interfaces, with a key file (NULL: none). Returns 0, or -1 with *e and
 * nothing left behind. */
static int discovery_child_start(struct discovery_child *c, const char *interfaces,
                                 const char *key_file, struct error *e)
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

/* Checks that it still runs. Returns 0, or -1 with *e: what it has logged last. */
static int discovery_child_check(struct discovery_child *c, struct error *e)
{
    char text[256];
    int status;

    if (c->pid == 0 || waitpid(c->pid, &status, WNOHANG) != c->pid)
        return 0;
    c->pid = 0;
    last_line(c, text, sizeof text);
    return error_set(e, ERROR_IO, "torusd-discover has ended: %s", text);
}

#define ASK_MS 200
#define QUIET_MS 3000      /* nothing has changed for this time: the picture is complete */
#define QUIET_ODD_MS 10000 /* ... while more is likely to come (is_odd()) */
#define CHILD_MS 6000      /* an interface that is set up needs a moment */

static void tell(const struct discovered *d, size_t cables)
{
    if (!notices_wanted())
        return;
    long_work_next("discovery (%u %s, %zu %s)", d->hosts, text_plural(d->hosts, "host", "hosts"),
                   cables, text_plural(cables, "cable", "cables"));
    watch_tell(-1);
}

/* Whether an interface has a cable, but no address yet that its hellos could come from. The kernel gives it one some
 * time after its carrier has come. */
static bool lacks_address(const struct report *host)
{
    for (unsigned i = 0; i < host->interfaces; i++) {
        const struct reported_interface *at = &host->interface[i];
        if (at->up && at->carrier && !at->ipv6 && at->member_of[0] == '\0')
            return true;
    }
    return false;
}

/* Whether something is seen that rarely stays so: one end of a cable does not hear the other, a host is known only
 * from what others say, or an interface lacks an address. */
static bool is_odd(const struct discovered *d, const struct discovered_cable *cable, size_t cables)
{
    for (size_t i = 0; i < cables; i++)
        if (!cable[i].mutual)
            return true;
    for (uint32_t i = 0; i < d->hosts; i++)
        if (!d->host[i].reachable || lacks_address(d->host[i].report))
            return true;
    return false;
}

/* Whether nothing more is to be expected. */
static bool is_complete(const struct discovered *d, int64_t waited_ms, bool child)
{
    struct discovered_cable *cable;
    size_t cables = discovered_cables(d, &cable);
    const bool odd = is_odd(d, cable, cables);

    free(cable);
    tell(d, cables);
    return d->quiet_ms >= (odd ? QUIET_ODD_MS : QUIET_MS) && (!child || waited_ms >= CHILD_MS);
}

/* Asks until the picture is complete. `child` is NULL if the process was there before. */
static int ask(struct discovered *d, const struct gather_options *o, const char *socket,
               struct discovery_child *child, bool *settled, struct error *e)
{
    const struct timespec pause = {0, ASK_MS * 1000000L};
    const int64_t began = clock_ms();
    bool answered = false;

    *settled = false;
    while (!*settled && (!answered || clock_ms() - began < (int64_t)o->wait_ms)) {
        discovered_free(d);
        if (discover_hosts(socket, d, e) == 0) {
            answered = true;
            *settled = is_complete(d, clock_ms() - began, child != NULL);
        } else if (child == NULL || clock_ms() - began > (int64_t)o->wait_ms) {
            return -1;
        } else if (discovery_child_check(child, e) != 0) {
            errno = 0;
            return -1;
        }
        if (interrupt_seen()) {
            discovered_free(d);
            return error_set(e, ERROR_CANCELLED, "interrupted");
        }
        if (!*settled)
            (void)nanosleep(&pause, NULL);
    }
    return 0;
}

int gather_hosts(struct discovered *d, const struct gather_options *o, bool *settled,
                 struct error *e)
{
    struct discovery_child child;
    int result, error;

    *d = (struct discovered){0};
    interrupt_arm(NULL);
    result = ask(d, o, o->socket, NULL, settled, e);
    error = errno;
    if (result != 0 && (error == ENOENT || error == ECONNREFUSED) && o->interfaces != NULL &&
        o->socket == NULL) {
        error = 0;
        result = discovery_child_start(&child, o->interfaces, o->key_file, e);
        if (result == 0) {
            result = ask(d, o, child.socket, &child, settled, e);
            discovery_child_stop(&child);
        }
    }
    interrupt_disarm();
    errno = error;
    return result;
}
