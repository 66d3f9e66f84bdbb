/* A3: complete exchange on an all-port network of 2^j equal dimensions, the exchanges of the two
 * halves of the dimensions overlapped. Dimakopoulos, Dimopoulos: A Theory for Total Exchange in
 * Multidimensional Interconnection Networks, section 5.
 *
 * Half of the dimensions are A, half are B, each with n nodes. Both do n exchanges of one block per
 * pair, at the same time. Round 0 of A is for blocks whose destination differs in A only; what B
 * brings along in its round q, A passes on in round q+1; the last round of B is for blocks whose
 * destination differs in B only. A node's block with offsets a in A and b in B, both numbered
 * 1..n-1, goes in round (a - b) mod (n-1): so every round has one block for every b, and brings
 * every node one block for every a.
 *
 * Within a dimension the paper relies on exchanges from elsewhere that meet the lower bound; it allows
 * only neighbours to exchange messages. These are done here as follows, every leg being one hop. A
 * block waits for some steps and then makes a hop in every step:
 * - array: for as many steps as there are nodes behind its destination. So what leaves a node in
 *   step t has come a hops and ends b hops before the end of the array, with a + b = t: at most
 *   min(t+1, n-1-t) blocks, and the middle channel carries as many. floor(n^2/4) blocks in n-1 steps.
 * - odd ring: not at all. (n^2-1)/8 blocks in (n-1)/2 steps.
 * - even ring: not at all but for the few in ring_wait(), which even out the channels, since those
 *   for the opposite node go + from even nodes and - from odd ones. ceil(n^2/8) blocks in n/2 steps
 *   (n^2/8 where n is no multiple of 4 would ask for half a block on a channel).
 *
 * The paper sends one block a time unit. A combined message of b blocks takes b of its units, so that
 * the transmission is the paper's time: n times that of one exchange, which is the lower bound of the
 * torus or mesh for odd n, multiples of 4, and arrays. No channel has two messages in a step. */
#include "daemon/schedule/algorithms/a3.h"
#include "daemon/schedule/algorithms/rows.h"
#include "daemon/schedule/bits.h"

static int a3_accepts(const struct torus *t, struct error *e)
{
    bool taken = is_power_of_two(t->dims);
    for (unsigned i = 1; taken && i < t->dims; i++)
        taken = t->size[i] == t->size[0] && t->wrap[i] == t->wrap[0];
    return taken ? 0 : algorithm_refuse(&algorithm_a3, t, e);
}

/* Steps, blocks and legs of the exchange in one dimension. */
static uint32_t line_steps(const struct torus *t)
{
    uint32_t n = t->size[0];
    return t->wrap[0] ? n / 2 : n - 1;
}

static uint64_t line_blocks(const struct torus *t)
{
    uint64_t n = t->size[0];
    return t->wrap[0] ? (n * n + (n % 2 == 0 ? 7 : 0)) / 8 : n * n / 4;
}

/* Even ring: the steps that a block waits which goes `hops` hops, less than n/2, in a direction in which
 * blocks for the opposite node come from every second node; `between`: it does not come from one of
 * these.
 *
 * Think of what moves along with the blocks for the opposite node as one train, and of what moves
 * from channel to channel beside it as the other. A block that comes from one of the nodes in
 * between and one that does not are in different trains if they wait equally long. The first train
 * has one block more in every step, namely that for the opposite node; so the second one has to get
 * one more from others. With q = floor(n/4) these are the two blocks of q hops, one after the other
 * in 2q steps, which is all of them, or all but one. They have to start in an odd step, or in an even
 * one if they come from in between, and so q has to be odd; an even one is 1 and q - 1; 2 is neither,
 * and is made up of three blocks of the second train less one of the first. */
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

static uint32_t line_route(const struct torus *t, unsigned dim, uint32_t from, uint32_t to,
                           uint32_t step, struct leg *legs)
{
    uint32_t n = t->size[dim];
    struct leg leg = {.step = step, .dim = (uint8_t)dim, .hops = 1};
    int direction = from % 2 == 0 ? 1 : -1; /* to the opposite node */
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
    return t->dims * line_steps(t);
}

static void a3_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = !t->wrap[i] ? t->size[i] : t->size[i] % 2 == 0 ? 2 : 1;
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

/* The offset from source to destination, as a number. */
static uint32_t offset(const struct span *s)
{
    uint32_t n = s->torus->size[0], number = 0;
    for (unsigned i = s->first; i < s->first + s->dims; i++)
        number = number * n + (s->to[i] + n - s->from[i]) % n;
    return number;
}

static uint32_t span_steps(const struct span *s)
{
    return nodes(s) / s->torus->size[0] * line_steps(s->torus);
}

/* The legs of an exchange on the span that begins at `step`. */
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
    .summary = "exchanges of two halves of the dimensions side by side, each feeding the other, "
               "by single hops",
    .accepts_text = "1, 2, 4 or 8 equal dimensions",
    .startups = "N/n * floor(n/2) (mesh: N/n * (n-1))",
    .transmission = "N/n * ceil(n^2/8), odd n: N/n * (n^2-1)/8 (mesh: N/n * floor(n^2/4))",
    .source = "Dimakopoulos and Dimopoulos, A Theory for Total Exchange in Multidimensional "
              "Interconnection Networks, section 5",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .accepts = a3_accepts,
    .max_legs = a3_max_legs,
    .period = a3_period,
    .route = a3_route,
};
