#include "daemon/lib/schedule/algorithms/family.h"

#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/straight.h"
#include "daemon/lib/schedule/bits.h"
#include "daemon/lib/schedule/tally.h"

#define CCCUBE_SUMMARY                                                                             \
    "hypercube's exchange, embedded without conflicts: one bit of the node's number after the "    \
    "other"
#define CCCUBE_ACCEPTS "a torus or mesh of 2^d nodes without a path longer than 65535 hops"
#define CCCUBE_SOURCE                                                                              \
    "Diaz de Cerio, Valero-Garcia and Gonzalez, Complete Exchange Algorithms for Meshes and Tori " \
    "Using a Systematic Approach, section 4"

/* CC-cube: the complete exchange of a hypercube, embedded in a torus or mesh. Diaz de Cerio,
 * Valero-Garcia, Gonzalez: Complete Exchange Algorithms for Meshes and Tori Using a Systematic
 * Approach, sections 3 and 4.
 *
 * There are N = 2^d nodes. In iteration i = 0 to d-1, every node swaps 2^(d-1) blocks with its
 * neighbour in dimension i of the hypercube: the blocks for which bit i of source XOR destination
 * is set. Communication pipelining of degree Q sends them as Q packets, packet q of iteration i in
 * stage i + q, so that up to Q iterations are under way at once. The blocks of a message are in
 * falling order of source XOR destination. A block is then never in an earlier packet of a later
 * iteration: for bits i < i' that are both set, taking out bit i' leaves no larger number than
 * taking out bit i. So it arrives at least one stage before it leaves again.
 *
 * The paper leaves the embeddings to its references. Ours are:
 * - The bits of a hypercube node's number are dealt to the dimensions of the torus in turn, the
 *   last dimension first, low bits first. So consecutive iterations use different dimensions, and
 *   can overlap.
 * - Mesh, standard embedding: a coordinate is its bits. Bit b leads 2^b hops away.
 * - Torus, xor embedding: the second highest bit of a coordinate is XORed with the highest one.
 *   This puts the four quarters of the ring in the order of a Gray code, and both bits lead n/4
 *   hops away. Without it the highest bit would lead n/2 hops away.
 *
 * The paper demands routes without conflicts. If neighbours in the hypercube are h > 1 hops apart,
 * h of their messages cross the same channel. So the messages of a stage are dealt to tracks, sets
 * of messages of which no two share a channel, and every step sends one track. There are as many
 * tracks as messages cross the busiest channel, the fewest possible with these routes. This costs
 * startups, but no blocks. Without pipelining, an iteration takes as many steps as its legs have
 * hops; all iterations of a dimension of n nodes take 3n/4 - 1 steps on a ring (1 on a ring of 2),
 * n - 1 on an array. On rings of 2 or 4 and arrays of 2, every stage is one step: 4x4 is the
 * hypercube of 16 nodes. On 8x8, where the lower bound is 64 blocks: Q=1 10 steps and 320 blocks,
 * Q=2 12 and 192, Q=4 16 and 128, Q=8 29 and 116.
 *
 * 2mx2mx2m and complete:2^3 are the hypercube itself: a node's number is its rank, and an iteration
 * uses the cables of one dimension. With k ports (below) a stage of more than k iterations is
 * divided: its first k iterations, then the next k, and so on. */

static uint32_t cccube_max_legs(const struct torus *t)
{
    return power_of(t->nodes);
}

/* Half a turn of a ring flips the highest bit of a coordinate and, in the xor embedding, the next
 * bit too, at source and destination alike. source XOR destination stays. */
static void cccube_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->wrap[i] && t->size[i] > 1 ? t->size[i] / 2 : t->size[i];
}

/* The bits of a hypercube node's number are XORs of bits of coordinates. Where no leg has more than
 * one hop, a route depends on nothing else; otherwise tracks differ from node to node. */
static void cccube_xor_period(const struct torus *t, uint32_t *period)
{
    cccube_period(t, period);
    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] <= (t->wrap[i] ? 4 : 2))
            period[i] = 1;
}

/* ---- The embedding --------------------------------------------------------------------------- */

/* Converts the bits of a hypercube node's number in one dimension into a coordinate, and back. */
static uint32_t embed(const struct torus *t, unsigned dim, uint32_t bits)
{
    uint32_t quarter = t->size[dim] / 4;
    return t->wrap[dim] && (bits & 2 * quarter) != 0 ? bits ^ quarter : bits;
}

/* Where the bits of a hypercube node's number are: bit `bit` of the coordinate in dimension
 * `dim`. */
struct cube {
    const struct torus *torus;
    uint32_t packets; /* Q */
    unsigned ports;   /* k: iterations at a time */
    unsigned bits;    /* d */
    struct {
        uint8_t dim, bit;
    } at[32];
};

static struct cube make_cube(const struct torus *t, uint32_t degree, unsigned ports)
{
    struct cube c = {.torus = t, .packets = degree, .ports = ports == 0 ? 32 : ports};
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

/* Hops of a leg in iteration i. */
static uint32_t hops_of(const struct cube *c, unsigned i)
{
    uint32_t n = c->torus->size[c->at[i].dim], hops = 1u << c->at[i].bit;
    return c->torus->wrap[c->at[i].dim] && 2 * hops == n && n > 2 ? n / 4 : hops;
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* Blocks of one message in an iteration, all packets together. */
static uint32_t all_blocks(const struct cube *c)
{
    return c->bits > 0 ? 1u << (c->bits - 1) : 1;
}

/* The number of a packet's first block, in the order in which blocks leave. */
static uint32_t first_block(const struct cube *c, uint32_t packet)
{
    return (uint32_t)(((uint64_t)packet * all_blocks(c) + c->packets - 1) / c->packets);
}

/* The packet of iteration i that has the block with this source XOR destination. */
static uint32_t packet_of(const struct cube *c, uint32_t difference, unsigned i)
{
    uint32_t below = difference & ((1u << i) - 1);
    uint32_t place = (difference >> (i + 1) << i) | below; /* without bit i */
    return (uint32_t)((uint64_t)(all_blocks(c) - 1 - place) * c->packets / all_blocks(c));
}

/* ---- Stages and tracks ----------------------------------------------------------------------- */

/* The iterations that are under way in a stage, or in a part of a stage. */
struct window {
    unsigned first, last;
};

static struct window window_of(const struct cube *c, uint32_t stage)
{
    return (struct window){.first = stage < c->packets ? 0 : stage - c->packets + 1,
                           .last = stage < c->bits ? stage : c->bits - 1};
}

/* The parts of a stage, one after another, and the part of an iteration. */
static unsigned parts_of(const struct cube *c, const struct window *w)
{
    return (w->last - w->first) / c->ports + 1;
}

static unsigned part_of(const struct cube *c, const struct window *w, unsigned iteration)
{
    return (iteration - w->first) / c->ports;
}

static struct window window_of_part(const struct cube *c, const struct window *w, unsigned part)
{
    unsigned first = w->first + part * c->ports, last = first + c->ports - 1;
    return (struct window){first, last < w->last ? last : w->last};
}

/* The bits of these iterations in one dimension: `count` from `low` on. */
struct bits {
    unsigned low, count;
};

static struct bits bits_of(const struct cube *c, const struct window *w, unsigned dim)
{
    struct bits b = {0, 0};
    for (unsigned i = w->first; i <= w->last; i++)
        if (c->at[i].dim == dim && b.count++ == 0)
            b.low = c->at[i].bit;
    return b;
}

/* Tracks of the messages on an array of 2^count nodes, in which each node sends to every node that
 * differs from it in one bit. floor(2^(count+1)/3) messages share the busiest channel in each
 * direction, and as many tracks hold all of them. Divide the array into quarters A, B, C, D of M
 * nodes. Messages within a quarter have the same tracks in all four quarters. Then come tracks j
 * and M + j for j = 0 to M-1: messages between A_j, B_j and D_j, and between A_j, C_j and D_j. */
static uint32_t line_tracks(unsigned count)
{
    return (2u << count) / 3;
}

static uint32_t line_track(unsigned count, unsigned bit, uint32_t node)
{
    while (bit + 2 < count)
        count -= 2;
    if (count < 2)
        return 0;
    uint32_t quarter = 1u << (count - 2);
    bool by_b = bit + 1 == count ? (node & quarter) != 0 : (node & 2 * quarter) == 0;
    return line_tracks(count - 2) + (by_b ? 0 : quarter) + node % quarter;
}

/* Whether the bits include the highest bit of a ring's coordinate. The two highest bits lead from
 * each quarter of the ring to the next one, all the way round; track j holds the links of node j of
 * each quarter. */
static bool goes_round(const struct torus *t, unsigned dim, const struct bits *b)
{
    return t->wrap[dim] && t->size[dim] > 2 && 1u << (b->low + b->count) == t->size[dim];
}

/* How many of the bits stay within a quarter of such a ring. */
static unsigned inner_bits(const struct torus *t, unsigned dim, const struct bits *b)
{
    unsigned below = power_of(t->size[dim]) - 2;
    return b->low < below ? below - b->low : 0;
}

/* The number of tracks of a dimension. Lower bits that are not under way make copies of the array,
 * and 2^low times as many tracks. */
static uint32_t tracks(const struct torus *t, unsigned dim, const struct bits *b)
{
    if (b->count == 0)
        return 0;
    if (!goes_round(t, dim, b))
        return line_tracks(b->count) << b->low;
    return (line_tracks(inner_bits(t, dim, b)) << b->low) + t->size[dim] / 4;
}

/* The track of a leg that starts or ends at coordinate `at` and changes this bit of it. */
static uint32_t track(const struct torus *t, unsigned dim, const struct bits *b, unsigned bit,
                      uint32_t at)
{
    uint32_t quarter = t->size[dim] / 4;
    unsigned count = b->count;

    if (goes_round(t, dim, b)) {
        count = inner_bits(t, dim, b);
        if (bit >= b->low + count)
            return (line_tracks(count) << b->low) + at % quarter;
    }
    return (line_track(count, bit - b->low, at >> b->low) << b->low) + (at & ((1u << b->low) - 1));
}

/* Steps of a part. The dimensions work side by side, since each has its own channels. */
static uint32_t part_steps(const struct cube *c, const struct window *part)
{
    uint32_t most = 0;

    for (unsigned dim = 0; dim < c->torus->dims; dim++) {
        struct bits b = bits_of(c, part, dim);
        uint32_t count = tracks(c->torus, dim, &b);
        most = count > most ? count : most;
    }
    return most;
}

/* Steps of the first parts of a stage. */
static uint32_t steps_of_parts(const struct cube *c, const struct window *w, unsigned parts)
{
    uint32_t steps = 0;

    for (unsigned i = 0; i < parts; i++) {
        const struct window part = window_of_part(c, w, i);
        steps += part_steps(c, &part);
    }
    return steps;
}

static uint32_t stage_steps(const struct cube *c, uint32_t stage)
{
    const struct window w = window_of(c, stage);
    return steps_of_parts(c, &w, parts_of(c, &w));
}

static uint32_t all_stages(const struct cube *c)
{
    return c->bits > 0 ? c->bits + c->packets - 1 : 0;
}

/* The number of stages from this one on, itself included, in which the same iterations are under
 * way. */
static uint32_t alike(const struct cube *c, uint32_t stage)
{
    return stage + 1 >= c->bits && stage < c->packets ? c->packets - stage : 1;
}

/* Advances from the first step of a stage to that of another stage. */
static void go_on(const struct cube *c, uint32_t *stage, uint32_t *step, uint32_t to)
{
    while (*stage < to) {
        uint32_t count = alike(c, *stage);
        count = count < to - *stage ? count : to - *stage;
        *step += count * stage_steps(c, *stage);
        *stage += count;
    }
}

/* ---- What it accepts ------------------------------------------------------------------------- */

/* The highest degree: as many packets as a message has blocks, or fewer if the schedule would have
 * too many steps. No stage has more steps than one in which all iterations are under way, one after the
 * other if the ports are limited. */
uint32_t cccube_most(const struct family *f, const struct torus *t)
{
    struct cube c = make_cube(t, t->nodes, f->base->ports == 0 ? 0 : 1);
    uint32_t blocks = all_blocks(&c);

    if (blocks == 1)
        return 1;
    uint32_t stages = (MESSAGE_MAX_STEP + 1) / stage_steps(&c, c.bits - 1) - c.bits;
    return blocks < stages ? blocks : stages;
}

static bool cccube_takes(const struct torus *t)
{
    bool taken = is_power_of_two(t->nodes) && straight_fits(t);

    for (unsigned i = 0; i < t->dims; i++)
        taken = taken && (t->graph[i] == NULL || t->size[i] == 2);
    return taken;
}

/* ---- Routes ---------------------------------------------------------------------------------- */

/* The leg of iteration i in a stage that begins with a step, from a coordinate of its dimension. Sets
 * *next to the coordinate to which it leads. */
static struct leg leg_of(const struct cube *c, unsigned i, uint32_t stage, uint32_t step,
                         uint32_t at, uint32_t *next)
{
    const struct torus *t = c->torus;
    const struct window w = window_of(c, stage);
    const unsigned dim = c->at[i].dim, at_part = part_of(c, &w, i);
    const struct window part = window_of_part(c, &w, at_part);
    const struct bits b = bits_of(c, &part, dim);
    int direction = 1; /* on a ring of 2, where both ways are equally long, and in complete:2 */

    *next = embed(t, dim, embed(t, dim, at) ^ 1u << c->at[i].bit);
    const uint32_t hops = t->graph[dim] != NULL ? 1 : torus_shortest(t, dim, at, *next, &direction);
    step += steps_of_parts(c, &w, at_part);
    return (struct leg){.step = step + track(t, dim, &b, c->at[i].bit, at),
                        .hops = (uint16_t)hops,
                        .dim = (uint8_t)dim,
                        .direction = (int8_t)direction};
}

static uint32_t cccube_route(const struct family *f, const struct torus *t, uint32_t degree,
                             uint32_t source, uint32_t destination, struct leg *legs)
{
    uint32_t at[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct cube c = make_cube(t, degree, f->base->ports);
    uint32_t difference = 0, count = 0, stage = 0, step = 0;

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
        go_on(&c, &stage, &step, i + packet_of(&c, difference, i));
        legs[count++] = leg_of(&c, i, stage, step, at[dim], &at[dim]);
    }
    return count;
}

/* A node sends one message for each packet of each iteration, whichever node it is. */
static int cccube_sends(const struct algorithm *a, const struct torus *t, uint32_t rank,
                        message_fn *fn, void *context)
{
    const struct cube c = make_cube(t, a->degree, a->family->base->ports);
    uint32_t at[TORUS_MAX_DIMS], next, step = 0;

    torus_coordinates(t, rank, at);
    for (uint32_t stage = 0; stage < all_stages(&c);) {
        const struct window w = window_of(&c, stage);
        for (unsigned i = w.first; i <= w.last; i++) {
            const uint32_t packet = stage - i;
            const struct leg leg = leg_of(&c, i, stage, step, at[c.at[i].dim], &next);
            if (fn(context, &leg, first_block(&c, packet + 1) - first_block(&c, packet)) != 0)
                return -1;
        }
        go_on(&c, &stage, &step, stage + 1);
    }
    return 0;
}

/* ---- Counts ---------------------------------------------------------------------------------- */

/* Tracks of one dimension that carry messages of the same iterations in a stage. */
struct strip {
    uint32_t first, end;
    uint32_t blocks, hops; /* of the largest message, and of the longest leg */
};

enum { STRIPS_MOST = 32 * TORUS_MAX_DIMS };

/* Fills *strip for the tracks first .. end-1, which carry one or two iterations. */
static void add_strip(const struct cube *c, uint32_t stage, const unsigned *iteration,
                      unsigned count, uint32_t first, uint32_t end, struct strip *strip)
{
    *strip = (struct strip){.first = first, .end = end};
    for (unsigned i = 0; i < count; i++) {
        uint32_t packet = stage - iteration[i];
        uint32_t blocks = first_block(c, packet + 1) - first_block(c, packet);
        uint32_t hops = hops_of(c, iteration[i]);
        strip->blocks = blocks > strip->blocks ? blocks : strip->blocks;
        strip->hops = hops > strip->hops ? hops : strip->hops;
    }
}

/* Writes the strips of one dimension in a part of a stage. Returns how many. */
static unsigned strips_of(const struct cube *c, uint32_t stage, const struct window *w,
                          unsigned dim, struct strip *strips)
{
    struct bits b = bits_of(c, w, dim);
    unsigned iteration[32], count = 0, found = 0, lines = b.count;

    for (unsigned i = w->first; i <= w->last; i++)
        if (c->at[i].dim == dim)
            iteration[found++] = i;
    if (found == 0)
        return 0;
    if (goes_round(c->torus, dim, &b)) {
        lines = inner_bits(c->torus, dim, &b);
        uint32_t first = line_tracks(lines) << b.low;
        add_strip(c, stage, &iteration[lines], found - lines, first,
                  first + c->torus->size[dim] / 4, &strips[count++]);
    }
    for (unsigned pair = lines; pair > 0; pair -= pair > 1 ? 2 : 1) {
        unsigned below = pair > 1 ? pair - 2 : 0;
        add_strip(c, stage, &iteration[below], pair - below, line_tracks(below) << b.low,
                  line_tracks(pair) << b.low, &strips[count++]);
    }
    return count;
}

/* Adds the costs of a part of a stage, `times` times. A step takes as long as its largest message and
 * its longest leg. */
static void add_part(const struct cube *c, uint32_t stage, const struct window *part, double times,
                     struct cost_counts *sum)
{
    struct strip strips[STRIPS_MOST];
    unsigned count = 0;
    uint32_t steps = part_steps(c, part), at = 0;

    for (unsigned dim = 0; dim < c->torus->dims; dim++)
        count += strips_of(c, stage, part, dim, &strips[count]);
    while (at < steps) {
        uint32_t end = steps, blocks = 0, hops = 0;
        for (unsigned i = 0; i < count; i++) {
            const struct strip *s = &strips[i];
            if (s->first > at)
                end = s->first < end ? s->first : end;
            if (s->first > at || s->end <= at)
                continue;
            end = s->end < end ? s->end : end;
            blocks = s->blocks > blocks ? s->blocks : blocks;
            hops = s->hops > hops ? s->hops : hops;
        }
        sum->startups += times * (end - at);
        sum->transmission += times * (end - at) * blocks;
        sum->hops += times * (end - at) * hops;
        at = end;
    }
}

struct cost_counts cccube_counts(const struct family *f, const struct torus *t, uint32_t degree)
{
    struct cube c = make_cube(t, degree, f->base->ports);
    struct cost_counts sum = {0};
    bool equal = all_blocks(&c) % degree == 0;

    for (uint32_t stage = 0, count; stage < all_stages(&c); stage += count) {
        count = equal ? alike(&c, stage) : 1;
        const struct window w = window_of(&c, stage);
        for (unsigned i = 0; i < parts_of(&c, &w); i++) {
            const struct window part = window_of_part(&c, &w, i);
            add_part(&c, stage, &part, count, &sum);
        }
    }
    return sum;
}

/* A node sends one message in every packet of every iteration; it crosses as many channels as it
 * has hops. */
static uint64_t cccube_messages(const struct family *f, const struct torus *t, uint32_t degree)
{
    struct cube c = make_cube(t, degree, f->base->ports);
    uint64_t hops = 0;

    for (unsigned i = 0; i < c.bits; i++)
        hops += hops_of(&c, i);
    return hops * degree;
}

/* ---- The algorithms -------------------------------------------------------------------------- */

const struct family family_cccube = {
    .base = &algorithm_cccube,
    .best = "cccube-best",
    .summary = CCCUBE_SUMMARY,
    .startups =
        "d + Q - 1 stages; each one step on rings of up to 4 and arrays of 2, more on others",
    .transmission = "Q divides N/2: N/(2Q) * startups",
    .most = cccube_most,
    .route = cccube_route,
    .counts = cccube_counts,
    .messages = cccube_messages,
};

static uint32_t route_base(const struct torus *t, uint32_t source, uint32_t destination,
                           uint32_t segment, struct leg *legs)
{
    (void)segment;
    return cccube_route(&family_cccube, t, 1, source, destination, legs);
}

const struct algorithm algorithm_cccube = {
    .name = "cccube",
    .summary = CCCUBE_SUMMARY "; cccube-q5 in 5 packets, cccube-best in the best number",
    .accepts_text = CCCUBE_ACCEPTS,
    .any_graph = true,
    .startups = "sum of 3n_i/4 - 1 (ring of 2: 1; mesh: n_i - 1)",
    .transmission = "N/2 * startups",
    .source = CCCUBE_SOURCE,
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .takes = cccube_takes,
    .max_legs = cccube_max_legs,
    .period = cccube_period,
    .xor_period = cccube_xor_period,
    .route = route_base,
    .messages = cccube_sends,
    .family = &family_cccube,
    .degree = 1,
};

/* CC-cube with k ports: a node sends at most k messages at a time, and receives at most k. One port
 * and all ports are the models of section 2 of the paper (cccube.c), which its title extends to k.
 *
 * If no channel is shared, as on hypercubes, a stage in which a iterations are under way takes
 * ceil(a/k) steps. For a = min(d, Q) that is 2 * (ceil(1/k) + ... + ceil((a-1)/k)) + (d + Q + 1 - 2a)
 * * ceil(a/k) steps of 2^(d-1)/Q blocks. With one port pipelining saves nothing: d * Q steps. */

#define STARTUPS                                                                                   \
    "d + Q - 1 stages; a stage of a iterations: ceil(a/k) steps on rings of up to 4 and arrays "   \
    "of "                                                                                          \
    "2, more on others"
#define TRANSMISSION "Q divides N/2: N/(2Q) * startups"

#define BASE(k, model)                                                                             \
    static const struct algorithm base_##k = {                                                     \
        .methods = &family_methods,                                                                \
        .name = "cccube-k" #k,                                                                     \
        .summary = CCCUBE_SUMMARY ", on " #k " of the ports at a time",                            \
        .accepts_text = CCCUBE_ACCEPTS,                                                            \
        .any_graph = true,                                                                         \
        .startups = STARTUPS,                                                                      \
        .transmission = TRANSMISSION,                                                              \
        .source = CCCUBE_SOURCE,                                                                   \
        .port_model = model,                                                                       \
        .ports = k,                                                                                \
        .segments = 1,                                                                             \
        .takes = cccube_takes,                                                                     \
        .max_legs = cccube_max_legs,                                                               \
        .period = cccube_period,                                                                   \
        .xor_period = cccube_xor_period,                                                           \
        .messages = cccube_sends,                                                                  \
        .family = &family_cccube_ports[(k)-1],                                                     \
        .degree = 1,                                                                               \
    };

#define FAMILY(k)                                                                                  \
    {                                                                                              \
        .base = &base_##k, .best = "cccube-k" #k "-best",                                          \
        .summary = CCCUBE_SUMMARY ", on " #k " of the ports at a time", .startups = STARTUPS,      \
        .transmission = TRANSMISSION, .most = cccube_most, .route = cccube_route,                  \
        .counts = cccube_counts, .messages = cccube_messages,                                      \
    }

BASE(1, PORT_MODEL_ONE)
BASE(2, PORT_MODEL_ALL)
BASE(3, PORT_MODEL_ALL)
BASE(4, PORT_MODEL_ALL)
BASE(5, PORT_MODEL_ALL)
BASE(6, PORT_MODEL_ALL)
BASE(7, PORT_MODEL_ALL)
BASE(8, PORT_MODEL_ALL)

const struct family family_cccube_ports[CCCUBE_PORTS_MOST] = {
    FAMILY(1), FAMILY(2), FAMILY(3), FAMILY(4), FAMILY(5), FAMILY(6), FAMILY(7), FAMILY(8)};

/* --- the families by name --- */

#define FAMILIES (1 + CCCUBE_PORTS_MOST)

static const struct family *family_at(size_t i)
{
    return i == 0 ? &family_cccube : &family_cccube_ports[i - 1];
}

/* Reads a whole number of at least 1, without leading zeros. */
static bool read_degree(const char *text, uint32_t *degree)
{
    *degree = 0;
    if (*text < '1' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9' && *degree <= TORUS_MAX_NODES; text++)
        *degree = 10 * *degree + (uint32_t)(*text - '0');
    return *text == '\0' && *degree <= TORUS_MAX_NODES;
}

/* Finds the family and degree in "<base>-q<degree>". A base that is not in the registry is found here, too. */
static const struct family *parse(const char *name, uint32_t *degree)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        const char *base = family_at(i)->base->name;
        size_t length = strlen(base);
        *degree = 1;
        if (i > 0 && strcmp(name, base) == 0)
            return family_at(i);
        if (strncmp(name, base, length) == 0 && strncmp(name + length, "-q", 2) == 0 &&
            read_degree(name + length + 2, degree))
            return family_at(i);
    }
    return NULL;
}

int family_check(const char *name, const struct torus *t, struct error *e)
{
    uint32_t degree;
    const struct family *f = parse(name, &degree);

    return f == NULL ? 0 : family_accepts(f, degree, t, e);
}

const struct algorithm *family_member(const char *name)
{
    uint32_t degree;
    const struct family *f = parse(name, &degree);

    return f == NULL ? NULL : family_of_degree(f, degree);
}

const struct family *family_of_best(const char *name)
{
    for (size_t i = 0; i < FAMILIES; i++)
        if (strcmp(name, family_at(i)->best) == 0)
            return family_at(i);
    return NULL;
}
