/* The functions of MPI that the preload defines. C programs call MPI_X and some Fortran bindings call PMPI_X, so both
 * names are exported. The function of the MPI library is found by its PMPI name. Calls that the MPI library itself
 * makes are passed on to it. */
#include "client/mpi/calls/choosing.h"
#include "client/mpi/calls/collectives.h"
#include "client/mpi/calls/packing.h"
#include "client/mpi/communicators/communicator.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/real.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Serving --------------------------------------------------------------------------------- */

struct call {
    struct served_call served;
    enum reason reason;
    uint64_t begin; /* 0: statistics are off */
};

/* Begins a call. Returns whether the torus may carry it out. If not, the caller calls the function of the MPI library
 * (which may call an error handler that does not return), and then leave(). */
static bool enter(struct call *call, enum mpi_operation operation, MPI_Comm comm,
                  const void *return_address)
{
    struct communicator *c;

    if (__builtin_expect(!job_is_served, 0) || caller_is_mpi(return_address)) {
        if (real.Init == NULL)
            real_find();
        call->begin = UINT64_MAX;
        return false;
    }
    call->begin = job.statistics ? statistics_now() : 0;
    c = communicator_of(comm);
    call->reason = c != NULL ? communicator_enter(c) : REASON_ARGUMENTS;
    call->served = (struct served_call){.c = c,
                                        .operation = operation,
                                        .row = operation,
                                        .first = c != NULL && communicator_is_new(c)};
    if (call->reason == REASON_SERVED)
        torus_call_for(mpi_operation_name(operation), c->size);
    return call->reason == REASON_SERVED;
}

/* Ends a call. The error handler is called last, because it may make another call, or may not return. */
static int leave(struct call *call, int result)
{
    if (call->begin == UINT64_MAX)
        return result;
    choose_ended(&call->served);
    if (call->begin != 0)
        statistics_add(call->served.operation, false, call->reason, call->served.bytes,
                       statistics_now() - call->begin);
    if (call->served.raises)
        (void)real.Comm_call_errhandler(call->served.c->handle, result);
    return result;
}

/* Remembers a call that stays with MPI, and is not timed. The types and operators for which torusd has operations of its
 * own are those that MPI defines. */
static void remember(const struct call_kind *kind, const struct served_call *t)
{
    const bool is_barrier = t->operation == OPERATION_Barrier;

    if (t->sample == NULL && t->row == t->operation &&
        (is_barrier || kind->op != (MPI_Op)0 || datatype_is_predefined(kind->type)))
        call_remember(t->operation, kind, t->c, t->choice);
}

/* Remembers a call after an enter() that has returned false, whatever its type and operator. Returns false. */
static bool remember_unserved(const struct call_kind *kind, const struct call *call)
{
    if (kind != NULL && call->begin != UINT64_MAX && call->served.c != NULL)
        call_remember(call->served.operation, kind, call->served.c, &staying_unserved);
    return false;
}

/* Records the reason after a serve_X(). Returns whether the torus has carried out the call. */
static bool serve(struct call *call, const struct call_kind *kind, enum reason reason)
{
    lanes_leave();
    communicator_leave(call->served.c);
    call->reason = reason;
    if (kind != NULL && reason == REASON_FASTER)
        remember(kind, &call->served);
    return reason == REASON_SERVED;
}

/* Carries out the operation on the torus with `take`, or by the function of the MPI library, `otherwise`. */
#define CARRY_OUT(its_operation, comm, kind, take, otherwise)                                      \
    do {                                                                                           \
        struct call call;                                                                          \
        struct served_call *t = &call.served;                                                      \
        if (enter(&call, its_operation, comm, __builtin_return_address(0))                         \
                ? (lanes_enter(), serve(&call, kind, take))                                        \
                : remember_unserved(kind, &call))                                                  \
            return leave(&call, t->result);                                                        \
        return leave(&call, otherwise);                                                            \
    } while (0)
#define INTERCEPT(its_operation, comm, take, otherwise)                                            \
    CARRY_OUT(its_operation, comm, NULL, take, otherwise)

/* The same for calls whose way follows from one count, type and operator. */
#define INTERCEPT_KIND(its_operation, its_comm, its_count, its_type, its_op, take, otherwise)      \
    do {                                                                                           \
        const struct call_kind kind = {.caller = __builtin_return_address(0),                      \
                                       .comm = (its_comm),                                         \
                                       .type = (its_type),                                         \
                                       .op = (its_op),                                             \
                                       .count = (int64_t)(its_count)};                             \
        if (call_stays(its_operation, &kind))                                                      \
            return otherwise;                                                                      \
        CARRY_OUT(its_operation, its_comm, &kind, take, otherwise);                                \
    } while (0)
#define NO_TYPE ((MPI_Datatype)0)
#define NO_OP ((MPI_Op)0)

/* Exports PMPI_X also as MPI_X. */
#define ALSO_AS_MPI(name) __attribute__((alias("PMPI_" #name))) __typeof__(MPI_##name) MPI_##name

/* ---- Beginning ------------------------------------------------------------------------------- */

static int end_of_init(int result, bool by_mpi)
{
    struct communicator *world;

    if (result != MPI_SUCCESS || by_mpi)
        return result;
    opening_begin();
    world = job_is_served && job.threaded ? communicator_of(mpi.world) : NULL;
    if (world != NULL)
        sharing_begin(world);
    return result;
}

int PMPI_Init(int *argc, char ***argv)
{
    real_find();
    return end_of_init(real.Init(argc, argv), CALLED_BY_MPI());
}
ALSO_AS_MPI(Init);

int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    real_find();
    return end_of_init(real.Init_thread(argc, argv, required, provided), CALLED_BY_MPI());
}
ALSO_AS_MPI(Init_thread);

/* ---- Operations ------------------------------------------------------------------------------ */

int PMPI_Barrier(MPI_Comm comm)
{
    INTERCEPT_KIND(OPERATION_Barrier, comm, 0, NO_TYPE, NO_OP, serve_barrier(t),
                   real.Barrier(comm));
}
ALSO_AS_MPI(Barrier);

#define NAME(name) name
#define PNAME(name) PMPI_##name
#define COUNT int
#define DISPLACEMENT int
#include "client/mpi/calls/intercept_counts.h"

#if ABI_LARGE_COUNTS
#undef NAME
#undef PNAME
#undef COUNT
#undef DISPLACEMENT
#define NAME(name) name##_c
#define PNAME(name) PMPI_##name##_c
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#include "client/mpi/calls/intercept_counts.h"
#endif
