/* The operations that move blocks, and the barrier. */
#include "client/mpi/calls/collectives.h"

#include <string.h>

#include "client/mpi/calls/choosing.h"
#include "client/mpi/calls/packing.h"
#include "client/mpi/job/job.h"
#include "client/mpi/library/errors.h"
#include "client/mpi/nodes/node_collectives.h"

enum reason served_result(struct served_call *t, int result, const struct torus_error *error)
{
    t->result = result == 0 ? MPI_SUCCESS : failure_of_torus(error);
    t->raises = result != 0;
    return REASON_SERVED;
}

enum reason served_code(struct served_call *t, int code)
{
    t->result = code;
    t->raises = code != MPI_SUCCESS;
    return REASON_SERVED;
}

enum reason served_no_memory(struct served_call *t)
{
    struct torus_error error;
    int result = node_lacks_memory(t->c, &error);

    return served_result(t, result, &error);
}

/* Returns whether MPICH rejects the buffers because they begin at the same address with the same arguments. With
 * different arguments, the displacements or (at MPI_BOTTOM) the types may keep the blocks apart. */
static bool is_alias(const struct block_list *send, const struct block_list *receive, size_t bytes)
{
    const struct blocks *a = send->blocks, *b = receive->blocks;

    return ABI_ALIAS_IS_ERROR && send != receive && bytes > 0 && a->at == b->at &&
           a->counts.array == b->counts.array && a->types == b->types && a->type == b->type;
}

/* ---- All to all ------------------------------------------------------------------------------ */

/* Exchanges directly from and to the memory of the program. In place, libtorus copies the blocks that it sends. */
static int alltoall_directly(const struct communicator *c, const struct block_list *send,
                             const struct block_list *receive, const size_t *send_bytes,
                             const size_t *receive_bytes, bool same, struct torus_error *e)
{
    const bool in_place = send == receive;
    size_t *send_offset = c->numbers + 2 * (size_t)c->size, *receive_offset = send_offset + c->size;
    char *from, *to;

    if (same)
        return TORUS_CALL(e, torus_start_alltoall(c->group,
                                                  in_place ? TORUS_IN_PLACE : send->blocks->at,
                                                  block_at(receive, 0), send_bytes[0], &call, e));
    blocks_offsets(send, c, send_bytes, &from, send_offset);
    blocks_offsets(receive, c, receive_bytes, &to, receive_offset);
    return TORUS_CALL(e, torus_start_alltoallv(c->group, in_place ? TORUS_IN_PLACE : from,
                                               send_bytes, send_offset, to, receive_bytes,
                                               receive_offset, &call, e));
}

/* Exchanges copies of the blocks, packed in the order of places. */
static enum reason alltoall_packed(struct served_call *t, const struct block_list *send,
                                   const struct block_list *receive, size_t sent, size_t received,
                                   bool same)
{
    const size_t *send_bytes = t->c->numbers, *receive_bytes = send_bytes + t->c->size;
    char *out = scratch_alloc(sent), *in = scratch_alloc(received);
    struct torus_error error;
    enum reason reason;
    int code;

    if (out == NULL || in == NULL) {
        reason = served_no_memory(t);
    } else if ((code = blocks_pack(send, t->c, out)) != MPI_SUCCESS) {
        reason = served_code(t, code);
    } else if (nodes_alltoall(t->c, out, send_bytes, in, receive_bytes, same, &error) != 0) {
        reason = served_result(t, -1, &error);
    } else {
        reason = served_code(t, blocks_unpack(receive, t->c, in));
    }
    scratch_free(in);
    scratch_free(out);
    return reason;
}

static enum reason alltoall_of(struct served_call *t, const struct block_list *send,
                               const struct block_list *receive, bool same)
{
    struct communicator *c = t->c;
    size_t *send_bytes = c->numbers, *receive_bytes = send_bytes + c->size;
    size_t sent = blocks_sizes(send, c, send_bytes);
    size_t received = blocks_sizes(receive, c, receive_bytes);
    struct torus_error error;
    enum reason reason;

    t->bytes = sent;
    if (sent == SIZE_MAX || received == SIZE_MAX || blocks_are_missing(send, sent) ||
        blocks_are_missing(receive, received))
        return REASON_ARGUMENTS;
    if (same && sent != received)
        return served_code(t, MPI_ERR_TRUNCATE);
    /* All ranks should decide alike. Sizes differ between ranks, but types are unlikely to differ. */
    if (same ? block_is_too_large(send_bytes[0])
             : !blocks_are_packable(send, c) || !blocks_are_packable(receive, c))
        return REASON_LARGE;
    if (same && sent == 0)
        return served_code(t, MPI_SUCCESS);
    if (is_alias(send, receive, sent))
        return REASON_ARGUMENTS;
    reason = choose_way(t, same ? sent : BYTES_DIFFER);
    if (reason != REASON_SERVED)
        return reason;
    if (!c->several && send->plain && receive->plain && (!same || c->in_order) &&
        (send == receive || !same ||
         !areas_overlap(send->blocks->at, sent, receive->blocks->at, received)))
        return served_result(
            t, alltoall_directly(c, send, receive, send_bytes, receive_bytes, same, &error),
            &error);
    return alltoall_packed(t, send, receive, sent, received, same);
}

enum reason serve_alltoall(struct served_call *t, const struct blocks *send,
                           const struct blocks *receive, bool same)
{
    const bool in_place = send->at == MPI_IN_PLACE;
    struct block_list out, in;
    enum reason reason = REASON_ARGUMENTS;

    if (blocks_read(&in, receive, t->c->size) != 0)
        return reason;
    if (in_place) {
        reason = alltoall_of(t, &in, &in, same);
    } else if (blocks_read(&out, send, t->c->size) == 0) {
        reason = alltoall_of(t, &out, &in, same);
        blocks_free(&out);
    }
    blocks_free(&in);
    return reason;
}

/* ---- One to all ------------------------------------------------------------------------------ */

/* Sets *at to the packed bytes of this rank's block, which may be in new scratch memory *room. The caller frees *room,
 * also after an error. Returns false after an error, which is then the outcome of the call. */
static bool find_block(struct served_call *t, const struct block_list *list, uint32_t index,
                       const void **at, void **room)
{
    *room = NULL;
    *at = block_at(list, index);
    if (list->plain)
        return true;
    *room = scratch_alloc(block_bytes(list, index));
    if (*room == NULL) {
        (void)served_no_memory(t);
        return false;
    }
    const int code = block_pack(list, index, *room);
    *at = *room;
    if (code != MPI_SUCCESS)
        (void)served_code(t, code);
    return code == MPI_SUCCESS;
}

/* Whether the library calls it an error that this rank's block begins where it is received. */
static bool own_block_is_alias(const struct served_call *t, const struct block_list *send,
                               const struct block_list *receive)
{
    return ABI_ALIAS_IS_ERROR && send != receive && send->blocks->type == receive->blocks->type &&
           block_at(send, 0) == block_at(receive, t->c->rank);
}

/* Ends a call that has received the blocks of all ranks, packed in the order of places, in `all`. */
static void served_blocks(struct served_call *t, const struct block_list *receive, const void *all,
                          int result, const struct torus_error *error)
{
    (void)served_result(t, result, error);
    if (result == 0)
        (void)served_code(t, blocks_unpack(receive, t->c, all));
}

/* Receives directly into the memory of the program, if that is possible. Returns whether it is; then *result and *e
 * are the outcome. */
static bool allgather_directly(struct served_call *t, const struct block_list *receive,
                               const void *block, size_t mine, bool in_place, size_t received,
                               bool same, int *result, struct torus_error *e)
{
    struct communicator *c = t->c;
    const size_t *bytes = c->numbers;
    size_t *offset = c->numbers + c->size;
    const void *from = in_place ? TORUS_IN_PLACE : block;
    char *to;

    if (c->several || !receive->plain || (same && !c->in_order) ||
        (same && !in_place && areas_overlap(block, mine, receive->blocks->at, received)))
        return false;
    if (same) {
        *result = TORUS_CALL(e, torus_start_allgather(c->group, from,
                                                      (void *)(uintptr_t)receive->blocks->at,
                                                      bytes[0], &call, e));
        return true;
    }
    blocks_offsets(receive, c, bytes, &to, offset);
    *result = TORUS_CALL(e, torus_start_allgatherv(c->group, from, to, bytes, offset, &call, e));
    return true;
}

static enum reason allgather_of(struct served_call *t, const struct block_list *send,
                                const struct block_list *receive, bool same)
{
    struct communicator *c = t->c;
    const bool in_place = send == receive;
    uint32_t index = in_place ? c->rank : 0;
    size_t received = blocks_sizes(receive, c, c->numbers), mine = block_bytes(send, index);
    struct torus_error error;
    const void *block;
    void *room, *all = NULL;
    enum reason reason;
    int result;

    t->bytes = mine;
    if (received == SIZE_MAX || blocks_are_missing(receive, received) ||
        blocks_are_missing(send, mine))
        return REASON_ARGUMENTS;
    if (mine != c->numbers[c->place_of[c->rank]])
        return served_code(t, MPI_ERR_TRUNCATE);
    if (received == 0)
        return served_code(t, MPI_SUCCESS);
    for (uint32_t place = 0; place < c->size; place++)
        if (block_is_too_large(c->numbers[place]))
            return REASON_LARGE;
    if (mine > 0 && own_block_is_alias(t, send, receive))
        return REASON_ARGUMENTS;
    reason = choose_way(t, received);
    if (reason != REASON_SERVED)
        return reason;
    if (!find_block(t, send, index, &block, &room)) {
        scratch_free(room);
        return REASON_SERVED;
    }
    if (allgather_directly(t, receive, block, mine, in_place, received, same, &result, &error)) {
        (void)served_result(t, result, &error);
    } else if ((all = scratch_alloc(received)) == NULL) {
        (void)served_no_memory(t);
    } else {
        result = nodes_allgather(c, block, all, c->numbers, same, &error);
        served_blocks(t, receive, all, result, &error);
    }
    scratch_free(all);
    scratch_free(room);
    return REASON_SERVED;
}

enum reason serve_allgather(struct served_call *t, const struct blocks *send,
                            const struct blocks *receive, bool same)
{
    struct block_list out, in;

    if (blocks_read(&in, receive, t->c->size) != 0)
        return REASON_ARGUMENTS;
    if (send->at == MPI_IN_PLACE)
        return allgather_of(t, &in, &in, same);
    return blocks_read(&out, send, t->c->size) == 0 ? allgather_of(t, &out, &in, same)
                                                    : REASON_ARGUMENTS;
}

/* At the root: receives directly into the memory of the program, if that is possible. Returns whether it is; then
 * *result and *e are the outcome. */
static bool gather_directly(struct communicator *c, const struct block_list *receive,
                            const void *block, size_t mine, bool in_place, size_t received,
                            bool same, int *result, struct torus_error *e)
{
    const void *from = in_place ? TORUS_IN_PLACE : block;
    const uint32_t root = c->place_of[c->rank];
    size_t *offset = c->numbers + c->size;
    char *to;

    if (c->several || !receive->plain || (same && !c->in_order) ||
        (same && !in_place && areas_overlap(block, mine, receive->blocks->at, received)))
        return false;
    if (same) {
        *result = nodes_gather(c, from, mine, (void *)(uintptr_t)receive->blocks->at, NULL, true,
                               root, e);
        return true;
    }
    blocks_offsets(receive, c, c->numbers, &to, offset);
    *result = TORUS_CALL(
        e, torus_start_gatherv(c->group, from, mine, to, c->numbers, offset, root, &call, e));
    return true;
}

/* Gathers the packed block of this rank. */
static void gather_block(struct served_call *t, const void *block, size_t mine, bool in_place,
                         const struct block_list *receive, size_t received, bool same,
                         uint32_t root)
{
    struct communicator *c = t->c;
    struct torus_error error;
    void *all;
    int result;

    if (receive == NULL) {
        result = nodes_gather(c, block, mine, NULL, NULL, same, c->place_of[root], &error);
        (void)served_result(t, result, &error);
        return;
    }
    if (gather_directly(c, receive, block, mine, in_place, received, same, &result, &error)) {
        (void)served_result(t, result, &error);
        return;
    }
    all = scratch_alloc(received);
    if (all == NULL) {
        (void)served_no_memory(t);
        return;
    }
    result = nodes_gather(c, block, mine, all, c->numbers, same, c->place_of[root], &error);
    served_blocks(t, receive, all, result, &error);
    scratch_free(all);
}

/* At the root, `receive` has the blocks of all ranks; elsewhere it is NULL. `same`: all blocks have the same size.
 * Otherwise only the root knows the sizes, so all ranks decide by their types. */
static enum reason gather_of(struct served_call *t, const struct block_list *send,
                             const struct block_list *receive, bool same, uint32_t root)
{
    struct communicator *c = t->c;
    const bool in_place = send == receive;
    const uint32_t index = in_place ? c->rank : 0;
    const size_t mine = block_bytes(send, index);
    const size_t received = receive != NULL ? blocks_sizes(receive, c, c->numbers) : mine * c->size;
    const void *block;
    enum reason reason;
    void *room;

    t->bytes = mine;
    if (blocks_are_missing(send, mine) ||
        (receive != NULL && (received == SIZE_MAX || blocks_are_missing(receive, received))))
        return REASON_ARGUMENTS;
    if (receive != NULL && block_bytes(receive, c->rank) != mine)
        return served_code(t, MPI_ERR_TRUNCATE);
    if (same && mine == 0)
        return served_code(t, MPI_SUCCESS);
    if (same ? block_is_too_large(mine) || received / c->size != mine
             : !blocks_are_packable(send, c) ||
                   (receive != NULL && !blocks_are_packable(receive, c)))
        return REASON_LARGE;
    if (receive != NULL && mine > 0 && own_block_is_alias(t, send, receive))
        return REASON_ARGUMENTS;
    reason = choose_way(t, same ? received : BYTES_DIFFER);
    if (reason != REASON_SERVED)
        return reason;
    if (find_block(t, send, index, &block, &room))
        gather_block(t, block, mine, in_place, receive, received, same, root);
    scratch_free(room);
    return REASON_SERVED;
}

enum reason serve_gather(struct served_call *t, const struct blocks *send,
                         const struct blocks *receive, bool same, int root)
{
    const bool is_root = (uint32_t)root == t->c->rank;
    struct block_list out, in;

    if (root < 0 || (uint32_t)root >= t->c->size || (send->at == MPI_IN_PLACE && !is_root) ||
        (is_root && blocks_read(&in, receive, t->c->size) != 0))
        return REASON_ARGUMENTS;
    if (send->at == MPI_IN_PLACE)
        return gather_of(t, &in, &in, same, (uint32_t)root);
    return blocks_read(&out, send, t->c->size) == 0
               ? gather_of(t, &out, is_root ? &in : NULL, same, (uint32_t)root)
               : REASON_ARGUMENTS;
}

/* A scatter at this rank: its blocks at the root, and its own block. */
struct scatter {
    const struct block_list *send;    /* NULL: this rank is not the root */
    const struct block_list *receive; /* NULL: the root leaves its own block where it is */
    bool same;                        /* all blocks have the same size */
    uint32_t root;
    size_t sent, mine;
};

/* At the root: sends directly from the memory of the program, if that is possible. Returns whether it is; then *result and
 * *e are the outcome. */
static bool scatter_directly(struct communicator *c, const struct scatter *s, void *block,
                             int *result, struct torus_error *e)
{
    const uint32_t root = c->place_of[c->rank];
    const bool in_place = s->receive == NULL;
    size_t *offset = c->numbers + c->size;
    char *from = (char *)(uintptr_t)s->send->blocks->at;

    if (c->several || !s->send->plain || (s->same && !c->in_order) ||
        (s->same && !in_place && areas_overlap(block, s->mine, from, s->sent)))
        return false;
    if (s->same) {
        *result = nodes_scatter(c, in_place ? TORUS_IN_PLACE : from, NULL, in_place ? from : block,
                                s->mine, true, root, e);
        return true;
    }
    blocks_offsets(s->send, c, c->numbers, &from, offset);
    *result = TORUS_CALL(e, torus_start_scatterv(c->group, in_place ? TORUS_IN_PLACE : from,
                                                 c->numbers, offset, in_place ? from : block,
                                                 s->mine, root, &call, e));
    return true;
}

/* Scatters to the memory for the packed block of this rank. */
static void scatter_block(struct served_call *t, const struct scatter *s, void *block)
{
    struct communicator *c = t->c;
    const uint32_t root = c->place_of[s->root];
    struct torus_error error;
    void *all;
    int result;

    if (s->send == NULL) {
        result = nodes_scatter(c, NULL, NULL, block, s->mine, s->same, root, &error);
        (void)served_result(t, result, &error);
        return;
    }
    if (scatter_directly(c, s, block, &result, &error)) {
        (void)served_result(t, result, &error);
        return;
    }
    all = scratch_alloc(s->sent);
    if (all == NULL) {
        (void)served_no_memory(t);
        return;
    }
    result = blocks_pack(s->send, c, all);
    if (result != MPI_SUCCESS) {
        (void)served_code(t, result);
    } else {
        result = nodes_scatter(c, all, c->numbers, block, s->mine, s->same, root, &error);
        (void)served_result(t, result, &error);
    }
    scratch_free(all);
}

/* Receives in the memory of the program, or in scratch memory that is unpacked. */
static void scatter_to(struct served_call *t, const struct scatter *s)
{
    const struct block_list *receive = s->receive;
    const bool direct = receive != NULL && receive->plain;
    void *room = direct ? NULL : scratch_alloc(s->mine);

    if (!direct && room == NULL) {
        (void)served_no_memory(t);
        return;
    }
    scatter_block(t, s, direct ? block_at(receive, 0) : room);
    if (!direct && receive != NULL && t->result == MPI_SUCCESS)
        (void)served_code(t, block_unpack(receive, 0, room));
    scratch_free(room);
}

static enum reason scatter_of(struct served_call *t, struct scatter *s)
{
    struct communicator *c = t->c;
    const struct block_list *send = s->send, *receive = s->receive;
    enum reason reason;

    s->mine = receive != NULL ? block_bytes(receive, 0) : block_bytes(send, c->rank);
    s->sent = send != NULL ? blocks_sizes(send, c, c->numbers) : s->mine * c->size;
    t->bytes = send != NULL ? s->sent : 0;
    if ((receive != NULL && blocks_are_missing(receive, s->mine)) ||
        (send != NULL && (s->sent == SIZE_MAX || blocks_are_missing(send, s->sent))))
        return REASON_ARGUMENTS;
    if (send != NULL && block_bytes(send, c->rank) != s->mine)
        return served_code(t, MPI_ERR_TRUNCATE);
    if (s->same && s->mine == 0)
        return served_code(t, MPI_SUCCESS);
    if (s->same ? block_is_too_large(s->mine) || s->sent / c->size != s->mine
                : (send != NULL && !blocks_are_packable(send, c)) ||
                      (receive != NULL && !blocks_are_packable(receive, c)))
        return REASON_LARGE;
    if (send != NULL && receive != NULL && s->mine > 0 && own_block_is_alias(t, receive, send))
        return REASON_ARGUMENTS;
    reason = choose_way(t, s->same ? s->sent : BYTES_DIFFER);
    if (reason != REASON_SERVED)
        return reason;
    scatter_to(t, s);
    return REASON_SERVED;
}

enum reason serve_scatter(struct served_call *t, const struct blocks *send,
                          const struct blocks *receive, bool same, int root)
{
    const bool is_root = (uint32_t)root == t->c->rank, in_place = receive->at == MPI_IN_PLACE;
    struct block_list out, in;
    struct scatter s = {.send = is_root ? &out : NULL,
                        .receive = in_place ? NULL : &in,
                        .same = same,
                        .root = (uint32_t)root};

    if (root < 0 || (uint32_t)root >= t->c->size || (in_place && !is_root) ||
        (is_root && blocks_read(&out, send, t->c->size) != 0) ||
        (!in_place && blocks_read(&in, receive, t->c->size) != 0))
        return REASON_ARGUMENTS;
    return scatter_of(t, &s);
}

enum reason serve_broadcast(struct served_call *t, void *buffer, int64_t count, MPI_Datatype type,
                            int root)
{
    struct communicator *c = t->c;
    const struct blocks blocks = {.at = buffer, .counts = NUMBER(count), .type = type};
    struct block_list list;
    struct torus_error error;
    void *at = buffer;
    size_t bytes;
    enum reason reason;
    int result = MPI_SUCCESS;

    if (root < 0 || (uint32_t)root >= c->size || blocks_read(&list, &blocks, c->size) != 0)
        return REASON_ARGUMENTS;
    bytes = t->bytes = block_bytes(&list, 0);
    if (blocks_are_missing(&list, bytes))
        return REASON_ARGUMENTS;
    if (bytes == 0)
        return served_code(t, MPI_SUCCESS);
    if (block_is_too_large(bytes))
        return REASON_LARGE;
    reason = choose_way(t, bytes);
    if (reason != REASON_SERVED)
        return reason;
    if (!list.plain) {
        at = scratch_alloc(bytes);
        if (at == NULL)
            return served_no_memory(t);
        if ((uint32_t)root == c->rank)
            result = datatype_pack(&list.one, buffer, (size_t)count, at);
    }
    if (result == MPI_SUCCESS) {
        int ended = nodes_broadcast(c, at, bytes, c->place_of[root], &error);
        (void)served_result(t, ended, &error);
        if (ended == 0 && !list.plain && (uint32_t)root != c->rank)
            (void)served_code(t, datatype_unpack(&list.one, buffer, (size_t)count, at));
    } else {
        (void)served_code(t, result);
    }
    if (!list.plain)
        scratch_free(at);
    return REASON_SERVED;
}

enum reason serve_barrier(struct served_call *t)
{
    struct torus_error error;
    enum reason reason = choose_way(t, 0);
    int result;

    if (reason != REASON_SERVED)
        return reason;
    result = nodes_barrier(t->c, &error);
    return served_result(t, result, &error);
}
