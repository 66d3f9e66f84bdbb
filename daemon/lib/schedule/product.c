#include "daemon/lib/schedule/product.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/schedule/factor.h"

/* Appends a factor as many times as its power says. */
static int append(const char *text, struct product *p, const struct factor *f, uint32_t times,
                  struct error *e)
{
    for (; times > 0; times--) {
        if (p->dims == PRODUCT_MAX_DIMS)
            return error_set(e, ERROR_USAGE, "network \"%.64s\" has more than %d dimensions", text,
                             PRODUCT_MAX_DIMS);
        if (f->nodes > TORUS_MAX_NODES / p->nodes)
            return error_set(e, ERROR_USAGE, "network \"%.64s\" has more than %u nodes", text,
                             TORUS_MAX_NODES);
        p->nodes *= f->nodes;
        p->factor[p->dims++] = *f;
    }
    return 0;
}

int product_parse(struct product *p, const char *text, struct error *e)
{
    struct factor_text r = {
        .what = "network", .text = text, .at = text + strspn(text, " "), .files = true};
    struct product result = {.nodes = 1};
    struct factor f;
    uint32_t times;

    do {
        if (factor_text_read(&r, &f, &times, e) != 0 || append(text, &result, &f, times, e) != 0)
            return -1;
    } while (factor_text_goes_on(&r));
    r.at += strspn(r.at, " ");
    if (factor_text_end(&r, e) != 0)
        return -1;
    *p = result;
    return 0;
}

char *product_format(const struct product *p, char *text)
{
    size_t used = 0;

    for (unsigned i = 0, same; i < p->dims; i += same) {
        const struct factor *f = &p->factor[i];
        for (same = 1; i + same < p->dims; same++)
            if (f[same].kind != f->kind || f[same].nodes != f->nodes || f[same].graph != f->graph)
                break;
        used += (size_t)snprintf(text + used, PRODUCT_TEXT_SIZE - used, "%s", i == 0 ? "" : " x ");
        if (f->kind == FACTOR_GRAPH)
            used += (size_t)snprintf(text + used, PRODUCT_TEXT_SIZE - used, "%s", f->graph->text);
        else
            used += (size_t)snprintf(text + used, PRODUCT_TEXT_SIZE - used, "%s:%u",
                                     factor_kind_name(f->kind), f->nodes);
        if (same > 1)
            used += (size_t)snprintf(text + used, PRODUCT_TEXT_SIZE - used, "^%u", same);
    }
    return text;
}

struct product product_of_torus(const struct torus *t)
{
    struct product p = {.dims = t->dims, .nodes = t->nodes};
    for (unsigned i = 0; i < t->dims; i++) {
        const struct graph *g = t->graph[i];
        enum factor_kind plain = t->wrap[i] ? FACTOR_RING : FACTOR_ARRAY;
        p.factor[i] = (struct factor){.kind = plain, .nodes = t->size[i]};
        if (g != NULL && g->kind == GRAPH_KIND_COMPLETE)
            p.factor[i].kind = FACTOR_COMPLETE;
        else if (g != NULL)
            p.factor[i] = (struct factor){.kind = FACTOR_GRAPH, .nodes = g->nodes, .graph = g};
    }
    return p;
}

/* The number of copies of dimension i: N/n_i. */
static uint32_t copies(const struct product *p, unsigned i)
{
    return p->nodes / p->factor[i].nodes;
}

uint32_t product_distance(const struct product *p, uint32_t a, uint32_t b)
{
    uint32_t hops = 0;
    for (unsigned i = p->dims; i-- > 0;) {
        uint32_t n = p->factor[i].nodes;
        hops += factor_distance(&p->factor[i], a % n, b % n);
        a /= n;
        b /= n;
    }
    return hops;
}

uint32_t product_diameter(const struct product *p)
{
    uint32_t hops = 0;
    for (unsigned i = 0; i < p->dims; i++)
        hops += factor_diameter(&p->factor[i]);
    return hops;
}

uint64_t product_status(const struct product *p, uint32_t node)
{
    uint64_t sum = 0;
    for (unsigned i = p->dims; i-- > 0; node /= p->factor[i].nodes)
        sum += copies(p, i) * factor_status(&p->factor[i], node % p->factor[i].nodes);
    return sum;
}

uint64_t product_least_status(const struct product *p)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < p->dims; i++)
        sum += copies(p, i) * factor_least_status(&p->factor[i]);
    return sum;
}

uint64_t product_most_status(const struct product *p)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < p->dims; i++)
        sum += copies(p, i) * factor_most_status(&p->factor[i]);
    return sum;
}

double product_average_status(const struct product *p)
{
    double sum = 0;
    for (unsigned i = 0; i < p->dims; i++)
        sum += copies(p, i) * factor_average_status(&p->factor[i]);
    return sum;
}

double product_average_distance(const struct product *p)
{
    return p->nodes > 1 ? product_average_status(p) / (p->nodes - 1) : 0;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double product_bound_all_port(const struct product *p)
{
    double bound = 0;
    for (unsigned i = 0; i < p->dims; i++)
        bound = larger(bound, copies(p, i) * factor_cut(&p->factor[i]));
    return bound;
}

double product_bound_one_port(const struct product *p)
{
    return larger(product_bound_all_port(p), p->nodes - 1);
}

/* The number of links of a node with the fewest. */
static double fewest_links(const struct product *p)
{
    double links = 0;

    for (unsigned i = 0; i < p->dims; i++)
        links += factor_fewest_links(&p->factor[i]);
    return links;
}

double product_bound_reduce(const struct product *p)
{
    return p->nodes == 1 ? 0 : 1 / fewest_links(p);
}

double product_bound_reduce_scatter(const struct product *p)
{
    if (p->nodes == 1)
        return 0;
    return (p->nodes - 1) / (p->nodes * fewest_links(p));
}

double product_bound_allreduce(const struct product *p)
{
    double channels = 0;

    if (p->nodes == 1)
        return 0;
    for (unsigned i = 0; i < p->dims; i++)
        channels += 2 * copies(p, i) * (double)factor_links(&p->factor[i]);
    return larger(2.0 * (p->nodes - 1) / channels, product_bound_reduce(p));
}

bool product_has_exchange(const struct product *p)
{
    bool has = true;

    for (unsigned i = 0; i < p->dims; i++)
        has = has && factor_has_exchange(&p->factor[i]);
    return has;
}

const char *product_algorithm_name(enum product_algorithm a)
{
    switch (a) {
    case PRODUCT_A1:
        return "a1";
    case PRODUCT_A2:
        return "a2";
    }
    return "unknown";
}

/* A1: the hops of all messages between two nodes of dimension i, and those of the messages before
 * the one from `from` to `to`. */
static uint64_t all_hops(const struct factor *f)
{
    uint64_t n = f->nodes, sum = 0;

    if (f->kind == FACTOR_RING || f->kind == FACTOR_COMPLETE)
        return n * factor_status(f, 0);
    if (f->kind == FACTOR_GRAPH)
        return graph_exchange(f->graph, GRAPH_ONE_PORT)->hops_before[n];
    for (uint32_t node = 0; node < n; node++)
        sum += factor_status(f, node);
    return sum;
}

static uint64_t hops_before(const struct factor *f, uint32_t from, uint32_t to)
{
    uint64_t sum = 0;

    if (f->kind == FACTOR_GRAPH)
        sum = graph_exchange(f->graph, GRAPH_ONE_PORT)->hops_before[from];
    for (uint32_t node = 0; node < from && f->kind != FACTOR_GRAPH; node++)
        sum += factor_status(f, node);
    for (uint32_t node = 0; node < to; node++)
        sum += factor_distance(f, from, node);
    return sum;
}

/* A1: the steps (or, with `blocks`, the blocks) of an exchange in the first `dims` dimensions. */
static uint64_t cost_of_a1(const struct product *p, unsigned dims,
                           uint64_t (*alone)(const struct factor *), bool blocks)
{
    uint64_t nodes = 1, cost = 0;

    for (unsigned i = 0; i < dims; i++) {
        const struct factor *f = &p->factor[i];
        if (nodes == 1)
            cost = alone(f);
        else
            cost = all_hops(f) * (blocks ? nodes : 1) + f->nodes * cost;
        nodes *= f->nodes;
    }
    return cost;
}

static uint64_t steps_alone(const struct factor *f)
{
    return factor_steps(f);
}

static unsigned route_by_a1(const struct product *p, uint32_t source, uint32_t destination,
                            struct product_walk *walks)
{
    uint32_t begin = 0, before = p->nodes;
    unsigned count = 0;

    for (unsigned i = p->dims; i-- > 0;) {
        const struct factor *f = &p->factor[i];
        uint32_t from = source % f->nodes, to = destination % f->nodes;
        struct walk walk = factor_walk(f, from, to);

        before /= f->nodes;
        walk.step = begin + (before > 1 ? (uint32_t)hops_before(f, from, to) : walk.step);
        walk.path = before > 1 ? NULL : walk.path;
        if (walk.hops > 0)
            walks[count++] = (struct product_walk){walk, i, from, to};
        if (before == 1)
            break;
        begin += (uint32_t)(all_hops(f) + from * cost_of_a1(p, i, steps_alone, false));
        source /= f->nodes;
        destination /= f->nodes;
    }
    return count;
}

static unsigned route_by_a2(const struct product *p, uint32_t source, uint32_t destination,
                            struct product_walk *walks)
{
    uint32_t begin = 0;
    unsigned count = 0;

    for (unsigned i = p->dims; i-- > 0;) {
        const struct factor *f = &p->factor[i];
        uint32_t from = source % f->nodes, to = destination % f->nodes;
        struct walk walk = factor_walk(f, from, to);
        walk.step += begin;
        if (walk.hops > 0)
            walks[count++] = (struct product_walk){walk, i, from, to};
        begin += factor_steps(f);
        source /= f->nodes;
        destination /= f->nodes;
    }
    return count;
}

unsigned product_route(const struct product *p, enum product_algorithm a, uint32_t source,
                       uint32_t destination, struct product_walk *walks)
{
    return a == PRODUCT_A1 ? route_by_a1(p, source, destination, walks)
                           : route_by_a2(p, source, destination, walks);
}

uint64_t product_steps(const struct product *p, enum product_algorithm a)
{
    uint64_t steps = 0;

    if (a == PRODUCT_A1)
        return cost_of_a1(p, p->dims, steps_alone, false);
    for (unsigned i = 0; i < p->dims; i++)
        steps += factor_steps(&p->factor[i]);
    return steps;
}

uint64_t product_blocks(const struct product *p, enum product_algorithm a)
{
    uint64_t blocks = 0;

    if (a == PRODUCT_A1)
        return cost_of_a1(p, p->dims, factor_blocks, true);
    for (unsigned i = 0; i < p->dims; i++)
        blocks += copies(p, i) * factor_blocks(&p->factor[i]);
    return blocks;
}

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
