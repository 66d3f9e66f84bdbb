/* The processes of MPI_COMM_WORLD on the torus. Whether the torus can serve them is decided once, in MPI_Init: the
 * processes open a group together, which succeeds if every node has a daemon and the same number of processes, all
 * with this preload. From then on every process knows the nodes of all processes, which determine the communicators
 * that are served. */
#pragma once

#include <pthread.h>
#include <torus/group.h>

#include "client/mpi/library/abi.h"

#define JOB_DIMS 8u

struct job_process {
    uint32_t node;  /* of the torus */
    uint32_t leads; /* this process is the leader of its node: it has opened the group */
};

struct job {
    unsigned dims;
    uint32_t size[JOB_DIMS];
    uint32_t nodes, per_node;
    uint32_t node;               /* of this process */
    uint32_t rank, processes;    /* rank of this process in MPI_COMM_WORLD, and its size */
    struct job_process *process; /* by rank */
    bool threaded; /* MPI_THREAD_MULTIPLE in at least one process: lanes have owners (sharing.h) */
    bool verbose, statistics;
    uint32_t late_ms;             /* as in struct settings */
    bool leads;                   /* this process is the leader of its node */
    bool refused[1u << JOB_DIMS]; /* by dimensions: parts whose links are down */
    /* A duplicate of MPI_COMM_WORLD for messages of the preload. It is the only communicator that the preload creates,
     * so that the program can have all others that MPI allows. It returns errors. */
    MPI_Comm messages;
};

#define JOB_UNUSED_TAG 0 /* no message is ever sent with this tag on job.messages */
#define JOB_FIRST_TAG 1

extern struct job job;

/* The torus serves this program (opening.h). False until MPI_Init has ended. */
extern bool job_is_served;

/* For a set of dimensions that are longer than 1, return whether they are all such dimensions of the torus; whether
 * there can be a part with them; whether they are the whole torus or an open part. The same on all ranks. */
bool job_is_all(uint32_t dimensions);
bool job_is_part(uint32_t dimensions);
bool job_has_part(uint32_t dimensions);

/* Protects all uses of the group, and the state of lanes. Does nothing unless several threads may make calls at the
 * same time. */
void job_lock(void);
void job_unlock(void);

/* Waits for a condition that another thread signals. The job must be locked. */
void job_wait(pthread_cond_t *condition);

/* Makes the job fail, because this process cannot make a call for which other processes wait. From now on all calls
 * of this process fail. After the last lanes_leave() the group is closed, which makes the calls of the other
 * processes fail. Only the first error is kept. The job must be locked. */
void job_fail(const struct torus_error *error);

/* Returns whether the job has failed, with its *error. The job must be locked. */
bool job_has_failed(struct torus_error *error);
