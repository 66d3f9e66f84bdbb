#include "client/cli/cluster/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/terminal/clock.h"

#define READ_SIZE 4096u
#define POLL_MS 200 /* how soon a deadline is noticed */

extern char **environ;

struct running {
    struct child *child;
    int64_t deadline;
};

static void close_end(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Opens three pipes: ends[0..1] for standard input, [2..3] for standard output, [4..5] for standard error. */
static int open_pipes(int ends[6])
{
    for (unsigned i = 0; i < 6; i++)
        ends[i] = -1;
    for (unsigned i = 0; i < 6; i += 2)
        if (pipe2(&ends[i], O_CLOEXEC) != 0) {
            int problem = errno;
            for (unsigned j = 0; j < 6; j++)
                close_end(&ends[j]);
            return problem;
        }
    return 0;
}

static int spawn(struct child *c, const int ends[6])
{
    posix_spawn_file_actions_t actions;
    int result = posix_spawn_file_actions_init(&actions);

    if (result != 0)
        return result;
    result = posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(&actions, ends[3], STDOUT_FILENO);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(&actions, ends[5], STDERR_FILENO);
    if (result == 0)
        result = posix_spawnp(&c->pid, c->arguments[0], &actions, NULL,
                              (char *const *)(uintptr_t)c->arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return result;
}

static void start(struct child *c)
{
    int ends[6];

    c->in = c->out = c->err = -1;
    c->start_errno = open_pipes(ends);
    if (c->start_errno != 0)
        return;
    if (geteuid() == 0 && c->input_owner != 0)
        (void)fchown(ends[0], c->input_owner, (gid_t)-1);
    c->start_errno = spawn(c, ends);
    c->started = c->start_errno == 0;
    close_end(&ends[0]);
    close_end(&ends[3]);
    close_end(&ends[5]);
    if (!c->started) {
        close_end(&ends[1]);
        close_end(&ends[2]);
        close_end(&ends[4]);
        return;
    }
    c->in = ends[1];
    c->out = ends[2];
    c->err = ends[4];
    (void)fcntl(c->in, F_SETFL, O_NONBLOCK);
    if (c->input_length == 0)
        close_end(&c->in);
}

static void send_input(struct child *c)
{
    ssize_t n = write(c->in, c->input + c->sent, c->input_length - c->sent);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    c->sent += n > 0 ? (size_t)n : 0;
    if (n < 0 || c->sent == c->input_length)
        close_end(&c->in); /* everything was sent, or the program reads no more */
}

/* Appends what can be read. Closes the descriptor at the end of the file. Returns false if the text is too long. */
static bool read_text(int *fd, char **text, size_t *length)
{
    char *more = realloc(*text, *length + READ_SIZE + 1);
    ssize_t n;

    if (more == NULL) {
        close_end(fd);
        return false;
    }
    *text = more;
    n = read(*fd, more + *length, READ_SIZE);
    if (n < 0 && errno == EINTR)
        n = 0;
    else if (n <= 0)
        close_end(fd);
    *length += n > 0 ? (size_t)n : 0;
    more[*length] = '\0';
    if (*length <= CHILD_OUTPUT_MOST)
        return true;
    *length = CHILD_OUTPUT_MOST;
    more[*length] = '\0';
    return false;
}

static void handle(struct child *c, const struct pollfd *p)
{
    if (p[0].revents != 0 && c->in >= 0)
        send_input(c);
    if (p[1].revents != 0 && c->out >= 0 && !read_text(&c->out, &c->output, &c->output_length)) {
        c->too_long = true;
        (void)kill(c->pid, SIGKILL);
    }
    if (p[2].revents != 0 && c->err >= 0)
        (void)read_text(&c->err, &c->errors, &c->errors_length);
}

/* Waits for the end of a program whose output has ended, or that was killed. */
static void finish(struct child *c)
{
    close_end(&c->in);
    close_end(&c->out);
    close_end(&c->err);
    while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
        ;
}

static bool is_done(struct running *r)
{
    struct child *c = r->child;

    if (c->out < 0 && c->err < 0)
        return true;
    if (clock_ms() < r->deadline)
        return c->too_long;
    c->late = true;
    (void)kill(c->pid, SIGKILL);
    return true;
}

static void wait_for_any(struct running *running, size_t count, struct pollfd *p)
{
    for (size_t i = 0; i < count; i++) {
        const struct child *c = running[i].child;
        p[3 * i] = (struct pollfd){.fd = c->in, .events = POLLOUT};
        p[3 * i + 1] = (struct pollfd){.fd = c->out, .events = POLLIN};
        p[3 * i + 2] = (struct pollfd){.fd = c->err, .events = POLLIN};
    }
    if (poll(p, (nfds_t)(3 * count), POLL_MS) <= 0)
        return;
    for (size_t i = 0; i < count; i++)
        handle(running[i].child, &p[3 * i]);
}

void child_run(struct child *children, size_t count, size_t at_once, int deadline_ms,
               child_ended_fn *ended, void *context)
{
    struct running running[CHILD_MOST_AT_ONCE];
    struct pollfd polls[3 * CHILD_MOST_AT_ONCE];
    size_t next = 0, active = 0;
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);

    at_once = at_once < CHILD_MOST_AT_ONCE ? at_once : CHILD_MOST_AT_ONCE;
    while (next < count || active > 0) {
        while (active < at_once && next < count) {
            struct child *c = &children[next++];
            start(c);
            if (c->started)
                running[active++] = (struct running){c, clock_ms() + deadline_ms};
            else if (ended != NULL)
                ended(context, c);
        }
        wait_for_any(running, active, polls);
        for (size_t i = 0; i < active;) {
            if (!is_done(&running[i])) {
                i++;
                continue;
            }
            finish(running[i].child);
            if (ended != NULL)
                ended(context, running[i].child);
            running[i] = running[--active];
        }
    }
    (void)signal(SIGPIPE, before);
}

int child_exit_status(const struct child *c)
{
    return c->started && !c->late && !c->too_long && WIFEXITED(c->status) ? WEXITSTATUS(c->status)
                                                                          : -1;
}

const char *child_problem(const struct child *c, char *text, size_t size)
{
    const char *line = c->errors != NULL ? c->errors : "";
    size_t length = strlen(line);

    while (length > 0 && line[length - 1] == '\n')
        length--;
    for (size_t i = length; i > 0; i--)
        if (line[i - 1] == '\n') {
            line += i;
            length -= i;
            break;
        }
    if (!c->started)
        (void)snprintf(text, size, "cannot start %s: %s", c->arguments[0],
                       strerror(c->start_errno));
    else if (c->late)
        (void)snprintf(text, size, "%s did not end in time", c->arguments[0]);
    else if (c->too_long)
        (void)snprintf(text, size, "%s printed more than %u KiB", c->arguments[0],
                       CHILD_OUTPUT_MOST >> 10);
    else if (length > 0)
        (void)snprintf(text, size, "%.*s", (int)length, line);
    else if (WIFSIGNALED(c->status))
        (void)snprintf(text, size, "%s was ended by signal %d", c->arguments[0],
                       WTERMSIG(c->status));
    else
        (void)snprintf(text, size, "%s failed with status %d", c->arguments[0],
                       WEXITSTATUS(c->status));
    return text;
}

void child_free(struct child *c)
{
    free(c->output);
    free(c->errors);
    c->output = c->errors = NULL;
}
