/* Operations that combine vectors. */
#include <string.h>

#include "client/mpi/calls/collectives.h"
#include "client/mpi/calls/datatype.h"
#include "client/mpi/job/scratch.h"
#include "client/mpi/nodes/nodes.h"

/* Reads how the torus combines vectors of this type with this operator. Returns REASON_SERVED if it can. Invalid
 * arguments are left to the MPI library, which reports them. */
static enum reason read_vector(struct vector *v, MPI_Datatype type, MPI_Op op)
{
    bool by_operator;

    if (!reduction_of(type, op, &v->reduction, &by_operator))
        return by_operator ? REASON_OPERATOR : REASON_TYPE;
    v->type = type;
    v->op = op;
    v->type_size = v->reduction.parts * torus_type_size(v->reduction.type);
    return REASON_SERVED;
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
    struct vector v;
    enum reason reason = read_vector(&v, type, op);
    int result;

    if (reason != REASON_SERVED)
        return reason;
    if (count < 0 || root < ALL_RANKS || (root >= 0 && (uint32_t)root >= c->size) ||
        (send == MPI_IN_PLACE && !gets))
        return REASON_ARGUMENTS;
    v.count = (size_t)count;
    t->bytes = bytes_of(&v);
    if (count > 0 && (is_no_buffer(from) || (gets && is_no_buffer(receive))))
        return REASON_ARGUMENTS;
    if (count == 0)
        return served_code(t, MPI_SUCCESS);
    if (served_is_short(t, t->bytes))
        return REASON_FIRST;
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

/* Stores the number of elements of each rank, by place, and the first element of each rank, by rank. Returns the number
 * of all elements, or SIZE_MAX if a count is invalid. */
static size_t read_counts(const struct communicator *c, const struct numbers *counts,
                          size_t *of_place, size_t *begin)
{
    size_t all = 0;

    for (uint32_t r = 0; r < c->size; r++) {
        int64_t count = number_at(counts, r);
        if (count < 0)
            return SIZE_MAX;
        begin[r] = all;
        of_place[c->place_of[r]] = (size_t)count;
        if (__builtin_add_overflow(all, (size_t)count, &all))
            return SIZE_MAX;
    }
    return all;
}

/* Copies the vector so that the elements of the ranks are in the order of places. */
static void put_in_order(const struct communicator *c, const struct vector *v,
                         const size_t *of_place, const size_t *begin, const void *from, char *to)
{
    for (uint32_t place = 0; place < c->size; place++) {
        size_t bytes = of_place[place] * v->type_size;
        if (bytes > 0)
            memcpy(to, (const char *)from + begin[c->rank_at[place]] * v->type_size, bytes);
        to += bytes;
    }
}

enum reason serve_reduce_scatter(struct served_call *t, const void *send, void *receive,
                                 const struct numbers *counts, MPI_Datatype type, MPI_Op op)
{
    struct communicator *c = t->c;
    size_t *of_place = c->numbers, *begin = of_place + c->size, mine;
    const void *from = send == MPI_IN_PLACE ? receive : send;
    struct torus_error error;
    void *copy = NULL;
    struct vector v;
    enum reason reason = read_vector(&v, type, op);
    int result;

    if (reason != REASON_SERVED)
        return reason;
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
    if (served_is_short(t, t->bytes))
        return REASON_FIRST;
    if (!c->in_order || (send != MPI_IN_PLACE && areas_overlap(send, t->bytes, receive, mine))) {
        copy = scratch_alloc(t->bytes);
        if (copy == NULL)
            return served_no_memory(t);
        put_in_order(c, &v, of_place, begin, from, copy);
        from = copy;
    }
    result = nodes_reduce_scatter(c, &v, from, receive, of_place, &error);
    scratch_free(copy);
    return served_result(t, result, &error);
}
