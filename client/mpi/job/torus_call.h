/* Calls of the torus, and memory for them. */
#ifndef TORUSD_MPI_TORUS_CALL_H
#define TORUSD_MPI_TORUS_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <torus/group.h>

#include "client/mpi/library/operations.h"

/* Makes a call of the torus that `start`, a torus_start_X(), begins, and waits until it has ended.
 * Meanwhile MPI goes on: what others wait for before they make this call may be on its way through
 * this process. Returns 0, or -1 with *error.
 *     TORUS_CALL(error, torus_start_barrier(group, &call, error)) */
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

/* What this thread's next calls of the torus are for, to be said if they wait for long. */
void torus_call_for(enum operation operation, uint32_t ranks);

/* Locks the job. Returns 0, or -1 with *error if its group has failed. */
int torus_call_begin(struct torus_error *error);
/* Whether it could not be started because other threads have as many under way as there can be. Then
 * it has unlocked the job, and waited for a little. */
bool torus_call_is_for_later(int started, const struct torus_error *error);
/* Unlocks it. */
int torus_call_end(int started, struct torus_call *call, struct torus_error *error);

/* Lets MPI make progress. Returns whether it seems to have had something to do. */
bool torus_call_let_mpi_go_on(void);

#endif
