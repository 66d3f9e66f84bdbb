/* torusctl status --all */
#ifndef TORUSD_CLI_STATUS_ALL_H
#define TORUSD_CLI_STATUS_ALL_H

#include "client/cli/terminal/cli.h"

/* Prints the state of all nodes, and what runs on them. The client must be connected. Returns the exit code. */
int status_all(struct cli *cli);

#endif
