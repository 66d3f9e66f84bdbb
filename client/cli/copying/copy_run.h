/* Runs a copy of trees: request, progress and report. */
#pragma once

#include <torus/torus.h>

#include "client/cli/copying/copy_order.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/progress.h"

/* Runs the copy, and prints everything. Returns the exit code: EXIT_FAILED also if a node has failed, or if --verify
 * has found a difference. */
int copy_run(struct cli *cli, enum torus_copy_kind kind, const struct copy_arguments *a);

/* Shows how far a copy is, by the rules of client/cli/terminal/progress.h. */

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
