#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rotation.h"

/* Dimension after dimension, in both directions at once. In each step, every block that still has
 * to move in this dimension moves one hop the shorter path, and all blocks that leave by a port are
 * one message: floor(n/2) steps on a ring of n, n - 1 on a line. On a hypercube (n = 2) this is the
 * classic exchange with one neighbour after another.
 *
 * The parity of the offset in the other dimensions decides which way blocks go to the opposite node
 * of an even ring. Every node has one block for each such offset, so both ways carry the same, or
 * one of them one block more. The two halves of a block (rotation.h) go different ways as well.
 * Routes do not depend on where the source is: on a torus every node does the same. */

static uint32_t dim_route(const struct torus *t, uint32_t source, uint32_t destination,
                          uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], offset[TORUS_MAX_DIMS];
    struct rotation order = rotation_of(t);
    uint32_t offsets = 0, begin = 0, count = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++) {
        offset[i] = (to[i] + t->size[i] - from[i]) % t->size[i];
        offsets += offset[i];
    }
    for (unsigned turn = 0; turn < order.count; turn++) {
        unsigned dim = rotation_dim(&order, segment, turn);
        int direction =
            (offsets - offset[dim] + segment) % 2 == 0 ? 1 : -1; /* to the opposite node */
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);
        for (uint32_t hop = 0; hop < hops; hop++)
            legs[count++] = (struct leg){.step = begin + hop,
                                         .hops = 1,
                                         .dim = (uint8_t)dim,
                                         .direction = (int8_t)direction};
        begin += torus_longest_path(t, dim);
    }
    return count;
}

#define DIM(identifier, text, parts, split, blocks)                                                \
    const struct algorithm algorithm_##identifier = {                                              \
        .name = text,                                                                              \
        .summary = "a dimension at a time, in both directions, with combined messages" split,      \
        .accepts_text = "any torus or mesh",                                                       \
        .startups = "sum of floor(n_i/2) (mesh: n_i - 1)",                                         \
        .transmission = blocks,                                                                    \
        .source = "this project; dimension-order combining is classic on hypercubes",              \
        .port_model = PORT_MODEL_ALL,                                                              \
        .segments = parts,                                                                         \
        .max_legs = torus_diameter,                                                                \
        .period = torus_full_period,                                                               \
        .route = dim_route,                                                                        \
    };

DIM(dim, "dim", 1, "",
    "sum of N/n_i * floor(n_i^2/4)/2 (n_i even, N/n_i odd: + n_i/4; mesh: N*(n_i-1)/2)")
DIM(dim_s2, "dim-s2", 2, ", in halves",
    "several equal sizes: half of sum of N/n_i * floor(n_i^2/4)/2 (mesh: N*(n_i-1)/2)")

/* dim-k2 to dim-k8: the same with at most k ports of a node at a time, on tori. The 2d directions of d dimensions are in a
 * circle: + and - of the first one, + and - of the second, and so on. In turn t of 2d, part a of a block moves in
 * direction a + t, if that is its way, and otherwise waits. There are k parts for the k directions of a turn, and all are
 * halves, for the two ways to the exact opposite. So every part is once in every direction.
 *
 * If all sizes are equal, no exchange with single hops and k ports takes fewer blocks, for any k
 * (client/doc/exchange-with-few-ports.md). For k = 1 this would be A2, whose blocks need no parts. */

static int dim_ports_accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    unsigned ports = 2 * rotation_of(t).count;

    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1 && !t->wrap[i])
            ports = 0;
    return a->ports <= ports ? 0 : algorithm_refuse(a, t, e);
}

static uint32_t dim_ports_route(const struct algorithm *a, const struct torus *t, uint32_t source,
                                uint32_t destination, uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    const struct rotation order = rotation_of(t);
    const unsigned ways = 2 * order.count;
    uint32_t begin = 0, count = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned turn = 0; turn < ways; turn++) {
        const unsigned way = (segment % a->ports + turn) % ways, dim = order.dim[way / 2];
        int direction = segment < a->ports ? 1 : -1; /* to the exact opposite */
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction), steps = 0;
        if (direction != (way % 2 == 0 ? 1 : -1))
            hops = 0;
        for (uint32_t hop = 0; hop < hops; hop++)
            legs[count++] = (struct leg){.step = begin + hop,
                                         .hops = 1,
                                         .dim = (uint8_t)dim,
                                         .direction = (int8_t)direction};
        for (unsigned part = 0; part < a->ports; part++) {
            const uint32_t path = torus_longest_path(t, order.dim[(part + turn) % ways / 2]);
            steps = path > steps ? path : steps;
        }
        begin += steps;
    }
    return count;
}

static const struct algorithm_methods dim_ports_methods = {.accepts = dim_ports_accepts,
                                                           .route = dim_ports_route};

#define DIM_PORTS(k)                                                                               \
    {                                                                                              \
        .methods = &dim_ports_methods, .name = "dim-k" #k,                                         \
        .summary = "parts of a block in " #k " of the directions at a time, in turn",              \
        .accepts_text = "tori whose nodes have at least " #k " ports",                             \
        .startups = "d equal sizes n: 2d * floor(n/2)",                                            \
        .transmission = "d equal sizes n: d * N/n * floor(n^2/4)/" #k, .source = "this project",   \
        .port_model = PORT_MODEL_ALL, .ports = (k), .segments = 2 * (k), .single_hops = true,      \
        .only_by_name = true, .max_legs = torus_diameter, .period = torus_full_period,             \
    }

static const struct algorithm dim_ports[] = {DIM_PORTS(2), DIM_PORTS(3), DIM_PORTS(4), DIM_PORTS(5),
                                             DIM_PORTS(6), DIM_PORTS(7), DIM_PORTS(8)};

const struct algorithm *dim_with_ports(const char *name)
{
    for (size_t i = 0; i < sizeof dim_ports / sizeof dim_ports[0]; i++)
        if (strcmp(dim_ports[i].name, name) == 0)
            return &dim_ports[i];
    return NULL;
}

/* Odd-even neighbour exchange, dimension after dimension, in n/2 rounds on a ring of n. In round q,
 * the node at coordinate x swaps with its + neighbour if x + q is even, otherwise with its -
 * neighbour. A message has all blocks for nodes beyond. A block that has left a node in one
 * direction continues in that direction in the next round. Blocks of a node with even x for the +
 * offsets 1..n/2 leave in round 0, those for the - offsets 1..n/2-1 in round 1; at odd x the other
 * way round.
 *
 * On a single ring, a message has n/2 blocks in round 0 and n - 2q in round q >= 1: n^2/4 in all.
 * This is the average status, the least possible for single hops on one port.
 *
 * With several segments, more ports are busy at once. The segments are in different dimensions
 * (rotation.h); once all dimensions are used, further segments swap the roles of even and odd, and
 * so use the other link of every node. With four segments every channel of a square torus carries
 * the same load at any time, r*c^2/8 in all: the lower bound. On a ring of 2 the two roles are the
 * two links. */

static bool pair_takes(const struct torus *t)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1 && (!t->wrap[i] || t->size[i] % 2 != 0))
            return false;
    return true;
}

static void pair_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->size[i] > 1 ? 2 : 1;
}

static uint32_t pair_route(const struct torus *t, uint32_t source, uint32_t destination,
                           uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct rotation order = rotation_of(t);
    uint32_t swapped = rotation_round(&order, segment) % 2;
    uint32_t begin = 0, count = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned turn = 0; turn < order.count; turn++) {
        unsigned dim = rotation_dim(&order, segment, turn);
        int first = (from[dim] + swapped) % 2 == 0 ? 1 : -1; /* the direction of round 0 */
        int direction = first;                               /* to the exact opposite */
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);
        uint32_t step = begin + (direction == first ? 0 : 1);
        for (; hops > 0; hops--)
            legs[count++] = (struct leg){
                .step = step++, .hops = 1, .dim = (uint8_t)dim, .direction = (int8_t)direction};
        begin += t->size[dim] / 2;
    }
    return count;
}

#define PAIR(identifier, text, parts, split, blocks)                                               \
    const struct algorithm algorithm_##identifier = {                                              \
        .name = text,                                                                              \
        .summary = "swaps with one neighbour, then the other, a dimension at a time" split,        \
        .accepts_text = "rings of even size: all dimensions wrap or have one node",                \
        .startups = "sum of n_i/2",                                                                \
        .transmission = blocks,                                                                    \
        .source = "this project; odd-even exchange is classic",                                    \
        .port_model = PORT_MODEL_ALL,                                                              \
        .segments = parts,                                                                         \
        .takes = pair_takes,                                                                       \
        .max_legs = torus_diameter,                                                                \
        .period = pair_period,                                                                     \
        .by_lines = true,                                                                          \
        .route = pair_route,                                                                       \
    };

PAIR(pair, "pair", 1, "", "sum of N*n_i/4")
PAIR(pair_s2, "pair-s2", 2, ", in halves", "equal sizes: sum of N*n_i/8")
PAIR(pair_s4, "pair-s4", 4, ", in quarters", "two or more equal sizes: sum of N*n_i/16")
