/* Unix sockets at a path, for programs on this machine. */
#pragma once

#include <sys/types.h>

#include "daemon/lib/net/access.h"
#include "daemon/lib/net/sockets.h"
#include "proto/error.h"

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
