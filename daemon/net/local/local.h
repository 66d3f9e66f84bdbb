/* Unix sockets at a path, for programs on this machine. */
#ifndef TORUSD_NET_LOCAL_LOCAL_H
#define TORUSD_NET_LOCAL_LOCAL_H

#include <sys/types.h>

#include "daemon/net/local/access.h"
#include "daemon/net/sockets/listener.h"

/* A socket's file, by more than its path: it may have been removed, and have a successor there. */
struct local_name {
    const char *path;
    dev_t device;
    ino_t number;
};

/* Listens at the path, which the owner of the process and its group may connect to; everybody, if the
 * rules (or NULL) say that who connects is checked. A socket that a
 * crash has left there, and nobody serves, is replaced. Returns 0 with *name, which borrows the path, or
 * -1 with *e and nothing open: another daemon serves it, no permission, path too long. */
int local_listen(struct listener *l, uv_loop_t *loop, const char *path,
                 const struct access_rules *rules, struct local_name *name, struct error *e);

/* Removes the file, unless it is another one by now. */
void local_remove(const struct local_name *name);

#endif
