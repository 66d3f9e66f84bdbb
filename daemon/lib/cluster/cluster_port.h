/* The addresses by which the daemons of a cluster reach each other over its cables. */
#pragma once

#include "daemon/lib/cluster/cluster_file.h"

/* The two ends of each cable. Link-local addresses are valid on one cable only, so all hosts have the same two. */
#define CLUSTER_DIALLING_ADDRESS "fe80::a"
#define CLUSTER_LISTENING_ADDRESS "fe80::b"

#define CLUSTER_PORT_TEXT_SIZE 64u

/* Whether a cable leads from this port. `c` has ports. */
bool cluster_has_cable(const struct cluster *c, uint32_t rank, unsigned port);

/* Writes the address that a port dials or listens on, as in section [ports] of torusd.ini, into `text`, and returns
 * it. It is link-local; with `as_given`, an address that the file gives to the listening end of the cable comes first.
 * The port has a cable. */
const char *cluster_port_address(const struct cluster *c, uint32_t rank, unsigned port,
                                 bool as_given, char text[CLUSTER_PORT_TEXT_SIZE]);
