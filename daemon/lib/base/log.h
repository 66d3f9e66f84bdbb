/* Log lines on standard error, one line each: time, level, text.
 *
 * The reader (a disk, a terminal, a pipe) may be slow, or stop. Therefore a thread writes the lines after
 * log_begin(). A caller waits for its line for a few milliseconds at most, so that lines usually appear
 * before the next event. Lines are left out if there is no room in the queue or on the disk, or if there are
 * too many of one kind; a later line says how many. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Leaves out lines that are more detailed than `level`; the default is info. */
void log_set_level(enum log_level level);

/* The level that "error", "warning", "info" or "debug" names, or -1. */
int log_level_parse(const char *name);

/* Starts the writer thread. If that fails (no memory), callers write their lines themselves, as
 * before. */
void log_begin(void);

/* Writes the waiting lines, for at most a second. From now on callers write their lines themselves. */
void log_end(void);

/* Writes a line. `format` must remain valid for ever. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Limits how many lines of one kind the log takes: peers and clients can cause any number of
 * lines of some kinds, which would fill the disk. A kind is a format. Times are nanoseconds on
 * any clock that does not jump. */

#define LOG_KINDS 128u                        /* most kinds that are limited; others are not */
#define LOG_KIND_AT_ONCE UINT64_C(1000)       /* lines of a kind that are taken in a row */
#define LOG_KIND_LINE_NS UINT64_C(1000000000) /* one more line is taken in this time */
/* The time after which lines that were left out are reported. */
#define LOG_KIND_REPORT_NS UINT64_C(10000000000)
#define LOG_KIND_TEXT_SIZE 256u

struct log_kind {
    const char *format;
    int level;
    uint64_t full_at; /* when LOG_KIND_AT_ONCE lines can be taken again */
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
