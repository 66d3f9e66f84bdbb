/* Waits until the picture of all hosts and cables is complete. */
#pragma once

#include "client/cli/discovering/discovered.h"

struct gather_options {
    const char *socket;     /* of the discovery process; NULL: the default */
    const char *interfaces; /* if there is no process: start one on these; NULL: do not */
    const char *key_file;   /* for that process; NULL: none */
    uint64_t wait_ms;       /* how long to wait at most */
};

/* Asks the discovery process, or one that is started for this purpose, until nothing has changed for a few
 * seconds. Returns 0 with *d; *settled is false if the time was over before. Returns -1 with *e; errno is
 * ENOENT or ECONNREFUSED if there is no discovery process. ERROR_CANCELLED: a signal has interrupted it. */
int gather_hosts(struct discovered *d, const struct gather_options *o, bool *settled,
                 struct error *e);
