/* Waits until the torus of this machine is whole. */
#ifndef TORUSD_CLI_WAIT_WHOLE_H
#define TORUSD_CLI_WAIT_WHOLE_H

#include <stdint.h>

#include "client/cli/terminal/cli.h"

#define WAIT_WHOLE_SIZE 128

/* Asks the daemon of this machine until it says that the torus is whole, at most `seconds`. Writes the
 * result: "whole", "not whole after 60 s: 'torusctl status' lists the faults", or "" if this machine has no daemon. */
void wait_until_whole(const struct cli *cli, unsigned seconds, char result[WAIT_WHOLE_SIZE]);

#endif
