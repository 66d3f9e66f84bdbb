/* Limits how many lines of one kind the log takes: peers and clients can cause any number of
 * lines of some kinds, which would fill the disk. A kind is a format. Times are nanoseconds on
 * any clock that does not jump. */
#ifndef TORUSD_BASE_LOG_KINDS_H
#define TORUSD_BASE_LOG_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_KINDS 128u                        /* limited kinds; lines of others are all taken */
#define LOG_KIND_AT_ONCE UINT64_C(1000)       /* lines of a kind that are taken at once */
#define LOG_KIND_LINE_NS UINT64_C(1000000000) /* one more line is taken in this time */
/* The time after which lines that were left out are reported. */
#define LOG_KIND_TELL_NS UINT64_C(10000000000)
#define LOG_KIND_TEXT_SIZE 256u

struct log_kind {
    const char *format;
    int level;
    uint64_t owed_until; /* from then on the full number of lines is taken again */
    unsigned left_out;
    uint64_t since;                /* when the first line was left out */
    char last[LOG_KIND_TEXT_SIZE]; /* the last line left out, or its beginning */
};

/* Zero-initialise. */
struct log_kinds {
    unsigned count;
    struct log_kind kind[LOG_KINDS];
};

/* Whether a line is to be written; otherwise it is counted. `format` is borrowed for ever. */
bool log_kinds_take(struct log_kinds *all, const char *format, int level, const char *text,
                    uint64_t now);

/* A kind of which lines have been left out for at least `time`, or NULL. The caller reports the
 * number, and sets left_out to 0. */
struct log_kind *log_kinds_left_out(struct log_kinds *all, uint64_t now, uint64_t time);

#endif
