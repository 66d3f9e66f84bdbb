/* Runs torusctl, for tests of commands that need no daemon. The test is built with TORUSCTL. */
#pragma once

#include <jansson.h>

#define RUN_CLI_MOST 65536

/* Its output, on stdout and stderr, the last time. */
extern char run_cli_output[RUN_CLI_MOST];

/* Runs torusctl with these arguments, parsed by a shell. Returns the exit code. */
int run_cli(const char *arguments);

/* Runs torusctl with --json, which must succeed. Returns its output; the caller releases it. */
json_t *run_cli_json(const char *arguments);
