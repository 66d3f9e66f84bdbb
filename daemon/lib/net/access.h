/* What a user may do through the Unix sockets of a daemon, by the groups of the connecting process (SO_PEERCRED,
 * SO_PEERGROUPS). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/error.h"

/* Each access includes all accesses before it. */
enum access {
    ACCESS_NONE,
    ACCESS_READ,     /* state, links, predictions */
    ACCESS_EXCHANGE, /* exchanges, and groups of programs */
    ACCESS_ADMIN,    /* changing the calibration of all nodes */
    ACCESSES,
};

#define ACCESS_NAME_SIZE 64u

/* Zero-initialised: every process that can connect may do everything. */
struct access_rules {
    bool checked;
    struct {
        char name[ACCESS_NAME_SIZE];
        gid_t id;
    } group[ACCESSES]; /* by access: the group whose members have it */
};

/* Fills the rules from group names by access; "" stands for the group of this process. Nothing is checked
 * if all names are "". Returns 0, or -1 with *e: there is no such group. */
int access_resolve(struct access_rules *rules, const char *const name[ACCESSES], struct error *e);

/* Returns what the process at the other end of a connected socket may do. Root and the user of this process
 * may do everything. */
enum access access_of_peer(const struct access_rules *rules, int fd);

/* Returns the user (uid) of that process, in whose share its requests count (base/shares.h). If the kernel
 * does not tell the user, returns nobody (65534). */
uint32_t access_user(int fd);

/* Checks that `has` is enough for `needed`. Returns 0, or -1 with *e (ERROR_REFUSED), which names the group
 * that the user must belong to. */
int access_check(const struct access_rules *rules, enum access has, enum access needed,
                 struct error *e);
