/* torusctl help: explains torusctl, or one command. */
#include <stddef.h>

#include "client/cli/terminal/command.h"

struct help_arguments {
    const char *topic;
};

static const struct option options[] = {
    {"COMMAND", NULL, offsetof(struct help_arguments, topic), "the command to explain"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    const struct help_arguments *a = arguments;
    const struct command *command;
    const char *meant;

    if (a->topic == NULL)
        return help_overview(stdout, cli->commands);
    command = command_find(cli->commands, a->topic);
    if (command != NULL)
        return help_command(command);
    meant = command_suggest(cli->commands, a->topic);
    if (meant != NULL)
        return cli_fail_usage(cli, "no such command: '%.40s'; did you mean %s?", a->topic, meant);
    return cli_fail_usage(cli, "no such command: '%.40s'", a->topic);
}

const struct command command_help = {
    .name = "help",
    .summary = "Explain torusctl, or one command",
    .usage = "[COMMAND]",
    .options = options,
    .arguments_size = sizeof(struct help_arguments),
    .run = run,
};
