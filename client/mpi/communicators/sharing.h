/* Decides which communicator uses the torus under MPI_THREAD_MULTIPLE.
 *
 * A group of torusd has one order of calls, the same on all nodes. Without MPI_THREAD_MULTIPLE all processes make
 * their calls in one order, whatever the communicators, so all communicators can share a group. With
 * MPI_THREAD_MULTIPLE, threads make calls on several communicators in an order that differs between nodes; only the
 * calls on one communicator have the same order everywhere. So in each part of the torus a *lane*, a group with its
 * parts (lanes.h), belongs to one communicator at a time, its owner. At first MPI_COMM_WORLD owns lane 0. Calls of
 * communicators that own no lane are left to MPI.
 *
 * A communicator without a lane *asks* for one in its second call, and then less and less often. All its ranks are in
 * this call, and take the same steps:
 *
 * 1. Each rank votes: it reports the state of the lanes (struct votes) in an MPI_Allreduce. If the communicator can
 * get no lane, the question ends here.
 *
 * 2. Each rank now knows that all other ranks have come this far, so nothing in the program prevents them from
 * continuing. It blocks calls of the owners of lanes in its process during a second MPI_Allreduce, in which all ranks
 * vote again. So the state that they report does not change meanwhile.
 *
 * 3. These votes decide (claims.h). The communicator gets a lane that is free; or a lane whose owner has not used it
 * since the last question, or has made less than half as many calls; or a new lane, which only a communicator on all
 * nodes can open. A communicator can take a lane only if it has all ranks of the former owner. So all these ranks
 * learn of the loss at a point where they have made equally many calls, and the owner's next call is left to MPI on
 * all of them. */
#pragma once

#include "client/mpi/communicators/communicator_record.h"

/* Makes MPI_COMM_WORLD, whose record is `world`, the owner of lane 0. Called once under MPI_THREAD_MULTIPLE, in
 * MPI_Init after the group has been opened. */
void sharing_begin(struct communicator *world);

/* Begin and end a call: communicator_enter() and communicator_leave() for a communicator that can be served. */
enum reason sharing_enter(struct communicator *c);
void sharing_leave(struct communicator *c);

/* Frees the lane of a communicator whose record is about to be freed. */
void sharing_forget(struct communicator *c);
