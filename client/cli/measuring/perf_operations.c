/* The operations of `torusctl perf`: their calls, contents and bounds. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/measuring/perf.h"
#include "daemon/lib/schedule/product.h"
#include "proto/text.h"

/* ---- Contents of blocks ---------------------------------------------------------------------- */

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ (value >> 29);
}

/* Returns a seed that differs for every call, source and destination. */
static uint64_t seed(const struct perf_job *job, uint32_t source, uint32_t destination)
{
    return mix(job->number * UINT64_C(0xd6e8feb86659fd93) + ((uint64_t)source << 32) + destination);
}

static void fill_block(uint8_t *block, size_t size, uint64_t from)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = mix(from + at);
        memcpy(block + at, &word, size - at < 8 ? size - at : 8);
    }
}

static bool is_wrong(const uint8_t *block, size_t size, uint64_t from)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = mix(from + at);
        if (memcmp(block + at, &word, size - at < 8 ? size - at : 8) != 0)
            return true;
    }
    return false;
}

/* ---- Blocks for each member ------------------------------------------------------------------ */

/* Divides both areas among the members: size() has the bytes of the block from member i to member j. */
static void lay_out_blocks(struct perf_job *job, size_t (*size)(uint64_t, uint32_t, uint32_t))
{
    job->send_size = job->receive_size = 0;
    for (uint32_t k = 0; k < job->members; k++) {
        job->send_bytes[k] = size(job->bytes, job->rank, k);
        job->send_offset[k] = job->send_size;
        job->send_size += job->send_bytes[k];
        job->receive_bytes[k] = size(job->bytes, k, job->rank);
        job->receive_offset[k] = job->receive_size;
        job->receive_size += job->receive_bytes[k];
    }
}

static void fill_blocks(struct perf_job *job)
{
    for (uint32_t j = 0; j < job->members; j++)
        fill_block(job->send + job->send_offset[j], job->send_bytes[j], seed(job, job->rank, j));
}

static uint64_t wrong_blocks(const struct perf_job *job)
{
    uint64_t wrong = 0;

    for (uint32_t i = 0; i < job->members; i++)
        wrong += is_wrong(job->receive + job->receive_offset[i], job->receive_bytes[i],
                          seed(job, i, job->rank));
    return wrong;
}

static size_t even(uint64_t bytes, uint32_t i, uint32_t j)
{
    (void)i;
    (void)j;
    return (size_t)bytes;
}

static void lay_out_alltoall(struct perf_job *job)
{
    lay_out_blocks(job, even);
}

static int call_alltoall(struct perf_job *job, struct torus_error *e)
{
    return torus_alltoall(job->group, job->send, job->receive, (size_t)job->bytes, e);
}

size_t perf_uneven(uint64_t bytes, uint32_t i, uint32_t j)
{
    return (size_t)(bytes * ((i + 3 * (uint64_t)j) % 5) / 2);
}

static void lay_out_alltoallv(struct perf_job *job)
{
    lay_out_blocks(job, perf_uneven);
}

static int call_alltoallv(struct perf_job *job, struct torus_error *e)
{
    return torus_alltoallv(job->group, job->send, job->send_bytes, job->send_offset, job->receive,
                           job->receive_bytes, job->receive_offset, e);
}

static double bound_alltoallv(const struct perf_job *job, const struct torus *t)
{
    return perf_bound_uneven(t, job->bytes, perf_uneven);
}

/* ---- Allgather, gather, scatter and broadcast ------------------------------------------------------- */

static void lay_out_allgather(struct perf_job *job)
{
    job->send_size = (size_t)job->bytes;
    job->receive_size = (size_t)job->bytes * job->members;
}

static int call_allgather(struct perf_job *job, struct torus_error *e)
{
    return torus_allgather(job->group, job->send, job->receive, (size_t)job->bytes, e);
}

static void fill_allgather(struct perf_job *job)
{
    fill_block(job->send, job->bytes, seed(job, job->rank, 0));
}

static uint64_t wrong_allgather(const struct perf_job *job)
{
    uint64_t wrong = 0;

    for (uint32_t i = 0; i < job->members; i++)
        wrong += is_wrong(job->receive + i * job->bytes, job->bytes, seed(job, i, 0));
    return wrong;
}

/* Only the root has a receive area. */
static void lay_out_gather(struct perf_job *job)
{
    lay_out_allgather(job);
    if (job->rank != job->plan->root)
        job->receive_size = 0;
}

static int call_gather(struct perf_job *job, struct torus_error *e)
{
    return torus_gather(job->group, job->send, job->receive, (size_t)job->bytes, job->plan->root,
                        e);
}

static uint64_t wrong_gather(const struct perf_job *job)
{
    return job->rank == job->plan->root ? wrong_allgather(job) : 0;
}

static unsigned links_of(const struct torus *t, uint32_t rank)
{
    unsigned links = 0;

    for (unsigned port = 0; port < torus_ports(t); port++)
        links += torus_neighbour(t, rank, port) != TORUS_NO_NODE;
    return links;
}

/* All blocks but its own reach the root, or leave it, by its links. */
static double bound_gather(const struct perf_job *job, const struct torus *t)
{
    const unsigned links = links_of(t, job->plan->root);

    return links > 0 ? (double)job->bytes * ((t->nodes - 1 + links - 1) / links) : 0;
}

/* Only the root has a send area. */
static void lay_out_scatter(struct perf_job *job)
{
    lay_out_blocks(job, even);
    job->receive_size = (size_t)job->bytes;
    if (job->rank != job->plan->root)
        job->send_size = 0;
}

static int call_scatter(struct perf_job *job, struct torus_error *e)
{
    return torus_scatter(job->group, job->send, job->receive, (size_t)job->bytes, job->plan->root,
                         e);
}

static void fill_scatter(struct perf_job *job)
{
    if (job->rank == job->plan->root)
        fill_blocks(job);
}

static uint64_t wrong_scatter(const struct perf_job *job)
{
    return is_wrong(job->receive, job->bytes, seed(job, job->plan->root, job->rank));
}

static void lay_out_broadcast(struct perf_job *job)
{
    job->send_size = 0;
    job->receive_size = (size_t)job->bytes;
}

static int call_broadcast(struct perf_job *job, struct torus_error *e)
{
    return torus_broadcast(job->group, job->receive, (size_t)job->bytes, job->plan->root, e);
}

static void fill_broadcast(struct perf_job *job)
{
    if (job->rank == job->plan->root)
        fill_block(job->receive, job->bytes, seed(job, job->rank, 0));
}

static uint64_t wrong_broadcast(const struct perf_job *job)
{
    return is_wrong(job->receive, job->bytes, seed(job, job->plan->root, 0));
}

/* ---- Reductions ------------------------------------------------------------------------------ */

/* Returns an element. Elements are small, so that every type can hold them, and sums of floating types are exact in
 * every order. */
static uint64_t value(const struct perf_job *job, uint32_t member, size_t element)
{
    uint64_t random = mix(seed(job, member, 0) + element);
    bool floating = job->plan->type >= TORUS_FLOAT32;

    if (floating && job->plan->combination == TORUS_PRODUCT) /* a power of two that stays small */
        return 1 + (random % (32 + job->members) == 0);
    return random % 101;
}

static uint64_t combine(enum torus_operator operation, uint64_t a, uint64_t b)
{
    switch (operation) {
    case TORUS_SUM:
        return a + b;
    case TORUS_PRODUCT:
        return a * b;
    case TORUS_MIN:
        return a < b ? a : b;
    case TORUS_MAX:
        return a > b ? a : b;
    case TORUS_AND:
        return a & b;
    case TORUS_OR:
        return a | b;
    case TORUS_XOR:
        return a ^ b;
    case TORUS_AVG:
        break; /* perf_operators does not offer it */
    }
    return 0;
}

/* Stores a value as an element. Integers are taken modulo their width, as in sums. */
static void store(uint8_t *at, enum torus_type type, uint64_t v)
{
    switch (type) {
    case TORUS_INT8:
    case TORUS_UINT8:
        memcpy(at, &(uint8_t){(uint8_t)v}, 1);
        break;
    case TORUS_INT16:
    case TORUS_UINT16:
        memcpy(at, &(uint16_t){(uint16_t)v}, 2);
        break;
    case TORUS_INT32:
    case TORUS_UINT32:
        memcpy(at, &(uint32_t){(uint32_t)v}, 4);
        break;
    case TORUS_INT64:
    case TORUS_UINT64:
        memcpy(at, &v, 8);
        break;
    case TORUS_FLOAT32:
        memcpy(at, &(float){(float)v}, 4);
        break;
    case TORUS_FLOAT64:
        memcpy(at, &(double){(double)v}, 8);
        break;
    case TORUS_FLOAT16:
    case TORUS_COMPLEX64:
    case TORUS_COMPLEX128:
    case TORUS_BOOL:
    case TORUS_BFLOAT16:
        break; /* perf_types does not offer them */
    }
}

static void fill_vector(struct perf_job *job)
{
    size_t width = torus_type_size(job->plan->type);

    for (size_t e = 0; e < job->count; e++)
        store(job->send + e * width, job->plan->type, value(job, job->rank, e));
}

/* Returns how many of `count` elements are wrong. The receive area begins with element `first` of the result. */
static uint64_t wrong_elements(const struct perf_job *job, size_t first, size_t count)
{
    size_t width = torus_type_size(job->plan->type);
    uint64_t wrong = 0;
    uint8_t wanted[8];

    for (size_t e = 0; e < count; e++) {
        uint64_t v = value(job, 0, first + e);
        for (uint32_t i = 1; i < job->members; i++)
            v = combine(job->plan->combination, v, value(job, i, first + e));
        store(wanted, job->plan->type, v);
        wrong += memcmp(job->receive + e * width, wanted, width) != 0;
    }
    return wrong;
}

/* Rounds job->bytes to whole elements: at least one, unless it is 0. */
static void lay_out_allreduce(struct perf_job *job)
{
    size_t width = torus_type_size(job->plan->type);

    job->count = job->bytes > 0 && job->bytes < width ? 1 : (size_t)job->bytes / width;
    job->bytes = job->count * width;
    job->send_size = job->receive_size = (size_t)job->bytes;
}

static int call_allreduce(struct perf_job *job, struct torus_error *e)
{
    return torus_allreduce(job->group, job->send, job->receive, job->count, job->plan->type,
                           job->plan->combination, e);
}

static uint64_t wrong_allreduce(const struct perf_job *job)
{
    return wrong_elements(job, 0, job->count);
}

/* Only the root has a receive area. */
static void lay_out_reduce(struct perf_job *job)
{
    lay_out_allreduce(job);
    if (job->rank != job->plan->root)
        job->receive_size = 0;
}

static int call_reduce(struct perf_job *job, struct torus_error *e)
{
    return torus_reduce(job->group, job->send, job->receive, job->count, job->plan->type,
                        job->plan->combination, job->plan->root, e);
}

static uint64_t wrong_reduce(const struct perf_job *job)
{
    return job->rank == job->plan->root ? wrong_allreduce(job) : 0;
}

/* The vector is divided as evenly as it can be; the counts are in receive_bytes. */
static void lay_out_reduce_scatter(struct perf_job *job)
{
    lay_out_allreduce(job);
    for (uint32_t i = 0; i < job->members; i++) {
        job->receive_offset[i] = job->count * i / job->members;
        job->receive_bytes[i] = job->count * (i + 1) / job->members - job->receive_offset[i];
    }
    job->receive_size = job->receive_bytes[job->rank] * torus_type_size(job->plan->type);
}

static int call_reduce_scatter(struct perf_job *job, struct torus_error *e)
{
    return torus_reduce_scatter(job->group, job->send, job->receive, job->receive_bytes,
                                job->plan->type, job->plan->combination, e);
}

static uint64_t wrong_reduce_scatter(const struct perf_job *job)
{
    return wrong_elements(job, job->receive_offset[job->rank], job->receive_bytes[job->rank]);
}

/* ---- Barrier --------------------------------------------------------------------------------- */

static void lay_out_nothing(struct perf_job *job)
{
    job->send_size = job->receive_size = 0;
}

static int call_barrier(struct perf_job *job, struct torus_error *e)
{
    return torus_barrier(job->group, e);
}

/* ---- The operations -------------------------------------------------------------------------- */

const struct perf_operation perf_operations[] = {
    {"alltoall", lay_out_alltoall, call_alltoall, fill_blocks, wrong_blocks,
     .bound_factor = torus_bound_all_port, .to_each = true},
    {"alltoallv", lay_out_alltoallv, call_alltoallv, fill_blocks, wrong_blocks,
     .bound = bound_alltoallv, .size = perf_uneven},
    {"allgather", lay_out_allgather, call_allgather, fill_allgather, wrong_allgather,
     .bound_factor = torus_bound_broadcast, .to_each = true},
    {"gather", lay_out_gather, call_gather, fill_allgather, wrong_gather, .bound = bound_gather,
     .shares = 1, .rooted = true},
    {"scatter", lay_out_scatter, call_scatter, fill_scatter, wrong_scatter, .bound = bound_gather,
     .shares = 1, .rooted = true},
    {"broadcast", lay_out_broadcast, call_broadcast, fill_broadcast, wrong_broadcast,
     .bound_factor = torus_bound_reduce, /* which is a broadcast backwards */
     .shares = 1, .rooted = true},
    {.name = "barrier", .lay_out = lay_out_nothing, .call = call_barrier},
    {"allreduce", lay_out_allreduce, call_allreduce, fill_vector, wrong_allreduce,
     .bound_factor = torus_bound_allreduce, .shares = 2, .reduces = true},
    {"reduce", lay_out_reduce, call_reduce, fill_vector, wrong_reduce,
     .bound_factor = torus_bound_reduce, .shares = 1, .reduces = true, .rooted = true},
    {"reduce-scatter", lay_out_reduce_scatter, call_reduce_scatter, fill_vector,
     wrong_reduce_scatter, .bound_factor = torus_bound_reduce_scatter, .shares = 1,
     .reduces = true},
    {0},
};

double perf_received(const struct perf_job *job)
{
    const struct perf_operation *o = job->plan->operation;
    const double others = job->members - 1;
    double sum = 0;

    if (o->to_each)
        return (double)job->bytes * others;
    if (o->size == NULL)
        return o->shares * (double)job->bytes * others / job->members;
    for (uint32_t i = 0; i < job->members; i++)
        for (uint32_t j = 0; j < job->members; j++)
            sum += i != j ? (double)o->size(job->bytes, i, j) : 0;
    return sum / job->members;
}

double perf_bound(const struct perf_job *job, const struct torus *t)
{
    const struct perf_operation *o = job->plan->operation;

    if (o->bound != NULL)
        return o->bound(job, t);
    return o->bound_factor != NULL ? (double)job->bytes * o->bound_factor(t) : 0;
}

/* Sizes are multiplied by up to 4 in perf_uneven(), and by the number of members. */
int perf_lay_out(struct perf_job *job, struct torus_error *e)
{
    if (job->bytes > INT64_MAX / 4 / job->members) {
        *e = (struct torus_error){.code = TORUS_ERROR_USAGE};
        (void)snprintf(e->text, sizeof e->text,
                       "--sizes: %llu bytes are too many for %u %s: at most %llu",
                       (unsigned long long)job->bytes, job->members,
                       text_plural(job->members, "member", "members"),
                       (unsigned long long)(INT64_MAX / 4 / job->members));
        return -1;
    }
    job->plan->operation->lay_out(job);
    return 0;
}

/* --- the lower bound of an exchange with blocks of different sizes --- */

/* Adds to along[a * n + b] the bytes from nodes with coordinate a to nodes with coordinate b. */
static void add_up(const struct torus *t, uint64_t bytes,
                   size_t (*size)(uint64_t bytes, uint32_t i, uint32_t j), unsigned dim,
                   double *along)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], n = t->size[dim];

    for (uint32_t i = 0; i < t->nodes; i++) {
        torus_coordinates(t, i, from);
        for (uint32_t j = 0; j < t->nodes; j++) {
            torus_coordinates(t, j, to);
            along[(size_t)from[dim] * n + to[dim]] += (double)size(bytes, i, j);
        }
    }
}

/* Returns the bytes from the `length` coordinates that begin at `first` to all others. */
static double crossing(const double *along, uint32_t n, uint32_t first, uint32_t length)
{
    double sum = 0;

    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++)
            if ((a + n - first) % n < length && (b + n - first) % n >= length)
                sum += along[(size_t)a * n + b];
    return sum;
}

static double by_cuts(const struct torus *t, unsigned dim, const double *along)
{
    uint32_t n = t->size[dim], lines = t->nodes / n;
    double most = 0;

    for (uint32_t k = 0; k < n; k++) {
        /* In rings, cut every half. In lines, cut between each two neighbours. */
        uint32_t first = t->wrap[dim] ? k : 0, length = t->wrap[dim] ? n / 2 : k;
        double channels = t->wrap[dim] ? 2.0 * lines : lines;
        double out = crossing(along, n, first, length) / channels;
        double in = crossing(along, n, (first + length) % n, n - length) / channels;
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return most;
}

/* A graph: cuts the coordinates below each k from the others. */
static double by_graph_cuts(const struct torus *t, unsigned dim, const double *along)
{
    const struct graph *g = t->graph[dim];
    double lines = t->nodes / t->size[dim], out = 0, in = 0, links = 0, most = 0;

    for (uint32_t k = 0; k + 1 < g->nodes; k++) {
        for (uint32_t other = 0; other < g->nodes; other++) {
            double away = along[(size_t)k * g->nodes + other];
            double back = along[(size_t)other * g->nodes + k];
            out += other < k ? -back : other > k ? away : 0;
            in += other < k ? -away : other > k ? back : 0;
        }
        for (unsigned direction = 0; direction < g->directions; direction++) {
            uint32_t other = graph_neighbour(g, k, direction);
            links += other == GRAPH_NO_NODE ? 0 : other < k ? -1 : 1;
        }
        double bytes = out > in ? out : in;
        most = bytes / (links * lines) > most ? bytes / (links * lines) : most;
    }
    return most;
}

static double by_nodes(const struct torus *t, uint64_t bytes,
                       size_t (*size)(uint64_t bytes, uint32_t i, uint32_t j))
{
    double most = 0;

    for (uint32_t i = 0; i < t->nodes; i++) {
        double in = 0, out = 0, links = links_of(t, i);
        for (uint32_t j = 0; j < t->nodes; j++) {
            out += i != j ? (double)size(bytes, i, j) : 0;
            in += i != j ? (double)size(bytes, j, i) : 0;
        }
        if (links > 0 && (in > out ? in : out) / links > most)
            most = (in > out ? in : out) / links;
    }
    return most;
}

double perf_bound_uneven(const struct torus *t, uint64_t bytes,
                         size_t (*size)(uint64_t bytes, uint32_t i, uint32_t j))
{
    double most = by_nodes(t, bytes, size);

    for (unsigned dim = 0; dim < t->dims; dim++) {
        double *along = calloc((size_t)t->size[dim] * t->size[dim], sizeof *along), cut;
        if (along == NULL)
            return 0;
        add_up(t, bytes, size, dim, along);
        cut = t->graph[dim] != NULL ? by_graph_cuts(t, dim, along) : by_cuts(t, dim, along);
        most = cut > most ? cut : most;
        free(along);
    }
    return most;
}
