/* Programs that serve connections in the virtual machine. */
#ifndef TORUSD_TOPO_GUEST_BRIDGE_SHELLS_H
#define TORUSD_TOPO_GUEST_BRIDGE_SHELLS_H

#include <sys/types.h>

/* Runs the program at this path, in a session of its own and with no signal blocked. Returns a socket
 * that is its standard input and output, for errors as well, and sets *pid; or -1, if there is no
 * socket or no process. */
int shell_start(const char *path, pid_t *pid);

/* A shell that has ended and was not reaped before; 0 if there is none. */
pid_t shell_reap(void);

#endif
