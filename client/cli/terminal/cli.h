/* What every command of torusctl uses: the global options, the connection, and the only ways to
 * print something: one value on stdout, or one failure. */
#ifndef TORUSD_CLI_CLI_H
#define TORUSD_CLI_CLI_H

#include <jansson.h>
#include <torus/torus.h>

#include "client/cli/terminal/writer.h"
#include "proto/error.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,    /* the request failed, or its result could not be written */
    EXIT_USAGE = 2,     /* the command line was invalid */
    EXIT_NO_DAEMON = 3, /* could not connect */
    EXIT_IN_DOUBT =
        4, /* committed, but not confirmed by all nodes; or whether it was is not known */
};

struct command;

struct cli {
    bool json;                             /* one JSON object on stdout instead of text */
    const char *socket;                    /* NULL = the library's default */
    const char *command;                   /* its name; NULL before it is known */
    struct torus_client *client;           /* after cli_connect() */
    const struct command *const *commands; /* all that there are; NULL at the end */
};

/* Connects to the daemon. Returns 0, or the exit code after having printed the reason. */
int cli_connect(struct cli *cli);

/* Prints the value, which is taken over (NULL = there was no memory for it), as text laid out by
 * the view, or as JSON. Returns EXIT_DONE, or EXIT_FAILED after having printed the reason. */
int cli_print(const struct cli *cli, json_t *value, const struct view *view);

/* Each prints what went wrong, on stderr and with --json also on stdout, and returns the exit code
 * that belongs to it. */
int cli_fail(const struct cli *cli, const struct error *e);
int cli_fail_client(const struct cli *cli, const struct torus_error *e);
int cli_fail_usage(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says something on stderr that the user should know although the command has not failed. */
void cli_warn(const char *text);

#endif
