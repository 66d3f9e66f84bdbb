/* The file of hosts: it assigns machines to the nodes of a torus, and interfaces to their ports. */
#ifndef TORUSD_CLI_HOSTS_FILE_H
#define TORUSD_CLI_HOSTS_FILE_H

#include <net/if.h>
#include <netinet/in.h>

#include "client/cli/ip_routes/ip_routes.h"

#define HOST_NAME_SIZE 254     /* as DNS limits names */
#define OWN_INTERFACE "torus0" /* the interface with the address of the node */

/* Lines are counted from 1; 0: not in the file. */
struct cable_end {
    char interface[IFNAMSIZ]; /* "": not given */
    struct in_addr address;   /* of the interface on this cable; 0: not given */
    uint32_t line;
};

struct host {
    char name[HOST_NAME_SIZE];
    struct in_addr address; /* address of the node on OWN_INTERFACE */
    uint32_t line;          /* line of its section */
    uint32_t address_line;
    struct cable_end port[TORUS_MAX_PORTS];
};

/* Reads the file, which has a section for each node, into hosts[], by rank, which has room for all nodes. A node
 * without an address gets the address `first` plus its rank. Broken cables need no interface. Returns 0, or -1 with
 * *e, which names the line. */
int hosts_file_read(struct host *hosts, const struct ip_routes *r, const char *path,
                    struct in_addr first, struct error *e);

#endif
