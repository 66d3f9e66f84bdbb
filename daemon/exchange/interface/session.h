/* What a group has instead of blocks: an engine that lives as long as the group is
 * open and carries out what programs call (daemon/group). Its round 0 is admitted when all members
 * have opened the group, and finished when all have left it. */
#ifndef TORUSD_EXCHANGE_INTERFACE_SESSION_H
#define TORUSD_EXCHANGE_INTERFACE_SESSION_H

#include "daemon/engine/engine.h"
#include "daemon/planning/planner.h"
#include "daemon/schedule/tree.h"

struct session_setup {
    struct router *router;
    uint32_t handle;             /* Prepare.handle */
    struct tree_node tree;       /* from the group's root to all nodes */
    const struct damage *damage; /* NULL, or the links that it avoids; good until it is open */
    const char *id;              /* of its first attempt: the same after a restart */
    bool goes_on;                /* what has been open under this id; else it is new */
    const char *name;            /* of the group; texts are copied */
    bool unchecked;              /* blocks travel without digests */
    struct planner *planner;     /* of the whole torus; borrowed */
    struct block_events events;  /* `wake`: look whether it has failed or finished */
};

struct sessions {
    void *context;
    /* Returns NULL with *e if there is no memory, or if it cannot go on without these links or nodes. An
     * engine that is freed while its group is running is kept: after a restart it has the same calls, and
     * makes those again that are not over everywhere. */
    struct engine *(*open)(void *context, const struct session_setup *setup, struct error *e);
    /* It is over: what is kept by this id is not needed any more. */
    void (*forget)(void *context, const char *id);
    uint64_t memory; /* that each may use, at most */
};

#endif
