#include "client/cli/top/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/terminal/clock.h"
#include "client/cli/top/ask.h"
#include "client/cli/top/draw.h"
#include "client/cli/top/model_value.h"
#include "client/cli/top/terminal.h"
#include "daemon/lib/command_line/wrap.h"

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
static int ask_into(struct top_ask *ask, struct top_model *m, struct torus_error *e)
{
    struct all_nodes survey;
    const int result = top_ask_now(ask, &survey, e);

    if (result == 0 && top_model_take(m, &survey, clock_seconds()) == 0)
        return 0;
    if (result == 0) {
        *e = (struct torus_error){.code = TORUS_ERROR_MEMORY};
        (void)snprintf(e->text, sizeof e->text, "out of memory");
    }
    all_nodes_free(&survey);
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
    struct top_ask ask = {.socket = cli->socket};
    struct top_model m = {0};
    struct torus_error e;
    int code;

    const double began = clock_seconds();
    if (ask_into(&ask, &m, &e) != 0) {
        code = cli_fail_client(cli, &e);
    } else {
        sleep_until(began + interval);
        if (ask_into(&ask, &m, &e) != 0)
            code = cli_fail_client(cli, &e);
        else
            code = cli->json ? cli_print(cli, top_model_value(&m), NULL) : print_text(cli, &m);
    }
    top_model_free(&m);
    top_ask_end(&ask);
    return code;
}

int top_lines(struct cli *cli, double interval)
{
    struct top_ask ask = {.socket = cli->socket};
    struct top_model m = {0};
    struct torus_error e;
    int code = EXIT_DONE;
    double next = clock_seconds();

    while (code == EXIT_DONE && ferror(stdout) == 0) {
        const bool known = m.surveys > 0;
        if (ask_into(&ask, &m, &e) == 0)
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
    top_ask_end(&ask);
    return code;
}
