/* A discovery process that runs only while torusctl needs it. */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "proto/error.h"

struct discovery_child {
    pid_t pid; /* 0: none runs */
    int log;   /* descriptor of its log */
    char folder[64];
    char socket[96];
};

/* Starts torusd-discover on these interfaces, with a key file (NULL: none). Returns 0, or -1 with *e and
 * nothing left behind. */
int discovery_child_start(struct discovery_child *c, const char *interfaces, const char *key_file,
                          struct error *e);

/* Checks that it still runs. Returns 0, or -1 with *e: what it has logged last. */
int discovery_child_check(struct discovery_child *c, struct error *e);

/* Ends it, and removes its files. */
void discovery_child_stop(struct discovery_child *c);
