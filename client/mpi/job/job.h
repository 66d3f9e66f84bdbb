/* The processes of MPI_COMM_WORLD on the torus. Whether the torus can serve them is decided once, in MPI_Init: the
 * processes open a group together, which succeeds if every node has a daemon and the same number of processes, all
 * with this preload. From then on every process knows the nodes of all processes, which determine the communicators
 * that are served. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <torus/group.h>

#include "client/mpi/library/abi.h"
#include "client/mpi/library/operations.h"

#define JOB_DIMS 8u

/* How the way of a call is chosen. */
enum job_ways {
    WAYS_FASTER, /* by time (job/choice.h) */
    WAYS_FIXED,  /* by the table that was read (known.h) */
    WAYS_TORUS,  /* always the torus */
};

struct job_process {
    uint32_t node;  /* of the torus */
    uint32_t leads; /* this process is the leader of its node: it has opened the group */
};

#define JOB_NAME_SIZE 32u

struct job {
    char name[JOB_NAME_SIZE]; /* of its group; those of other groups begin with it */
    unsigned dims;
    uint32_t size[JOB_DIMS];
    uint32_t nodes, per_node;
    uint32_t node;               /* of this process */
    uint32_t rank, processes;    /* rank of this process in MPI_COMM_WORLD, and its size */
    struct job_process *process; /* by rank */
    bool
        threaded; /* MPI_THREAD_MULTIPLE in at least one process: lanes have owners (communicator.h) */
    bool has_starter; /* a thread of the preload starts nonblocking calls (fibers.h) */
    bool verbose, statistics;
    enum job_ways ways;           /* the same in all processes */
    uint32_t late_ms;             /* as in struct settings */
    bool leads;                   /* this process is the leader of its node */
    bool refused[1u << JOB_DIMS]; /* by dimensions: parts whose links are down */
    /* A duplicate of MPI_COMM_WORLD for messages of the preload. It is the only communicator that the preload creates,
     * so that the program can have all others that MPI allows. It returns errors. */
    MPI_Comm messages;
};

#define JOB_UNUSED_TAG 0 /* no message is ever sent with this tag on job.messages */
#define JOB_FIRST_TAG 1
#define JOB_NUMBERS_MOST (UINT32_C(1) << 24) /* own groups of a process, which need a tag each */

extern struct job job;

/* The torus serves this program (opening.c). False until MPI_Init has ended. */
extern bool job_is_served;

/* Called once, after the MPI_Init of the MPI library. Fills in `job`, and sets `job_is_served` until MPI_Finalize
 * begins. If the torus cannot serve the program, one of its processes prints the reason on standard error. */
void opening_begin(void);

/* For a set of dimensions that are longer than 1, return whether they are all such dimensions of the torus; whether
 * there can be a part with them; whether they are the whole torus or an open part. The same on all ranks. */
bool job_is_all(uint32_t dimensions);
bool job_is_part(uint32_t dimensions);
bool job_has_part(uint32_t dimensions);
/* Returns whether several threads may make calls at the same time. */
static inline bool job_has_threads(void)
{
    return job.threaded || job.has_starter;
}

/* Protects all uses of the group, and the state of lanes. Does nothing unless there are several threads. */
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

/* Makes calls of libtorus, and waits for them while MPI makes progress. */

/* Evaluates `start`, a torus_start_X() that stores its call in `call`, and waits until the call has ended. Meanwhile
 * MPI makes progress, because other processes may need messages from this process before they can make their call.
 * Returns 0, or -1 with *error. Example: TORUS_CALL(error, torus_start_barrier(group, &call, error)) */
#define TORUS_CALL(error, start) TORUS_START(error, start, torus_call_end(started, call, error))

/* The same for a call that gives this process no result and only sends `bytes` bytes at `from`. If possible, returns
 * without waiting. If the call fails later, so do later calls. */
#define TORUS_SEND(error, from, bytes, start)                                                      \
    TORUS_START(error, start, torus_call_leave(started, call, from, bytes, error))

#define TORUS_START(error, start, end)                                                             \
    __extension__({                                                                                \
        struct torus_call *call = NULL;                                                            \
        int started;                                                                               \
        do {                                                                                       \
            started = torus_call_begin(error);                                                     \
            if (started == 0)                                                                      \
                started = (start);                                                                 \
        } while (torus_call_retries(started, error));                                              \
        end;                                                                                       \
    })

/* Locks the job. Returns 0, or -1 with *error if its group has failed. */
int torus_call_begin(struct torus_error *error);
/* Returns whether to start the call again, because other threads have too many calls under way. If so, this function
 * has unlocked the job and waited for a moment. */
bool torus_call_retries(int started, const struct torus_error *error);
/* Unlocks the job, and waits for the call if it was started. Returns 0, or -1 with *error. */
int torus_call_end(int started, struct torus_call *call, struct torus_error *error);
/* The same, but leaves the call under way if libtorus has copied its few bytes. */
int torus_call_leave(int started, struct torus_call *call, const void *from, size_t bytes,
                     struct torus_error *error);
/* Returns whether all calls that were left have ended. The job must be locked. */
bool torus_calls_left_have_ended(void);
/* Waits until they have. */
void torus_calls_await_left(void);
/* The groups of these calls are about to be closed. */
void torus_calls_forget_left(void);
/* Looks whether a call has ended: 0, 1, or -1 with *error, also if the job has failed. After 1 and -1 it is freed. */
int torus_call_poll(struct torus_call *call, struct torus_error *error);
/* Lets MPI make progress. Returns whether it was busy. */
bool torus_call_progress_mpi(void);
/* If a call that has taken that many nanoseconds is late, prints which nodes it waits for. If several processes wait,
 * libtorus informs only one of them. Returns whether a line was printed. */
bool torus_call_print_late(const struct torus_call *call, uint64_t taken);
/* Sets the name of the function and the number of ranks of this thread's next calls, for messages about late calls. */
void torus_call_for(const char *function, uint32_t ranks);

/* Lanes: the groups of torusd that a leader has open, each with its parts. The whole torus and each part have an
 * order of calls in a lane. There is one lane; under MPI_THREAD_MULTIPLE there is another one if communicators use
 * the torus at the same time (communicator.h). Processes that are not leaders have no lanes. */

#define LANES_MOST 2u

/* Open lane 0, and then its parts. lanes_complete() may be called when lanes_open() has succeeded, which means on all
 * nodes. It returns when all leaders have called it. A part whose links are down is not opened on any node, which is
 * not an error. Return 0, or -1 with *error. */
int lanes_open(uint32_t timeout_ms, struct torus_error *error);
int lanes_complete(struct torus_error *error);
/* Opens another lane while MPI makes progress. Returns 0, or -1 with *error. Afterwards lanes_keep_another() makes the
 * lane usable, or lanes_close_another() closes it; also after -1. */
int lanes_open_another(struct torus_error *error);
/* For these two functions and the next two the job must be locked. */
void lanes_keep_another(void);
void lanes_close_another(void);
/* Opens a communicator's own group, of these nodes, at its leader on this node, while MPI makes progress. `first` is the
 * lowest of the ranks that lead its nodes, and `number` differs from the numbers of all other groups with this rank.
 * Returns 0 with *group, or -1 with *error. */
int lanes_open_own(uint32_t first, uint32_t number, const uint32_t *nodes, uint32_t count,
                   struct torus_group **group, struct torus_error *error);
/* The job must be locked for the next two functions, too. */
/* Returns whether there is room for another such group in this process. */
bool lanes_have_room_for_own(void);
/* Closes it as soon as no call is under way that was left; NULL, or closed with the lanes: does nothing. */
void lanes_close_own(struct torus_group *group);
/* Returns the number of open lanes. */
unsigned lanes_count(void);
/* Returns the group of a lane for a part of the torus or the whole torus, or NULL if there is none. */
struct torus_group *lanes_part(unsigned lane, uint32_t dimensions);
/* Closes all lanes and the scratch memory. */
void lanes_close(void);
/* Call these before and after an operation of MPI that the torus carries out; the job must not be locked. If the job
 * has failed, the last lanes_leave() closes the lanes. */
void lanes_enter(void);
void lanes_leave(void);

/* Temporary memory for blocks that are packed or put in order. In a leader, the memory is shared with the daemon if
 * possible, so that libtorus does not copy the blocks again. Freed memory is kept for later calls. */

struct torus_group;

/* Allocates `bytes` of memory, which may be 0. The caller frees it with scratch_free(). Returns NULL only if memory
 * is short. */
void *scratch_alloc(size_t bytes);

void scratch_free(void *memory); /* NULL does nothing */
/* Returns whether the address is in such memory. The job must be locked. */
bool scratch_has(const void *at);

/* From now on, until scratch_forget(), new memory is shared memory of this group. */
void scratch_share(struct torus_group *group);
/* Frees all memory, because the group is about to be closed. No memory may be in use. */
void scratch_forget(void);
