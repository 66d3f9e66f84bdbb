/* Shows how far a copy is, by the rules of client/cli/terminal/progress.h. */
#pragma once

#include <torus/torus.h>

#include "client/cli/terminal/progress.h"

struct copy_watch {
    struct progress progress;
    char doing[80];
    bool looks_only; /* --dry-run, --verify */
    bool moved;      /* bytes have arrived somewhere */
    uint64_t bytes;  /* the last that were reported */
};

void copy_watch_begin(struct copy_watch *w, bool looks_only);
/* A torus_copy_progress_fn with a struct copy_watch as its data. Returns whether the user has interrupted the program. */
int copy_watch_update(void *watch, const struct torus_copy_progress *progress);
void copy_watch_end(struct copy_watch *w);
