#include "client/mpi/requests/requests.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "client/mpi/calls/packing.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/errors.h"
#include "client/mpi/library/real.h"
#include "client/mpi/nodes/node_collectives.h"

struct request {
    struct request *next; /* in lists[] */
    MPI_Request handle;
    struct fiber *fiber;
    struct communicator *of;
    struct communicator copy; /* of *of, with numbers and a group of its own */
    struct arguments arguments;
    /* The types of the blocks that are received, and those of them that were duplicated (otherwise MPI_DATATYPE_NULL). */
    MPI_Datatype *types, *duplicates;
    uint32_t kept; /* number of these */
    struct served_call call;
    enum reason reason; /* once it has ended */
    _Atomic bool ended;
    bool has_handle, is_abandoned;
    /* In the set of a thread that waits for it. MPI may have freed its handle in this thread, and given it to another request,
     * perhaps one of its own. So other threads must not find this one. */
    bool is_in_set;
    struct request *next_in_set;
    int index; /* in the array of that set */
};

#define LISTS 256u /* a power of two */

_Atomic unsigned requests_count;

static struct request *lists[LISTS]; /* by a hash of the handle */
/* Protects the lists, and has_handle, is_abandoned and is_in_set of all requests. No function of MPI is called under it, because
 * MPI may call functions of this file under locks of its own. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- Handles --------------------------------------------------------------------------------- */

/* The lowest bits of handles are all the same: handles are numbers (MPICH) or pointers (Open MPI). */
static struct request **list_of(MPI_Request handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15);

    return &lists[bits >> 32 & (LISTS - 1)];
}

static struct request *find(MPI_Request handle)
{
    struct request *r = *list_of(handle);

    while (r != NULL && r->handle != handle)
        r = r->next;
    return r;
}

static void unlink_request(struct request *r)
{
    struct request **at = list_of(r->handle);

    while (*at != NULL && *at != r)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    *at = r->next;
    atomic_fetch_sub_explicit(&requests_count, 1, memory_order_relaxed);
}

/* If another request has this handle, MPI has freed that request, and another thread is about to release it. */
static void link_request(struct request *r)
{
    struct request **at = list_of(r->handle), *stale = find(r->handle);

    if (stale != NULL)
        unlink_request(stale);
    r->next = *at;
    *at = r;
    atomic_fetch_add_explicit(&requests_count, 1, memory_order_relaxed);
}

/* ---- Generalized requests -------------------------------------------------------------------- */

static int on_query(void *extra, MPI_Status *status)
{
    (void)extra;
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    (void)real.Status_set_elements(status, mpi.byte, 0);
    (void)real.Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int on_free(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int on_cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

/* ---- Running --------------------------------------------------------------------------------- */

static enum reason serve(struct served_call *t, const struct arguments *a)
{
    const struct blocks *send = &a->send, *receive = &a->receive;
    void *to = (void *)(uintptr_t)receive->at;

    switch (a->operation) {
    case OPERATION_Allgather:
    case OPERATION_Allgatherv:
        return serve_allgather(t, send, receive, a->same);
    case OPERATION_Alltoall:
    case OPERATION_Alltoallv:
    case OPERATION_Alltoallw:
        return serve_alltoall(t, send, receive, a->same);
    case OPERATION_Neighbor_allgather:
    case OPERATION_Neighbor_allgatherv:
        return serve_neighbors(t, send, receive, true, a->same);
    case OPERATION_Neighbor_alltoall:
    case OPERATION_Neighbor_alltoallv:
    case OPERATION_Neighbor_alltoallw:
        return serve_neighbors(t, send, receive, false, a->same);
    case OPERATION_Barrier:
        return serve_barrier(t);
    case OPERATION_Bcast:
        return serve_broadcast(t, to, receive->counts.each, receive->type, a->root);
    case OPERATION_Gather:
    case OPERATION_Gatherv:
        return serve_gather(t, send, receive, a->same, a->root);
    case OPERATION_Scatter:
    case OPERATION_Scatterv:
        return serve_scatter(t, send, receive, a->same, a->root);
    case OPERATION_Allreduce:
    case OPERATION_Reduce:
        if (a->operation == OPERATION_Reduce && a->root < 0)
            return REASON_ARGUMENTS;
        return serve_reduce(t, send->at, to, receive->counts.each, receive->type, a->op, a->root);
    case OPERATION_Reduce_scatter:
    case OPERATION_Reduce_scatter_block:
        return serve_reduce_scatter(t, send->at, to, &receive->counts, receive->type, a->op);
    default:
        return REASON_ARGUMENTS;
    }
}

/* Whether arguments.receive.type is significant at this rank. */
static bool receives(const struct request *r)
{
    switch (r->arguments.operation) {
    case OPERATION_Barrier:
        return false;
    case OPERATION_Gather:
    case OPERATION_Gatherv:
        return (uint32_t)r->arguments.root == r->copy.rank;
    case OPERATION_Scatter:
    case OPERATION_Scatterv:
        return r->arguments.receive.at != MPI_IN_PLACE;
    default:
        return true;
    }
}

/* Returns how many types arguments.receive has; 0: they are not significant at this rank. */
static uint32_t count_types(const struct request *r)
{
    if (!receives(r))
        return 0;
    if (r->arguments.receive.types == NULL)
        return 1;
    if (r->arguments.operation == OPERATION_Alltoallw)
        return r->copy.size;
    return r->copy.neighborhood != NULL ? r->copy.neighborhood->from.blocks : 0;
}

/* The program may free the types of the blocks that are received before they have arrived, so the call uses duplicates.
 * Returns 0, or -1 if memory is short. */
static int keep_types(struct request *r)
{
    struct blocks *blocks = &r->arguments.receive;
    const uint32_t count = count_types(r);
    struct datatype type;
    MPI_Datatype *its;

    if (count == 0)
        return 0;
    r->types = calloc(2 * (size_t)count, sizeof *r->types);
    if (r->types == NULL)
        return -1;
    r->duplicates = r->types + count;
    for (its = r->types; r->kept < count; r->kept++, its++) {
        const bool has_data = blocks->types == NULL || number_at(&blocks->counts, r->kept) > 0;
        *its = blocks->types != NULL ? blocks->types[r->kept] : blocks->type;
        r->duplicates[r->kept] = mpi.type_null;
        if (has_data && datatype_read(*its, &type) == 0 && !type.plain &&
            real.Type_dup(*its, &r->duplicates[r->kept]) == MPI_SUCCESS)
            *its = r->duplicates[r->kept];
    }
    if (blocks->types != NULL)
        blocks->types = r->types;
    else
        blocks->type = r->types[0];
    return 0;
}

static void free_types(struct request *r)
{
    for (uint32_t i = 0; i < r->kept; i++)
        if (r->duplicates[i] != mpi.type_null)
            (void)real.Type_free(&r->duplicates[i]);
    free(r->types);
}

/* The body of the fiber. */
static void run(void *context)
{
    struct request *r = context;

    if (keep_types(r) == 0)
        r->reason = serve(&r->call, &r->arguments);
    else
        r->reason = served_no_memory(&r->call);
    free_types(r);
    if (r->copy.wants_neighborhood) /* so the call ends in the thread that has begun it */
        r->of->wants_neighborhood = true;
}

static struct request *new_request(struct communicator *c, struct torus_group *group,
                                   const struct arguments *a)
{
    struct request *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->of = c;
    r->copy = *c;
    r->copy.group = group;
    r->copy.numbers = malloc(4 * (size_t)c->size * sizeof *c->numbers);
    r->arguments = *a;
    r->call = (struct served_call){.c = &r->copy,
                                   .operation = a->operation,
                                   .row = a->operation,
                                   .is_nonblocking = true,
                                   .has_lane = true};
    if (r->copy.numbers != NULL)
        return r;
    free(r);
    return NULL;
}

static void free_request(struct request *r)
{
    communicator_end_request(r->of);
    fiber_free(r->fiber);
    free(r->copy.numbers);
    free(r);
}

/* Completes the request for MPI, unless its handle is still to come. Another thread may release it from then on. */
static void on_ended(void *context)
{
    struct request *r = context;
    bool completes, frees;
    MPI_Request handle;

    lanes_leave();
    (void)pthread_mutex_lock(&mutex);
    handle = r->handle;
    completes = r->has_handle;
    frees = r->is_abandoned;
    if (frees)
        unlink_request(r);
    atomic_store(&r->ended, true);
    (void)pthread_mutex_unlock(&mutex);
    if (completes)
        (void)real.Grequest_complete(handle);
    if (frees)
        free_request(r);
}

static void wait_for(struct request *r)
{
    const uint64_t begin = job.statistics ? statistics_now() : 0;
    struct fibers_rest rest;

    if (atomic_load(&r->ended))
        return;
    torus_call_for(mpi_nonblocking_name(r->call.operation), r->copy.size);
    for (fibers_rest_begin(&rest, false); !atomic_load(&r->ended); fibers_progress())
        fibers_rest(r->fiber, &rest);
    if (begin != 0)
        statistics_add_time(r->call.operation, true, statistics_now() - begin);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

/* The call ends with a request that MPI completes by itself, or with an error. */
static void end_at_once(struct beginning *b, const struct served_call *t, MPI_Request *request)
{
    b->result = t->result;
    b->bytes = t->bytes;
    *request = mpi.request_null;
    if (t->raises)
        return;
    b->result = real.Grequest_start(on_query, on_free, on_cancel, NULL, request);
    if (b->result == MPI_SUCCESS)
        b->result = real.Grequest_complete(*request);
}

/* Gives the program a request for a call that is under way. Returns false if the call has ended, perhaps because this
 * function has waited for it. */
static bool hand_out(struct request *r, MPI_Request *request)
{
    bool has_ended;

    if (atomic_load(&r->ended))
        return false;
    if (real.Grequest_start(on_query, on_free, on_cancel, NULL, request) != MPI_SUCCESS) {
        wait_for(r);
        return false;
    }
    (void)pthread_mutex_lock(&mutex);
    has_ended = atomic_load(&r->ended);
    r->handle = *request;
    r->has_handle = true;
    link_request(r);
    (void)pthread_mutex_unlock(&mutex);
    if (has_ended)
        (void)real.Grequest_complete(*request);
    return true;
}

static void begin_in_lane(struct beginning *b, const struct arguments *a, struct communicator *c,
                          struct torus_group *group, MPI_Request *request)
{
    struct request *r = new_request(c, group, a);
    struct served_call lacking = {.c = c};

    lanes_enter();
    if (r != NULL)
        r->fiber = fiber_begin(run, on_ended, r, &c->line);
    if (r == NULL || r->fiber == NULL) {
        b->reason = served_no_memory(&lacking);
        end_at_once(b, &lacking, request);
        lanes_leave();
        if (r != NULL)
            free_request(r);
        else
            communicator_end_request(c);
        return;
    }
    if (hand_out(r, request)) {
        b->bytes = r->call.bytes;
        return;
    }
    b->reason = r->reason;
    if (b->reason == REASON_SERVED)
        end_at_once(b, &r->call, request);
    free_request(r);
}

static enum reason reason_of(const struct communicator *c)
{
    if (c == NULL)
        return REASON_ARGUMENTS;
    return c->reason == REASON_SERVED && c->several ? REASON_SEVERAL : c->reason;
}

bool requests_begin(struct beginning *b, const struct arguments *a, MPI_Comm comm,
                    MPI_Request *request, const void *return_address)
{
    struct served_call t = {.operation = a->operation, .row = a->operation, .is_nonblocking = true};
    struct torus_group *group;

    *b = (struct beginning){.operation = a->operation};
    if (__builtin_expect(!job_is_served, 0) || caller_is_mpi(return_address)) {
        if (real.Init == NULL)
            real_find();
        return false;
    }
    b->begin = job.statistics ? statistics_now() : 0;
    t.c = communicator_of(comm);
    b->reason = reason_of(t.c);
    if (b->reason != REASON_SERVED)
        return false;
    if (communicator_begin_request(t.c, &group)) {
        begin_in_lane(b, a, t.c, group, request);
    } else {
        b->reason = serve(&t, a); /* nothing, or a call without data */
        if (b->reason == REASON_SERVED)
            end_at_once(b, &t, request);
    }
    if (b->reason != REASON_SERVED)
        return false;
    if (b->begin != 0)
        statistics_add(a->operation, true, REASON_SERVED, b->bytes, statistics_now() - b->begin);
    if (b->result != MPI_SUCCESS)
        (void)real.Comm_call_errhandler(comm, b->result);
    return true;
}

int requests_left(const struct beginning *b, int result)
{
    if (b->begin != 0)
        statistics_add(b->operation, true, b->reason, b->bytes, statistics_now() - b->begin);
    return result;
}

/* ---- Sets ------------------------------------------------------------------------------------ */

bool requests_find(struct request_set *set, int count, const MPI_Request *array)
{
    struct request **at = &set->first;

    *set = (struct request_set){0};
    if (array == NULL)
        return false;
    (void)pthread_mutex_lock(&mutex);
    for (int i = 0; i < count; i++) {
        struct request *r = array[i] != mpi.request_null ? find(array[i]) : NULL;
        if (r == NULL || r->is_in_set) {
            set->others += array[i] != mpi.request_null;
            continue;
        }
        r->is_in_set = true;
        r->index = i;
        r->next_in_set = NULL;
        *at = r;
        at = &r->next_in_set;
    }
    (void)pthread_mutex_unlock(&mutex);
    return set->first != NULL;
}

void requests_wait(const struct request_set *set)
{
    fibers_progress();
    for (struct request *r = set->first; r != NULL; r = r->next_in_set)
        wait_for(r);
}

void requests_rest(const struct request_set *set, struct fibers_rest *rest)
{
    struct request *r = set->first;

    while (r != NULL && atomic_load(&r->ended))
        r = r->next_in_set;
    if (r == NULL)
        return;
    torus_call_for(mpi_nonblocking_name(r->call.operation), r->copy.size);
    fibers_rest(r->fiber, rest);
}

/* ---- Completing ------------------------------------------------------------------------------ */

/* Removes the request from its set and, if MPI has completed it, from the lists. Returns whether MPI has. */
static bool leave_set(struct request *r, const MPI_Request *array)
{
    const bool is_completed = array[r->index] == mpi.request_null;

    (void)pthread_mutex_lock(&mutex);
    if (is_completed)
        unlink_request(r);
    else
        r->is_in_set = false;
    (void)pthread_mutex_unlock(&mutex);
    return is_completed;
}

/* Frees the request. Returns the result of its call. Sets *comm, unless it is set, if the call has failed: its error
 * handler must be called. */
static int release(struct request *r, MPI_Comm *comm)
{
    const int result = r->call.result;

    if (result != MPI_SUCCESS && *comm == mpi.null)
        *comm = r->of->freed ? mpi.world : r->copy.handle;
    free_request(r);
    return result;
}

static int raise(MPI_Comm comm, int result)
{
    if (comm != mpi.null)
        (void)real.Comm_call_errhandler(comm, result);
    return result;
}

int requests_completed(struct request_set *set, const MPI_Request *array, int result)
{
    MPI_Comm comm = mpi.null;

    for (struct request *r = set->first, *next; r != NULL; r = next) {
        next = r->next_in_set;
        if (!leave_set(r, array))
            continue;
        const int code = release(r, &comm);
        result = code != MPI_SUCCESS ? code : result;
    }
    return raise(comm, result);
}

/* Stores the error of the request with this index. */
static void set_error(int index, int code, const int *indices, int count, MPI_Status *statuses)
{
    for (int k = 0; k < count; k++)
        if ((indices != NULL ? indices[k] : k) == index)
            statuses[k].MPI_ERROR = code;
}

int requests_completed_with(struct request_set *set, const MPI_Request *array, int result,
                            const int *indices, int count, MPI_Status *statuses)
{
    MPI_Comm comm = mpi.null;

    for (struct request *r = set->first, *next; r != NULL; r = next) {
        const int index = r->index;
        next = r->next_in_set;
        if (!leave_set(r, array))
            continue;
        const int code = release(r, &comm);
        if (code == MPI_SUCCESS)
            continue;
        if (statuses != MPI_STATUSES_IGNORE) {
            for (int k = 0; k < count && result == MPI_SUCCESS; k++)
                statuses[k].MPI_ERROR = MPI_SUCCESS;
            set_error(index, code, indices, count, statuses);
        }
        result = MPI_ERR_IN_STATUS;
    }
    return raise(comm, result);
}

void requests_abandon(struct request_set *set)
{
    struct request *r = set->first;
    bool frees;

    (void)pthread_mutex_lock(&mutex);
    frees = atomic_load(&r->ended);
    r->is_abandoned = true;
    r->is_in_set = false;
    if (frees)
        unlink_request(r);
    (void)pthread_mutex_unlock(&mutex);
    if (frees)
        free_request(r);
}
