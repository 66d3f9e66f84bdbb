/* The collective operations of a library, as collective.c measures them: collective_mpi.c wraps an MPI
 * library, collective_torus.c libtorus. All ranks make the same calls in the same order. Errors end the
 * program with a message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prints a message with the rank, and exits. Defined in collective.c. */
_Noreturn void give_up(const char *what);

/* Returns when the library knows this rank and the number of ranks. */
void library_start(int *argc, char ***argv, int *rank, int *ranks);
_Noreturn void library_abort(void);
_Noreturn void library_end(void); /* returns when all ranks have called it */

/* Call these before and after a measurement. `variable` is a control variable of the library that selects an
 * algorithm, or NULL; after the measurement it is 0 again: the library chooses. */
void library_prepare(const char *variable, int value);
void library_finish(void);

/* Zeroed memory: registered with the library, or ordinary memory of the process. */
void *library_new(size_t bytes, bool registered);
void library_free(void *area, size_t bytes, bool registered);

void library_barrier(void);
void library_alltoall(const void *send, void *receive, size_t block);
void library_allgather(const void *send, void *receive, size_t block);
void library_broadcast(void *buffer, size_t bytes);                        /* from rank 0 */
void library_allreduce(const double *send, double *receive, size_t count); /* sums */

/* The largest of each value of all ranks, and the sum of a value. The results are defined at rank 0 only. */
void library_largest(double *values, size_t count);
void library_sum(uint64_t *value);
