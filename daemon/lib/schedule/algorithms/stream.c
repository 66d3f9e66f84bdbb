/* Streaming: every block is split into four segments, and every segment goes straight to its
 * destination by single hops. There are no steps: a port sends the waiting segment with the
 * farthest way to go. If all channels carry the same, that keeps the busiest ones busy from
 * beginning to end: the simulation (client/theory/simulate.h) finishes in exactly the lower bound
 * on every torus and mesh tried. Executed in steps, hop h of every segment is in step h - 1.
 *
 * Half of the segments take the dimensions in order 0, 1, ..., k-1, the other half in reverse. Half
 * go each way round to the opposite node of an even ring. Both choices alternate with the parity of
 * the offset, which evens out segments of different sizes (in blocks of fewer than four bytes).
 * They depend on different bits of the segment's number, and so do the ways round in neighbouring
 * dimensions. Otherwise all segments that go + in one dimension would go + in the other too, in the
 * same order.
 *
 * Routes do not depend on where the source is: on a torus every node does the same. */
#include "daemon/lib/schedule/algorithms/rows.h"

static int stream_accepts(const struct torus *t, struct error *e)
{
    (void)t;
    (void)e;
    return 0;
}

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
    .startups = "in steps: the longest way; streamed: no steps",
    .transmission = "streamed: the lower bound; in steps: no formula",
    .source = "this project",
    .port_model = PORT_MODEL_ALL,
    .segments = 4,
    .streaming = true,
    .accepts = stream_accepts,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = stream_route,
};
