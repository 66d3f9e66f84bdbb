/* The processes of MPI_COMM_WORLD on the torus. Whether it can serve them is settled once, in MPI_Init:
 * they open a group together, which succeeds if every node has as many of them, all with this
 * preload and a daemon. From then on all know where each of them is, and whether a communicator is
 * served follows from that alone. */
#ifndef TORUSD_MPI_JOB_H
#define TORUSD_MPI_JOB_H

#include <pthread.h>
#include <torus/group.h>

#include "client/mpi/library/abi.h"

#define JOB_DIMS 8u

struct job_process {
    uint32_t node;  /* of the torus */
    uint32_t leads; /* it is the one on its node that has opened the group */
};

struct job {
    unsigned dims;
    uint32_t size[JOB_DIMS];
    uint32_t nodes, per_node;
    uint32_t node;            /* this one */
    uint32_t rank, processes; /* of MPI_COMM_WORLD */
    struct job_process *process;
    bool threaded; /* MPI_THREAD_MULTIPLE at one of them or more: communicators share (sharing.h) */
    bool verbose, statistics;
    uint32_t late_ms; /* as in struct settings */
    bool leads;
    bool refused[1u << JOB_DIMS]; /* by dimensions: parts for which the torus lacks links */
    /* The same processes, for the preload's own messages: the only communicator that it makes, so that the
     * program can have all others of those that MPI has. Its errors are returned. */
    MPI_Comm messages;
};

#define JOB_UNUSED_TAG 0 /* of job.messages: there is never a message with it */
#define JOB_FIRST_TAG 1

extern struct job job;

/* Whether there is a torus for this program (opening.h): false until MPI_Init has ended. */
extern bool job_is_served;

/* Of dimensions, all of them longer than 1: whether they are those of the torus; whether a part can have them; and
 * whether there is that part, or it is all of the torus. The same on all ranks. */
bool job_is_all(uint32_t dimensions);
bool job_is_part(uint32_t dimensions);
bool job_has_part(uint32_t dimensions);

/* To be held around all uses of the group; does nothing unless threads may call at the same time. */
void job_lock(void);
void job_unlock(void);

/* Locked; waits for a condition that another thread signals. */
void job_wait(pthread_cond_t *condition);

/* Gives up, because this process cannot make a call that others wait for: no call of its own succeeds
 * any more, and when the last lanes_leave() has been called, the group is closed, which fails those of
 * the others. Does nothing if it has been called before. Locked. */
void job_fail(const struct torus_error *error);
bool job_has_failed(struct torus_error *error);

#endif
