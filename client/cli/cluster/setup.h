/* A setup: what one host needs to configure itself as a part of a cluster. It is sent to the host as JSON: the cluster
 * file, the host's name in it, and the cluster keys. */
#pragma once

#include <jansson.h>

#include "client/cli/cluster/host_files.h"
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

/* --- what it changes --- */

struct setup_change {
    char *path;   /* with the root folder before it */
    char *before; /* the present content; NULL if the file does not exist */
    char *after;  /* the content after the setup; NULL if the file is removed */
    bool differs;
};

struct setup_plan {
    const char
        *root; /* "" for this host; or a folder with an image of one, where no unit is started */
    struct setup_change change[HOST_FILES];
};

/* Compares the files of this host with those of the setup. Returns 0, or -1 with *e; in both cases the caller calls
 * setup_plan_free(). */
int setup_plan_make(struct setup_plan *p, const struct setup *s, const char *root, struct error *e);
void setup_plan_free(struct setup_plan *p);

/* Returns {"changes": [{"file", "action", "diff"}], "warnings": [text], "keys": [id], "less_safe": [text]}. A change
 * has the differences as 'diff -u' prints them; secret files are only named. "keys" has the ids of the cluster keys
 * that the host has now, "less_safe" a sentence for each change that makes the host less safe. Returns NULL if there is
 * not enough memory. */
json_t *setup_plan_json(const struct setup_plan *p, const struct setup *s);

/* Whether the host's torusd.ini has this data root already before the setup, under the same name. */
bool less_safe_had_root(const struct setup_plan *p, const char *root);
