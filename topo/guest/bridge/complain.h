/* Messages on standard error. */
#pragma once

/* Writes one line, after the name of the program. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes one line as complain() does, and exits with status 1. Functions registered with atexit() run. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
