#include "client/mpi/communicators/neighborhood.h"

#include <stdlib.h>

#include "client/mpi/communicators/communicator.h"
#include "client/mpi/library/real.h"

void neighborhood_free(struct neighborhood *n)
{
    if (n == NULL)
        return;
    free(n->to.edge);
    free(n->from.edge);
    free(n);
}

/* ---- Edges ----------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Sets the edges to the ranks of `blocks` blocks, which may be MPI_PROC_NULL. Blocks `index` and `flip` ^ `index` of two
 * neighbors belong together if several edges connect the same two ranks. Returns 0, or -1 if memory is short. */
static int set_edges(const struct communicator *c, struct edges *e, const int *ranks,
                     uint32_t blocks, uint32_t flip)
{
    e->edge = calloc(blocks + 1, sizeof *e->edge);
    if (e->edge == NULL)
        return -1;
    e->blocks = blocks;
    for (uint32_t i = 0; i < blocks; i++)
        if (ranks[i] >= 0 && (uint32_t)ranks[i] < c->size)
            e->edge[e->count++] = (struct edge){c->place_of[ranks[i]], i, i ^ flip};
    qsort(e->edge, e->count, sizeof *e->edge, compare);
    e->single = true;
    for (uint32_t i = 1; i < e->count; i++)
        e->single &= e->edge[i].place != e->edge[i - 1].place;
    return 0;
}

static int set_all(const struct communicator *c, struct neighborhood *n, const int *to,
                   uint32_t to_count, const int *from, uint32_t from_count)
{
    return set_edges(c, &n->to, to, to_count, 0) == 0 &&
                   set_edges(c, &n->from, from, from_count, n->is_cartesian) == 0
               ? 0
               : -1;
}

/* ---- Topologies ------------------------------------------------------------------------------ */

/* These return 0, 1 if MPI fails, or -1 if memory is short. */

/* A block to the neighbor on one side arrives there from the other side. */
static int read_cartesian(const struct communicator *c, struct neighborhood *n)
{
    int dims = 0, *ranks, result = 0;

    if (real.Cartdim_get(c->handle, &dims) != MPI_SUCCESS || dims < 0)
        return 1;
    ranks = calloc(2 * (size_t)dims + 1, sizeof *ranks);
    if (ranks == NULL)
        return -1;
    for (int d = 0; d < dims; d++)
        if (real.Cart_shift(c->handle, d, 1, &ranks[2 * d], &ranks[2 * d + 1]) != MPI_SUCCESS)
            result = 1;
    n->is_cartesian = true;
    if (result == 0)
        result = set_all(c, n, ranks, 2 * (uint32_t)dims, ranks, 2 * (uint32_t)dims);
    free(ranks);
    return result;
}

static int read_graph(const struct communicator *c, struct neighborhood *n)
{
    int count = 0, *ranks, result = 1;

    if (real.Graph_neighbors_count(c->handle, (int)c->rank, &count) != MPI_SUCCESS || count < 0)
        return 1;
    ranks = calloc((size_t)count + 1, sizeof *ranks);
    if (ranks == NULL)
        return -1;
    if (real.Graph_neighbors(c->handle, (int)c->rank, count, ranks) == MPI_SUCCESS)
        result = set_all(c, n, ranks, (uint32_t)count, ranks, (uint32_t)count);
    free(ranks);
    return result;
}

static int read_distributed_graph(const struct communicator *c, struct neighborhood *n)
{
    int from_count = 0, to_count = 0, is_weighted, *ranks, *to, *weights, result = 1;

    if (real.Dist_graph_neighbors_count(c->handle, &from_count, &to_count, &is_weighted) !=
            MPI_SUCCESS ||
        from_count < 0 || to_count < 0)
        return 1;
    const size_t both = (size_t)from_count + (size_t)to_count;
    ranks = calloc(2 * both + 1, sizeof *ranks);
    if (ranks == NULL)
        return -1;
    to = ranks + from_count;
    weights = ranks + both;
    if (real.Dist_graph_neighbors(c->handle, from_count, ranks, weights, to_count, to,
                                  weights + from_count) == MPI_SUCCESS)
        result = set_all(c, n, to, (uint32_t)to_count, ranks, (uint32_t)from_count);
    free(ranks);
    return result;
}

/* ---- All ranks ------------------------------------------------------------------------------- */

static int read_edges(const struct communicator *c, int topology, struct neighborhood *n)
{
    if (n == NULL)
        return -1;
    if (topology == MPI_CART)
        return read_cartesian(c, n);
    return topology == MPI_GRAPH ? read_graph(c, n) : read_distributed_graph(c, n);
}

/* Combines what the ranks have read. Returns the worst result of a rank. */
static int agree(const struct communicator *c, struct neighborhood *n, int result)
{
    enum { MOST, REPEATS, FAILS, LACKS, NUMBERS };
    int mine[NUMBERS] = {[FAILS] = result > 0, [LACKS] = result < 0}, all[NUMBERS];

    if (result == 0) {
        mine[MOST] = (int)(n->to.count > n->from.count ? n->to.count : n->from.count);
        mine[REPEATS] = !n->to.single || !n->from.single;
    }
    if (real.Allreduce(mine, all, NUMBERS, mpi.integer, mpi.max, c->handle) != MPI_SUCCESS)
        return 1;
    if (result == 0) {
        n->most = (uint32_t)all[MOST];
        n->repeats = all[REPEATS] != 0;
    }
    return all[LACKS] ? -1 : all[FAILS];
}

int neighborhood_read(struct communicator *c)
{
    struct neighborhood *n;
    int topology, result;

    if (c->neighborhood != NULL)
        return 0;
    if (real.Topo_test(c->handle, &topology) != MPI_SUCCESS || topology == MPI_UNDEFINED)
        return 1;
    n = calloc(1, sizeof *n);
    result = agree(c, n, read_edges(c, topology, n));
    if (result == 0)
        c->neighborhood = n;
    else
        neighborhood_free(n);
    return result;
}
