/* All-to-all broadcast on a torus or mesh of two dimensions. Yang and Wang: All-to-All
 * Communication, "Broadcast Pattern", to the letter.
 *
 * A block floods the network: in phase p it reaches all nodes p hops away from its source. To reach
 * each of them once, a node passes the block on to certain neighbours only, chosen by parities. Let
 * the node be at (x, y) relative to the source, x along the last dimension. It sends the block away
 * from the source
 * - case 1, at the source: to all its neighbours;
 * - case 3, off both axes: to one neighbour, along x if x + y + u is odd, along y if it is even,
 *   where u is 1 if x and y have the same sign, otherwise 0;
 * - case 2, on an axis: to two neighbours, those of case 3 for either sign of the coordinate that
 *   is 0. One is the next node on the axis, the other one lies beside the axis.
 *
 * At the edges of a mesh the pattern is cut off. On a torus, a node does not pass the block to a
 * neighbour that is not farther from the source than the node itself (the paper's "additional
 * check").
 *
 * The routes follow from the other end: a node off both axes receives the block along x if x + y +
 * u is even there, otherwise along y; a node on an axis receives it along that axis. On a mesh
 * every node receives each block once, since the way from the source stays in the box between the
 * two. The same holds on a torus of odd sizes, where no node is halfway round. On even sizes the
 * nodes halfway round receive the block from both sides: 5 nodes of 4x4 twice, 7 of 6x6, 9 of 8x8;
 * and some channels carry 5, 11 and 18 blocks, where the bound is 4, 9 and 16. The paper does not
 * mention this; the (n^2-1)/4 of its corollary 1 is not a whole number there. We refuse these tori;
 * `balanced` takes them.
 *
 * On n x n tori every channel carries (n^2-1)/4 blocks, on n x n meshes at most ceil((n^2-1)/2):
 * the bound. If the two sizes differ, the busiest channel can exceed the bound (3x9 torus: 8, bound
 * 7; 2x9 mesh: 12, bound 9). `balanced` does not. */
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

/* Whether the node receives the block along x. */
static bool comes_along_x(const struct place *p)
{
    uint32_t u = p->direction[X] == p->direction[Y];

    if (p->hops[X] == 0 || p->hops[Y] == 0)
        return p->hops[X] > 0;
    return (p->hops[X] + p->hops[Y] + u) % 2 == 0; /* signs do not change parity */
}

/* Finds the route backwards: from the destination, always to the neighbour that it receives the
 * block from. */
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
