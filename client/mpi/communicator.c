#include "client/mpi/communicator.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/mpi/errhandlers.h"
#include "client/mpi/job.h"
#include "client/mpi/real.h"
#include "proto/text.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int keyval = MPI_KEYVAL_INVALID;

/* Parts that a communicator has for itself, under MPI_THREAD_MULTIPLE. */
static bool is_owned[1u << JOB_DIMS];

/* ---- Where the ranks are --------------------------------------------------------------------- */

/* The ranks of the communicator in MPI_COMM_WORLD. Returns -1 if one is not in it. */
static int world_ranks(MPI_Comm comm, int size, int *world)
{
    int *mine = calloc((size_t)size, sizeof *mine), result = -1;
    MPI_Group group, world_group;

    if (mine == NULL)
        return -1;
    for (int i = 0; i < size; i++)
        mine[i] = i;
    if (real.Comm_group(comm, &group) == MPI_SUCCESS) {
        if (real.Comm_group(mpi.world, &world_group) == MPI_SUCCESS) {
            result =
                real.Group_translate_ranks(group, size, mine, world_group, world) == MPI_SUCCESS
                    ? 0
                    : -1;
            (void)real.Group_free(&world_group);
        }
        (void)real.Group_free(&group);
    }
    for (int i = 0; i < size && result == 0; i++)
        if (world[i] < 0 || (uint32_t)world[i] >= job.processes)
            result = -1;
    free(mine);
    return result;
}

static uint32_t coordinate(uint32_t node, unsigned d)
{
    for (unsigned k = job.dims; --k > d;)
        node /= job.size[k];
    return node % job.size[d];
}

/* The dimensions in which these nodes differ. */
static uint32_t dimensions_of(const int *world, uint32_t size)
{
    uint32_t mask = 0, first = job.process[world[0]].node;

    for (uint32_t i = 1; i < size; i++)
        for (unsigned d = 0; d < job.dims; d++)
            if (coordinate(job.process[world[i]].node, d) != coordinate(first, d))
                mask |= 1u << d;
    return mask;
}

/* Its number in the part with these dimensions, as libtorus counts. */
static uint32_t member_of(uint32_t node, uint32_t mask)
{
    uint32_t member = 0;

    for (unsigned d = 0; d < job.dims; d++)
        if ((mask >> d & 1) != 0)
            member = member * job.size[d] + coordinate(node, d);
    return member;
}

/* Gives every rank its place: leaders first, the others on a node by rank. Returns -1 unless each of
 * the nodes has the same number of ranks, its leader among them. */
static int place(struct communicator *c, const int *world)
{
    uint32_t *count = calloc(c->nodes, sizeof *count);
    int result = 0;

    if (count == NULL)
        return -1;
    for (int leaders = 1; leaders >= 0; leaders--)
        for (uint32_t r = 0; r < c->size; r++) {
            const struct job_process *p = &job.process[world[r]];
            uint32_t node = member_of(p->node, c->dimensions);
            if ((int)p->leads != leaders)
                continue;
            if (count[node] == c->locals || (leaders == 0 && count[node] == 0)) {
                result = -1;
                continue;
            }
            c->place_of[r] = node * c->locals + count[node]++;
            c->rank_at[c->place_of[r]] = r;
        }
    free(count);
    if (result != 0)
        return -1;
    c->in_order = true;
    for (uint32_t r = 0; r < c->size; r++)
        c->in_order &= c->place_of[r] == r;
    c->node = c->place_of[c->rank] / c->locals;
    c->local = c->place_of[c->rank] % c->locals;
    for (uint32_t l = 0; l < c->locals; l++)
        c->on_node[l] = world[c->rank_at[c->node * c->locals + l]];
    return 0;
}

static enum reason find_nodes(struct communicator *c, const int *world)
{
    uint64_t nodes = 1;

    c->dimensions = dimensions_of(world, c->size);
    if (c->dimensions == 0)
        return REASON_ONE_NODE;
    for (unsigned d = 0; d < job.dims; d++)
        if ((c->dimensions >> d & 1) != 0)
            nodes *= job.size[d];
    if (c->size % nodes != 0 || !job_has_part(c->dimensions))
        return REASON_COMMUNICATOR;
    c->nodes = (uint32_t)nodes;
    c->locals = (uint32_t)(c->size / nodes);
    c->rank_at = calloc(c->size, sizeof *c->rank_at);
    c->place_of = calloc(c->size, sizeof *c->place_of);
    c->on_node = calloc(c->locals, sizeof *c->on_node);
    c->numbers = calloc(4 * (size_t)c->size, sizeof *c->numbers);
    if (c->rank_at == NULL || c->place_of == NULL || c->on_node == NULL || c->numbers == NULL)
        return REASON_COMMUNICATOR;
    return place(c, world) == 0 ? REASON_TAKEN : REASON_RANKS;
}

/* ---- Setting up ------------------------------------------------------------------------------ */

/* Under MPI_THREAD_MULTIPLE, calls on two communicators come in any order, which may differ between
 * nodes; the calls of a part have one order. So a part belongs to the communicator that all its
 * ranks find it free for. */
static enum reason claim(struct communicator *c)
{
    int mine, all;

    if (!job.threaded)
        return REASON_TAKEN;
    job_lock();
    mine = !is_owned[c->dimensions];
    if (mine)
        is_owned[c->dimensions] = true;
    job_unlock();
    c->owns_part = mine != 0;
    if (real.Allreduce(&mine, &all, 1, mpi.integer, mpi.min, c->handle) != MPI_SUCCESS || all == 0)
        return REASON_ORDER;
    return REASON_TAKEN;
}

static void release(struct communicator *c)
{
    free(c->rank_at);
    free(c->place_of);
    free(c->on_node);
    free(c->numbers);
    if (c->owns_part) {
        job_lock();
        is_owned[c->dimensions] = false;
        job_unlock();
    }
    *c = (struct communicator){.handle = c->handle, .reason = c->reason};
}

static enum reason look_up(struct communicator *c)
{
    int inter, size, rank, *world;
    enum reason reason;

    if (real.Comm_size(c->handle, &size) != MPI_SUCCESS ||
        real.Comm_rank(c->handle, &rank) != MPI_SUCCESS)
        return REASON_COMMUNICATOR;
    c->size = (uint32_t)size;
    c->rank = (uint32_t)rank;
    if (real.Comm_test_inter(c->handle, &inter) != MPI_SUCCESS || inter != 0)
        return REASON_INTERCOMMUNICATOR;
    world = calloc((size_t)size, sizeof *world);
    if (world == NULL || world_ranks(c->handle, size, world) != 0) {
        free(world);
        return REASON_COMMUNICATOR;
    }
    reason = find_nodes(c, world);
    free(world);
    if (reason == REASON_TAKEN && c->local == 0)
        c->group = job.part[c->dimensions];
    return reason;
}

static void say_where(const struct communicator *c, uint32_t size)
{
    if (c->reason == REASON_TAKEN)
        (void)fprintf(stderr, "torus: a communicator of size %u is on %u %s\n", (unsigned)size,
                      (unsigned)c->nodes, text_plural(c->nodes, "node", "nodes"));
    else
        (void)fprintf(stderr, "torus: a communicator of size %u is left to " ABI_NAME ": %s\n",
                      (unsigned)size, reason_text(c->reason));
}

static int forget(MPI_Comm comm, int its_keyval, void *value, void *extra)
{
    (void)comm;
    (void)its_keyval;
    (void)extra;
    release(value);
    free(value);
    return MPI_SUCCESS;
}

static int not_copied(MPI_Comm comm, int its_keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    (void)its_keyval;
    (void)extra;
    (void)in;
    (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

static void create_keyval(void)
{
    if (real.Comm_create_keyval(not_copied, forget, &keyval, NULL) != MPI_SUCCESS)
        keyval = MPI_KEYVAL_INVALID;
}

static struct communicator *set_up(MPI_Comm comm)
{
    struct communicator *c = calloc(1, sizeof *c);
    struct errhandlers errhandlers;
    uint32_t size;

    if (c == NULL)
        return NULL;
    c->handle = comm;
    errhandlers_set_aside(&errhandlers, comm);
    c->reason = look_up(c);
    errhandlers_put_back(&errhandlers);
    if (c->reason == REASON_TAKEN)
        c->reason = claim(c);
    size = c->size;
    if (job.verbose && c->rank == 0)
        say_where(c, size);
    if (c->reason != REASON_TAKEN)
        release(c);
    if (real.Comm_set_attr(comm, keyval, c) != MPI_SUCCESS) {
        release(c);
        free(c);
        return NULL;
    }
    return c;
}

struct communicator *communicator_of(MPI_Comm comm)
{
    struct communicator *c;
    int found;

    (void)pthread_once(&once, create_keyval);
    if (comm == mpi.null || keyval == MPI_KEYVAL_INVALID ||
        real.Comm_get_attr(comm, keyval, &c, &found) != MPI_SUCCESS)
        return NULL;
    return found ? c : set_up(comm);
}
