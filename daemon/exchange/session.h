/* What a group (OPERATION_GROUP) has instead of blocks: an engine that lives as long as the group is
 * open and carries out what programs call (daemon/group). Its round 0 is admitted when all members
 * have opened the group, and finished when all have left it. */
#ifndef TORUSD_EXCHANGE_SESSION_H
#define TORUSD_EXCHANGE_SESSION_H

#include "daemon/exchange/engine.h"
#include "daemon/exchange/planner.h"
#include "daemon/schedule/tree.h"

struct session_setup {
    struct router *router;
    uint32_t handle;             /* Prepare.handle */
    struct tree_node tree;       /* from the group's root to all nodes */
    const struct damage *damage; /* NULL, or the links that it goes around; good until it is open */
    const char *id;
    const char *name;           /* of the group; texts are copied */
    bool unchecked;             /* blocks travel without digests */
    struct planner *planner;    /* of the whole torus; borrowed */
    struct block_events events; /* `wake`: look whether it has failed or finished */
};

struct sessions {
    void *context;
    /* Returns NULL with *e if there is no memory. */
    struct engine *(*open)(void *context, const struct session_setup *setup, struct error *e);
    uint64_t memory; /* that each may use, at most */
};

#endif
