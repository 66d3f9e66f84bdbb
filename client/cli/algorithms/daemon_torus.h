/* The network of a daemon, from the text by which the daemon names it. */
#pragma once

#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/torus.h"

/* Parses the dimensions in a status, whose graphs become known. Returns 0, or -1 with *e
 * (ERROR_PROTOCOL). */
int daemon_torus_of_status(const struct torus_status *status, struct torus *t, struct error *e);

/* Parses dimensions that the daemon has sent. If they have a graph whose edges are not known, asks the
 * daemon for them, which takes a request. Returns an exit code; on failure what went wrong has been
 * printed. The client must be connected. */
int daemon_torus_parse(const struct cli *cli, const char *dims, struct torus *t);
