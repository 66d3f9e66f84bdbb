/* The processes of MPI_COMM_WORLD on the torus. Whether the torus can serve them is decided
 * once, in MPI_Init: the processes open a group together, which succeeds if every node has
 * equally many of them, all with this preload and a daemon. From then on every process knows
 * where each of them is, which alone determines whether a communicator is served. */
#ifndef TORUSD_MPI_JOB_H
#define TORUSD_MPI_JOB_H

#include <pthread.h>
#include <torus/group.h>

#include "client/mpi/library/abi.h"

#define JOB_DIMS 8u

struct job_process {
    uint32_t node;  /* of the torus */
    uint32_t leads; /* it is the process on its node that has opened the group */
};

struct job {
    unsigned dims;
    uint32_t size[JOB_DIMS];
    uint32_t nodes, per_node;
    uint32_t node;            /* of this process */
    uint32_t rank, processes; /* rank of this process in MPI_COMM_WORLD, and the number of
                               * processes */
    struct job_process *process;
    bool threaded; /* MPI_THREAD_MULTIPLE in at least one process: communicators share
                    * (sharing.h) */
    bool verbose, statistics;
    uint32_t late_ms; /* as in struct settings */
    bool leads;
    bool refused[1u << JOB_DIMS]; /* by dimensions: the parts for which the torus lacks links */
    /* A communicator of the same processes for the preload's own messages. It is the only one
     * that the preload makes, so that the program can have all others that MPI allows. Its
     * errors are returned. */
    MPI_Comm messages;
};

#define JOB_UNUSED_TAG 0 /* a tag of job.messages with which no message is ever sent */
#define JOB_FIRST_TAG 1

extern struct job job;

/* Whether there is a torus for this program (opening.h): false until MPI_Init has ended. */
extern bool job_is_served;

/* Whether these dimensions, all longer than 1, are all those of the torus; whether a part can
 * have them; and whether that part is open, or is the whole torus. The same on all ranks. */
bool job_is_all(uint32_t dimensions);
bool job_is_part(uint32_t dimensions);
bool job_has_part(uint32_t dimensions);

/* To be held around all uses of the group; does nothing unless several threads may call at the
 * same time. */
void job_lock(void);
void job_unlock(void);

/* Waits for a condition that another thread signals; the job must be locked. */
void job_wait(pthread_cond_t *condition);

/* Gives up, because this process cannot make a call for which others wait: from now on all calls
 * of this process fail, and after the last lanes_leave() the group is closed, which lets the
 * calls of the others fail. Does nothing after the first time. The job must be locked. */
void job_fail(const struct torus_error *error);
bool job_has_failed(struct torus_error *error);

#endif
