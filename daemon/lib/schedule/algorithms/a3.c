/* A3: complete exchange on an all-port network whose dimensions can be divided into two equal halves,
 * for example 2^j equal dimensions. Dimakopoulos, Dimopoulos: A
 * Theory for Total Exchange in Multidimensional Interconnection Networks, section 5, Fig. 6.
 *
 * A2 (a1_a2.c) leaves the links of one dimension idle while it works in the other. A3 splits the
 * dimensions into two halves, A and B, that work at the same time: the blocks that an exchange in B
 * brings to a node are those that the next exchange in A takes from it.
 *
 * Each half has h nodes, and runs h rounds. A round is an exchange within every copy of the half,
 * with one block for each pair of nodes. Number the offsets from source to destination within a
 * half 1 to h-1, and let a block have the offset a in A and b in B.
 * - Round 0 of A: the blocks with b = 0.
 * - Round q of B, for q = 0 to h-2: the blocks with (a - b) mod (h-1) = q. For every b there is
 *   exactly one a, so each node sends one block to each other node of its copy of B, and receives
 *   one block for each other node of its copy of A.
 * - Round q+1 of A: the blocks that round q of B has brought.
 * - Round h-1 of B: the blocks with a = 0.
 *
 * If a half has several dimensions, A3 runs its rounds too, and the offset in the half is the number
 * whose digits are the offsets in its dimensions. (The paper adds to the numbers of the half's nodes,
 * modulo h, which gives blocks other rounds; either way they are complete exchanges.)
 *
 * The paper demands 2^j equal dimensions, and leaves other products open. Its proof needs no more than
 * two equal halves with an exchange in each. So here the dimensions are divided into equal halves as
 * often as possible (3x5x3x5: twice 3x5), and an exchange on what is left as a whole, of several
 * dimensions that are no two equal halves, is found by search (whole.h), if it is small: 3x5 in 3x5x3x5,
 * 2m^3, 4x8. On hypercubes, 3x5, 4x4x4 and others it meets the lower bound; nothing promises that.
 *
 * For a single dimension, of n nodes, the
 * paper refers to exchanges by others that attain the lower bound. These are ours. As the paper's
 * model demands, all legs are single hops. A block waits for some steps and then makes a hop in
 * every step.
 * - Array: it waits for as many steps as there are nodes behind its destination. A block that
 *   leaves a node in step t has made i hops and ends k nodes before the end of the array, with i +
 *   k = t. So a channel carries at most min(t+1, n-1-t) blocks in step t, and the middle channel
 *   carries as many: floor(n^2/4) blocks in n-1 steps.
 * - Odd ring: no block waits. (n^2-1)/8 blocks in (n-1)/2 steps.
 * - Even ring: blocks for the opposite node go + from even nodes and - from odd nodes, so that in a
 *   step they load only every second channel. A few other blocks wait to even that out, see
 *   ring_wait(): ceil(n^2/8) blocks in n/2 steps. (If n is not a multiple of 4, n^2/8 is not a
 *   whole number.)
 * - Other graphs: graph/graph_exchange.h, with all ports. A complete graph takes one step, in which
 *   every channel carries one block. So products of complete graphs take N/n steps, and hypercubes
 *   N/2.
 *
 * The paper sends one block in a time unit, and a combined message of b blocks takes b units. So
 * the transmission is the paper's time, N/n times that of the exchange in one dimension. It is the
 * lower bound on meshes, on hypercubes and other products of complete graphs, and on tori if n is odd
 * or a multiple of 4. No channel has two messages in a step. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/whole.h"
#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "daemon/lib/schedule/tally.h"

/* Whether two dimensions are the same graph. A line of 2 nodes is a complete graph. */
static bool are_equal(const struct torus *t, unsigned a, unsigned b)
{
    if (t->size[a] != t->size[b] || t->wrap[a] != t->wrap[b])
        return false;
    return t->graph[a] == t->graph[b] || t->size[a] == 2;
}

/* Steps of the exchange in one dimension. */
static uint32_t line_steps(const struct torus *t, unsigned dim)
{
    uint32_t n = t->size[dim];

    if (t->graph[dim] != NULL)
        return graph_exchange(t->graph[dim], GRAPH_ALL_PORTS)->steps;
    return t->wrap[dim] ? n / 2 : n - 1;
}

static uint64_t line_blocks(const struct torus *t, unsigned dim)
{
    uint64_t n = t->size[dim];

    if (t->graph[dim] != NULL)
        return line_steps(t, dim);
    return t->wrap[dim] ? (n * n + (n % 2 == 0 ? 7 : 0)) / 8 : n * n / 4;
}

/* The steps that a block on an even ring waits before its first hop. The block goes `hops` hops,
 * less than n/2, in one direction. In this direction, blocks for the opposite node come from every
 * second node; `between`: this block comes from one of the other nodes.
 *
 * In a step, a moving block uses a channel of an even node or of an odd node, and the other kind in
 * the next step. So the blocks form two trains. The first train consists of the blocks for the
 * opposite nodes, and of all blocks that use the same kind of channel as these in every step; the
 * second of all others. If no block waited, the second train would consist of the blocks from
 * between, and the first would have one block more in every step, the one for the opposite node. So
 * a few blocks wait, to give the second train one more block in every step.
 *
 * Let q = floor(n/4). Take two blocks of q hops, one of each train. Run one after another in the
 * second train, they give it one more block in 2q steps: in all n/2 steps or all but one. A block
 * from between is in the second train if it waits an even number of steps, any other block if it
 * waits an odd number.
 * - q odd: the block from between starts at once, the other one in step q.
 * - q even, more than 2: the same with two blocks of 1 hop, in steps 0 and 1, and two blocks of q-1
 *   hops, which start in steps 2 and q+1.
 * - q = 2: three blocks in the second train (in steps 0 and 1, 1 and 2, 3) and one in the first (in
 *   step 1). The difference is one block in each of the steps 0 to 3. */
static uint32_t ring_wait(uint32_t n, uint32_t hops, bool between)
{
    uint32_t q = n / 4;

    if (q % 2 != 0)
        return hops == q && !between ? q : 0;
    if (q == 2 && hops <= 2)
        return hops == 1 ? (between ? 1 : 3) : !between;
    if (q > 2 && hops == 1)
        return !between;
    if (q > 2 && hops == q - 1)
        return between ? 2 : q + 1;
    return 0;
}

/* As line_route(), in a graph: each hop in the step that the exchange of the graph gives it. */
static uint32_t graph_route(const struct torus *t, unsigned dim, uint32_t from, uint32_t to,
                            uint32_t step, struct leg *legs)
{
    const struct graph *g = t->graph[dim];
    const struct graph_hop *path =
        graph_exchange_path(graph_exchange(g, GRAPH_ALL_PORTS), from, to);
    uint32_t hops = graph_distance(g, from, to);

    for (uint32_t i = 0; i < hops; i++)
        legs[i] = (struct leg){.step = step + path[i].step,
                               .hops = 1,
                               .dim = (uint8_t)dim,
                               .direction = (int8_t)(path[i].direction + 1)};
    return hops;
}

/* Writes the legs of a block in an exchange in one dimension, which begins at `step`. Returns how
 * many. */
static uint32_t line_route(const struct torus *t, unsigned dim, uint32_t from, uint32_t to,
                           uint32_t step, struct leg *legs)
{
    uint32_t n = t->size[dim];
    struct leg leg = {.step = step, .dim = (uint8_t)dim, .hops = 1};

    if (t->graph[dim] != NULL)
        return graph_route(t, dim, from, to, step, legs);
    int direction = from % 2 == 0 ? 1 : -1; /* to the exact opposite node */
    uint32_t hops = torus_shortest(t, dim, from, to, &direction);

    leg.direction = (int8_t)direction;
    if (!t->wrap[dim])
        leg.step += direction > 0 ? n - 1 - to : to;
    else if (n % 2 == 0 && hops < n / 2)
        leg.step += ring_wait(n, hops, (from % 2 == 0) != (direction > 0));
    for (uint32_t i = 0; i < hops; i++, leg.step++)
        legs[i] = leg;
    return hops;
}

/* ---- Some of the dimensions ------------------------------------------------------------------ */

struct span {
    const struct torus *torus;
    unsigned dims;
    uint8_t dim[TORUS_MAX_DIMS]; /* in ascending order */
};

/* All dimensions of more than one node. */
static struct span all_dims(const struct torus *t)
{
    struct span s = {.torus = t};

    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1)
            s.dim[s.dims++] = (uint8_t)i;
    return s;
}

/* Divides the dimensions into two equal halves: of equal dimensions, the first half goes to `a`. Returns false if
 * they are no two equal halves. */
static bool divide(const struct span *s, struct span *a, struct span *b)
{
    *a = *b = (struct span){.torus = s->torus};
    for (unsigned i = 0; i < s->dims; i++) {
        unsigned equal = 0, before = 0;
        for (unsigned j = 0; j < s->dims; j++)
            if (are_equal(s->torus, s->dim[i], s->dim[j])) {
                equal++;
                before += j < i;
            }
        if (equal % 2 != 0)
            return false;
        struct span *half = before < equal / 2 ? a : b;
        half->dim[half->dims++] = s->dim[i];
    }
    return s->dims > 0;
}

static uint32_t nodes(const struct span *s)
{
    uint32_t n = 1;
    for (unsigned i = 0; i < s->dims; i++)
        n *= s->torus->size[s->dim[i]];
    return n;
}

static const struct whole *whole(const struct span *s)
{
    return whole_exchange(s->torus, s->dim, s->dims);
}

/* Whether there is an exchange on the span. */
static bool has_exchange(const struct span *s)
{
    struct span a, b;

    if (s->dims == 0)
        return true;
    if (s->dims > 1)
        return divide(s, &a, &b) ? has_exchange(&a) : whole(s) != NULL;
    const struct graph *g = s->torus->graph[s->dim[0]];
    return g == NULL || graph_exchange(g, GRAPH_ALL_PORTS) != NULL;
}

/* Steps of the exchange on the span, and blocks of its busiest channels: those of as many rounds of one half as the
 * other half has nodes. */
static uint64_t span_steps(const struct span *s)
{
    struct span a, b;

    if (s->dims <= 1)
        return s->dims == 0 ? 0 : line_steps(s->torus, s->dim[0]);
    return divide(s, &a, &b) ? nodes(&b) * span_steps(&a) : whole_steps(whole(s));
}

static uint64_t span_blocks(const struct span *s)
{
    struct span a, b;

    if (s->dims <= 1)
        return s->dims == 0 ? 0 : line_blocks(s->torus, s->dim[0]);
    return divide(s, &a, &b) ? nodes(&b) * span_blocks(&a) : whole_steps(whole(s));
}

static bool a3_takes(const struct torus *t)
{
    struct span all = all_dims(t);

    return has_exchange(&all) && span_steps(&all) <= MESSAGE_MAX_STEP + 1;
}

uint32_t a3_startups(const struct torus *t)
{
    struct span all = all_dims(t);

    return (uint32_t)span_steps(&all);
}

uint64_t a3_transmission(const struct torus *t)
{
    struct span all = all_dims(t);

    return span_blocks(&all);
}

static uint32_t a3_max_legs(const struct torus *t)
{
    return torus_diameter(t);
}

static void set_period(const struct span *s, uint32_t *period)
{
    const struct torus *t = s->torus;
    struct span a, b;

    if (s->dims > 1 && divide(s, &a, &b)) {
        set_period(&a, period);
        set_period(&b, period);
    } else if (s->dims > 1) {
        whole_period(whole(s), s->dim, period);
    } else if (s->dims == 1 && t->wrap[s->dim[0]] && t->size[s->dim[0]] % 2 == 0) {
        period[s->dim[0]] = 2;
    }
}

static void a3_period(const struct torus *t, uint32_t *period)
{
    struct span all = all_dims(t);

    torus_full_period(t, period);
    set_period(&all, period);
}

/* ---- Routes ---------------------------------------------------------------------------------- */

/* The coordinates of a block's source and destination. */
struct ends {
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
};

/* The offset from source to destination in these dimensions, as one number. */
static uint32_t offset(const struct span *s, const struct ends *e)
{
    uint32_t number = 0;

    for (unsigned i = 0; i < s->dims; i++) {
        unsigned dim = s->dim[i];
        uint32_t n = s->torus->size[dim];
        number = number * n + (e->to[dim] + n - e->from[dim]) % n;
    }
    return number;
}

/* Writes the legs of a block in an exchange on the span, which begins at `step`. Returns how
 * many. */
static uint32_t span_route(const struct span *s, const struct ends *e, uint32_t step,
                           struct leg *legs)
{
    struct span a, b;

    if (offset(s, e) == 0)
        return 0;
    if (s->dims == 1)
        return line_route(s->torus, s->dim[0], e->from[s->dim[0]], e->to[s->dim[0]], step, legs);
    if (!divide(s, &a, &b))
        return whole_route(whole(s), s->dim, e->from, e->to, step, legs);

    uint32_t in_a = offset(&a, e), in_b = offset(&b, e), others = nodes(&b) - 1;
    uint32_t round_steps = (uint32_t)span_steps(&a), round;
    if (in_b == 0)
        return span_route(&a, e, step, legs);
    if (in_a == 0)
        round = others;
    else
        round = (in_a + others - in_b) % others;
    uint32_t count = span_route(&b, e, step + round * round_steps, legs);
    return count + span_route(&a, e, step + (round + 1) * round_steps, legs + count);
}

static struct ends ends_of(const struct torus *t, uint32_t source, uint32_t destination)
{
    struct ends ends;

    torus_coordinates(t, source, ends.from);
    torus_coordinates(t, destination, ends.to);
    return ends;
}

static uint32_t a3_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    struct span all = all_dims(t);
    struct ends ends = ends_of(t, source, destination);

    (void)segment;
    return span_route(&all, &ends, 0, legs);
}

const struct algorithm algorithm_a3 = {
    .name = "a3",
    .summary =
        "two halves of the dimensions at the same time, each feeding the other, by single hops",
    .accepts_text =
        "dimensions that are two equal halves, again and again, down to single ones or to "
        "a small product",
    .any_graph = true,
    .startups = "2^j equal dimensions: N/n * floor(n/2) (mesh: N/n * (n-1), complete: N/n)",
    .transmission = "2^j equal dimensions: N/n * ceil(n^2/8), odd n: N/n * (n^2-1)/8 (mesh: N/n * "
                    "floor(n^2/4), complete: N/n)",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, section 5; other than 2^j equal dimensions: this project",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .takes = a3_takes,
    .max_legs = a3_max_legs,
    .period = a3_period,
    .route = a3_route,
};

/* Halves: A3 with two long rounds instead of h short ones, for few start-ups. Whole blocks, all links at
 * work all the time, as in A3; this project's.
 *
 * A block has the offset a in half A and the offset b in half B. If (a - b) mod (h-1) < x, it goes
 * through A in round 0 and through B in round 1. All other blocks go through B first. For every a
 * there are x such b, and for every b as many a. If h is even, x = h/2 - 1, the blocks with b = 0
 * are in round 0 and those with a = 0 in round 1. If h is odd, x = (h-1)/2, and both are in round 0.
 * So in either round, a node has equally many blocks for each other node of its copy of A, and as
 * many for each of its copy of B: h/2 in each round or, if h is odd, (h+1)/2 and (h-1)/2. A round is
 * an exchange within the half with so many blocks in place of one, and costs so many times as much.
 * Both rounds together cost as much as the h rounds of A3, in twice the steps of one half. If a half
 * has several dimensions, the same is done in it: k dimensions in all take k times the steps of one. */

static uint64_t halves_span_steps(const struct span *s)
{
    struct span a, b;

    return s->dims > 1 && divide(s, &a, &b) ? 2 * halves_span_steps(&a) : span_steps(s);
}

static uint32_t halves_span_route(const struct span *s, const struct ends *e, uint32_t step,
                                  struct leg *legs)
{
    struct span a, b;

    if (s->dims <= 1 || !divide(s, &a, &b))
        return span_route(s, e, step, legs);

    uint32_t in_a = offset(&a, e), in_b = offset(&b, e), h = nodes(&a);
    uint32_t later = step + (uint32_t)halves_span_steps(&a);
    if (in_a == 0)
        return in_b == 0 ? 0 : halves_span_route(&b, e, h % 2 != 0 ? step : later, legs);
    if (in_b == 0)
        return halves_span_route(&a, e, step, legs);
    bool a_first = (in_a + h - 1 - in_b) % (h - 1) < (h - 1) / 2;
    uint32_t count = halves_span_route(a_first ? &a : &b, e, step, legs);
    return count + halves_span_route(a_first ? &b : &a, e, later, legs + count);
}

static bool halves_takes(const struct torus *t)
{
    struct span all = all_dims(t), a, b;

    return divide(&all, &a, &b) && has_exchange(&a) &&
           halves_span_steps(&all) <= MESSAGE_MAX_STEP + 1;
}

static uint32_t halves_route(const struct torus *t, uint32_t source, uint32_t destination,
                             uint32_t segment, struct leg *legs)
{
    struct span all = all_dims(t);
    struct ends ends = ends_of(t, source, destination);

    (void)segment;
    return halves_span_route(&all, &ends, 0, legs);
}

const struct algorithm algorithm_halves = {
    .name = "halves",
    .summary = "a3 in two long rounds, with combined messages: few steps, by single hops",
    .accepts_text = "two equal halves of the dimensions, as far as a3 takes them",
    .any_graph = true,
    .startups = "k equal dimensions: k * floor(n/2) (mesh: k * (n-1), complete: k)",
    .transmission = "as a3",
    .source = "this project, after A3",
    .port_model = PORT_MODEL_ALL,
    .only_by_name = true,
    .segments = 1,
    .takes = halves_takes,
    .max_legs = a3_max_legs,
    .period = a3_period,
    .route = halves_route,
};
