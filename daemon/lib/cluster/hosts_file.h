/* The file of hosts: it assigns machines to the nodes of a torus, and interfaces to their ports. */
#pragma once

#include <net/if.h>
#include <netinet/in.h>

#include "daemon/lib/base/nominal_rate.h"
#include "daemon/lib/cluster/ip_routes.h"
#include "proto/error.h"
#include "proto/text_file.h"

#define HOST_NAME_SIZE 254     /* as DNS limits names */
#define HOST_SSH_SIZE 320      /* USER@HOST */
#define HOST_IDENTITY_SIZE 33  /* hexadecimal digits */
#define OWN_INTERFACE "torus0" /* the interface with the address of the node */
#define CLUSTER_SECTION                                                                            \
    "cluster" /* has settings of all hosts (cluster_file.h), and is not a host */

/* Lines are counted from 1; 0: not in the file. */
struct cable_end {
    char interface[IFNAMSIZ]; /* "": not given */
    struct in_addr address;   /* of the interface on this cable; 0: not given */
    uint32_t line;
    struct nominal_rate rate; /* of the link; 0: not given */
    uint32_t rate_line;
};

#define CABLE_RATE_SUFFIX ".link_mbit" /* of a setting of a host: "+0.link_mbit" */

struct host {
    char name[HOST_NAME_SIZE];
    struct in_addr address; /* address of the node on OWN_INTERFACE */
    uint32_t line;          /* line of its section */
    uint32_t address_line;
    char ssh[HOST_SSH_SIZE];     /* where ssh reaches it, "root@10.0.0.3"; "": not given */
    char id[HOST_IDENTITY_SIZE]; /* as torusd-discover --id prints it; "": not given */
    struct cable_end port[TORUS_MAX_PORTS];
};

/* Reads the file, which has a section for each node, into hosts[], by rank, which has room for all nodes. A node
 * without an address gets the address `first` plus its rank. Broken cables need no interface. Returns 0, or -1 with
 * *e, which names the line. */
int hosts_file_read(struct host *hosts, const struct ip_routes *r, const char *path,
                    struct in_addr first, struct error *e);

/* The same for a text in memory, which the call changes; see ini_read_text(). `unfinished`: nodes may lack a section,
 * and have the name "" then; ports may lack an interface. */
int hosts_file_read_text(struct host *hosts, const struct ip_routes *r, const char *name,
                         char *text, size_t length, struct in_addr first, bool unfinished,
                         struct error *e);

/* Whether two names mean the same host: they are equal except for case or a dot at the end, or only one of them has
 * a domain. */
bool hosts_file_is_same_host(const char *a, const char *b);

/* Checks the name of a host. Returns 0, or -1 with *e (ERROR_USAGE). */
int hosts_file_check_name(const char *name, struct error *e);

extern const struct text_kind hosts_file_kind;

/* IPv4 addresses that hosts and their interfaces can have. */

/* Returns why no host can have this address, such as "is a loopback address", or NULL if a host can. */
const char *host_address_problem(struct in_addr address);

/* Reads "10.0.1.1", or "10.0.1.1/30" as 'ip addr' prints it. With a prefix, the address must not be the network
 * address or the broadcast address. Returns 0, or -1 with *e (ERROR_USAGE). */
int host_address_parse(const char *text, struct in_addr *address, struct error *e);
