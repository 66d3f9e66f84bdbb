/* What the files of netlink share. */
#pragma once

#include <libmnl/libmnl.h>

#include "daemon/torus-routed/kernel/netlink.h"

#define NETLINK_REQUEST_SIZE 8192u

/* Begins a request of this type in `buffer`. */
struct nlmsghdr *netlink_begin(char buffer[NETLINK_REQUEST_SIZE], uint16_t type, uint16_t flags);

/* Sends a request and waits for the answer; calls `each` (may be NULL) for every message of it. */
int netlink_ask(struct netlink *nl, struct nlmsghdr *request, mnl_cb_t each, void *context);

/* Returns the last attribute of this type behind a head of `size` bytes, or NULL. */
const struct nlattr *netlink_attribute(const struct nlmsghdr *message, size_t size, unsigned type);
/* The same within another attribute. */
const struct nlattr *netlink_nested(const struct nlattr *nest, unsigned type);

size_t ip_length(const struct ip *ip);
/* Takes an address from an attribute. */
void ip_take(struct ip *ip, int family, const struct nlattr *attribute);
