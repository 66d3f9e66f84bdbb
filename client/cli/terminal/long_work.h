/* What is said on standard error while a command computes for long (daemon/schedule/watch.h): after a
 * second, and then now and then, how far it is. */
#ifndef TORUSD_CLI_LONG_WORK_H
#define TORUSD_CLI_LONG_WORK_H

/* From here on: the time begins, and it is called this, "the routes of at2 on 64x64". */
void long_work_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Calls what comes now something else; the time goes on. */
void long_work_next(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Nothing is said any more; takes the line away if it is on a terminal. May be called at any time. */
void long_work_end(void);

#endif
