/* Serves the page until a signal ends it. */
#pragma once

#include "client/cli/serving/door.h"
#include "client/cli/terminal/cli.h"

/* Says where the page is. Returns whether to serve it. */
typedef bool server_announce_fn(const struct cli *cli, const struct door *door);

/* Serves at the door, which listens at `fd`; closes it. Announces the page once signals end the page rather than the
 * program. Returns an exit code; on failure what went wrong has been printed. */
int server_run(struct cli *cli, struct door *door, int fd, server_announce_fn *announce);
