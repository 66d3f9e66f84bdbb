/* SIGHUP: the settings of a running daemon are read again, off the loop. */
#pragma once

#include "daemon/lib/base/work.h"
#include "daemon/torusd/config.h"
#include "daemon/torusd/files/folders.h"

/* Where the settings come from. */
struct reload_source {
    /* Fills *fresh, which config_init() has filled. Called off the loop. Returns 0, or -1 with *e. */
    int (*read)(void *context, struct config *fresh, struct error *e);
    /* Called when settings have been changed, or could not be read. */
    void (*done)(void *context);
    void *context;
};

struct reload {
    struct work work;

    /* Set by the user: the settings in use, of which those that need a restart are only read, */
    const struct config *config;
    const struct folders *folders;
    const struct workers *workers;
    /* and what applies *reload to the daemon, on the loop. */
    void (*apply)(void *context, struct reload *reload);
    void *context;

    struct config fresh;
    struct access_rules access;
    struct secrets secrets;

    /* The rest belongs to the reading. */
    struct reload_source source;
    struct error error;
    int result;
    bool running, again, stopped;
};

/* Begins to read the settings. A call while that is under way makes it read them once more afterwards. */
void reload_begin(struct reload *r, const struct reload_source *source);

/* Logs which settings of r->fresh differ from those in use (`roots` are the data roots in use), and which of these need
 * a restart. */
void reload_log_changes(const struct reload *r, const struct roots *roots);

/* Calls neither apply() nor done() any more. The object must live until the loop has ended. */
void reload_stop(struct reload *r);
