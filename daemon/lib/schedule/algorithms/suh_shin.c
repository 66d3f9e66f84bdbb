/* Suh, Shin: All-to-All Personalized Communication in Multidimensional Torus and Mesh Networks (IEEE TPDS 12(1), 2001), on a
 * torus of two dimensions. Its text was not at hand. The rule is this project's reconstruction, perhaps not
 * their algorithm, from what is generally known of it (groups of nodes with equal coordinates modulo 4; four phases) and from the counts that Liu, Gu, Bi, Tu, Dong: Optimal
 * All-to-All Personalized Communication in All-Port Tori print in Table II. It meets all of them.
 *
 * In phases 1 and 2, n/4 - 1 steps each, blocks go to the 4x4 nodes around their destination, in runs of 4 hops. A node and
 * all that it sends stay on one diagonal, (x + y) modulo 4: diagonals 0 and 2 go along rows first, 1 and 3 along columns;
 * 0 and 1 in direction +, 2 and 3 in direction -. So no channel has two messages, and no node starts or ends two. In phase
 * 3 nodes swap with nodes 2 hops away in their 4x4, in phase 4 with nodes 1 hop away in their 2x2, each in two steps with
 * half of the blocks: n/2 + 2 startups and (n/4 + 1) N blocks, n the larger size. */
#include "daemon/lib/schedule/algorithms/registry.h"

#define LEGS_AT_THE_END 4u /* of phases 3 and 4 */

static bool suh_shin_takes(const struct torus *t)
{
    return t->dims == 2 && t->wrap[0] && t->wrap[1] && t->size[0] % 4 == 0 && t->size[1] % 4 == 0;
}

/* Steps of phase 1, and of phase 2. */
static uint32_t far_steps(const struct torus *t)
{
    return (t->size[0] > t->size[1] ? t->size[0] : t->size[1]) / 4 - 1;
}

static uint32_t suh_shin_max_legs(const struct torus *t)
{
    return 2 * far_steps(t) + LEGS_AT_THE_END;
}

static void suh_shin_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = 4;
}

/* Moves a block to the 4 coordinates of its destination. Returns how many legs. */
static uint32_t go_far(uint32_t size, uint32_t *at, uint32_t to, unsigned dim, int direction,
                       uint32_t step, struct leg *legs)
{
    const uint32_t fours = size / 4, ahead = (to / 4 + fours - *at / 4) % fours;
    const uint32_t runs = direction > 0 || ahead == 0 ? ahead : fours - ahead;

    for (uint32_t i = 0; i < runs; i++)
        legs[i] = (struct leg){
            .step = step + i, .hops = 4, .dim = (uint8_t)dim, .direction = (int8_t)direction};
    *at = to / 4 * 4 + *at % 4;
    return runs;
}

/* Moves a block to the half of 2 * hops coordinates in which its destination is. Returns how many legs. */
static uint32_t go_near(uint32_t *at, uint32_t to, unsigned dim, uint16_t hops, uint32_t step,
                        struct leg *leg)
{
    const bool upper = *at / hops % 2 != 0;

    if (upper == (to / hops % 2 != 0))
        return 0;
    *leg =
        (struct leg){.step = step, .hops = hops, .dim = (uint8_t)dim, .direction = upper ? -1 : 1};
    *at = upper ? *at - hops : *at + hops;
    return 1;
}

static uint32_t suh_shin_route(const struct torus *t, uint32_t source, uint32_t destination,
                               uint32_t segment, struct leg *legs)
{
    uint32_t at[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], count = 0, step = 2 * far_steps(t);

    (void)segment;
    torus_coordinates(t, source, at);
    torus_coordinates(t, destination, to);
    const uint32_t diagonal = (at[0] + at[1]) % 4;
    const unsigned first = diagonal % 2 == 0 ? 1 : 0;
    const int direction = diagonal < 2 ? 1 : -1;
    for (unsigned phase = 0; phase < 2; phase++) {
        const unsigned dim = phase == 0 ? first : 1 - first;
        count += go_far(t->size[dim], &at[dim], to[dim], dim, direction, phase * far_steps(t),
                        legs + count);
    }
    for (unsigned turn = 0; turn < 2; turn++) {
        const unsigned dim = turn == 0 ? first : 1 - first;
        count += go_near(&at[dim], to[dim], dim, 2, step++, legs + count);
    }
    for (unsigned dim = 2; dim-- > 0;)
        count += go_near(&at[dim], to[dim], dim, 1, step++, legs + count);
    return count;
}

const struct algorithm algorithm_suh_shin = {
    .name = "suh-shin",
    .summary = "torus: runs of 4 hops to the 4x4 nodes around the destination, one way round each "
               "ring, then swaps there",
    .accepts_text = "r x c tori, r and c multiples of 4",
    .startups = "n/2 + 2, n the larger size",
    .transmission = "(n/4 + 1)*N, n the larger size",
    .source = "this project, after Suh and Shin; counts as in Liu et al., Optimal All-to-All "
              "Personalized Communication in All-Port Tori, Table II",
    .port_model = PORT_MODEL_ONE,
    .segments = 1,
    .takes = suh_shin_takes,
    .max_legs = suh_shin_max_legs,
    .period = suh_shin_period,
    .route = suh_shin_route,
};
