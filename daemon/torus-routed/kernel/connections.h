/* The TCP connections of this host, as the kernel counts them. */
#pragma once

#include "daemon/torus-routed/kernel/netlink.h"

/* Calls `on_connection` for each established connection: its other end, a number that no other connection has, and how
 * many of the bytes that it has sent the other end has acknowledged. Returns 0, or -1 with errno: the kernel cannot tell. */
int connections_list(int family,
                     void (*on_connection)(void *context, const struct ip *to, uint64_t cookie,
                                           uint64_t sent),
                     void *context);
