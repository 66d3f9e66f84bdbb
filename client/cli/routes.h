/* Every route of an algorithm, for other programs to read. */
#ifndef TORUSD_CLI_ROUTES_H
#define TORUSD_CLI_ROUTES_H

#include <stdio.h>

#include "daemon/schedule/algorithm.h"

/* Prints one JSON object per line for each source, destination and segment, in this order:
 *     {"src":0,"dst":9,"segment":0,"legs":[[step,dim,dir,hops],...]}
 * Stops early once out has an error. The torus must be accepted. Returns 0, or -1 with *e set if
 * out of memory. */
int routes_print(FILE *out, const struct torus *t, const struct algorithm *a, struct error *e);

#endif
