/* All-to-all broadcast along rows, then along columns, on any torus or mesh. Saad and Schultz, Data
 * Communication in Parallel Architectures, as described in Yang, Wang: All-to-All Communication,
 * "Comparisons".
 *
 * Each node passes its block along its row in both directions, then all blocks of its row along its
 * column in both directions, and so on through the dimensions, the last one first. All blocks that
 * leave by a port in one step are one message.
 *
 * The paper counts two startups, because its links pipeline; here every hop is a step. Either way
 * half of the links are idle, and the transmission is twice the bound: (n^2-1)/2 on n x n tori, n
 * odd. On even rings, half of the blocks go to the opposite node in either direction, by the parity
 * of their offsets so far: n^2/2 on n x n. */
#include "daemon/lib/schedule/algorithms/rows.h"

static int saadschultz_accepts(const struct torus *t, struct error *e)
{
    (void)t, (void)e;
    return 0;
}

static uint32_t saadschultz_route(const struct torus *t, uint32_t source, uint32_t destination,
                                  uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    uint32_t first_step = 0, come = 0, count = 0;

    (void)segment;
    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned dim = t->dims; dim-- > 0;) {
        int direction = come % 2 == 0 ? 1 : -1; /* to the opposite node */
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);

        for (uint32_t hop = 0; hop < hops; hop++)
            legs[count++] = (struct leg){.step = first_step + hop,
                                         .hops = 1,
                                         .dim = (uint8_t)dim,
                                         .direction = (int8_t)direction};
        first_step += torus_longest_way(t, dim);
        come += (to[dim] + t->size[dim] - from[dim]) % t->size[dim];
    }
    return count;
}

const struct algorithm algorithm_saadschultz = {
    .name = "saadschultz",
    .summary = "all-to-all broadcast along every row, then along every column",
    .accepts_text = "any torus or mesh",
    .startups = "the diameter",
    .transmission = "(n^2-1)/2 on n x n tori, n odd; n^2/2, n even",
    .source = "Saad, Schultz, as in Yang, Wang, All-to-All Communication, Comparisons",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .accepts = saadschultz_accepts,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = saadschultz_route,
};
