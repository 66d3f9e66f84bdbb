/* The collective operations of a library, as collective.c measures them: collective_mpi.c wraps an MPI
 * library, collective_torus.c libtorus. All ranks make the same calls in the same order. Errors end the
 * program with a message. */
#ifndef BENCH_COLLECTIVE_H
#define BENCH_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Noreturn void give_up(const char *what); /* in collective.c: prints it with the rank */

/* Returns when the library knows this rank and how many there are. */
void library_start(int *argc, char ***argv, int *rank, int *ranks);
_Noreturn void library_abort(void);
_Noreturn void library_end(void); /* when all ranks have called it */

/* Around a measurement. The variable, NULL for none, is one of the library's own that selects an
 * algorithm; afterwards it is 0 again, which stands for the library's choice. */
void library_prepare(const char *variable, int value);
void library_finish(void);

/* Zeroed. Registered: as the library prefers it; else ordinary memory of the process. */
void *library_new(size_t bytes, bool registered);
void library_free(void *area, size_t bytes, bool registered);

void library_barrier(void);
void library_alltoall(const void *send, void *receive, size_t block);
void library_allgather(const void *send, void *receive, size_t block);
void library_broadcast(void *buffer, size_t bytes);                        /* from rank 0 */
void library_allreduce(const double *send, double *receive, size_t count); /* sums */

/* Of all ranks: the largest of each value, and a sum. At rank 0; elsewhere the contents are undefined. */
void library_largest(double *values, size_t count);
void library_sum(uint64_t *value);

#endif
