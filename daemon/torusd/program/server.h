/* The socket of programs: each connection is a program that has a group open (proto/program.h). */
#pragma once

#include <uv.h>

#include "daemon/lib/base/shares.h"
#include "daemon/lib/net/access.h"
#include "daemon/torusd/group/group.h"

struct programs;

/* Settings. All pointers are borrowed. */
struct programs_setup {
    uv_loop_t *loop;
    /* Path of the control socket; the name of the programs' socket follows from it. */
    const char *control;
    struct groups *groups;
    const struct access_rules *access;
    struct shares *shares;
};

/* Binds and listens. Replaces a socket file that no daemon serves. Returns NULL with *e if another daemon
 * serves this socket, there is no permission, or the path is too long. */
struct programs *programs_open(const struct programs_setup *setup, struct error *e);
/* The access rules have changed: programs that connect from now on are checked by the new ones. */
void programs_rules_changed(const struct programs *programs);
/* Links of the torus have come up, gone down or changed their rates: programs are told. */
void programs_links_changed(const struct programs *programs);
/* Leaves all groups and closes all connections. The memory is freed when the loop has closed the handles;
 * memory of programs may be in use longer. */
void programs_close(struct programs *programs);
