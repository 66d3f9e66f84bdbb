/* The commands of torusctl, and their help. Each has a file commands/NAME.c with a struct command, and a place in the
 * list of program.c; its help is in client/doc/help/NAME.txt. The man pages are made from the same texts and tables. */
#pragma once

#include <stdio.h>

#include "client/cli/terminal/cli.h"
#include "daemon/lib/command_line/options.h"

struct command {
    const char *name;
    const char *summary;          /* one line for the list of commands */
    const char *usage;            /* the text after the name: "--dims D [--json]" */
    const struct option *options; /* ended by a row without a name */
    size_t arguments_size;        /* size of the struct that the options fill */
    bool needs_daemon;
    bool takes_rest; /* a program with its arguments follows the options: cli->rest */

    /* Runs the command with the filled struct, and prints everything. Returns the exit code. */
    int (*run)(struct cli *cli, const void *arguments);
};

/* Commands for one purpose. */
struct command_group {
    const char *title;                    /* NULL ends a list of groups */
    const struct command *const *command; /* NULL at the end */
};

/* All commands, by group; ended by a group without a title. */
extern const struct command_group commands[];

/* Returns the command with this name in a list of groups, or NULL. */
const struct command *command_find(const struct command_group *groups, const char *name);

/* Returns the paragraphs and examples for `help NAME`, which are those of client/doc/help/NAME.txt; NULL if there are
 * none. */
const char *command_details(const struct command *command);

/* Returns the name of a command with a similar name, or NULL. */
const char *command_suggest(const struct command_group *groups, const char *name);

/* The options of all commands, which may be before or after the name of the command. */
struct global_arguments {
    const char *socket;
    bool json, help, version;
};
extern const struct option global_options[];

extern const char help_usage[];    /* the text after "torusctl" */
extern const char help_purpose[];  /* one line without a full stop */
extern const char help_examples[]; /* indented lines */

struct exit_meaning {
    enum exit_code code;
    const char *text; /* lines without a full stop at the end */
};
extern const struct exit_meaning exit_meanings[]; /* ended by a row without a text */

/* Print the help of torusctl, or of one command. Return EXIT_DONE. */
int help_overview(FILE *out, const struct command_group *groups);
int help_command(const struct command *command);
