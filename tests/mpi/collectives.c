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

/* (1 + a) * (1 + b) - 1 */
static void user_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((unsigned *)inout)[i] += ((unsigned *)in)[i] * (((unsigned *)inout)[i] + 1);
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

static const char *const reductions[] = {"allreduce",      "reduce", "reduce_scatter_block",
                                         "reduce_scatter", "scan",   "exscan"};
enum { ALLREDUCE, REDUCE, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, SCAN, EXSCAN, REDUCTIONS };

static void reduce_as(int which, const void *from, void *receive, int count, const int *counts,
                      MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    if (which == ALLREDUCE)
        MPI_Allreduce(from, receive, count, type, op, comm);
    else if (which == REDUCE)
        MPI_Reduce(from, receive, count, type, op, root, comm);
    else if (which == REDUCE_SCATTER_BLOCK)
        MPI_Reduce_scatter_block(from, receive, count, type, op, comm);
    else if (which == REDUCE_SCATTER)
        MPI_Reduce_scatter(from, receive, counts, type, op, comm);
    else if (which == SCAN)
        MPI_Scan(from, receive, count, type, op, comm);
    else
        MPI_Exscan(from, receive, count, type, op, comm);
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
    const struct arithmetic *a = &all[below(10)];
    int operation = number % REDUCTIONS, whole = below(2), in_place = below(4) == 0,
        count = some_count();
    int root = below(n), rank, counts[MOST_RANKS], total = count;
    uint64_t seed = next(&state);
    const char *op_name;
    MPI_Op op = choose_op(a, &op_name);
    char what[128];

    MPI_Comm_rank(communicators[comm], &rank);
    for (int i = 0; i < n; i++)
        counts[i] = operation == REDUCE_SCATTER_BLOCK ? count : between(seed, count, i, 0);
    if (operation == REDUCE_SCATTER_BLOCK || operation == REDUCE_SCATTER) {
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
    const void *from = in_place && (operation != REDUCE || rank == root) ? MPI_IN_PLACE : send;
    size_t result =
        operation == REDUCE_SCATTER ? (size_t)counts[rank] * a->size : (size_t)count * a->size;
    reduce_as(operation, from, receive, count, counts, a->type, op, root, communicators[comm]);
    snprintf(what, sizeof what, "%s %s of %d %s%s", reductions[operation], op_name, count, a->name,
             in_place ? " in place" : "");
    if ((operation != REDUCE || rank == root) && (operation != EXSCAN || rank > 0))
        record(number, what, comm,
               a->kind == FLOAT    ? "float"
               : a->kind == DOUBLE ? "double"
                                   : "exact",
               receive, result);
    free(send);
    free(receive);
}

/* ---- Operators that are not commutative, and types with gaps --------------------------------- */

/* Elements are functions x -> a * x + b, and the operator applies one after the other. */
struct function {
    unsigned a, b;
};

/* Where an element has its function: from the address of the element on, or before it. */
enum { FUNCTIONS, WITH_GAPS, BEFORE, DOUBLES_AT, INTS_AT, SHORTS_AT, LONG_DOUBLES, COMBINATIONS };

static const size_t extents_of[COMBINATIONS] = {8, 20, 12, 16, 8, 8, 16};
static MPI_Datatype combined_types[COMBINATIONS];
static MPI_Op compose[3];

static void apply(char *in, char *inout, int count, size_t extent, int at)
{
    for (int i = 0; i < count; i++, in += extent, inout += extent) {
        struct function f, g;
        memcpy(&f, in + at, sizeof f);
        memcpy(&g, inout + at, sizeof g);
        g.b += g.a * f.b;
        g.a *= f.a;
        memcpy(inout + at, &g, sizeof g);
    }
}

static void apply_functions(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    apply(in, inout, *count, 8, 0);
}

static void apply_with_gaps(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    apply(in, inout, *count, 20, 8);
}

static void apply_before(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    apply(in, inout, *count, 12, -8);
}

static void make_combinations(void)
{
    const MPI_Aint distances[] = {8, -8}, extents_made[] = {20, 12};
    MPI_Datatype two, moved;

    MPI_Type_contiguous(2, MPI_UNSIGNED, &two);
    combined_types[FUNCTIONS] = two;
    for (int i = 0; i < 2; i++) {
        MPI_Type_create_hindexed_block(1, 1, &distances[i], two, &moved);
        MPI_Type_create_resized(moved, i == 0 ? 0 : -8, extents_made[i],
                                &combined_types[WITH_GAPS + i]);
        MPI_Type_free(&moved);
    }
    for (int i = FUNCTIONS; i <= BEFORE; i++)
        MPI_Type_commit(&combined_types[i]);
    combined_types[DOUBLES_AT] = MPI_DOUBLE_INT;
    combined_types[INTS_AT] = MPI_2INT;
    combined_types[SHORTS_AT] = MPI_SHORT_INT;
    combined_types[LONG_DOUBLES] = MPI_LONG_DOUBLE;
    MPI_Op_create(apply_functions, 0, &compose[FUNCTIONS]);
    MPI_Op_create(apply_with_gaps, 0, &compose[WITH_GAPS]);
    MPI_Op_create(apply_before, 0, &compose[BEFORE]);
}

static void free_combinations(void)
{
    for (int i = FUNCTIONS; i <= BEFORE; i++) {
        MPI_Type_free(&combined_types[i]);
        MPI_Op_free(&compose[i]);
    }
}

/* Small whole numbers, so that equal ones occur at several ranks, and sums are exact. */
static void fill_combination(int kind, unsigned char *at, size_t count)
{
    for (size_t i = 0; kind >= DOUBLES_AT && i < count; i++, at += extents_of[kind]) {
        const int value = at[0] % 5, index = at[1] % 7;
        const double as_double = value;
        const short as_short = (short)value;
        const long double as_long_double = value;
        if (kind == LONG_DOUBLES) {
            memcpy(at, &as_long_double, sizeof as_long_double);
            continue;
        }
        memcpy(at, kind == INTS_AT ? (const void *)&value : &as_short, kind == INTS_AT ? 4 : 2);
        if (kind == DOUBLES_AT)
            memcpy(at, &as_double, sizeof as_double);
        memcpy(at + (kind == DOUBLES_AT ? 8 : 4), &index, sizeof index);
    }
}

static void record_packed(int number, const char *what, int comm, int kind, const void *at,
                          int count)
{
    int size, position = 0;
    char *packed;

    MPI_Pack_size(count, combined_types[kind], MPI_COMM_SELF, &size);
    packed = calloc((size_t)size + 1, 1);
    MPI_Pack(at, count, combined_types[kind], packed, size, &position, MPI_COMM_SELF);
    if (kind == LONG_DOUBLES) /* 10 bytes are the number */
        for (int i = 0; i < count; i++)
            memset(packed + i * 16 + 10, 0, 6);
    record(number, what, comm, "exact", packed, (size_t)position);
    free(packed);
}

static void combination(int number, int comm, int n)
{
    static const char *const names[] = {
        "functions", "functions with gaps", "functions before", "double int",
        "2int",      "short int",           "long double"};
    int which = number % REDUCTIONS, kind = number % COMBINATIONS;
    /* MPICH 4.0.2 alone writes behind its memory if elements begin with a gap. */
    if ((which == REDUCE_SCATTER_BLOCK || which == REDUCE_SCATTER) && kind <= BEFORE)
        kind = FUNCTIONS;
    int count = some_count(), in_place = below(4) == 0, root = below(n), most = below(2);
    int rank, counts[MOST_RANKS], total = count;
    const size_t before = kind == BEFORE ? 8 : 0;
    uint64_t seed = next(&state);
    char what[128];

    MPI_Comm_rank(communicators[comm], &rank);
    for (int i = 0; i < n; i++)
        counts[i] = which == REDUCE_SCATTER ? between(seed, count, i, 0) : count;
    if (which == REDUCE_SCATTER || which == REDUCE_SCATTER_BLOCK) {
        total = 0;
        for (int i = 0; i < n; i++)
            total += counts[i];
    }
    const size_t bytes = before + (size_t)total * extents_of[kind] + 16;
    unsigned char *send = new_buffer(bytes, number, 1), *receive = new_buffer(bytes, number, 2);
    fill_combination(kind, send, (size_t)total);
    fill_combination(kind, receive, (size_t)total);
    reduce_as(which, in_place && (which != REDUCE || rank == root) ? MPI_IN_PLACE : send + before,
              receive + before, count, counts, combined_types[kind],
              kind <= BEFORE         ? compose[kind]
              : kind == LONG_DOUBLES ? MPI_SUM
              : most                 ? MPI_MAXLOC
                                     : MPI_MINLOC,
              root, communicators[comm]);
    snprintf(what, sizeof what, "%s of %d %s%s", reductions[which], count, names[kind],
             in_place ? " in place" : "");
    if ((which != REDUCE || rank == root) && (which != EXSCAN || rank > 0))
        record_packed(number, what, comm, kind, receive + before,
                      which == REDUCE_SCATTER ? counts[rank] : count);
    free(send);
    free(receive);
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
    int comm = often[below(13)], operation = (number + below(3)) % 31, n;

    if (number < 31) { /* all that there is */
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
    else if (operation < 19)
        reduction(number, comm, n);
    else if (operation < 25)
        combination(number, comm, n);
    else if (operation < 28)
        gather(number, comm, n, operation >= 26);
    else
        scatter(number, comm, n, operation >= 29);
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
    make_combinations();
    MPI_Op_create(user_sum, 1, &user_op);
    for (int number = 0; number < atoi(argv[2]); number++)
        one(number);
    MPI_Op_free(&user_op);
    free_combinations();
    for (int comm = DUP; comm < SELF; comm++)
        MPI_Comm_free(&communicators[comm]);
    if (fclose(out) != 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
