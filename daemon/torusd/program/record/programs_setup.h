/* Settings of the socket of programs. */
#pragma once

#include <uv.h>

#include "daemon/lib/base/shares.h"
#include "daemon/lib/net/local.h"
#include "daemon/torusd/group/group.h"

/* All pointers are borrowed. */
struct programs_setup {
    uv_loop_t *loop;
    /* Path of the control socket; the name of the programs' socket follows from it. */
    const char *control;
    struct groups *groups;
    const struct access_rules *access;
    struct shares *shares;
};
