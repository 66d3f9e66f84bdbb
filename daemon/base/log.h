/* Log lines on standard error, one line each: time, level, text. */
#ifndef TORUSD_BASE_LOG_H
#define TORUSD_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* What is more detailed than `level` is not written. Info at the start. */
void log_set_level(enum log_level level);

/* The level that "error", "warning", "info" or "debug" names, or -1. */
int log_level_parse(const char *name);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
