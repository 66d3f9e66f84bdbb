/* Limits how many lines of one kind the log takes: peers and clients can cause any number of
 * lines of some kinds, which would fill the disk. A kind is a format. Times are nanoseconds on
 * any clock that does not jump. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOG_KINDS 128u                        /* most kinds that are limited; others are not */
#define LOG_KIND_AT_ONCE UINT64_C(1000)       /* lines of a kind that are taken in a row */
#define LOG_KIND_LINE_NS UINT64_C(1000000000) /* one more line is taken in this time */
/* The time after which lines that were left out are reported. */
#define LOG_KIND_REPORT_NS UINT64_C(10000000000)
#define LOG_KIND_TEXT_SIZE 256u

struct log_kind {
    const char *format;
    int level;
    uint64_t owed_until; /* when LOG_KIND_AT_ONCE lines can be taken again */
    unsigned left_out;
    uint64_t since;                /* when the first line was left out */
    char last[LOG_KIND_TEXT_SIZE]; /* the last line left out, or its beginning */
};

/* Zero-initialise. */
struct log_kinds {
    unsigned count;
    struct log_kind kind[LOG_KINDS];
};

/* Returns whether to write a line; otherwise counts it as left out. `format` must remain valid for ever. */
bool log_kinds_take(struct log_kinds *all, const char *format, int level, const char *text,
                    uint64_t now);

/* Returns a kind whose first left-out line is at least `time` old, or NULL. The caller reports left_out, and
 * sets it to 0. */
struct log_kind *log_kinds_left_out(struct log_kinds *all, uint64_t now, uint64_t time);
