/* The cluster file: the hosts of a torus, their interfaces and the settings that they share. It is a file of hosts
 * (daemon/lib/cluster/hosts_file.h) with one more section:
 *
 *   [cluster]
 *   dims = 3x3
 *   link_mbit = 1000          ; any setting of torusd.ini that is the same on all hosts
 *
 * Whatever differs between the hosts is derived from it, so a host needs only this file, its own name and the cluster
 * key to write its whole configuration. */
#pragma once

#include "daemon/lib/cluster/hosts_file.h"

#define CLUSTER_FILE_MOST (128u << 10) /* bytes of a file; a setup has to fit into 256 KiB */
#define CLUSTER_SETTINGS_SIZE 4096u

struct cluster {
    char *text; /* the file, unchanged */
    size_t length;
    bool has_dims;           /* otherwise torus, routes and hosts[].port are not set */
    bool has_ports;          /* some host has an interface */
    struct ip_routes routes; /* with the torus; found if `ip_routes` */
    uint32_t count;          /* hosts */
    struct host *hosts;      /* by rank if has_dims and has_ports, else in the order of the file */
    char settings[CLUSTER_SETTINGS_SIZE]; /* of torusd.ini, which all hosts share, as lines */
    char data_roots[1024]; /* folders, separated by colons; "": not set in the file */
    bool ip_routes;        /* set IP routes between all hosts (default: yes) */
    unsigned port;         /* of TCP (default: 7411) */
    enum { ADDRESS6_DERIVED, ADDRESS6_NONE, ADDRESS6_GIVEN } address6_kind;
    struct in6_addr address6; /* of the first host, if given; the others follow */
};

/* Reads the file `path`, or `length` bytes of `text`, which `name` names in errors. Returns 0 with *c, which the caller
 * gives to cluster_free(), or -1 with *e, which names the line, and nothing to free. */
int cluster_read(struct cluster *c, const char *path, struct error *e);
int cluster_read_text(struct cluster *c, const char *name, const char *text, size_t length,
                      struct error *e);

/* The same for a text in which hosts and interfaces may be missing still. If it has dims, hosts[] is by rank, has_ports
 * is true, and a rank without a section has the name "". No routes are found. */
int cluster_read_unfinished(struct cluster *c, const char *name, const char *text, size_t length,
                            struct error *e);
void cluster_free(struct cluster *c);

/* Returns the index in hosts[] of the host with this name (a domain may be missing), or -1. */
int64_t cluster_find(const struct cluster *c, const char *name);

/* The addresses by which the daemons of a cluster reach each other over its cables. */

/* The two ends of each cable. Link-local addresses are valid on one cable only, so all hosts have the same two. */
#define CLUSTER_DIALLING_ADDRESS "fe80::a"
#define CLUSTER_LISTENING_ADDRESS "fe80::b"

#define CLUSTER_PORT_TEXT_SIZE 64u

/* Returns the nominal rate of the link at a port, as that end sees it. A rate that is given at one end of a cable holds at
 * both. 0: the file gives none. `c` has ports. */
struct nominal_rate cluster_port_rate(const struct cluster *c, uint32_t rank, unsigned port);

/* Whether a cable leads from this port. `c` has ports. */
bool cluster_has_cable(const struct cluster *c, uint32_t rank, unsigned port);

/* Writes the address that a port dials or listens on, as in section [ports] of torusd.ini, into `text`, and returns
 * it. It is link-local; with `as_given`, an address that the file gives to the listening end of the cable comes first.
 * The port has a cable. */
const char *cluster_port_address(const struct cluster *c, uint32_t rank, unsigned port,
                                 bool as_given, char text[CLUSTER_PORT_TEXT_SIZE]);
