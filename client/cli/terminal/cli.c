#include "client/cli/terminal/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/command_line/wrap.h"
#include "proto/text.h"

/* ---- Failures -------------------------------------------------------------------------------- */

struct failure {
    int exit_code;
    const char *code;
    const char *id; /* id of the exchange, or "" */
    const char *text;
    const char *hint; /* further lines for people, or NULL */
};

static void failure_json(const struct failure *f, const char *text)
{
    json_t *object = json_object(), *error = json_object();

    (void)json_object_set_new(error, "code", json_string(f->code));
    (void)json_object_set_new(error, "text", json_string(text));
    (void)json_object_set_new(object, "error", error);
    if (f->id[0] != '\0')
        (void)json_object_set_new(object, "id", json_string(f->id));
    if (object != NULL)
        writer_json(stdout, object);
    json_decref(object);
}

static const char *program_name(const struct cli *cli)
{
    return cli->program != NULL ? cli->program : "torusctl";
}

static int print_failure(const struct cli *cli, const struct failure *f)
{
    char text[1024]; /* texts may quote arguments */
    const unsigned columns = wrap_terminal(STDERR_FILENO);
    bool named = f->id[0] == '\0' || strstr(f->text, f->id) != NULL;

    long_work_end();
    (void)snprintf(text, sizeof text, "%s", f->text);
    text_clean(text);
    const int column = named ? fprintf(stderr, "%s: ", program_name(cli))
                             : fprintf(stderr, "%s: %s %s: ", program_name(cli),
                                       cli->job != NULL ? cli->job : "exchange", f->id);
    if (columns > 0)
        wrap_words(stderr, text, column > 0 ? (unsigned)column : 0, 2, columns);
    else
        (void)fprintf(stderr, "%s\n", text);
    if (f->hint != NULL && columns > 0)
        wrap_words(stderr, f->hint, 0, 0, columns);
    else if (f->hint != NULL)
        (void)fprintf(stderr, "%s\n", f->hint);
    if (cli->json)
        failure_json(f, text);
    return f->exit_code;
}

int cli_fail(const struct cli *cli, const struct error *e)
{
    if (e->code == ERROR_USAGE)
        return cli_fail_usage(cli, "%s", e->text);
    return print_failure(cli,
                         &(struct failure){EXIT_FAILED, error_name(e->code), "", e->text, NULL});
}

/* Whether a socket is there, and this user may not connect to it. */
static bool is_denied(const struct cli *cli)
{
    const char *path = cli->socket != NULL ? cli->socket : torus_default_socket();

    return access(path, W_OK) != 0 && errno == EACCES;
}

int cli_fail_client(const struct cli *cli, const struct torus_error *e)
{
    struct failure f = {EXIT_FAILED, torus_error_name(e->code), e->exchange, e->text, NULL};

    if (e->code == TORUS_ERROR_USAGE)
        f.exit_code = EXIT_USAGE;
    if (e->code == TORUS_ERROR_IN_DOUBT)
        f.exit_code = EXIT_IN_DOUBT;
    if (e->code == TORUS_ERROR_NO_DAEMON) {
        f.exit_code = EXIT_NO_DAEMON;
        if (!is_denied(cli)) /* the error says what to do */
            f.hint =
                "Start torusd on this machine, or give the socket of a running one with --socket "
                "PATH or\nthe environment variable TORUS_SOCKET.";
    }
    return print_failure(cli, &f);
}

int cli_fail_no_process(const struct cli *cli, const char *text)
{
    return print_failure(
        cli,
        &(struct failure){EXIT_NO_DAEMON, torus_error_name(TORUS_ERROR_NO_DAEMON), "", text, NULL});
}

int cli_fail_usage(const struct cli *cli, const char *format, ...)
{
    char text[512], hint[96];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    (void)snprintf(hint, sizeof hint, "Try 'torusctl help%s%s'.", cli->command ? " " : "",
                   cli->command ? cli->command : "");
    return print_failure(cli,
                         &(struct failure){EXIT_USAGE, error_name(ERROR_USAGE), "", text, hint});
}

int cli_read_micros(const struct cli *cli, const char *option, const char *text, double *micros)
{
    struct error e;

    if (text == NULL || parse_micros(text, micros, &e) == 0)
        return EXIT_DONE;
    return cli_fail_usage(cli, "%s: %s", option, e.text);
}

void cli_warn(const char *text)
{
    long_work_end();
    (void)fprintf(stderr, "torusctl: warning: %s\n", text);
}

/* ---- Connecting and printing ----------------------------------------------------------------- */

int cli_connect(struct cli *cli)
{
    struct torus_error e;

    cli->client = torus_client_open(cli->socket, &e);
    return cli->client != NULL ? EXIT_DONE : cli_fail_client(cli, &e);
}

int cli_print(const struct cli *cli, json_t *value, const struct view *view)
{
    long_work_end();
    if (value == NULL)
        return cli_fail(cli, &(struct error){.code = ERROR_MEMORY, .text = "out of memory"});
    if (cli->json)
        writer_json(stdout, value);
    else
        writer_text(stdout, value, view);
    json_decref(value);
    return EXIT_DONE;
}
