/* What a setup changes on this host: computed and shown before anything is changed. */
#ifndef TORUSD_CLI_SETUP_PLAN_H
#define TORUSD_CLI_SETUP_PLAN_H

#include <jansson.h>

#include "client/cli/cluster/host_files.h"
#include "client/cli/cluster/setup.h"

struct setup_change {
    char *path;   /* with the root folder before it */
    char *before; /* NULL: the file does not exist */
    char *after;  /* NULL: it must not exist */
    bool differs;
};

struct setup_plan {
    const char *
        root; /* "" for this host; otherwise a folder with an image of a host, on which no unit is started */
    struct setup_change change[HOST_FILES];
};

/* Compares the files of this host with those of the setup. Returns 0, or -1 with *e; in both cases the caller calls
 * setup_plan_free(). */
int setup_plan_make(struct setup_plan *p, const struct setup *s, const char *root, struct error *e);
void setup_plan_free(struct setup_plan *p);

/* Returns whether any file differs. */
bool setup_plan_differs(const struct setup_plan *p);

/* Returns {"changes": [{"file", "action", "diff"}], "warnings": [text]}: what would change, with differences as of
 * 'diff -u'; of secret files only that they change; "keys": the ids of the cluster keys that the host has now; and "less_safe": see
 * less_safe.h. NULL if memory is short. */
json_t *setup_plan_json(const struct setup_plan *p, const struct setup *s);

#endif
