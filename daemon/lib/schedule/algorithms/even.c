/* All-to-all broadcast of blocks in segments that take different ways, so that together they load
 * the channels more evenly than a whole block could. Each segment sees the torus with its
 * dimensions in another order, every second one also mirrored.
 *
 * In up to two dimensions the trees are those of `balanced`. Whole blocks can load some channels
 * with one block more than others; the segments together load every channel of a torus with (N-1)/d
 * blocks for d links a node, the lower bound, or a quarter of a block more if one size is odd and
 * the other even. In more dimensions the trees are those of `saadschultz`, which load the last
 * dimension most. If all dimensions have the same size, the segments together attain (N-1)/d, too,
 * like the buckets of Jain, Sabharwal: Optimal Bucket Algorithms for Large MPI Collectives on Torus
 * Interconnects (2010).
 *
 * The algorithm is not in the registry, since its blocks must be split. */
#include "daemon/lib/schedule/algorithms/even.h"
#include "daemon/lib/schedule/algorithms/rotation.h"
#include "daemon/lib/schedule/algorithms/rows.h"

/* The torus as a segment sees it. */
struct view {
    struct torus torus;
    unsigned dim[TORUS_MAX_DIMS]; /* by dimension of the view: the real one */
    bool mirrored;
};

static struct view make_view(const struct torus *t, uint32_t segment)
{
    const struct rotation order = rotation_of(t);
    struct view v = {.torus = *t, .mirrored = segment % 2 == 1};

    for (unsigned i = 0; i < t->dims; i++)
        v.dim[i] = i;
    for (unsigned i = 0; i < order.count; i++)
        v.dim[order.dim[i]] = order.dim[(i + segment / 2) % order.count];
    for (unsigned i = 0; i < t->dims; i++) {
        v.torus.size[i] = t->size[v.dim[i]];
        v.torus.wrap[i] = t->wrap[v.dim[i]];
    }
    return v;
}

static uint32_t seen(const struct view *v, const struct torus *t, uint32_t node)
{
    uint32_t real[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, real);
    for (unsigned i = 0; i < t->dims; i++)
        at[i] = v->mirrored ? v->torus.size[i] - 1 - real[v->dim[i]] : real[v->dim[i]];
    return torus_rank(&v->torus, at);
}

static uint32_t even_route(const struct torus *t, uint32_t source, uint32_t destination,
                           uint32_t segment, struct leg *legs)
{
    const struct view v = make_view(t, segment);
    const struct algorithm *a =
        rotation_of(t).count <= 2 ? &algorithm_balanced : &algorithm_saadschultz;
    uint32_t count =
        algorithm_route(a, &v.torus, seen(&v, t, source), seen(&v, t, destination), 0, legs);

    for (uint32_t i = 0; i < count; i++) {
        legs[i].dim = (uint8_t)v.dim[legs[i].dim];
        legs[i].direction = (int8_t)(v.mirrored ? -legs[i].direction : legs[i].direction);
    }
    return count;
}

static int even_accepts(const struct torus *t, struct error *e)
{
    (void)t, (void)e; /* even_algorithm() returns it only for a torus that it takes */
    return 0;
}

#define EVEN(parts)                                                                                \
    {                                                                                              \
        .name = "even", .summary = "all-to-all broadcast, in segments that go different ways",     \
        .accepts_text = "any torus or mesh", .startups = "the diameter",                           \
        .transmission = "(N-1)/d with up to two dimensions, or with equal ones",                   \
        .source = "this project; Jain, Sabharwal", .operation = OPERATION_ALLGATHER,               \
        .port_model = PORT_MODEL_ALL, .segments = (parts), .accepts = even_accepts,                \
        .max_legs = torus_diameter, .period = torus_full_period, .route = even_route,              \
    }

const struct algorithm *even_algorithm(const struct torus *t)
{
    /* By the number of dimensions with more than one node. */
    static const struct algorithm even[TORUS_MAX_DIMS + 1] = {
        EVEN(1), EVEN(2), EVEN(4), EVEN(6), EVEN(8), EVEN(10), EVEN(12), EVEN(14), EVEN(16)};
    return &even[rotation_of(t).count];
}
