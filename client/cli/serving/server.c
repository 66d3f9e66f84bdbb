#include "client/cli/serving/server.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/doctor/report.h"
#include "client/cli/serving/scene.h"
#include "client/cli/serving/site.h"
#include "client/cli/survey/survey_query.h"
#include "client/cli/terminal/cli.h"
#include "client/cli/terminal/clock.h"

/* ---- Findings, by another process ------------------------------------------------------------ */

/* Judges all machines (client/cli/doctor) in another process, because that waits for answers: pages go on meanwhile. */

#define JUDGING_MOST_BYTES (1u << 20) /* of the findings */
#define JUDGING_MOST_SECONDS 30u

struct judging {
    pid_t pid; /* 0: none is under way */
    int fd;    /* to watch while one is under way */
    char *text;
    size_t length;
};

/* The other process: it has no other descriptor of this one, and ends with it. */
static _Noreturn void judge(const struct cli *cli, int out)
{
    struct cli mine = {.socket = cli->socket, .commands = cli->commands, .command = cli->command};
    struct diagnosis d;
    sigset_t none;
    int code = EXIT_FAILED;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(out, STDOUT_FILENO) < 0 || close_range(STDERR_FILENO, ~0u, 0) != 0 ||
        open("/dev/null", O_WRONLY | O_CLOEXEC) != STDERR_FILENO)
        _exit(code);
    (void)alarm(JUDGING_MOST_SECONDS);
    if (diagnosis_make(&mine, &d) == EXIT_DONE) {
        json_t *value = doctor_report_value(&d, false);
        if (value != NULL && json_dumpfd(value, STDOUT_FILENO, JSON_COMPACT) == 0)
            code = EXIT_DONE;
        json_decref(value);
    }
    diagnosis_free(&d);
    torus_client_close(mine.client);
    _exit(code);
}

/* Starts judging, unless that is under way. Returns 0, or -1 if no process can be started. */
static int judging_begin(struct judging *j, const struct cli *cli)
{
    int ends[2];

    if (j->pid > 0)
        return 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    const pid_t pid = fork();
    if (pid == 0)
        judge(cli, ends[1]);
    (void)close(ends[1]);
    if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        (void)close(ends[0]);
        return -1;
    }
    *j = (struct judging){.pid = pid, .fd = ends[0]};
    return 0;
}

/* Ends the process if there is one. */
static void judging_end(struct judging *j)
{
    if (j->pid <= 0)
        return;
    (void)kill(j->pid, SIGKILL);
    while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    (void)close(j->fd);
    free(j->text);
    *j = (struct judging){0};
}

/* To be called when the descriptor is readable. Returns whether judging has ended; then *value is set to what
 * doctor_report_value() gave, which the caller owns, or to NULL. */
static bool judging_go_on(struct judging *j, json_t **value)
{
    ssize_t n;

    *value = NULL;
    if (j->text == NULL && (j->text = malloc(JUDGING_MOST_BYTES)) == NULL) {
        judging_end(j);
        return true;
    }
    while ((n = read(j->fd, j->text + j->length, JUDGING_MOST_BYTES - j->length)) > 0)
        j->length += (size_t)n;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n == 0 && j->length < JUDGING_MOST_BYTES)
        *value = json_loadb(j->text, j->length, 0, NULL);
    judging_end(j);
    return true;
}

/* ---- The page -------------------------------------------------------------------------------- */

#define SURVEY_EVERY_MS 1000
#define PATIENCE_MS 5000u /* for the daemon of this machine */
#define DOCTOR_EVERY_MS 60000
#define DOCTOR_LEAST_MS 3000 /* between findings that somebody asks for */
#define REQUESTS_MOST 32u    /* of browsers that have the token, beside those of watchers */
#define CONNECTIONS (WATCHERS_MOST + REQUESTS_MOST + STRANGERS_MOST)
#define CONNECTION_MEMORY 32768u
#define IDLE_SECONDS 30u /* after which a connection is closed if its reader takes nothing */

struct server {
    struct cli *cli;
    struct MHD_Daemon *daemon;
    int daemon_fd, signals;
    struct site site;
    struct scene scene;
    struct survey_query query;
    struct judging judging;
    int64_t asked_ms,
        judged_ms;       /* when the last survey and the last findings were begun; 0: never */
    int64_t answered_at; /* milliseconds since 1970; 0: never */
    bool lost;
};

static int64_t wall_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- surveys --- */

/* Says why there is nothing new. The previous state stays, and is shown as old. */
static void publish_lost(struct server *s, const char *text)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "why", json_string(text));
    (void)json_object_set_new(o, "since",
                              s->answered_at != 0 ? json_integer(s->answered_at) : json_null());
    (void)bulletin_publish(&s->site.watchers.board, EVENT_LOST, o);
    s->lost = true;
}

static void publish_state(struct server *s)
{
    struct bulletin *board = &s->site.watchers.board;
    struct error e;

    if (s->scene.new_torus || board->newest[EVENT_TORUS] == NULL) {
        json_t *torus = scene_torus_value(&s->scene, &e);
        if (torus == NULL) {
            publish_lost(s, e.text);
            return;
        }
        (void)bulletin_publish(board, EVENT_TORUS, torus);
    }
    s->answered_at = wall_ms();
    (void)bulletin_publish(board, EVENT_STATE,
                           scene_state_value(&s->scene, (uint64_t)s->answered_at));
    if (s->lost)
        (void)bulletin_publish(board, EVENT_LOST, NULL);
    s->lost = false;
}

static void go_on_asking(struct server *s)
{
    switch (survey_query_go_on(&s->query)) {
    case SURVEY_QUERY_UNDER_WAY:
        return;
    case SURVEY_QUERY_ANSWERED:
        if (scene_take(&s->scene, &s->query.all, clock_seconds()) == 0)
            publish_state(s);
        else
            publish_lost(s, "there is not enough memory for the state");
        break;
    case SURVEY_QUERY_FAILED:
        publish_lost(s, s->query.error.text);
        break;
    }
    watchers_wake(&s->site.watchers);
}

/* Begins a survey if it is time. Returns the milliseconds until then; -1: nobody looks. */
static int64_t ask_in_time(struct server *s, int64_t now)
{
    if (s->site.watchers.count == 0)
        return -1;
    const int64_t due = s->asked_ms == 0 ? now : s->asked_ms + SURVEY_EVERY_MS;
    if (s->query.under_way || due > now)
        return due > now ? due - now : SURVEY_EVERY_MS;
    s->asked_ms = now;
    survey_query_begin(&s->query);
    go_on_asking(s);
    return SURVEY_EVERY_MS;
}

/* --- findings --- */

static void begin_judging(struct server *s, int64_t now)
{
    const int64_t pause = s->site.wants_doctor ? DOCTOR_LEAST_MS : DOCTOR_EVERY_MS;

    if (s->site.watchers.count == 0 || s->judging.pid > 0 ||
        (s->judged_ms != 0 && now - s->judged_ms < pause))
        return;
    s->site.wants_doctor = false;
    s->judged_ms = now;
    (void)judging_begin(&s->judging, s->cli);
}

static void go_on_judging(struct server *s)
{
    json_t *value;

    if (!judging_go_on(&s->judging, &value))
        return;
    if (value == NULL)
        value = json_object(); /* the page says that there are no findings */
    (void)json_object_set_new(value, "at", json_integer(wall_ms()));
    (void)bulletin_publish(&s->site.watchers.board, EVENT_DOCTOR, value);
    watchers_wake(&s->site.watchers);
}

/* --- the loop --- */

static void on_connection(void *site, struct MHD_Connection *connection, void **own,
                          enum MHD_ConnectionNotificationCode code)
{
    struct site *s = site;

    (void)own;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        strangers_come(&s->strangers, connection, clock_ms());
    else
        strangers_forget(&s->strangers, connection);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Does what is due, and waits for what comes next. Returns whether to go on. */
static bool turn(struct server *s)
{
    const int64_t now = clock_ms();
    MHD_UNSIGNED_LONG_LONG timeout;

    (void)MHD_run(s->daemon);
    int64_t wait = ask_in_time(s, now);
    begin_judging(s, now);
    if (s->site.watchers.count > 0)
        wait = least(wait, DOCTOR_LEAST_MS);
    wait = least(wait, strangers_expire(&s->site.strangers, now));
    if (MHD_get_timeout(s->daemon, &timeout) == MHD_YES)
        wait = least(wait, timeout < 60000 ? (int64_t)timeout : 60000);
    struct pollfd fds[] = {
        {.fd = s->signals, .events = POLLIN},
        {.fd = s->daemon_fd, .events = POLLIN},
        {.fd = survey_query_fd(&s->query), .events = POLLIN},
        {.fd = s->judging.pid > 0 ? s->judging.fd : -1, .events = POLLIN},
    };
    if (poll(fds, sizeof fds / sizeof fds[0], (int)wait) < 0)
        return errno == EINTR;
    if (fds[2].revents != 0)
        go_on_asking(s);
    if (fds[3].revents != 0)
        go_on_judging(s);
    struct signalfd_siginfo
        signal; /* an unread signal ends the program when signals are allowed again */
    return fds[0].revents == 0 || read(s->signals, &signal, sizeof signal) != sizeof signal;
}

/* Signals that end the program come to a descriptor. Returns it, or -1. */
static int take_signals(sigset_t *before)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) /* nohup */
            (void)sigaddset(&set, ends[i]);
    (void)sigprocmask(SIG_BLOCK, &set, before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void end(struct server *s)
{
    judging_end(&s->judging);
    s->site.watchers.ending = true;
    watchers_wake(&s->site.watchers);
    (void)MHD_run(s->daemon);
    MHD_stop_daemon(s->daemon);
    bulletin_free(&s->site.watchers.board);
    survey_query_free(&s->query);
    scene_free(&s->scene);
}

int server_run(struct cli *cli, struct door *door, int fd, server_announce_fn *announce)
{
    static struct server server; /* large */
    struct server *s = &server;
    sigset_t before;

    *s = (struct server){.cli = cli, .signals = take_signals(&before)};
    s->site.door = door;
    s->site.scene = &s->scene;
    s->query = (struct survey_query){.socket = cli->socket, .patience_ms = PATIENCE_MS};
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, site_answer, &s->site,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, &s->site, MHD_OPTION_CONNECTION_TIMEOUT,
        IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_END);
    if (s->signals < 0 || s->daemon == NULL) {
        if (s->daemon != NULL)
            MHD_stop_daemon(s->daemon);
        else
            (void)close(fd);
        return cli_fail(cli, &(struct error){.code = ERROR_IO,
                                             .text = "the server of the page cannot be started"});
    }
    s->daemon_fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    if (announce(cli, door))
        while (turn(s))
            continue;
    end(s);
    (void)close(s->signals);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return EXIT_DONE;
}
