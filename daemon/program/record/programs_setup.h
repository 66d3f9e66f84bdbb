/* Settings of the socket of programs. */
#ifndef TORUSD_PROGRAM_RECORD_PROGRAMS_SETUP_H
#define TORUSD_PROGRAM_RECORD_PROGRAMS_SETUP_H

#include <uv.h>

#include "daemon/base/shares.h"
#include "daemon/group/group.h"
#include "daemon/net/local/access.h"

/* All pointers are borrowed. */
struct programs_setup {
    uv_loop_t *loop;
    /* Path of the control socket; the name of the programs' socket follows from it. */
    const char *control;
    struct groups *groups;
    const struct access_rules *access;
    struct shares *shares;
};

#endif
