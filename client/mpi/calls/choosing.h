/* Decides for every call that the torus can serve whether it does, or MPI: see job/choice.h. */
#pragma once

#include "client/mpi/calls/collectives.h"

#define BYTES_DIFFER SIZE_MAX

/* Returns REASON_SERVED if the torus carries out the call. All ranks of the communicator come here in the same call,
 * and get the same result. `bytes` must be the same on all ranks; BYTES_DIFFER: the sizes of this call may differ. */
enum reason choose_way(struct served_call *t, size_t bytes);
/* The call has ended, by whichever way. */
void choose_ended(struct served_call *t);
