#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "daemon/lib/schedule/tree.h"

/* Routes over trees whose branches are straight lines: up towards the root, then down. For
 * algorithms that gather and scatter.
 *
 * A place on a line is given as hops from the line's root, negative in direction -. A node sends up
 * when it has received from all its children, and down when it has received from its parent. In a
 * tree of depth D, the edge above a node of depth h is therefore used in step D - h on the way up
 * and in step D + h - 1 on the way down. */

/* The number of hops, without their direction. */
static inline uint32_t climb_length(int64_t hops)
{
    return (uint32_t)(hops < 0 ? -hops : hops);
}

/* A route in the making, hop by hop. */
struct climb {
    struct leg *legs; /* with room for all hops */
    uint32_t count;
    uint32_t depth;   /* depth of the node that the route has reached */
    uint32_t deepest; /* D */
    uint32_t begin;   /* the tree's first step */
};

/* Hops along `dim` from coordinate `root` to `coordinate`, the shorter path round; positive if both
 * ways are equally long. */
static int64_t climb_offset(const struct torus *t, unsigned dim, uint32_t root, uint32_t coordinate)
{
    int direction = 1;
    uint32_t hops = torus_shortest(t, dim, root, coordinate, &direction);

    return direction * (int64_t)hops;
}

/* The hops from the root, with their direction, that the ways to two places share. */
static int64_t climb_common(int64_t a, int64_t b)
{
    if ((a < 0) != (b < 0))
        return 0;
    return climb_length(a) < climb_length(b) ? a : b;
}

static void add_hop(struct climb *c, unsigned dim, bool plus, uint32_t step)
{
    c->legs[c->count++] = (struct leg){
        .step = c->begin + step, .hops = 1, .dim = (uint8_t)dim, .direction = plus ? 1 : -1};
}

/* Appends the hops from the place `hops` of the line up to the place `end`, which is nearer to the
 * root. */
static void climb_up(struct climb *c, unsigned dim, int64_t hops, int64_t end)
{
    for (uint32_t left = climb_length(hops - end); left > 0; left--, c->depth--)
        add_hop(c, dim, hops < 0, c->deepest - c->depth);
}

/* Appends the hops from the place `start` of the line down to the place `hops`, which is further
 * from the root. */
static void climb_down(struct climb *c, unsigned dim, int64_t start, int64_t hops)
{
    for (uint32_t left = climb_length(hops - start); left > 0; left--)
        add_hop(c, dim, hops > 0, c->deepest + ++c->depth - 1);
}

/* Dimension after dimension, with a tree on every line of nodes: blocks that move along a line are
 * gathered towards its root, and scattered from there. Each block goes only as far as it has to.
 *
 * A line of n takes 2(n-1) messages, one each way over every link (a ring leaves out one link),
 * where `dim` and `pair` take n^2/2 or more. A link carries at most N*n/4 blocks, where `tree` with
 * its single tree carries up to N^2/4. So this algorithm is between them, and the best for blocks
 * of some ten to some hundred bytes.
 *
 * On a mesh the root of a line is in the middle. On a ring any node can be the root: the sum of the
 * line's other coordinates chooses it, so that the busiest links and nodes are in a different place
 * on each line. */

static uint32_t dim_tree_steps(const struct torus *t)
{
    uint32_t steps = 0;

    for (unsigned i = 0; i < t->dims; i++)
        steps += t->size[i] / 2 * 2;
    return steps;
}

static uint32_t dim_tree_route(const struct torus *t, uint32_t source, uint32_t destination,
                               uint32_t segment, struct leg *legs)
{
    uint32_t here[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct climb c = {.legs = legs};
    uint64_t sum = 0;

    (void)segment;
    torus_coordinates(t, source, here);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        sum += here[i];
    for (unsigned i = 0; i < t->dims; i++) {
        uint32_t n = t->size[i];
        uint32_t root = t->wrap[i] ? (uint32_t)((sum - here[i]) % n) : n / 2;
        int64_t up = climb_offset(t, i, root, here[i]);
        int64_t down = climb_offset(t, i, root, to[i]);
        int64_t shared = climb_common(up, down);
        c.deepest = n / 2;
        c.depth = climb_length(up);
        climb_up(&c, i, up, shared);
        climb_down(&c, i, shared, down);
        c.begin += n / 2 * 2;
        sum = sum - here[i] + to[i];
    }
    return c.count;
}

const struct algorithm algorithm_dim_tree = {
    .name = "dim-tree",
    .summary = "a dimension at a time, each line by a tree: for blocks of some ten bytes",
    .accepts_text = "any torus or mesh",
    .startups = "sum of 2*floor(n_i/2)",
    .transmission = "sum over i and a = 1..floor(n_i/2) of 2*a*(n_i-a)*N/n_i",
    .source = "this project; gather and scatter combined, dimension by dimension",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .max_legs = dim_tree_steps,
    .period = torus_no_period,
    .ordered_steps = dim_tree_steps,
    .by_lines = true,
    .route = dim_tree_route,
};

/* Complete exchange over a spanning tree: every block climbs from its source to the lowest node
 * that has both source and destination below it, and descends from there. Each edge carries one
 * message in each direction, with all blocks that go that way: 2(N-1) messages, the fewest
 * possible. It is for blocks so small that only the number of messages counts, because an edge at
 * the root can carry N^2/4 blocks.
 *
 * The tree is that of tree.h: a node's parent is the node before it on the shortest path from the
 * root, dimension 0 first. The root is in the middle, so that the tree is as shallow as possible:
 * coordinate 0 in dimensions that wrap, the centre in all others. struct climb says in which step an
 * edge is used. */

/* Depth of the tree: in every dimension, the root is at most n_i/2 hops from any node. */
static uint32_t depth(const struct torus *t)
{
    uint32_t hops = 0;

    for (unsigned i = 0; i < t->dims; i++)
        hops += t->graph[i] != NULL ? t->graph[i]->radius : t->size[i] / 2;
    return hops;
}

static uint32_t tree_max_legs(const struct torus *t)
{
    return 2 * depth(t);
}

/* Hops from the root along `dim` to a coordinate, negative in direction -. */
static int64_t from_root(const struct torus *t, unsigned dim, uint32_t coordinate)
{
    return climb_offset(t, dim, t->wrap[dim] ? 0 : t->size[dim] / 2, coordinate);
}

/* How far the tree reaches from the root along `dim` in direction + or -. */
static uint32_t reach(const struct torus *t, unsigned dim, bool plus)
{
    return (t->size[dim] - (t->wrap[dim] != plus)) / 2;
}

static void from_root_all(const struct torus *t, uint32_t node, int64_t *hops)
{
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, at);
    for (unsigned i = 0; i < t->dims; i++)
        hops[i] = from_root(t, i, at[i]);
}

/* The root of the tree in networks with other graphs than rings and lines. */
static uint32_t root_of_graphs(const struct torus *t)
{
    uint32_t at[TORUS_MAX_DIMS];

    for (unsigned i = 0; i < t->dims; i++)
        at[i] = t->graph[i] == NULL && !t->wrap[i] ? t->size[i] / 2 : torus_centre(t, i);
    return torus_rank(t, at);
}

static struct leg hop_through(const struct torus *t, unsigned port, uint32_t step)
{
    return (struct leg){.step = step,
                        .hops = 1,
                        .dim = (uint8_t)torus_port_dim(t, port),
                        .direction = (int8_t)torus_port_direction(t, port)};
}

/* The same route where a branch need not be a straight line: node by node. */
static uint32_t route_on_graphs(const struct torus *t, uint32_t source, uint32_t destination,
                                struct leg *legs)
{
    uint32_t root = root_of_graphs(t), deepest = depth(t), up = 0, down = 0, count;
    uint32_t above = torus_distance(t, root, source), below = torus_distance(t, root, destination);
    uint32_t lengths = above + below;

    /* The way down is written from the end of the array backwards, then moved behind the way up. */
    while (source != destination) {
        bool climbs = above >= below;
        unsigned port = (unsigned)tree_parent(t, root, climbs ? source : destination);
        if (climbs) {
            legs[up++] = hop_through(t, port, deepest - above--);
            source = torus_neighbour(t, source, port);
        } else {
            legs[lengths - ++down] =
                hop_through(t, torus_port_opposite(t, port), deepest + below-- - 1);
            destination = torus_neighbour(t, destination, port);
        }
    }
    count = up + down;
    memmove(&legs[up], &legs[lengths - down], down * sizeof *legs);
    return count;
}

static uint32_t tree_route(const struct torus *t, uint32_t source, uint32_t destination,
                           uint32_t segment, struct leg *legs)
{
    if (!torus_is_plain(t))
        return route_on_graphs(t, source, destination, legs);
    uint32_t at[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    int64_t up[TORUS_MAX_DIMS], down[TORUS_MAX_DIMS];
    struct climb c = {.legs = legs, .deepest = depth(t)};
    unsigned fork =
        0; /* the first dimension in which the paths from the root to both ends differ */

    (void)segment;
    torus_coordinates(t, source, at);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++) {
        up[i] = from_root(t, i, at[i]);
        down[i] = from_root(t, i, to[i]);
        c.depth += climb_length(up[i]);
    }
    while (up[fork] == down[fork])
        fork++;

    int64_t shared = climb_common(up[fork], down[fork]);
    for (unsigned i = t->dims; --i > fork;)
        climb_up(&c, i, up[i], 0);
    climb_up(&c, fork, up[fork], shared);
    climb_down(&c, fork, shared, down[fork]);
    for (unsigned i = fork + 1; i < t->dims; i++)
        climb_down(&c, i, 0, down[i]);
    return c.count;
}

/* A node's plan is made without walking all N^2 routes. Seen from a node, every other node is in a
 * branch, named by the port that leads there. A block passes the node if its source and its
 * destination are in different branches. */
enum { HERE = TORUS_MAX_PORTS, BRANCHES };

struct branches {
    uint8_t *of;              /* by node: a port or HERE */
    uint64_t nodes[BRANCHES]; /* by branch */
    int parent;               /* the port, or -1 */
    uint32_t depth;
};

/* Finds the port to the parent of a node, its depth and the number of nodes of each of its branches.
 * A node has children in the highest dimension in which it is not at the root's coordinate,
 * outwards, and on both sides in those above; its parent is in the same dimension, inwards. */
static void count_branches(struct branches *b, const struct torus *t, const int64_t *hops)
{
    uint64_t inner = 1, below = 0; /* nodes at and below a place of the line; below the node */

    *b = (struct branches){.parent = -1};
    for (unsigned i = 0; i < t->dims; i++)
        b->depth += climb_length(hops[i]);
    for (unsigned i = t->dims; i-- > 0 && b->parent < 0; inner *= t->size[i]) {
        for (unsigned side = 0; side < 2; side++) {
            const bool plus = side == 0, inwards = hops[i] != 0 && (hops[i] > 0) != plus;
            const unsigned port = torus_port(t, i, plus ? 1 : -1);
            if (inwards)
                b->parent = (int)port;
            else
                b->nodes[port] = (reach(t, i, plus) - climb_length(hops[i])) * inner;
            below += b->nodes[port];
        }
    }
    if (b->parent >= 0)
        b->nodes[b->parent] = t->nodes - 1 - below;
}

/* The branch of the node that is `other` away from the root, seen from the node that is `hops`
 * away. */
static unsigned find_branch(const struct torus *t, const int64_t *hops, const int64_t *other,
                            int parent)
{
    unsigned fork = 0;

    while (fork < t->dims && hops[fork] == other[fork])
        fork++;
    if (fork == t->dims)
        return HERE;
    bool below = climb_common(hops[fork], other[fork]) == hops[fork];
    for (unsigned i = fork + 1; i < t->dims; i++)
        below &= hops[i] == 0;
    return below ? torus_port(t, fork, other[fork] > hops[fork] ? 1 : -1) : (unsigned)parent;
}

static int find_branches(struct branches *b, const struct torus *t, uint32_t rank)
{
    int64_t hops[TORUS_MAX_DIMS], other[TORUS_MAX_DIMS];

    from_root_all(t, rank, hops);
    count_branches(b, t, hops);
    b->of = calloc(t->nodes, 1);
    if (b->of == NULL)
        return -1;
    for (uint32_t node = 0; node < t->nodes; node++) {
        from_root_all(t, node, other);
        b->of[node] = (uint8_t)find_branch(t, hops, other, b->parent);
    }
    return 0;
}

/* Adds the message to a branch, or the one from it. Both have the same number of blocks. */
static void add_message(struct plan *p, const struct branches *b, unsigned port, bool send,
                        uint32_t step, uint32_t nodes)
{
    struct plan_message *m = send ? &p->send[p->sends++] : &p->arrival[p->arrivals++];

    *m = (struct plan_message){.step = step,
                               .blocks = (uint32_t)(b->nodes[port] * (nodes - b->nodes[port])),
                               .first = p->blocks,
                               .hops = 1,
                               .port = (uint8_t)port};
    p->blocks += m->blocks;
}

/* Adds the messages in the order of their keys. */
static void add_messages(struct plan *p, const struct torus *t, const struct branches *b)
{
    uint32_t deepest = depth(t);

    if (b->parent >= 0)
        add_message(p, b, (unsigned)b->parent, true, deepest - b->depth, t->nodes);
    for (unsigned port = 0; port < torus_ports(t); port++)
        if (b->nodes[port] > 0 && (int)port != b->parent)
            add_message(p, b, port, true, deepest + b->depth, t->nodes);
    for (unsigned port = 0; port < torus_ports(t); port++)
        if (b->nodes[port] > 0 && (int)port != b->parent)
            add_message(p, b, port, false, deepest - b->depth - 1, t->nodes);
    if (b->parent >= 0)
        add_message(p, b, (unsigned)b->parent, false, deepest + b->depth - 1, t->nodes);
}

static void add_blocks(struct plan *p, const struct torus *t, const struct branches *b)
{
    struct plan_block *out[BRANCHES] = {NULL}, *in[BRANCHES] = {NULL}; /* next block */

    for (const struct plan_message *m = p->send; m < p->send + p->sends; m++)
        out[m->port] = p->block + m->first;
    for (const struct plan_message *m = p->arrival; m < p->arrival + p->arrivals; m++)
        in[m->port] = p->block + m->first;
    for (uint32_t source = 0; source < t->nodes; source++) {
        unsigned from = b->of[source];
        for (uint32_t destination = 0; destination < t->nodes; destination++) {
            unsigned to = b->of[destination];
            if (from == to)
                continue;
            struct plan_block block = {source, destination, 0, PLAN_NO_SLOT};
            if (from != HERE && to != HERE)
                block.slot = p->slots++;
            if (from != HERE)
                *in[from]++ = block;
            if (to != HERE)
                *out[to]++ = block;
        }
    }
}

/* The most blocks in transit, at the end of any step, at a node that has `below` nodes below it and
 * `above` nodes elsewhere. Blocks between two of its children's branches wait from the way up until
 * the way down. Blocks that go up wait for a step on the way up, blocks that come down for a step
 * on the way down: below * above each, but never both at once. `squares` is the sum of the squares
 * of the numbers of nodes in the children's branches. */
static uint64_t transit(uint64_t below, uint64_t above, uint64_t squares)
{
    return below * below - squares + below * above;
}

/* The blocks that arrive at the node and those that leave it, together. */
static uint64_t count_blocks(const struct branches *b, uint32_t nodes)
{
    uint64_t blocks = 0;

    for (unsigned port = 0; port < HERE; port++)
        blocks += 2 * b->nodes[port] * (nodes - b->nodes[port]);
    return blocks;
}

static int tree_plan(struct plan *p, const struct torus *t, uint32_t rank)
{
    struct branches b;
    uint64_t above = 0, squares = 0;

    *p = (struct plan){.rank = rank, .steps = 2 * depth(t)};
    if (find_branches(&b, t, rank) != 0)
        return -1;
    uint64_t blocks = count_blocks(&b, t->nodes);
    if (blocks < UINT32_MAX) {
        p->send = calloc(torus_ports(t), sizeof *p->send);
        p->arrival = calloc(torus_ports(t), sizeof *p->arrival);
        p->block = calloc(blocks + 1, sizeof *p->block); /* never 0 bytes */
    }
    if (p->send == NULL || p->arrival == NULL || p->block == NULL) {
        free(b.of);
        plan_free(p);
        return -1;
    }
    add_messages(p, t, &b);
    add_blocks(p, t, &b);
    for (unsigned port = 0; port < torus_ports(t); port++) {
        if ((int)port == b.parent)
            above = b.nodes[port];
        else
            squares += b.nodes[port] * b.nodes[port];
    }
    p->peak_transit = (uint32_t)transit(t->nodes - 1 - above, above, squares);
    free(b.of);
    return 0;
}

/* The sum of the squares of the numbers of nodes below each child in dimensions `dim` and higher,
 * at a node below which these dimensions have `nodes` nodes. */
static uint64_t squares_from(const struct torus *t, unsigned dim, uint64_t nodes)
{
    uint64_t squares = 0;

    for (; dim < t->dims; dim++) {
        uint64_t plus, minus;
        nodes /= t->size[dim];
        plus = reach(t, dim, true) * nodes;
        minus = reach(t, dim, false) * nodes;
        squares += plus * plus + minus * minus;
    }
    return squares;
}

static uint64_t tree_peak_transit(const struct torus *t)
{
    uint64_t most = transit(t->nodes - 1, 0, squares_from(t, 0, t->nodes)), nodes = t->nodes;

    /* Looks at one node for each dimension, side and distance: all nodes at which the tree goes on
     * outwards in dimension `dim` are like the one that has the root's coordinates in the lower
     * dimensions. */
    for (unsigned dim = 0; dim < t->dims; dim++) {
        nodes /= t->size[dim];
        for (uint32_t side = 0; side < 2; side++) {
            for (uint64_t outwards = 0; outwards < reach(t, dim, side == 0); outwards++) {
                uint64_t child = outwards * nodes, below = child + nodes - 1;
                uint64_t here = transit(below, t->nodes - 1 - below,
                                        child * child + squares_from(t, dim + 1, nodes));
                if (here > most)
                    most = here;
            }
        }
    }
    return most;
}

/* A message to the parent, and one to each child. */
static int tree_messages(const struct algorithm *a, const struct torus *t, uint32_t rank,
                         message_fn *fn, void *context)
{
    int64_t hops[TORUS_MAX_DIMS];
    struct branches b;

    (void)a;
    from_root_all(t, rank, hops);
    count_branches(&b, t, hops);
    for (unsigned port = 0; port < torus_ports(t); port++) {
        const bool up = (int)port == b.parent;
        const struct leg leg = hop_through(t, port, up ? depth(t) - b.depth : depth(t) + b.depth);
        if (b.nodes[port] > 0 && fn(context, &leg, b.nodes[port] * (t->nodes - b.nodes[port])) != 0)
            return -1;
    }
    return 0;
}

const struct algorithm algorithm_tree = {
    .name = "tree",
    .summary = "up and down a spanning tree, one message an edge each way: for a few bytes",
    .accepts_text = "any network",
    .any_graph = true,
    .startups = "2D, D = sum of floor(n_i/2) (other graphs: radius)",
    .transmission = "2 * sum over i and a = 1..floor(n_i/2) of m*(N-m), m = a * n_(i+1)*...*n_k",
    .source = "this project; gather and scatter combined",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .max_legs = tree_max_legs,
    .period = torus_no_period,
    .route = tree_route,
    .plan = tree_plan,
    .peak_transit = tree_peak_transit,
    .messages = tree_messages,
};
