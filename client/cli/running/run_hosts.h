/* The hosts of a run, and how ssh reaches them. */
#pragma once

#include "daemon/lib/cluster/hosts_file.h"

struct run_host {
    char name[HOST_SSH_SIZE];   /* as people call it */
    char target[HOST_SSH_SIZE]; /* [USER@]HOST for ssh */
    bool by_address;            /* `target` is its address on the torus: its key has its name */
    bool is_node;               /* `node` is known: the hosts come from a cluster file */
    uint32_t node;
};

struct run_hosts {
    struct run_host *list;
    uint32_t count, nodes;      /* `nodes`: of the torus; 0: not known */
    char dims[TORUS_TEXT_SIZE]; /* "": not known */
};

/* Which hosts, and how ssh reaches them. */
struct run_choice {
    const char *file;    /* a cluster file, or a list of hosts: [USER@]HOST, one a line */
    const char *only;    /* names, separated by commas; NULL: all */
    const char *without; /* the same: those that are left out */
    bool torus_ip;       /* by their addresses on the torus */
};

/* Reads the hosts, in the order of the file. Returns 0 with *hosts, which is freed with run_hosts_free(); or -1 with *e,
 * and nothing to free. */
int run_hosts_read(struct run_hosts *hosts, const struct run_choice *choice, struct error *e);
void run_hosts_free(struct run_hosts *hosts);

/* Returns a list of words, ended by NULL, that starts 'torusctl run --receive' on a host. $TORUS_SSH, a command line for a
 * shell, replaces ssh. `user` may be NULL. ssh gives up after
 * `timeout_s`, and asks for a sign of life every `alive_s`. `own` is the path of this torusctl, which is tried first on the host. The
 * caller frees it with run_ssh_free(); NULL if memory is short. */
char **run_ssh(const struct run_host *host, const char *user, unsigned timeout_s, unsigned alive_s,
               const char *own);
void run_ssh_free(char **words);
