/* torusctl top in a terminal: surveys, keys and drawings, until the user leaves. */
#pragma once

#include "client/cli/terminal/cli.h"

/* `interval` in seconds. Returns an exit code; what went wrong has been printed. */
int top_interactive(struct cli *cli, double interval);
