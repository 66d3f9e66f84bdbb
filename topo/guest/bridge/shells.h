/* Programs that serve connections in the virtual machine. */
#pragma once

#include <sys/types.h>

/* Runs the program at this path in a session of its own, with no signal blocked. Returns a socket that is
 * connected to its standard input, output and error, and sets *pid. Returns -1 if it cannot make a socket or a
 * process. */
int shell_start(const char *path, pid_t *pid);

/* Reaps a shell that has ended. Returns its process id; 0 if there is none. */
pid_t shell_reap(void);
