/* The operations on neighborhoods: every rank exchanges blocks with its neighbors in the topology of the communicator. */
#include <string.h>

#include "client/mpi/calls/choosing.h"
#include "client/mpi/calls/collectives.h"
#include "client/mpi/calls/packing.h"
#include "client/mpi/job/job.h"
#include "client/mpi/nodes/node_collectives.h"

/* The blocks of a call in one direction. */
struct side {
    const struct edges *edges;
    const struct block_list *list;
    bool one;       /* there is one block, for all edges */
    size_t *bytes;  /* by place; room in c->numbers */
    size_t *offset; /* the same */
    size_t all;     /* bytes of all edges; SIZE_MAX: too many */
};

static uint32_t index_of(const struct side *s, uint32_t edge)
{
    return s->one ? 0 : s->edges->edge[edge].index;
}

static void find_sizes(const struct communicator *c, struct side *s)
{
    memset(s->bytes, 0, c->size * sizeof *s->bytes);
    s->all = 0;
    for (uint32_t e = 0; e < s->edges->count; e++) {
        const size_t bytes = block_bytes(s->list, index_of(s, e));
        if (__builtin_add_overflow(s->all, bytes, &s->all)) {
            s->all = SIZE_MAX;
            return;
        }
        s->bytes[s->edges->edge[e].place] += bytes;
    }
}

static bool is_packable(const struct side *s)
{
    for (uint32_t e = 0; e < s->edges->count; e++)
        if (!block_is_packable(s->list, index_of(s, e)))
            return false;
    return true;
}

/* ---- Exchanging ------------------------------------------------------------------------------ */

/* Stores the offsets of the blocks from the lowest address of one, which is returned. */
static char *find_offsets(const struct communicator *c, const struct side *s)
{
    uintptr_t least = UINTPTR_MAX;

    memset(s->offset, 0, c->size * sizeof *s->offset);
    for (uint32_t e = 0; e < s->edges->count; e++) {
        const uintptr_t at = (uintptr_t)block_at(s->list, index_of(s, e));
        if (s->bytes[s->edges->edge[e].place] > 0 && at < least)
            least = at;
    }
    if (least == UINTPTR_MAX)
        return NULL;
    for (uint32_t e = 0; e < s->edges->count; e++)
        if (s->bytes[s->edges->edge[e].place] > 0)
            s->offset[s->edges->edge[e].place] =
                (uintptr_t)block_at(s->list, index_of(s, e)) - least;
    return (char *)least;
}

/* Exchanges directly from and to the memory of the program. */
static enum reason exchange_directly(struct served_call *t, const struct side *send,
                                     const struct side *receive)
{
    const char *from = find_offsets(t->c, send);
    char *to = find_offsets(t->c, receive);
    struct torus_error error;
    int result =
        TORUS_CALL(&error, torus_start_alltoallv(t->c->group, from, send->bytes, send->offset, to,
                                                 receive->bytes, receive->offset, &call, &error));

    return served_result(t, result, &error);
}

/* Packs the blocks in the order of edges, or unpacks them. Returns MPI_SUCCESS or an error of MPI. */
static int move(const struct side *s, char *bytes, bool packs)
{
    int result = MPI_SUCCESS;

    for (uint32_t e = 0; e < s->edges->count && result == MPI_SUCCESS; e++) {
        const uint32_t index = index_of(s, e);
        result = packs ? block_pack(s->list, index, bytes) : block_unpack(s->list, index, bytes);
        bytes += block_bytes(s->list, index);
    }
    return result;
}

static enum reason exchange_packed(struct served_call *t, const struct side *send,
                                   const struct side *receive)
{
    char *out = scratch_alloc(send->all), *in = scratch_alloc(receive->all);
    struct torus_error error;
    enum reason reason;
    int code;

    if (out == NULL || in == NULL)
        reason = served_no_memory(t);
    else if ((code = move(send, out, true)) != MPI_SUCCESS)
        reason = served_code(t, code);
    else if (nodes_alltoall(t->c, out, send->bytes, in, receive->bytes, false, &error) != 0)
        reason = served_result(t, -1, &error);
    else
        reason = served_code(t, move(receive, in, false));
    scratch_free(in);
    scratch_free(out);
    return reason;
}

/* ---- Serving --------------------------------------------------------------------------------- */

/* Only neighbors have blocks of the same size. In a Cartesian topology these are all ranks. */
static enum reason serve(struct served_call *t, struct side *send, struct side *receive, bool same)
{
    const size_t mine = same ? block_bytes(send->list, 0) : 0;
    enum reason reason;

    find_sizes(t->c, send);
    find_sizes(t->c, receive);
    t->bytes = send->all;
    if (send->all == SIZE_MAX || receive->all == SIZE_MAX ||
        blocks_are_missing(send->list, send->all) ||
        blocks_are_missing(receive->list, receive->all))
        return REASON_ARGUMENTS;
    if (same && mine != block_bytes(receive->list, 0))
        return served_code(t, MPI_ERR_TRUNCATE);
    if (same ? block_is_too_large(mine) : !is_packable(send) || !is_packable(receive))
        return REASON_LARGE;
    if (same && mine == 0)
        return served_code(t, MPI_SUCCESS);
    reason = choose_way(t, same ? mine * receive->edges->blocks : BYTES_DIFFER);
    if (reason != REASON_SERVED)
        return reason;
    if (!t->c->several && send->list->plain && receive->list->plain && send->edges->single &&
        receive->edges->single)
        return exchange_directly(t, send, receive);
    return exchange_packed(t, send, receive);
}

enum reason serve_neighbors(struct served_call *t, const struct blocks *send,
                            const struct blocks *receive, bool one, bool same)
{
    struct communicator *c = t->c;
    enum reason reason = REASON_ARGUMENTS;
    struct block_list out, in;
    struct side to, from;
    int read;

    if (t->first)
        return REASON_FIRST;
    if (t->is_nonblocking && c->neighborhood == NULL) {
        c->wants_neighborhood = true;
        communicator_wants_lane(c);
        return REASON_LANE;
    }
    read = neighborhood_read(c);
    if (read != 0)
        return read < 0 ? served_no_memory(t) : REASON_ARGUMENTS;
    const struct neighborhood *n = c->neighborhood;
    if (ABI_REPEATED_NEIGHBORS_VARY && n->repeats && !one)
        return REASON_REPEATED;
    if (send->at == MPI_IN_PLACE || blocks_read(&out, send, one ? 1 : n->to.blocks) != 0)
        return REASON_ARGUMENTS;
    if (blocks_read(&in, receive, n->from.blocks) == 0) {
        to = (struct side){&n->to, &out, one, c->numbers, c->numbers + 2 * (size_t)c->size, 0};
        from = (struct side){&n->from, &in, false, to.bytes + c->size, to.offset + c->size, 0};
        reason = serve(t, &to, &from, same && n->is_cartesian);
        blocks_free(&in);
    }
    blocks_free(&out);
    return reason;
}
