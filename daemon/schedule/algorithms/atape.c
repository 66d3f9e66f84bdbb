/* ATAPE: the order in which nodes send to each other, from the Latin square whose rows are
 * permutations that a banyan network passes without conflict. Yang and Wang, All-to-All
 * Communication, "All-to-All Personalized Exchange Algorithm". In step i node j sends its block for
 * node a(i,j).
 *
 * On the banyan network (banyan.h) that is an exchange in N + log2 N - 1 steps. On a torus it is an
 * order for the direct exchange: the block leaves in step i, straight to its destination, and does
 * each further dimension one step later. That is N - 1 messages a node, and N steps and up to one
 * more for each dimension but the first: unlike in `direct`, the blocks of the last rows may have
 * legs in several dimensions. Every second row has two columns with a(i,j) = j: nodes that have
 * nothing to send in that step. */
#include "daemon/schedule/algorithms/banyan.h"
#include "daemon/schedule/algorithms/latin.h"
#include "daemon/schedule/algorithms/rows.h"
#include "daemon/schedule/algorithms/straight.h"
#include "daemon/schedule/bits.h"

static int atape_accepts(const struct torus *t, struct error *e)
{
    bool taken = is_power_of_two(t->nodes) && straight_fits(t);
    return taken ? 0 : algorithm_refuse(&algorithm_atape, t, e);
}

static uint32_t atape_max_legs(const struct torus *t)
{
    return t->dims;
}

/* A block of row i is done in step i + legs - 1: only the last rows can be the last to be done. */
static uint32_t atape_steps(const struct torus *t)
{
    uint32_t steps = 0, first_row = t->nodes > t->dims ? t->nodes - t->dims : 0;
    unsigned m = power_of(t->nodes);

    for (uint32_t row = first_row; row < t->nodes; row++) {
        for (uint32_t source = 0; source < t->nodes; source++) {
            uint32_t to = latin_entry(row, banyan_permutation(m, 0, source));
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
    uint32_t first = banyan_permutation(power_of(t->nodes), 0, source);

    (void)segment;
    return straight_route(t, source, destination, latin_row(first, destination), legs);
}

const struct algorithm algorithm_atape = {
    .name = "atape",
    .summary = "direct, in the order of a Latin square: step by step a permutation of a banyan "
               "network",
    .accepts_text = "a torus or mesh of 2^d nodes without a way longer than 65535 hops",
    .startups = "N - 1 a node, in at most N + k - 1 steps",
    .transmission = "no formula",
    .source = "Yang and Wang, All-to-All Communication, all-to-all personalized exchange",
    .port_model = PORT_MODEL_ALL,
    .segments = 1,
    .accepts = atape_accepts,
    .max_legs = atape_max_legs,
    .period = torus_no_period, /* rows are made by XOR, which moving along does not keep */
    .ordered_steps = atape_steps,
    .route = atape_route,
};
