/* All-to-all broadcast on a torus or mesh of two dimensions. Yang and Wang: All-to-All
 * Communication, "Broadcast Pattern", to the letter: in phase d a block comes to all nodes d hops
 * away from its source. A node at (x, y) relative to the source, x along the last dimension, passes
 * it on away from the source
 * - to all its neighbours, if it is the source (case 1);
 * - off both axes to one neighbour (case 3): let u be 1 if x and y have the same sign and else 0;
 *   along x if x + y + u is odd, along y if it is even;
 * - on an axis to two neighbours (case 2), as by case 3 with either sign for the 0; one of the two
 *   is the next node on the axis, the other lies beside it.
 * On a mesh the pattern is trimmed at the edges, on a torus where the next node is no farther from
 * the source ("additional check").
 *
 * So a node off both axes takes in a block along x if x + y + u is even there, else along y, and a
 * node on an axis along that axis. Every node of a mesh gets it exactly once, for the way from the
 * source stays in the box between the two. On a torus the same is true if all sizes are odd, and no
 * node is halfway round. On even ones those halfway get it from both sides: 5 nodes of 4x4 twice, 7
 * of 6x6, 9 of 8x8, and some channels carry 5, 11 and 18 blocks where the bound is 4, 9 and 16. The
 * paper does not say so; the (n^2-1)/4 of its corollary 1 is not whole there. These tori are
 * refused; `balanced` takes them.
 *
 * Blocks on a channel: (n^2-1)/4 on every one of an n x n torus, ceil((n^2-1)/2) at most on an n x n
 * mesh, both the bound. Where the sizes differ the busiest one can have more than the bound (3x9
 * torus: 8, bound 7; 2x9 mesh: 12, bound 9); in `balanced` it has not. */
#include "daemon/schedule/algorithms/rotation.h"
#include "daemon/schedule/algorithms/rows.h"

static int yangwang_accepts(const struct torus *t, struct error *e)
{
    bool taken = rotation_of(t).count <= 2;

    for (unsigned i = 0; i < t->dims; i++)
        taken = taken && (!t->wrap[i] || t->size[i] % 2 != 0);
    return taken ? 0 : algorithm_refuse(&algorithm_yangwang, t, e);
}

enum { X, Y };

/* A node relative to the source: hops along x and y, and in which directions. */
struct place {
    unsigned dim[2];
    uint32_t hops[2];
    int direction[2];
};

static struct place make_place(const struct torus *t, uint32_t source, uint32_t node)
{
    const struct rotation dims = rotation_of(t);
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct place p = {.hops = {0}};

    torus_coordinates(t, source, from);
    torus_coordinates(t, node, to);
    for (unsigned i = 0; i < dims.count; i++) {
        unsigned dim = dims.dim[dims.count - 1 - i];
        p.dim[i] = dim;
        p.hops[i] = torus_shortest(t, dim, from[dim], to[dim], &p.direction[i]);
    }
    return p;
}

/* Whether it takes in the block along x. */
static bool comes_along_x(const struct place *p)
{
    uint32_t u = p->direction[X] == p->direction[Y];

    if (p->hops[X] == 0 || p->hops[Y] == 0)
        return p->hops[X] > 0;
    return (p->hops[X] + p->hops[Y] + u) % 2 == 0; /* signs do not change the parity */
}

/* The route is found backwards, from where the destination gets the block. */
static uint32_t yangwang_route(const struct torus *t, uint32_t source, uint32_t destination,
                               uint32_t segment, struct leg *legs)
{
    struct place place = make_place(t, source, destination);
    uint32_t count = place.hops[X] + place.hops[Y];

    (void)segment;
    for (uint32_t step = count; step-- > 0;) {
        unsigned axis = comes_along_x(&place) ? X : Y;

        legs[step] = (struct leg){.step = step,
                                  .hops = 1,
                                  .dim = (uint8_t)place.dim[axis],
                                  .direction = (int8_t)place.direction[axis]};
        place.hops[axis]--;
    }
    return count;
}

const struct algorithm algorithm_yangwang = {
    .name = "yangwang",
    .summary = "broadcast pattern, as published: flooding controlled by parities",
    .accepts_text =
        "up to two dimensions of more than one node, odd if they wrap ('balanced' takes "
        "even ones)",
    .startups = "the diameter",
    .transmission = "(n^2-1)/4 on n x n tori; n x n meshes: ceil((n^2-1)/2) on any channel in all",
    .source = "Yang, Wang, All-to-All Communication, Broadcast Pattern",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .accepts = yangwang_accepts,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = yangwang_route,
};
