/* CC-cube: complete exchange of a hypercube, embedded in a torus or mesh. Diaz de Cerio,
 * Valero-Garcia, Gonzalez: Complete Exchange Algorithms for Meshes and Tori Using a Systematic
 * Approach, sections 3 and 4.
 *
 * N = 2^d nodes. In iteration i every node swaps 2^(d-1) blocks with its neighbour in dimension i
 * of the hypercube: those with bit i set in source XOR destination. With communication pipelining
 * of degree Q these blocks leave as Q packets, packet q of iteration i in step i + q, so that up to
 * Q iterations are under way at once. The blocks of a message are in falling order of
 * source XOR destination; then a block is in no earlier packet of a later iteration (for i < i',
 * both bits set, taking out bit i' leaves no larger number than taking out bit i), and arrives one
 * step before it leaves again. A message of fewer than Q blocks leaves as single blocks.
 *
 * The paper leaves both embeddings to its references; this is how they are done here:
 * - The bits of a node of the hypercube are dealt to the dimensions of the torus in turn, the last
 *   one first, the low bits first. So consecutive iterations use different dimensions, which is
 *   what gives pipelining something to do.
 * - mesh, standard embedding: the bits of a coordinate as they are. Bit b is 2^b hops away.
 * - torus, xor embedding: the second highest bit of a coordinate is that of the cube XOR the
 *   highest. The four quarters of the ring come in Gray code order, so that both bits are n/4 hops
 *   away, where the highest would be n/2 without.
 * As for contention: every leg in bit b crosses the middle of its block of 2^(b+1) nodes (xor: of
 * two quarters), where as many messages share a channel as the leg has hops. One step without
 * pipelining costs 2^(d-1) blocks times these; over all bits of a dimension that is 3n/4 - 1
 * messages on a ring (1 on a ring of 2) and n - 1 on an array. On rings of 4 or 2 nothing is
 * shared, not even by pipelined iterations: 4x4 is the hypercube. Pipelined, larger sizes have no
 * simple formula; counted on 8x8 (lower bound 64), steps and blocks: Q=1 6 and 320, Q=2 7 and 192,
 * Q=4 9 and 128, Q=8 13 and 116. */
#include "daemon/schedule/cccube.h"
#include "daemon/schedule/bits.h"
#include "daemon/schedule/registry.h"
#include "daemon/schedule/straight.h"

static int cccube_accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    return is_power_of_two(t->nodes) && straight_fits(t) ? 0 : algorithm_refuse(a, t, e);
}

static uint32_t cccube_max_legs(const struct torus *t)
{
    return power_of(t->nodes);
}

/* Half a turn flips the highest bit of a coordinate, and in the xor embedding the next one too, of
 * source and destination alike. */
static void cccube_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->wrap[i] && t->size[i] > 1 ? t->size[i] / 2 : t->size[i];
}

/* The bits of the hypercube's node are XORs of bits of the coordinates. */
static void cccube_xor_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = 1;
}

/* A coordinate for these bits of the hypercube's node, and the other way round. */
static uint32_t embed(const struct torus *t, unsigned dim, uint32_t bits)
{
    uint32_t quarter = t->size[dim] / 4;
    return t->wrap[dim] && (bits & 2 * quarter) != 0 ? bits ^ quarter : bits;
}

/* Where the bits of the hypercube's nodes are. */
struct cube {
    unsigned bits; /* d */
    struct {
        uint8_t dim, bit;
    } at[32];
};

static struct cube make_cube(const struct torus *t)
{
    struct cube c = {.bits = 0};
    for (uint8_t bit = 0; c.bits < power_of(t->nodes); bit++) {
        for (unsigned dim = t->dims; dim-- > 0;) {
            if (t->size[dim] >> bit > 1) {
                c.at[c.bits].dim = (uint8_t)dim;
                c.at[c.bits++].bit = bit;
            }
        }
    }
    return c;
}

/* Packets that a message is split into. */
static uint32_t packets(unsigned bits, uint32_t degree)
{
    uint32_t blocks = bits > 0 ? 1u << (bits - 1) : 1;
    return degree < blocks ? degree : blocks;
}

/* The packet of iteration i that the block with this source XOR destination is in. */
static uint32_t packet(unsigned bits, uint32_t difference, unsigned i, uint32_t degree)
{
    uint32_t blocks = 1u << (bits - 1), below = difference & ((1u << i) - 1);
    uint32_t place = (difference >> (i + 1) << i) | below; /* without bit i */
    return (uint32_t)((uint64_t)(blocks - 1 - place) * packets(bits, degree) / blocks);
}

static uint32_t cccube_route(const struct torus *t, uint32_t source, uint32_t destination,
                             uint32_t degree, struct leg *legs)
{
    uint32_t at[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct cube c = make_cube(t);
    uint32_t difference = 0, count = 0;

    torus_coordinates(t, source, at);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < c.bits; i++) {
        unsigned dim = c.at[i].dim;
        uint32_t bits = embed(t, dim, at[dim]) ^ embed(t, dim, to[dim]);
        difference |= (bits >> c.at[i].bit & 1) << i;
    }
    for (unsigned i = 0; i < c.bits; i++) {
        if ((difference >> i & 1) == 0)
            continue;
        unsigned dim = c.at[i].dim;
        uint32_t next = embed(t, dim, embed(t, dim, at[dim]) ^ 1u << c.at[i].bit);
        int direction = 1; /* ring of 2 */
        uint32_t hops = torus_shortest(t, dim, at[dim], next, &direction);
        legs[count++] = (struct leg){.step = i + packet(c.bits, difference, i, degree),
                                     .hops = (uint16_t)hops,
                                     .dim = (uint8_t)dim,
                                     .direction = (int8_t)direction};
        at[dim] = next;
    }
    return count;
}

uint32_t cccube_startups(const struct torus *t, uint32_t degree)
{
    unsigned bits = power_of(t->nodes);
    return bits > 0 ? bits + packets(bits, degree) - 1 : 0;
}

uint64_t cccube_hops(const struct torus *t)
{
    uint64_t hops = 0;
    for (unsigned i = 0; i < t->dims; i++) {
        uint32_t n = t->size[i];
        hops += t->wrap[i] && n > 2 ? 3 * n / 4 - 1 : n - 1;
    }
    return hops;
}

/* As many messages share a channel as a leg has hops. */
uint64_t cccube_transmission(const struct torus *t)
{
    return t->nodes / 2 * cccube_hops(t);
}

#define CCCUBE(identifier, text, degree, pipelined, steps, blocks)                                 \
    static int accepts_##degree(const struct torus *t, struct error *e)                            \
    {                                                                                              \
        return cccube_accepts(&algorithm_##identifier, t, e);                                      \
    }                                                                                              \
    static uint32_t route_##degree(const struct torus *t, uint32_t source, uint32_t destination,   \
                                   uint32_t segment, struct leg *legs)                             \
    {                                                                                              \
        (void)segment;                                                                             \
        return cccube_route(t, source, destination, degree, legs);                                 \
    }                                                                                              \
    const struct algorithm algorithm_##identifier = {                                              \
        .name = text,                                                                              \
        .summary =                                                                                 \
            "hypercube's exchange, embedded: one bit of the node's number a step" pipelined,       \
        .accepts_text = "a torus or mesh of 2^d nodes without a way longer than 65535 hops",       \
        .startups = steps,                                                                         \
        .transmission = blocks,                                                                    \
        .source = "Diaz de Cerio, Valero-Garcia and Gonzalez, Complete Exchange Algorithms for "   \
                  "Meshes and Tori Using a Systematic Approach, section 4",                        \
        .port_model = PORT_MODEL_ALL,                                                              \
        .segments = 1,                                                                             \
        .accepts = accepts_##degree,                                                               \
        .max_legs = cccube_max_legs,                                                               \
        .period = cccube_period,                                                                   \
        .xor_period = cccube_xor_period,                                                           \
        .route = route_##degree,                                                                   \
    };

CCCUBE(cccube, "cccube", 1, "", "d = log2 N",
       "N/2 * sum of 3n_i/4 - 1 (ring of 2: 1; mesh: n_i - 1)")
CCCUBE(cccube_q2, "cccube-q2", 2, ", in 2 packets", "d + 1", "no formula; rings of 4: N/4 * (d+1)")
CCCUBE(cccube_q4, "cccube-q4", 4, ", in 4 packets", "d + 3", "no formula; rings of 4: N/8 * (d+3)")
CCCUBE(cccube_q8, "cccube-q8", 8, ", in 8 packets", "d + 7", "no formula; rings of 4: N/16 * (d+7)")
