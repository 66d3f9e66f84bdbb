#include "client/cli/animation/phase_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rings.h"
#include "daemon/lib/schedule/algorithms/rotation.h"

/* The two dimensions of a torus that have more than one node, and whether its sizes are multiples of `multiple`. */
static unsigned long_dims(const struct torus *t, uint32_t multiple, unsigned *dim, bool *fits)
{
    unsigned count = 0;

    *fits = true;
    for (unsigned i = 0; i < t->dims; i++) {
        if (t->size[i] == 1)
            continue;
        *fits = *fits && t->size[i] % multiple == 0;
        if (count < 2)
            dim[count] = i;
        count++;
    }
    return count;
}

/* The stage of AR on a ring: stage 1 has one step, stage 2 floor(p/4), stage 3 ceil(p/4) - 1; 0: it is over. `step` counts
 * from the ring's first step. */
static unsigned stage_of(uint32_t nodes, uint32_t step)
{
    uint32_t second = nodes / 4, third = (nodes + 3) / 4 - 1;

    if (step == 0)
        return 1;
    if (step <= second)
        return 2;
    return step <= second + third ? 3 : 0;
}

static void name_stage(uint32_t nodes, uint32_t step, const char *before, char *text)
{
    uint32_t second = nodes / 4, third = (nodes + 3) / 4 - 1;

    switch (stage_of(nodes, step)) {
    case 1:
        (void)snprintf(text, PHASE_NAME_SIZE,
                       "%sstage 1: to nodes of the destination's parity on the ring", before);
        break;
    case 2:
        (void)snprintf(text, PHASE_NAME_SIZE,
                       "%sstage 2, step %" PRIu32 " of %" PRIu32 ": even nodes send +, odd nodes -",
                       before, step, second);
        break;
    case 3:
        (void)snprintf(text, PHASE_NAME_SIZE,
                       "%sstage 3, step %" PRIu32 " of %" PRIu32 ": even nodes send -, odd nodes +",
                       before, step - second, third);
        break;
    default:
        break;
    }
}

static void name_ar(const struct torus *t, uint32_t step, char *text)
{
    unsigned dim[2];
    bool fits;

    if (long_dims(t, 2, dim, &fits) != 1 || !fits)
        return;
    name_stage(t->size[dim[0]], step, "", text);
    text[0] = 'S'; /* begins the text */
}

/* A step in which AR runs on rings of two lengths, as printed. */
static void name_lines(uint32_t longer, uint32_t shorter, uint32_t step, const char *before,
                       char *text)
{
    unsigned stage = stage_of(shorter, step);

    if (stage == 0 || stage == stage_of(longer, step))
        name_stage(longer, step, before, text);
    else
        (void)snprintf(text, PHASE_NAME_SIZE,
                       "%sstage %u on rings of %" PRIu32 ", stage %u on rings of %" PRIu32, before,
                       stage_of(longer, step), longer, stage, shorter);
}

/* The same in at2: the shorter rings are in the stage of the longer ones, or make late hops. */
static void name_fitted_lines(uint32_t longer, uint32_t shorter, uint32_t step, const char *before,
                              char *text)
{
    if (shorter % 4 == 0 && longer % 4 != 0 && step == longer / 4 + shorter / 4)
        (void)snprintf(text, PHASE_NAME_SIZE,
                       "%sstage 3 on rings of %" PRIu32
                       ", the rest of stage 1 on rings of %" PRIu32,
                       before, longer, shorter);
    else
        name_stage(longer, step, before, text);
}

static void name_at2_steps(const struct torus *t, uint32_t step, bool printed, char *text)
{
    static const char *const lines[] = {
        "Phase 2, nodes with x + y even along dimension 1, others along 0, ",
        "Phase 3, nodes with x + y even along dimension 0, others along 1, "};
    unsigned dim[2];
    bool fits;

    if (long_dims(t, 4, dim, &fits) != 2 || !fits)
        return;
    bool first = t->size[dim[0]] > t->size[dim[1]];
    uint32_t longer = t->size[dim[first ? 0 : 1]] / 2, shorter = t->size[dim[first ? 1 : 0]] / 2;
    uint32_t steps = ring_steps(longer);
    if (step < 2)
        (void)snprintf(text, PHASE_NAME_SIZE,
                       "Phase 1, step %" PRIu32 " of 2: to nodes of the destination's parities",
                       step + 1);
    else if (step < 2 + 2 * steps)
        (printed ? name_lines : name_fitted_lines)(longer, shorter, (step - 2) % steps,
                                                   lines[(step - 2) / steps], text);
}

static void name_at2(const struct torus *t, uint32_t step, char *text)
{
    name_at2_steps(t, step, false, text);
}

static void name_at2_printed(const struct torus *t, uint32_t step, char *text)
{
    name_at2_steps(t, step, true, text);
}

/* AR1: a swap, rotations, a swap. */
static void name_rotation(uint32_t step, uint32_t steps, const char *before, char *text)
{
    if (step == 0)
        (void)snprintf(text, PHASE_NAME_SIZE, "%seven nodes swap with the odd nodes before them",
                       before);
    else if (step + 1 < steps)
        (void)snprintf(text, PHASE_NAME_SIZE,
                       "%srotation %" PRIu32 " of %" PRIu32
                       ": even nodes two hops +, odd nodes two hops -",
                       before, step, steps - 2);
    else
        (void)snprintf(text, PHASE_NAME_SIZE,
                       "%sswap with the next node in the direction of the rotation", before);
}

static void name_ar1(const struct torus *t, uint32_t step, char *text)
{
    struct one_port p;
    unsigned dim[2];
    bool fits;

    one_port_init(&p, t);
    if (long_dims(t, 2, dim, &fits) != 1 || !fits || step >= p.ring_steps)
        return;
    name_rotation(step, p.ring_steps, "", text);
    text[0] = text[0] == 'e' ? 'E' : text[0] == 'r' ? 'R' : 'S';
}

/* Phase 1 in rounds, in which AR1 runs along one dimension after another, then phase 2 in small squares or cubes. */
static void name_rounds(const struct torus *t, uint32_t step, char *text)
{
    struct one_port p;
    unsigned dim[2];
    char round[64];
    bool fits;

    one_port_init(&p, t);
    if (p.k < 2 || long_dims(t, p.multiple, dim, &fits) != p.k || !fits)
        return;
    if (step >= p.k * p.ring_steps) {
        (void)snprintf(text, PHASE_NAME_SIZE,
                       "Phase 2, step %" PRIu32 ": within %s of %u nodes a side",
                       step - p.k * p.ring_steps + 1, p.k == 2 ? "squares" : "cubes", p.k);
        return;
    }
    (void)snprintf(round, sizeof round,
                   "Phase 1, round %" PRIu32 " of %u: ", step / p.ring_steps + 1, p.k);
    name_rotation(step % p.ring_steps, p.ring_steps, round, text);
}

/* ---- Reasons --------------------------------------------------------------------------------- */

static const char *stage_reason(unsigned stage)
{
    static const char *const reasons[] = {
        "",
        "Blocks whose destination has the other parity on the ring make one hop; from there all go "
        "on in hops of two, from even to even and from odd to odd nodes.",
        "In hops of two, even nodes send in direction + and odd nodes in direction -, so that each "
        "channel carries one message.",
        "Now even nodes send in direction - and odd nodes in direction +: what has to go the other "
        "way follows."};

    return reasons[stage];
}

static void reason_ar(const struct torus *t, uint32_t step, char *text)
{
    unsigned dim[2];
    bool fits;

    if (long_dims(t, 2, dim, &fits) == 1 && fits)
        (void)snprintf(text, PHASE_REASON_SIZE, "%s",
                       stage_reason(stage_of(t->size[dim[0]], step)));
}

static void reason_at2(const struct torus *t, uint32_t step, char *text)
{
    unsigned dim[2];
    bool fits;

    if (long_dims(t, 4, dim, &fits) != 2 || !fits)
        return;
    const uint32_t r = t->size[dim[0]], c = t->size[dim[1]],
                   steps = ring_steps((r > c ? r : c) / 2);
    const char *reason = "";
    if (step < 2)
        reason = "Blocks hop to nodes whose coordinates have the parities of their destination's: "
                 "from there on hops of two along a row and a column lead to it.";
    else if (step < 2 + steps)
        reason = "Half of the nodes send along their rows and the others along their columns, in "
                 "hops of two, so that the channels of both dimensions are busy.";
    else if (step < 2 + 2 * steps)
        reason = "The dimensions change: blocks that have come along their row go on along a "
                 "column, and the others along a row, to their destinations.";
    (void)snprintf(text, PHASE_REASON_SIZE, "%s", reason);
}

static void reason_ar1(const struct torus *t, uint32_t step, char *text)
{
    struct one_port p;
    unsigned dim[2];
    bool fits;

    one_port_init(&p, t);
    if (long_dims(t, 2, dim, &fits) != 1 || !fits || step >= p.ring_steps || p.ring_steps == 1)
        return;
    (void)snprintf(text, PHASE_REASON_SIZE, "%s",
                   step == 0
                       ? "Then even nodes have the blocks of both that go in direction +, and odd "
                         "nodes those that go in direction -, so that each node sends one message."
                   : step + 1 < p.ring_steps
                       ? "Each node carries what goes in its direction two hops on; the next node "
                         "takes out the blocks for itself and for its neighbour."
                       : "What was taken out for the neighbour goes there.");
}

static void reason_rounds(const struct torus *t, uint32_t step, char *text)
{
    struct one_port p;
    unsigned dim[2];
    bool fits;

    one_port_init(&p, t);
    if (p.k < 2 || long_dims(t, p.multiple, dim, &fits) != p.k || !fits)
        return;
    const char *part = p.k == 2 ? "square" : "cube";
    const char *every = p.k == 2 ? "second" : p.k == 3 ? "third" : "k-th";
    if (step < p.k * p.ring_steps)
        (void)snprintf(
            text, PHASE_REASON_SIZE,
            "On rings of every %s node blocks move towards the %s of their destination. "
            "Neighbours work along different dimensions, so that no two messages meet on "
            "a channel.",
            every, part);
    else
        (void)snprintf(text, PHASE_REASON_SIZE,
                       "Blocks are in the %s of their destination, and go to their place in it.",
                       part);
}

/* Algorithms of one segment that work along one dimension after another; `steps` says how many steps a dimension has. */
static unsigned dim_at(const struct torus *t, uint32_t step,
                       uint32_t (*steps)(const struct torus *t, unsigned dim))
{
    const struct rotation order = rotation_of(t);
    uint32_t begin = 0;

    for (unsigned turn = 0; turn < order.count; turn++) {
        const unsigned dim = rotation_dim(&order, 0, turn);
        begin += steps(t, dim);
        if (step < begin)
            return dim;
    }
    return t->dims;
}

static void reason_dim(const struct torus *t, uint32_t step, char *text)
{
    const unsigned dim = dim_at(t, step, torus_longest_path);

    if (dim < t->dims)
        (void)snprintf(
            text, PHASE_REASON_SIZE,
            "Every block that has a way to go in dimension %u makes one hop of it. Blocks "
            "that leave by the same port are one message.",
            dim);
}

static uint32_t half(const struct torus *t, unsigned dim)
{
    return t->size[dim] / 2;
}

static void reason_pair(const struct torus *t, uint32_t step, char *text)
{
    const unsigned dim = dim_at(t, step, half);

    if (dim < t->dims)
        (void)snprintf(text, PHASE_REASON_SIZE,
                       "Each node swaps with one neighbour in dimension %u, and in the next step "
                       "with the other one; a message has all blocks that go on beyond.",
                       dim);
}

static void reason_direct(const struct torus *t, uint32_t step, char *text)
{
    (void)t;
    (void)step;
    (void)snprintf(
        text, PHASE_REASON_SIZE,
        "Each node starts one block, which goes straight to its destination, a dimension "
        "in each step; no block waits to travel with others.");
}

/* ---- By algorithm ---------------------------------------------------------------------------- */

static const struct {
    const struct algorithm *algorithm;
    void (*name)(const struct torus *t, uint32_t step, char *text); /* NULL: the paper names none */
    void (*reason)(const struct torus *t, uint32_t step, char *text);
} known[] = {
    {&algorithm_ar, name_ar, reason_ar},
    {&algorithm_at2, name_at2, reason_at2},
    {&algorithm_at2_printed, name_at2_printed, reason_at2},
    {&algorithm_ar1, name_ar1, reason_ar1},
    {&algorithm_at2_1port, name_rounds, reason_rounds},
    {&algorithm_mt, name_rounds, reason_rounds},
    {&algorithm_dim, NULL, reason_dim},
    {&algorithm_pair, NULL, reason_pair},
    {&algorithm_direct, NULL, reason_direct},
};

void phase_name(const struct algorithm *a, const struct torus *t, uint32_t step, char *text)
{
    text[0] = '\0';
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (a == known[i].algorithm && known[i].name != NULL)
            known[i].name(t, step, text);
}

void phase_reason(const struct algorithm *a, const struct torus *t, uint32_t step, char *text)
{
    text[0] = '\0';
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (a == known[i].algorithm)
            known[i].reason(t, step, text);
}
