#include "client/cli/terminal/command.h"

#include <stddef.h>
#include <string.h>

#include "client/cli/terminal/help_texts.h"
#include "daemon/lib/command_line/options.h"
#include "daemon/lib/command_line/wrap.h"

const struct option global_options[] = {
    {"--socket", "PATH", offsetof(struct global_arguments, socket),
     "the daemon's control socket; %h: the host's name (default:\n"
     "$TORUS_SOCKET or " TORUS_DEFAULT_SOCKET ")"},
    {"--json", NULL, offsetof(struct global_arguments, json),
     "print one JSON object instead of text"},
    {"--help", NULL, offsetof(struct global_arguments, help), "explain the command"},
    {"--version", NULL, offsetof(struct global_arguments, version), "print the version"},
    {0},
};

const struct command *command_find(const struct command_group *groups, const char *name)
{
    for (; groups->title != NULL; groups++)
        for (const struct command *const *c = groups->command; *c != NULL; c++)
            if (strcmp((*c)->name, name) == 0)
                return *c;
    return NULL;
}

const char *command_details(const struct command *command)
{
    for (const struct help_text *t = help_texts; t->name != NULL; t++)
        if (strcmp(t->name, command->name) == 0)
            return t->text;
    return NULL;
}

const char *command_suggest(const struct command_group *groups, const char *name)
{
    struct suggestion s = {.word = name};

    for (; groups->title != NULL; groups++)
        for (const struct command *const *c = groups->command; *c != NULL; c++)
            suggest(&s, (*c)->name);
    return s.best;
}

#define NAMES 14 /* columns of the names of commands */

const char help_usage[] = "[--socket PATH] [--json] COMMAND [options]";
const char help_purpose[] = "Complete exchange (MPI_Alltoall) on tori of directly cabled machines";
const char help_examples[] = "  torusctl status\n"
                             "  torusctl copy /srv/torusd/model --to /srv/torusd/model\n"
                             "  torusctl exchange --block-size 64KiB\n"
                             "  torusctl exchange --from out/%r --to in/%r\n"
                             "  torusctl plan --dims 8x8 --algorithm at2\n";

const struct exit_meaning exit_meanings[] = {
    {EXIT_DONE, "success; delivered data has been checked"},
    {EXIT_FAILED, "the command failed; a failed exchange leaves no output at any node; a copy has\n"
                  "failed at one node or more, or --verify has found a difference"},
    {EXIT_USAGE, "invalid options or arguments"},
    {EXIT_NO_DAEMON, "cannot connect to the daemon"},
    {EXIT_IN_DOUBT,
     "in doubt: the exchange is committed, but not all nodes have confirmed that their\n"
     "output is in place; or it is not known whether the exchange is committed"},
    {0},
};

static void print_exit_meanings(FILE *out)
{
    (void)fputs("\nexit status:\n", out);
    for (const struct exit_meaning *m = exit_meanings; m->text != NULL; m++) {
        (void)fprintf(out, "  %d  ", m->code);
        wrap_words(out, m->text, 5, 5, WRAP_COLUMNS);
    }
}

int help_overview(FILE *out, const struct command_group *groups)
{
    (void)fprintf(out, "usage: torusctl %s\n\n%s.\n", help_usage, help_purpose);
    for (; groups->title != NULL; groups++) {
        (void)fprintf(out, "\n%s:\n", groups->title);
        for (const struct command *const *c = groups->command; *c != NULL; c++) {
            (void)fprintf(out, "  %-*s  ", NAMES, (*c)->name);
            wrap_words(out, (*c)->summary, NAMES + 4, NAMES + 4, WRAP_COLUMNS);
        }
    }
    (void)fputs("\noptions of all commands:\n", out);
    options_help(out, global_options);
    (void)fprintf(out, "\nexamples:\n%s", help_examples);
    print_exit_meanings(out);
    (void)fputs("\n'torusctl help COMMAND' explains a command.\n", out);
    return EXIT_DONE;
}

int help_command(const struct command *command)
{
    const int indent = printf("usage: torusctl %s ", command->name);

    wrap_words(stdout, command->usage, (unsigned)indent, (unsigned)indent, WRAP_COLUMNS);
    (void)printf("\n%s.\n", command->summary);
    if (command->options[0].name != NULL) {
        (void)printf("\noptions:\n");
        options_help(stdout, command->options);
    }
    (void)printf("\noptions of all commands:\n");
    options_help(stdout, global_options);
    (void)fputc('\n', stdout);
    wrap_text(stdout, command_details(command));
    if (!command->needs_daemon)
        (void)printf("\nDoes not need a daemon.\n");
    return EXIT_DONE;
}
