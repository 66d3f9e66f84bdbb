/* Serves the page until a signal ends it. */
#ifndef TORUSD_CLI_SERVER_H
#define TORUSD_CLI_SERVER_H

#include "client/cli/serving/door.h"
#include "client/cli/terminal/cli.h"

/* Serves at the door, which listens at `fd`; closes it. Returns an exit code; on failure what went wrong has been
 * printed. */
int server_run(struct cli *cli, struct door *door, int fd);

#endif
