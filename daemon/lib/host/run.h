/* Runs another program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Runs argv[0], found by PATH, and reads what it prints on standard output, at most `size` - 1 bytes. If it takes longer
 * than `patience_ms` milliseconds, or prints more, it is killed, and the text is what it has printed. Returns whether
 * it has printed anything; *status (may be NULL) is its exit status, or -1 if it did not end by itself. */
bool host_run(const char *const *argv, int patience_ms, char *text, size_t size, int *status);
/* The same with what it prints on standard error, too. */
bool host_run_all(const char *const *argv, int patience_ms, char *text, size_t size, int *status);
