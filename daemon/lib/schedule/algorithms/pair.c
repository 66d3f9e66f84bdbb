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
#include "daemon/lib/schedule/algorithms/rotation.h"
#include "daemon/lib/schedule/algorithms/rows.h"

static int pair_accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1 && (!t->wrap[i] || t->size[i] % 2 != 0))
            return algorithm_refuse(a, t, e);
    return 0;
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
    static int accepts_##parts(const struct torus *t, struct error *e)                             \
    {                                                                                              \
        return pair_accepts(&algorithm_##identifier, t, e);                                        \
    }                                                                                              \
    const struct algorithm algorithm_##identifier = {                                              \
        .name = text,                                                                              \
        .summary = "swaps with one neighbour, then the other, a dimension at a time" split,        \
        .accepts_text = "rings of even size: all dimensions wrap or have one node",                \
        .startups = "sum of n_i/2",                                                                \
        .transmission = blocks,                                                                    \
        .source = "this project; odd-even exchange is classic",                                    \
        .port_model = PORT_MODEL_ALL,                                                              \
        .segments = parts,                                                                         \
        .accepts = accepts_##parts,                                                                \
        .max_legs = torus_diameter,                                                                \
        .period = pair_period,                                                                     \
        .route = pair_route,                                                                       \
    };

PAIR(pair, "pair", 1, "", "sum of N*n_i/4")
PAIR(pair_s2, "pair-s2", 2, ", in halves", "equal sizes: sum of N*n_i/8")
PAIR(pair_s4, "pair-s4", 4, ", in quarters", "two or more equal sizes: sum of N*n_i/16")
