/* What torusctl top does: surveys again and again, which it draws or prints. */
#pragma once

#include "client/cli/terminal/cli.h"

/* In a terminal: surveys, keys and drawings, until the user leaves. `interval` in seconds. Returns an exit code; what went
 * wrong has been printed. */
int top_interactive(struct cli *cli, double interval);

/* Prints one view, as text or JSON, with rates over `interval` seconds. Returns an exit code; what went wrong has been
 * printed. */
int top_once(struct cli *cli, double interval);

/* Prints a line of JSON every `interval` seconds until nobody reads them; if the daemon goes away, lines say so. Returns
 * an exit code, as top_once(). */
int top_lines(struct cli *cli, double interval);
