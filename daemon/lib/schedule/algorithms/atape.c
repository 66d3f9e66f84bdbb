#include "daemon/lib/schedule/algorithms/banyan.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/straight.h"
#include "daemon/lib/schedule/bits.h"

uint32_t latin_entry(uint32_t i, uint32_t first)
{
    return first ^ i ^ i >> 1;
}

uint32_t latin_row(uint32_t first, uint32_t entry)
{
    uint32_t row = first ^ entry;
    for (unsigned shift = 1; shift < 32; shift *= 2)
        row ^= row >> shift;
    return row;
}

uint32_t banyan_link(unsigned stage, uint32_t line)
{
    unsigned high = stage + 1;
    uint32_t differ = (line ^ line >> high) & 1;
    return line ^ differ ^ differ << high;
}

uint32_t banyan_straight(unsigned m, uint32_t input)
{
    uint32_t line = input;

    for (unsigned stage = 0; stage + 1 < m; stage++)
        line = banyan_link(stage, line);
    return line;
}

/* ATAPE: a direct exchange in the order of a Latin square. Yang and Wang, All-to-All Communication,
 * "All-to-All Personalized Exchange Algorithm".
 *
 * The paper's network is a banyan network of N = 2^m inputs and outputs (banyan.h). In step i,
 * input j sends its block for output a(i,j), where a is a Latin square: a row is a permutation that
 * the network passes without conflict, a column names each output once. The exchange takes N + log2
 * N - 1 steps.
 *
 * On a torus, the Latin square is only an order. In step i, node j sends its block for node a(i,j)
 * straight to its destination, dimension 0 first; each further dimension takes one more step. A
 * node sends N - 1 messages. There are at most N + k - 1 steps on k dimensions, because blocks of
 * the last rows may have several legs (`direct` avoids that). In every second row, two nodes have
 * a(i,j) = j, and send nothing in that step. */

static bool atape_takes(const struct torus *t)
{
    bool taken = is_power_of_two(t->nodes) && straight_fits(t);
    return taken;
}

static uint32_t atape_max_legs(const struct torus *t)
{
    return t->dims;
}

/* A block of row i arrives in step i + legs - 1, so the last block to arrive is of one of the last
 * rows. */
static uint32_t atape_steps(const struct torus *t)
{
    uint32_t steps = 0, first_row = t->nodes > t->dims ? t->nodes - t->dims : 0;
    unsigned m = power_of(t->nodes);

    for (uint32_t row = first_row; row < t->nodes; row++) {
        for (uint32_t source = 0; source < t->nodes; source++) {
            uint32_t to = latin_entry(row, banyan_straight(m, source));
            struct leg legs[TORUS_MAX_DIMS];
            uint32_t count = straight_route(t, source, to, row, legs);
            if (count > 0 && row + count > steps)
                steps = row + count;
        }
    }
    return steps;
}

static uint32_t atape_route(const struct torus *t, uint32_t source, uint32_t destination,
                            uint32_t segment, struct leg *legs)
{
    uint32_t first = banyan_straight(power_of(t->nodes), source);

    (void)segment;
    return straight_route(t, source, destination, latin_row(first, destination), legs);
}

const struct algorithm algorithm_atape = {
    .name = "atape",
    .summary = "direct, in the order of a Latin square whose rows a banyan network passes without "
               "conflict",
    .accepts_text = "a torus or mesh of 2^d nodes without a path longer than 65535 hops",
    .startups = "N - 1 for each node, in at most N + k - 1 steps",
    .transmission = "no formula",
    .source = "Yang and Wang, All-to-All Communication, all-to-all personalized exchange",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .takes = atape_takes,
    .max_legs = atape_max_legs,
    .period = torus_no_period, /* rows are made by XOR, which translation does not keep */
    .ordered_steps = atape_steps,
    .route = atape_route,
};
