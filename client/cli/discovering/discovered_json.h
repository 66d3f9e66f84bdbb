/* Discovered hosts as JSON: {"hosts": [{"name", "id", "interfaces": [{"name", "mac", "mtu", "speed", "carrier",
 * "heard": [{"host", "id", "interface", "mutual"}]}]}]} and more. */
#pragma once

#include <jansson.h>

#include "client/cli/discovering/discovered.h"

#define DISCOVERED_FILE_MOST (16u << 20) /* bytes of a file */

/* Returns the array of hosts, or NULL if there is no memory. */
json_t *discovered_to_json(const struct discovered *d);

/* Reads the output of 'torusctl discover --json' from a file. Only names and neighbours of the hosts are
 * necessary. Returns 0 with *d, or -1 with *e, which names the file. */
int discovered_read(struct discovered *d, const char *path, struct error *e);
