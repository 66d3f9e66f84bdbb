/* torusctl links --all */
#ifndef TORUSD_CLI_LINKS_ALL_H
#define TORUSD_CLI_LINKS_ALL_H

#include "client/cli/terminal/cli.h"

/* Prints the links of all nodes. The client must be connected. Returns the exit code. */
int links_all(struct cli *cli);

#endif
