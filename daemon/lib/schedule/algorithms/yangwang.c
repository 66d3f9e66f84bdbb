/* All-to-all broadcast on a torus or mesh. Yang and Wang: All-to-All Communication, "Broadcast
 * Pattern". In two dimensions this is the paper's pattern to the letter. The paper says that the
 * pattern can be extended to more dimensions, but not how; the extension here is ours.
 *
 * A block floods the network: in phase p it reaches all nodes p hops away from its source. To reach
 * each of them once, a node passes the block on to certain neighbours only. Let the node be at (x,
 * y) relative to the source, x along the last dimension. In the paper, the node sends the block
 * away from the source
 * - case 1, at the source: to all its neighbours;
 * - case 3, off both axes: to one neighbour, along x if x + y + u is odd, along y if it is even,
 *   where u is 1 if x and y have the same sign, otherwise 0;
 * - case 2, on an axis: to two neighbours, those of case 3 for either sign of the coordinate that
 *   is 0. One is the next node on the axis, the other one lies beside the axis.
 * At the edges of a mesh the pattern is cut off. On a torus, a node does not pass the block to a
 * neighbour that is not farther from the source than the node itself (the paper's "additional
 * check").
 *
 * We describe the same pattern from the receiver's side, in k dimensions. Take the k coordinates of
 * a node relative to the source, the last dimension first, and then the same k numbers with the
 * other sign. Write these 2k entries around a circle. Entry i < k stands for the channels that lead
 * along + of dimension i, entry k + i for those along -. The block can arrive on a shortest path by
 * the positive entries, one for each coordinate that is not 0. The rule chooses one of these s:
 * - The start is the positive entry from which the circle, read once around, is largest: by the
 *   signs of its entries first, then by their values.
 * - The block arrives by the positive entry number (p - 1) mod s, counted from the start, in phase
 *   p.
 * - If several starts read the same, the block arrives by one of these starts; choose_start() says
 *   by which.
 * In two dimensions there is always one start. Off the axes, the two positive entries are next to
 * each other. The start is the first of them, which is x exactly if x and y have the same sign. The
 * block arrives by the start if p is odd, otherwise by the other entry. This is the paper's rule.
 *
 * Single delivery. Every node except the source receives the block by one channel, from a neighbour
 * that is one hop nearer to the source and lies in the box between the two. So the routes of a
 * block form a tree of shortest paths, and the tree stays inside a mesh. Dimensions that wrap must
 * be odd. On even ones a node halfway round has two such neighbours in a dimension, and the paper's
 * pattern reaches the node from both: 5 nodes of 4x4 twice, 7 of 6x6, 9 of 8x8; and some channels
 * carry 5, 11 and 18 blocks, where the bound is 4, 9 and 16. The paper does not mention this; the
 * (n^2-1)/4 of its corollary 1 is not a whole number there. We refuse these tori; `balanced` takes
 * them in up to two dimensions.
 *
 * Load on n^k tori, n odd, N = n^k: no channel carries more than the bound, ceil((N-1)/2k). Proof:
 * All nodes follow the same rule, so a channel carries as many blocks as there are places that
 * choose the channel's entry. Turning the circle by one entry maps the places to each other, keeps
 * their phase, and turns the start with them. If a place has 2k different images under turns, the
 * images therefore choose each entry once. Otherwise the circle repeats every 2k/m entries, and the
 * place has 2k/m images. m is odd: m even would mean that half a turn, which changes all signs,
 * maps the place to itself. choose_start() gives such a set of images one of m runs of 2k/m
 * entries, and takes the m runs in turn. With R such sets, the busiest channel carries (N-1 - R *
 * 2k/m)/2k + ceil(R/m) = ceil((N-1)/2k) blocks. (Up to 8 dimensions, there is only one m > 1: 3 for
 * 3 and 6 dimensions, 5 for 5, 7 for 7, none for 1, 2, 4 and 8. Without m > 1 all channels carry
 * the same number of blocks, in every phase.)
 *
 * Other loads, which matched.c keeps to the bound. On n x n meshes a channel carries at most the bound, ceil((n^2-1)/2). Elsewhere we
 * have no such proof, and the bound can be exceeded. A channel of dimension i carries about the sum
 * over all sets S of dimensions that contain i: the product of n_j - 1 for all j in S, divided by
 * |S|, and by 2 more if the dimensions wrap. On n^k meshes this sum is (N-1)/k, the bound, but the
 * shares of the boxes around a node are rounded separately (3x3x3: 10, bound 9; 4x4x4: 22, bound
 * 21; 3x3x3x3: 24, bound 20). If sizes differ, the sum exceeds the bound in the longer dimensions
 * (3x9 torus: 8, bound 7; 2x9 mesh: 12, bound 9; 3x5x7 torus: 21, bound 18). */
#include <assert.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rotation.h"

static bool yangwang_takes(const struct torus *t)
{
    bool taken = true;

    for (unsigned i = 0; i < t->dims; i++)
        taken = taken && (!t->wrap[i] || t->size[i] % 2 != 0);
    return taken;
}

/* A node relative to the source. */
struct place {
    unsigned dims;                  /* of more than one node: k */
    unsigned dim[TORUS_MAX_DIMS];   /* these, the last one first */
    int32_t offset[TORUS_MAX_DIMS]; /* hops from the source in each of them */
    uint32_t distance;              /* p */
    uint32_t reach;                 /* no offset is larger */
};

static struct place make_place(const struct torus *t, uint32_t source, uint32_t node)
{
    const struct rotation dims = rotation_of(t);
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct place p = {.dims = dims.count};

    torus_coordinates(t, source, from);
    torus_coordinates(t, node, to);
    for (unsigned i = 0; i < dims.count; i++) {
        unsigned dim = dims.dim[dims.count - 1 - i];
        uint32_t farthest = t->wrap[dim] ? t->size[dim] / 2 : t->size[dim] - 1;
        int direction = 0;
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);

        p.dim[i] = dim;
        p.offset[i] = direction * (int32_t)hops;
        p.distance += hops;
        p.reach = farthest > p.reach ? farthest : p.reach;
    }
    return p;
}

/* An entry of the circle. */
static int32_t entry(const struct place *p, unsigned i)
{
    i %= 2 * p->dims;
    return i < p->dims ? p->offset[i] : -p->offset[i - p->dims];
}

static int sign(int32_t number)
{
    return (number > 0) - (number < 0);
}

/* Compares the circle read from entry a with the circle read from entry b. */
static int compare_starts(const struct place *p, unsigned a, unsigned b)
{
    for (unsigned i = 0; i < 2 * p->dims; i++)
        if (sign(entry(p, a + i)) != sign(entry(p, b + i)))
            return sign(entry(p, a + i)) - sign(entry(p, b + i));
    for (unsigned i = 0; i < 2 * p->dims; i++)
        if (entry(p, a + i) != entry(p, b + i))
            return entry(p, a + i) > entry(p, b + i) ? 1 : -1;
    return 0;
}

static_assert(TORUS_MAX_DIMS < 9, "choose_start() knows circles that repeat after 2 or 4 entries");

/* Chooses one of several starts that read the same: `first` and every `repeat`-th entry after it.
 * Read from there, the circle begins with a, -a (repeat 2) or with a, b, -a, -b (repeat 4), where a
 * > 0 and b >= 0. Images under turns have the same a and b. So the number below is the same for all
 * images of a place, and counts the sets of images without gaps: a from 1, b from 0 to the reach. */
static unsigned choose_start(const struct place *p, unsigned first, unsigned repeat)
{
    uint64_t number = (uint64_t)entry(p, first) - 1;

    if (repeat == 4)
        number = number * (p->reach + 1) + (uint64_t)entry(p, first + 1);
    return first + (unsigned)(number % (2 * p->dims / repeat)) * repeat;
}

/* The entry by which the block arrives. */
static unsigned arrives_by(const struct place *p)
{
    unsigned entries = 2 * p->dims, start = entries, starts = 0, positive = 0;

    for (unsigned i = 0; i < entries; i++) {
        if (entry(p, i) <= 0)
            continue;
        int order = start == entries ? 1 : compare_starts(p, i, start);
        if (order > 0)
            start = i;
        starts = order > 0 ? 1 : starts + (order == 0);
        positive++;
    }
    if (starts > 1)
        return choose_start(p, start, entries / starts);
    for (uint32_t skip = (p->distance - 1) % positive; skip > 0; skip--)
        do
            start++;
        while (entry(p, start) <= 0);
    return start % entries;
}

/* Finds the route backwards: from the destination, always to the neighbour that it receives the
 * block from. */
static uint32_t yangwang_route(const struct torus *t, uint32_t source, uint32_t destination,
                               uint32_t segment, struct leg *legs)
{
    struct place place = make_place(t, source, destination);
    uint32_t count = place.distance;

    (void)segment;
    while (place.distance > 0) {
        unsigned by = arrives_by(&place), i = by % place.dims;
        int direction = by < place.dims ? 1 : -1;

        place.distance--;
        place.offset[i] -= direction;
        legs[place.distance] = (struct leg){.step = place.distance,
                                            .hops = 1,
                                            .dim = (uint8_t)place.dim[i],
                                            .direction = (int8_t)direction};
    }
    return count;
}

const struct algorithm algorithm_yangwang = {
    .name = "yangwang",
    .summary = "broadcast pattern, as published: flooding controlled by parities; extended to more "
               "than two dimensions",
    .accepts_text = "dimensions that are odd if they wrap ('balanced' takes even ones)",
    .startups = "the diameter",
    .transmission = "(n^2-1)/4 on n x n tori; on any channel in all: ceil((n^k-1)/2k) on n^k tori, "
                    "ceil((n^2-1)/2) on n x n meshes",
    .source = "Yang, Wang, All-to-All Communication, Broadcast Pattern",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .takes = yangwang_takes,
    .max_legs = torus_diameter,
    .period = torus_full_period,
    .route = yangwang_route,
};
