/* The socket of programs: each connection is a program that has a group open (proto/program.h). */
#ifndef TORUSD_PROGRAM_SERVER_H
#define TORUSD_PROGRAM_SERVER_H

#include <uv.h>

#include "daemon/base/shares.h"
#include "daemon/group/group.h"
#include "daemon/net/local/access.h"

struct programs;

/* All borrowed. */
struct programs_setup {
    uv_loop_t *loop;
    const char *control; /* path of the control socket; that of programs is named after it */
    struct groups *groups;
    const struct access_rules *access;
    struct shares *shares;
};

/* Binds and listens. Returns NULL with *e: another daemon serves this socket, no permission, path too
 * long. A socket file that nobody serves is replaced. */
struct programs *programs_open(const struct programs_setup *setup, struct error *e);

/* Leaves all groups, closes; freed when the loop has closed the handles. Memory of programs may be
 * in use for longer. */
void programs_close(struct programs *programs);

#endif
