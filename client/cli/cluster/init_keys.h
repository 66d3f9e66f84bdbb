/* The keys that 'torusctl init' gives to the hosts. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "daemon/lib/base/secrets.h"

struct init_keys {
    char path[PATH_MAX];      /* the file of the current key */
    char next_path[PATH_MAX]; /* that of the next one, while keys are changed */
    struct key key;
    struct key next; /* if `changing` */
    bool changing;
    bool swapped;   /* `key` is the next one already, and the former one is gone */
    bool made;      /* the current key was made just now, and has no file yet */
    bool made_next; /* the same for the next one */
};

/* Reads the cluster key from the file `path`, or makes one if the file does not exist. NULL stands for
 * /etc/torusd/cluster.key if this user can read it, otherwise for cluster.key beside the cluster file. With `change`,
 * also reads or makes the next key, in the file whose name has ".next" at its end. Keys that are made here are not
 * written yet. If `path` is the key file of this host, and an interrupted change has put the next key there, the former
 * key is read from the file of the host's second key. Returns 0, or -1 with *e; the caller calls init_keys_forget() in
 * both cases. */
int init_keys_read(struct init_keys *k, const char *path, const char *cluster_file, bool change,
                   struct error *e);

/* Writes the keys that were made to their files. Called before the first host gets a key, so that an interrupted setup
 * or change goes on with the same keys. Returns 0, or -1 with *e. */
int init_keys_store(struct init_keys *k, struct error *e);

/* Lists the keys that hosts may have at this moment: those in *k, and the key of this host. */
void init_keys_list(const struct init_keys *k, struct secrets *list);

/* Renames the file of the next key to that of the former key, after all hosts have changed. Returns 0, or -1 with
 * *e. */
int init_keys_finish(struct init_keys *k, struct error *e);

void init_keys_forget(struct init_keys *k);
