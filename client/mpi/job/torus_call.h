/* Makes calls of libtorus, and waits for them while MPI makes progress. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <torus/group.h>

#include "client/mpi/library/operations.h"

/* Evaluates `start`, a torus_start_X() that stores its call in `call`, and waits until the call has ended. Meanwhile
 * MPI makes progress, because other processes may need messages from this process before they can make their call.
 * Returns 0, or -1 with *error. Example: TORUS_CALL(error, torus_start_barrier(group, &call, error)) */
#define TORUS_CALL(error, start)                                                                   \
    __extension__({                                                                                \
        struct torus_call *call = NULL;                                                            \
        int started;                                                                               \
        do {                                                                                       \
            started = torus_call_begin(error);                                                     \
            if (started == 0)                                                                      \
                started = (start);                                                                 \
        } while (torus_call_retries(started, error));                                              \
        torus_call_end(started, call, error);                                                      \
    })

/* Sets the operation and the number of ranks of this thread's next calls, for messages about late calls. */
void torus_call_for(enum operation operation, uint32_t ranks);

/* Locks the job. Returns 0, or -1 with *error if its group has failed. */
int torus_call_begin(struct torus_error *error);

/* Returns whether to start the call again, because other threads have too many calls under way. If so, this function
 * has unlocked the job and waited for a moment. */
bool torus_call_retries(int started, const struct torus_error *error);

/* Unlocks the job, and waits for the call if it was started. Returns 0, or -1 with *error. */
int torus_call_end(int started, struct torus_call *call, struct torus_error *error);

/* Lets MPI make progress. Returns whether MPI seems to have been busy. */
bool torus_call_progress_mpi(void);
