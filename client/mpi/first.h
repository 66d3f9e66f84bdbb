/* What the processes of a program tell each other by names that the launcher publishes, where they cannot use
 * MPI otherwise: some may lack this preload. Where the launcher does not publish names, nobody hears
 * anything. In MPI_Init only, while error handlers are set aside (errhandlers.h): an unknown name is an error. */
#ifndef TORUSD_MPI_FIRST_H
#define TORUSD_MPI_FIRST_H

#include <stdbool.h>

/* Whether this is the first process of the program that calls this. Any number of them do, in MPI_Init,
 * once. Where the launcher does not publish names, it is rank 0. */
bool first_of_program(void);

/* The group has been open here, so that all processes have this preload, but cannot be used. Who has never
 * seen it open, and cannot tell whether others have, hears this: within a second, in which a failure
 * gets about. Where it has been said, it is to be taken back when everybody has heard it. */
void first_say_opened(void);
bool first_hear_opened(void);
void first_unsay_opened(void);

#endif
