/* One of the processes of a program, where they cannot ask each other: some may lack this preload. */
#ifndef TORUSD_MPI_FIRST_H
#define TORUSD_MPI_FIRST_H

#include <stdbool.h>

/* Whether this is the first process of the program that calls this. Any number of them do, in MPI_Init,
 * once. Where the launcher does not publish names, it is rank 0. */
bool first_of_program(void);

#endif
