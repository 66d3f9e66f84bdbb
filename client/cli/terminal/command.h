/* A command of torusctl: one file commands/NAME.c with one of these, and a line in command_list.c. */
#ifndef TORUSD_CLI_COMMAND_H
#define TORUSD_CLI_COMMAND_H

#include "client/cli/terminal/cli.h"
#include "client/cli/terminal/options.h"

struct command {
    const char *name;
    const char *summary;          /* one line for the list of commands */
    const char *usage;            /* what follows the name: "--dims D [--json]" */
    const char *details;          /* paragraphs and examples for `help NAME` */
    const struct option *options; /* its own, ended by a row without a name */
    size_t arguments_size;        /* of the struct that the options fill */
    bool needs_daemon;

    /* Runs with the filled struct. Returns the exit code, having printed everything. */
    int (*run)(struct cli *cli, const void *arguments);
};

/* The command of the list with this name, or NULL. */
const struct command *command_find(const struct command *const *list, const char *name);

/* The name of a command of the list that may have been meant, or NULL. */
const char *command_suggest(const struct command *const *list, const char *name);

/* The options that every command takes, before or after its name. */
struct global_arguments {
    const char *socket;
    bool json, help, version;
};
extern const struct option global_options[];

#endif
