/* A schedule in GOAL, the language of LogGOPSim and its successors, for simulating it elsewhere. */
#ifndef TORUSD_CLI_GOAL_H
#define TORUSD_CLI_GOAL_H

#include <stdio.h>

#include "daemon/schedule/algorithm.h"

/* Prints, for each node, its combined messages as sends and receives of their bytes, for blocks of
 * `block_bytes`. Those of a node's step begin after what it sends and receives in the steps before
 * has ended; each port is a `nic`. A leg of several hops is one message to its end. The torus must be
 * accepted. Returns 0, or -1 with *e set if out of memory. */
int goal_print(FILE *out, const struct torus *t, const struct algorithm *a, uint64_t block_bytes,
               struct error *e);

#endif
