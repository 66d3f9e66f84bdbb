/* The interfaces of this host that discovery uses, as the kernel describes them. */
#pragma once

#include "daemon/lib/discovery/discovery.h"

/* Checks a list of names separated by commas, or "all". Returns 0, or -1 with *e. */
int interfaces_check(const char *names, struct error *e);

/* Reads the state of the interfaces with these names; "all" is every interface of a network card for cables,
 * without wireless and virtual ones. Interfaces that do not exist are left out. Returns their number; list[]
 * has room for DISCOVERY_INTERFACES_MOST. */
unsigned interfaces_read(const char *names, struct interface_state *list);

/* Sets an interface up, as "ip link set NAME up" does. Returns 0, or -1 with errno (EPERM without
 * CAP_NET_ADMIN). */
int interface_set_up(const char *name);

/* Whether IPv6 is disabled on the interface. */
bool interface_lacks_ipv6(const char *name);
