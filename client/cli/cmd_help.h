/* Help texts, for the command and for --help. All return EXIT_DONE. */
#ifndef TORUSD_CLI_CMD_HELP_H
#define TORUSD_CLI_CMD_HELP_H

#include <stdio.h>

struct command;

int help_overview(FILE *out);
int help_command(const struct command *command);

#endif
