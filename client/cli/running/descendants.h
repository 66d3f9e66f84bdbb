/* Processes that this process has started, and those that they have started, wherever these have moved: this process
 * adopts them. */
#pragma once

#include <sys/types.h>

/* From now on, processes whose parents have ended become children of this process. */
void descendants_adopt(void);

/* Sends a signal, and then SIGCONT, to all descendants, each once: to these process groups as a whole, so that no process
 * that is just being started escapes, and to those that are in other groups. Returns how many could be sent to, or -1 if
 * there are descendants, and none could. */
int descendants_signal(int number, const pid_t *group, size_t groups);

/* Kills all descendants, and waits until none is left. Those that this user may not kill are left. */
void descendants_end(void);
