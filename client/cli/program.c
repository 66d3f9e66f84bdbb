#include "client/cli/program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/terminal/command.h"
#include "client/cli/terminal/progress.h"
#include "proto/descriptors.h"
#include "proto/version.h"

/* The commands in their groups, in the order in which `help` lists them: COMMAND(NAME) is command_NAME of
 * commands/NAME.c. */
#define COMMANDS(GROUP, COMMAND)                                                                   \
    GROUP("files", COMMAND(copy) COMMAND(gather) COMMAND(scatter))                                 \
    GROUP("collective operations",                                                                 \
          COMMAND(exchange) COMMAND(allgather) COMMAND(broadcast) COMMAND(barrier))                \
    GROUP("what the torus does", COMMAND(status) COMMAND(links) COMMAND(top) COMMAND(serve))       \
    GROUP("what is wrong", COMMAND(doctor) COMMAND(support_bundle) COMMAND(trace) COMMAND(report)) \
    GROUP("measuring", COMMAND(bench) COMMAND(perf) COMMAND(calibrate))                            \
    GROUP("schedules, without a daemon", COMMAND(algorithms) COMMAND(plan) COMMAND(sweep)          \
                                             COMMAND(predict) COMMAND(bounds) COMMAND(simulate))   \
    GROUP("setting up", COMMAND(discover) COMMAND(init) COMMAND(key))                              \
    GROUP("other programs", COMMAND(run) COMMAND(mpi_env) COMMAND(routes) COMMAND(ip_routes))      \
    GROUP("help", COMMAND(help))

#define DECLARE_GROUP(title, commands_) commands_
#define DECLARE(name) extern const struct command command_##name;
COMMANDS(DECLARE_GROUP, DECLARE)

/* clang-format off */
#define GROUP_OF(title, commands_) {title, (const struct command *const[]){commands_ NULL}},
#define POINTER_TO(name) &command_##name,
const struct command_group commands[] = {COMMANDS(GROUP_OF, POINTER_TO) {0}};
/* clang-format on */

/* --- a command line --- */

/* Returns whether the arguments have --json. This must be known before the first failure, which is printed as JSON. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static int print_version(const struct cli *cli)
{
    if (cli->json)
        (void)printf(
            "{\"version\":\"%s\",\"peer_protocol\":%u,\"peer_minor\":%u,\"control_protocol\":%u,"
            "\"program_protocol\":%u}\n",
            TORUSD_VERSION, VERSION_PROTOCOLS);
    else
        (void)printf("torusctl %s\n" VERSION_PROTOCOLS_FORMAT "\n", TORUSD_VERSION,
                     VERSION_PROTOCOLS);
    return EXIT_DONE;
}

static int unknown_command(const struct cli *cli, const char *name)
{
    const char *meant = command_suggest(commands, name);

    if (meant != NULL)
        return cli_fail_usage(cli, "unknown command '%.40s'; did you mean %s?", name, meant);
    return cli_fail_usage(cli, "unknown command '%.40s'", name);
}

/* Runs the command with the arguments that follow its name. */
static int run_command(struct cli *cli, const struct command *command,
                       struct global_arguments *global, int argc, char **argv)
{
    void *arguments = calloc(1, command->arguments_size);
    const struct option_set sets[] = {{command->options, arguments}, {global_options, global}};
    struct error e = {.code = ERROR_MEMORY, .text = "out of memory"};
    int code, used = -1;

    if (arguments != NULL)
        used = options_parse(sets, 2, argc, argv, &e);
    if (used < 0)
        code = cli_fail(cli, &e);
    else if (global->help)
        code = help_command(command);
    else if (global->version)
        code = print_version(cli);
    else if (used < argc && !command->takes_rest)
        code =
            cli_fail_usage(cli, "unexpected argument '%.80s' after %s", argv[used], command->name);
    else {
        cli->socket = global->socket;
        cli->rest = argv + used;
        if (command->takes_rest) /* --json may belong to the program */
            cli->json = global->json;
        long_work_begin("%s", command->name);
        code = command->run(cli, arguments);
        long_work_end();
    }
    torus_client_close(cli->client);
    free(arguments);
    return code;
}

/* The name torusrun is short for 'torusctl run'. */
static bool is_torusrun(const char *name)
{
    const char *slash = strrchr(name, '/');

    return strcmp(slash != NULL ? slash + 1 : name, "torusrun") == 0;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct global_arguments global = {0};
    const struct option_set set = {global_options, &global};
    const struct command *command;
    struct error e;
    int used = options_parse(&set, 1, argc, argv, &e);

    if (used < 0)
        return cli_fail(cli, &e);
    if (global.version)
        return print_version(cli);
    if (used == argc && global.help)
        return help_overview(stdout, commands);
    if (used == argc) {
        if (cli->json)
            return cli_fail_usage(cli, "a command is missing");
        (void)help_overview(stderr, commands);
        return EXIT_USAGE;
    }
    command = command_find(commands, argv[used]);
    if (command == NULL)
        return unknown_command(cli, argv[used]);
    cli->command = command->name;
    return run_command(cli, command, &global, argc - used - 1, argv + used + 1);
}

/* Returns whether the reader has closed the pipe. Asks the pipe, because stdio has discarded the bytes of a failed
 * write and keeps no errno. */
static bool reader_has_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

int program_run(int argc, char **argv)
{
    struct cli cli = {.json = wants_json(argc, argv), .commands = commands};
    int code;

    descriptors_fill_standard();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* like a full disk */
    if (argc > 0 && is_torusrun(argv[0])) {
        struct global_arguments global = {0};
        cli.program = "torusrun";
        cli.command = command_run.name;
        code = run_command(&cli, &command_run, &global, argc - 1, argv + 1);
    } else {
        code = run(&cli, argc > 0 ? argc - 1 : 0, argv + 1);
    }
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return code;
    /* It is not an error if the reader has closed the pipe (`| head`). */
    if (errno != EPIPE && !reader_has_gone())
        (void)fprintf(stderr, "torusctl: cannot write the result: %s\n",
                      errno != 0 ? strerror(errno) : "output error");
    return code != EXIT_DONE ? code : EXIT_FAILED;
}
