/* A setup: what one host needs to configure itself as a part of a cluster. It is sent to the host as JSON: the cluster
 * file, the host's name in it, and the cluster keys. */
#pragma once

#include "daemon/lib/cluster/cluster_file.h"
#include "proto/key.h"

#define SETUP_VERSION 1
#define SETUP_MOST (256u << 10) /* bytes of the JSON */

struct setup {
    struct cluster cluster;
    uint32_t rank; /* index of the host in cluster.hosts */
    struct key key, second_key;
    bool has_second_key; /* while keys are changed */
};

/* Returns the setup of hosts[rank] as JSON, which contains the keys, and its length; the caller frees it. `second_key`
 * may be NULL. Returns NULL if there is not enough memory. */
char *setup_write(const struct cluster *c, uint32_t rank, const struct key *key,
                  const struct key *second_key, size_t *length);

/* Reads a setup. Nothing in it is trusted: every part is checked. Returns 0 with *s, which the caller gives to
 * setup_free(), or -1 with *e and nothing to free. */
int setup_read(struct setup *s, const char *json, size_t length, struct error *e);
void setup_free(struct setup *s);
