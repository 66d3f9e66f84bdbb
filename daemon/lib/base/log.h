/* Log lines on standard error, one line each: time, level, text.
 *
 * The reader (a disk, a terminal, a pipe) may be slow, or stop. Therefore a thread writes the lines after
 * log_begin(). A caller waits for its line for a few milliseconds at most, so that lines usually appear
 * before the next event. Lines are left out if there is no room in the queue or on the disk, or if there are
 * too many of one kind (log_kinds.h); a later line says how many. */
#pragma once

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
