/* The keys that 'torusctl init' gives to the hosts. */
#ifndef TORUSD_CLI_INIT_KEYS_H
#define TORUSD_CLI_INIT_KEYS_H

#include <limits.h>
#include <stdbool.h>

#include "daemon/router/interface/secrets.h"

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

/* Reads the key of the cluster from `path` (NULL: /etc/torusd/cluster.key if this user can read it, otherwise
 * cluster.key beside the cluster file), and makes it if there is no such file. `change`: also reads or makes the next
 * key, whose file has a name that ends in ".next". Keys that are made are not written yet. If the key file is that of a host,
 * which has the next key already, the former one comes from the file of its second key. Returns 0, or -1 with *e; the caller calls
 * init_keys_forget() in both cases. */
int init_keys_read(struct init_keys *k, const char *path, const char *cluster_file, bool change,
                   struct error *e);

/* Writes the keys that were made to their files, before the first host gets them: a setup or a change that is interrupted
 * goes on with the same keys. Returns 0, or -1 with *e. */
int init_keys_store(struct init_keys *k, struct error *e);

/* Lists the keys that the hosts may have at this moment: these, and that of this host. */
void init_keys_list(const struct init_keys *k, struct secrets *list);

/* After all hosts have changed to the next key: its file replaces that of the former key. Returns 0, or -1 with *e. */
int init_keys_finish(struct init_keys *k, struct error *e);

void init_keys_forget(struct init_keys *k);

#endif
