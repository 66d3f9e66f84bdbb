/* Finds the record of a communicator, and begins and ends its calls. */
#pragma once

#include "client/mpi/communicators/communicator_record.h"

/* Returns the record of a communicator, which MPI frees with the communicator. NULL: the communicator is invalid, or
 * memory is short, which makes the group fail. */
struct communicator *communicator_of(MPI_Comm comm);

/* Returns whether this is the first call on a communicator that the program has created. */
bool communicator_is_new(const struct communicator *c);

/* Begins a call, which communicator_leave() ends. Returns REASON_SERVED if the call may use the torus. All ranks of
 * the communicator make this call at the same point, and get the same result. */
enum reason communicator_enter(struct communicator *c);
void communicator_leave(struct communicator *c);
