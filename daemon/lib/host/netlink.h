/* Requests to the kernel by netlink. Each waits for the kernel's answer, which does not depend on anybody else. Any user
 * may ask for links, addresses, routes and rules. */
#pragma once

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>

#define NETLINK_REQUEST_SIZE 8192u

struct netlink {
    struct mnl_socket *socket;
    unsigned port, sequence;
    bool refused; /* the kernel answered the last request with an error */
};

/* Opens a socket for a part of the kernel (NETLINK_ROUTE ...). Returns 0, or -1 with errno; netlink_close() closes it,
 * also after a failure. */
int netlink_open(struct netlink *nl, int protocol);
void netlink_close(struct netlink *nl);

/* Begins a request of this type in `buffer`. */
struct nlmsghdr *netlink_begin(char buffer[NETLINK_REQUEST_SIZE], uint16_t type, uint16_t flags);

/* Sends a request and waits for the answer; calls `each` for every message of it, which has at least a head of `head`
 * bytes. Returns 0 when the answer is complete, or -1 with errno: that of the kernel if nl->refused. */
int netlink_ask(struct netlink *nl, struct nlmsghdr *request, size_t head, mnl_cb_t each,
                void *context);

/* Sends a request whose answer is only that it is done. Returns 0, or -1 with errno. */
int netlink_do(struct netlink *nl, struct nlmsghdr *request);

/* Asks for a list (RTM_GETLINK ...) over a socket of its own, as netlink_ask(). */
int netlink_list(uint16_t type, int family, size_t head, mnl_cb_t each, void *context);

/* Returns the last attribute of this type behind a head of `size` bytes, or NULL. */
const struct nlattr *netlink_attribute(const struct nlmsghdr *message, size_t size, unsigned type);
/* The same within another attribute. */
const struct nlattr *netlink_nested(const struct nlattr *nest, unsigned type);
/* The same behind a head that lies in an attribute, as far as `end`. */
const struct nlattr *netlink_between(const void *begin, const void *end, unsigned type);

/* Copies as many bytes of an attribute (NULL: none) as there are and fit. */
void netlink_take(void *to, size_t size, const struct nlattr *attribute);
/* Returns the number in an attribute, 0 if it has none. */
uint32_t netlink_u32(const struct nlattr *attribute);
