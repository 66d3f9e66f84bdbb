/* The file that says which machine is which node of a torus, and which of its interfaces have the
 * cables. */
#ifndef TORUSD_CLI_HOSTS_FILE_H
#define TORUSD_CLI_HOSTS_FILE_H

#include <net/if.h>
#include <netinet/in.h>

#include "client/cli/ip_routes/ip_routes.h"

#define HOST_NAME_SIZE 254     /* as DNS limits names */
#define OWN_INTERFACE "torus0" /* what has a node's own address */

/* Lines are those of the file, from 1; 0: it is not in the file. */
struct cable_end {
    char interface[IFNAMSIZ]; /* "": not given */
    struct in_addr address;   /* of the interface on this cable; 0: not given */
    uint32_t line;
};

struct host {
    char name[HOST_NAME_SIZE];
    struct in_addr address; /* the node's own */
    uint32_t line;          /* of its section */
    uint32_t address_line;
    struct cable_end port[TORUS_MAX_PORTS];
};

/* Reads the file, which has a section for each node of the torus, into hosts[], in the order of their
 * ranks; there is room for all nodes. Nodes without an address get those that follow `first`. Cables
 * that are broken need no interface. Returns 0, or -1 with *e, which says where in the file. */
int hosts_file_read(struct host *hosts, const struct ip_routes *r, const char *path,
                    struct in_addr first, struct error *e);

#endif
