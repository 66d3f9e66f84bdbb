/* Log lines on standard error, one line each: time, level, text.
 *
 * Whoever reads them may be slow, or stand still: a disk, a terminal, a pipe. From log_begin() on a thread
 * writes the lines, and the others wait a moment for it, so that a line usually is there when what follows
 * it happens, but not longer. Lines for which there is no room, there or on a disk that is full, are left out, and
 * counted in one that follows when there is, as are those that are many of a kind (log_kinds.h). */
#ifndef TORUSD_BASE_LOG_H
#define TORUSD_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* What is more detailed than `level` is not written. Info at the start. */
void log_set_level(enum log_level level);

/* The level that "error", "warning", "info" or "debug" names, or -1. */
int log_level_parse(const char *name);

/* Starts the thread; without one (no memory) lines are written by whoever logs them, as before. */
void log_begin(void);

/* Writes what is left, for a second at most. Lines are written directly from now on. */
void log_end(void);

/* `format` stays where it is. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
