/* Operations on the ranks of a communicator, and the messages by MPI between the ranks on one node. Rank 0 of a node is
 * the leader. All functions return 0 or -1 unless stated otherwise. Errors of MPI do not call an error handler. */
#include "client/mpi/nodes/node_collectives.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/mpi/communicators/communicator.h"
#include "client/mpi/job/job.h"
#include "client/mpi/library/real.h"
#include "client/mpi/nodes/node_messages.h"

/* All messages are between two ranks. Collective operations of MPI would need a communicator for each set of ranks on
 * a node, and MPI has few communicators (MPICH: 2048). Messages to or from all ranks go along a binomial tree: the
 * children of rank r are r + 1, r + 2, r + 4... as long as the added number is smaller than the lowest set bit of r.
 * Long messages are divided into pieces, so that all levels of the tree work at the same time. */

#define MESSAGE ((size_t)1 << 30) /* the most bytes of a message, because counts are int */
#define PIECE ((size_t)4 << 20)   /* bytes of a piece that is sent along the tree */

/* ---- Messages -------------------------------------------------------------------------------- */

static size_t at_most(size_t limit, size_t left)
{
    return left < limit ? left : limit;
}

/* Returns the tag for messages of a communicator. A lane in a part of the torus belongs to one communicator at a
 * time, and the numbers of own groups differ at each process, so messages of several communicators do not mix. */
static int tag_of(const struct communicator *c)
{
    if (c->dimensions == NO_PART)
        return JOB_FIRST_TAG + (int)((LANES_MOST << JOB_DIMS) + c->share.number);
    return JOB_FIRST_TAG + (int)(c->share.lane << JOB_DIMS | c->dimensions);
}

/* Returns the rank in job.messages of rank `local` on this node. */
static int rank_of(const struct communicator *c, uint32_t local)
{
    return c->placement->world[c->rank_at[c->first[c->node] + local]];
}

int node_send(const struct communicator *c, uint32_t to, const void *at, size_t bytes)
{
    const char *from = at;

    for (size_t n; bytes > 0; bytes -= n, from += n) {
        n = at_most(MESSAGE, bytes);
        if (real.Send(from, (int)n, mpi.byte, rank_of(c, to), tag_of(c), job.messages) !=
            MPI_SUCCESS)
            return -1;
    }
    return 0;
}

int node_receive(const struct communicator *c, uint32_t from, void *at, size_t bytes)
{
    char *to = at;

    for (size_t n; bytes > 0; bytes -= n, to += n) {
        n = at_most(MESSAGE, bytes);
        if (real.Recv(to, (int)n, mpi.byte, rank_of(c, from), tag_of(c), job.messages,
                      MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return -1;
    }
    return 0;
}

/* ---- The tree -------------------------------------------------------------------------------- */

/* Returns whether there is a child at this distance, a power of 2. If not, there is none at a greater distance. */
static bool has_child(const struct communicator *c, uint32_t distance)
{
    uint32_t lowest_bit = c->local & -c->local;

    return (distance < lowest_bit || communicator_leads(c)) && distance < c->locals - c->local;
}

static uint32_t parent_of(const struct communicator *c)
{
    return c->local & (c->local - 1);
}

static int send_to_children(const struct communicator *c, const void *at, size_t bytes)
{
    uint32_t distance = 1;

    while (has_child(c, 2 * distance))
        distance *= 2;
    for (; distance > 0 && has_child(c, distance); distance /= 2) /* the largest subtree first */
        if (node_send(c, c->local + distance, at, bytes) != 0)
            return -1;
    return 0;
}

/* Copies `bytes` at `at` from the leader to all other ranks of the node; all of them make this call. Returns 0, or -1
 * if MPI has failed. */
static int node_broadcast(const struct communicator *c, void *at, size_t bytes)
{
    char *piece = at;

    for (size_t n; bytes > 0; bytes -= n, piece += n) {
        n = at_most(PIECE, bytes);
        if (!communicator_leads(c) && node_receive(c, parent_of(c), piece, n) != 0)
            return -1;
        if (send_to_children(c, piece, n) != 0)
            return -1;
    }
    return 0;
}

/* Adds the combined vectors of the children to `sum`. */
static int add_children(const struct communicator *c, const struct vector *v, char *sum,
                        size_t count, void *room)
{
    for (uint32_t distance = 1; has_child(c, distance); distance *= 2)
        if (node_receive(c, c->local + distance, room, count * v->type_size) != 0 ||
            real.Reduce_local(room, sum, (int)count, v->type, v->op) != MPI_SUCCESS)
            return -1;
    return 0;
}

/* Combines the vectors in pieces of at most `most` elements. `room` has space for two pieces. */
static int reduce_in_pieces(const struct communicator *c, const struct vector *v, const char *from,
                            char *to, size_t most, char *room)
{
    const bool leads = communicator_leads(c);
    char *const sums = leads ? to : room + most * v->type_size;
    size_t done = 0;

    for (size_t n, bytes; done < v->count; done += n) {
        char *sum = leads ? sums + done * v->type_size : sums;
        n = at_most(most, v->count - done);
        bytes = n * v->type_size;
        if (sum != from)
            memcpy(sum, from, bytes);
        if (add_children(c, v, sum, n, room) != 0 ||
            (!leads && node_send(c, parent_of(c), sum, bytes) != 0))
            return -1;
        from += bytes;
    }
    return 0;
}

/* Combines the vectors of all ranks of the node at the leader's `receive`, which may be its `send`. Returns 0, or -1
 * if MPI has failed or memory is short. */
static int node_reduce(const struct communicator *c, const struct vector *v, const void *send,
                       void *receive)
{
    const size_t most = at_most(v->type_size < PIECE ? PIECE / v->type_size : 1, v->count);
    struct torus_error ignored;
    char *room = scratch_alloc(2 * most * v->type_size);
    int result;

    if (room == NULL)
        return node_lacks_memory(c, &ignored);
    result = reduce_in_pieces(c, v, send, receive, most, room);
    scratch_free(room);
    return result;
}

/* Waits at the leader until all ranks of the node have made this call. Returns 0, or -1 if MPI has failed. */
static int node_gather_all(const struct communicator *c)
{
    char here = 0;

    for (uint32_t distance = 1; has_child(c, distance); distance *= 2)
        if (node_receive(c, c->local + distance, &here, sizeof here) != 0)
            return -1;
    return communicator_leads(c) ? 0 : node_send(c, parent_of(c), &here, sizeof here);
}

/* ---- Results --------------------------------------------------------------------------------- */

int node_failed(struct torus_error *error)
{
    static const struct torus_error failure = {.code = TORUS_ERROR_IO,
                                               .text = "MPI has failed among the ranks of a node"};

    *error = failure;
    job_lock();
    job_fail(error);
    job_unlock();
    return -1;
}

/* Aborts the program if there are other ranks on this node, because they cannot be informed: they wait in calls of
 * MPI that this rank will not make. */
int node_lacks_memory(const struct communicator *c, struct torus_error *e)
{
    static const struct torus_error out_of_memory = {
        .code = TORUS_ERROR_MEMORY, .text = "a process has no memory for its blocks"};

    *e = out_of_memory;
    if (c->locals > 1)
        (void)real.Abort(mpi.world, EXIT_FAILURE);
    job_lock();
    job_fail(e);
    job_unlock();
    return -1;
}

int node_share_result(const struct communicator *c, int result, struct torus_error *error)
{
    if (node_broadcast(c, &result, sizeof result) != 0 ||
        (result != 0 && node_broadcast(c, error, sizeof *error) != 0))
        return node_failed(error);
    return result;
}

/* As node_share_result(); and after a success copies `bytes` at `at` from the leader to the other ranks of the node. Few
 * bytes are in the same message. */
static int share_result_and_data(const struct communicator *c, int result, void *at, size_t bytes,
                                 struct torus_error *error)
{
    struct {
        int result;
        char data[4096];
    } m = {.result = result};

    if (bytes > sizeof m.data) {
        result = node_share_result(c, result, error);
        if (result == 0 && node_broadcast(c, at, bytes) != 0)
            result = node_failed(error);
        return result;
    }
    if (communicator_leads(c) && result == 0)
        memcpy(m.data, at, bytes);
    if (node_broadcast(c, &m, offsetof(typeof(m), data) + bytes) != 0 ||
        (m.result != 0 && node_broadcast(c, error, sizeof *error) != 0))
        return node_failed(error);
    if (!communicator_leads(c) && m.result == 0)
        memcpy(at, m.data, bytes);
    return m.result;
}

size_t *node_numbers(const struct communicator *c)
{
    return c->numbers + 2 * (size_t)c->size;
}

size_t node_offsets(const size_t *bytes, size_t count, size_t *offset)
{
    size_t end = 0;

    for (size_t i = 0; i < count; i++) {
        offset[i] = end;
        end += bytes[i];
    }
    return end;
}

size_t node_sum(const size_t *numbers, size_t count)
{
    size_t all = 0;

    for (size_t i = 0; i < count; i++)
        all += numbers[i];
    return all;
}

size_t node_sum_at(const struct communicator *c, const size_t *numbers, uint32_t node)
{
    return node_sum(numbers + c->first[node], communicator_locals(c, node));
}

/* ---- Between nodes --------------------------------------------------------------------------- */

static int alltoall(const struct communicator *c, const void *send, const size_t *send_bytes,
                    void *receive, const size_t *receive_bytes, bool same, struct torus_error *e)
{
    size_t *send_offset = node_numbers(c), *receive_offset = send_offset + c->nodes;

    if (same)
        return TORUS_CALL(e,
                          torus_start_alltoall(c->group, send, receive, send_bytes[0], &call, e));
    (void)node_offsets(send_bytes, c->nodes, send_offset);
    (void)node_offsets(receive_bytes, c->nodes, receive_offset);
    return TORUS_CALL(e, torus_start_alltoallv(c->group, send, send_bytes, send_offset, receive,
                                               receive_bytes, receive_offset, &call, e));
}

static int allgather(const struct communicator *c, const void *block, void *receive,
                     const size_t *bytes, bool same, struct torus_error *e)
{
    size_t *offset = node_numbers(c);

    if (same)
        return TORUS_CALL(e, torus_start_allgather(c->group, block, receive, bytes[0], &call, e));
    (void)node_offsets(bytes, c->nodes, offset);
    return TORUS_CALL(e, torus_start_allgatherv(c->group, block, receive, bytes, offset, &call, e));
}

static int allreduce(const struct communicator *c, const struct vector *v, const void *send,
                     void *receive, struct torus_error *e)
{
    return TORUS_CALL(e,
                      torus_start_allreduce(c->group, send == receive ? TORUS_IN_PLACE : send,
                                            receive, v->count * v->reduction.parts,
                                            v->reduction.type, v->reduction.operator, & call, e));
}

/* ---- All to all ------------------------------------------------------------------------------ */

/* At a leader: the sizes of the blocks of all ranks on its node, by rank on the node, then by place. */
struct sizes {
    size_t *send, *receive;
};

/* `same`: all blocks of all ranks have the same size. */
static int gather_sizes(const struct communicator *c, const size_t *send_bytes,
                        const size_t *receive_bytes, bool same, struct sizes *sizes)
{
    const size_t bytes = c->size * sizeof(size_t);

    if (!communicator_leads(c) && same)
        return 0;
    if (!communicator_leads(c))
        return node_send(c, 0, send_bytes, bytes) != 0 ? -1 : node_send(c, 0, receive_bytes, bytes);
    for (uint32_t l = 0; l < c->locals; l++) {
        size_t *its_send = sizes->send + (size_t)l * c->size;
        size_t *its_receive = sizes->receive + (size_t)l * c->size;
        if (l == 0 || same) {
            memcpy(its_send, send_bytes, bytes);
            memcpy(its_receive, receive_bytes, bytes);
        } else if (node_receive(c, l, its_send, bytes) != 0 ||
                   node_receive(c, l, its_receive, bytes) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Stores the sizes of the blocks between nodes. The block from one node to another has all data from rank 0 of the
 * first node, then all data from its rank 1, and so on, each in the order of the ranks of the other node. */
static void node_blocks(const struct communicator *c, const size_t *sizes, size_t *bytes)
{
    for (uint32_t n = 0; n < c->nodes; n++) {
        bytes[n] = 0;
        for (uint32_t l = 0; l < c->locals; l++)
            bytes[n] += node_sum_at(c, sizes + (size_t)l * c->size, n);
    }
}

/* Copies the data that a rank here sends, at `from`, into the blocks for the nodes. `filled` has the offset of the
 * free space in each block. */
static void distribute(const struct communicator *c, const char *from, const size_t *sizes,
                       char *const blocks, size_t *filled)
{
    for (uint32_t n = 0; n < c->nodes; n++) {
        size_t bytes = node_sum_at(c, sizes, n);
        memcpy(blocks + filled[n], from, bytes);
        filled[n] += bytes;
        from += bytes;
    }
}

/* Collects the data that rank `to` here receives, from the blocks of all nodes. */
static void collect(const struct communicator *c, const char *blocks, const size_t *sizes,
                    uint32_t to, char *out)
{
    for (uint32_t place = 0; place < c->size; place++)
        for (uint32_t l = 0; l < c->locals; l++) {
            size_t bytes = sizes[(size_t)l * c->size + place];
            if (l == to) {
                memcpy(out, blocks, bytes);
                out += bytes;
            }
            blocks += bytes;
        }
}

/* At the leader: gathers the data of all ranks of this node in the blocks for the nodes. */
static int gather_blocks(const struct communicator *c, const void *send, const struct sizes *sizes,
                         const size_t *bytes, char *blocks, char *room)
{
    size_t *filled = node_numbers(c);

    (void)node_offsets(bytes, c->nodes, filled);
    distribute(c, send, sizes->send, blocks, filled);
    for (uint32_t l = 1; l < c->locals; l++) {
        const size_t *its = sizes->send + (size_t)l * c->size;
        if (node_receive(c, l, room, node_sum(its, c->size)) != 0)
            return -1;
        distribute(c, room, its, blocks, filled);
    }
    return 0;
}

static int scatter_blocks(const struct communicator *c, void *receive, const struct sizes *sizes,
                          const char *blocks, char *room)
{
    collect(c, blocks, sizes->receive, 0, receive);
    for (uint32_t l = 1; l < c->locals; l++) {
        collect(c, blocks, sizes->receive, l, room);
        if (node_send(c, l, room, node_sum(sizes->receive + (size_t)l * c->size, c->size)) != 0)
            return -1;
    }
    return 0;
}

/* Returns the most bytes that a rank on this node sends or receives. */
static size_t most_of(const struct communicator *c, const struct sizes *sizes)
{
    size_t most = 0;

    for (uint32_t l = 0; l < c->locals; l++) {
        size_t in = node_sum(sizes->receive + (size_t)l * c->size, c->size);
        size_t out = node_sum(sizes->send + (size_t)l * c->size, c->size);
        most = in > most ? in : most;
        most = out > most ? out : most;
    }
    return most;
}

static int lead_alltoall(struct communicator *c, const void *send, const size_t *send_bytes,
                         void *receive, const size_t *receive_bytes, bool same,
                         struct torus_error *e)
{
    const size_t all = (size_t)c->locals * c->size;
    size_t *const room_for_sizes = scratch_alloc((2 * all + 2 * (size_t)c->nodes) * sizeof(size_t));
    struct sizes sizes = {room_for_sizes, room_for_sizes + all};
    size_t *out_bytes = room_for_sizes + 2 * all, *in_bytes = out_bytes + c->nodes;
    char *out = NULL, *in = NULL, *room = NULL;
    int result = -1;

    if (room_for_sizes == NULL)
        return node_lacks_memory(c, e);
    if (gather_sizes(c, send_bytes, receive_bytes, same, &sizes) != 0) {
        result = node_failed(e);
    } else {
        node_blocks(c, sizes.send, out_bytes);
        node_blocks(c, sizes.receive, in_bytes);
        out = scratch_alloc(node_sum(out_bytes, c->nodes));
        in = scratch_alloc(node_sum(in_bytes, c->nodes));
        room = scratch_alloc(most_of(c, &sizes));
        if (out == NULL || in == NULL || room == NULL)
            result = node_lacks_memory(c, e);
        else if (gather_blocks(c, send, &sizes, out_bytes, out, room) != 0)
            result = node_failed(e);
        else
            result = alltoall(c, out, out_bytes, in, in_bytes, same && c->even, e);
        result = node_share_result(c, result, e);
        if (result == 0 && scatter_blocks(c, receive, &sizes, in, room) != 0)
            result = node_failed(e);
    }
    scratch_free(room);
    scratch_free(in);
    scratch_free(out);
    scratch_free(room_for_sizes);
    return result;
}

int nodes_alltoall(struct communicator *c, const void *send, const size_t *send_bytes,
                   void *receive, const size_t *receive_bytes, bool same, struct torus_error *error)
{
    int result;

    if (!c->several)
        return alltoall(c, send, send_bytes, receive, receive_bytes, same, error);
    if (communicator_leads(c))
        return lead_alltoall(c, send, send_bytes, receive, receive_bytes, same, error);
    if (gather_sizes(c, send_bytes, receive_bytes, same, NULL) != 0 ||
        node_send(c, 0, send, node_sum(send_bytes, c->size)) != 0)
        return node_failed(error);
    result = node_share_result(c, 0, error);
    if (result == 0 && node_receive(c, 0, receive, node_sum(receive_bytes, c->size)) != 0)
        result = node_failed(error);
    return result;
}

/* ---- Allgather ------------------------------------------------------------------------------- */

static int lead_allgather(struct communicator *c, const void *block, void *receive,
                          const size_t *bytes, bool same, struct torus_error *e)
{
    const size_t *mine = bytes + c->first[c->node];
    size_t *node_bytes = node_numbers(c) + c->nodes, filled = mine[0];
    char *blocks = scratch_alloc(node_sum(mine, c->locals));
    int result;

    if (blocks == NULL)
        return node_lacks_memory(c, e);
    for (uint32_t n = 0; n < c->nodes; n++)
        node_bytes[n] = node_sum_at(c, bytes, n);
    memcpy(blocks, block, mine[0]);
    result = 0;
    for (uint32_t l = 1; l < c->locals && result == 0; filled += mine[l++])
        if (node_receive(c, l, blocks + filled, mine[l]) != 0)
            result = node_failed(e);
    if (result == 0)
        result = allgather(c, blocks, receive, node_bytes, same && c->even, e);
    scratch_free(blocks);
    return result;
}

int nodes_allgather(struct communicator *c, const void *block, void *receive, const size_t *bytes,
                    bool same, struct torus_error *error)
{
    size_t mine = bytes[c->first[c->node] + c->local];
    int result = 0;

    if (!c->several)
        return allgather(c, block, receive, bytes, same, error);
    if (communicator_leads(c))
        result = lead_allgather(c, block, receive, bytes, same, error);
    else if (node_send(c, 0, block, mine) != 0)
        return node_failed(error);
    return share_result_and_data(c, result, receive, node_sum(bytes, c->size), error);
}

/* ---- Broadcast, barrier ---------------------------------------------------------------------- */

static int broadcast(const struct communicator *c, void *buffer, size_t bytes, uint32_t root,
                     struct torus_error *e)
{
    if (c->node == root)
        return TORUS_SEND(e, buffer, bytes,
                          torus_start_broadcast(c->group, buffer, bytes, root, &call, e));
    return TORUS_CALL(e, torus_start_broadcast(c->group, buffer, bytes, root, &call, e));
}

int nodes_broadcast(struct communicator *c, void *buffer, size_t bytes, uint32_t root_place,
                    struct torus_error *error)
{
    const uint32_t root = communicator_node(c, root_place);
    const uint32_t root_local = root_place - c->first[root];
    int result = 0;

    if (c->node == root && root_local != 0 && c->local == root_local &&
        node_send(c, 0, buffer, bytes) != 0)
        return node_failed(error);
    if (communicator_leads(c)) {
        if (c->node == root && root_local != 0 && node_receive(c, root_local, buffer, bytes) != 0)
            result = node_failed(error);
        else
            result = broadcast(c, buffer, bytes, root, error);
    }
    return c->several ? share_result_and_data(c, result, buffer, bytes, error) : result;
}

int nodes_barrier(struct communicator *c, struct torus_error *error)
{
    int result = 0;

    if (c->several && node_gather_all(c) != 0)
        return node_failed(error);
    if (communicator_leads(c))
        result = TORUS_CALL(error, torus_start_barrier(c->group, &call, error));
    return c->several ? node_share_result(c, result, error) : result;
}

/* ---- Reductions ------------------------------------------------------------------------------ */

/* Combines the vectors of the nodes for the node of place `only`, or for all nodes. */
static int reduce(const struct communicator *c, const struct vector *v, const void *send,
                  void *receive, uint32_t only, struct torus_error *e)
{
    uint32_t root;

    if (only == PLACE_ALL)
        return allreduce(c, v, send, receive, e);
    root = communicator_node(c, only);
    if (root != c->node)
        return TORUS_SEND(e, send, v->count * v->type_size,
                          torus_start_reduce(c->group, send, NULL, v->count * v->reduction.parts,
                                             v->reduction.type, v->reduction.operator, root, &call,
                                             e));
    return TORUS_CALL(e,
                      torus_start_reduce(c->group, send == receive ? TORUS_IN_PLACE : send, receive,
                                         v->count * v->reduction.parts, v->reduction.type,
                                         v->reduction.operator, root, &call, e));
}

/* nodes_reduce() if there is one rank on each node. A rank that gets no result needs memory only if its numbers must
 * be converted for a logical operator. */
static int reduce_alone(struct communicator *c, const struct vector *v, const void *send,
                        void *receive, uint32_t only, struct torus_error *e)
{
    void *room = NULL;
    int result;

    if (v->reduction.logical) {
        if (receive == NULL && (room = scratch_alloc(v->count * v->type_size)) == NULL)
            return node_lacks_memory(c, e);
        reduction_normalise(v->reduction.type, room != NULL ? room : receive, send, v->count);
        send = room != NULL ? room : receive;
    }
    result = reduce(c, v, send, receive, only, e);
    scratch_free(room);
    return result;
}

int nodes_reduce(struct communicator *c, const struct vector *v, const void *send, void *receive,
                 uint32_t only, struct torus_error *error)
{
    const size_t bytes = v->count * v->type_size;
    const bool leads = communicator_leads(c);
    const bool here = only == PLACE_ALL || communicator_node(c, only) == c->node;
    const bool wants = only == PLACE_ALL || only == c->first[c->node] + c->local;
    void *room = NULL, *out = receive;
    int result = 0;

    if (!c->several)
        return reduce_alone(c, v, send, receive, only, error);
    if (leads && !wants) {
        out = room = scratch_alloc(bytes);
        if (room == NULL)
            result = node_lacks_memory(c, error);
    }
    if (result == 0 && node_reduce(c, v, send, out) != 0)
        result = node_failed(error);
    if (result == 0 && leads)
        result = reduce(c, v, out, here ? out : NULL, only, error);
    if (only == PLACE_ALL)
        return share_result_and_data(c, result, out, bytes, error);
    result = node_share_result(c, result, error);
    if (result == 0 && wants && !leads)
        result = node_receive(c, 0, receive, bytes) != 0 ? node_failed(error) : 0;
    else if (result == 0 && leads && here && !wants)
        result = node_send(c, only - c->first[c->node], out, bytes) != 0 ? node_failed(error) : 0;
    scratch_free(room);
    return result;
}

/* At a leader: combines the vector of the node with those of the other nodes, and distributes this node's part of the
 * result among its ranks. */
static int lead_reduce_scatter(struct communicator *c, const struct vector *v, const void *vector,
                               void *receive, const size_t *counts, struct torus_error *e)
{
    const size_t *mine = counts + c->first[c->node];
    size_t *node_counts = node_numbers(c);
    char *room = receive;
    int result;

    for (uint32_t n = 0; n < c->nodes; n++)
        node_counts[n] = node_sum_at(c, counts, n) * v->reduction.parts;
    if (c->several)
        room = scratch_alloc(node_sum(mine, c->locals) * v->type_size);
    if (room == NULL && c->several)
        return node_lacks_memory(c, e);
    result = TORUS_CALL(e, torus_start_reduce_scatter(
                               c->group, vector == receive ? TORUS_IN_PLACE : vector, room,
                               node_counts, v->reduction.type, v->reduction.operator, & call, e));
    if (!c->several)
        return result;
    result = node_share_result(c, result, e);
    if (result == 0) {
        const char *at = room + mine[0] * v->type_size;
        memcpy(receive, room, mine[0] * v->type_size);
        for (uint32_t l = 1; l < c->locals && result == 0; at += mine[l++] * v->type_size)
            if (node_send(c, l, at, mine[l] * v->type_size) != 0)
                result = node_failed(e);
    }
    scratch_free(room);
    return result;
}

int nodes_reduce_scatter(struct communicator *c, const struct vector *v, const void *send,
                         void *receive, const size_t *counts, struct torus_error *error)
{
    const bool copies = communicator_leads(c) && (c->several || v->reduction.logical);
    size_t mine = counts[c->first[c->node] + c->local] * v->type_size;
    void *room = NULL;
    int result = 0;

    if (copies) {
        room = scratch_alloc(v->count * v->type_size);
        if (room == NULL)
            return node_lacks_memory(c, error);
    }
    if (c->several) {
        if (node_reduce(c, v, send, room) != 0)
            result = node_failed(error);
    } else if (v->reduction.logical) {
        reduction_normalise(v->reduction.type, room, send, v->count);
    }
    if (result == 0 && communicator_leads(c))
        result = lead_reduce_scatter(c, v, copies ? room : send, receive, counts, error);
    else if (result == 0)
        result = node_share_result(c, 0, error);
    if (result == 0 && !communicator_leads(c) && node_receive(c, 0, receive, mine) != 0)
        result = node_failed(error);
    scratch_free(room);
    return result;
}
