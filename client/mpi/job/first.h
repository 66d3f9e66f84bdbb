/* What the processes of a program tell each other by names that the launcher publishes, when
 * they cannot use MPI because some processes may lack this preload. Where the launcher does not
 * publish names, nothing is heard. Only for MPI_Init, while error handlers are set aside
 * (errhandlers.h), because an unknown name is an error. */
#ifndef TORUSD_MPI_FIRST_H
#define TORUSD_MPI_FIRST_H

#include <stdbool.h>
#include <stdint.h>

/* This process decides by itself that the program is not served. Returns whether it is the first
 * process that does; any number of them may, once each, in MPI_Init. Where the launcher does not
 * publish names, rank 0 counts as the first. */
bool first_of_program(void);

/* The group has been open here, so that all processes have this preload, but it cannot be used.
 * A process that has never seen the group open, and cannot tell whether others have, waits to
 * hear that: until one process has said it, until one has decided by itself, or for `most_ms`.
 * The process that has said it unpublishes it when all processes have heard it. */
void first_say_opened(void);
bool first_hear_opened(uint32_t most_ms);
void first_unsay_opened(void);

#endif
