/* Shows on standard error how far a long computation is (daemon/lib/schedule/work.h): after a second, and then at
 * intervals. */
#pragma once

/* Starts a computation with this name: "the routes of at2 on 64x64". */
void long_work_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Changes the name for the next part of the computation, without restarting the time. */
void long_work_next(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the computation, and removes the line from a terminal. May be called at any time. */
void long_work_end(void);
