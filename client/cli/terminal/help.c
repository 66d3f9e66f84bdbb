#include "client/cli/terminal/help.h"

#include <stddef.h>

int help_overview(FILE *out, const struct command *const *commands)
{
    (void)fputs("usage: torusctl [--socket PATH] [--json] COMMAND [options]\n"
                "\n"
                "Complete exchange (MPI_Alltoall) on tori of directly cabled machines.\n"
                "\n"
                "commands:\n",
                out);
    for (; *commands != NULL; commands++)
        (void)fprintf(out, "  %-12s  %s\n", (*commands)->name, (*commands)->summary);
    (void)fputs("\noptions of all commands:\n", out);
    options_help(out, global_options);
    (void)fputs(
        "\n"
        "examples:\n"
        "  torusctl status\n"
        "  torusctl exchange --block-size 64KiB\n"
        "  torusctl exchange --from out/%r --to in/%r\n"
        "  torusctl plan --dims 8x8 --algorithm at2\n"
        "\n"
        "exit status:\n"
        "  0  success; what was delivered has been checked\n"
        "  1  the command failed; a failed exchange leaves no output at any node\n"
        "  2  invalid options or arguments\n"
        "  3  cannot connect to the daemon\n"
        "  4  in doubt: the exchange is committed, but not all nodes have confirmed that their\n"
        "     output is in place; or whether it is committed is not known\n"
        "\n"
        "'torusctl help COMMAND' explains a command.\n",
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
        (void)printf("\nDoes not need a daemon.\n");
    return EXIT_DONE;
}
