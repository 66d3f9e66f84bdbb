/* Neighborhood operations in all topologies. neighbors NAME... runs these tests in order. Each rank checks every block that
 * it receives, and that nothing else in its buffers has changed. */
#include <stdbool.h>

#include "scenario.h"

#ifdef OPEN_MPI
#define MPICH_ORDER false
#define LOSES_BLOCKS OPERATIONS
#else
#define MPICH_ORDER true
#define LOSES_BLOCKS                                                                               \
    ALLTOALLW /* MPICH 4.0.2 alone, if ranks have more neighbors in one direction */
#endif

enum { MOST = 24 }; /* neighbors of a rank */
enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, OPERATIONS };

struct topology {
    MPI_Comm comm;
    bool is_cartesian;
    bool is_uneven; /* a rank has more neighbors in one direction */
    int rank, size;
    int ins, outs;
    int in[MOST], out[MOST];
    int *all; /* by rank: the neighbors to which it sends, MOST numbers, and -2 behind them */
};

static void describe(struct topology *t, MPI_Comm comm)
{
    int kind, dims, weighted, weights[2 * MOST], mine[MOST];

    memset(t, 0, sizeof *t);
    t->comm = comm;
    MPI_Comm_rank(comm, &t->rank);
    MPI_Comm_size(comm, &t->size);
    MPI_Topo_test(comm, &kind);
    t->is_cartesian = kind == MPI_CART;
    if (t->is_cartesian) {
        MPI_Cartdim_get(comm, &dims);
        for (int d = 0; d < dims; d++)
            MPI_Cart_shift(comm, d, 1, &t->out[2 * d], &t->out[2 * d + 1]);
        t->outs = 2 * dims;
    } else if (kind == MPI_GRAPH) {
        MPI_Graph_neighbors_count(comm, t->rank, &t->outs);
        MPI_Graph_neighbors(comm, t->rank, t->outs, t->out);
    } else {
        MPI_Dist_graph_neighbors_count(comm, &t->ins, &t->outs, &weighted);
        MPI_Dist_graph_neighbors(comm, t->ins, t->in, weights, t->outs, t->out, weights + MOST);
    }
    if (kind != MPI_DIST_GRAPH) {
        t->ins = t->outs;
        memcpy(t->in, t->out, sizeof t->in);
    }
    CHECK(t->ins < MOST && t->outs < MOST);
    const bool uneven = t->ins != t->outs;
    MPI_Allreduce(&uneven, &t->is_uneven, 1, MPI_C_BOOL, MPI_LOR, comm);
    for (int i = 0; i < MOST; i++)
        mine[i] = i < t->outs ? t->out[i] : -2;
    t->all = malloc((size_t)t->size * sizeof mine);
    MPI_Allgather(mine, MOST, MPI_INT, t->all, MOST, MPI_INT, comm);
}

/* Returns the number of the block that the neighbor sends along this edge, or -1 without a neighbor. If a rank sends
 * several blocks to the same neighbor, MPICH 4.0.2 has an order of its own. MPI_Neighbor_alltoall delivers the first block
 * as the last one. MPI_Neighbor_alltoallv and MPI_Neighbor_alltoallw deliver it as the first one, even in a grid with a
 * dimension of two nodes. */
static int block_of(const struct topology *t, int operation, int edge)
{
    const int from = t->in[edge];
    int earlier = 0, block = 0;

    if (from < 0)
        return -1;
    if (t->is_cartesian && !MPICH_ORDER)
        return edge ^ 1;
    const bool reverse = MPICH_ORDER && operation == ALLTOALL;
    for (int i = reverse ? edge + 1 : 0; i < (reverse ? t->ins : edge); i++)
        earlier += t->in[i] == from;
    for (;; block++)
        if (t->all[from * MOST + block] == t->rank && earlier-- == 0)
            return block;
}

/* ---- Buffers --------------------------------------------------------------------------------- */

enum { INTS, GAPS, TYPES };

static MPI_Datatype types[TYPES]; /* GAPS: an int in the place of two */

static void make_types(void)
{
    if (types[INTS] != 0)
        return;
    types[INTS] = MPI_INT;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &types[GAPS]);
    MPI_Type_commit(&types[GAPS]);
}

/* Blocks of `count` elements, or, in operations with counts for each block, of about as many. */
static int count_of(int operation, int count, int from, int block)
{
    if (operation == ALLGATHER || operation == ALLTOALL)
        return count;
    return count + (from < 0 ? 0 : operation == ALLGATHERV ? from : 3 * from + block) % 5;
}

static int value_of(int from, int block, int element)
{
    return (from + 1) * 100000 + block * 1000 + element % 1000;
}

struct buffer {
    int *at;
    int counts[MOST], displacements[MOST];
    MPI_Aint bytes[MOST];
    MPI_Datatype each[MOST];
    int stride[MOST]; /* ints from an element to the next one */
    int begin[MOST];  /* of a block, in ints */
    int end;          /* of the buffer */
};

/* Lays out blocks whose counts are set. */
static void lay_out(struct buffer *b, int operation, int blocks, int type)
{
    const bool row = operation == ALLGATHER || operation == ALLTOALL,
               by_type = operation == ALLTOALLW;
    int at = row ? 0 : 2;

    for (int i = 0; i < blocks; i++) {
        const int which = by_type ? (type + i) % TYPES : type;
        b->stride[i] = which == GAPS ? 2 : 1;
        b->each[i] = types[which];
        b->begin[i] = at;
        b->displacements[i] = at / b->stride[i];
        b->bytes[i] = at * (MPI_Aint)sizeof(int);
        at += b->counts[i] * b->stride[i] + (row ? 0 : 4);
        at += row ? 0 : at % 2;
    }
    b->end = at + 4;
    b->at = malloc((size_t)b->end * sizeof(int));
    for (int i = 0; i < b->end; i++)
        b->at[i] = -1;
}

static void fill(struct buffer *b, int i, int from, int block)
{
    for (int e = 0; e < b->counts[i]; e++)
        b->at[b->begin[i] + e * b->stride[i]] = value_of(from, block, e);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

struct exchange {
    int operation, count, type;
    bool is_nonblocking;
    struct buffer s, r, expected;
    MPI_Request request;
};

static void call(const struct topology *t, struct exchange *x)
{
    const struct buffer *s = &x->s, *r = &x->r;
    const MPI_Datatype from = s->each[0], to = r->each[0];

    switch (x->operation) {
    case ALLGATHER:
        MPI_Neighbor_allgather(s->at, s->counts[0], from, r->at, s->counts[0], to, t->comm);
        break;
    case ALLGATHERV:
        MPI_Neighbor_allgatherv(s->at + s->begin[0], s->counts[0], from, r->at, r->counts,
                                r->displacements, to, t->comm);
        break;
    case ALLTOALL:
        MPI_Neighbor_alltoall(s->at, s->counts[0], from, r->at, s->counts[0], to, t->comm);
        break;
    case ALLTOALLV:
        MPI_Neighbor_alltoallv(s->at, s->counts, s->displacements, from, r->at, r->counts,
                               r->displacements, to, t->comm);
        break;
    default:
        MPI_Neighbor_alltoallw(s->at, s->counts, s->bytes, s->each, r->at, r->counts, r->bytes,
                               r->each, t->comm);
    }
}

static void begin_call(const struct topology *t, struct exchange *x)
{
    const struct buffer *s = &x->s, *r = &x->r;
    const MPI_Datatype from = s->each[0], to = r->each[0];

    switch (x->operation) {
    case ALLGATHER:
        MPI_Ineighbor_allgather(s->at, s->counts[0], from, r->at, s->counts[0], to, t->comm,
                                &x->request);
        break;
    case ALLGATHERV:
        MPI_Ineighbor_allgatherv(s->at + s->begin[0], s->counts[0], from, r->at, r->counts,
                                 r->displacements, to, t->comm, &x->request);
        break;
    case ALLTOALL:
        MPI_Ineighbor_alltoall(s->at, s->counts[0], from, r->at, s->counts[0], to, t->comm,
                               &x->request);
        break;
    case ALLTOALLV:
        MPI_Ineighbor_alltoallv(s->at, s->counts, s->displacements, from, r->at, r->counts,
                                r->displacements, to, t->comm, &x->request);
        break;
    default:
        MPI_Ineighbor_alltoallw(s->at, s->counts, s->bytes, s->each, r->at, r->counts, r->bytes,
                                r->each, t->comm, &x->request);
    }
}

/* Makes the call, or begins it. */
static void begin(const struct topology *t, struct exchange *x, int operation, int count, int type,
                  bool is_nonblocking)
{
    const bool one = operation <= ALLGATHERV;
    const int blocks = one ? 1 : t->outs;
    struct buffer *s = &x->s, *r = &x->r;

    *x = (struct exchange){operation, count, type, is_nonblocking};
    s->each[0] = r->each[0] = MPI_INT;
    s->counts[0] = count; /* also if there are no neighbors */
    for (int i = 0; i < blocks; i++)
        s->counts[i] = count_of(operation, count, t->rank, i);
    lay_out(s, operation, blocks, (type + t->rank) % TYPES);
    for (int i = 0; i < blocks; i++)
        fill(s, i, t->rank, i);
    for (int i = 0; i < t->ins; i++)
        r->counts[i] = count_of(operation, count, t->in[i], one ? 0 : block_of(t, operation, i));
    lay_out(r, operation, t->ins, (type / 2 + t->rank) % TYPES);
    x->expected = *r;
    x->expected.at = malloc((size_t)r->end * sizeof(int));
    memcpy(x->expected.at, r->at, (size_t)r->end * sizeof(int));
    for (int i = 0; i < t->ins; i++)
        if (t->in[i] >= 0)
            fill(&x->expected, i, t->in[i], one ? 0 : block_of(t, operation, i));
    if (is_nonblocking)
        begin_call(t, x);
    else
        call(t, x);
}

static void end(struct exchange *x)
{
    if (x->is_nonblocking)
        MPI_Wait(&x->request, MPI_STATUS_IGNORE);
    for (int i = 0; i < x->r.end; i++)
        if (x->r.at[i] != x->expected.at[i]) {
            say("operation %d, count %d, type %d, number %d: %d instead of %d", x->operation,
                x->count, x->type, i, x->r.at[i], x->expected.at[i]);
            CHECK(x->r.at[i] == x->expected.at[i]);
        }
    free(x->s.at);
    free(x->r.at);
    free(x->expected.at);
}

static void exchange(const struct topology *t, int operation, int count, int type)
{
    struct exchange x;

    begin(t, &x, operation, count, type, false);
    end(&x);
}

/* Each operation with blocks of several sizes. */
static void exchange_all(MPI_Comm comm)
{
    static const int counts[] = {1, 2, 40, 3000};
    struct topology t;

    make_types();
    describe(&t, comm);
    for (int operation = 0; operation < (t.is_uneven ? LOSES_BLOCKS : OPERATIONS); operation++)
        for (int i = 0; i < 4; i++)
            exchange(&t, operation, counts[i], (i + operation) % 4);
    free(t.all);
}

/* ---- Topologies ------------------------------------------------------------------------------ */

/* Dimensions of 1 and 2 nodes are periodic, too: both neighbors are the same rank, or this rank itself. */
static void cartesian(void)
{
    const int grids[][2] = {{1, size}, {2, size / 2}, {size / 2, 2}, {size, 1}};

    for (int i = 0; i < 16; i++) {
        const int periods[] = {i / 4 % 2, i / 8 % 2}, kept[] = {0, 1};
        MPI_Comm grid, line;

        MPI_Cart_create(MPI_COMM_WORLD, 2, grids[i % 4], periods, 0, &grid);
        exchange_all(grid);
        if (i % 4 == 1) {
            MPI_Cart_sub(grid, kept, &line);
            exchange_all(line);
            MPI_Comm_free(&line);
        }
        MPI_Comm_free(&grid);
    }
}

/* A ring in both directions; with `twice`, there are two edges to the next rank and two back. */
static void ring(bool twice)
{
    const int degree = twice ? 4 : 2;
    int index[256], neighbors[1024];
    MPI_Comm comm;

    for (int r = 0; r < size; r++) {
        index[r] = (r + 1) * degree;
        for (int k = 0; k < degree; k++)
            neighbors[r * degree + k] = (r + (k % 2 == 0 ? 1 : size - 1)) % size;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, neighbors, 0, &comm);
    exchange_all(comm);
    MPI_Comm_free(&comm);
}

static void graph(void)
{
    ring(false);
    ring(true);
}

/* `uneven`: every rank sends to the next one twice and to some others; rank 0 to all, also to itself; the last rank to
 * none. */
static int targets_of(int from, bool uneven, int *to)
{
    int count = 0;

    if (uneven && from == size - 1)
        return 0;
    for (int r = 0; r < size && uneven && from == 0; r++)
        to[count++] = size - 1 - r;
    to[count++] = (from + size - 1) % size;
    to[count++] = from;
    if (uneven)
        to[count++] = (from + size - 1) % size;
    return count;
}

static void exchange_directed(bool uneven)
{
    int from[MOST], to[MOST], others[MOST], outs = targets_of(rank, uneven, to), ins = 0;
    MPI_Comm comm, again;

    for (int r = size - 1; r >= 0; r--)
        for (int k = 0, n = targets_of(r, uneven, others); k < n; k++)
            if (others[k] == rank)
                from[ins++] = r;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ins, from, MPI_UNWEIGHTED, outs, to,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    exchange_all(comm);
    MPI_Comm_dup(comm, &again);
    exchange_all(again);
    MPI_Comm_free(&again);
    MPI_Comm_free(&comm);
}

static void distributed_graph(void)
{
    exchange_directed(false);
    exchange_directed(true);
}

/* Calls of one size on a ring, so often that a way is chosen, and then on another one. */
static void choosing(void)
{
    for (int turn = 0; turn < 2; turn++) {
        const int dims[] = {size}, periods[] = {1};
        struct topology t;
        MPI_Comm comm;

        make_types();
        MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
        describe(&t, comm);
        for (int i = 0; i < 60; i++) {
            exchange(&t, ALLTOALL, 2, 0);
            exchange(&t, ALLGATHER, 5000, 0);
            exchange(&t, ALLTOALLV, 10 * i, 0);
        }
        free(t.all);
        MPI_Comm_free(&comm);
    }
}

/* Many calls are under way on a grid. At first they are left to MPI, until blocking calls follow. */
static void nonblocking(void)
{
    enum { CALLS = 40, TURNS = 12 };
    static struct exchange all[CALLS];
    const int dims[] = {size}, periods[] = {0};
    struct topology t;
    MPI_Comm comm;

    make_types();
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
    describe(&t, comm);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < CALLS; i++)
            begin(&t, &all[i], (i + turn) % OPERATIONS, 1 + i * i, i / 3 % 4, true);
        use(MPI_COMM_WORLD);
        use(comm);
        for (int i = 0; i < CALLS; i++)
            end(&all[(7 * i + rank) % CALLS]);
    }
    free(t.all);
    MPI_Comm_free(&comm);
}

/* Prints the class of each error. */
static void arguments(void)
{
    const int dims[] = {size}, periods[] = {1}, counts[] = {1, -1}, places[] = {0, 1};
    int in[2], out[2] = {1, 2}, class;
    MPI_Comm line;

    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(line, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD),
                    &class);
    say("no topology: %d", class);
    MPI_Error_class(MPI_Neighbor_alltoall(out, -1, MPI_INT, in, 1, MPI_INT, line), &class);
    say("a negative count: %d", class);
    MPI_Error_class(MPI_Neighbor_alltoall(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, line), &class);
    say("no type: %d", class);
    MPI_Error_class(
        MPI_Neighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, line),
        &class);
    say("one negative count: %d", class);
    MPI_Comm_free(&line);
}

static const struct scenario scenarios[] = {
    {"cartesian", cartesian},          {"graph", graph},
    {"dist-graph", distributed_graph}, {"choosing", choosing},
    {"nonblocking", nonblocking},      {"arguments", arguments},
};

int main(int argc, char **argv)
{
    return run_scenarios(scenarios, sizeof scenarios / sizeof scenarios[0], argc, argv,
                         MPI_THREAD_SINGLE);
}
