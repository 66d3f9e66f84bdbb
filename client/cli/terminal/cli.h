/* The state of torusctl for all commands: global options and the connection; and the only ways to print: one value on
 * stdout, or one failure. */
#pragma once

#include <jansson.h>
#include <torus/torus.h>

#include "client/cli/terminal/writer.h"
#include "proto/error.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,    /* the request failed, or its result could not be written */
    EXIT_USAGE = 2,     /* the command line was invalid */
    EXIT_NO_DAEMON = 3, /* cannot connect to the daemon */
    EXIT_IN_DOUBT = 4,  /* committed, but not confirmed by all nodes; or outcome not known */
};

struct command;

struct cli {
    bool json;                            /* print one JSON object on stdout instead of text */
    const char *socket;                   /* NULL: torus_default_socket() */
    const char *command;                  /* name of the command; NULL before it is known */
    const char *program;                  /* as which it was called; NULL: torusctl */
    char **rest;                          /* of the command line, for a command that takes it */
    const char *job;                      /* what an id in an error names; NULL: "exchange" */
    struct torus_client *client;          /* set by cli_connect() */
    const struct command_group *commands; /* all commands */
};

/* Connects to the daemon. Returns EXIT_DONE, or another exit code after printing the reason. */
int cli_connect(struct cli *cli);

/* Prints a value as text laid out by the view, or as JSON. Takes ownership of `value`; NULL means that memory was
 * short. Returns EXIT_DONE, or EXIT_FAILED after printing the reason. */
int cli_print(const struct cli *cli, json_t *value, const struct view *view);

/* Print a failure on stderr, and with --json also on stdout. Return its exit code. */
int cli_fail(const struct cli *cli, const struct error *e);
int cli_fail_client(const struct cli *cli, const struct torus_error *e);
/* A process of this machine that the command needs does not run; the text says which one, and how to start it. */
int cli_fail_no_process(const struct cli *cli, const char *text);
int cli_fail_usage(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads the microseconds of an option; an option that is not given (`text` NULL) leaves *micros unchanged.
 * Returns EXIT_DONE, or another exit code after printing the reason, which names the option. */
int cli_read_micros(const struct cli *cli, const char *option, const char *text, double *micros);

/* Prints a warning on stderr. */
void cli_warn(const char *text);
