/* Addresses: as the configuration writes them, and as text. */
#ifndef TORUSD_NET_ADDRESSES_ADDRESS_H
#define TORUSD_NET_ADDRESSES_ADDRESS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proto/error.h"

#define ADDRESS_TEXT_SIZE 80u
#define ENDPOINT_HOST_SIZE 256u
#define ENDPOINT_TEXT_SIZE (ENDPOINT_HOST_SIZE + 2 * IFNAMSIZ + 16u)

/* What the configuration says of a port. Names of hosts and interfaces are looked up whenever they
 * are used, since what they stand for changes. */
struct endpoint {
    char host[ENDPOINT_HOST_SIZE]; /* an address without brackets and zone, or a name */
    char interface[IFNAMSIZ];      /* "": none is named */
    bool bound;    /* by "on eth0": its sockets use no other interface; else a zone */
    uint16_t port; /* of TCP; 0: there is no endpoint */
    struct sockaddr_storage literal; /* of the host, without a zone; family 0: it is a name */
};

/* Parses "10.0.0.1:7411", "[fd00::1]:7411", "[fe80::1%eth0]:7411" or "host:7411", each of which may
 * be followed by " on eth0". Looks nothing up. Returns 0, or -1 with *e (ERROR_USAGE): what is wrong
 * can never become right. */
int endpoint_parse(const char *text, struct endpoint *endpoint, struct error *e);

/* As it would be written in a configuration; ENDPOINT_TEXT_SIZE bytes are enough. */
void endpoint_format(const struct endpoint *endpoint, char *text, size_t size);

/* Sets the port, and the zone of a link-local address: `index` is the interface's, or 0. */
void endpoint_complete(const struct endpoint *endpoint, unsigned index,
                       struct sockaddr_storage *address);

/* The index of an interface by its name, or by its number in decimal; 0: there is none. */
unsigned interface_index(const char *name);

bool address_is_link_local(const struct sockaddr *address);
socklen_t address_length(const struct sockaddr *address);

/* "10.0.0.1:7411", "[fd00::1]:7411" or "[fe80::1%eth0]:7411"; ADDRESS_TEXT_SIZE bytes are enough. */
void address_format(const struct sockaddr *address, char *text, size_t size);

#endif
