/* All messages are between two ranks. Collective operations of MPI would need a communicator for each set of ranks on
 * a node, and MPI has few communicators (MPICH: 2048). Messages to or from all ranks go along a binomial tree: the
 * children of rank r are r + 1, r + 2, r + 4... as long as the added number is smaller than the lowest set bit of r.
 * Long messages are divided into pieces, so that all levels of the tree work at the same time. */
#include "client/mpi/nodes/node_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "client/mpi/communicators/placement.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/scratch.h"
#include "client/mpi/library/real.h"

#define MESSAGE ((size_t)1 << 30) /* the most bytes of a message, because counts are int */
#define PIECE ((size_t)4 << 20)   /* bytes of a piece that is sent along the tree */

/* ---- Messages -------------------------------------------------------------------------------- */

static size_t at_most(size_t limit, size_t left)
{
    return left < limit ? left : limit;
}

/* Returns the tag for messages of a communicator. A lane in a part of the torus belongs to one communicator at a
 * time, so messages of several communicators do not mix. */
static int tag_of(const struct communicator *c)
{
    return JOB_FIRST_TAG + (int)(c->share.lane << JOB_DIMS | c->dimensions);
}

/* Returns the rank in job.messages of rank `local` on this node. */
static int rank_of(const struct communicator *c, uint32_t local)
{
    return c->placement->world[c->rank_at[c->node * c->locals + local]];
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

int node_broadcast(const struct communicator *c, void *at, size_t bytes)
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
static int reduce(const struct communicator *c, const struct vector *v, const char *from, char *to,
                  size_t most, char *room)
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

int node_reduce(const struct communicator *c, const struct vector *v, const void *send,
                void *receive)
{
    const size_t most = at_most(v->type_size < PIECE ? PIECE / v->type_size : 1, v->count);
    struct torus_error ignored;
    char *room = scratch_alloc(2 * most * v->type_size);
    int result;

    if (room == NULL)
        return node_lacks_memory(c, &ignored);
    result = reduce(c, v, send, receive, most, room);
    scratch_free(room);
    return result;
}

int node_gather_all(const struct communicator *c)
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
