/* A3: complete exchange on an all-port network of 2^j equal dimensions. Dimakopoulos, Dimopoulos: A
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
 * modulo h, which gives blocks other rounds; either way they are complete exchanges.) For a single dimension, of n nodes, the
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
#include "daemon/lib/schedule/bits.h"
#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "daemon/lib/schedule/tally.h"

/* Whether two dimensions are the same graph. A line of 2 nodes is a complete graph. */
static bool are_equal(const struct torus *t, unsigned a, unsigned b)
{
    if (t->size[a] != t->size[b] || t->wrap[a] != t->wrap[b])
        return false;
    return t->graph[a] == t->graph[b] || t->size[a] == 2;
}

static bool a3_takes(const struct torus *t)
{
    bool taken = is_power_of_two(t->dims);

    for (unsigned i = 0; taken && i < t->dims; i++)
        taken = are_equal(t, i, 0) &&
                (t->graph[i] == NULL || graph_exchange(t->graph[i], GRAPH_ALL_PORTS) != NULL);
    taken = taken && a3_startups(t) <= MESSAGE_MAX_STEP + 1;
    return taken;
}

/* Steps of the exchange in one dimension. */
static uint32_t line_steps(const struct torus *t)
{
    uint32_t n = t->size[0];

    if (t->graph[0] != NULL)
        return graph_exchange(t->graph[0], GRAPH_ALL_PORTS)->steps;
    return t->wrap[0] ? n / 2 : n - 1;
}

static uint64_t line_blocks(const struct torus *t)
{
    uint64_t n = t->size[0];

    if (t->graph[0] != NULL)
        return line_steps(t);
    return t->wrap[0] ? (n * n + (n % 2 == 0 ? 7 : 0)) / 8 : n * n / 4;
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

uint32_t a3_startups(const struct torus *t)
{
    return t->nodes / t->size[0] * line_steps(t);
}

uint64_t a3_transmission(const struct torus *t)
{
    return t->nodes / t->size[0] * line_blocks(t);
}

static uint32_t a3_max_legs(const struct torus *t)
{
    return torus_diameter(t);
}

static void a3_period(const struct torus *t, uint32_t *period)
{
    torus_full_period(t, period);
    for (unsigned i = 0; i < t->dims; i++)
        if (t->wrap[i] && t->size[i] % 2 == 0)
            period[i] = 2;
}

/* Some of the dimensions, and a block's ends. */
struct span {
    const struct torus *torus;
    const uint32_t *from, *to;
    unsigned first, dims;
};

static struct span half(const struct span *s, unsigned which)
{
    struct span h = *s;
    h.dims /= 2;
    h.first += which * h.dims;
    return h;
}

static uint32_t nodes(const struct span *s)
{
    uint32_t n = 1;
    for (unsigned i = 0; i < s->dims; i++)
        n *= s->torus->size[0];
    return n;
}

/* The offset from source to destination in these dimensions, as one number. */
static uint32_t offset(const struct span *s)
{
    uint32_t n = s->torus->size[0], number = 0;
    for (unsigned i = s->first; i < s->first + s->dims; i++)
        number = number * n + (s->to[i] + n - s->from[i]) % n;
    return number;
}

/* Steps of an exchange on the span: n rounds of one half, for n nodes in the other half. */
static uint32_t span_steps(const struct span *s)
{
    return nodes(s) / s->torus->size[0] * line_steps(s->torus);
}

/* Writes the legs of a block in an exchange on the span, which begins at `step`. Returns how
 * many. */
static uint32_t span_route(const struct span *s, uint32_t step, struct leg *legs)
{
    if (offset(s) == 0)
        return 0;
    if (s->dims == 1)
        return line_route(s->torus, s->first, s->from[s->first], s->to[s->first], step, legs);

    struct span a = half(s, 0), b = half(s, 1);
    uint32_t in_a = offset(&a), in_b = offset(&b), others = nodes(&b) - 1;
    uint32_t round_steps = span_steps(&a), round;
    if (in_b == 0)
        return span_route(&a, step, legs);
    if (in_a == 0)
        round = others;
    else
        round = (in_a + others - in_b) % others;
    uint32_t count = span_route(&b, step + round * round_steps, legs);
    return count + span_route(&a, step + (round + 1) * round_steps, legs + count);
}

static uint32_t a3_route(const struct torus *t, uint32_t source, uint32_t destination,
                         uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    struct span all = {.torus = t, .from = from, .to = to, .dims = t->dims};

    (void)segment;
    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    return span_route(&all, 0, legs);
}

const struct algorithm algorithm_a3 = {
    .name = "a3",
    .summary =
        "two halves of the dimensions at the same time, each feeding the other, by single hops",
    .accepts_text = "1, 2, 4 or 8 equal dimensions",
    .any_graph = true,
    .startups = "N/n * floor(n/2) (mesh: N/n * (n-1), complete: N/n)",
    .transmission =
        "N/n * ceil(n^2/8), odd n: N/n * (n^2-1)/8 (mesh: N/n * floor(n^2/4), complete: N/n)",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, section 5",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .takes = a3_takes,
    .max_legs = a3_max_legs,
    .period = a3_period,
    .route = a3_route,
};
