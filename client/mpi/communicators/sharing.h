/* Which communicator uses the torus, under MPI_THREAD_MULTIPLE.
 *
 * A group of torusd has one order of calls, the same on all nodes. Without MPI_THREAD_MULTIPLE all processes make their
 * calls in one order, too, on whichever communicators: they can share a group. With it, calls of several threads on
 * several communicators come in any order, which differs between nodes; only the calls on one communicator have an
 * order. So a *lane*, a group and its parts (job.h), belongs to one communicator at a time, in each part of the torus:
 * its owner there. Lane 0 is MPI_COMM_WORLD's at first. The calls of communicators that own no lane are left to MPI.
 *
 * A communicator without a lane *asks* for one, in its second call and then less and less often. All its ranks are in
 * this call, and do the same:
 * 1. Each says what it knows of the lanes (struct votes, by MPI_Allreduce). If that gives nothing to take, this is all.
 * 2. Each of them now knows that all others have come this far, so that nothing that the program does keeps them from
 *    going on. It holds up the calls of the lanes' owners here, for as long as an MPI_Allreduce takes, in which
 *    all say again what they know, which does not change meanwhile.
 * 3. What they say decides (claims.h): a lane that is free; one whose owner has not been used since the last question,
 *    or less than half as much; or one more, which a communicator on all nodes can open. All ranks of a former
 *    owner hear of it, since it loses the lane only to a communicator that has all its ranks, and while it has made
 *    as many calls everywhere; its next call is left to MPI. */
#ifndef TORUSD_MPI_SHARING_H
#define TORUSD_MPI_SHARING_H

#include "client/mpi/communicators/communicator_record.h"

/* Once, in MPI_Init, after the group has been opened, under MPI_THREAD_MULTIPLE: `world` is MPI_COMM_WORLD's. */
void sharing_begin(struct communicator *world);

/* As communicator_enter() and _leave(), of one that can be served. */
enum reason sharing_enter(struct communicator *c);
void sharing_leave(struct communicator *c);

/* It is freed. */
void sharing_forget(struct communicator *c);

#endif
