#include "client/cli/running/host_side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/running/descendants.h"
#include "client/cli/running/run_frames.h"
#include "client/cli/terminal/clock.h"
#include "proto/text.h"

#define WAITING_MOST (256u << 10) /* bytes for the other side; above, output of programs waits */
#define KILL_AGAIN_MS 50
#define DRAINED_PIECES 32u
#define NEVER INT64_MAX

struct process {
    pid_t pid;
    int stream[2]; /* standard output and error; -1: at its end */
    bool ended;
};

struct side {
    struct frame_stream down, up, input;
    struct run_order order;
    uint8_t *order_bytes;
    struct process *list; /* NULL: not started */
    uint32_t running;
    int input_fd; /* standard input of the first process; -1: closed */
    bool input_ends;
    bool lost; /* nobody is at the other end */
    bool done; /* nothing is to be run, or all have ended */
    bool ending;
    int signal;    /* the last one that was sent to all */
    bool given_up; /* some are left that this user may not kill */
    int signals;
    int64_t heard_ms, alive_ms, kill_ms;
};

/* --- the order --- */

static void refuse_order(struct side *s, int code, const char *text)
{
    char bytes[512];

    bytes[0] = (char)code;
    (void)snprintf(bytes + 1, sizeof bytes - 1, "%s", text);
    (void)run_frame_put(&s->up, RUN_REFUSED, 0, bytes, 1 + strlen(bytes + 1));
    s->done = true;
}

/* Returns 0 if a file can be executed, or the number of the error. */
static int try_program(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno;
    return !S_ISREG(st.st_mode) || access(path, X_OK) != 0 ? EACCES : 0;
}

/* Looks for the program as execvp() does. Returns 0, or the number of the error. */
static int find_program(const char *name)
{
    const char *path = getenv("PATH");
    int problem = ENOENT;

    if (strchr(name, '/') != NULL)
        return try_program(name);
    for (path = path != NULL ? path : "/bin:/usr/bin"; path != NULL;) {
        const size_t length = strcspn(path, ":");
        char *file = NULL;
        if (asprintf(&file, "%.*s/%s", (int)length, length > 0 ? path : ".", name) < 0)
            return ENOMEM;
        const int found = try_program(file);
        free(file);
        if (found == 0)
            return 0;
        problem = found == EACCES ? EACCES : problem;
        path = path[length] == ':' ? path + length + 1 : NULL;
    }
    return problem;
}

static void set_variables(const struct run_order *o)
{
    for (uint32_t i = 0; i < o->variables; i++) {
        char *name = strdup(o->variable[i]);
        char *equals = name != NULL ? strchr(name, '=') : NULL;
        if (equals != NULL) {
            *equals = '\0';
            (void)setenv(name, equals + 1, 1);
        }
        free(name);
    }
}

static void take_order(struct side *s, const struct run_frame *f)
{
    struct error e;
    char text[400];
    int problem;

    if (s->order_bytes != NULL)
        return;
    s->order_bytes = malloc(f->length + 1);
    if (s->order_bytes == NULL) {
        refuse_order(s, RUN_EXIT_FAILED, "out of memory");
        return;
    }
    memcpy(s->order_bytes, f->bytes, f->length);
    if (run_order_read(&s->order, s->order_bytes, f->length, &e) != 0) {
        refuse_order(s, RUN_EXIT_FAILED, e.text);
        return;
    }
    if (chdir(s->order.folder) != 0) {
        (void)snprintf(text, sizeof text, "cannot enter the folder %.300s: %s", s->order.folder,
                       strerror(errno));
        refuse_order(s, RUN_EXIT_FAILED, text);
        return;
    }
    (void)setenv("PWD", s->order.folder, 1);
    set_variables(&s->order);
    problem = find_program(s->order.argument[0]);
    if (problem == 0) {
        (void)run_frame_put(&s->up, RUN_READY, 0, NULL, 0);
        return;
    }
    (void)snprintf(text, sizeof text, "cannot run the program %.300s: %s", s->order.argument[0],
                   strerror(problem));
    refuse_order(s, problem == ENOENT ? RUN_EXIT_NOT_FOUND : RUN_EXIT_NO_EXECUTION, text);
}

/* --- processes --- */

/* Becomes the program; the parent has blocked signals. */
static void become(const struct side *s, uint32_t local, pid_t parent, const int fd[3])
{
    const struct run_order *o = &s->order;
    char number[16];
    sigset_t none;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(RUN_EXIT_FAILED);
    for (int i = 0; i < 3; i++)
        if (dup2(fd[i], i) < 0)
            _exit(RUN_EXIT_FAILED);
    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)snprintf(number, sizeof number, "%u", o->first_rank + local);
    (void)setenv("RANK", number, 1);
    (void)snprintf(number, sizeof number, "%u", local);
    (void)setenv("LOCAL_RANK", number, 1);
    (void)execvp(o->argument[0], (char *const *)(uintptr_t)o->argument);
    (void)fprintf(stderr, "torusrun: cannot run %s: %s\n", o->argument[0], strerror(errno));
    _exit(errno == ENOENT ? RUN_EXIT_NOT_FOUND : RUN_EXIT_NO_EXECUTION);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* Starts a process with pipes. Returns 0, or -1 with errno. */
static int start_one(struct side *s, uint32_t local)
{
    struct process *p = &s->list[local];
    const bool input = local == 0 && s->order.input;
    const pid_t self = getpid();
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    int rc = pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC);

    if (input)
        rc |= pipe2(in, O_CLOEXEC);
    else
        in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    p->pid = rc == 0 ? fork() : -1;
    if (p->pid == 0)
        become(s, local, self, (const int[3]){in[0], out[1], err[1]});
    if (p->pid > 0)
        (void)setpgid(p->pid, p->pid); /* so that a signal reaches the group from now on */
    close_fd(&in[0]);
    close_fd(&out[1]);
    close_fd(&err[1]);
    p->stream[0] = out[0];
    p->stream[1] = err[0];
    if (input)
        s->input_fd = in[1];
    for (int i = 0; i < 2; i++)
        if (p->stream[i] >= 0)
            (void)fcntl(p->stream[i], F_SETFL, O_NONBLOCK);
    if (s->input_fd >= 0)
        (void)fcntl(s->input_fd, F_SETFL, O_NONBLOCK);
    return p->pid > 0 ? 0 : -1;
}

/* Sends a signal to all that runs. Returns as descendants_signal(). */
static int signal_all(const struct side *s, int number)
{
    pid_t group[RUN_RANKS_MOST];
    size_t groups = 0;

    for (uint32_t i = 0; s->list != NULL && i < s->order.ranks; i++)
        if (!s->list[i].ended)
            group[groups++] = s->list[i].pid;
    return descendants_signal(number, group, groups);
}

static void begin_end(struct side *s, int number)
{
    if (s->ending && number != SIGKILL)
        return;
    s->ending = true;
    s->signal = number;
    s->done |= s->list == NULL;
    s->kill_ms = number == SIGKILL ? 0 : clock_ms() + s->order.grace_ms;
    (void)signal_all(s, number);
}

static void start_all(struct side *s)
{
    if (s->list != NULL || s->done || s->order.argument == NULL)
        return;
    s->list = calloc(s->order.ranks, sizeof *s->list);
    if (s->list == NULL)
        refuse_order(s, RUN_EXIT_FAILED, "out of memory");
    for (uint32_t i = 0; s->list != NULL && i < s->order.ranks; i++)
        s->list[i] = (struct process){.stream = {-1, -1}, .ended = true};
    for (uint32_t i = 0; s->list != NULL && i < s->order.ranks; i++) {
        char text[128];
        if (start_one(s, i) == 0) {
            s->list[i].ended = false;
            s->running++;
            continue;
        }
        (void)snprintf(text, sizeof text, "cannot start a process: %s", strerror(errno));
        refuse_order(s, RUN_EXIT_FAILED, text);
        begin_end(s, SIGTERM);
        break;
    }
}

/* Passes on what a process has written, at most a piece. Returns false if there is nothing now. */
static bool pass_on(struct side *s, uint32_t local, int stream)
{
    uint8_t bytes[RUN_PIECE];
    int *fd = &s->list[local].stream[stream];
    const ssize_t n = *fd >= 0 ? read(*fd, bytes, sizeof bytes) : -1;

    if (n > 0 && !s->lost)
        (void)run_frame_put(&s->up, stream == 0 ? RUN_OUTPUT : RUN_ERRORS, local, bytes, (size_t)n);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_fd(fd);
    return n > 0;
}

/* Passes on what is there. Processes that this one has started may go on writing, so this ends. */
static void drain(struct side *s, uint32_t local)
{
    for (unsigned i = 0; i < DRAINED_PIECES; i++)
        if ((int)pass_on(s, local, 0) + (int)pass_on(s, local, 1) == 0)
            return;
}

static void reap(struct side *s)
{
    pid_t pid;
    int status;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (uint32_t i = 0; s->list != NULL && i < s->order.ranks; i++) {
            if (s->list[i].pid != pid || s->list[i].ended)
                continue;
            s->list[i].ended = true;
            s->running--;
            drain(s, i); /* what it has written comes before its end */
            if (!s->lost)
                (void)run_frame_put_number(&s->up, RUN_ENDED, i, (uint32_t)status);
        }
    if (s->list != NULL && s->running == 0)
        s->done = true;
}

/* --- the connection --- */

static void lose(struct side *s)
{
    if (s->lost)
        return;
    s->lost = true;
    frame_stream_free(&s->up);
    s->done |= s->list == NULL;
    begin_end(s, SIGTERM);
}

static void take_input(struct side *s)
{
    const size_t before = run_stream_waiting(&s->input);

    if (s->input_fd >= 0 && !run_stream_write(&s->input, s->input_fd))
        close_fd(&s->input_fd);
    if (s->input_fd < 0)
        frame_stream_free(&s->input); /* the process reads no more */
    if (before > run_stream_waiting(&s->input) && !s->lost)
        (void)run_frame_put_number(&s->up, RUN_TAKEN, 0,
                                   (uint32_t)(before - run_stream_waiting(&s->input)));
    if (s->input_ends && run_stream_waiting(&s->input) == 0)
        close_fd(&s->input_fd);
}

static void queue_input(struct side *s, const struct run_frame *f)
{
    size_t room;
    uint8_t *at;

    s->input_ends |= f->length == 0;
    if (f->length == 0 || run_stream_waiting(&s->input) > RUN_WINDOW)
        return;
    at = frame_stream_room(&s->input, f->length, &room);
    if (at == NULL)
        return;
    memcpy(at, f->bytes, f->length);
    frame_stream_added(&s->input, f->length);
}

static void hear(struct side *s)
{
    struct run_frame f;
    struct error e;
    int rc;

    if (run_stream_read(&s->down, STDIN_FILENO) == 0) {
        lose(s);
        return;
    }
    s->heard_ms = clock_ms();
    while ((rc = run_frame_next(&s->down, &f, &e)) > 0) {
        if (f.kind == RUN_ORDER)
            take_order(s, &f);
        else if (f.kind == RUN_GO)
            start_all(s);
        else if (f.kind == RUN_INPUT)
            queue_input(s, &f);
        else if (f.kind == RUN_SIGNAL && f.length == 1)
            begin_end(s, f.bytes[0] < NSIG && f.bytes[0] > 0 ? f.bytes[0] : SIGTERM);
    }
    if (rc < 0)
        lose(s);
    take_input(s);
}

static void hear_signals(struct side *s)
{
    struct signalfd_siginfo signal;

    while (read(s->signals, &signal, sizeof signal) == sizeof signal)
        if (signal.ssi_signo != SIGCHLD)
            begin_end(s, SIGTERM);
    reap(s);
}

/* --- the loop --- */

#define FIXED 4u

static int wait_ms(const struct side *s)
{
    const int64_t now = clock_ms();
    int64_t next = s->alive_ms;

    if (s->ending && s->kill_ms < next)
        next = s->kill_ms;
    return next <= now ? 0 : (int)(next - now);
}

static void wait_for_any(struct side *s, struct pollfd *p)
{
    const uint32_t ranks = s->list != NULL ? s->order.ranks : 0;
    const bool full = run_stream_waiting(&s->up) > WAITING_MOST;

    p[0] = (struct pollfd){.fd = s->lost ? -1 : STDIN_FILENO, .events = POLLIN};
    p[1] = (struct pollfd){.fd = s->lost || run_stream_waiting(&s->up) == 0 ? -1 : STDOUT_FILENO,
                           .events = POLLOUT};
    p[2] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    p[3] = (struct pollfd){.fd = run_stream_waiting(&s->input) > 0 ? s->input_fd : -1,
                           .events = POLLOUT};
    for (uint32_t i = 0; i < 2 * ranks; i++)
        p[FIXED + i] =
            (struct pollfd){.fd = full ? -1 : s->list[i / 2].stream[i % 2], .events = POLLIN};
    if (poll(p, FIXED + 2 * ranks, wait_ms(s)) <= 0)
        return;
    if (p[0].revents != 0)
        hear(s);
    if (p[3].revents != 0)
        take_input(s);
    for (uint32_t i = 0; i < 2 * ranks; i++)
        if (p[FIXED + i].revents != 0)
            (void)pass_on(s, i / 2, (int)(i % 2));
    if (p[2].revents != 0)
        hear_signals(s);
}

static int64_t silence_ms(const struct side *s)
{
    return s->order.argument != NULL ? s->order.silence_ms : RUN_SILENCE_MS;
}

/* Does what is due. */
static void tick(struct side *s)
{
    const int64_t now = clock_ms();

    if (now >= s->alive_ms) {
        s->alive_ms = now + silence_ms(s) / RUN_ALIVE_PARTS;
        if (!s->lost)
            (void)run_frame_put(&s->up, RUN_ALIVE, 0, NULL, 0);
    }
    if (!s->lost && now - s->heard_ms > silence_ms(s))
        lose(s);
    if (s->done && !s->ending) {
        begin_end(s, SIGTERM); /* what the processes have left */
    } else if (s->done && s->signal != SIGTERM && s->signal != SIGKILL) {
        s->signal = SIGTERM; /* shells let what runs in the background ignore SIGINT */
        (void)signal_all(s, SIGTERM);
    }
    if (s->ending && now >= s->kill_ms) {
        s->kill_ms = now + KILL_AGAIN_MS;
        s->given_up = signal_all(s, SIGKILL) < 0;
    }
    if (!s->lost && !run_stream_write(&s->up, STDOUT_FILENO))
        lose(s);
}

/* Whether nothing is left to do: this process has no children any more, and has sent everything. */
static bool is_over(struct side *s)
{
    siginfo_t child;

    if (!s->done)
        return false;
    reap(s);
    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD)
        return s->given_up;
    for (uint32_t i = 0; s->list != NULL && i < s->order.ranks; i++)
        drain(s, i);
    return s->lost || run_stream_waiting(&s->up) == 0;
}

static int serve(void)
{
    struct side s = {.input_fd = -1, .kill_ms = NEVER, .heard_ms = clock_ms()};
    struct pollfd *polls = calloc(FIXED + 2 * (size_t)RUN_RANKS_MOST, sizeof *polls);
    size_t room;
    uint8_t *hello = frame_stream_room(&s.up, sizeof RUN_HELLO, &room);
    sigset_t set;

    if (polls == NULL || hello == NULL)
        return RUN_EXIT_FAILED;
    memcpy(hello, RUN_HELLO, sizeof RUN_HELLO - 1);
    frame_stream_added(&s.up, sizeof RUN_HELLO - 1);
    (void)sigemptyset(&set);
    for (size_t i = 0; i < 4; i++)
        (void)sigaddset(&set, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGCHLD}[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    s.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++)
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    for (tick(&s); !is_over(&s); tick(&s))
        wait_for_any(&s, polls);
    free(polls);
    return EXIT_SUCCESS;
}

/* Two processes guard each other: this one kills what the other one leaves behind, and the other one ends everything if
 * this one is killed. */
int host_side_run(void)
{
    const pid_t guard = getpid();
    pid_t server;
    int status = 0;

    descendants_adopt();
    server = fork();
    if (server == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        descendants_adopt();
        _exit(getppid() == guard ? serve() : RUN_EXIT_FAILED);
    }
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    while (server > 0 && waitpid(server, &status, 0) < 0 && errno == EINTR)
        ;
    descendants_end();
    return server > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : RUN_EXIT_FAILED;
}
