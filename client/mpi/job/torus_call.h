/* Calls of the torus, and waiting for them. */
#ifndef TORUSD_MPI_TORUS_CALL_H
#define TORUSD_MPI_TORUS_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <torus/group.h>

#include "client/mpi/library/operations.h"

/* Makes a call of the torus that `start`, a torus_start_X(), begins, and waits until it has
 * ended. Meanwhile MPI makes progress: messages for which other processes wait before they make
 * this call may pass through this process. Returns 0, or -1 with *error. Example:
 * TORUS_CALL(error, torus_start_barrier(group, &call, error)) */
#define TORUS_CALL(error, start)                                                                   \
    __extension__({                                                                                \
        struct torus_call *call = NULL;                                                            \
        int started;                                                                               \
        do {                                                                                       \
            started = torus_call_begin(error);                                                     \
            if (started == 0)                                                                      \
                started = (start);                                                                 \
        } while (torus_call_is_for_later(started, error));                                         \
        torus_call_end(started, call, error);                                                      \
    })

/* Says what this thread's next calls of the torus are for, for messages about calls that wait
 * for long. */
void torus_call_for(enum operation operation, uint32_t ranks);

/* Locks the job. Returns 0, or -1 with *error if its group has failed. */
int torus_call_begin(struct torus_error *error);
/* Whether the call could not start because other threads have as many calls under way as there
 * can be. If so, this has unlocked the job, and waited for a little. */
bool torus_call_is_for_later(int started, const struct torus_error *error);
/* Unlocks the job, and waits for the call. */
int torus_call_end(int started, struct torus_call *call, struct torus_error *error);

/* Lets MPI make progress. Returns whether MPI seems to have had something to do. */
bool torus_call_let_mpi_go_on(void);

#endif
