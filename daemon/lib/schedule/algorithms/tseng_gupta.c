/* A direct exchange without contention on a torus of n x n nodes, n a power of two. Liu, Gu, Bi, Tu,
 * Dong: Optimal All-to-All Personalized Communication in All-Port Tori, section 1, cites Tseng and
 * Gupta [4] and Lam, Huang and Sadayappan [3]: each block goes straight to its destination, in a
 * message of its own, and the exchange on 2^d x 2^d takes 2^(3d-3) steps, the lower bound.
 *
 * The paper does not give the schedule. This project reconstructs it; only the counts are the
 * paper's: 2^(3d-3) = n^3/8 steps and blocks, with shortest paths. Every channel carries exactly one
 * message in every step. In the paper's wormhole network a message turns a corner within a step.
 * Here a leg is straight, and a block that turns has legs in two steps. So a node starts up to two
 * messages in a step, one in each dimension (4x4: four).
 *
 * Tours. Let m = n/2. Two residues i < j modulo m stand for four nodes of a ring: i, j, i + m and
 * j + m. In each direction a tour of four blocks goes round the ring through these nodes, each block
 * from one node to the next. These tours have all blocks of 1 to m-1 hops. The blocks of m hops go
 * by tours of a second kind, for i and j = i + m/2: in direction +, from i to i + m and from i + m
 * to i, while j and j + m keep the blocks for themselves; in direction -, i and j change roles.
 *
 * Groups. The tours of a direction form m groups: group g > 0 has the tours with i XOR j = g, group
 * 0 has the tours of the second kind. The m/2 tours of a group visit every node of the ring once.
 *
 * Phases. A phase has a direction and a group for each dimension, and pairs the tours of one group
 * with those of the other. A pair has 16 blocks, from (x, y) to (x', y'), where one tour leads from
 * x to x' and the other one from y to y'. Two pairs share no row and no column. So a phase crosses
 * all channels of its two directions, each once. There are four choices of directions, m * m choices
 * of groups, and m/2 ways to pair the tours (way w pairs tour a with tour a XOR w): 2*m^3 phases,
 * which have all blocks.
 *
 * Steps. Phases of opposite directions run side by side, which makes m^3 double phases. From 8x8 on
 * the two pair their tours in different ways. Then no node is the source, or the destination, of two
 * blocks of a double phase: in the paper's network, where a double phase is a step, one port is
 * enough. Here two double phases take two steps. One has equal directions in the two dimensions, and
 * crosses dimension 0 in the first step and dimension 1 in the second step. The other one has
 * unequal directions and begins with dimension 1. So all channels are busy in both steps. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/bits.h"
#include "daemon/lib/schedule/tally.h"

/* The tour that moves a block along one dimension. */
struct tour {
    uint32_t group;  /* 0..m-1 */
    uint32_t number; /* 0..m/2-1, in its group */
    uint16_t hops;
    int8_t direction;
};

/* Beyond 256 x 256, the steps have no room in the keys of messages. */
static bool tseng_gupta_takes(const struct torus *t)
{
    bool taken = t->dims == 2 && t->wrap[0] && t->wrap[1] && t->size[0] == t->size[1] &&
                 t->size[0] >= 4 && is_power_of_two(t->size[0]) &&
                 (uint64_t)t->nodes * t->size[0] / 8 <= MESSAGE_MAX_STEP + 1;
    return taken;
}

static uint32_t tseng_gupta_max_legs(const struct torus *t)
{
    (void)t;
    return 2;
}

static void tseng_gupta_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->size[i] / 2;
}

static struct tour find_tour(uint32_t n, uint32_t from, uint32_t to)
{
    uint32_t m = n / 2, offset = (to + n - from) % n;
    uint32_t i = from % m;
    struct tour tour = {.group = i ^ (to % m)};
    uint32_t between = tour.group != 0 ? tour.group : m / 2; /* XOR of the tour's residues */
    unsigned bit = lowest_bit(between);
    /* One of the two residues does not have this bit. Without the bit, it is the number. */
    uint32_t residue = (i >> bit & 1) != 0 ? i ^ between : i;

    tour.number = residue >> (bit + 1) << bit | (residue & ((1u << bit) - 1));
    tour.hops = (uint16_t)(offset <= m ? offset : n - offset);
    if (tour.group != 0)
        tour.direction = offset < m ? 1 : -1;
    else
        tour.direction = (offset == m) == (i < m / 2) ? 1 : -1;
    return tour;
}

static uint32_t tseng_gupta_route(const struct torus *t, uint32_t source, uint32_t destination,
                                  uint32_t segment, struct leg *legs)
{
    uint32_t n = t->size[0], m = n / 2;
    struct tour tour[2] = {find_tour(n, source / n, destination / n),
                           find_tour(n, source % n, destination % n)};
    unsigned first = tour[0].direction == tour[1].direction ? 0 : 1;
    uint32_t way = tour[0].number ^ tour[1].number, count = 0;

    (void)segment;
    /* The phase of the opposite directions pairs its tours in another way. 4x4 has only one way. */
    if (tour[0].direction < 0 && m > 2)
        way ^= 1;
    uint32_t phase = (tour[0].group * m + tour[1].group) * (m / 2) + way;
    for (unsigned i = 0; i < 2; i++) {
        unsigned dim = i == 0 ? first : 1 - first;
        if (tour[dim].hops != 0)
            legs[count++] = (struct leg){.step = 2 * phase + i,
                                         .hops = tour[dim].hops,
                                         .dim = (uint8_t)dim,
                                         .direction = tour[dim].direction};
    }
    return count;
}

const struct algorithm algorithm_tseng_gupta = {
    .name = "tseng-gupta",
    .summary = "torus: every block in a message of its own, straight to its destination, one on "
               "each channel in each step",
    .accepts_text = "n x n tori, n a power of two from 4 to 256",
    .startups = "2^(3d-3), n = 2^d",
    .transmission = "2^(3d-3), n = 2^d",
    .source = "this project; counts of Tseng and Gupta, and of Lam, Huang and Sadayappan, as cited "
              "in Liu et al., Optimal All-to-All Personalized Communication in All-Port Tori, "
              "section 1",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .takes = tseng_gupta_takes,
    .max_legs = tseng_gupta_max_legs,
    .period = tseng_gupta_period,
    .route = tseng_gupta_route,
};
