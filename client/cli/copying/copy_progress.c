#include "client/cli/copying/copy_progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/text.h"

void copy_watch_begin(struct copy_watch *w, bool looks_only)
{
    *w = (struct copy_watch){.looks_only = looks_only};
    progress_begin(&w->progress, true);
    w->progress.doing = w->doing;
}

/* Writes what the copy does now: "comparing, 1200 files". */
static void set_doing(struct copy_watch *w, const struct torus_copy_progress *progress)
{
    const char *name = torus_copy_phase_name(progress->phase);

    if (progress->phase == TORUS_COPY_CALLING)
        (void)snprintf(w->doing, sizeof w->doing, "%s the nodes", name);
    else if (progress->phase == TORUS_COPY_PLACING && w->looks_only)
        (void)snprintf(w->doing, sizeof w->doing, "collecting the results");
    else if (progress->phase < TORUS_COPY_MOVING && progress->files > 0)
        (void)snprintf(w->doing, sizeof w->doing, "%s, %" PRIu64 " %s", name, progress->files,
                       text_plural(progress->files, "file", "files"));
    else
        (void)snprintf(w->doing, sizeof w->doing, "%s", name);
}

int copy_watch_update(void *watch, const struct torus_copy_progress *progress)
{
    struct copy_watch *w = watch;
    const bool moving = progress->phase == TORUS_COPY_MOVING;
    /* Only moving has bytes from which a rate and the remaining time follow. */
    const struct torus_progress shown = {
        .exchange = "",
        .state = TORUS_STATE_RUNNING,
        .done_bytes = moving ? progress->bytes : 0,
        .total_bytes = moving ? progress->bytes_of : 0,
        .missing = "",
        .waits_for = progress->waits_for,
    };

    set_doing(w, progress);
    w->moved = w->moved || (moving && progress->bytes > 0);
    if (!moving || progress->bytes < w->bytes) /* another attempt has a pace of its own */
        w->progress.from_ms = 0;
    w->bytes = moving ? progress->bytes : 0;
    return progress_update(&w->progress, &shown);
}

void copy_watch_end(struct copy_watch *w)
{
    progress_end(&w->progress);
}
