/* IPv4 addresses that hosts and their interfaces can have. */
#pragma once

#include <netinet/in.h>

#include "proto/error.h"

/* Returns why no host can have this address, such as "is a loopback address", or NULL if a host can. */
const char *host_address_problem(struct in_addr address);

/* Reads "10.0.1.1", or "10.0.1.1/30" as 'ip addr' prints it. With a prefix, the address must not be the network
 * address or the broadcast address. Returns 0, or -1 with *e (ERROR_USAGE). */
int host_address_parse(const char *text, struct in_addr *address, struct error *e);
