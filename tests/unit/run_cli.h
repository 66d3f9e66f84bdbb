/* Runs torusctl, for tests of commands that need no daemon. The test is built with TORUSCTL. */
#ifndef TORUSD_TESTS_RUN_CLI_H
#define TORUSD_TESTS_RUN_CLI_H

#include <jansson.h>

#define RUN_CLI_MOST 65536

/* What it printed, on stdout and stderr, the last time. */
extern char run_cli_output[RUN_CLI_MOST];

/* Runs it with these arguments, as a shell reads them. Returns the exit code. */
int run_cli(const char *arguments);

/* Runs it with --json, has it succeed, and returns what it printed; to be released. */
json_t *run_cli_json(const char *arguments);

#endif
