/* Finds the places of a communicator's ranks on the torus, without messages: all processes have exchanged their nodes
 * in MPI_Init. */
#include <stdlib.h>

#include "client/mpi/communicators/communicator.h"
#include "client/mpi/job/job.h"
#include "client/mpi/library/real.h"

/* ---- Tables ---------------------------------------------------------------------------------- */

void placement_free(struct placement *p)
{
    if (p == NULL)
        return;
    free(p->world);
    free(p->rank_at);
    free(p->place_of);
    free(p->first);
    free(p);
}

static struct placement *new_tables(uint32_t size)
{
    struct placement *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->world = calloc(size, sizeof *p->world);
    p->rank_at = calloc(size, sizeof *p->rank_at);
    p->place_of = calloc(size, sizeof *p->place_of);
    p->first = calloc(size + 1, sizeof *p->first);
    if (p->world != NULL && p->rank_at != NULL && p->place_of != NULL && p->first != NULL)
        return p;
    placement_free(p);
    return NULL;
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* Finds the ranks of a communicator in MPI_COMM_WORLD. Returns 0 with world[], 1 if a rank is not in MPI_COMM_WORLD
 * or MPI fails, or -1 if memory is short. */
static int world_ranks(MPI_Comm comm, uint32_t size, int *world)
{
    int *mine = calloc(size, sizeof *mine), result = 1;
    MPI_Group group, world_group;

    if (mine == NULL)
        return -1;
    for (uint32_t i = 0; i < size; i++)
        mine[i] = (int)i;
    if (real.Comm_group(comm, &group) == MPI_SUCCESS) {
        if (real.Comm_group(mpi.world, &world_group) == MPI_SUCCESS) {
            if (real.Group_translate_ranks(group, (int)size, mine, world_group, world) ==
                MPI_SUCCESS)
                result = 0;
            (void)real.Group_free(&world_group);
        }
        (void)real.Group_free(&group);
    }
    for (uint32_t i = 0; i < size && result == 0; i++)
        if (world[i] < 0 || (uint32_t)world[i] >= job.processes)
            result = 1;
    free(mine);
    return result;
}

static uint32_t coordinate(uint32_t node, unsigned d)
{
    for (unsigned k = job.dims; --k > d;)
        node /= job.size[k];
    return node % job.size[d];
}

/* Returns the dimensions (bit d: dimension d) in which the nodes of these ranks differ. */
static uint32_t dimensions_of(const int *world, uint32_t size)
{
    uint32_t mask = 0, first = job.process[world[0]].node;

    for (uint32_t i = 1; i < size; i++)
        for (unsigned d = 0; d < job.dims; d++)
            if (coordinate(job.process[world[i]].node, d) != coordinate(first, d))
                mask |= 1u << d;
    return mask;
}

/* The ranks of a communicator on a node of the torus. */
struct ranks {
    uint32_t count;
    uint32_t first;  /* the lowest of them in MPI_COMM_WORLD, which leads the node */
    uint32_t member; /* number of the node among those of the communicator */
    uint32_t seen;   /* number of ranks that have a place, without the first one */
};

/* Counts the ranks on each node. */
static void count_ranks(struct communicator *c, struct ranks *at)
{
    uint32_t *const first = c->placement->first;

    for (uint32_t r = 0; r < c->size; r++) {
        const uint32_t world = (uint32_t)c->placement->world[r];
        struct ranks *its = &at[job.process[world].node];
        if (its->count++ == 0 || world < its->first)
            its->first = world;
    }
    c->even = true;
    for (uint32_t n = 0; n < job.nodes; n++)
        if (at[n].count > 0) {
            at[n].member = c->nodes++;
            first[c->nodes] = first[c->nodes - 1] + at[n].count;
            c->several |= at[n].count > 1;
            c->even &= at[n].count == first[1];
        }
    c->first = first;
}

/* Returns whether the nodes are those of an open part, and their leaders those that have opened it. The members of a
 * part are numbered in the order of their nodes, too. */
static bool are_part(const struct communicator *c, const struct ranks *at)
{
    uint64_t nodes = 1;

    for (unsigned d = 0; d < job.dims; d++)
        if ((c->dimensions >> d & 1) != 0)
            nodes *= job.size[d];
    for (uint32_t n = 0; n < job.nodes; n++)
        if (at[n].count > 0 && job.process[at[n].first].leads == 0)
            return false;
    return nodes == c->nodes && job_has_part(c->dimensions);
}

uint32_t communicator_node(const struct communicator *c, uint32_t place)
{
    uint32_t low = 0, high = c->nodes - 1;

    if (!c->several)
        return place;
    while (low < high) {
        const uint32_t middle = (low + high + 1) / 2;
        if (c->first[middle] <= place)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Gives every rank its place: on each node the leader first, then the other ranks in order. */
static void place(struct communicator *c, struct ranks *at)
{
    struct placement *p = c->placement;

    c->in_order = true;
    for (uint32_t r = 0; r < c->size; r++) {
        struct ranks *its = &at[job.process[p->world[r]].node];
        p->place_of[r] = p->first[its->member];
        if (its->first != (uint32_t)p->world[r])
            p->place_of[r] += ++its->seen;
        p->rank_at[p->place_of[r]] = r;
        c->in_order &= p->place_of[r] == r;
    }
    c->node = communicator_node(c, p->place_of[c->rank]);
    c->local = p->place_of[c->rank] - p->first[c->node];
    c->locals = communicator_locals(c, c->node);
    c->rank_at = p->rank_at;
    c->place_of = p->place_of;
}

static int find_nodes(struct communicator *c)
{
    struct ranks *at = calloc(job.nodes, sizeof *at);

    if (at == NULL)
        return -1;
    count_ranks(c, at);
    if (c->nodes == 1) {
        c->reason = REASON_ONE_NODE;
    } else {
        c->reason = REASON_SERVED;
        c->dimensions = dimensions_of(c->placement->world, c->size);
        if (!are_part(c, at))
            c->dimensions = NO_PART;
        place(c, at);
    }
    free(at);
    return 0;
}

int placement_find(struct communicator *c)
{
    int inter = 0, size = 0, rank = 0, result;

    c->reason = REASON_COMMUNICATOR;
    if (real.Comm_size(c->handle, &size) != MPI_SUCCESS ||
        real.Comm_rank(c->handle, &rank) != MPI_SUCCESS)
        return 0;
    c->size = (uint32_t)size;
    c->rank = (uint32_t)rank;
    if (real.Comm_test_inter(c->handle, &inter) != MPI_SUCCESS || inter != 0) {
        c->reason = REASON_INTERCOMMUNICATOR;
        return 0;
    }
    c->placement = new_tables(c->size);
    if (c->placement == NULL)
        return -1;
    result = world_ranks(c->handle, c->size, c->placement->world);
    if (result != 0)
        return result < 0 ? -1 : 0;
    return find_nodes(c);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

bool placement_is_within(const struct communicator *inner, const struct communicator *outer)
{
    bool *is_outer, within = true;

    is_outer = calloc(job.processes, sizeof *is_outer);
    if (is_outer == NULL)
        return false;
    for (uint32_t r = 0; r < outer->size; r++)
        is_outer[outer->placement->world[r]] = true;
    for (uint32_t r = 0; r < inner->size && within; r++)
        within = is_outer[inner->placement->world[r]];
    free(is_outer);
    return within;
}
