/* Lists of the kernel: links, addresses, routes. Any user may ask for them. */
#pragma once

#include <linux/netlink.h>
#include <stdint.h>

/* Calls `each` with every message of a list (RTM_GETLINK ...). Returns 0, or -1 if the list is not complete. */
int host_netlink_list(uint16_t type, unsigned char family,
                      void (*each)(const struct nlmsghdr *message, void *context), void *context);
