/* torusctl top without keys: one view as text, or a line of JSON at a time. */
#pragma once

#include "client/cli/terminal/cli.h"

/* Prints one view, as text or JSON, with rates over `interval` seconds. Returns an exit code; what went wrong has been
 * printed. */
int top_once(struct cli *cli, double interval);

/* Prints a line of JSON every `interval` seconds until nobody reads them; if the daemon goes away, lines say so. Returns
 * an exit code, as top_once(). */
int top_lines(struct cli *cli, double interval);
