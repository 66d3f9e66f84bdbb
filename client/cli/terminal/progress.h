/* Shows the progress of an exchange on stderr if it takes more than a second: a bar on a terminal; elsewhere lines at
 * intervals if TORUS_PROGRESS is 1 (proto/notices.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct torus_progress;

/* The pace of an exchange. */
struct progress_pace {
    int64_t elapsed_ms;
    int64_t left_ms;         /* below 0: not known */
    double bytes_per_second; /* 0: not known */
    const char *doing;       /* shown instead of the state; NULL: the state */
};

struct progress {
    bool shown;        /* the progress is shown at all */
    bool lines;        /* as new lines, not as a bar */
    const char *title; /* written before the line; may be NULL */
    const char *doing; /* what is shown instead of the state; may be NULL */
    int64_t began_ms;
    int64_t drawn_ms;         /* time of the last drawing; 0: nothing is on the screen */
    size_t drawn_width;       /* columns of the last drawing */
    uint32_t printed_missing; /* missing nodes in the last drawing */

    /* The beginning of the measurement of the pace: */
    int64_t from_ms; /* 0: no data has been delivered yet */
    uint64_t from_bytes;
    double from_part;
};

/* Starts the clock, without drawing. */
void progress_begin(struct progress *p);

/* A torus_progress_fn with a struct progress as its data: draws if it is time. Returns whether the user has
 * interrupted the program. */
int progress_update(void *p, const struct torus_progress *progress);

/* Removes the bar from the screen. */
void progress_end(struct progress *p);

/* Writes the line for a terminal with this number of columns, as much as fits. Returns its width. */
size_t progress_line(char *out, size_t size, size_t columns, const struct torus_progress *progress,
                     const struct progress_pace *pace);

/* Returns the pace at the time `now` on clock_ms(). */
struct progress_pace progress_pace(struct progress *p, const struct torus_progress *progress,
                                   int64_t now);

/* --- long computations (daemon/lib/schedule/work.h), shown after a second, and then at intervals --- */

/* Starts a computation with this name: "the routes of at2 on 64x64". */
void long_work_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Changes the name for the next part of the computation, without restarting the time. */
void long_work_next(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the computation, and removes the line from a terminal. May be called at any time. */
void long_work_end(void);
