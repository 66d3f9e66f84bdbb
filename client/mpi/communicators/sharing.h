/* Which communicator uses the torus, under MPI_THREAD_MULTIPLE.
 *
 * A group of torusd has one order of calls, the same on all nodes. Without MPI_THREAD_MULTIPLE all
 * processes also make their calls in one order, on any communicators: the communicators can share a
 * group. With it, threads make calls on several communicators in any order, which differs between
 * nodes; only the calls on one communicator have an order. So a *lane*, a group and its parts
 * (job.h), belongs to one communicator at a time in each part of the torus: to its owner there. At
 * first MPI_COMM_WORLD owns lane 0. Calls of communicators that own no lane are left to MPI.
 *
 * A communicator without a lane *asks* for one, in its second call and then less and less often.
 * All its ranks are in this call, and do the same:
 *
 * 1. Each rank says what it knows of the lanes (struct votes, by MPI_Allreduce). If no lane can be
 * taken, the question ends here.
 *
 * 2. Each rank now knows that all other ranks have come this far, so that nothing in the program
 * keeps them from continuing. It holds up the calls of the lanes' owners in its process during a
 * second MPI_Allreduce, in which all ranks say again what they know, and which does not change
 * meanwhile.
 *
 * 3. These votes decide (claims.h): the communicator gets a lane that is free; a lane whose owner
 * has not used it since the last question, or less than half as much; or a new lane, which only a
 * communicator on all nodes can open. All ranks of the former owner learn that they lost the lane,
 * since only a communicator that has all of these ranks can take it, at a point where they have
 * made equally many calls everywhere; the owner's next call is left to MPI.
 *    as many calls everywhere; its next call is left to MPI. */
#ifndef TORUSD_MPI_SHARING_H
#define TORUSD_MPI_SHARING_H

#include "client/mpi/communicators/communicator_record.h"

/* Called once, in MPI_Init, after the group has been opened, under MPI_THREAD_MULTIPLE: `world`
 * is the record of MPI_COMM_WORLD. */
void sharing_begin(struct communicator *world);

/* communicator_enter() and communicator_leave() for a communicator that can be served. */
enum reason sharing_enter(struct communicator *c);
void sharing_leave(struct communicator *c);

/* The record is about to be freed. */
void sharing_forget(struct communicator *c);

#endif
