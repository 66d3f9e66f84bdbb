/* Log lines on standard error, one line each: time, level, text.
 *
 * The reader (a disk, a terminal, a pipe) may be slow, or stop. From log_begin() on, a thread
 * writes the lines. A caller waits a moment for its line, so that the line is usually there
 * before what follows it happens, but never longer. Lines for which there is no room in the
 * queue, or on a full disk, are left out; a later line says how many. So are lines of which
 * there are too many of one kind (log_kinds.h). */
#ifndef TORUSD_BASE_LOG_H
#define TORUSD_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Leaves out lines that are more detailed than `level`, which is info at the start. */
void log_set_level(enum log_level level);

/* The level that "error", "warning", "info" or "debug" names, or -1. */
int log_level_parse(const char *name);

/* Starts the writer thread. If that fails (no memory), callers write their lines themselves, as
 * before. */
void log_begin(void);

/* Writes what is left, for a second at most. From now on callers write their lines themselves. */
void log_end(void);

/* Writes a line. `format` is borrowed for ever. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
