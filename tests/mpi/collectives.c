/* Random collective operations, the same for the same seed. Each rank writes the contents of every buffer to a
 * file, so that runs with and without a preload can be compared.
 *
 *     collectives SEED COUNT COLUMNS FOLDER
 *
 * COLUMNS: ranks in a row of the torus. A record in the file is a line "NUMBER OPERATION ... KIND BYTES"
 * and then BYTES bytes; KIND is "exact", or the type whose rounding may differ: "float", "double". */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANKS 64

static FILE *out;
static int world_rank, world_size;

/* ---- Random numbers -------------------------------------------------------------------------- */

static uint64_t state; /* for choices that are the same on all ranks */

static uint64_t next(uint64_t *s)
{
    uint64_t z = *s += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int below(int most)
{
    return (int)(next(&state) % (uint64_t)most);
}

static int some_count(void)
{
    static const int limits[] = {1, 2, 8, 50, 50, 300, 3000};

    return below(limits[below(7)] + 1);
}

/* ---- Communicators --------------------------------------------------------------------------- */

enum { WORLD, DUP, REVERSED, SHUFFLED, ROW, COLUMN, ROW_REVERSED, HALF, PAIR, SELF, COMMUNICATORS };

static const char *const communicator_names[] = {"world", "dup",    "reversed",     "shuffled",
                                                 "row",   "column", "row reversed", "half",
                                                 "pair",  "self"};
static MPI_Comm communicators[COMMUNICATORS];

static void make_communicators(int columns)
{
    int row = world_rank / columns, column = world_rank % columns;
    int n = world_size, step = n % 3 != 0 ? 3 : n % 5 != 0 ? 5 : 7;

    communicators[WORLD] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[DUP]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, n - world_rank, &communicators[REVERSED]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank * step % n, &communicators[SHUFFLED]);
    MPI_Comm_split(MPI_COMM_WORLD, row, column, &communicators[ROW]);
    MPI_Comm_split(MPI_COMM_WORLD, column, row, &communicators[COLUMN]);
    MPI_Comm_split(MPI_COMM_WORLD, row, -column, &communicators[ROW_REVERSED]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < n / 2, world_rank, &communicators[HALF]);
    MPI_Comm_split(MPI_COMM_WORLD, (world_rank + 1) % n / 2, world_rank, &communicators[PAIR]);
    communicators[SELF] = MPI_COMM_SELF;
}

/* ---- Types ----------------------------------------------------------------------------------- */

/* Types of 8 ints' worth of data at most, for blocks that are moved. */
enum { BYTES, INTS, DOUBLES, ROW_OF_INTS, VECTOR, REVERSE, PADDED, PAIRS, STRUCT, TYPES };

static MPI_Datatype types[TYPES];
static const size_t extents[TYPES] = {1, 4, 8, 12, 20, 12, 16, 16, 24};

static void make_types(void)
{
    int lengths[] = {1, 1, 1}, back[] = {2, 1, 0}, fields[] = {1, 1};
    MPI_Aint at[] = {16, 8};
    MPI_Datatype parts[] = {MPI_DOUBLE, MPI_INT}, inner;

    types[BYTES] = MPI_BYTE;
    types[INTS] = MPI_INT;
    types[DOUBLES] = MPI_DOUBLE;
    MPI_Type_contiguous(3, MPI_INT, &types[ROW_OF_INTS]);
    MPI_Type_vector(3, 1, 2, MPI_INT, &types[VECTOR]);
    MPI_Type_indexed(3, lengths, back, MPI_INT, &types[REVERSE]);
    MPI_Type_create_resized(MPI_DOUBLE, 0, 16, &types[PADDED]);
    types[PAIRS] = MPI_DOUBLE_INT;
    MPI_Type_create_struct(2, fields, at, parts, &inner);
    MPI_Type_create_resized(inner, 0, 24, &types[STRUCT]);
    for (int t = ROW_OF_INTS; t < TYPES; t++)
        if (t != PAIRS)
            MPI_Type_commit(&types[t]);
    MPI_Type_free(&inner);
}

/* Another type with the same size of data, or the same type. Senders, receivers and ranks may use different
 * types. */
static int partner(int type, int which)
{
    static const int twelve[] = {ROW_OF_INTS, VECTOR, REVERSE};

    return type == ROW_OF_INTS || type == VECTOR || type == REVERSE ? twelve[which % 3] : type;
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static unsigned char *new_buffer(size_t bytes, int operation, int salt)
{
    uint64_t s =
        state + (uint64_t)operation * 1000003u + (uint64_t)(world_rank * 16 + salt) * 7919u;
    unsigned char *buffer = malloc(bytes + 8);

    for (size_t i = 0; i < bytes; i++)
        buffer[i] = (unsigned char)(next(&s) >> 32);
    return buffer;
}

static void record(int number, const char *what, int comm, const char *kind, const void *bytes,
                   size_t size)
{
    fprintf(out, "%d %s on %s: %s %zu\n", number, what, communicator_names[comm], kind, size);
    fwrite(bytes, 1, size, out);
}

/* ---- Operations that move data --------------------------------------------------------------- */

static void alltoall(int number, int comm, int n)
{
    int count = some_count(), type = below(TYPES), in_place = below(4) == 0;
    if (in_place) /* Open MPI 4.1.4 has errors with others */
        type %= VECTOR;
    int to = partner(type, in_place ? 0 : world_rank + number);
    int from = partner(type, number / 2);
    size_t bytes = (size_t)count * extents[to] * (size_t)n;
    unsigned char *receive = new_buffer(bytes, number, 1);
    unsigned char *send = new_buffer((size_t)count * extents[from] * (size_t)n, number, 2);

    MPI_Alltoall(in_place ? MPI_IN_PLACE : send, count, types[from], receive, count, types[to],
                 communicators[comm]);
    record(number, "alltoall", comm, "exact", receive, bytes);
    free(send);
    free(receive);
}

struct layout {
    int counts[MOST_RANKS], displacements[MOST_RANKS];
    size_t elements;
};

/* Puts blocks into a random order, with gaps. */
static void lay_out(struct layout *l, int n, uint64_t seed)
{
    int order[MOST_RANKS];

    l->elements = 0;
    for (int i = 0; i < n; i++) {
        int j = (int)(next(&seed) % (uint64_t)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < n; i++) {
        l->elements += next(&seed) % 4;
        l->displacements[order[i]] = (int)l->elements;
        l->elements += (size_t)l->counts[order[i]];
    }
}

/* The number of elements that rank a sends to rank b. */
static int between(uint64_t seed, int most, int a, int b)
{
    seed += (uint64_t)(a * 1000 + b);
    return (int)(next(&seed) % (uint64_t)(most + 1));
}

static void alltoallv(int number, int comm, int n, int by_type)
{
    int most = some_count(), type = below(TYPES), in_place = below(4) == 0, rank;
    uint64_t seed = next(&state);
    if (in_place) /* Open MPI 4.1.4 has errors with others */
        type %= VECTOR;
    int to = partner(type, in_place ? 0 : world_rank + number);
    int from = partner(type, number / 2);
    struct layout sent, received;
    MPI_Datatype from_types[MOST_RANKS], to_types[MOST_RANKS];

    MPI_Comm_rank(communicators[comm], &rank);
    for (int i = 0; i < n; i++) {
        int low = in_place && i < rank ? i : rank, high = in_place && i < rank ? rank : i;
        sent.counts[i] = between(seed, most, low, high);
        received.counts[i] = in_place ? sent.counts[i] : between(seed, most, i, rank);
        from_types[i] = types[partner(type, i + rank)];
        to_types[i] = types[partner(type, in_place ? 0 : i * 2)];
    }
    lay_out(&sent, n, seed + (uint64_t)rank);
    lay_out(&received, n, seed + 77 + (uint64_t)rank);
    size_t size = by_type ? 24 : extents[to];
    unsigned char *receive = new_buffer(received.elements * size, number, 1);
    unsigned char *send = new_buffer(sent.elements * (by_type ? 24 : extents[from]), number, 2);
    if (by_type) {
        for (int i = 0; i < n; i++) {
            sent.displacements[i] *= 24;
            received.displacements[i] *= 24;
        }
        MPI_Alltoallw(in_place ? MPI_IN_PLACE : send, sent.counts, sent.displacements, from_types,
                      receive, received.counts, received.displacements, to_types,
                      communicators[comm]);
    } else {
        MPI_Alltoallv(in_place ? MPI_IN_PLACE : send, sent.counts, sent.displacements, types[from],
                      receive, received.counts, received.displacements, types[to],
                      communicators[comm]);
    }
    record(number, by_type ? "alltoallw" : "alltoallv", comm, "exact", receive,
           received.elements * size);
    free(send);
    free(receive);
}

static void allgather(int number, int comm, int n, int each)
{
    int most = some_count(), type = below(TYPES), in_place = below(4) == 0, rank;
    uint64_t seed = next(&state);
    /* Without a preload, MPI_Allgatherv of MPICH 4.0.2 is wrong if the types of the ranks differ in extent. */
    int to = partner(type, each ? number : world_rank + number), from = partner(type, number / 2);
    struct layout l;

    MPI_Comm_rank(communicators[comm], &rank);
    for (int i = 0; i < n; i++)
        l.counts[i] = each ? between(seed, most, i, 0) : most;
    lay_out(&l, n, seed + (uint64_t)rank);
    size_t bytes = (each ? l.elements : (size_t)most * (size_t)n) * extents[to];
    unsigned char *receive = new_buffer(bytes, number, 1);
    unsigned char *send = new_buffer((size_t)l.counts[rank] * extents[from], number, 2);
    if (each)
        MPI_Allgatherv(in_place ? MPI_IN_PLACE : send, l.counts[rank], types[from], receive,
                       l.counts, l.displacements, types[to], communicators[comm]);
    else
        MPI_Allgather(in_place ? MPI_IN_PLACE : send, most, types[from], receive, most, types[to],
                      communicators[comm]);
    record(number, each ? "allgatherv" : "allgather", comm, "exact", receive, bytes);
    free(send);
    free(receive);
}

static void broadcast(int number, int comm, int n)
{
    int count = some_count() * 4, type = below(TYPES), root = below(n);
    int mine = partner(type, world_rank + number);
    size_t bytes = (size_t)count * extents[mine];
    unsigned char *buffer = new_buffer(bytes, number, 1);

    MPI_Bcast(buffer, count, types[mine], root, communicators[comm]);
    record(number, "broadcast", comm, "exact", buffer, bytes);
    free(buffer);
}

/* ---- Operations that combine data ------------------------------------------------------------ */

enum { FLOAT = 1, DOUBLE = 2 };

struct arithmetic {
    const char *name;
    MPI_Datatype type;
    size_t size;
    int kind; /* 0 for integers; otherwise FLOAT or DOUBLE, and the number of these in an element */
    int parts;
};

static void user_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += 3 * ((int *)in)[i];
}

static MPI_Op user_op;

/* Values with sums and products near 1; some are small integers. */
static void fill_floats(const struct arithmetic *a, unsigned char *buffer, size_t count, int whole)
{
    for (size_t i = 0; i < count * (size_t)a->parts; i++) {
        uint32_t bits;
        memcpy(&bits, buffer + i * 4, sizeof bits);
        double value = whole ? (double)(bits % 7) - 3 : 0.5 + (double)bits / 4294967296.0;
        if (a->kind == FLOAT)
            ((float *)(void *)buffer)[i] = (float)value;
    }
    for (size_t i = count * (size_t)a->parts; a->kind == DOUBLE && i-- > 0;) {
        uint32_t bits;
        memcpy(&bits, buffer + i * 8, sizeof bits);
        ((double *)(void *)buffer)[i] =
            whole ? (double)(bits % 7) - 3 : 0.5 + (double)bits / 4294967296.0;
    }
}

/* MPICH 4.0.2 compares unsigned numbers as if they were signed. */
static void make_positive(const struct arithmetic *a, unsigned char *buffer, size_t bytes)
{
    for (size_t i = a->size; a->name[0] == 'u' && i <= bytes; i += a->size)
        buffer[i - 1] &= 0x7f;
}

static MPI_Op choose_op(const struct arithmetic *a, const char **name)
{
    const MPI_Op integers[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_BAND,
                               MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    const MPI_Op floats[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
    static const char *const names[] = {"sum", "prod", "min",  "max", "band",
                                        "bor", "bxor", "land", "lor", "lxor"};
    int which = below(a->parts == 2 ? 2 : a->kind == 0 ? 10 : 4);

    *name = names[which];
    if (a->type == MPI_INT && below(8) == 0) {
        *name = "user's";
        return user_op;
    }
    return a->kind == 0 ? integers[which] : floats[which];
}

static void reduction(int number, int comm, int n)
{
    const struct arithmetic all[] = {{"int", MPI_INT, 4, 0, 1},
                                     {"double", MPI_DOUBLE, 8, DOUBLE, 1},
                                     {"float", MPI_FLOAT, 4, FLOAT, 1},
                                     {"long long", MPI_LONG_LONG, 8, 0, 1},
                                     {"unsigned short", MPI_UNSIGNED_SHORT, 2, 0, 1},
                                     {"signed char", MPI_SIGNED_CHAR, 1, 0, 1},
                                     {"uint64_t", MPI_UINT64_T, 8, 0, 1},
                                     {"unsigned", MPI_UNSIGNED, 4, 0, 1},
                                     {"double complex", MPI_C_DOUBLE_COMPLEX, 16, DOUBLE, 2},
                                     {"float complex", MPI_C_FLOAT_COMPLEX, 8, FLOAT, 2}};
    static const char *const names[] = {"allreduce", "reduce", "reduce_scatter_block",
                                        "reduce_scatter"};
    const struct arithmetic *a = &all[below(10)];
    int operation = number % 4, whole = below(2), in_place = below(4) == 0, count = some_count();
    int root = below(n), rank, counts[MOST_RANKS], total = count;
    uint64_t seed = next(&state);
    const char *op_name;
    MPI_Op op = choose_op(a, &op_name);
    char what[128];

    MPI_Comm_rank(communicators[comm], &rank);
    for (int i = 0; i < n; i++)
        counts[i] = operation == 2 ? count : between(seed, count, i, 0);
    if (operation >= 2) {
        total = 0;
        for (int i = 0; i < n; i++)
            total += counts[i];
    }
    size_t bytes = (size_t)total * a->size;
    unsigned char *send = new_buffer(bytes, number, 1), *receive = new_buffer(bytes, number, 2);
    if (a->kind == 0) {
        make_positive(a, send, bytes);
        make_positive(a, receive, bytes);
    } else {
        fill_floats(a, send, (size_t)total, whole);
        fill_floats(a, receive, (size_t)total, whole);
    }
    const void *from = in_place && (operation != 1 || rank == root) ? MPI_IN_PLACE : send;
    size_t result = operation >= 2 ? (size_t)counts[rank] * a->size : bytes;
    if (operation == 0)
        MPI_Allreduce(from, receive, count, a->type, op, communicators[comm]);
    else if (operation == 1)
        MPI_Reduce(from, receive, count, a->type, op, root, communicators[comm]);
    else if (operation == 2)
        MPI_Reduce_scatter_block(from, receive, count, a->type, op, communicators[comm]);
    else
        MPI_Reduce_scatter(from, receive, counts, a->type, op, communicators[comm]);
    snprintf(what, sizeof what, "%s %s of %d %s%s", names[operation], op_name, count, a->name,
             in_place ? " in place" : "");
    if (operation != 1 || rank == root)
        record(number, what, comm,
               a->kind == FLOAT    ? "float"
               : a->kind == DOUBLE ? "double"
                                   : "exact",
               receive, result);
    free(send);
    free(receive);
}

/* MPI_MINLOC, which no preload serves. */
static void location(int number, int comm)
{
    struct {
        double value;
        int rank;
    } mine = {(double)(int)(next(&state) % 100) * (world_rank + 1) / 7, world_rank}, least;
    memset(&least, 0, sizeof least);
    MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, communicators[comm]);
    record(number, "minloc", comm, "exact", &least, 12);
}

/* ---- All ------------------------------------------------------------------------------------- */

/* Sets the counts of the blocks of all ranks, which all ranks know, and lays the blocks out. Returns the elements of this
 * rank's block, and in *elements those of the buffer for all blocks. */
static int rooted_layout(int n, int rank, int each, struct layout *l, size_t *elements)
{
    int most = some_count();
    uint64_t seed = next(&state);

    for (int i = 0; i < n; i++)
        l->counts[i] = each ? between(seed, most, i, 0) : most;
    lay_out(l, n, seed);
    *elements = each ? l->elements : (size_t)most * (size_t)n;
    return l->counts[rank];
}

static void gather(int number, int comm, int n, int each)
{
    int type = below(TYPES), in_place = below(4) == 0, root = below(n), rank;
    int to = partner(type, number), from = partner(type, number / 2);
    struct layout l;
    size_t elements;

    MPI_Comm_rank(communicators[comm], &rank);
    int mine = rooted_layout(n, rank, each, &l, &elements);
    unsigned char *receive = new_buffer(elements * extents[to], number, 1);
    unsigned char *send = new_buffer((size_t)mine * extents[from], number, 2);
    const void *what = in_place && rank == root ? MPI_IN_PLACE : send;
    if (each)
        MPI_Gatherv(what, mine, types[from], receive, l.counts, l.displacements, types[to], root,
                    communicators[comm]);
    else
        MPI_Gather(what, mine, types[from], receive, mine, types[to], root, communicators[comm]);
    if (rank == root)
        record(number, each ? "gatherv" : "gather", comm, "exact", receive, elements * extents[to]);
    free(send);
    free(receive);
}

static void scatter(int number, int comm, int n, int each)
{
    int type = below(TYPES), in_place = below(4) == 0, root = below(n), rank;
    int to = partner(type, number), from = partner(type, number / 2);
    struct layout l;
    size_t elements;

    MPI_Comm_rank(communicators[comm], &rank);
    int mine = rooted_layout(n, rank, each, &l, &elements);
    unsigned char *send = new_buffer(elements * extents[from], number, 1);
    unsigned char *receive = new_buffer((size_t)mine * extents[to], number, 2);
    void *where = in_place && rank == root ? MPI_IN_PLACE : receive;
    if (each)
        MPI_Scatterv(send, l.counts, l.displacements, types[from], where, mine, types[to], root,
                     communicators[comm]);
    else
        MPI_Scatter(send, mine, types[from], where, mine, types[to], root, communicators[comm]);
    record(number, each ? "scatterv" : "scatter", comm, "exact", receive,
           (size_t)mine * extents[to]);
    record(number, "scattered", comm, "exact", send, elements * extents[from]);
    free(send);
    free(receive);
}

static void one(int number)
{
    static const int often[] = {WORLD,  WORLD,  DUP,          REVERSED, SHUFFLED, ROW, ROW,
                                COLUMN, COLUMN, ROW_REVERSED, HALF,     PAIR,     SELF};
    int comm = often[below(13)], operation = (number + below(3)) % 26, n;

    if (number < 26) { /* all that there is */
        comm = WORLD;
        operation = number;
    }
    MPI_Comm_size(communicators[comm], &n);
    /* Communicators of one kind may differ in size; the choices must not. */
    uint64_t before = state;
    if (operation < 3)
        alltoall(number, comm, n);
    else if (operation < 6)
        alltoallv(number, comm, n,
                  operation == 5 && n > 1); /* Open MPI 4.1.4 alone writes behind the
                                                              * buffer of a single rank */
    else if (operation < 10)
        allgather(number, comm, n, operation >= 8);
    else if (operation < 12)
        broadcast(number, comm, n);
    else if (operation < 13)
        MPI_Barrier(communicators[comm]);
    else if (operation < 14)
        location(number, comm);
    else if (operation < 20)
        reduction(number, comm, n);
    else if (operation < 23)
        gather(number, comm, n, operation >= 21);
    else
        scatter(number, comm, n, operation >= 24);
    state = before;
    (void)next(&state);
}

int main(int argc, char **argv)
{
    char path[512];

    MPI_Init(&argc, &argv);
    if (argc != 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    snprintf(path, sizeof path, "%s/%d", argv[4], world_rank);
    out = fopen(path, "wb");
    if (out == NULL || world_size > MOST_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    state = strtoull(argv[1], NULL, 10);
    make_communicators(atoi(argv[3]));
    make_types();
    MPI_Op_create(user_sum, 1, &user_op);
    for (int number = 0; number < atoi(argv[2]); number++)
        one(number);
    MPI_Op_free(&user_op);
    for (int comm = DUP; comm < SELF; comm++)
        MPI_Comm_free(&communicators[comm]);
    if (fclose(out) != 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
