/* Unix sockets at a path, for programs on this machine. */
#ifndef TORUSD_NET_LOCAL_H
#define TORUSD_NET_LOCAL_H

#include "daemon/net/access.h"
#include "daemon/net/listener.h"

/* Listens at the path, which the owner of the process and its group may connect to; everybody, if the
 * rules (or NULL) say that who connects is checked. A socket that a
 * crash has left there, and nobody serves, is replaced. Returns 0, or -1 with *e and nothing open:
 * another daemon serves it, no permission, path too long. */
int local_listen(struct listener *l, uv_loop_t *loop, const char *path,
                 const struct access_rules *rules, struct error *e);

#endif
