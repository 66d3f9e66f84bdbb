/* Algorithms that are functions in Python: "python:mine.py", or "python:mine.py:radix=4", which sets a variable of the
 * file. A process of python3 calls the function for all blocks and prints a schedule; neither this process nor a daemon
 * runs Python. */
#pragma once

#include <stdbool.h>

#include "daemon/lib/schedule/torus.h"

/* Returns whether a name is one of such an algorithm. */
bool python_algorithm_is_name(const char *name);

/* If *algorithm, the value of --algorithm, is such a name, moves it to *schedule, the value of the option that names a
 * schedule file, which reads it by schedule_file_read(). */
void python_algorithm_take(const char **algorithm, const char **schedule);

/* Makes the schedule of an algorithm on *t: *text in torusd's format (imported.h), not verified, which the caller frees.
 * Returns 0, or -1 with *e: the file has an error, takes more than a minute, or makes more routes than a schedule has. */
int python_algorithm_run(const char *name, const struct torus *t, char **text, size_t *length,
                         struct error *e);
