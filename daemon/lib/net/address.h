/* Parses addresses as the configuration writes them, and formats addresses as text. */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proto/error.h"

#define ADDRESS_TEXT_SIZE 80u
#define ENDPOINT_HOST_SIZE 256u
#define ENDPOINT_TEXT_SIZE (ENDPOINT_HOST_SIZE + 2 * IFNAMSIZ + 16u)

/* The address of a port from the configuration. Names of hosts and interfaces are looked up at each use,
 * because their addresses and indices may change. */
struct endpoint {
    char host[ENDPOINT_HOST_SIZE]; /* an address without brackets and zone, or a host name */
    char interface[IFNAMSIZ];      /* "": none is named */
    /* `interface` comes from "on eth0", and sockets are bound to it; else it is a zone */
    bool bound;
    uint16_t port;                   /* TCP port; 0: there is no endpoint */
    struct sockaddr_storage literal; /* `host` without a zone; family 0: `host` is a name */
};

/* Parses "10.0.0.1:7411", "[fd00::1]:7411", "[fe80::1%eth0]:7411" or "host:7411", each of which " on eth0"
 * may follow. Looks up no names. Returns 0, or -1 with *e (ERROR_USAGE). */
int endpoint_parse(const char *text, struct endpoint *endpoint, struct error *e);

/* Parses an address of this machine to listen on: as endpoint_parse(), but without host names, and with port 0 for any
 * free port. Returns 0, or -1 with *e (ERROR_USAGE). */
int endpoint_parse_own(const char *text, struct endpoint *endpoint, struct error *e);

/* Writes the endpoint as in a configuration; ENDPOINT_TEXT_SIZE bytes are enough. */
void endpoint_format(const struct endpoint *endpoint, char *text, size_t size);

/* Sets the port of an address, and the zone if it is link-local; `index` is that of the interface, or 0. */
void endpoint_complete(const struct endpoint *endpoint, unsigned index,
                       struct sockaddr_storage *address);

/* Returns the index of an interface, given by name or as a decimal index; 0: there is no such interface. */
unsigned interface_index(const char *name);

/* Whether an address is an IPv6 link-local address. */
bool address_is_link_local(const struct sockaddr *address);
/* Returns the length in bytes of an address of its family. */
socklen_t address_length(const struct sockaddr *address);

/* Writes "10.0.0.1:7411", "[fd00::1]:7411" or "[fe80::1%eth0]:7411"; ADDRESS_TEXT_SIZE bytes are enough. */
void address_format(const struct sockaddr *address, char *text, size_t size);
