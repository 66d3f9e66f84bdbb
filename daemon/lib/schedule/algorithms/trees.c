/* An allgather on any network: from each node along the tree of tree.h, whose root the node is. All
 * ways are shortest ways, through the dimensions in order. A block crosses a link of the tree in the
 * step that is the distance of the link's farther end. */
#include "daemon/lib/schedule/algorithms/rows.h"
#include "daemon/lib/schedule/tree.h"

static int trees_accepts(const struct torus *t, struct error *e)
{
    /* Rings and lines have algorithms that load their channels evenly. */
    return torus_is_plain(t) ? algorithm_refuse(&algorithm_trees, t, e) : 0;
}

static uint32_t trees_route(const struct torus *t, uint32_t source, uint32_t destination,
                            uint32_t segment, struct leg *legs)
{
    uint32_t hops = torus_distance(t, source, destination), here = destination;

    (void)segment;
    for (uint32_t i = hops; i-- > 0;) {
        unsigned up = (unsigned)tree_parent(t, source, here), down = torus_port_opposite(t, up);
        legs[i] = (struct leg){.step = i,
                               .hops = 1,
                               .dim = (uint8_t)torus_port_dim(t, down),
                               .direction = (int8_t)torus_port_direction(t, down)};
        here = torus_neighbour(t, here, up);
    }
    return hops;
}

const struct algorithm algorithm_trees = {
    .name = "trees",
    .summary = "from each node along a tree of shortest ways, dimension after dimension",
    .accepts_text = "networks with other factors than rings and lines",
    .startups = "the longest way",
    .transmission = "no formula",
    .source = "this project",
    .operation = OPERATION_ALLGATHER,
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .any_graph = true,
    .accepts = trees_accepts,
    .max_legs = torus_diameter,
    .period = torus_no_period,
    .route = trees_route,
};
