/* How many lines the log takes of one kind: peers and clients can cause any number of some of them, and would
 * fill the disk. A kind is a format. Knows no clock: times are nanoseconds on any that does not jump. */
#ifndef TORUSD_BASE_LOG_KINDS_H
#define TORUSD_BASE_LOG_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_KINDS 128u                        /* lines of further formats are all taken */
#define LOG_KIND_AT_ONCE UINT64_C(1000)       /* lines, */
#define LOG_KIND_LINE_NS UINT64_C(1000000000) /* and one more in this time */
/* Others are left out; after so long it is told how many. */
#define LOG_KIND_TELL_NS UINT64_C(10000000000)
#define LOG_KIND_TEXT_SIZE 256u

struct log_kind {
    const char *format;
    int level;
    uint64_t owed_until; /* from then on all lines are taken again */
    unsigned left_out;
    uint64_t since;                /* the first of them was */
    char last[LOG_KIND_TEXT_SIZE]; /* their last one, or its beginning */
};

/* Zero-initialise. */
struct log_kinds {
    unsigned count;
    struct log_kind kind[LOG_KINDS];
};

/* Whether a line is to be written; else it is counted. `format` has to stay where it is. */
bool log_kinds_take(struct log_kinds *all, const char *format, int level, const char *text,
                    uint64_t now);

/* A kind of which lines have been left out for this time at least, or NULL; the caller tells that, and sets
 * left_out to 0. */
struct log_kind *log_kinds_left_out(struct log_kinds *all, uint64_t now, uint64_t time);

#endif
