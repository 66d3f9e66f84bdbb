/* A progress bar on stderr, if that is a terminal and the exchange takes more than a second. */
#ifndef TORUSD_CLI_PROGRESS_H
#define TORUSD_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct torus_progress;

struct progress {
    bool shown;        /* whether to show anything at all */
    const char *title; /* written before the line; may be NULL */
    int64_t began_ms;
    int64_t drawn_ms;   /* when it was drawn last; 0 = not on the screen */
    size_t drawn_width; /* columns that it then took up */
};

/* Milliseconds on a monotonic clock. */
int64_t progress_clock(void);

/* Starts the clock; nothing is drawn yet. */
void progress_begin(struct progress *p, bool wanted);

/* A torus_progress_fn for a struct progress: draws, if it is time to. Returns whether the user has
 * interrupted the program. */
int progress_update(void *p, const struct torus_progress *progress);

/* Removes it from the screen. */
void progress_end(struct progress *p);

/* Writes the line for a terminal of `columns`, as much as fits. Returns its width. */
size_t progress_line(char *out, size_t size, size_t columns, const struct torus_progress *progress,
                     int64_t elapsed_ms);

#endif
