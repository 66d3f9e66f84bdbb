#include "client/cli/top/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/survey/survey_query.h"
#include "client/cli/terminal/clock.h"
#include "client/cli/top/draw.h"
#include "client/cli/top/model.h"
#include "client/cli/top/terminal.h"
#include "daemon/lib/command_line/wrap.h"

/* ---- In a terminal --------------------------------------------------------------------------- */

#define PATIENCE_SECONDS 2.0 /* after that, the view says that it waits for the daemon */
#define NEWS_SECONDS 10.0    /* how long the view says that a daemon has been restarted */
#define LONGEST_WAIT_MS                                                                            \
    250 /* so that times on the screen go on, and no signal is missed for long */

struct interactive {
    struct survey_query query;
    struct top_model model;
    struct top_view view;
    double interval, next, began; /* of surveys, in clock_seconds() */
    double taken;                 /* when the last survey was over */
    double news_until;
    uint64_t restarts; /* that the user has been told about */
    bool lost;         /* the last survey failed */
    bool changed;      /* the screen must be drawn again */
};

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

static void heed_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = end}, before;

    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
}

static void set_notice(struct interactive *u, const char *text)
{
    if (strcmp(u->view.notice, text) == 0)
        return;
    (void)snprintf(u->view.notice, sizeof u->view.notice, "%s", text);
    u->changed = true;
}

/* Says which daemons have been restarted, or that the asked one is back. */
static void tell_news(struct interactive *u, double now)
{
    char text[TOP_NOTICE_SIZE], name[TOP_NAME_SIZE];

    if (u->model.restarts > u->restarts) {
        (void)snprintf(text, sizeof text, "the daemon of %s has been restarted",
                       top_model_name(&u->model, u->model.restarted, name, sizeof name));
        u->restarts = u->model.restarts;
    } else if (u->lost) {
        (void)snprintf(text, sizeof text, "the daemon answers again");
    } else {
        if (now >= u->news_until)
            set_notice(u, "");
        return;
    }
    set_notice(u, text);
    u->news_until = now + NEWS_SECONDS;
}

/* Adds an answer to the model. Returns 0, or -1 with *e. */
static int take_survey(struct top_model *m, struct survey_query *query, double now,
                       struct torus_error *e)
{
    if (top_model_take(m, &query->all, now) == 0)
        return 0;
    *e = (struct torus_error){.code = TORUS_ERROR_MEMORY};
    (void)snprintf(e->text, sizeof e->text, "out of memory");
    return -1;
}

/* Takes an answer, or says why there is none. Returns 0, or -1 with *e if going on makes no sense. */
static int take(struct interactive *u, bool answered, double now, struct torus_error *e)
{
    char text[TOP_NOTICE_SIZE];

    if (!answered) {
        *e = u->query.error;
        if (u->model.surveys == 0)
            return -1;
        (void)snprintf(text, sizeof text, "trying again: %.230s", e->text);
        set_notice(u, text);
        u->lost = true;
        return 0;
    }
    if (take_survey(&u->model, &u->query, now, e) != 0)
        return -1;
    if (u->model.surveys == 1) {
        u->view.node = u->model.seen.now.initiator;
        u->next = now + u->interval / 4; /* rates need a second survey soon */
    }
    tell_news(u, now);
    u->lost = false;
    u->taken = now;
    top_view_set_time(&u->view, time(NULL));
    u->changed = true;
    return 0;
}

/* Asks when it is time. Returns 0, or -1 with *e. */
static int ask(struct interactive *u, struct torus_error *e)
{
    const double now = clock_seconds();
    char text[TOP_NOTICE_SIZE];

    if (!u->query.under_way && (u->view.paused || now < u->next))
        return 0;
    if (!u->query.under_way) {
        u->began = now;
        u->next = now + u->interval;
        survey_query_begin(&u->query);
    }
    const enum survey_query_result result = survey_query_go_on(&u->query);
    if (result != SURVEY_QUERY_UNDER_WAY)
        return take(u, result == SURVEY_QUERY_ANSWERED, now, e);
    if (now - u->began > PATIENCE_SECONDS + u->interval) {
        (void)snprintf(text, sizeof text, "waiting for an answer for %.0f s", now - u->began);
        set_notice(u, text);
        u->lost = true;
    }
    return 0;
}

static void draw(struct interactive *u)
{
    struct top_screen s;
    unsigned rows, columns;

    u->view.age = clock_seconds() - u->taken;
    top_terminal_size(&rows, &columns);
    if (top_screen_make(&s, rows, columns, top_terminal_is_unicode()) == 0) {
        top_draw(&s, &u->model, &u->view);
        top_terminal_show(&s);
    }
    top_screen_free(&s);
    u->changed = false;
}

/* Whether the age on the screen is another one by now. */
static bool has_aged(const struct interactive *u)
{
    return u->view.time[0] != '\0' &&
           (uint64_t)(clock_seconds() - u->taken) != (uint64_t)u->view.age;
}

/* Waits for keys, answers, signals, and the next survey. Returns false if the terminal is gone. */
static bool wait_for_work(const struct interactive *u)
{
    struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = survey_query_fd(&u->query), .events = POLLIN}};
    const double left = (u->next - clock_seconds()) * 1000;
    const int most = left < LONGEST_WAIT_MS && !u->query.under_way && !u->view.paused
                         ? (int)left + 1
                         : LONGEST_WAIT_MS;

    if (poll(fds, 2, most > 0 ? most : 0) < 0)
        return errno == EINTR;
    return (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

/* Does what the keys mean. Returns false if the user leaves. */
static bool heed_keys(struct interactive *u)
{
    enum top_key key;
    bool resized = false;

    while ((key = top_terminal_key(&resized)) != TOP_KEY_NONE) {
        if (!top_view_key(&u->view, &u->model, key))
            return false;
        draw(u);
    }
    u->changed = u->changed || resized;
    return true;
}

int top_interactive(struct cli *cli, double interval)
{
    struct interactive u = {.query = {.socket = cli->socket},
                            .view = {.interactive = true, .interval = interval},
                            .interval = interval,
                            .changed = true};
    struct torus_error e = {.code = TORUS_ERROR_NONE};
    int result = 0;

    (void)top_terminal_is_unicode();
    heed_signals();
    if (top_terminal_open() != 0)
        return cli_fail_usage(cli, "this terminal (TERM) cannot move its cursor: use 'torusctl top "
                                   "--once' for one view as text, or 'torusctl top --json'");
    while (ended == 0) {
        result = ask(&u, &e);
        if (result != 0 || !heed_keys(&u))
            break;
        if (u.changed || has_aged(&u))
            draw(&u);
        if (!wait_for_work(&u))
            break;
    }
    top_terminal_close();
    survey_query_free(&u.query);
    top_model_free(&u.model);
    return result == 0 ? EXIT_DONE : cli_fail_client(cli, &e);
}

/* ---- Without keys ---------------------------------------------------------------------------- */

#define COLUMNS_BY_DEFAULT 80u
#define LEAST_COLUMNS 20

/* How wide the torus is drawn without a terminal: as wide as COLUMNS says, which is set for a pager. */
static unsigned columns_wanted(void)
{
    const char *text = getenv("COLUMNS");
    const int columns = text != NULL ? atoi(text) : 0;
    return columns >= LEAST_COLUMNS ? (unsigned)columns : COLUMNS_BY_DEFAULT;
}

static void sleep_until(double seconds)
{
    double left = seconds - clock_seconds();

    while (left > 0) {
        const struct timespec t = {.tv_sec = (time_t)left,
                                   .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        (void)nanosleep(&t, NULL);
        left = seconds - clock_seconds();
    }
}

static int fail_memory(const struct cli *cli)
{
    return cli_fail(cli, &(struct error){.code = ERROR_MEMORY, .text = "out of memory"});
}

/* Asks once, and adds the answer to the model. Returns 0, or -1 with *e. */
static int ask_into(struct survey_query *query, struct top_model *m, struct torus_error *e)
{
    if (survey_query_wait(query) == SURVEY_QUERY_ANSWERED)
        return take_survey(m, query, clock_seconds(), e);
    *e = query->error;
    return -1;
}

/* Prints the view of a survey that is just over. As for tables, texts are wrapped only on a terminal. */
static int print_text(const struct cli *cli, const struct top_model *m)
{
    const unsigned terminal = wrap_terminal(STDOUT_FILENO);
    const bool wrapped = terminal >= LEAST_COLUMNS;
    struct top_view v = {0};
    struct top_screen s;

    top_view_set_time(&v, time(NULL));
    if (top_draw_all(&s, m, &v, wrapped ? terminal : columns_wanted(), wrapped,
                     top_terminal_is_unicode()) != 0)
        return fail_memory(cli);
    top_screen_print(&s, stdout);
    top_screen_free(&s);
    return EXIT_DONE;
}

int top_once(struct cli *cli, double interval)
{
    struct survey_query query = {.socket = cli->socket};
    struct top_model m = {0};
    struct torus_error e;
    int code;

    const double began = clock_seconds();
    if (ask_into(&query, &m, &e) != 0) {
        code = cli_fail_client(cli, &e);
    } else {
        sleep_until(began + interval);
        if (ask_into(&query, &m, &e) != 0)
            code = cli_fail_client(cli, &e);
        else
            code = cli->json ? cli_print(cli, top_model_value(&m), NULL) : print_text(cli, &m);
    }
    top_model_free(&m);
    survey_query_free(&query);
    return code;
}

int top_lines(struct cli *cli, double interval)
{
    struct survey_query query = {.socket = cli->socket};
    struct top_model m = {0};
    struct torus_error e;
    int code = EXIT_DONE;
    double next = clock_seconds();

    while (code == EXIT_DONE && ferror(stdout) == 0) {
        const bool known = m.surveys > 0;
        if (ask_into(&query, &m, &e) == 0)
            code = cli_print(cli, top_model_value(&m), NULL);
        else if (known)
            code = cli_print(cli, top_error_value(&e), NULL);
        else
            code = cli_fail_client(cli, &e);
        (void)fflush(stdout);
        next += interval;
        if (next < clock_seconds())
            next = clock_seconds();
        if (code == EXIT_DONE && ferror(stdout) == 0)
            sleep_until(next);
    }
    top_model_free(&m);
    survey_query_free(&query);
    return code;
}
