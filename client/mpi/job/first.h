/* What the processes of a program tell each other by names that the launcher publishes, where they cannot use
 * MPI otherwise: some may lack this preload. Where the launcher does not publish names, nobody hears
 * anything. In MPI_Init only, while error handlers are set aside (errhandlers.h): an unknown name is an error. */
#ifndef TORUSD_MPI_FIRST_H
#define TORUSD_MPI_FIRST_H

#include <stdbool.h>
#include <stdint.h>

/* This process decides by itself that the program is not served. Returns whether it is the first that does.
 * Any number of them do, in MPI_Init, once. Where the launcher does not publish names, it is rank 0. */
bool first_of_program(void);

/* The group has been open here, so that all processes have this preload, but cannot be used. Who has never
 * seen it open, and cannot tell whether others have, hears this: it waits until one has said so, until one
 * has decided by itself, or for `most_ms`. Where it has been said, it is to be taken back when everybody has heard
 * it. */
void first_say_opened(void);
bool first_hear_opened(uint32_t most_ms);
void first_unsay_opened(void);

#endif
