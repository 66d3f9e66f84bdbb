/* Nonblocking calls that the torus carries out, and their requests. To MPI such a request is a generalized request, which
 * is completed here: so it can be converted for Fortran, and stand in arrays beside requests of MPI. MPI cannot complete
 * it by itself, so the functions that wait for requests are replaced (waiting.c). */
#pragma once

#include "client/mpi/calls/collectives.h"
#include "client/mpi/job/fibers.h"

/* The arguments of a nonblocking call. */
struct arguments {
    enum mpi_operation operation;
    struct blocks send,
        receive; /* receive only: Bcast. Reductions have their type and counts in `receive` */
    bool same;   /* as in serve_X() */
    int root;
    MPI_Op op;
};

/* How a nonblocking call was begun. */
struct beginning {
    enum mpi_operation operation;
    enum reason reason;
    uint64_t bytes, begin; /* `begin` 0: not counted */
    int result;
};

/* Begins the call. Returns whether the torus carries it out, with b->result; otherwise the caller calls the function of
 * the MPI library, and then requests_left(). */
bool requests_begin(struct beginning *b, const struct arguments *a, MPI_Comm comm,
                    MPI_Request *request, const void *return_address);
/* Counts a call that was left to MPI. Returns `result`. */
int requests_left(const struct beginning *b, int result);

struct request;

/* How many requests of this preload the program has. 0 in most programs, which then wait as without the preload. */
extern _Atomic unsigned requests_count;

/* The requests of this preload in an array of requests. */
struct request_set {
    struct request *first;
    int others; /* number of other requests, except null requests */
};

/* Finds the requests in an array. Returns whether there are any of this preload: then one of the functions below must end
 * the set. */
bool requests_find(struct request_set *set, int count, const MPI_Request *array);
/* Waits until all requests of the set have ended. */
void requests_wait(const struct request_set *set);
/* Waits for a moment, unless all requests of the set have ended. */
void requests_rest(const struct request_set *set, struct fibers_rest *rest);

/* Releases the requests of the set that MPI has replaced by MPI_REQUEST_NULL, because it has completed them. Calls the
 * error handler if calls have failed, and returns the result for the program: `result` is that of MPI. */
int requests_completed(struct request_set *set, const MPI_Request *array, int result);
/* The same for functions with several statuses: that of request i is statuses[i] or, if `indices` is not NULL, that one
 * for which indices[] has i. `statuses` has `count` entries or is MPI_STATUSES_IGNORE. */
int requests_completed_with(struct request_set *set, const MPI_Request *array, int result,
                            const int *indices, int count, MPI_Status *statuses);
/* The program frees the request of the set, which MPI does not allow for a collective call: it is released when the call
 * ends. */
void requests_abandon(struct request_set *set);
