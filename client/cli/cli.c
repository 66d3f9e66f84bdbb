#include "client/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/cmd_help.h"
#include "client/cli/command.h"
#include "daemon/base/text.h"

/* ---- Saying what went wrong ------------------------------------------------------------------ */

struct failure {
    int exit_code;
    const char *code;
    const char *id; /* of the exchange, or "" */
    const char *text;
    const char *hint; /* more lines for people, or NULL */
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

static int say(const struct cli *cli, const struct failure *f)
{
    char text[1024]; /* texts may quote arguments */
    bool named = f->id[0] == '\0' || strstr(f->text, f->id) != NULL;

    (void)snprintf(text, sizeof text, "%s", f->text);
    text_clean(text);
    if (named)
        (void)fprintf(stderr, "torusctl: %s\n", text);
    else
        (void)fprintf(stderr, "torusctl: exchange %s: %s\n", f->id, text);
    if (f->hint != NULL)
        (void)fprintf(stderr, "%s\n", f->hint);
    if (cli->json)
        failure_json(f, text);
    return f->exit_code;
}

int cli_fail(const struct cli *cli, const struct error *e)
{
    if (e->code == ERROR_USAGE)
        return cli_fail_usage(cli, "%s", e->text);
    return say(cli, &(struct failure){EXIT_FAILED, error_name(e->code), "", e->text, NULL});
}

int cli_fail_client(const struct cli *cli, const struct torus_client_error *e)
{
    struct failure f = {EXIT_FAILED, torus_client_error_name(e->code), e->exchange, e->text, NULL};

    if (e->code == TORUS_ERROR_USAGE)
        f.exit_code = EXIT_USAGE;
    if (e->code == TORUS_ERROR_NO_DAEMON) {
        f.exit_code = EXIT_NO_DAEMON;
        f.hint = "Start torusd on this machine, or name the socket of one that runs with --socket "
                 "PATH or\nthe environment variable TORUS_SOCKET.";
    }
    return say(cli, &f);
}

int cli_fail_usage(const struct cli *cli, const char *format, ...)
{
    char text[512], hint[96];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    (void)snprintf(hint, sizeof hint, "Try 'torusctl help%s%s'.", cli->command ? " " : "",
                   cli->command ? cli->command->name : "");
    return say(cli, &(struct failure){EXIT_USAGE, error_name(ERROR_USAGE), "", text, hint});
}

/* ---- Services to the commands ---------------------------------------------------------------- */

int cli_connect(struct cli *cli)
{
    struct torus_client_error e;

    cli->client = torus_client_open(cli->socket, &e);
    return cli->client != NULL ? EXIT_DONE : cli_fail_client(cli, &e);
}

int cli_print(const struct cli *cli, json_t *value, const struct view *view)
{
    if (value == NULL)
        return cli_fail(cli, &(struct error){ERROR_MEMORY, "out of memory"});
    if (cli->json)
        writer_json(stdout, value);
    else
        writer_text(stdout, value, view);
    json_decref(value);
    return EXIT_DONE;
}

/* ---- The program ----------------------------------------------------------------------------- */

/* Whether failures are to be told in JSON must be known before the first one. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static int print_version(const struct cli *cli)
{
    if (cli->json)
        (void)printf("{\"version\":\"%s\"}\n", TORUSD_VERSION);
    else
        (void)printf("torusctl %s\n", TORUSD_VERSION);
    return EXIT_DONE;
}

static int unknown_command(const struct cli *cli, const char *name)
{
    const char *meant = command_suggest(name);
    char known[256] = "";

    for (size_t i = 0; commands[i] != NULL; i++) {
        size_t used = strlen(known);
        (void)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "",
                       commands[i]->name);
    }
    if (meant != NULL)
        return cli_fail_usage(cli, "unknown command '%.40s'; did you mean %s? Known are: %s", name,
                              meant, known);
    return cli_fail_usage(cli, "unknown command '%.40s'; known are: %s", name, known);
}

/* Runs the command with the arguments that follow its name. */
static int run_command(struct cli *cli, struct global_arguments *global, int argc, char **argv)
{
    const struct command *command = cli->command;
    void *arguments = calloc(1, command->arguments_size);
    const struct option_set sets[] = {{command->options, arguments}, {global_options, global}};
    struct error e = {ERROR_MEMORY, "out of memory"};
    int code, used = -1;

    if (arguments != NULL)
        used = options_parse(sets, 2, argc, argv, &e);
    if (used < 0)
        code = cli_fail(cli, &e);
    else if (global->help)
        code = help_command(command);
    else if (global->version)
        code = print_version(cli);
    else if (used < argc)
        code = cli_fail_usage(cli, "'%.80s' was not expected after %s", argv[used], command->name);
    else {
        cli->socket = global->socket;
        code = command->run(cli, arguments);
    }
    torus_client_close(cli->client);
    free(arguments);
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct global_arguments global = {0};
    const struct option_set set = {global_options, &global};
    struct error e;
    int used = options_parse(&set, 1, argc, argv, &e);

    if (used < 0)
        return cli_fail(cli, &e);
    if (global.version)
        return print_version(cli);
    if (used == argc && global.help)
        return help_overview(stdout);
    if (used == argc) {
        if (cli->json)
            return cli_fail_usage(cli, "a command is missing");
        (void)help_overview(stderr);
        return EXIT_USAGE;
    }
    cli->command = command_find(argv[used]);
    if (cli->command == NULL)
        return unknown_command(cli, argv[used]);
    return run_command(cli, &global, argc - used - 1, argv + used + 1);
}

/* Where stdin, stdout or stderr are closed, keeps their numbers from being given to the socket.
 * What takes their place cannot be written to, so that lost output is noticed. */
static void fill_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

/* Whether nobody is left to read the output. Asked of the pipe, since stdio reports a failed write
 * only by a flag when it has thrown the bytes away. */
static bool reader_has_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

int cli_main(int argc, char **argv)
{
    struct cli cli = {.json = wants_json(argc, argv)};
    int code;

    fill_standard_files();
    (void)signal(SIGPIPE, SIG_IGN);
    code = run(&cli, argc > 0 ? argc - 1 : 0, argv + 1);
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return code;
    /* A reader that has gone away (`| head`) has seen what it wanted. */
    if (errno != EPIPE && !reader_has_gone())
        (void)fprintf(stderr, "torusctl: cannot write the result: %s\n",
                      errno != 0 ? strerror(errno) : "output error");
    return code != EXIT_DONE ? code : EXIT_FAILED;
}
