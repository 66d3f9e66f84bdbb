/* The record of a communicator is found, and its calls begin and end. */
#ifndef TORUSD_MPI_COMMUNICATOR_H
#define TORUSD_MPI_COMMUNICATOR_H

#include "client/mpi/communicators/communicator_record.h"

/* Of this communicator. NULL: it is invalid, or there is no memory, which has failed the group. */
struct communicator *communicator_of(MPI_Comm comm);

/* Whether this is the first call on a communicator that the program has made. */
bool communicator_is_new(const struct communicator *c);

/* A call on it begins: REASON_TAKEN if it may use the torus, until communicator_leave(). All ranks of the
 * communicator make this call at the same point, and get the same. */
enum reason communicator_enter(struct communicator *c);
void communicator_leave(struct communicator *c);

#endif
