#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/straight.h"

bool straight_fits(const struct torus *t)
{
    for (unsigned i = 0; i < t->dims; i++)
        if (t->graph[i] == NULL && t->size[i] / (t->wrap[i] ? 2 : 1) > UINT16_MAX)
            return false;
    return true;
}

/* The most legs of a route: one for each ring, line and complete graph, and as many as hops in other
 * graphs. */
static uint32_t straight_most_legs(const struct torus *t)
{
    uint32_t legs = 0;

    for (unsigned i = 0; i < t->dims; i++)
        legs += t->graph[i] != NULL ? t->graph[i]->diameter : 1;
    return legs;
}

uint32_t straight_route(const struct torus *t, uint32_t source, uint32_t destination, uint32_t step,
                        struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    uint32_t parity = 0, count = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        if (straight_has_opposite(t, i))
            parity += from[i];
    for (unsigned i = 0; i < t->dims; i++) {
        int direction = parity % 2 == 0 ? 1 : -1;
        if (t->graph[i] != NULL) {
            for (; from[i] != to[i]; count++) {
                unsigned way = graph_towards(t->graph[i], from[i], to[i]);
                legs[count] = (struct leg){
                    .step = step++, .hops = 1, .dim = (uint8_t)i, .direction = (int8_t)(way + 1)};
                from[i] = graph_neighbour(t->graph[i], from[i], way);
            }
            continue;
        }
        uint32_t hops = torus_shortest(t, i, from[i], to[i], &direction);
        if (hops > 0)
            legs[count++] = (struct leg){.step = step++,
                                         .hops = (uint16_t)hops,
                                         .dim = (uint8_t)i,
                                         .direction = (int8_t)direction};
    }
    return count;
}

/* Every block goes straight to its destination, dimension 0 first: the baseline of every paper.
 *
 * Papers count N-1 startups for it. Here there are exactly N-1 steps, and a node starts one block
 * in each. The offsets are in the order of their numbers of nonzero coordinates, largest number
 * first; the block with the t-th offset (t = 0 to N-2) has its legs in steps t, t+1, ... That never
 * needs a step beyond N-2: an offset with z nonzero coordinates has z legs, and at least one offset
 * with z-1, z-2, ... 1 of them follows (set one coordinate after another to zero), so t + z-1 <=
 * N-2. */

/* Whether no route has more than one leg in a dimension. */
static bool has_single_legs(const struct torus *t)
{
    return straight_most_legs(t) <= t->dims;
}

static void direct_period(const struct torus *t, uint32_t *period)
{
    torus_full_period(t, period);
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = straight_has_opposite(t, i) ? 2 : period[i];
}

/* The number of offsets before this one in the order. */
static uint32_t order(const struct torus *t, const uint32_t *offset)
{
    /* choices[i][z]: offsets in dimensions i and higher with z nonzero coordinates. */
    uint32_t choices[TORUS_MAX_DIMS + 1][TORUS_MAX_DIMS + 1] = {{0}};
    unsigned nonzero = 0;
    uint32_t before = 0;

    choices[t->dims][0] = 1;
    for (unsigned i = t->dims; i-- > 0;) {
        choices[i][0] = 1;
        for (unsigned z = 1; z <= t->dims - i; z++)
            choices[i][z] = choices[i + 1][z] + (t->size[i] - 1) * choices[i + 1][z - 1];
        nonzero += offset[i] != 0;
    }
    for (unsigned z = nonzero + 1; z <= t->dims; z++)
        before += choices[0][z];
    for (unsigned i = 0; i < t->dims; i++) {
        if (offset[i] != 0) {
            before += choices[i + 1][nonzero];
            before += (offset[i] - 1) * choices[i + 1][--nonzero];
        }
    }
    return before;
}

static uint32_t direct_steps(const struct torus *t)
{
    return has_single_legs(t) ? t->nodes - 1 : straight_most_legs(t);
}

static uint32_t direct_route(const struct torus *t, uint32_t source, uint32_t destination,
                             uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], offset[TORUS_MAX_DIMS];

    (void)segment;
    if (!has_single_legs(t))
        return straight_route(t, source, destination, 0, legs);
    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    /* Modulo the size on a mesh too, although the block may go the other way: the N-1 destinations
     * of a node need N-1 different offsets. */
    for (unsigned i = 0; i < t->dims; i++)
        offset[i] = (to[i] + t->size[i] - from[i]) % t->size[i];
    return straight_route(t, source, destination, order(t, offset), legs);
}

const struct algorithm algorithm_direct = {
    .name = "direct",
    .summary = "every block straight to its destination, dimension by dimension",
    .accepts_text = "any network without a path longer than 65535 hops in one dimension",
    .any_graph = true,
    .startups = "N - 1 (graphs of more than one hop: longest path)",
    .transmission = "no formula",
    .source = "the usual baseline; no paper",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .takes = straight_fits,
    .max_legs = straight_most_legs,
    .period = direct_period,
    .ordered_steps = direct_steps,
    .route = direct_route,
};

/* Streaming: every block is split into four segments, and every segment goes straight to its
 * destination by single hops. There are no steps: a port sends the waiting segment with the
 * farthest way to go. If all channels carry the same, that keeps the busiest ones busy from
 * beginning to end: the simulation (client/theory/simulate.h) finishes in exactly the lower bound
 * on every torus and mesh tried. Executed in steps, hop h of every segment is in step h - 1; that
 * takes the lower bound on every torus of one or two dimensions (client/doc/exchange-in-steps.md).
 *
 * Half of the segments take the dimensions in order 0, 1, ..., k-1, the other half in reverse. Half
 * go each way round to the opposite node of an even ring. Both choices alternate with the parity of
 * the offset, which evens out segments of different sizes (in blocks of fewer than four bytes).
 * They depend on different bits of the segment's number, and so do the ways round in neighbouring
 * dimensions. Otherwise all segments that go + in one dimension would go + in the other too, in the
 * same order.
 *
 * Routes do not depend on where the source is: on a torus every node does the same. */

static uint32_t stream_route(const struct torus *t, uint32_t source, uint32_t destination,
                             uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    uint32_t low = segment & 1, high = segment >> 1, offsets = 0, count = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        offsets += (to[i] + t->size[i] - from[i]) % t->size[i];
    for (unsigned turn = 0; turn < t->dims; turn++) {
        unsigned dim = (low + offsets) % 2 == 0 ? turn : t->dims - 1 - turn;
        int direction = (high + offsets + dim * low) % 2 == 0 ? 1 : -1; /* to the opposite node */
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);
        for (; hops > 0; hops--, count++)
            legs[count] = (struct leg){
                .step = count, .hops = 1, .dim = (uint8_t)dim, .direction = (int8_t)direction};
    }
    return count;
}

const struct algorithm algorithm_stream = {
    .name = "stream",
    .summary = "four segments a block by single hops, farthest way first, without steps",
    .accepts_text = "any torus or mesh",
    .startups = "in steps: the longest path; streamed: no steps",
    .transmission = "streamed: the lower bound; in steps, too, on tori of one or two dimensions",
    .source = "this project",
    .port_model = PORT_MODEL_ALL,
    .segments = 4,
    .streaming = true,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = stream_route,
};
