#include "client/cli/cmd_help.h"

#include <stddef.h>

#include "client/cli/command.h"

struct help_arguments {
    const char *topic;
};

static const struct option options[] = {
    {"COMMAND", NULL, offsetof(struct help_arguments, topic), "the command to explain"},
    {0},
};

int help_overview(FILE *out)
{
    (void)fputs("usage: torusctl [--socket PATH] [--json] COMMAND [options]\n"
                "\n"
                "Complete exchange (MPI_Alltoall) on tori of directly cabled machines.\n"
                "\n"
                "commands:\n",
                out);
    for (size_t i = 0; commands[i] != NULL; i++)
        (void)fprintf(out, "  %-12s  %s\n", commands[i]->name, commands[i]->summary);
    (void)fputs("\noptions of all commands:\n", out);
    options_help(out, global_options);
    (void)fputs("\n"
                "examples:\n"
                "  torusctl status\n"
                "  torusctl exchange --block-size 64KiB\n"
                "  torusctl exchange --from out/%r --to in/%r\n"
                "  torusctl plan --dims 8x8 --algorithm at2\n"
                "\n"
                "exit codes: 0 done and verified, 1 failed, 2 wrong usage, 3 no daemon.\n"
                "'torusctl help COMMAND' says more.\n",
                out);
    return EXIT_DONE;
}

int help_command(const struct command *command)
{
    (void)printf("usage: torusctl %s %s\n\n%s.\n", command->name, command->usage, command->summary);
    if (command->options[0].name != NULL) {
        (void)printf("\noptions:\n");
        options_help(stdout, command->options);
    }
    (void)printf("\noptions of all commands:\n");
    options_help(stdout, global_options);
    (void)printf("\n%s", command->details);
    if (!command->needs_daemon)
        (void)printf("\nNeeds no daemon.\n");
    return EXIT_DONE;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct help_arguments *a = arguments;
    const struct command *command;
    const char *meant;

    if (a->topic == NULL)
        return help_overview(stdout);
    command = command_find(a->topic);
    if (command != NULL)
        return help_command(command);
    meant = command_suggest(a->topic);
    if (meant != NULL)
        return cli_fail_usage(cli, "no help on '%.40s'; did you mean %s?", a->topic, meant);
    return cli_fail_usage(cli, "no help on '%.40s': there is no such command", a->topic);
}

extern const struct command command_help;
const struct command command_help = {
    .name = "help",
    .summary = "Explain torusctl, or one command",
    .usage = "[COMMAND]",
    .details = "examples:\n"
               "  torusctl help\n"
               "  torusctl help exchange\n",
    .options = options,
    .arguments_size = sizeof(struct help_arguments),
    .run = run,
};
