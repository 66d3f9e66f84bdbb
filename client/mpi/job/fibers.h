/* Nonblocking calls. The body of a *fiber* is the code of the blocking call, on a stack of its own: where that code would
 * wait for the torus, the fiber returns to the program. It continues when the program waits for it, or calls another
 * function that makes progress. Bodies call MPI only for what does not wait, such as packing. The start of a call may also
 * come in a thread of the preload. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <torus/group.h>

/* Fibers with the same line start their calls of the torus in the order in which they were begun. */
struct fiber_line {
    uint32_t unstarted; /* fibers that have not started their call */
    uint64_t stuck;     /* the pass in which the first of them could not */
};

struct fiber;

/* Runs body(context) until it ends or waits. `ended` is called when it has ended, perhaps in this call, and in another
 * thread. It must not use fibers, except that it may call fiber_free(). Returns the fiber, or NULL if memory is short. */
struct fiber *fiber_begin(void (*body)(void *context), void (*ended)(void *context), void *context,
                          struct fiber_line *line);
/* From now on no thread of the preload continues fibers. */
void fibers_end(void);
/* Frees a fiber that has ended; NULL does nothing. */
void fiber_free(struct fiber *f);

/* Continues all fibers that can. Costs next to nothing if there are none. */
void fibers_progress(void);
/* Makes progress until all fibers of the line have started their calls. */
void fibers_start(struct fiber_line *line);

/* A wait of a thread, from fibers_rest_begin() on. */
struct fibers_rest {
    uint64_t begin; /* nanoseconds */
    bool mixed;     /* requests of MPI are waited for as well: rests are short */
    bool busy;      /* MPI was busy in the last rest */
    bool printed;   /* the wait is late, and that was printed */
};

void fibers_rest_begin(struct fibers_rest *rest, bool mixed);
/* Waits for a moment, or until the call of fiber `f` has ended, and lets MPI make progress. */
void fibers_rest(struct fiber *f, struct fibers_rest *rest);

/* For torus_call_begin() and the functions after it. Outside of fibers they do nothing. */

/* Returns whether the caller is in a fiber. */
bool fiber_is_here(void);
/* Waits until earlier calls of the line have been started. */
void fiber_await_turn(void);
/* The call could not be started, because others are under way: waits before the next attempt. */
void fiber_lose_turn(void);
/* The call has been started, or has failed. */
void fiber_has_started(void);
/* Waits until a thread of the program continues the fiber: what follows calls MPI. */
void fiber_leave_starter(void);
/* Waits for the call: 1, or -1 with *error. */
int fiber_await_call(struct torus_call *call, struct torus_error *error);
