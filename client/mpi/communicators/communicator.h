/* Finding the record of a communicator, and beginning and ending its calls. */
#ifndef TORUSD_MPI_COMMUNICATOR_H
#define TORUSD_MPI_COMMUNICATOR_H

#include "client/mpi/communicators/communicator_record.h"

/* The record of this communicator. NULL: the communicator is invalid, or memory ran out, which fails the group. */
struct communicator *communicator_of(MPI_Comm comm);

/* Whether this is the first call on a communicator that the program has made. */
bool communicator_is_new(const struct communicator *c);

/* Begins a call: returns REASON_TAKEN if the call may use the torus, until communicator_leave().
 * All ranks of the communicator make this call at the same point, and get the same result. */
enum reason communicator_enter(struct communicator *c);
void communicator_leave(struct communicator *c);

#endif
