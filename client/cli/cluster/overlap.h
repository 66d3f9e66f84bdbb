/* Whether the addresses of the hosts of a cluster collide with networks that this machine has already. */
#pragma once

#include <jansson.h>

#include "daemon/lib/cluster/cluster_file.h"

/* Appends a text to `warnings` for each network of this machine (of a LAN, Docker, a VPN ...) that contains an address
 * of a host. Routes over torus0 and over the cables of the host hosts[rank] do not count. */
void overlap_warn(const struct cluster *c, uint32_t rank, json_t *warnings);
