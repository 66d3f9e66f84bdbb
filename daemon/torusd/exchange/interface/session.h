/* A group has a session instead of blocks: an engine that lives as long as the group is open and carries out
 * the calls of programs (daemon/torusd/group). Its round 0 is admitted when all members have opened the group, and is
 * finished when all have left it. */
#pragma once

#include "daemon/lib/schedule/tree.h"
#include "daemon/torusd/engine/engine.h"
#include "daemon/torusd/planning/planner.h"

struct session_setup {
    struct router *router;
    uint32_t handle;       /* Prepare.handle: identifies the group in frames */
    struct tree_node tree; /* from the group's root to all nodes */
    /* Links that the group avoids, valid until the group is open; NULL: none. */
    const struct damage *damage;
    /* Id of the group's first attempt; stays the same after a restart. */
    const char *id;
    /* True: a restart, which continues the session with this id; false: start a new one. */
    bool restarts;
    const char *name;        /* of the group; copied */
    bool unchecked;          /* true: blocks travel without digests */
    struct trace *trace;     /* NULL, or where calls are noted; the session takes a reference */
    struct planner *planner; /* for the whole torus; borrowed */
    /* `wake` asks the owner to check whether the session failed or finished. */
    struct block_events events;
};

struct sessions {
    void *context;
    /* Opens a session. Returns NULL with *e if there is no memory, or if the session cannot continue without
     * these links or nodes. If the engine is freed while its group runs, the session is kept: after a restart
     * it repeats the calls that are not complete on all nodes. */
    struct engine *(*open)(void *context, const struct session_setup *setup, struct error *e);
    /* Frees what is kept under this id, because the group has ended. */
    void (*forget)(void *context, const char *id);
    uint64_t memory; /* most bytes that one session may use */
};
