/* What a setup changes on this host: computed and shown before anything is changed. */
#pragma once

#include <jansson.h>

#include "client/cli/cluster/host_files.h"
#include "client/cli/cluster/setup.h"

struct setup_change {
    char *path;   /* with the root folder before it */
    char *before; /* the present content; NULL if the file does not exist */
    char *after;  /* the content after the setup; NULL if the file is removed */
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

/* Returns {"changes": [{"file", "action", "diff"}], "warnings": [text], "keys": [id], "less_safe": [text]}. A change
 * has the differences as 'diff -u' prints them; secret files are only named. "keys" has the ids of the cluster keys
 * that the host has now; less_safe.h describes "less_safe". Returns NULL if there is not enough memory. */
json_t *setup_plan_json(const struct setup_plan *p, const struct setup *s);
