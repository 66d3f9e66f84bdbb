/* Every block goes straight to its destination, dimension 0 first: the baseline of every paper.
 *
 * Papers count N-1 startups for it. Here there are exactly N-1 steps, and a node starts one block
 * in each. The offsets are in the order of their numbers of nonzero coordinates, largest number
 * first; the block with the t-th offset (t = 0 to N-2) has its legs in steps t, t+1, ... That never
 * needs a step beyond N-2: an offset with z nonzero coordinates has z legs, and at least one offset
 * with z-1, z-2, ... 1 of them follows (set one coordinate after the other to zero), so t + z-1 <=
 * N-2. */
#include "daemon/lib/schedule/algorithms/rows.h"
#include "daemon/lib/schedule/algorithms/straight.h"

static int direct_accepts(const struct torus *t, struct error *e)
{
    if (!straight_fits(t))
        return algorithm_refuse(&algorithm_direct, t, e);
    return 0;
}

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
    .startups = "N - 1 (graphs of more than one hop: longest way)",
    .transmission = "no formula",
    .source = "the usual baseline; no paper",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .accepts = direct_accepts,
    .max_legs = straight_most_legs,
    .period = direct_period,
    .ordered_steps = direct_steps,
    .route = direct_route,
};
