/* The files that one host of a cluster needs, as texts: its configuration of torusd, the addresses of its cables, its
 * IP routes, and the names of all hosts. */
#pragma once

#include <netinet/in.h>

#include "daemon/lib/cluster/cluster_file.h"
#include "proto/key.h"

/* Where the files are on a host. */
#define CLUSTER_FOLDER "/etc/torusd"
#define CLUSTER_DATA_ROOT "/srv/torusd"

enum host_file {
    HOST_FILE_CLUSTER, /* the cluster file itself */
    HOST_FILE_SECOND_KEY, /* the key that is accepted while keys change, secret; written before the main key, so that a
                           * host whose power fails between the two still has the key that all hosts share */
    HOST_FILE_KEY,       /* the cluster key, secret */
    HOST_FILE_CONFIG,    /* torusd.ini */
    HOST_FILE_DROP_IN,   /* lets torusd.service write in other data roots than the default */
    HOST_FILE_LINKS,     /* lines "INTERFACE ADDRESS", which torus-links sets */
    HOST_FILE_ROUTES,    /* the script that sets the IP routes, if torus-routed is not installed */
    HOST_FILE_ADDRESSES, /* the addresses of all hosts, for torus-routed */
    HOST_FILE_NAMES,     /* a part of /etc/hosts, between two marks */
    HOST_FILES,
};

/* Properties of a file. Files whose content is "" must not exist. */
struct host_file_kind {
    const char *path;
    unsigned mode;
    bool secret;      /* belongs to the user of torusd, and is never shown */
    bool block;       /* a block of lines in a file of others */
    const char *unit; /* the unit that reads it */
};
extern const struct host_file_kind host_file_kinds[HOST_FILES];

#define HOST_BLOCK_BEGIN "# BEGIN torusd: written by torusctl init"
#define HOST_BLOCK_END "# END torusd"

/* The program that keeps the IP routes. */
#define ROUTED_PROGRAM "/usr/sbin/torus-routed"

/* Writes the contents of all files of hosts[rank] into text[]. `second_key` may be NULL. `routed`: torus-routed is
 * installed there. Returns 0, or -1 with *e; in both cases the caller calls host_files_forget(). */
int host_files_make(const struct cluster *c, uint32_t rank, const struct key *key,
                    const struct key *second_key, bool routed, char *text[HOST_FILES],
                    struct error *e);

/* Stores the IPv6 address of the host hosts[rank]. Returns false if the cluster file says that hosts have none. */
bool host_files_address6(const struct cluster *c, uint32_t rank, struct in6_addr *address);

/* Frees the texts, and overwrites the secret ones. */
void host_files_forget(char *text[HOST_FILES]);
