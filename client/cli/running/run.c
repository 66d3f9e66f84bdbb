#include "client/cli/running/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/running/run_output.h"
#include "client/cli/running/run_plan.h"
#include "client/cli/terminal/clock.h"
#include "client/cli/terminal/json.h"
#include "proto/text.h"

#define CONNECTING_MOST 32u
#define NOISE_MOST (64u << 10) /* bytes that the shell of a host may print before the first frame */
#define LATE_MS 5000           /* after the time of grace, until connections are cut */
#define HURRY_MS 3000          /* the same after the second signal, and when nothing has started */
#define DOWN_MOST (64u << 10)  /* bytes for a host; above, standard input waits */

extern char **environ;

struct rank {
    bool ended;
    int status;   /* as of waitpid() */
    char *prefix; /* NULL: none */
    struct run_line line[2];
};

enum remote_state { QUEUED, CONNECTING, READY, RUNNING, OVER };

/* A host. */
struct remote {
    const struct run_host *host;
    uint32_t first_rank;
    enum remote_state state;
    pid_t pid; /* of ssh; 0: ended */
    int status;
    int in, out, err; /* of ssh; -1: closed */
    struct frame_stream down, up;
    bool greeted;
    bool refused;
    char said[1024]; /* the end of what ssh has printed on standard error */
    char problem[400];
    int64_t heard_ms;
    uint32_t left; /* processes that run */
    struct rank *rank;
};

struct launch {
    const struct cli *cli;
    const struct run_plan *plan;
    bool prefix;
    struct remote *list;
    uint32_t count;
    struct pollfd *polls;
    struct run_output output[2];
    int signals;
    bool going; /* all hosts were told to start */
    bool ending, told;
    int signal;                   /* that this program got first; 0: none */
    int code;                     /* exit code: of the first failure */
    const struct remote *culprit; /* of the first failure; NULL: none */
    int64_t culprit_rank;         /* -1: the host */
    int64_t began_ms, alive_ms, end_ms;
    bool input_over;
    size_t input_sent; /* bytes that the process has not taken yet */
};

/* --- what people are told --- */

__attribute__((format(printf, 2, 3))) static void say(struct launch *l, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    text_clean(text);
    run_output_add(&l->output[1], NULL, NULL, (const uint8_t *)"torusrun: ", 10);
    run_output_add(&l->output[1], NULL, NULL, (const uint8_t *)text, strlen(text));
    run_output_add(&l->output[1], NULL, NULL, (const uint8_t *)"\n", 1);
}

/* Keeps the first failure, which decides the exit code. */
static void note_failure(struct launch *l, const struct remote *r, int64_t rank, int code)
{
    if (l->code != 0)
        return;
    l->code = code;
    l->culprit = r;
    l->culprit_rank = rank;
}

/* Returns the last line of a text without its end; cuts the text. */
static char *last_line(char *text)
{
    size_t length = strlen(text);
    char *newline;

    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        text[--length] = '\0';
    newline = strrchr(text, '\n');
    return newline != NULL ? newline + 1 : text;
}

/* Explains why ssh has ended before the host was ready. */
static void explain(struct remote *r)
{
    const char *target = r->host->target;
    const bool not_found = WIFEXITED(r->status) && WEXITSTATUS(r->status) == 127;
    const size_t size = sizeof r->problem;
    char said[sizeof r->said];

    (void)snprintf(said, sizeof said, "%s", r->said);
    const char *line = last_line(said);
    if (strstr(r->said, "unknown command 'run'") != NULL)
        (void)snprintf(r->problem, size,
                       "its torusctl has no command 'run': install the same release of torusd");
    else if (not_found && strstr(r->said, "torusctl") != NULL)
        (void)snprintf(r->problem, size,
                       "torusctl is not there: install the package torusd (%.200s)", line);
    else if (strstr(r->said, "Host key verification failed") != NULL)
        (void)snprintf(r->problem, size,
                       "ssh does not know the key of this host, or it has changed: log in once "
                       "with 'ssh %.80s', and compare the key",
                       target);
    else if (strstr(r->said, "Permission denied") != NULL)
        (void)snprintf(r->problem, size,
                       "ssh cannot log in without a password: %.150s; 'ssh-copy-id %.80s' installs "
                       "your key there, and ssh-add unlocks it here",
                       line, target);
    else if (line[0] != '\0')
        (void)snprintf(r->problem, size, "%.300s", line);
    else if (WIFSIGNALED(r->status))
        (void)snprintf(r->problem, size, "ssh was ended by signal %d", WTERMSIG(r->status));
    else
        (void)snprintf(r->problem, size, "ssh ended with status %d", WEXITSTATUS(r->status));
}

/* --- hosts --- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* A host does not come, or has gone: the others end. */
static void fail_host(struct launch *l, struct remote *r, int code)
{
    if (r->state == OVER)
        return;
    if (r->pid > 0)
        (void)kill(-r->pid, SIGKILL);
    r->state = OVER;
    if (l->ending && r->left == 0)
        return;
    say(l, "%s: %s", r->host->name, r->problem);
    if (!l->ending)
        note_failure(l, r, -1, code);
}

/* Starts ssh in a process group of its own, which Ctrl-C does not reach. Returns 0 or the number of an error. */
static int spawn_ssh(struct remote *r, char **words, const int ends[6])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t set;
    int rc = posix_spawn_file_actions_init(&actions) | posix_spawnattr_init(&attributes);

    rc |= posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    rc |= posix_spawn_file_actions_adddup2(&actions, ends[3], STDOUT_FILENO);
    rc |= posix_spawn_file_actions_adddup2(&actions, ends[5], STDERR_FILENO);
    (void)sigemptyset(&set);
    rc |= posix_spawnattr_setsigmask(&attributes, &set);
    (void)sigfillset(&set);
    rc |= posix_spawnattr_setsigdefault(&attributes, &set);
    rc |= posix_spawnattr_setpgroup(&attributes, 0);
    rc |= posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    if (rc == 0)
        rc = posix_spawnp(&r->pid, words[0], &actions, &attributes, words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return rc;
}

static int begin_ssh(struct launch *l, struct remote *r)
{
    int ends[6] = {-1, -1, -1, -1, -1, -1}, rc = 0;
    char **words = run_plan_ssh(l->plan, (uint32_t)(r - l->list));

    for (int i = 0; i < 6 && rc == 0; i += 2)
        if (pipe2(&ends[i], O_CLOEXEC) != 0)
            rc = errno;
    if (rc == 0)
        rc = words != NULL ? spawn_ssh(r, words, ends) : ENOMEM;
    if (rc != 0)
        r->pid = 0;
    run_ssh_free(words);
    close_fd(&ends[0]);
    close_fd(&ends[3]);
    close_fd(&ends[5]);
    r->in = ends[1];
    r->out = ends[2];
    r->err = ends[4];
    (void)fcntl(r->in, F_SETFL, O_NONBLOCK);
    (void)fcntl(r->out, F_SETFL, O_NONBLOCK);
    (void)fcntl(r->err, F_SETFL, O_NONBLOCK);
    return rc;
}

static void connect_host(struct launch *l, struct remote *r)
{
    struct run_order order;
    struct error e;
    int rc = begin_ssh(l, r);

    r->state = CONNECTING;
    if (rc != 0) {
        (void)snprintf(r->problem, sizeof r->problem, "cannot start ssh: %s", strerror(rc));
        fail_host(l, r, RUN_EXIT_FAILED);
        return;
    }
    rc = run_plan_order(l->plan, (uint32_t)(r - l->list), &order);
    if (rc != 0)
        (void)error_set(&e, ERROR_MEMORY, "out of memory");
    else
        rc = run_order_put(&r->down, &order, &e);
    run_plan_order_free(&order);
    if (rc != 0) {
        (void)snprintf(r->problem, sizeof r->problem, "%.300s", e.text);
        fail_host(l, r, RUN_EXIT_FAILED);
    }
}

/* Ends all processes on all hosts by a signal. */
static void begin_end(struct launch *l, int number)
{
    const uint8_t byte = (uint8_t)number;
    const int64_t end =
        clock_ms() + (number == SIGKILL || !l->going ? HURRY_MS : l->plan->grace_ms + LATE_MS);

    if (l->ending && number != SIGKILL)
        return;
    l->ending = true;
    l->end_ms = end;
    for (struct remote *r = l->list; r < l->list + l->count; r++)
        if (r->state == QUEUED)
            r->state = OVER;
        else if (r->state == RUNNING)
            (void)run_frame_put(&r->down, RUN_SIGNAL, 0, &byte, 1);
        else
            close_fd(&r->in); /* the host has nothing to do then */
}

/* --- frames --- */

static struct rank *rank_of(struct remote *r, const struct run_frame *f, const struct launch *l)
{
    return r->state == RUNNING && f->process < l->plan->per_host ? &r->rank[f->process] : NULL;
}

/* The exit code that a shell would have. */
static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* With --json, standard output is for the report. */
static struct run_output *output_of(struct launch *l, int stream)
{
    return &l->output[l->cli->json ? 1 : stream];
}

static void take_end(struct launch *l, struct remote *r, struct rank *rank, uint32_t status)
{
    const uint32_t number = r->first_rank + (uint32_t)(rank - r->rank);
    const int how = (int)status;

    if (rank->ended)
        return;
    rank->ended = true;
    rank->status = how;
    r->left--;
    if (r == l->list && rank == r->rank)
        l->input_over = true;
    for (int i = 0; i < 2; i++)
        run_output_end(output_of(l, i), rank->prefix, &rank->line[i]);
    if (how == 0 || l->ending)
        return;
    if (WIFSIGNALED(how))
        say(l, "%s: rank %u was ended by signal %d (%s)", r->host->name, number, WTERMSIG(how),
            strsignal(WTERMSIG(how)));
    else
        say(l, "%s: rank %u ended with exit status %d", r->host->name, number, WEXITSTATUS(how));
    note_failure(l, r, number, code_of(how));
}

static void take_frame(struct launch *l, struct remote *r, const struct run_frame *f)
{
    struct rank *rank = rank_of(r, f, l);

    if (f->kind == RUN_READY && r->state == CONNECTING) {
        r->state = READY;
    } else if (f->kind == RUN_REFUSED && f->length > 0) {
        (void)snprintf(r->problem, sizeof r->problem, "%.*s", (int)f->length - 1,
                       (const char *)f->bytes + 1);
        fail_host(l, r, f->bytes[0] != 0 ? f->bytes[0] : RUN_EXIT_FAILED);
    } else if (rank != NULL && (f->kind == RUN_OUTPUT || f->kind == RUN_ERRORS)) {
        const int stream = f->kind == RUN_ERRORS;
        run_output_add(output_of(l, stream), rank->prefix, &rank->line[stream], f->bytes,
                       f->length);
    } else if (rank != NULL && f->kind == RUN_ENDED) {
        take_end(l, r, rank, run_frame_number(f));
    } else if (f->kind == RUN_TAKEN && r == l->list) {
        const size_t taken = run_frame_number(f);
        l->input_sent -= taken < l->input_sent ? taken : l->input_sent;
    }
}

/* Skips what the shell of the host prints before the first frame. Returns whether frames follow. */
static bool is_greeted(struct remote *r)
{
    const size_t waiting = run_stream_waiting(&r->up);
    const uint8_t *at;

    if (r->greeted || waiting == 0)
        return r->greeted;
    at = memmem(r->up.data + r->up.taken, waiting, RUN_HELLO, sizeof RUN_HELLO - 1);
    if (at == NULL)
        return false;
    r->up.taken = (size_t)(at - r->up.data) + sizeof RUN_HELLO - 1;
    r->greeted = true;
    return true;
}

static void lose(struct launch *l, struct remote *r, const char *why)
{
    (void)snprintf(r->problem, sizeof r->problem, "%.350s", why);
    fail_host(l, r, RUN_EXIT_FAILED);
}

/* Reads what has arrived. Returns false if nothing more is there now, or ever. */
static bool read_host(struct launch *l, struct remote *r)
{
    struct run_frame f;
    struct error e;
    int rc = run_stream_read(&r->up, r->out);

    if (rc <= 0) {
        if (rc == 0)
            close_fd(&r->out);
        return false;
    }
    r->heard_ms = clock_ms();
    if (!is_greeted(r)) {
        if (run_stream_waiting(&r->up) > NOISE_MOST)
            lose(l, r, "its shell prints without end before torusctl starts");
        return true;
    }
    while ((rc = run_frame_next(&r->up, &f, &e)) > 0)
        take_frame(l, r, &f);
    if (rc < 0)
        lose(l, r, "what it sends is not understood");
    return true;
}

/* Keeps the end of what ssh says. */
static void read_errors(struct remote *r)
{
    char bytes[512];
    const ssize_t n = read(r->err, bytes, sizeof bytes);
    const size_t have = strlen(r->said), room = sizeof r->said - 1;

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_fd(&r->err);
    if (n <= 0)
        return;
    for (ssize_t i = 0; i < n; i++)
        bytes[i] = bytes[i] != '\0' ? bytes[i] : '?';
    if (have + (size_t)n > room) {
        const size_t drop = have + (size_t)n - room;
        memmove(r->said, r->said + drop, have - drop + 1);
    }
    (void)strncat(r->said, bytes, (size_t)n);
}

/* ssh has ended, and everything that it brought was read. */
static void finish_host(struct launch *l, struct remote *r)
{
    char said[sizeof r->said];

    while (r->out >= 0 && read_host(l, r))
        ;
    for (int i = 0; i < 64 && r->err >= 0; i++)
        read_errors(r);
    if (r->state == CONNECTING || r->state == READY) {
        explain(r);
        fail_host(l, r, RUN_EXIT_FAILED);
    } else if (r->state == RUNNING && r->left > 0) {
        (void)snprintf(said, sizeof said, "%s", r->said);
        const char *line = last_line(said);
        (void)snprintf(r->problem, sizeof r->problem, "the connection is lost%s%.300s%s",
                       line[0] != '\0' ? " (" : "", line, line[0] != '\0' ? ")" : "");
        fail_host(l, r, RUN_EXIT_FAILED);
    }
    r->state = OVER;
}

/* --- signals --- */

static void reap(struct launch *l)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (struct remote *r = l->list; r < l->list + l->count; r++)
            if (r->pid == pid) {
                r->pid = 0;
                r->status = status;
            }
}

static void take_signal(struct launch *l, int number)
{
    if (l->signal == 0) {
        l->signal = number;
        if (l->code == 0)
            l->code = 128 + number;
        if (!l->ending)
            say(l, "ending the program on %u %s (again: kill it)", l->count,
                text_plural(l->count, "host", "hosts"));
        begin_end(l, number);
    } else {
        begin_end(l, SIGKILL);
        run_output_close(&l->output[0]); /* its reader may have stopped */
        l->output[0].broken = true;
    }
}

static void hear_signals(struct launch *l)
{
    struct signalfd_siginfo signal;

    while (read(l->signals, &signal, sizeof signal) == sizeof signal)
        if (signal.ssi_signo != SIGCHLD)
            take_signal(l, (int)signal.ssi_signo);
    reap(l);
}

/* --- standard input --- */

/* A terminal is read only in the foreground: reading would fail otherwise. */
static bool may_read_input(const struct launch *l)
{
    const struct remote *first = &l->list[0];

    if (l->input_over || !l->plan->input || first->state != RUNNING ||
        l->input_sent >= RUN_WINDOW || run_stream_waiting(&first->down) > DOWN_MOST)
        return false;
    return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void read_input(struct launch *l)
{
    uint8_t bytes[RUN_PIECE];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == EIO) && isatty(STDIN_FILENO))
        return;
    l->input_over = n <= 0;
    l->input_sent += n > 0 ? (size_t)n : 0;
    (void)run_frame_put(&l->list[0].down, RUN_INPUT, 0, bytes, n > 0 ? (size_t)n : 0);
}

/* --- the loop --- */

static bool is_paused(const struct launch *l)
{
    return run_stream_waiting(&l->output[0].waiting) > RUN_OUTPUT_MOST ||
           run_stream_waiting(&l->output[1].waiting) > RUN_OUTPUT_MOST;
}

static void go(struct launch *l)
{
    l->going = true;
    for (struct remote *r = l->list; r < l->list + l->count; r++) {
        (void)run_frame_put(&r->down, RUN_GO, 0, NULL, 0);
        r->state = RUNNING;
        r->left = l->plan->per_host;
    }
}

/* Starts more connections, and the program when all hosts are ready. */
static void tick_start(struct launch *l, int64_t now)
{
    uint32_t connecting = 0, queued = 0;
    const bool late = now - l->began_ms > l->plan->timeout_ms;

    for (struct remote *r = l->list; r < l->list + l->count; r++) {
        if (r->state == QUEUED && connecting < CONNECTING_MOST && !late)
            connect_host(l, r);
        if (late && (r->state == CONNECTING || r->state == QUEUED)) {
            char text[sizeof r->said];
            (void)snprintf(text, sizeof text, "%s", r->said);
            const char *line = last_line(text);
            (void)snprintf(r->problem, sizeof r->problem, "not ready within %g s%s%.200s",
                           l->plan->timeout_ms / 1000.0, line[0] != '\0' ? ": " : "", line);
            fail_host(l, r, RUN_EXIT_FAILED);
        }
        connecting += r->state == CONNECTING;
        queued += r->state == QUEUED;
    }
    if (connecting + queued > 0)
        return;
    if (l->code == 0)
        go(l);
    else
        begin_end(l, SIGTERM);
}

/* Does what is due. */
static void tick(struct launch *l)
{
    const int64_t now = clock_ms();
    const bool alive = now >= l->alive_ms, paused = is_paused(l);

    if (!l->going && !l->ending)
        tick_start(l, now);
    if (l->output[0].broken && !l->ending && l->code == 0)
        l->code = 128 + SIGPIPE; /* nobody reads what the programs print */
    if (l->going && !l->ending && l->code != 0)
        begin_end(l, SIGTERM);
    l->alive_ms = alive ? now + l->plan->silence_ms / RUN_ALIVE_PARTS : l->alive_ms;
    for (struct remote *r = l->list; r < l->list + l->count; r++) {
        if (paused || r->state != RUNNING) /* before, --timeout counts */
            r->heard_ms = now;
        if (r->state == OVER || r->state == QUEUED)
            continue;
        if (alive && r->in >= 0)
            (void)run_frame_put(&r->down, RUN_ALIVE, 0, NULL, 0);
        if (now - r->heard_ms > l->plan->silence_ms)
            lose(l, r, "the connection is lost: nothing was heard any more");
        else if (l->ending && now > l->end_ms)
            lose(l, r, "its processes have not ended in time; the connection is cut");
        else if (r->pid == 0)
            finish_host(l, r);
    }
}

/* Frees what a host that is over has, and says whether its ssh has ended, too. */
static bool is_over(struct launch *l, struct remote *r)
{
    if (r->state != OVER)
        return false;
    for (uint32_t i = 0; i < l->plan->per_host; i++)
        for (int j = 0; j < 2; j++)
            run_output_end(output_of(l, j), r->rank[i].prefix, &r->rank[i].line[j]);
    close_fd(&r->in);
    close_fd(&r->out);
    close_fd(&r->err);
    return r->pid == 0;
}

static bool all_over(struct launch *l)
{
    bool over = true;

    for (struct remote *r = l->list; r < l->list + l->count; r++)
        over &= is_over(l, r);
    if (over && !l->going && !l->told)
        say(l, "nothing was started");
    l->told |= over;
    for (int i = 0; i < 2; i++) {
        run_output_write(&l->output[i]);
        over &= run_stream_waiting(&l->output[i].waiting) == 0;
    }
    return over;
}

#define FIXED 4u

static void handle_host(struct launch *l, struct remote *r, const struct pollfd *p)
{
    if (p[2].revents != 0 && r->err >= 0)
        read_errors(r);
    if (p[1].revents != 0 && r->out >= 0)
        (void)read_host(l, r);
    if (p[0].revents != 0 && r->in >= 0 && !run_stream_write(&r->down, r->in))
        close_fd(&r->in); /* ssh has ended, which says more */
}

static void wait_for_any(struct launch *l)
{
    struct pollfd *p = l->polls;
    const bool paused = is_paused(l);
    const int64_t wait = l->alive_ms - clock_ms();

    p[0] = (struct pollfd){.fd = l->signals, .events = POLLIN};
    p[1] = (struct pollfd){.fd = may_read_input(l) ? STDIN_FILENO : -1, .events = POLLIN};
    for (unsigned i = 0; i < 2; i++)
        p[2 + i] = (struct pollfd){
            .fd = run_stream_waiting(&l->output[i].waiting) > 0 ? l->output[i].fd : -1,
            .events = POLLOUT};
    for (uint32_t i = 0; i < l->count; i++) {
        const struct remote *r = &l->list[i];
        struct pollfd *q = &p[FIXED + 3 * (size_t)i];
        q[0] =
            (struct pollfd){.fd = run_stream_waiting(&r->down) > 0 ? r->in : -1, .events = POLLOUT};
        q[1] = (struct pollfd){.fd = paused ? -1 : r->out, .events = POLLIN};
        q[2] = (struct pollfd){.fd = r->err, .events = POLLIN};
    }
    /* Deadlines are seen within a tenth of a second. */
    if (poll(p, FIXED + 3 * (nfds_t)l->count, wait < 0 ? 0 : wait < 100 ? (int)wait : 100) <= 0)
        return;
    for (uint32_t i = 0; i < l->count; i++)
        handle_host(l, &l->list[i], &p[FIXED + 3 * (size_t)i]);
    if (p[1].revents != 0)
        read_input(l);
    if (p[0].revents != 0)
        hear_signals(l);
}

/* --- the report --- */

static json_t *rank_value(const struct remote *r, const struct rank *rank, uint32_t number)
{
    json_t *value = json_pack("{s:s, s:I}", "host", r->host->name, "rank", (json_int_t)number);
    int rc = value != NULL ? 0 : -1;

    if (rc == 0 && r->host->is_node)
        rc |= json_object_set_new(value, "node", json_integer(r->host->node));
    rc |= json_object_set_new(value, "exit_code",
                              rank->ended ? json_integer(code_of(rank->status)) : json_null());
    rc |= json_object_set_new(value, "signal",
                              rank->ended && WIFSIGNALED(rank->status)
                                  ? json_integer(WTERMSIG(rank->status))
                                  : json_null());
    if (r->problem[0] != '\0') {
        char text[sizeof r->problem];
        rc |= json_object_set_new(value, "problem",
                                  json_string(text_printable(text, sizeof text, r->problem)));
    }
    return json_checked(value, rc);
}

static json_t *report_value(const struct launch *l)
{
    json_t *ranks = json_array(), *failure = json_null();
    int rc = 0;

    for (const struct remote *r = l->list; r < l->list + l->count; r++)
        for (uint32_t i = 0; i < l->plan->per_host; i++)
            rc |= json_array_append_new(ranks, rank_value(r, &r->rank[i], r->first_rank + i));
    if (l->culprit != NULL)
        failure = json_pack("{s:s, s:o}", "host", l->culprit->host->name, "rank",
                            l->culprit_rank >= 0 ? json_integer(l->culprit_rank) : json_null());
    return json_checked(json_pack("{s:i, s:b, s:f, s:o, s:o}", "exit_code", l->code, "started",
                                  l->going, "seconds", (double)(clock_ms() - l->began_ms) / 1000,
                                  "failure", failure, "ranks", ranks),
                        rc);
}

/* --- the whole run --- */

static char *make_prefix(const struct launch *l, const struct remote *r, uint32_t local)
{
    char *text = NULL;
    int rc;

    if (!l->prefix)
        return NULL;
    rc = l->plan->per_host > 1 ? asprintf(&text, "%s/%u: ", r->host->name, local)
                               : asprintf(&text, "%s: ", r->host->name);
    return rc >= 0 ? text : NULL;
}

static int make_hosts(struct launch *l)
{
    l->list = calloc(l->count, sizeof *l->list);
    l->polls = calloc(FIXED + 3 * (size_t)l->count, sizeof *l->polls);
    if (l->list == NULL || l->polls == NULL)
        return -1;
    for (uint32_t i = 0; i < l->count; i++) {
        struct remote *r = &l->list[i];
        *r = (struct remote){.host = &l->plan->hosts.list[i],
                             .first_rank = i * l->plan->per_host,
                             .in = -1,
                             .out = -1,
                             .err = -1,
                             .rank = calloc(l->plan->per_host, sizeof *r->rank)};
        for (uint32_t j = 0; r->rank != NULL && j < l->plan->per_host; j++)
            r->rank[j].prefix = make_prefix(l, r, j);
        if (r->rank == NULL)
            return -1;
    }
    return 0;
}

static void free_hosts(struct launch *l)
{
    for (uint32_t i = 0; l->list != NULL && i < l->count; i++) {
        struct remote *r = &l->list[i];
        for (uint32_t j = 0; r->rank != NULL && j < l->plan->per_host; j++)
            free(r->rank[j].prefix);
        free(r->rank);
        frame_stream_free(&r->down);
        frame_stream_free(&r->up);
    }
    free(l->list);
    free(l->polls);
}

/* Signals come by a descriptor. A signal that nohup ignores stays ignored. Ctrl-Z does nothing: a launcher that is
 * stopped looks like a connection that is cut. */
static void take_over_signals(struct launch *l)
{
    sigset_t set;
    struct rlimit files;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < 4; i++)
        (void)sigaddset(&set, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGCHLD}[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGTSTP, SIG_IGN);
    (void)signal(SIGTTIN, SIG_IGN);
    (void)signal(SIGTTOU, SIG_IGN);
    l->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max; /* three for each host */
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int launch(struct cli *cli, const struct run_options *o, const struct run_plan *plan)
{
    struct launch l = {.cli = cli,
                       .plan = plan,
                       .prefix = !o->no_prefix,
                       .count = plan->hosts.count,
                       .began_ms = clock_ms(),
                       .culprit_rank = -1};
    int code;

    if (make_hosts(&l) != 0) {
        free_hosts(&l);
        return cli_fail(cli, &(struct error){.code = ERROR_MEMORY, .text = "out of memory"});
    }
    take_over_signals(&l);
    for (int i = 0; i < 2; i++)
        run_output_open(&l.output[i], STDOUT_FILENO + i);
    l.alive_ms = l.began_ms;
    do {
        tick(&l);
        if (!all_over(&l))
            wait_for_any(&l);
    } while (!all_over(&l));
    code = l.code;
    if (cli->json && cli_print(cli, report_value(&l), NULL) != EXIT_DONE && code == 0)
        code = RUN_EXIT_FAILED;
    for (int i = 0; i < 2; i++)
        run_output_close(&l.output[i]);
    (void)close(l.signals);
    free_hosts(&l);
    return code;
}

int run_program(struct cli *cli, const struct run_options *o, char **program)
{
    struct run_plan plan;
    struct error e;
    int code;

    if (run_plan_make(&plan, o, program, cli->socket, &e) != 0)
        code = cli_fail(cli, &e);
    else
        code = o->dry_run ? run_plan_print(&plan, cli) : launch(cli, o, &plan);
    run_plan_free(&plan);
    return code;
}
