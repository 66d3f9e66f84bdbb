/* The receiving side of 'torusctl init': a host configures itself from a setup at its standard input. */
#pragma once

#include "client/cli/terminal/cli.h"

/* Reads a setup from standard input, applies it if `apply`, and prints {"host", "changes", "warnings", "applied"}.
 * `root`: a folder with an image of a host, or NULL for this host. Returns the exit code. */
int receive_run(const struct cli *cli, bool apply, const char *root);
