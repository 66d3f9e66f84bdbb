/* How far an exchange is, on stderr, if it takes more than a second: a bar if that is a terminal, else, if
 * TORUS_PROGRESS is 1 (proto/notices.h), a line now and then. */
#ifndef TORUSD_CLI_PROGRESS_H
#define TORUSD_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct torus_progress;

/* How fast it is, as far as can be told. */
struct progress_pace {
    int64_t elapsed_ms;
    int64_t left_ms;         /* below 0: not known */
    double bytes_per_second; /* 0: not known */
};

struct progress {
    bool shown;        /* whether to show anything at all, */
    bool lines;        /* and that in lines of their own */
    const char *title; /* written before the line; may be NULL */
    int64_t began_ms;
    int64_t drawn_ms;   /* when it was drawn last; 0 = not on the screen */
    size_t drawn_width; /* columns that it then took up */
    uint32_t said_missing;

    /* Where the pace is counted from: */
    int64_t from_ms; /* 0: nothing has moved yet */
    uint64_t from_bytes;
    double from_part;
};

/* Starts the clock; nothing is drawn yet. */
void progress_begin(struct progress *p, bool wanted);

/* A torus_progress_fn for a struct progress: draws, if it is time to. Returns whether the user has
 * interrupted the program. */
int progress_update(void *p, const struct torus_progress *progress);

/* Removes it from the screen. */
void progress_end(struct progress *p);

/* Writes the line for a terminal of `columns`, as much as fits. Returns its width. */
size_t progress_line(char *out, size_t size, size_t columns, const struct torus_progress *progress,
                     const struct progress_pace *pace);

/* The pace of what has been reported so far; `now` is of clock_ms(). */
struct progress_pace progress_pace(struct progress *p, const struct torus_progress *progress,
                                   int64_t now);

#endif
