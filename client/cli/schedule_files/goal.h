/* Exports a schedule in GOAL, the language of LogGOPSim and its successors. */
#pragma once

#include <stdio.h>

#include "daemon/lib/schedule/algorithm.h"

/* Prints the combined messages of each node as sends and receives, for blocks of `block_bytes`. The messages of a
 * step begin when the sends and receives of the node's previous step have ended. Each port is a `nic`. A leg of
 * several hops is one message to its end. The algorithm must accept the torus. Returns 0, or -1 with *e if memory is
 * short. */
int goal_print(FILE *out, const struct torus *t, const struct algorithm *a, uint64_t block_bytes,
               struct error *e);
