/* The lower bound on the time of a complete exchange with one port and single hops.
 *
 * All bounds here are of one kind. Give each node v a weight w(v) of 0 or more. In T units of time each
 * node sends at most T blocks. So the weights of all sends add up to at most T * sum of w(v). A block
 * (s, d) is sent by every node of its path except d, and its sends weigh at least as much as those of
 * the lightest path from s to d. So
 *
 *     T >= sum over all (s, d) of the lightest path from s to d  /  sum over all v of w(v).
 *
 * With all weights 1, this is the average status. Other weights prove more where some nodes have less
 * to relay than others, as at the ends of arrays. All weights below are 0 or 1. S is the sum of all
 * distances, N the number of nodes. tests/contract/test_single_hops.c finds the lightest paths by a
 * search, and tests/integration/test_single_hops_bound.py compares with the best weights. */
#include "daemon/lib/schedule/product.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double squared(double a)
{
    return a * a;
}

/* Weight 1 for the nodes in the middle of array i: a layer of M = N/n nodes if n is odd, two if n is even.
 *
 * n odd: each node of the layer sends its own N-1 blocks. The layer relays all blocks from one side to
 * the other, 2 * ((n-1)/2)^2 * M^2. For each of the M nodes that is N-1 + (n-1)^2/2 * M, which is
 * M * (n^2 + 1)/2 - 1.
 *
 * n even, h = n/2: in each half, one layer of M nodes has weight, and the other (h-1)*M nodes have none,
 * so that a block moves among these nodes for nothing. The lightest paths are:
 * - from a node without weight: 0 within its half, 1 to the other layer, 2 to the nodes behind it;
 * - from a node of a layer: 1 to the h*M - 1 others of its half, 1 to its neighbour in the other layer,
 *   2 to all others of the other half.
 * That is M * (n^2/2 + 1) - 2 for each of the 2M nodes. If n is 2, there are no nodes without weight. */
static double bound_by_middle(const struct product *p, unsigned i)
{
    double n = p->factor[i].nodes, layer = p->nodes / n;

    if (p->factor[i].kind != FACTOR_ARRAY || n <= 2)
        return 0;
    if (p->factor[i].nodes % 2 != 0)
        return layer * (n * n + 1) / 2 - 1;
    return layer * (n * n / 2 + 1) - 2;
}

/* Weight 1 for the M = N/n nodes with the coordinate v in a graph that v divides. Each of them sends its
 * own N-1 blocks. R pairs of the graph's nodes are in different parts without v, and all blocks between
 * them in the product, R * M^2, cross the layer. That is N-1 + R*M for each node of the layer. */
static double bound_by_divider(const struct product *p, unsigned i)
{
    if (p->factor[i].kind != FACTOR_GRAPH)
        return 0;
    return p->nodes - 1 +
           (double)graph_relayed_most(p->factor[i].graph) * p->nodes / p->factor[i].nodes;
}

/* The dimensions of more than one node. */
struct mesh {
    unsigned dims;
    double size[PRODUCT_MAX_DIMS];
    bool odd; /* all sizes */
};

/* Whether all of them are arrays. */
static bool read_mesh(const struct product *p, struct mesh *m)
{
    *m = (struct mesh){.odd = true};
    for (unsigned i = 0; i < p->dims; i++) {
        const struct factor *f = &p->factor[i];
        if (f->nodes == 1)
            continue;
        if (f->kind != FACTOR_ARRAY)
            return false;
        m->size[m->dims++] = f->nodes;
        m->odd = m->odd && f->nodes % 2 != 0;
    }
    return true;
}

/* Weight 1 for the odd nodes of a mesh of odd sizes: the (N-1)/2 nodes whose coordinates have an odd sum.
 * Every hop leads from an odd node to an even one, or back, so that odd and even nodes of a path take
 * turns to send. On a path of even length, half of the senders are odd. On a path of odd length between
 * an odd and an even node, there is one more odd sender than even ones in one direction, and one less
 * in the other. So all shortest paths together weigh S/2, and longer paths are not lighter. That is
 * S/(N-1) for each odd node. If a size is even, half of all nodes are odd, and S/N is the average. */
static double bound_by_colour(double distances, double nodes)
{
    return distances / (nodes - 1);
}

/* The blocks that the corners of a two-dimensional mesh can relay on shortest paths: from a node in the row
 * of the corner to a node in its column, or from column to row. A block between opposite corners could
 * take either of two corners, and counts once. */
static double relayed_by_corners(const struct mesh *m)
{
    return 8 * (m->size[0] - 1) * (m->size[1] - 1) - 4;
}

/* Weight 1 for all nodes of a two-dimensional mesh except its corners. Each corner sends its own N-1
 * blocks. A longer path is not lighter: it has at least as many additional hops as additional corners. */
static double bound_by_corners(const struct mesh *m, double distances, double nodes)
{
    return (distances - 4 * (nodes - 1) - relayed_by_corners(m)) / (nodes - 4);
}

/* The blocks between two opposite sides of n nodes that can take two corners on a path of two more hops:
 * neither end is a corner, and one of them is next to a corner. */
static double relayed_by_edge(double n)
{
    return 2 * (squared(n - 2) - squared(larger(n - 4, 0)));
}

/* Weight 1 for the even nodes of a two-dimensional mesh of odd sizes except its corners: (N+1)/2 - 4 nodes
 * whose coordinates have an even sum. With the corners, the paths would weigh S/2 (bound_by_colour()).
 * Each two additional hops add 1, and each corner on a path saves 1. So a longer path is lighter only
 * if it has more additional corners than pairs of additional hops: along one edge, from corner to corner,
 * it saves 1. Paths by a third corner need too many hops to save more. */
static double bound_by_colour_and_corners(const struct mesh *m, double distances, double nodes)
{
    double saved = 4 * (nodes - 1) + relayed_by_corners(m) + relayed_by_edge(m->size[0]) +
                   relayed_by_edge(m->size[1]);

    return (distances / 2 - saved) / ((nodes + 1) / 2 - 4);
}

/* S of a network of arrays only, where it is whole. */
static double all_distances(const struct product *p)
{
    return (double)(uint64_t)(product_average_status(p) * p->nodes + 0.5);
}

double product_bound_single_hops(const struct product *p)
{
    double bound = larger(product_bound_one_port(p), product_average_status(p));
    double nodes = p->nodes, distances = all_distances(p);
    struct mesh mesh;

    for (unsigned i = 0; i < p->dims; i++) {
        bound = larger(bound, bound_by_middle(p, i));
        bound = larger(bound, bound_by_divider(p, i));
    }
    if (!read_mesh(p, &mesh) || mesh.dims == 0)
        return bound;
    if (mesh.odd)
        bound = larger(bound, bound_by_colour(distances, nodes));
    if (mesh.dims != 2 || mesh.size[0] == 2 || mesh.size[1] == 2)
        return bound;
    bound = larger(bound, bound_by_corners(&mesh, distances, nodes));
    if (mesh.odd)
        bound = larger(bound, bound_by_colour_and_corners(&mesh, distances, nodes));
    return bound;
}
