/* Access rules for the Unix sockets of a daemon, by the groups of the connecting process (SO_PEERCRED,
 * SO_PEERGROUPS). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/lib/net/sockets.h"
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

/* Returns the name of the setting that names the group of an access: "read_group". Static. */
const char *access_setting(enum access access);

/* Unix sockets at a path, for programs on this machine. */

/* Identifies the file of a socket. The path is not enough, because another process may replace the file at
 * that path. */
struct local_name {
    const char *path;
    dev_t device;
    ino_t number;
};

/* Connects to the path without waiting. Returns a descriptor, or the negative of an error number. */
int local_connect(const char *path, int type);

/* Listens at the path. The owner of this process and its group may connect; everybody may if `rules` (may
 * be NULL) check each process that connects. Replaces a socket that a crash has left behind and no process
 * serves. Returns 0 with *name, which borrows the path; or -1 with *e and nothing open: another daemon
 * serves the socket, permissions are missing, or the path is too long. */
int local_listen(struct listener *l, uv_loop_t *loop, const char *path,
                 const struct access_rules *rules, struct local_name *name, struct error *e);

/* Gives the file the permissions that local_listen() gives it for these rules, unless another file has replaced
 * it. */
void local_permit(const struct local_name *name, const struct access_rules *rules);

/* Removes the file, unless another file has replaced it. */
void local_remove(const struct local_name *name);
