/* Complete exchange on a one-port torus of r x c nodes: first in squares of 2x2 nodes, then within
 * four groups of nodes. Liu, Gu, Bi, Tu, Dong: Optimal All-to-All Personalized Communication in
 * All-Port Tori, section 4.A, describes this scheme of Tseng, Ni and Sheu [7] and of Gu [8], which
 * AT2 (at2.c) improves.
 *
 * The nodes of a group have coordinates of the same parities.
 * - Part 1 (2 steps): a swap along dimension 0, then along dimension 1, in the squares of the nodes
 *   (2i, 2j) to (2i+1, 2j+1). Then a block is in the group of its destination.
 * - Part 2: a complete exchange within each group.
 *
 * The paper gives no counts, and does not describe part 2. It says that the scheme keeps to one
 * port, leaves channels idle, and does not use shortest paths. Part 2 is reconstructed with
 * algorithms of the same authors, and so are the counts: AR1 (ar1.c) along one dimension, then along
 * the other, on the logical rings of a group, which have every second node of a row or column. Two
 * groups share each row and each column. So the groups with x + y even begin with their rows, the
 * others with their columns, as in AT2, and no two messages meet on a channel. Main terms of p^2/8
 * blocks on rings and N*n/8 on square tori, which AR1 and this scheme have, are what Gu states [8].
 *
 * at2-1port runs the same exchanges in the opposite order, rings first and squares last, and costs
 * the same. It takes the shortest path more often, because the direction of its swaps is that of the
 * destination.
 *
 * Sizes must be multiples of four. */
#include "daemon/lib/schedule/algorithms/one_port.h"
#include "daemon/lib/schedule/algorithms/rows.h"

enum { SWAPS = 2 };

static int squares_accepts(const struct torus *t, struct error *e)
{
    bool taken = t->dims == 2;
    for (unsigned i = 0; taken && i < 2; i++)
        taken = t->wrap[i] && t->size[i] % 4 == 0;
    return taken ? 0 : algorithm_refuse(&algorithm_squares, t, e);
}

static uint32_t squares_max_legs(const struct torus *t)
{
    struct one_port p;

    one_port_init(&p, t);
    return SWAPS + 2 * p.ring_steps;
}

static uint32_t squares_route(const struct torus *t, uint32_t source, uint32_t destination,
                              uint32_t segment, struct leg *legs)
{
    struct one_port p;
    uint32_t at[2], to[2], count = 0;

    (void)segment;
    one_port_init(&p, t);
    torus_coordinates(t, source, at);
    torus_coordinates(t, destination, to);
    for (unsigned dim = 0; dim < 2; dim++) {
        if (at[dim] % 2 == to[dim] % 2)
            continue;
        legs[count++] = (struct leg){
            .step = dim, .hops = 1, .dim = (uint8_t)dim, .direction = at[dim] % 2 == 0 ? 1 : -1};
        at[dim] ^= 1;
    }

    /* The paper's row rings run along dimension 1. */
    unsigned dim = (at[0] + at[1]) % 2 == 0 ? 1 : 0;
    for (unsigned round = 0; round < 2; round++, dim = 1 - dim)
        count += one_port_ring(&p, t, dim, 2, SWAPS + round * p.ring_steps, &at[dim], to[dim],
                               legs + count);
    return count;
}

const struct algorithm algorithm_squares = {
    .name = "squares",
    .summary = "torus: swaps in squares of 2x2, then AR1 on rows and columns at the same time",
    .accepts_text = "two dimensions that wrap, both multiples of 4",
    .startups = "2*ceil(c/8) + 4, c the larger size (4x4: 4)",
    .transmission = "4*r*floor(c^2/32) + 2*r*c (some r != c: critical path)",
    .source = "Liu et al., Optimal All-to-All Personalized Communication in All-Port Tori, section "
              "4.A, after Tseng, Ni and Sheu, and Gu; part 2: this project",
    .port_model = PORT_MODEL_ONE,
    .segments = 1,
    .accepts = squares_accepts,
    .max_legs = squares_max_legs,
    .period = one_port_period,
    .route = squares_route,
};
