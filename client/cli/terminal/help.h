/* Help texts, for the command `help` and for --help. */
#ifndef TORUSD_CLI_HELP_H
#define TORUSD_CLI_HELP_H

#include <stdio.h>

#include "client/cli/terminal/command.h"

/* All return EXIT_DONE. */
int help_overview(FILE *out, const struct command *const *commands);
int help_command(const struct command *command);

#endif
