/* The operations that combine vectors. */
#include <string.h>

#include "client/mpi/calls/choosing.h"
#include "client/mpi/calls/collectives.h"
#include "client/mpi/calls/combining.h"
#include "client/mpi/job/job.h"
#include "client/mpi/nodes/node_collectives.h"

/* Reads how the torus combines vectors of this type with this operator. Returns whether it can. */
static bool read_vector(struct vector *v, MPI_Datatype type, MPI_Op op)
{
    if (!reduction_of(type, op, &v->reduction))
        return false;
    v->type = type;
    v->op = op;
    v->type_size = v->reduction.parts * torus_type_size(v->reduction.type);
    return true;
}

static size_t bytes_of(const struct vector *v)
{
    return v->count * v->type_size;
}

/* ---- Reduce and allreduce -------------------------------------------------------------------- */

enum reason serve_reduce(struct served_call *t, const void *send, void *receive, int64_t count,
                         MPI_Datatype type, MPI_Op op, int root)
{
    struct communicator *c = t->c;
    const bool gets = root == ALL_RANKS || (uint32_t)root == c->rank;
    const void *from = send == MPI_IN_PLACE ? receive : send;
    struct torus_error error;
    void *copy = NULL;
    enum reason reason;
    struct vector v;
    int result;

    if (count < 0 || root < ALL_RANKS || (root >= 0 && (uint32_t)root >= c->size) ||
        (send == MPI_IN_PLACE && !gets))
        return REASON_ARGUMENTS;
    if (!read_vector(&v, type, op))
        return combine_reduce(t, send, receive, (size_t)count, type, op, root);
    v.count = (size_t)count;
    t->bytes = bytes_of(&v);
    if (count > 0 && (is_no_buffer(from) || (gets && is_no_buffer(receive))))
        return REASON_ARGUMENTS;
    if (count == 0)
        return served_code(t, MPI_SUCCESS);
    reason = choose_way(t, t->bytes);
    if (reason != REASON_SERVED)
        return reason;
    if (gets && send != MPI_IN_PLACE && areas_overlap(send, t->bytes, receive, t->bytes)) {
        if (ABI_ALIAS_IS_ERROR && send == receive)
            return REASON_ARGUMENTS;
        copy = scratch_alloc(t->bytes);
        if (copy == NULL)
            return served_no_memory(t);
        from = memcpy(copy, send, t->bytes);
    }
    result = nodes_reduce(c, &v, from, gets ? receive : NULL,
                          root == ALL_RANKS ? PLACE_ALL : c->place_of[root], &error);
    scratch_free(copy);
    return served_result(t, result, &error);
}

/* ---- Reduce-scatter -------------------------------------------------------------------------- */

enum reason serve_reduce_scatter(struct served_call *t, const void *send, void *receive,
                                 const struct numbers *counts, MPI_Datatype type, MPI_Op op)
{
    struct communicator *c = t->c;
    size_t *of_place = c->numbers, *begin = of_place + c->size, mine;
    const void *from = send == MPI_IN_PLACE ? receive : send;
    struct torus_error error;
    void *copy = NULL;
    enum reason reason;
    struct vector v;
    int result;

    if (!read_vector(&v, type, op))
        return combine_reduce_scatter(t, send, receive, counts, type, op);
    v.count = read_counts(c, counts, of_place, begin);
    mine = of_place[c->place_of[c->rank]] * v.type_size;
    if (v.count == SIZE_MAX ||
        (v.count > 0 && (is_no_buffer(from) || (mine > 0 && is_no_buffer(receive)))))
        return REASON_ARGUMENTS;
    t->bytes = bytes_of(&v);
    if (v.count == 0)
        return served_code(t, MPI_SUCCESS);
    if (ABI_ALIAS_IS_ERROR && send == receive && mine > 0)
        return REASON_ARGUMENTS;
    reason = choose_way(t, t->bytes);
    if (reason != REASON_SERVED)
        return reason;
    if (!c->in_order || (send != MPI_IN_PLACE && areas_overlap(send, t->bytes, receive, mine))) {
        copy = scratch_alloc(t->bytes);
        if (copy == NULL)
            return served_no_memory(t);
        put_in_order(c, v.type_size, of_place, begin, from, copy);
        from = copy;
    }
    result = nodes_reduce_scatter(c, &v, from, receive, of_place, &error);
    scratch_free(copy);
    return served_result(t, result, &error);
}
