/* The file with the addresses of all hosts, a line a host, in the order of the ranks:
 *
 *   10.128.0.1 alpha
 *   10.128.0.2,fd12:3456:789a::2 beta
 *
 * Empty lines and lines that begin with # are left out. Each address and each name belongs to one host. */
#pragma once

#include "daemon/torus-routed/kernel/kernel.h"
#include "proto/error.h"

#define HOST_NAME_MOST 254u /* with the zero at its end */
#define FAMILIES 2u

struct host_addresses {
    uint32_t count;
    struct host_entry {
        struct ip ip[FAMILIES]; /* IPv4, IPv6; family 0: none */
        char name[HOST_NAME_MOST];
        unsigned line;
    } * host; /* by rank */
    bool v6;  /* all hosts have an IPv6 address */
};

/* Returns 0 with *h, which the caller gives to host_addresses_free(), or -1 with *e, which names the line. */
int host_addresses_read(struct host_addresses *h, const char *path, struct error *e);
void host_addresses_free(struct host_addresses *h);
